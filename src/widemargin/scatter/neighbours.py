"""Rows in a feature space, and each one's nearest others.

Distances come from matrix products between blocks of rows, so that no matrix between all rows is
ever held. In a few dimensions a k-d tree finds the neighbours instead. Which of several equally
near rows become neighbours depends on their order and nothing else: whoever passes rows in an order
of their content (`widemargin.rows.distinct_rows`) gets the same neighbours for any order in which a
user gave them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KDTree

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.rows import Rows, rows_per_block, threads_within
from widemargin.threads import ordered_map

# Features up to which a tree beats products between all rows.
_TREE_FEATURES = 15
# Rows that a block holds at the most.
_MOST_ROWS = 1024
# Numbers for each pair of rows of two blocks.
_SQUARES = 4
# ‖x − z‖² from a product has an error of some 1e-16 (‖x‖² + ‖z‖²). Where it is smaller than this
# share of ‖x‖², it is summed from the differences.
_NEAR = 1e-7
# Pairs a row, up to which they are measured one by one.
_FEW = 32


class FeatureRows:
    """Features of some rows about an origin and in units of a scale, in float64.

    Parameters
    ----------
    rows : Rows
        Where the rows are read from.
    index : ndarray of int of shape (n,)
        Which of them, in which order.
    features : callable
        Returns the features of a block of rows, a float64 array.
    origin : ndarray of shape (n_features,)
        The point that becomes zero.
    scale : float
        What lengths are divided by.

    Attributes
    ----------
    slices : list of slice
        A fixed partition of the n positions.
    """

    def __init__(
        self,
        rows: Rows,
        index: IndexArray,
        features: Callable[[Any], Matrix],
        origin: Vector,
        scale: float,
    ) -> None:
        self.n, self.width = len(index), len(origin)
        self._rows = rows
        self._index = index
        self._features = features
        self._origin = origin
        self._scale = scale
        # A block is set against another one: squared distances, and what is made of them.
        most = min(_MOST_ROWS, isqrt(rows.memory // (16 * 8 * _SQUARES)))
        step = rows_per_block(rows.memory, 8 * self.width, max(1, most))
        self.threads = threads_within(rows.memory, 8 * _SQUARES * step**2, rows.threads)
        self.slices = [slice(i, min(self.n, i + step)) for i in range(0, self.n, step)]
        self._kept: Matrix | None = None
        # To read rows, or to compute their features, once for each block is dear.
        if 8 * self.n * self.width <= rows.memory // 2:
            kept = np.empty((self.n, self.width))

            def keep(where: slice) -> None:
                kept[where] = self._read(index[where])

            for _ in ordered_map(keep, self.slices, self.threads):
                pass
            self._kept = kept

    @property
    def in_memory(self) -> bool:
        """Whether all features are at hand."""
        return self._kept is not None

    def at(self, where: slice | IndexArray) -> Matrix:
        """Return the features at some positions; they are not to be written to."""
        if self._kept is not None:
            return self._kept[where]
        return self._read(self._index[where])

    def _read(self, index: IndexArray) -> Matrix:
        # Divided first: the difference of two huge numbers may be no number.
        features = self._features(self._rows.block(index)) / self._scale
        features -= self._origin / self._scale
        return features


def squared_distances(X: Matrix, Z: Matrix) -> Matrix:
    """Return ‖x − z‖² of all rows of X and Z.

    Examples
    --------
    >>> import numpy as np
    >>> squared_distances(np.array([[0.0, 1.0]]), np.array([[0.0, 0.0], [3.0, 5.0]]))
    array([[ 1., 25.]])
    """
    norms = np.einsum("ij,ij->i", X, X)
    squares: Matrix = X @ Z.T
    squares *= -2.0
    squares += norms[:, None]
    squares += np.einsum("ij,ij->i", Z, Z)
    bound = _NEAR * norms
    # Few rows have such a pair, and the minimum of a row is cheaper than a list of pairs.
    rows = np.flatnonzero(squares.min(axis=1, initial=np.inf) <= bound)
    among, column = np.nonzero(squares[rows] <= bound[rows, None])
    row = rows[among]
    for first in range(0, len(row), _MOST_ROWS):
        near, other = row[first : first + _MOST_ROWS], column[first : first + _MOST_ROWS]
        squares[near, other] = _squared_lengths(X[near] - Z[other])
    return np.maximum(squares, 0.0, out=squares)


def _squared_lengths(differences: Matrix) -> Vector:
    lengths: Vector = np.einsum("...j,...j->...", differences, differences)
    return lengths


@dataclass(frozen=True)
class Neighbours:
    """The nearest other rows of each row, the nearest first.

    Attributes
    ----------
    index : ndarray of int of shape (n, k)
        Their positions.
    squares : ndarray of shape (n, k)
        Their squared distances.
    """

    index: IndexArray
    squares: Matrix


def nearest_rows(points: FeatureRows, k: int) -> Neighbours:
    """Return the k nearest others of each row, or all others where there are fewer.

    Parameters
    ----------
    points : FeatureRows
        The rows.
    k : int
        How many.

    Returns
    -------
    Neighbours
        They do not depend on the number of threads.
    """
    k = min(k, points.n - 1)
    if k < 1:
        return Neighbours(np.empty((points.n, 0), dtype=np.intp), np.empty((points.n, 0)))
    search: _InTree | _InBlocks
    if points.width <= _TREE_FEATURES and points.in_memory:
        search = _InTree(points, k, KDTree(points.at(slice(None))))
    else:
        search = _InBlocks(points, k)
    index = np.concatenate(list(ordered_map(search, points.slices, points.threads)))
    return Neighbours(index, _squared_lengths_to(points, index))


def _squared_lengths_to(points: FeatureRows, index: IndexArray) -> Matrix:
    """Return ‖x_i − x_j‖² for the j at row i of `index`, from the differences."""
    n, k = index.shape
    squares = np.empty((n, k))
    step = max(1, _MOST_ROWS // k)
    for first in range(0, n, step):
        where = slice(first, min(n, first + step))
        others = points.at(index[where].ravel()).reshape(-1, k, points.width)
        squares[where] = _squared_lengths(others - points.at(where)[:, None])
    return squares


@dataclass(frozen=True)
class _InTree:
    """Finds the neighbours of a slice of the rows in a k-d tree."""

    points: FeatureRows
    k: int
    tree: Any

    def __call__(self, where: slice) -> IndexArray:
        X = self.points.at(where)
        found: IndexArray = np.asarray(
            self.tree.query(X, self.k + 1, return_distance=False), dtype=np.intp
        )
        other = found != np.arange(where.start, where.stop)[:, None]
        # Rows in one place may leave a row itself out; then the last one found is too many.
        other[other.all(axis=1), -1] = False
        index: IndexArray = found[other].reshape(-1, self.k)
        return index


@dataclass(frozen=True)
class _InBlocks:
    """Finds the neighbours of a slice of the rows by products with all blocks.

    The products are in float32, for half the time, and give lower bounds of the distances. Pairs
    whose bound is not beyond the k-th distance so far are few, and are measured in float64.
    """

    points: FeatureRows
    k: int

    def __call__(self, where: slice) -> IndexArray:
        points, k = self.points, self.k
        X = points.at(where)
        m = len(X)
        below = _LowerBounds(X)
        row = column = np.empty(0, dtype=np.intp)
        square = np.empty(0)
        # The k-th distance so far: whatever lies beyond is out.
        reach = np.full(m, np.inf)
        for other in points.slices:
            Z = points.at(other)
            own = np.arange(m) if other == where else None
            new_row, new_column, new_square = _within_reach(X, Z, below(Z), reach, k, own)
            row = np.concatenate([row, new_row])
            column = np.concatenate([column, new_column + other.start])
            square = np.concatenate([square, new_square])
            order = np.lexsort((column, square, row))
            place = np.arange(len(row)) - np.searchsorted(row[order], row[order])
            kept = order[place < k]
            row, column, square = row[kept], column[kept], square[kept]
            found = np.bincount(row, minlength=m)
            full = found == k
            reach[full] = square[np.cumsum(found)[full] - 1]
        return column.reshape(m, k)


class _LowerBounds:
    """Lower bounds of ‖x − z‖² from products in float32.

    With u = 2⁻²⁴ the error of ‖x‖² + ‖z‖² − 2xᵀz is at most (d + 8)u(‖x‖² + ‖z‖²): d + 2 for the
    product, a few for the sums; and where numbers are too small for float32, some 1e-38.
    """

    def __init__(self, X: Matrix) -> None:
        self._error = (X.shape[1] + 8) * 2.0**-24
        self._X = np.asarray(-2.0 * X, dtype=np.float32)
        self._norms = self._reduced_norms(X)

    def __call__(self, Z: Matrix) -> NDArray[np.float32]:
        bounds: NDArray[np.float32] = self._X @ np.asarray(Z, dtype=np.float32).T
        bounds += self._norms[:, None]
        bounds += self._reduced_norms(Z)
        return bounds

    def _reduced_norms(self, rows: Matrix) -> NDArray[np.float32]:
        norms = (1.0 - self._error) * _squared_lengths(rows) - 1e-36
        return np.asarray(norms, dtype=np.float32)


def _within_reach(
    X: Matrix,
    Z: Matrix,
    bounds: NDArray[np.float32],
    reach: Vector,
    k: int,
    own: IndexArray | None,
) -> tuple[IndexArray, IndexArray, Vector]:
    """Return the pairs of rows of X and Z that may be among the k nearest, with their squares.

    `own` are the places of the rows of X in Z, if they are there.
    """
    if own is not None:
        bounds[own, own] = np.inf
    if np.isinf(reach).any() and bounds.shape[1] > k:
        # Any k others bound the distance of the k-th.
        some = np.argpartition(bounds, k - 1, axis=1)[:, :k]
        squares = np.stack([_squared_lengths(X - Z[some[:, j]]) for j in range(k)], axis=1)
        if own is not None:
            squares[some == own[:, None]] = np.inf
        reach = np.minimum(reach, squares.max(axis=1))
    row, column = _not_beyond(bounds, reach)
    if len(row) > _FEW * len(X):
        # Rows in narrow clusters far apart, which float32 cannot tell from each other.
        every = squared_distances(X, Z)
        if own is not None:
            every[own, own] = np.inf
        # Reach was measured in another way, which may differ in the last digits.
        row, column = _not_beyond(every, 1.000001 * reach)
        return row, column, every[row, column]
    square = np.empty(len(row))
    for first in range(0, len(row), _MOST_ROWS):
        pairs = slice(first, first + _MOST_ROWS)
        square[pairs] = _squared_lengths(X[row[pairs]] - Z[column[pairs]])
    inside = square <= reach[row]
    return row[inside], column[inside], square[inside]


def _not_beyond(values: NDArray[Any], limit: Vector) -> tuple[IndexArray, IndexArray]:
    """Return where finite values are not above the limit of their row."""
    # In the type of the values, rounded up: to convert them all takes as long as the product.
    within = values <= np.nextafter(limit.astype(values.dtype), np.inf)[:, None]
    if np.isinf(limit).any():
        within &= values < np.inf
    row, column = np.divmod(np.flatnonzero(within), values.shape[1])
    return row, column
