"""Every projection and every way that it finds its directions, for what they all promise."""

from __future__ import annotations

from functools import cache

import pytest
from sklearn.base import clone

from tests.reference import max_margin_ways
from tests.reference.data import wine
from widemargin import (
    KernelFisherDA,
    LocalFisherDA,
    LocalityPreservingProjection,
    MarginMetric,
    MaxiMinDA,
    PairwiseAccuracyDA,
    SpanMap,
)

LPP = LocalityPreservingProjection
INF = float("inf")

MAX_MARGIN = {way: max_margin_ways.da(2, way) for way in max_margin_ways.WAYS}
MAXI_MIN = {
    "maxi-min": MaxiMinDA(),
    "maxi-min hard": MaxiMinDA(1, sharpness=INF, shrinkage="auto", n_init=2),
    "maxi-min soft": MaxiMinDA(1, sharpness=1.0, shrinkage=0.1, n_init=1),
    "maxi-min eigen": MaxiMinDA(1, rounding="eigen", shrinkage="auto"),
    "maxi-min online": MaxiMinDA(
        1, rounding="eigen", solver="online", n_updates=300, shrinkage=0.1
    ),
    "maxi-min kernel": MaxiMinDA(kernel="rbf", n_vectors=20),
}
FISHER = {
    "pairwise": PairwiseAccuracyDA(),
    "pairwise shrunk": PairwiseAccuracyDA(shrinkage="auto"),
    "pairwise kernel": PairwiseAccuracyDA(kernel="rbf", shrinkage="auto", n_vectors=20),
    "kernel fisher": KernelFisherDA(solver="kernel"),
    "span fisher": KernelFisherDA(solver="span", n_vectors=20),
}
LOCAL = {
    "local fisher": LocalFisherDA(2),
    "local fisher plain": LocalFisherDA(2, embedding="plain", shrinkage=None),
    "local fisher kernel": LocalFisherDA(2, kernel="rbf", gamma=0.02, n_vectors=40),
    "preserving": LPP(2),
    "preserving supervised": LPP(2, supervised=True, affinity="binary", variance=0.999),
    "preserving kernel": LPP(2, kernel="rbf", gamma=0.02, n_vectors=40),
}
METRICS = {
    "metric": MarginMetric(2),
    "metric diagonal": MarginMetric(kind="diagonal", kernel="laplacian", n_rounds=1),
    "metric as they are": MarginMetric(scale=None, kernel="exponential", validation_fraction=0.0),
    "metric span": MarginMetric(engine="span", n_rounds=1),
    "metric cells": MarginMetric(engine="cells", n_rounds=1),
    "metric linear": MarginMetric(1, kernel="linear", n_rounds=1),
}
MAPS = {
    f"map of {vectors}": SpanMap(20, vectors=vectors, gamma=0.05)
    for vectors in ("kmeans", "random", "leverage", "core")
}
WAYS = MAX_MARGIN | MAXI_MIN | FISHER | LOCAL | METRICS | MAPS
# One of each kind, where others of a kind would take the same path.
KINDS = [
    "deflation", "span", "core", "linear", "maxi-min", "maxi-min soft", "maxi-min kernel",
    "pairwise", "kernel fisher", "span fisher", "local fisher", "local fisher kernel",
    "preserving supervised", "map of core", "metric",
]  # fmt: skip
WITHOUT_LABELS = ["preserving", "preserving kernel", *(way for way in MAPS if way != "map of core")]
WITH_LABELS = [way for way in WAYS if way not in WITHOUT_LABELS]


def every(*ways):
    """Run a test with each of the ways, with all if none is given."""
    return pytest.mark.parametrize(
        "way", dict.fromkeys(w for group in ways or (WAYS,) for w in group)
    )


def projection(way: str, **parameters):
    """A projection that is not fitted."""
    found = clone(WAYS[way]).set_params(random_state=0, n_jobs=1)
    return found.set_params(**parameters)


@cache
def fitted(way: str, **parameters):
    """A projection fitted to half of wine: not to be changed."""
    return projection(way, **parameters).fit(*wine(2))
