"""Other ways to write the rows of three sets, to find out how the Maxi-Min paper had them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Rows = tuple[np.ndarray, np.ndarray]
BALANCED = 49  # rows of balance in which neither side is heavier


@dataclass(frozen=True)
class Encoding:
    """The set that rows come from, and what is done to them."""

    origin: str
    change: Callable[[np.ndarray, np.ndarray], Rows]


def as_it_is(X: np.ndarray, y: np.ndarray) -> Rows:
    return X, y


def logarithms(X: np.ndarray, y: np.ndarray) -> Rows:
    return np.log(X), y


def square_roots(X: np.ndarray, y: np.ndarray) -> Rows:
    return np.sqrt(X), y


def products(X: np.ndarray, y: np.ndarray) -> Rows:
    """Weight times distance on either side, beside the four columns."""
    return np.c_[X, X[:, 0] * X[:, 1], X[:, 2] * X[:, 3]], y


def column_each(X: np.ndarray, y: np.ndarray) -> Rows:
    """A column of zeros and ones for each value of each column."""
    parts = [(column[:, None] == np.unique(column)).astype(np.float64) for column in X.T]
    return np.hstack(parts), y


def two_classes(X: np.ndarray, y: np.ndarray) -> Rows:
    """Without the small class of those that balance."""
    labels, counts = np.unique(y, return_counts=True)
    kept = ~np.isin(y, labels[counts <= BALANCED])
    return X[kept], y[kept]


SEEN = ", rows seen"
EACH = ", a column for each value"
ENCODINGS = {
    **{name + SEEN: Encoding(name, as_it_is) for name in ("tae", "wine", "balance")},
    "tae" + EACH: Encoding("tae", column_each),
    "balance" + EACH: Encoding("balance", column_each),
    "balance, two classes": Encoding("balance", two_classes),
    "balance, with products": Encoding("balance", products),
    "balance, logarithms": Encoding("balance", logarithms),
    "wine, square roots": Encoding("wine", square_roots),
    "wine, logarithms": Encoding("wine", logarithms),
}
