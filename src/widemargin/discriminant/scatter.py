"""Counts, means and within-class scatter of the rows: all that Fisher's criterion and its kin need.

They are accumulated by blocks, each about its own means, and joined by the pairwise update of Chan,
Golub and LeVeque (1979), for third and fourth powers by that of Pébay (2008): no digits are lost to
an offset of the rows, blocks may come in any order, and memory does not grow with the rows.

The intensity of Ledoit and Wolf (2004), "A well-conditioned estimator for large-dimensional
covariance matrices", needs q = Σ ‖x − m‖⁴ about the final class means m, which to stream takes the
scatter of every single class. Here q is taken from a few fixed directions g instead. The
powers of gᵀx need a few numbers a class and direction, and are joined exactly; and

    Σ_g E(gᵀ(x − m))⁴ / Σ_g 3(gᵀΣg)²  ≈  E‖x − m‖⁴ / ((tr Σ)² + 2 tr Σ²).

Both sides are 1 for Gaussian rows and 1 + κ for elliptical ones, whatever the directions; over
directions of all the sphere they agree for rows of any kind. Up to 8 columns the directions are
those of an identity, Σ_g w_g (gᵀa)⁴ = ‖a‖⁴, and the intensity is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.parameters import check_number
from widemargin.rows import BlockRows

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Codes = NDArray[np.intp]

# Columns up to which the fourth powers are exact, and random directions beyond.
_EXACT_COLUMNS, _DIRECTIONS = 8, 128


class VisitFeatures(Protocol):
    """What turns a block of rows into features, float64 and dense."""

    @property
    def width(self) -> int:
        """How many features there are."""

    def __call__(self, block: Any) -> Matrix:
        """Return the features of the rows of a block."""


@dataclass(frozen=True)
class _Powers:
    """Σ s t², Σ s t³ and Σ s t⁴ of t = gᵀ(x − m), for each class and direction."""

    second: Matrix
    third: Matrix
    fourth: Matrix

    def at(self, classes: Codes) -> _Powers:
        return _Powers(self.second[classes], self.third[classes], self.fourth[classes])

    def times(self, factor: float) -> _Powers:
        return _Powers(self.second * factor**2, self.third * factor**3, self.fourth * factor**4)


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
    powers: _Powers

    @classmethod
    def empty(cls, n_classes: int, n_features: int) -> ClassScatter:
        """Return the scatter of no rows."""
        k = directions(n_features)[0].shape[1]
        nothing = (np.zeros((n_classes, k)) for _ in range(3))
        return cls(
            np.zeros(n_features),
            0.0,
            np.zeros(n_classes),
            np.zeros((n_classes, n_features)),
            np.zeros((n_features, n_features)),
            _Powers(*nothing),
        )

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
        mean: Matrix = self.origin + self.unit * self.offset
        return mean

    @property
    def within(self) -> Matrix:
        """Within-class scatter Σ s (x − m)(x − m)ᵀ in the rows' own units."""
        within: Matrix = self.scatter * self.unit * self.unit
        return within

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
        self._join(_part(block[kept], code[kept], weight[kept], self.origin))

    def merge(self, other: ClassScatter) -> None:
        """Take in the rows of another scatter, of the same classes and columns."""
        classes = np.flatnonzero(other.weight)
        if not len(classes):
            return
        if not self.weight.any():
            self.origin = other.origin.copy()
        between = other.origin - self.origin
        unit = max(other.unit, _unit(between))
        shrink = other.unit / unit if unit else 0.0
        self._join(
            _Part(
                classes,
                unit,
                other.weight[classes],
                other.offset[classes] * shrink + (between / unit if unit else 0.0),
                other.scatter * shrink**2,
                other.powers.at(classes).times(shrink),
            )
        )

    def _join(self, part: _Part) -> None:
        """Take in what was accumulated of other rows about the same origin."""
        unit = max(self.unit, part.unit)
        if unit > self.unit:
            # Exact, for units are powers of two.
            factor = self.unit / unit
            self.offset = self.offset * factor
            self.scatter = self.scatter * factor**2
            self.powers = self.powers.times(factor)
            self.unit = unit
        factor = part.unit / unit if unit else 0.0
        classes, here, there = part.classes, self.weight[part.classes], part.weight
        both = here + there
        share = there / both
        delta = part.offset * factor - self.offset[classes]
        pull = delta * np.sqrt(here * share)[:, None]
        self.scatter += part.scatter * factor**2
        self.scatter += pull.T @ pull
        self.offset[classes] += np.where(here > 0, share, 1.0)[:, None] * delta
        self.weight[classes] = both
        shift = delta @ directions(self.n_features)[0]
        joined = _joined(
            self.powers.at(classes), here[:, None], part.powers.times(factor), there[:, None], shift
        )
        self.powers.second[classes] = joined.second
        self.powers.third[classes] = joined.third
        self.powers.fourth[classes] = joined.fourth

    def scaled_means(self) -> tuple[Vector, Matrix]:
        """Return the mean of all rows about the origin, and the class means about it, in units.

        The means of classes without rows are zero.
        """
        center: Vector = self.weight / self.total @ self.offset
        return center, np.where(self.weight[:, None] > 0, self.offset - center, 0.0)

    def scaled_variance(self) -> float:
        """Return the mean squared distance of the rows from the mean of all, in units squared."""
        about = self.scaled_means()[1]
        spread = self.weight @ (about * about).sum(axis=1) + np.trace(self.scatter)
        return float(spread / self.total)

    def covariance(self, shrinkage: float | str | None = None) -> Matrix:
        """Return the within-class covariance in the rows' own units.

        Parameters
        ----------
        shrinkage : float in [0, 1], "auto" or None, default=None
            How far it is moved towards its mean variance times the identity; see `intensity`.
        """
        covariance: Matrix = self.scaled_covariance(shrinkage) * self.unit * self.unit
        return covariance

    def scaled_covariance(self, shrinkage: float | str | None = None) -> Matrix:
        """Return the within-class covariance in units squared."""
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
        Above 8 columns the fourth powers in b² are estimated (see the module).
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
        share = directions(self.n_features)[1]
        fourth = share @ self.powers.fourth.sum(axis=0) / self.total
        gaussian = 3.0 * share @ (self.powers.second.sum(axis=0) / self.total) ** 2
        # No fourth moment is below the square of the second.
        ratio = fourth / gaussian if gaussian > 0 else 1.0
        power = max(trace**2, float(ratio) * (trace**2 + 2.0 * square))
        return min(1.0, max(0.0, power - square) / self.total / far)


def check_shrinkage(shrinkage: Any) -> None:
    """Raise unless `shrinkage` is None, "auto" or a number in [0, 1]."""
    if shrinkage is None or (isinstance(shrinkage, str) and shrinkage == "auto"):
        return
    if isinstance(shrinkage, str) or not 0.0 <= check_number("shrinkage", shrinkage) <= 1.0:
        raise ValueError(
            f"shrinkage={shrinkage!r} must be 'auto' (Ledoit and Wolf), None, or a number from 0 "
            "(none) to 1 (a multiple of the identity)."
        )


def scatter_of(
    rows: BlockRows,
    code: Codes,
    weight: Vector,
    n_classes: int,
    visit_features: VisitFeatures | None = None,
) -> ClassScatter:
    """Return the scatter of all rows; the same bits for any number of threads.

    Parameters
    ----------
    rows : BlockRows
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
    visit_block = _PartOf(visit, code[counted], weight[counted], scatter.origin)
    with np.errstate(over="ignore", invalid="ignore"):
        for part in rows.scan(visit_block, counted, width=3 * visit.width + _DIRECTIONS):
            scatter._join(part)
    return scatter


@dataclass(frozen=True)
class DenseColumns:
    """The columns themselves as features: blocks as float64, dense."""

    width: int

    def __call__(self, block: Any) -> Matrix:
        """Return the rows of a block."""
        dense = block.toarray() if sparse.issparse(block) else block
        return np.asarray(dense, dtype=np.float64)


@lru_cache(maxsize=8)
def directions(n_features: int) -> tuple[Matrix, Vector]:
    """Return directions as columns and weights with Σ_g w_g (gᵀa)⁴ ∝ ‖a‖⁴, exactly or nearly.

    Exactly, from (a+b)⁴ + (a−b)⁴ = 2a⁴ + 12a²b² + 2b⁴: ‖a‖⁴ is a sixth of the sum of (a_i ± a_j)⁴
    over the pairs, and (4 − n)/3 times that of a_i⁴. Nearly: random, from a fixed seed.
    """
    if n_features > _EXACT_COLUMNS:
        rng = np.random.default_rng(2004)
        size = (n_features, min(n_features, _DIRECTIONS))
        # Directions at right angles miss less of the sphere than as many independent ones.
        n_bases = -(-_DIRECTIONS // n_features)
        bases = [np.linalg.qr(rng.standard_normal(size))[0] for _ in range(n_bases)]
        g = np.hstack(bases)
        return g, np.full(g.shape[1], 1.0 / g.shape[1])
    unit = np.eye(n_features)
    first, second = np.triu_indices(n_features, 1)
    g = np.hstack([unit, unit[:, first] + unit[:, second], unit[:, first] - unit[:, second]])
    share = np.full(g.shape[1], 1.0 / 6.0)
    share[:n_features] = (4.0 - n_features) / 3.0
    return g, share


@dataclass(frozen=True)
class _Part:
    """What is known of some rows, for the classes among them; as in `ClassScatter`."""

    classes: Codes
    unit: float
    weight: Vector
    offset: Matrix
    scatter: Matrix
    powers: _Powers


@dataclass(frozen=True)
class _PartOf:
    """Visitor: what a block of rows adds to the scatter."""

    features: VisitFeatures
    code: Codes
    weight: Vector
    origin: Vector

    def __call__(self, block: Any, where: slice) -> _Part:
        return _part(self.features(block), self.code[where], self.weight[where], self.origin)


def _part(block: Matrix, code: Codes, weight: Vector, origin: Vector) -> _Part:
    """Return the scatter of rows about their own class means."""
    rows = block - origin
    unit = _unit(rows)
    if unit:
        rows /= unit
    classes, place = np.unique(code, return_inverse=True)
    shape = (len(classes), len(code))
    sums = sparse.csr_array((weight, (place, np.arange(len(code)))), shape=shape)
    total = np.asarray(sums.sum(axis=1)).ravel()
    offset = (sums @ rows) / total[:, None]
    rows -= offset[place]
    t = rows @ directions(len(origin))[0]
    t2 = t * t
    powers = _Powers(sums @ t2, sums @ (t2 * t), sums @ (t2 * t2))
    rows *= np.sqrt(weight)[:, None]
    return _Part(classes, unit, total, offset, rows.T @ rows, powers)


def _joined(a: _Powers, n: Matrix, b: _Powers, m: Matrix, shift: Matrix) -> _Powers:
    """Return the powers of two sets of n and m rows, about the mean of both.

    `shift` is how far the mean of the second lies from that of the first (Pébay 2008, (2.1)).
    """
    p, q = n / (n + m), m / (n + m)
    s2 = shift * shift
    second = a.second + b.second + s2 * (n * q)
    third = a.third + b.third + s2 * shift * (n * q * (p - q))
    third += 3.0 * shift * (p * b.second - q * a.second)
    fourth = a.fourth + b.fourth + s2 * s2 * (n * q * (p * p - p * q + q * q))
    fourth += 6.0 * s2 * (p * p * b.second + q * q * a.second)
    fourth += 4.0 * shift * (p * b.third - q * a.third)
    return _Powers(second, third, fourth)


def _unit(rows: NDArray[np.float64]) -> float:
    """Return the power of two above the largest number, or raise if there is none."""
    largest = float(np.abs(rows).max(initial=0.0))
    if not np.isfinite(largest) or largest > 1e300:
        raise ValueError(
            "X has values too far apart for sums of their squares; scale X (for example with "
            "StandardScaler)."
        )
    return float(np.ldexp(1.0, int(np.frexp(largest)[1]))) if largest > 0 else 0.0
