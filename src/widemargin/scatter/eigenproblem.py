"""Generalised eigenproblems A v = λ B v, where B may be singular."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from widemargin.arrays import Matrix, Vector

# Share of the largest eigenvalue below which B vanishes: what rounding leaves is far smaller.
_VANISHES = 1e-10


@dataclass(frozen=True)
class Eigenvectors:
    """Solutions of A v = λ B v.

    Attributes
    ----------
    values : ndarray of shape (rank,)
        λ in ascending order.
    vectors : ndarray of shape (n, rank)
        v as columns, with VᵀBV = I.
    """

    values: Vector
    vectors: Matrix


def generalized_eigenvectors(A: Matrix, B: Matrix, floor: Vector | float = 0.0) -> Eigenvectors:
    """Solve A v = λ B v in the directions in which B does not vanish.

    Parameters
    ----------
    A, B : ndarray of shape (n, n)
        Symmetric; B positive semidefinite.
    floor : float or ndarray of shape (n,), default=0
        Coordinates whose diagonal element of B is not above this are left out: it is rounding.

    Returns
    -------
    Eigenvectors
        As many as B has directions.

    Notes
    -----
    Coordinates are first scaled to a diagonal of one: coordinates of very different size then cost
    no digits. The vectors are orthogonal to the directions that are left out, as after a PCA, and
    so do not depend on the basis.

    Examples
    --------
    >>> import numpy as np
    >>> generalized_eigenvectors(np.diag([6.0, 1.0, 5.0]), np.diag([2.0, 1.0, 0.0])).values
    array([1., 3.])
    """
    diagonal = np.diagonal(B)
    alive = np.flatnonzero(diagonal > floor)
    if not len(alive):
        return Eigenvectors(np.zeros(0), np.zeros((len(B), 0)))
    size = np.sqrt(diagonal[alive])
    part = np.ix_(alive, alive)
    variance, axes = linalg.eigh(B[part] / size / size[:, None], check_finite=False)
    kept = variance > _VANISHES * variance[-1]
    if kept.all():
        whitening = axes / np.sqrt(variance)
        inner = whitening.T @ (A[part] / size / size[:, None]) @ whitening
        values, rotation = linalg.eigh(inner, check_finite=False)
        found = Eigenvectors(values, (whitening @ rotation) / size[:, None])
    else:
        # Once more in the space at right angles to the directions that B does not see.
        unseen = int((~kept).sum())
        rest = np.linalg.qr(axes[:, ~kept] / size[:, None], mode="complete")[0][:, unseen:]
        found = generalized_eigenvectors(rest.T @ A[part] @ rest, rest.T @ B[part] @ rest)
        found = Eigenvectors(found.values, rest @ found.vectors)
    vectors = np.zeros((len(B), len(found.values)))
    vectors[alive] = found.vectors
    return Eigenvectors(found.values, vectors)


def check_n_components(n_components: Any, n_features: int, rank: int, remedy: str) -> int:
    """Return how many directions to keep, or raise if there are not so many.

    Parameters
    ----------
    n_components : int or None
        What the user asked for; None is all.
    n_features : int
        Features of the space.
    rank : int
        Directions that were found.
    remedy : str
        What to do if there are too few, beside asking for fewer.
    """
    if n_components is None:
        return rank
    wanted = int(n_components)
    if wanted > n_features:
        raise ValueError(
            f"n_components={wanted} is more than the {n_features} features of the space; give "
            f"n_components <= {n_features}, or None."
        )
    if wanted > rank:
        raise ValueError(
            f"n_components={wanted}, but these rows have {rank} directions only; give "
            f"n_components <= {rank}, or None{remedy}."
        )
    return wanted
