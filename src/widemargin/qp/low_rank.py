"""Kernel matrices of low rank: where a few rows span all, the SVM is a small linear one.

With few features, or a wide kernel, the matrix of thousands of rows has a rank of tens or hundreds
but for rounding. See ``low_rank_loops`` for the factor and the machine.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.qp.margin_dual import lapack_addresses
from widemargin.threads import Compiled

loops = Compiled("widemargin.qp.low_rank_loops")

# Rows below which the matrix itself is as cheap.
_FEW = 800


def features_of(K: NDArray[Any], tol: float, most: float) -> Matrix | None:
    """Return features F with K + 1 ≈ F Fᵀ, or None where the rank is not low.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix.
    tol : float
        What may be missing on the diagonal, relative to its largest value.
    most : float
        The share of the rows up to which a rank is low.

    Returns
    -------
    ndarray of shape (n, rank + 1) or None
        The last feature is 1, whose coefficient is the bias.
    """
    n = len(K)
    if n < _FEW:
        return None
    factor = loops.pivoted_factor(K, tol, int(most * n))
    if not len(factor):
        return None
    return np.ascontiguousarray(np.vstack([factor, np.ones(n)]).T)


def dual_of(F: Matrix, sign: Vector, ridge: Vector, gap: float) -> Vector:
    """Return the dual variables of the machine on features."""
    w = np.zeros(F.shape[1])
    loops.solve_linear(lapack_addresses(), F, sign, ridge, w, gap)
    alpha: Vector = np.maximum(0.0, 1.0 - sign * (F @ w)) / ridge
    return alpha


def path_coefficients(
    F: Matrix, train: IndexArray, sign: Vector, weight: Vector, Cs: Vector, gap: float
) -> Matrix:
    """Return the coefficients of the features in one problem for every C, the last one the bias.

    The arguments are those of ``margin_dual.path_coefficients``, with features in the place of K.
    """
    w = np.zeros((F.shape[1], len(Cs)))
    loops.linear_path(lapack_addresses(), F, train, sign[train], weight[train], Cs, gap, w)
    return w
