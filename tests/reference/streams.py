"""Rows with classes and copies, as a stream gets them."""

import numpy as np

from widemargin.rows import as_rows as any_rows
from widemargin.scatter.class_scatter import DenseColumns, LabelledRows
from widemargin.scatter.stream import Stream


def as_rows(X):
    return any_rows(X, memory=10**6, threads=1)


def labelled(X, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return LabelledRows(as_rows(X), np.asarray(y), weight, np.arange(len(y)))


def stream_of(X, y, weight, capacity, cuts=()):
    stream = Stream.empty(int(max(y)) + 1, X.shape[1], capacity)
    for part in np.split(np.arange(len(y)), cuts):
        stream.add(labelled(X[part], y[part], weight[part]), DenseColumns(X.shape[1]))
    return stream


def data_with_copies(n=120, c=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    X = 2 * rng.normal(size=(c, d))[y] + rng.normal(size=(n, d))
    # Copies, some of them with another label.
    X[: n // 4] = X[n // 2 : n // 2 + n // 4]
    y[: n // 8] = y[n // 2 : n // 2 + n // 8]
    return X, y, rng.uniform(0.5, 2.0, n)
