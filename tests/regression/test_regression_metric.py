"""Metrics of regressors: given, learned, and chosen by the search."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import MarginRegressor, MarginRegressorCV

COMMON = {"C": 100.0, "n_jobs": 1, "random_state": 0}


def data(n=300, n_features=12, seed=0):
    """Rows of which three columns count, and most tell nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("engine", ["exact", "span", "cells"])
@pytest.mark.parametrize("kind", ["diagonal", "full"])
def test_a_learned_metric_sees_the_columns_that_count(engine, kind):
    X, y = data(500)
    plain = MarginRegressor(engine=engine, **COMMON).fit(X[:300], y[:300])
    found = MarginRegressor(engine=engine, metric=kind, **COMMON).fit(X[:300], y[:300])
    weights = found.metric_ if kind == "diagonal" else np.diag(found.metric_)
    assert set(np.argsort(weights)[-3:]) == {0, 1, 2}
    left = [1.0 - machine.score(X[300:], y[300:]) for machine in (found, plain)]
    assert left[0] < 0.5 * left[1]


@pytest.mark.parametrize("shape", ["matrix", "diagonal"])
def test_a_given_metric_is_a_map_of_the_rows(shape):
    X, y = data(100, 4)
    root = np.array([2.0, 1.0, 0.5, 0.0])
    metric = root**2 if shape == "diagonal" else np.diag(root**2)
    found = MarginRegressor(gamma=0.3, metric=metric, **COMMON).fit(X, y)
    wanted = MarginRegressor(gamma=0.3, **COMMON).fit(X * root, y)
    assert_allclose(found.predict(X), wanted.predict(X * root), atol=1e-6)


def test_a_metric_of_a_squared_loss_serves_another():
    X, y = data()
    metric = MarginRegressor(metric="diagonal", **COMMON).fit(X, y).metric_
    machine = MarginRegressor(loss="quantile", metric=metric).fit(X, y)
    assert_array_equal(machine.metric_, metric)
    with pytest.raises(ValueError, match="metric='full' is learned from machines with a squared"):
        MarginRegressor(loss="quantile", metric="full").fit(X, y)


@pytest.mark.parametrize("metric", ["fully", 3])
def test_other_metrics_are_refused_by_name(metric):
    with pytest.raises((TypeError, ValueError), match="metric="):
        MarginRegressor(metric=metric).fit(*data(30))


# The search.


def search(**parameters):
    return MarginRegressorCV(**{"Cs": 5, "cv": 3, "random_state": 0, "n_jobs": 1} | parameters)


@pytest.mark.parametrize("n", [200, 400], ids=["at once", "from a sample"])
def test_the_search_takes_a_metric_where_columns_tell_nothing(n):
    X, y = data(n + 200)
    found, plain = (search(metrics=m).fit(X[:n], y[:n]) for m in ("auto", None))
    assert found.best_params_["metric"] in ("diagonal", "full")
    assert "metric" not in plain.best_params_
    assert_array_equal(found.best_estimator_.metric_.shape[0], X.shape[1])
    left = [1.0 - each.score(X[n:], y[n:]) for each in (found, plain)]
    assert left[0] < 0.6 * left[1]
    # Folds have not seen what they are judged by.
    assert found.best_score_ < found.score(X[n:], y[n:]) + 0.1


def test_a_metric_of_random_targets_gains_nothing():
    X, _ = data(300)
    y = np.random.default_rng(1).normal(size=300)
    found = search().fit(X, y)
    assert found.best_score_ < 0.05


@pytest.mark.parametrize(
    ("given", "kinds"),
    [
        ({"metrics": ["diagonal"]}, {None, "diagonal"}),
        ({"metrics": [None, "full"], "kernels": None}, {None, "full"}),
        ({"metrics": "auto", "gammas": [0.1]}, None),
        ({"loss": "epsilon_insensitive", "epsilons": 1}, None),
    ],
)
def test_only_the_metrics_that_are_named_are_tried(given, kinds):
    X, y = data(120, 5)
    results = search(Cs=3, **{"gammas": 3} | given).fit(X, y).cv_results_
    if kinds is None:
        assert "param_metric" not in results
    else:
        assert set(results["param_metric"].data) == kinds


def test_a_search_of_metrics_ends_in_time_with_a_machine_of_use():
    X, y = data(1200)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = search(Cs=15, max_time=4.0).fit(X, y)
    assert any("cut short" in str(each.message) for each in said)
    assert found.score(X, y) > 0.3


def test_unknown_metrics_are_refused_by_name():
    with pytest.raises(ValueError, match="metrics='fully'"):
        search(metrics=["fully"]).fit(*data(40))
