"""Searches of few rows that decide about scale, kernel, width, C and metric together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import StratifiedKFold

from widemargin import MarginClassifier, MarginClassifierCV
from widemargin.base.fold_metrics import FoldMetrics, _some_of_every_class
from widemargin.base.found import Found
from widemargin.metric.metric_rounds import MetricRounds
from widemargin.svm import metric_search
from widemargin.svm.grid import Grid


def noisy(n=900, d=10, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_a_metric_is_chosen_where_it_helps_and_the_final_machine_has_it():
    X, y = noisy()
    search = MarginClassifierCV(Cs=4, random_state=0).fit(X[:600], y[:600])
    plain = MarginClassifierCV(Cs=4, kernels=None, metrics=None, scale=None, random_state=0)
    plain.fit(X[:600], y[:600])
    assert search.best_params_["metric"] is not None
    assert search.best_estimator_.metric_ is not None
    assert search.score(X[600:], y[600:]) > plain.score(X[600:], y[600:]) + 0.03
    assert abs(search.best_score_ - search.score(X[600:], y[600:])) < 0.05


def test_columns_of_different_scales_are_learnt_as_standard_ones():
    X, y = noisy(700, 4)
    raw = X * 10.0 ** np.arange(4)
    search = MarginClassifierCV(Cs=4, random_state=0).fit(raw[:400], y[:400])
    assert search.best_params_["scale"] == "auto"
    assert search.score(raw[400:], y[400:]) > 0.9


def test_random_labels_gain_nothing_by_the_score_of_the_search(monkeypatch):
    # In all folds, also where a search would leave them.
    monkeypatch.setattr(metric_search, "_no_better", lambda parts, without: False)
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(5):
        X, y = rng.standard_normal((300, 8)), rng.integers(0, 2, 300)
        found = MarginClassifierCV(Cs=[1.0], gammas=1, kernels=["rbf"], random_state=0).fit(X, y)
        results = found.cv_results_
        learned = [each["metric"] is not None for each in results["params"]]
        scores = results["mean_test_score"]
        gains.append(np.nanmax(scores[learned]) - np.nanmax(scores[np.invert(learned)]))
    # A metric that had seen the labels of held-out rows would gain ten points here.
    assert np.mean(gains) < 0.04


def test_each_fold_learns_its_metric_from_its_own_rows(monkeypatch):
    X, y = noisy(200, 3)
    X[:, 2] = np.arange(200)  # Tells which rows they are.
    seen = []
    step = MetricRounds.step

    def noted(self, state):
        rows = self.problem.rows.take(np.arange(self.problem.n))[:, 2]
        seen.append(set(np.round(rows).astype(int).tolist()))
        return step(self, state)

    monkeypatch.setattr(MetricRounds, "step", noted)
    splits = list(StratifiedKFold(4).split(X, y))
    MarginClassifierCV([1.0], [0.1], metrics=[None, "full"], scale=None, cv=splits).fit(X, y)
    train = [set(np.asarray(fold[0]).tolist()) for fold in splits]
    assert all(rows in train or len(rows) == 200 for rows in seen)
    assert len({frozenset(rows) for rows in seen if len(rows) < 200}) == 4


def test_given_widths_are_for_rows_as_they_are_and_metrics_are_tried_if_asked_for():
    X, y = noisy(300)
    plain = MarginClassifierCV([1.0, 10.0], [0.05, 0.1]).fit(X, y)
    assert set(plain.best_params_) == {"C", "gamma"}
    asked = MarginClassifierCV([1.0, 10.0], [0.05, 0.1], metrics=["diagonal"]).fit(X, y)
    assert set(asked.best_params_) == {"C", "gamma", "metric"}
    assert set(asked.cv_results_["param_metric"]) == {None, "diagonal"}


def test_the_sample_leaves_two_kernels_and_all_rows_decide_between_them():
    X, y = noisy(800, 4)
    found = MarginClassifierCV(Cs=3, metrics=None, random_state=0).fit(X, y)
    results = found.cv_results_
    views = {(each["scale"], each["kernel"]) for each in results["params"]}
    assert len(views) == 2
    assert np.isfinite(results["mean_test_score"]).all()


def test_widths_beyond_the_grid_are_tried_as_long_as_they_are_better():
    # Stripes so thin that the narrowest width of the grid is too wide by far.
    X = np.random.default_rng(0).uniform(0.0, 1.0, (700, 1))
    y = (np.floor(40.0 * X[:, 0]) % 2).astype(int)
    found = MarginClassifierCV(Cs=3, kernels=["rbf"], metrics=None, random_state=0)
    found.fit(X[:500], y[:500])
    assert found.best_params_["gamma"] > 60.0 / X[:500].var()
    assert found.score(X[500:], y[500:]) > 0.9
    given = MarginClassifierCV(Cs=3, gammas=[16.0 / X.var()], random_state=0).fit(X[:500], y[:500])
    assert {each["gamma"] for each in given.cv_results_["params"]} == {16.0 / X.var()}


@pytest.mark.parametrize("engine", ["exact", "span", "cells"])
def test_every_engine_searches_for_a_metric(engine):
    X, y = noisy(500, 6)
    found = MarginClassifierCV(Cs=3, gammas=3, engine=engine, random_state=0).fit(X, y)
    assert found.best_estimator_.engine_ == engine
    tried = {each["metric"] for each in found.cv_results_["params"]}
    assert tried >= {None, "diagonal"}
    assert found.score(X, y) > 0.8


def test_sparse_rows_and_kernel_matrices_are_taken_as_they_are():
    X, y = noisy(120, 4)
    found = MarginClassifierCV(Cs=2, cv=2).fit(sparse.csr_array(X), y)
    assert "scale" not in found.best_params_
    assert "metric" not in found.best_params_
    kernel = MarginClassifierCV(Cs=2, cv=2, kernel="precomputed").fit(X @ X.T, y)
    assert set(kernel.best_params_) == {"C"}


def test_the_best_pair_gives_the_machine_that_was_fitted():
    X, y = noisy(300, 5)
    found = MarginClassifierCV(Cs=3, metrics=None, random_state=0).fit(X, y)
    same = MarginClassifier(**found.best_params_, engine=found.best_estimator_.engine_)
    same.fit(X, y)
    np.testing.assert_allclose(same.decision_function(X), found.decision_function(X), atol=1e-2)


def test_threads_do_not_change_the_choice():
    X, y = noisy(500, 6)
    found = [MarginClassifierCV(Cs=3, random_state=0, n_jobs=k).fit(X, y) for k in (1, 3)]
    assert found[0].best_params_ == found[1].best_params_
    assert np.array_equal(found[0].decision_function(X), found[1].decision_function(X))


@pytest.mark.parametrize("max_time", [1e-9, 0.3])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_time_that_is_too_short_gives_a_machine(max_time):
    X, y = noisy(900, 6)
    found = MarginClassifierCV(max_time=max_time, random_state=0).fit(X, y)
    assert found.predict(X).shape == y.shape


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"metrics": "full"}, "metrics='full'"),
        ({"metrics": ["half"]}, "half"),
        ({"scale": "robust"}, "scale='robust'"),
    ],
)
def test_what_is_not_known_is_refused(given, said):
    X, y = noisy(60)
    with pytest.raises(ValueError, match=said):
        MarginClassifierCV(**given).fit(X, y)


def test_rows_to_learn_a_metric_from_have_some_of_every_class():
    code = np.r_[np.zeros(50, dtype=int), np.ones(50, dtype=int), np.full(3, 2)]
    chosen = _some_of_every_class(code, 20)
    assert np.bincount(code[chosen]).tolist() == [20, 10, 3]
    assert np.array_equal(chosen, np.unique(chosen))


def test_a_search_without_scores_names_the_combination_that_is_known_to_be_good():
    grid = Grid.of([1.0, 10.0], [0.1, 0.2], None, "rbf")
    found = replace(Found.nothing(grid, 2), expected=3)
    index, score = found.best()
    assert index == 3
    assert np.isnan(score)
    found.scores[0, 1] = 0.5
    found.finished[0] = True
    assert found.best() == (2, 0.5)


def learned_folds(monkeypatch):
    """The folds for which metrics are learned."""
    seen = []
    learned = FoldMetrics._learned

    def noted(self, kind, rounds, fold):
        seen.append((kind, rounds, fold))
        return learned(self, kind, rounds, fold)

    monkeypatch.setattr(FoldMetrics, "_learned", noted)
    return seen


def test_a_metric_that_is_no_better_in_two_folds_is_left(monkeypatch):
    """Two columns, of the same use: all that a metric could do is to tell them apart."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 2))
    y = (np.linalg.norm(X, axis=1) + 0.5 * rng.normal(size=240) > 1.2).astype(int)
    left = []
    for seed in range(4):
        seen = learned_folds(monkeypatch)
        order = np.random.default_rng(seed).permutation(240)
        found = MarginClassifierCV(Cs=4, random_state=0).fit(X[order], y[order])
        results = found.cv_results_
        for kind in ("diagonal", "full"):
            folds = {fold for name, rounds, fold in seen if name == kind and rounds == 1}
            if folds <= {0, 1}:
                left.append(kind)
                own = [each["metric"] is not None for each in results["params"]]
                assert np.isnan(results["split2_test_score"][own]).any()
        monkeypatch.undo()
        assert np.isfinite(found.best_score_)
    assert left


def test_a_metric_that_helps_is_learned_in_all_folds(monkeypatch):
    seen = learned_folds(monkeypatch)
    X, y = noisy()
    found = MarginClassifierCV(Cs=4, random_state=0).fit(X, y)
    assert found.best_params_["metric"] is not None
    assert {fold for _, rounds, fold in seen if rounds == 1} >= {0, 1, 2, 3, 4}


@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_threads_do_not_change_what_is_chosen_in_metrics(scoring):
    X, y = noisy(500, 6)
    search = MarginClassifierCV(Cs=4, random_state=0, scoring=scoring)
    found = search.set_params(n_jobs=1).fit(X, y)
    again = MarginClassifierCV(Cs=4, random_state=0, scoring=scoring, n_jobs=3).fit(X, y)
    scores = [each.cv_results_["mean_test_score"] for each in (found, again)]
    np.testing.assert_array_equal(*scores)
    assert found.best_params_ == again.best_params_
