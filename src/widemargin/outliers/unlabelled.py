"""What is decided without labels: the scale of columns, the width of a kernel, an offset.

All of it depends on the different rows and their weights only, in the order of their hashes: a row
of weight k is the same as k copies, and the first rows are a sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Matrix, Vector

# Rows from which columns are scaled.
_SCALE_ROWS = 100_000
# Rows whose distances from each other decide the width of a kernel.
_WIDTH_ROWS = 1000
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

    At half the median distance the kernel falls to 1/e.
    """
    sample, share = np.asarray(X[:_WIDTH_ROWS], dtype=np.float64), weight[:_WIDTH_ROWS]
    sample = sample - sample.mean(axis=0)
    norms = np.einsum("ij,ij->i", sample, sample)
    distances = norms[:, None] + norms - 2.0 * sample @ sample.T
    first, second = np.triu_indices(len(sample), 1)
    if not len(first):
        return 1.0
    median = weighted_quantile(distances[first, second], share[first] * share[second], 0.5)
    return 4.0 / median if median > 0.0 else 1.0


def offset_of_share(scores: Vector, weight: Vector, share: float) -> float:
    """Return the offset below which a share of the weight lies: half-way to the next score."""
    order = np.argsort(scores, kind="stable")
    passed = np.cumsum(weight[order])
    place = int(np.searchsorted(passed, share * passed[-1] * (1.0 - 1e-12)))
    place = min(place, len(order) - 1)
    following = min(place + 1, len(order) - 1)
    return 0.5 * float(scores[order[place]] + scores[order[following]])
