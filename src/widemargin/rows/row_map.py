"""What is done to rows before a machine sees them: columns on one scale, and a linear map.

Robust standardisation as in D. Holzmüller, L. Grinsztajn, I. Steinwart, "Better by default: strong
pre-tuned MLPs and boosted trees on tabular data", NeurIPS 2024: less the median, over the distance
of the quartiles, and then bent smoothly so that no value is far away,

    z = (x − median) / spread,     u = z / √(1 + (z / b)²),

which is z for usual values and tends to ±b for outliers. Rows may then be multiplied with a matrix,
the root of a metric: ‖Au − Av‖² = (u − v)ᵀ AᵀA (u − v).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.rows.rows import ArrayRows, Rows

# Values tend to this many standard deviations.
BEND = 4.0
# Distance of the quartiles of a normal distribution, in standard deviations.
_QUARTILES = 1.349
# Share of the memory up to which rows of a file are mapped once.
_WHOLE_SHARE = 0.25
# Rows that medians and quartiles are taken of, at the most: the first, which are a sample.
_MOST_ROWS = 50_000


@dataclass(frozen=True, eq=False)
class RowMap:
    """The map x ↦ bent((x − center) ∘ factor) A.

    Attributes
    ----------
    center : ndarray of shape (n_features,)
        What is subtracted.
    factor : ndarray of shape (n_features,)
        What columns are multiplied with.
    bend : float
        b; infinite where values stay as they are.
    matrix : ndarray of shape (n_features, n_out) or (n_features,), or None
        A, or its diagonal; None is the identity.
    """

    center: Vector
    factor: Vector
    bend: float = np.inf
    matrix: NDArray[np.float64] | None = None

    @classmethod
    def identity(cls, n_features: int) -> RowMap:
        """Return the map that changes nothing."""
        return cls(np.zeros(n_features), np.ones(n_features))

    @classmethod
    def linear(cls, matrix: NDArray[np.float64]) -> RowMap:
        """Return the map that multiplies with a matrix, or with a diagonal."""
        return cls(np.zeros(len(matrix)), np.ones(len(matrix)), matrix=matrix)

    @property
    def n_out(self) -> int:
        """Columns of mapped rows."""
        flat = self.matrix is None or self.matrix.ndim == 1
        return len(self.center) if flat or self.matrix is None else int(self.matrix.shape[1])

    def then(self, matrix: NDArray[np.float64] | None) -> RowMap:
        """Return this map with a matrix, or a diagonal, for its own."""
        return RowMap(self.center, self.factor, self.bend, matrix)

    def __call__(self, block: NDArray[Any]) -> NDArray[Any]:
        """Return a block of rows as they are after the map, in their own precision."""
        dtype = np.dtype(np.float32 if block.dtype == np.float32 else np.float64)
        # In one order, for products to have the same bits; in float64, so that columns far from
        # zero lose nothing.
        block = np.ascontiguousarray(block, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            mapped = (block - self.center) * self.factor
            if np.isfinite(self.bend):
                mapped /= np.hypot(1.0, mapped / self.bend)
        if self.matrix is not None:
            mapped = mapped * self.matrix if self.matrix.ndim == 1 else mapped @ self.matrix
        return np.ascontiguousarray(mapped, dtype=dtype)


class MappedRows(ArrayRows):
    """Rows of a file that are mapped whenever they are read."""

    def __init__(self, rows: Rows, row_map: RowMap) -> None:
        super().__init__(rows.X, rows.memory, rows.threads)
        self._order, self._keys = rows._order, rows._keys
        self.stored, self.row_map = rows, row_map

    def _read(self, index: IndexArray | slice) -> NDArray[Any]:
        # The rows may be mapped ones themselves.
        block: NDArray[Any] = self.row_map(self.stored._read(index))
        return block

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return super().shape[0], self.row_map.n_out


def mapped_rows(rows: Rows, row_map: RowMap) -> Rows:
    """Return dense rows after a map, with the keys that they have.

    Rows are mapped once; those of a file that would take too much memory, block by block whenever
    they are read.
    """
    mapped_bytes = 8 * rows.X.shape[0] * row_map.n_out
    if isinstance(rows, MappedRows) or (
        _in_a_file(rows.X) and mapped_bytes > _WHOLE_SHARE * rows.memory
    ):
        return MappedRows(rows, row_map)
    mapped = rows.stored_as(row_map(rows.X))
    mapped.row_map = row_map
    return mapped


def _in_a_file(X: Any) -> bool:
    """Return whether an array is a view of a memory-mapped file."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap):
            return True
        X = X.base
    return False


def robust_map(rows: Rows, weight: Vector) -> RowMap:
    """Return the map that puts columns on one scale.

    Parameters
    ----------
    rows : Rows
        Dense rows, each different one once and in the order of their keys.
    weight : ndarray of shape (n,)
        Their weights: a row of weight k counts as k copies.

    Returns
    -------
    RowMap
        Columns with equal quartiles are divided by their standard deviation; constant ones become
        zero.
    """
    n = min(rows.shape[0], _MOST_ROWS)
    some = np.asarray(rows.take(np.arange(n)), dtype=np.float64)
    weight = weight[:n] / weight[:n].sum()
    low, center, high = (_quantiles(some, weight, share) for share in (0.25, 0.5, 0.75))
    with np.errstate(over="ignore", invalid="ignore"):
        spread = (high - low) / _QUARTILES
        away = some - center
        largest = np.abs(away).max(axis=0)
        # In units of the largest value, whose square may be no number.
        unit = np.divide(away, largest, out=np.zeros_like(away), where=largest > 0)
        deviation = largest * np.sqrt(weight @ unit**2)
    spread = np.where(np.isfinite(spread) & (spread > 0), spread, deviation)
    usable = np.isfinite(spread) & (spread > np.finfo(np.float64).tiny)
    factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=usable)
    return RowMap(center, factor, BEND)


def _quantiles(columns: NDArray[np.float64], weight: Vector, share: float) -> Vector:
    """Return a weighted quantile of each column, which is one of its values."""
    found = np.empty(columns.shape[1])
    for k, column in enumerate(columns.T):
        order = np.argsort(column, kind="stable")
        reached = np.cumsum(weight[order])
        # Rounding of the sum must not decide.
        place = np.searchsorted(reached, share * reached[-1] * (1.0 - 1e-9))
        found[k] = column[order[min(int(place), len(order) - 1)]]
    return found
