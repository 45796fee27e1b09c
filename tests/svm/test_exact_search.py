"""The search by exact machines on one kernel matrix, against searches without short cuts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, StratifiedShuffleSplit

from widemargin import MarginClassifier, MarginClassifierCV
from widemargin.svm import exact_search, grid_search
from widemargin.svm.exact_search import matrices_that_fit

CS, GAMMAS = [0.1, 1.0, 30.0], [0.1, 1.0]


def _two(n=180):
    return make_moons(n, noise=0.3, random_state=0)


def _four(n=240):
    return make_blobs(n, 3, centers=4, cluster_std=2.5, random_state=0)


def _wide(n=1000):
    """So many rows of so few features that the kernel matrix is one of low rank."""
    return make_moons(n, noise=0.3, random_state=1)


DATA = {"two classes": _two, "four classes": _four}
every_data = pytest.mark.parametrize("data", DATA)


def _folds(n_splits=3):
    return StratifiedKFold(n_splits, shuffle=True, random_state=0)


def _search(Cs=CS, gammas=GAMMAS, **parameters):
    known = {"engine": "exact", "cv": _folds(), "random_state": 0, "n_jobs": 1}
    return MarginClassifierCV(Cs, gammas, **known | parameters)


def _grid(X, y, Cs=CS, gammas=GAMMAS, cv=None, scoring=None, **parameters):
    machine = MarginClassifier(**{"engine": "exact", "tol": 1e-8, "n_jobs": 1} | parameters)
    grid = {"C": Cs, "gamma": gammas}
    return GridSearchCV(machine, grid, cv=cv or _folds(), scoring=scoring).fit(X, y)


def _scores(search):
    results = search.cv_results_
    return np.column_stack([results[f"split{k}_test_score"] for k in range(search.n_splits_)])


class _Recorder:
    """A score that keeps the decision values it is asked to judge."""

    def __init__(self):
        self.seen = []

    def __call__(self, estimator, X, y):
        self.seen.append((np.array(y), estimator.decision_function(X)))
        return float(np.mean(estimator.predict(X) == y))


@pytest.fixture
def searched(monkeypatch):
    """How often the search was one by exact machines."""
    calls = []
    original = grid_search.scores_exact

    def noting(problems, *arguments):
        calls.extend(problems)
        return original(problems, *arguments)

    monkeypatch.setattr(grid_search, "scores_exact", noting)
    return calls


@every_data
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_scores_are_those_of_grid_search_up_to_a_row_or_two(data, multi_class, searched):
    X, y = DATA[data]()
    ours = _search(multi_class=multi_class, tol=1e-6).fit(X, y)
    assert len(searched) == len(GAMMAS)
    theirs = _grid(X, y, multi_class=multi_class)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    assert_allclose(_scores(ours), _scores(theirs), atol=2.01 * 3 / len(y))
    means = (each.cv_results_["mean_test_score"] for each in (ours, theirs))
    assert_allclose(*means, atol=2.01 / len(y))
    final = MarginClassifier(
        engine="exact", multi_class=multi_class, tol=1e-6, n_jobs=1, **ours.best_params_
    )
    assert_array_equal(ours.decision_function(X), final.fit(X, y).decision_function(X))


@every_data
def test_at_the_default_tolerance_the_means_are_near(data):
    X, y = DATA[data]()
    means = (each.cv_results_["mean_test_score"] for each in (_search().fit(X, y), _grid(X, y)))
    assert_allclose(*means, atol=0.02)


def test_on_a_matrix_of_low_rank_too(searched):
    X, y = _wide()
    ours = _search(gammas=[0.1]).fit(X, y)
    assert len(searched) == 1
    layout = exact_search._Layout(searched[0], _as_folds(y))
    assert exact_search._Matrix(searched[0].kernel, layout).of_low_rank() is not None
    theirs = _grid(X, y, gammas=[0.1])
    assert_allclose(_scores(ours), _scores(theirs), atol=3.01 * 3 / len(y))


def _as_folds(y):
    from widemargin.folds import Folds

    return Folds(list(_folds().split(y[:, None], y)), np.ones(len(y)))


@every_data
def test_values_of_rows_held_out_are_those_of_fits_to_the_other_rows(data):
    X, y = DATA[data]()
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(y))
    recorder = _Recorder()
    _search(gammas=[0.5], scoring=recorder, tol=1e-9, multi_class="ovr").fit(X, y, weight)
    # Fold after fold, and in each one C after the other.
    cases = [(train, test, C) for train, test in _folds().split(X, y) for C in CS]
    assert len(recorder.seen) == len(cases)
    for (labels, values), (train, test, C) in zip(recorder.seen, cases, strict=True):
        known = {"C": C, "gamma": 0.5, "engine": "exact", "multi_class": "ovr", "tol": 1e-9}
        machine = MarginClassifier(**known).fit(X[train], y[train], weight[train])
        assert_array_equal(labels, y[test])
        expected = machine.decision_function(X[test])
        # Kernel values are float32.
        assert_allclose(values, expected, atol=2e-3 * np.abs(expected).max())


@pytest.mark.parametrize(
    "cv",
    [KFold(3), StratifiedShuffleSplit(3, test_size=0.2, random_state=0), "repeated", "overlapping"],
    ids=["KFold", "rows in neither part", "repeated training rows", "rows in several test parts"],
)
def test_any_way_to_split_the_rows(cv):
    X, y = _two(120)
    if isinstance(cv, str):
        rng = np.random.default_rng(0)
        cv = [
            (rng.integers(120, size=150), rng.permutation(120)[:40])
            if cv == "repeated"
            else (np.arange(0, 90), np.arange(60, 120))
            for _ in range(3)
        ]
    ours = _search(cv=cv, tol=1e-8).fit(X, y)
    theirs = _grid(X, y, cv=cv)
    assert_allclose(_scores(ours), _scores(theirs), atol=2.01 / 24)


def test_a_fold_may_lack_a_class():
    X, y = _four(120)
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    # The first fold trains on no row of class 0, and the last on none of class 3.
    ours = _search(cv=KFold(4)).fit(X, y)
    assert np.isfinite(_scores(ours)).all()
    # Every test part is a class that is unknown.
    assert_array_equal(_scores(ours), 0.0)


@pytest.mark.parametrize("scoring", ["balanced_accuracy", "f1_macro", "roc_auc_ovr"])
def test_other_scores(scoring):
    X, y = _four()
    if scoring.startswith("roc"):
        X, y, scoring = *_two(), "roc_auc"
    ours = _search(scoring=scoring, tol=1e-8).fit(X, y)
    assert_allclose(_scores(ours), _scores(_grid(X, y, scoring=scoring)), atol=0.03)


@every_data
def test_the_scores_do_not_depend_on_threads(data):
    X, y = DATA[data](900)
    one = _search().fit(X, y)
    for n_jobs in (2, 3, 4):
        assert_array_equal(_scores(_search(n_jobs=n_jobs).fit(X, y)), _scores(one))


def test_equal_rows_in_different_folds_are_apart():
    X, y = _two(100)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    ours = _search(cv=KFold(4, shuffle=True, random_state=0)).fit(X, y)
    theirs = _grid(X, y, cv=KFold(4, shuffle=True, random_state=0))
    assert_allclose(_scores(ours), _scores(theirs), atol=2.01 * 4 / len(y))


def test_rows_of_no_weight_are_not_there():
    X, y = _two(150)
    weight = np.ones(150)
    weight[::5] = 0.0
    kept = weight > 0
    splits = list(_folds().split(X, y))
    place = np.cumsum(kept) - 1
    inner = [tuple(place[part[kept[part]]] for part in split) for split in splits]
    ours = _search(cv=splits, gammas=[0.5]).fit(X, y, weight)
    theirs = _search(cv=inner, gammas=[0.5]).fit(X[kept], y[kept])
    assert_array_equal(_scores(ours), _scores(theirs))


# When it is taken.


def test_it_is_taken_where_exact_machines_are_cheap_and_the_matrix_fits(searched):
    X, y = _four(200)
    _search(engine="auto").fit(X, y)
    assert len(searched) == 2
    assert searched[0].partial
    for parameters in (
        {"engine": "span"},
        {"engine": "auto", "max_vectors": 50},
        {"engine": "auto", "vectors": X[:50]},
        {"engine": "cells", "cells": 50},
    ):
        _search(**parameters).fit(X, y)
        assert len(searched) == 2
    problem = searched[0]
    assert matrices_that_fit(problem, 8 * problem.n**2) == 1
    assert matrices_that_fit(problem, 24 * problem.n**2) == 3
    assert matrices_that_fit(problem, 4 * problem.n**2) == 0


# Limits.


def test_time_that_ends_leaves_what_is_scored(monkeypatch):
    X, y = _four(200)
    path, calls = exact_search._Matrix.path, []

    def slow(self, task, Cs, gap):
        calls.append(task)
        if len(calls) == 14:
            raise KeyboardInterrupt
        return path(self, task, Cs, gap)

    monkeypatch.setattr(exact_search._Matrix, "path", slow)
    with pytest.warns(ConvergenceWarning, match="cut short") as warned:
        search = _search().fit(X, y)
    assert "interrupt" in str(warned[0].message)
    # Two folds of six pairs each are there, and the third is not.
    scores = search.cv_results_
    assert np.isfinite(scores["split0_test_score"][::2]).all()
    assert np.isfinite(scores["split1_test_score"][::2]).all()
    assert np.isnan(scores["split2_test_score"]).all()
    first = np.mean([scores["split0_test_score"], scores["split1_test_score"]], axis=0)
    assert search.best_score_ == np.nanmax(first)
    assert search.predict(X).shape == (200,)


def test_no_time_at_all():
    X, y = _four(200)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        search = _search(max_time=1e-6).fit(X, y)
    assert search.best_params_ == {"C": 0.1, "gamma": 0.1}
    assert np.isnan(search.best_score_)
    assert search.predict(X).shape == (200,)
