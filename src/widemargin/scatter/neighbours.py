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
        apart = X[near] - Z[other]
        squares[near, other] = np.einsum("ij,ij->i", apart, apart)
    return np.maximum(squares, 0.0, out=squares)


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
    index, squares = zip(*ordered_map(search, points.slices, points.threads), strict=True)
    return Neighbours(np.concatenate(index), np.concatenate(squares))


@dataclass(frozen=True)
class _InTree:
    """Finds the neighbours of a slice of the rows in a k-d tree."""

    points: FeatureRows
    k: int
    tree: KDTree

    def __call__(self, where: slice) -> tuple[IndexArray, Matrix]:
        distance, index = self.tree.query(self.points.at(where), self.k + 1)
        other = index != np.arange(where.start, where.stop)[:, None]
        # Rows in one place may leave a row itself out; then the last one found is too many.
        other[other.all(axis=1), -1] = False
        shape = (-1, self.k)
        return index[other].reshape(shape), distance[other].reshape(shape) ** 2


@dataclass(frozen=True)
class _InBlocks:
    """Finds the neighbours of a slice of the rows by products with all blocks.

    Pairs that are not beyond the k-th distance of their row so far are few, once there is one.
    """

    points: FeatureRows
    k: int

    def __call__(self, where: slice) -> tuple[IndexArray, Matrix]:
        X, k = self.points.at(where), self.k
        m = len(X)
        row = column = np.empty(0, dtype=np.intp)
        square = np.empty(0)
        # The k-th distance so far: whatever lies beyond is out.
        reach = np.full(m, np.inf)
        for other in self.points.slices:
            squares = squared_distances(X, self.points.at(other))
            if other == where:
                np.fill_diagonal(squares, np.inf)
            if np.isinf(reach).any() and squares.shape[1] > k:
                reach = np.minimum(reach, np.partition(squares, k - 1, axis=1)[:, k - 1])
            near, place = np.nonzero((squares <= reach[:, None]) & (squares < np.inf))
            row, column = np.append(row, near), np.append(column, place + other.start)
            square = np.append(square, squares[near, place])
            order = np.lexsort((column, square, row))
            number = np.arange(len(row)) - np.searchsorted(row[order], row[order])
            kept = order[number < k]
            row, column, square = row[kept], column[kept], square[kept]
            found = np.bincount(row, minlength=m)
            full = found == k
            reach[full] = square[np.cumsum(found)[full] - 1]
        return column.reshape(m, k), square.reshape(m, k)
