"""A search in cells on Dask collections without a cluster: the scores of the search in memory."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from widemargin import MarginClassifierCV
from widemargin.loop import PlaceLost
from widemargin.places import cell_buckets, scores_of_cells, sources
from widemargin.svm import collection_search

da = pytest.importorskip("dask.array")

SEARCH = {
    "Cs": [0.1, 1.0, 10.0],
    "gammas": ["scale", 2.0],
    "engine": "cells",
    "cells": 80,
    "random_state": 0,
    "memory": "200MB",
    "cv": 3,
    "n_jobs": 2,
}


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    """Let every partition be a shard."""
    monkeypatch.setattr(sources, "_LEAST_SHARD", 1)


def classes(n=1200, borders=(0.0,), seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n), borders)


def cut(*arrays, chunk=170):
    return [da.from_array(each, chunks=(chunk, *each.shape[1:])) for each in arrays]


def scores_of(search):
    return np.array([search.cv_results_[f"split{k}_test_score"] for k in range(search.n_splits_)])


def searched_twice(X, y, *weight, **parameters):
    here = MarginClassifierCV(**SEARCH | parameters).fit(X, y, *weight)
    there = MarginClassifierCV(**SEARCH | parameters).fit(*cut(X, y, *weight))
    assert there.best_params_ == here.best_params_
    assert there.best_estimator_.engine_ == here.best_estimator_.engine_ == "cells"
    assert_allclose(scores_of(there), scores_of(here), atol=1e-12)
    assert_allclose(there.decision_function(X), here.decision_function(X), atol=1e-6)
    return here, there


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"multi_class": "ovr", "class_weight": "balanced"},
        {"overlap": 0.0, "cv": 2},
        {"scoring": "balanced_accuracy"},
        {"kernels": ["rbf", "laplacian"]},
    ],
    ids=["pairs", "rest", "no overlap", "scoring", "kernels"],
)
def test_a_dask_array_gives_the_scores_of_the_array(parameters):
    X, y = classes(borders=(-0.4, 0.4))
    weight = np.random.default_rng(1).integers(0, 3, size=len(y)).astype(float)
    searched_twice(X, y, weight, **parameters)


def test_each_cell_gets_the_pair_that_it_gets_in_memory():
    here, there = searched_twice(*classes(), per_cell=True)
    one, two = here.best_estimator_, there.best_estimator_
    assert len(np.unique(one.cell_C_)) > 1
    for name in ("cell_centers_", "cell_C_", "cell_gamma_"):
        assert_allclose(getattr(two, name), getattr(one, name), rtol=1e-9)


def test_rows_of_several_folds_and_shards_and_folds_of_any_kind_count_as_in_memory():
    X, y = classes(500)
    X, y = np.concatenate([X, X[::-1], X[:200]]), np.concatenate([y, y[::-1], y[:200]])
    searched_twice(X, y, cells=X[:12])
    rng = np.random.default_rng(3)
    drawn = [(rng.integers(0, 900, 700), rng.integers(900, 1200, 200)) for _ in range(2)]
    searched_twice(X, y, cells=X[:12], cv=drawn)


def test_cells_of_many_buckets_and_passes_are_the_same(monkeypatch):
    monkeypatch.setattr(cell_buckets, "_CELLS_AT_A_TIME", 3)
    monkeypatch.setattr(cell_buckets, "_ROWS_SHARE", 1e-4)
    calls = []
    original = scores_of_cells.score_bucket

    def counted(*arguments):
        calls.append(arguments)
        return original(*arguments)

    monkeypatch.setattr(scores_of_cells, "score_bucket", counted)
    searched_twice(*classes())
    assert len(calls) > 4


@pytest.mark.parametrize("better", ["cells", "span"])
def test_a_sample_decides_between_cells_and_a_span_as_in_memory(better, monkeypatch):
    monkeypatch.setattr(collection_search, "_FEW_ROWS", 500)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_500, 2))
    y = (X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0).astype(int)
    if better == "cells":
        y = (np.floor(2 * X).sum(axis=1) % 2).astype(int)
    parameters = SEARCH | {"engine": "auto", "cells": "auto", "Cs": [1.0], "gammas": [1.0]}
    here = MarginClassifierCV(**parameters).fit(X, y)
    there = MarginClassifierCV(**parameters).fit(*cut(X, y, chunk=3000))
    assert here.best_estimator_.engine_ == there.best_estimator_.engine_ == better
    assert_allclose(scores_of(there), scores_of(here), atol=1e-3)


# Limits.


def test_the_time_limit_leaves_the_best_that_is_known():
    X, y = classes(3000)
    search = MarginClassifierCV(**SEARCH | {"max_time": 1e-3})
    with pytest.warns(ConvergenceWarning) as warned:
        search.fit(*cut(X, y))
    assert "cut short (max_time=0.001 reached): 0 of 6" in str(warned[0].message)
    assert len(search.predict(X)) == 3000


@pytest.mark.parametrize("error", [KeyboardInterrupt, PlaceLost])
def test_a_search_that_ends_early_fits_the_best_that_is_known(error, monkeypatch):
    monkeypatch.setattr(cell_buckets, "_CELLS_AT_A_TIME", 3)
    calls = []
    original = scores_of_cells.score_bucket

    def failing(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise error("the place is gone")
        return original(*arguments)

    monkeypatch.setattr(scores_of_cells, "score_bucket", failing)
    X, y = classes()
    reason = "interrupted" if error is KeyboardInterrupt else "the place is gone"
    with pytest.warns(ConvergenceWarning, match=rf"cut short \({reason}\): 0 of 6"):
        search = MarginClassifierCV(**SEARCH).fit(*cut(X, y))
    assert len(calls) == 3
    assert search.best_score_ > 0.5
    assert_array_equal(search.predict(X), search.best_estimator_.predict(X))


def test_cells_that_are_too_large_are_an_error():
    with pytest.raises(ValueError, match=r"A cell has .* rows, and the search keeps the kernel"):
        MarginClassifierCV(**SEARCH | {"cells": 6000, "Cs": [1.0]}).fit(*cut(*classes(6000)))
