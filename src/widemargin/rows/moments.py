"""Weighted mean and variance of the rows, in one pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.rows.base import BlockRows


@dataclass(frozen=True)
class Moments:
    """Weighted first and second moments of the columns.

    Attributes
    ----------
    weight : float
        Sum of the weights.
    mean : ndarray of shape (n_features,)
        Weighted mean of each column.
    variance : ndarray of shape (n_features,)
        Weighted variance of each column (divided by the sum of weights).
    """

    weight: float
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]


@dataclass(frozen=True)
class _Sums:
    """Visitor: Σ w (x − origin) and Σ w (x − origin)² of a block."""

    weight: NDArray[np.float64]
    origin: NDArray[np.float64]

    def __call__(self, block: Any, where: slice) -> tuple[NDArray[Any], NDArray[Any]]:
        w = self.weight[where]
        if sparse.issparse(block):
            block = block.astype(np.float64)
            return w @ block, w @ block.multiply(block)
        centred = block.astype(np.float64) - self.origin
        return w @ centred, w @ (centred * centred)


def weighted_moments(rows: BlockRows, weight: NDArray[np.float64]) -> Moments:
    """Return the moments of the rows.

    Dense sums are taken about the first row, so that a large common offset costs no digits;
    sparse rows lie near the origin by nature.
    """
    d = rows.shape[1]
    first = rows.block(slice(0, 1))
    origin = np.zeros(d) if sparse.issparse(first) else np.asarray(first[0], dtype=np.float64)
    total = float(weight.sum())
    s1, s2 = np.zeros(d), np.zeros(d)
    with np.errstate(over="ignore", invalid="ignore"):
        for b1, b2 in rows.scan(_Sums(weight, origin)):
            s1 += np.asarray(b1).ravel()
            s2 += np.asarray(b2).ravel()
        offset = s1 / total
        variance = np.maximum(0.0, s2 / total - offset**2)
    return Moments(total, origin + offset, variance)
