"""The points whose ball is the SVM.

Row i with label y_i = ±1 and weight s_i is the point φ̃(z_i) = (y_i φ(x_i), y_i, e_i √ridge_i) of
(3) and (4) of BVM and (7) of MMDA-CVM, here with several label columns at once:

    Q_ij = y_i y_j (k(x_i, x_j) + 1 − p_iᵀp_j) + δ_ij ridge_i,   ridge_i = 1 / (2 C s_i),

p_i = Uᵀφ(x_i) for unit directions U that the centre must be orthogonal to. Distances are those of
the centre-constrained ball, (16) and (19) of MMDA-CVM: every point carries an extra coordinate
that makes its squared norm η, the largest of all, so that

    distance²_i = η + ‖c‖² − 2 (Qλ)_i,    radius² = η − ‖c‖²    for a centre c = Σ λ_i φ̃(z_i).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.kernels import Kernel
from widemargin.kernels.finite import check_diagonal, check_finite
from widemargin.rows import BlockRows, weighted_moments
from widemargin.rows.base import IndexArray

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Points:
    """Labelled rows as points of several enclosing balls.

    Attributes
    ----------
    rows : BlockRows
        The rows, each different one once.
    kernel : Kernel
        Their kernel.
    code : ndarray of int of shape (n,)
        Class of each row.
    table : ndarray of shape (n_classes, n_problems)
        Sign of each class in each problem, ±1.
    weight : ndarray of shape (n,)
        Weight s of each row.
    C : float
        As in ``LinearSVC(loss="squared_hinge")``.
    number : ndarray of int of shape (n,)
        The rows' numbers in the user's data (columns of a precomputed kernel).
    projections : ndarray of shape (n_problems, n, n_directions) or None
        p_i = Uᵀφ(x_i) of every row, for the orthonormal directions U of each problem that its
        centre must be orthogonal to.
    place : ndarray of int or None
        Which of the rows each row of the user's data is; −1 for rows that are left out.
    """

    rows: BlockRows
    kernel: Kernel
    code: NDArray[np.intp]
    table: NDArray[np.float64]
    weight: Vector
    C: float
    number: IndexArray
    projections: NDArray[np.float64] | None = None
    place: IndexArray | None = None

    @property
    def n(self) -> int:
        """Number of points."""
        return self.rows.shape[0]

    @property
    def n_problems(self) -> int:
        """Number of balls."""
        n_problems: int = self.table.shape[1]
        return n_problems

    @cached_property
    def ridge(self) -> Vector:
        """1 / (2 C s) of every row."""
        return 1.0 / (2.0 * self.C * self.weight)

    def sign(self, problem: int, index: IndexArray | slice) -> Vector:
        """Return the labels ±1 of rows in one problem."""
        return np.ascontiguousarray(self.table[self.code[index], problem])

    @cached_property
    def eta(self) -> float:
        """η: the largest squared norm of a point."""
        constant = self.kernel.constant_diagonal
        if constant is not None:
            return constant + 1.0 + float(self.ridge.max())
        blocks = self.rows.scan(_Diagonal(self.kernel, self.number, self.ridge))
        return 1.0 + max(blocks)

    @cached_property
    def roundoff(self) -> float:
        """Error of a kernel value in units of the roundoff."""
        spread = float(weighted_moments(self.rows, self.weight).variance.sum())
        return self.kernel.roundoff(spread)


@dataclass(frozen=True)
class _Diagonal:
    """Visitor: the largest k(x_i, x_i) + ridge_i of a block."""

    kernel: Kernel
    number: IndexArray
    ridge: Vector

    def __call__(self, block: Any, where: slice) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            diagonal = self.kernel.diagonal(block, self.number[where])
            check_finite(self.kernel, diagonal)
        check_diagonal(self.kernel, diagonal)
        return float((diagonal + self.ridge[where]).max())
