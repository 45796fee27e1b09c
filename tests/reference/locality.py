"""Local Fisher discriminants and locality preserving projections, slowly and obviously.

Everything is a matrix between all rows, in float64, as the papers' sums have it:

- M. Sugiyama, "Dimensionality reduction of multimodal labeled data by local Fisher discriminant
  analysis", JMLR 8, 2007: the scatters as sums over pairs, with the local scaling of Zelnik-Manor
  and Perona.
- X. He and P. Niyogi, "Locality preserving projections", NIPS 2003.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh, orth, subspace_angles

Array = NDArray[np.float64]


def square_distances(X: Array) -> Array:
    """‖x_i − x_j‖² of all rows."""
    difference = X[:, None, :] - X[None, :, :]
    return (difference**2).sum(axis=2)


def local_scaling(X: Array, y: ArrayLike, n_neighbors: int) -> Array:
    """A_ij = exp(−‖x_i − x_j‖² / (σ_i σ_j)) within classes, 0 between them."""
    y = np.asarray(y)
    squares = square_distances(X)
    affinity = np.zeros_like(squares)
    for label in np.unique(y):
        inside = np.flatnonzero(y == label)
        if len(inside) < 2:
            continue
        own = squares[np.ix_(inside, inside)]
        # The nearest row is the row itself.
        place = min(n_neighbors, len(inside) - 1)
        sigma = np.sqrt(np.sort(own, axis=1)[:, place])
        affinity[np.ix_(inside, inside)] = np.exp(-own / np.outer(sigma, sigma))
    return affinity


def pair_scatter(X: Array, W: Array) -> Array:
    """½ Σ_ij W_ij (x_i − x_j)(x_i − x_j)ᵀ, term by term."""
    S = np.zeros((X.shape[1], X.shape[1]))
    for i in range(len(X)):
        difference = X[i] - X
        S += 0.5 * difference.T @ (W[i][:, None] * difference)
    return S


def local_fisher_scatters(
    X: Array, y: ArrayLike, affinity: Array, weight: ArrayLike | None = None
) -> tuple[Array, Array]:
    """Return the local between-class and within-class scatter.

    A row of weight s stands for s rows: n and n_c are sums of weights, and a pair of rows counts
    s_i s_j times.
    """
    y = np.asarray(y)
    s = np.ones(len(X)) if weight is None else np.asarray(weight, dtype=float)
    n = s.sum()
    within = np.zeros((len(X), len(X)))
    between = np.full((len(X), len(X)), 1 / n)
    for label in np.unique(y):
        same = np.outer(y == label, y == label)
        n_c = s[y == label].sum()
        within[same] = affinity[same] / n_c
        between[same] = affinity[same] * (1 / n - 1 / n_c)
    pairs = np.outer(s, s)
    return pair_scatter(X, between * pairs), pair_scatter(X, within * pairs)


def local_fisher(
    X: Array, y: ArrayLike, n_components: int, n_neighbors: int = 7, shrinkage: float = 0.0
) -> tuple[Array, Array]:
    """Return the eigenvalues, largest first, and the vectors with φᵀ S^w φ = 1 as columns."""
    between, within = local_fisher_scatters(X, y, local_scaling(X, y, n_neighbors))
    d = X.shape[1]
    within = (1 - shrinkage) * within + shrinkage * np.trace(within) / d * np.eye(d)
    values, vectors = eigh(between, within)
    return values[::-1][:n_components], vectors[:, ::-1][:, :n_components]


def neighbour_graph(
    X: Array,
    n_neighbors: int,
    *,
    affinity: str = "heat",
    bandwidth: float | None = None,
    y: ArrayLike | None = None,
    weight: ArrayLike | None = None,
) -> Array:
    """Return W: i and j are joined if one is among the nearest rows of the other.

    Without a bandwidth it is the mean squared length of the edges. With y only rows of one class
    are joined. A row of weight s stands for s rows in one place.
    """
    n = len(X)
    s = np.ones(n) if weight is None else np.asarray(weight, dtype=float)
    squares = square_distances(X)
    allowed = np.ones((n, n), dtype=bool) if y is None else np.equal.outer(y, y)
    np.fill_diagonal(allowed, False)
    joined = np.zeros((n, n), dtype=bool)
    for i in range(n):
        others = np.flatnonzero(allowed[i])
        nearest = others[np.argsort(squares[i, others])[:n_neighbors]]
        joined[i, nearest] = joined[nearest, i] = True
    pairs = np.outer(s, s) * joined
    if affinity == "binary":
        return pairs
    if bandwidth is None:
        bandwidth = (pairs * squares).sum() / pairs.sum()
    return pairs * np.exp(-squares / bandwidth)


def locality_preserving(X: Array, W: Array, n_components: int) -> tuple[Array, Array]:
    """Return the smallest eigenvalues of X L Xᵀ a = λ X D Xᵀ a, and the vectors as columns.

    The rows are centred with the weights D, and stay in the space that they span then.
    """
    degree = W.sum(axis=1)
    centred = X - degree @ X / degree.sum()
    basis = orth(centred[degree > 0].T, rcond=1e-9)
    rows = centred @ basis
    D = np.diag(degree)
    values, vectors = eigh(rows.T @ (D - W) @ rows, rows.T @ D @ rows)
    return values[:n_components], basis @ vectors[:, :n_components]


def largest_angle(A: Array, B: Array) -> float:
    """Return the largest principal angle between the spans of columns."""
    assert A.shape == B.shape
    return float(subspace_angles(A, B).max())


def assert_same_features(A: Array, B: Array, atol: float) -> None:
    """Equal up to the signs of the columns."""
    sign = np.sign((A * B).sum(axis=0))
    np.testing.assert_allclose(A, sign * B, atol=atol)
