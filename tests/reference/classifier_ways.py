"""Every classifier and every way that it finds its machine, for what they all promise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest
from sklearn.base import clone
from sklearn.svm import SVC

from tests.reference.data import digits
from widemargin import (
    BallVectorClassifier,
    CoreVectorClassifier,
    MarginClassifier,
    MarginClassifierCV,
    ReducedSetClassifier,
    ReducedSVMClassifier,
    SparseFisherClassifier,
    SparseMarginClassifier,
)
from widemargin.span import SpanSizes


def sized(**sizes):
    """Return a kind of `MarginClassifier` whose engines have other sizes than usual."""

    class Sized(MarginClassifier):
        def options(self, resources):
            return replace(super().options(resources), **sizes)

    return Sized


# Spans whose kernel values are float32, as they are on large data.
SinglePrecision = sized(span_sizes=SpanSizes(few_values=0))


BALLS = {"core": CoreVectorClassifier(), "ball": BallVectorClassifier()}
MARGINS = {
    "exact": MarginClassifier(engine="exact"),
    "span of all rows": MarginClassifier(engine="span", max_vectors=1000),
    "span": MarginClassifier(engine="span", max_vectors=30),
    "span random": MarginClassifier(engine="span", max_vectors=30, vectors="random"),
    "span kmeans": MarginClassifier(engine="span", max_vectors=30, vectors="kmeans"),
    "span leverage": MarginClassifier(engine="span", max_vectors=30, vectors="leverage"),
}
MAPPED = {
    "scaled": MarginClassifier(scale="auto"),
    "metric": MarginClassifier(metric="full"),
    "metric diagonal": MarginClassifier(metric="diagonal"),
}
CELLS = {
    "cells": MarginClassifier(engine="cells", cells=40),
    "cells in spans": MarginClassifier(engine="cells", cells=40, max_vectors=60),
}
SEARCHES = {
    "search": MarginClassifierCV([1.0], cv=2, max_vectors=1000),
    # Folds depend on the order of the rows, and with them the choice among equals.
    "search in cells": MarginClassifierCV(
        [1.0], cv=2, engine="cells", cells=40, scale=None, metrics=None
    ),
}
# The search for vectors is cut short, which changes nothing in what is promised.
SPARSE = {
    "hinge": SparseMarginClassifier(3, max_iter=4),
    "squared": SparseMarginClassifier(3, loss="squared_hinge", max_iter=4),
    "shared hinge": SparseMarginClassifier(3, share_vectors=True, max_iter=4),
    "shared squared": SparseMarginClassifier(
        3, loss="squared_hinge", share_vectors=True, max_iter=4
    ),
    "fisher": SparseFisherClassifier(3, coefficients="fisher", max_iter=4),
    "fisher svm": SparseFisherClassifier(3, max_iter=4),
}
REDUCED = {
    "reduced set": ReducedSetClassifier(SVC(), 3, n_restarts=2, max_iter=4),
    "reduced set again": ReducedSetClassifier(
        MarginClassifier(n_jobs=1), 3, method="mrs", n_restarts=2, max_iter=4
    ),
    "reduced svm": ReducedSVMClassifier(5),
    "reduced svm again": ReducedSVMClassifier(5, method="mrsvm"),
}
# Without blends of several machines, a decision value is one expansion.
SVMS = BALLS | MARGINS
WAYS = SVMS | MAPPED | CELLS | SEARCHES | SPARSE | REDUCED

# One of each kind, where others of a kind would take the same path.
KINDS = [
    "core", "ball", "exact", "span of all rows", "span", "cells", "search", "hinge",
    "shared squared", "fisher svm", "reduced set", "reduced svm", "metric",
]  # fmt: skip


def every(*ways):
    """Run a test with each of the ways, with all if none is given."""
    return pytest.mark.parametrize(
        "way", dict.fromkeys(w for group in ways or (WAYS,) for w in group)
    )


def renamed(way: str, name: str) -> str:
    """What a parameter of SVMs is called."""
    own = WAYS[way].get_params()
    if name in own:
        return name
    return {"C": "Cs", "gamma": "gammas"}.get(name) if way in SEARCHES else f"estimator__{name}"


def takes(way: str, name: str) -> bool:
    """Whether there is such a parameter, by whatever name."""
    return renamed(way, name) in WAYS[way].get_params()


def machine(way: str, **parameters):
    """A classifier that is not fitted; C and gamma also of searches and compressed machines."""
    found = clone(WAYS[way]).set_params(random_state=0, n_jobs=1)
    for name, value in parameters.items():
        own = renamed(way, name)
        found.set_params(**{own: [value] if way in SEARCHES and own != name else value})
    return found


@cache
def fitted(way: str, n_classes: int = 3, **parameters):
    """A classifier fitted to a few digits: not to be changed."""
    return machine(way, **parameters).fit(*digits(n_classes, 30 * n_classes))
