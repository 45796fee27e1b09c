"""The memory budget holds: what a fit allocates beside the data, in every engine and thread."""

import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import (
    BallVectorClassifier,
    CoreVectorClassifier,
    KernelFisherDA,
    LocalFisherDA,
    MarginClassifier,
    MarginClassifierCV,
    MarginOneClass,
    PairwiseAccuracyDA,
    SparseMarginClassifier,
    SparseMarginRegressor,
    SparseOneClass,
)

MEMORY = 12_000_000
# Numbers for a row that are not the budget's: its hash, its place, labels, weights, scores.
BYTES_OF_A_ROW = 200

FITS = {
    "exact": MarginClassifier(engine="exact", max_time=1.0),
    "span": MarginClassifier(engine="span"),
    "span of more vectors than fit": MarginClassifier(engine="span", max_vectors=2000),
    "cells": MarginClassifier(engine="cells", cells=300),
    "cells that are large": MarginClassifier(engine="cells", cells=1500),
    "core": CoreVectorClassifier(tol=0.1),
    "ball": BallVectorClassifier(tol=0.2, max_time=2.0),
    "search": MarginClassifierCV([0.1, 1.0], [0.1, 0.5], cv=3, engine="span"),
    "search in cells": MarginClassifierCV([0.1, 1.0], [0.1], cv=3, engine="cells"),
    "sparse": SparseMarginClassifier(20, max_time=2.0, max_iter=2),
    "sparse regression": SparseMarginRegressor(20, max_time=2.0, max_iter=2),
    "sparse quantiles": SparseMarginRegressor(20, loss="quantile", max_time=2.0, max_iter=2),
    "one class": MarginOneClass(engine="span", max_vectors=200),
    "sparse one class": SparseOneClass(20, max_time=2.0, max_iter=2),
    "fisher": KernelFisherDA(),
    "pairwise": PairwiseAccuracyDA(kernel="rbf"),
    "local fisher": LocalFisherDA(1),
}


def _rows(n):
    X = np.random.default_rng(0).normal(size=(n, 5))
    return X, (np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] > 0).astype(int)


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
@pytest.mark.parametrize("n_jobs", [1, 4])
@pytest.mark.parametrize("way", FITS)
def test_a_fit_keeps_to_its_memory_budget(way, n_jobs):
    X, y = _rows(6000)
    estimator = FITS[way].set_params(memory=MEMORY, n_jobs=n_jobs, random_state=0)
    estimator.fit(X[:200], y[:200])  # compiled loops are loaded
    tracemalloc.start()
    try:
        estimator.fit(X, y)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 1.2 * MEMORY + BYTES_OF_A_ROW * len(X)


def test_a_machine_says_that_memory_left_room_for_fewer_vectors():
    X, y = _rows(2000)
    limited = MarginClassifier(engine="span", max_vectors=1000, memory=MEMORY).fit(X, y)
    n_vectors = len(limited.support_vectors_)
    assert 300 < n_vectors < 500
    assert f"memory leaves room for {n_vectors} of 1,000 vectors" in limited.certificate_.stopped
    free = MarginClassifier(engine="span", max_vectors=300, memory="1GB").fit(X, y)
    assert "memory" not in free.certificate_.stopped


def test_memory_changes_how_and_not_what_is_computed():
    X, y = _rows(6000)
    y = y + 2 * (X[:, 3] > 0.5)
    for engine, least in (("auto", "12MB"), ("span", "400MB"), ("cells", "2MB")):
        machines = [
            MarginClassifier(engine=engine, memory=memory, tol=1e-4, random_state=0).fit(X, y)
            for memory in (least, "4GB", "auto")
        ]
        assert len({(each.engine_, each.multi_class_) for each in machines}) == 1
        answers = [each.predict(X) for each in machines]
        assert all((other == answers[0]).mean() > 0.99 for other in answers)
        # Rows at the very edge of a margin may or may not have a coefficient, and a span may be
        # that of other rows.
        counts = [each.certificate_.n_vectors for each in machines]
        assert max(counts) <= 1.02 * min(counts)
        objectives = [each.certificate_.primal for each in machines]
        assert max(objectives) <= 1.01 * min(objectives)


def test_a_span_that_grows_says_where_memory_ends_it():
    X, y = _rows(3000)
    tight = MarginClassifier(engine="span", memory="4MB").fit(X, y)
    assert "memory leaves room for" in tight.certificate_.stopped
    free = MarginClassifier(engine="span").fit(X, y)
    assert free.certificate_.n_vectors > tight.certificate_.n_vectors
    assert "memory" not in free.certificate_.stopped


@pytest.mark.filterwarnings(f"ignore::{ConvergenceWarning.__module__}.ConvergenceWarning")
@pytest.mark.parametrize("engine", ["auto", "exact", "span", "cells"])
@pytest.mark.parametrize("memory", [1, "10B", "2KB"])
def test_a_budget_that_is_hardly_one_still_gives_a_machine(engine, memory):
    X, y = _rows(200)
    machine = MarginClassifier(engine=engine, memory=memory).fit(X, y)
    assert np.isfinite(machine.decision_function(X)).all()
    assert machine.certificate_.dual <= machine.certificate_.primal * (1 + 1e-12)
