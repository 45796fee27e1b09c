"""What is decided without labels: the scale of columns, the width of a kernel, an offset.

All of it depends on the different rows and their weights only, in the order of their hashes: a row
of weight k is the same as k copies, and the first rows are a sample.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Matrix, Vector

# Rows from which columns are scaled.
_SCALE_ROWS = 100_000
# Rows whose distances from each other decide the width of a kernel.
_WIDTH_ROWS = 1000
# Rows whose distances from the others are held at a time, and bins of their histogram.
_PAIR_ROWS = 64
_BINS = 4096
# The distance between the quartiles of a normal distribution of variance 1.
_QUARTILES = 1.349
# Robust columns end here: one wild value is to be an outlier, and not the only one.
_MOST = 10.0


@dataclass(frozen=True)
class ColumnScale:
    """Columns about a centre, in units of a spread.

    Attributes
    ----------
    center, spread : ndarray of shape (n_features,)
        What is taken from each column, and what it is divided by.
    most : float
        Where values end, infinite for nowhere.
    """

    center: Vector
    spread: Vector
    most: float

    @classmethod
    def of(cls, kind: str, X: NDArray[Any], weight: Vector) -> ColumnScale:
        """Return the scale of columns: "standard" or "robust".

        The robust one has medians and quartiles; where these are equal, the standard deviation.
        """
        sample = np.asarray(X[:_SCALE_ROWS], dtype=np.float64)
        share = weight[:_SCALE_ROWS] / weight[:_SCALE_ROWS].sum()
        mean = share @ sample
        deviation = np.sqrt(np.maximum(share @ (sample - mean) ** 2, 0.0))
        # What rounding leaves of a constant column is no spread.
        tiny = 1e-12 * np.abs(sample).max(axis=0)
        deviation = np.where(deviation > tiny, deviation, 1.0)
        if kind == "standard":
            return cls(mean, deviation, np.inf)
        low, middle, high = (
            np.array([weighted_quantile(each, share, q) for each in sample.T])
            for q in (0.25, 0.5, 0.75)
        )
        spread = (high - low) / _QUARTILES
        return cls(middle, np.where(spread > tiny, spread, deviation), _MOST)

    def __call__(self, X: NDArray[Any]) -> Matrix:
        """Return the scaled rows."""
        scaled: Matrix = (X - self.center) / self.spread
        return np.clip(scaled, -self.most, self.most, out=scaled)


def weighted_quantile(values: Vector, weight: Vector, share: float) -> float:
    """Return the least value that has at least a share of the weight at or below it."""
    order = np.argsort(values, kind="stable")
    passed = np.cumsum(weight[order])
    place = int(np.searchsorted(passed, share * passed[-1] * (1.0 - 1e-12)))
    return float(values[order[min(place, len(order) - 1)]])


def median_distance_gamma(X: Matrix, weight: Vector) -> float:
    """Return 4 / m with m the median squared distance of different rows from each other.

    At half the median distance the kernel falls to 1/e. Pairs are looked at block by block, three
    times: for the largest distance, for the bin of a histogram that the median is in, and for the
    median in this bin.
    """
    sample, share = np.asarray(X[:_WIDTH_ROWS], dtype=np.float64), weight[:_WIDTH_ROWS]
    if len(sample) < 2:
        return 1.0
    sample = sample - sample.mean(axis=0)
    largest = max(float(distances.max(initial=0.0)) for distances, _ in _pairs(sample, share))
    if not largest > 0.0:
        return 1.0

    def bins(distances: Vector) -> NDArray[np.intp]:
        return np.minimum(distances * (_BINS / largest), _BINS - 1).astype(np.intp)

    passed = np.zeros(_BINS)
    for distances, pair_weight in _pairs(sample, share):
        passed += np.bincount(bins(distances), pair_weight, minlength=_BINS)
    passed = np.cumsum(passed)
    half = 0.5 * passed[-1] * (1.0 - 1e-12)
    place = int(np.searchsorted(passed, half))
    inside = [(d[at], w[at]) for d, w in _pairs(sample, share) for at in [bins(d) == place]]
    values, weights = (np.concatenate(parts) for parts in zip(*inside, strict=True))
    missing = half - (passed[place - 1] if place else 0.0)
    median = weighted_quantile(values, weights, missing / float(weights.sum()))
    return 4.0 / median if median > 0.0 else 1.0


def _pairs(X: Matrix, weight: Vector) -> Iterator[tuple[Vector, Vector]]:
    """Yield squared distances of all pairs of rows, and products of their weights."""
    norms = np.einsum("ij,ij->i", X, X)
    for first in range(0, len(X), _PAIR_ROWS):
        some = slice(first, first + _PAIR_ROWS)
        distances = norms[some, None] + norms[first:] - 2.0 * X[some] @ X[first:].T
        row, column = np.triu_indices(len(distances), 1, m=distances.shape[1])
        yield distances[row, column], weight[first + row] * weight[first + column]


def offset_of_share(scores: Vector, weight: Vector, share: float, rounding: float) -> float:
    """Return the offset below which a share of the weight lies: half-way to the next score.

    Where the next score is the same but for `rounding`, a share of it, no offset tells them apart:
    it lies as much below them, and both are above.
    """
    order = np.argsort(scores, kind="stable")
    passed = np.cumsum(weight[order])
    place = int(np.searchsorted(passed, share * passed[-1] * (1.0 - 1e-12)))
    place = min(place, len(order) - 1)
    last, following = (float(scores[order[at]]) for at in (place, min(place + 1, len(order) - 1)))
    if following - last <= 2.0 * rounding * abs(last):
        return last - rounding * abs(last)
    return 0.5 * (last + following)
