"""Counts, means and within-class scatter of the rows: all that Fisher's criterion and its kin need.

They are accumulated by blocks, each about its own means, and joined by the pairwise update of Chan,
Golub and LeVeque (1979): no digits are lost to an offset of the rows, blocks may come in any order,
and memory does not grow with the rows. With fourth powers (`fourth_powers`) beside them, the
shrinkage of Ledoit and Wolf (2004) streams too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from widemargin.arrays import Codes, IndexArray, Matrix, Vector
from widemargin.device import Array, Device
from widemargin.rows import Rows
from widemargin.scatter.fourth_powers import (
    Powers,
    joined_powers,
    mean_of_norms,
    no_powers,
    powers_of,
    scaled_powers,
)


class VisitFeatures(Protocol):
    """What turns a block of rows into features, float64 and dense."""

    @property
    def width(self) -> int:
        """How many features there are."""

    def __call__(self, block: Any) -> Matrix:
        """Return the features of the rows of a block."""

    def there(self, device: Device) -> Callable[[Array], Array]:
        """Return what turns a block of rows on a device into features there."""


@dataclass(frozen=True)
class LabelledRows:
    """The rows that count.

    Attributes
    ----------
    rows : Rows
        Rows of positive weight.
    code : ndarray of int of shape (n,)
        Their classes, as numbers from 0.
    weight : ndarray of shape (n,)
        Their weights.
    index : ndarray of int of shape (n,)
        Where they stand among the rows that were given.
    """

    rows: Rows
    code: Codes
    weight: Vector
    index: IndexArray


@dataclass
class ClassScatter:
    """Counts, means and within-class scatter, accumulated by blocks.

    Numbers are kept about an origin and in a unit (a power of two), both taken from the rows: rows
    of any offset and size then keep their digits. `mean` and `within` are in the rows' own units.

    Attributes
    ----------
    origin : ndarray of shape (n_features,)
        The first row: `offset` is about it.
    unit : float
        What `offset` and `scatter` are measured in; 0 as long as all rows are the same.
    weight : ndarray of shape (n_classes,)
        Summed weights of the rows of each class; classes without rows yet have 0.
    offset : ndarray of shape (n_classes, n_features)
        Means of the classes, about the origin, in units.
    scatter : ndarray of shape (n_features, n_features)
        Σ s (x − m)(x − m)ᵀ with m the mean of the row's class, in units squared.
    powers : ndarray of shape (3, n_classes, n_directions)
        Of the rows about the means of their classes, in units; see `fourth_powers`.

    Examples
    --------
    >>> import numpy as np
    >>> scatter = ClassScatter.empty(2, 1)
    >>> scatter.add(np.array([[0.0], [2.0], [5.0]]), np.array([0, 0, 1]), np.ones(3))
    >>> scatter.add(np.array([[7.0]]), np.array([1]), np.ones(1))
    >>> scatter.mean.ravel(), scatter.within
    (array([1., 6.]), array([[4.]]))
    """

    origin: Vector
    unit: float
    weight: Vector
    offset: Matrix
    scatter: Matrix
    powers: Powers

    @classmethod
    def empty(cls, n_classes: int, n_features: int) -> ClassScatter:
        """Return the scatter of no rows."""
        return cls(
            np.zeros(n_features),
            0.0,
            np.zeros(n_classes),
            np.zeros((n_classes, n_features)),
            np.zeros((n_features, n_features)),
            no_powers(n_classes, n_features),
        )

    def state(self) -> dict[str, Any]:
        """Return everything as plain arrays and numbers, by the names of the attributes."""
        return dict(vars(self))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.origin)

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self.weight.sum())

    @property
    def mean(self) -> Matrix:
        """Means of the classes; of classes without rows, the origin."""
        return self.origin + self.unit * self.offset

    @property
    def within(self) -> Matrix:
        """Within-class scatter Σ s (x − m)(x − m)ᵀ in the rows' own units."""
        return self.scatter * self.unit * self.unit

    def add(self, block: Matrix, code: Codes, weight: Vector) -> None:
        """Take rows in.

        Parameters
        ----------
        block : ndarray of shape (n, n_features)
            Rows, dense.
        code : ndarray of int of shape (n,)
            Their classes, as numbers from 0.
        weight : ndarray of shape (n,)
            Their weights, as multiplicities; rows of weight 0 are left out.
        """
        kept = weight > 0
        if not kept.any():
            return
        block = np.asarray(block, dtype=np.float64)
        if not self.weight.any():
            self.origin = block[np.argmax(kept)].copy()
        self.merge(*_scatter_of_block(block[kept], code[kept], weight[kept], self.origin))

    def merge(self, other: ClassScatter, classes: Codes | None = None) -> None:
        """Take in the rows of another scatter, of the same columns.

        Parameters
        ----------
        other : ClassScatter
            The other; it stays as it is.
        classes : ndarray of int, default=None
            Which classes of this scatter those of the other are; None for the same ones.
        """
        there = np.flatnonzero(other.weight)
        if not len(there):
            return
        here = there if classes is None else classes[there]
        if not self.weight.any():
            self.origin = other.origin.copy()
        between = other.origin - self.origin
        self._measure_in(max(self.unit, other.unit, unit_above(between)))
        # Units are powers of two, so that factors are exact; none if all rows are the same.
        unit = self.unit or 1.0
        factor = other.unit / unit
        delta = other.offset[there] * factor + between / unit - self.offset[here]
        weight, new = self.weight[here], other.weight[there]
        share = new / (weight + new)
        pull = delta * np.sqrt(weight * share)[:, None]
        self.scatter += other.scatter * factor**2
        self.scatter += pull.T @ pull
        self.offset[here] += np.where(weight > 0, share, 1.0)[:, None] * delta
        self.weight[here] = weight + new
        powers = scaled_powers(other.powers[:, there], factor)
        self.powers[:, here] = joined_powers(self.powers[:, here], weight, powers, new, delta)

    def _measure_in(self, unit: float) -> None:
        if unit > self.unit:
            factor = self.unit / unit
            self.offset = self.offset * factor
            self.scatter = self.scatter * factor**2
            self.powers = scaled_powers(self.powers, factor)
            self.unit = unit

    def scaled_means(self) -> tuple[Vector, Matrix]:
        """Return the mean of all rows about the origin, and the class means about it, in units.

        The means of classes without rows are zero.
        """
        center: Vector = self.weight / self.total @ self.offset
        return center, np.where(self.weight[:, None] > 0, self.offset - center, 0.0)

    def spread(self) -> Vector:
        """Return how far each column goes from the origin, and how far rows go from their means."""
        about = np.abs(self.offset[self.weight > 0]).max(axis=0, initial=0.0)
        deviation = np.sqrt(np.maximum(np.diagonal(self.scatter), 0.0) / self.total)
        return np.asarray(self.unit * np.maximum(about, deviation))

    def scaled_variance(self) -> float:
        """Return the mean squared distance of the rows from the mean of all, in units squared."""
        about = self.scaled_means()[1]
        spread = self.weight @ (about * about).sum(axis=1) + np.trace(self.scatter)
        return float(spread / self.total)

    def scaled_covariance(self, shrinkage: float | str | None = None) -> Matrix:
        """Return the within-class covariance in units squared.

        Parameters
        ----------
        shrinkage : float in [0, 1], "auto" or None, default=None
            How far it is moved towards its mean variance times the identity; see `intensity`.
        """
        covariance: Matrix = self.scatter / self.total
        moved = self.intensity(shrinkage)
        if moved > 0:
            variance = float(np.trace(covariance)) / self.n_features
            covariance *= 1.0 - moved
            covariance[np.diag_indices(self.n_features)] += moved * variance
        return covariance

    def intensity(self, shrinkage: float | str | None) -> float:
        """Return `shrinkage` as a number: 0 for None, that of Ledoit and Wolf for "auto".

        It is min(1, b²/d²) with d² the squared distance of the covariance S of the n rows minus
        their class means from its mean variance times the identity, and b² = Σ ‖x xᵀ − S‖² / n².
        Above 8 columns the fourth powers in b² are estimated, see `fourth_powers`.
        """
        if shrinkage is None:
            return 0.0
        if not isinstance(shrinkage, str):
            return float(shrinkage)
        S = self.scatter / self.total
        trace, square = float(np.trace(S)), float(np.sum(S * S))
        far = square - trace**2 / self.n_features
        if not far > 0:
            # A multiple of the identity: there is nothing to move.
            return 0.0
        power = mean_of_norms(self.powers, S, self.total)
        return min(1.0, max(0.0, power - square) / self.total / far)


def scatter_of(
    rows: Rows,
    code: Codes,
    weight: Vector,
    n_classes: int,
    visit_features: VisitFeatures | None = None,
) -> ClassScatter:
    """Return the scatter of all rows; the same bits for any number of threads.

    Parameters
    ----------
    rows : Rows
        The rows.
    code : ndarray of int of shape (n,)
        Their classes, as numbers from 0.
    weight : ndarray of shape (n,)
        Their weights, as multiplicities.
    n_classes : int
        Number of classes.
    visit_features : callable, default=None
        Turns a block of rows into features, float64 and dense; None takes the columns.

    Returns
    -------
    ClassScatter
        Accumulated block by block.
    """
    visit = DenseColumns(rows.shape[1]) if visit_features is None else visit_features
    scatter = ClassScatter.empty(n_classes, visit.width)
    counted = np.flatnonzero(weight > 0)
    if not len(counted):
        return scatter
    scatter.origin = visit(rows.block(counted[:1]))[0].copy()
    visit_block = _ScatterOf(visit, code[counted], weight[counted], scatter.origin)
    width = 3 * visit.width + scatter.powers.shape[2]
    parts = rows.scan(visit_block, counted, width=width, answer_bytes=scatter.scatter.nbytes)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in parts:
            scatter.merge(*part)
    return scatter


@dataclass(frozen=True)
class DenseColumns:
    """The columns themselves as features: blocks as float64, dense."""

    width: int

    def __call__(self, block: Any) -> Matrix:
        """Return the rows of a block."""
        dense = block.toarray() if sparse.issparse(block) else block
        return np.asarray(dense, dtype=np.float64)

    def there(self, device: Device) -> Callable[[Array], Array]:
        """Return what turns a block of rows on a device into features there."""
        return lambda block: device.xp.astype(block, device.xp.float64)


@dataclass(frozen=True)
class _ScatterOf:
    """Visitor: the scatter of a block of rows, and the classes that it is of."""

    features: VisitFeatures
    code: Codes
    weight: Vector
    origin: Vector

    def __call__(self, block: Any, where: slice) -> tuple[ClassScatter, Codes]:
        features = self.features(block)
        return _scatter_of_block(features, self.code[where], self.weight[where], self.origin)


def _scatter_of_block(
    block: Matrix, code: Codes, weight: Vector, origin: Vector
) -> tuple[ClassScatter, Codes]:
    """Return the scatter of rows of positive weight, for the classes among them, and these."""
    rows = block - origin
    unit = unit_above(rows)
    if unit:
        rows /= unit
    classes, place = np.unique(code, return_inverse=True)
    shape = (len(classes), len(code))
    sums = sparse.csr_array((weight, (place, np.arange(len(code)))), shape=shape)
    total = np.asarray(sums.sum(axis=1)).ravel()
    offset = (sums @ rows) / total[:, None]
    rows -= offset[place]
    powers = powers_of(rows, sums)
    rows *= np.sqrt(weight)[:, None]
    return ClassScatter(origin, unit, total, offset, rows.T @ rows, powers), classes


def per_unit(matrix: Matrix, unit: float) -> Matrix:
    """Return directions in units as directions in the rows' own, or raise if these are too small.

    Directions divide by the size of the rows, and there are smaller numbers than one can divide by.
    """
    with np.errstate(over="ignore"):
        directions: Matrix = matrix / (unit if unit > 0 else 1.0)
    if not np.isfinite(directions).all():
        raise ValueError(
            "X has values so close to each other that numbers as large as one over their "
            "differences do not exist; scale X (for example with StandardScaler)."
        )
    return directions


def unit_above(rows: Matrix) -> float:
    """Return the power of two above the largest number, or raise if there is none."""
    largest = float(np.abs(rows).max(initial=0.0))
    if not np.isfinite(largest) or largest > 1e300:
        raise ValueError(
            "X has values too far apart for sums of their squares; scale X (for example with "
            "StandardScaler)."
        )
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest > 0 else 0.0
