"""Searches of many rows, which climb from few of them to all."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss, make_scorer
from sklearn.model_selection import ShuffleSplit

from widemargin import MarginClassifierCV
from widemargin.svm.metric_search import MetricSearch
from widemargin.svm.row_halving import RowHalving, RungSizes
from widemargin.svm.stages import StageSizes

FEW = RungSizes(first=200, second=400, judging=150)


class Climbing(MarginClassifierCV):
    """A search that climbs where others do not yet."""

    def _sizes(self):
        return StageSizes(climbed=500, rungs=FEW)


def noisy(n=900, d=10, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def watched(monkeypatch):
    """The number of rows that each rung learns from, as the climb goes."""
    seen = []
    walk = MetricSearch.walk

    def noted(self, first, later=0):
        problem, _ = self.stated(self.grid.widths[0])
        counts = self.folds.counts[self.folds.kind[problem.number]]
        seen.append((int((counts[:, 0] > 0).sum()), len(self.grid.widths), self.folds.n))
        return walk(self, first, later)

    monkeypatch.setattr(MetricSearch, "walk", noted)
    return seen


def test_rungs_have_more_rows_and_fewer_widths_until_all_rows_decide(monkeypatch):
    seen = watched(monkeypatch)
    X, y = noisy(4000, 4)
    found = Climbing(Cs=4, metrics=None, random_state=0).fit(X[:3000], y[:3000])
    rows = [n for n, _, _ in seen]
    assert rows[0] == 200
    assert 400 in rows
    assert rows[-1] == 2400
    assert seen[0][1] == 30
    assert seen[-1][1] <= 3
    assert seen[-1][2] == 5
    assert np.isfinite(found.cv_results_["mean_test_score"]).all()
    assert abs(found.best_score_ - found.score(X[3000:], y[3000:])) < 0.03


def test_a_metric_that_helps_is_found_on_the_way(monkeypatch):
    X, y = noisy(3000, 8)
    found = Climbing(Cs=4, random_state=0).fit(X[:2000], y[:2000])
    assert found.best_params_["metric"] is not None
    assert found.best_estimator_.metric_ is not None
    assert found.score(X[2000:], y[2000:]) > 0.95


def test_what_more_rows_speak_for_wins_though_few_rows_speak_against_it():
    """Two columns tell all but need many rows; eight others tell a little to few rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (9000, 10))
    board = np.floor(9.0 * X[:, :2]).sum(axis=1) % 2
    y = board.astype(int)
    X[:, 2:] += 0.1 * y[:, None]
    X[:, :2] *= 30.0
    few = MarginClassifierCV(Cs=3, metrics=None, random_state=0).fit(X[:400], y[:400])
    many = Climbing(Cs=3, metrics=None, random_state=0).fit(X[:7000], y[:7000])
    assert few.best_params_["scale"] == "auto"
    assert many.best_params_["scale"] is None
    assert many.score(X[7000:], y[7000:]) > few.score(X[7000:], y[7000:]) + 0.1


@settings(max_examples=50, deadline=None)
@given(st.integers(10, 10**7), st.integers(1, 3000), st.integers(1, 3000))
def test_the_rows_of_rungs_grow_and_leave_some_to_all(n_learners, first, more):
    climb = RowHalving.__new__(RowHalving)
    climb.sizes = RungSizes(first=first, second=first + more)
    climb.learners = np.arange(n_learners)
    rungs = climb._rungs()
    assert rungs == sorted(rungs)
    assert len(rungs) >= 2
    assert rungs[-1] <= max(first + more, n_learners / 2)
    assert rungs[1] <= n_learners
    growth = [after / before for before, after in pairwise(rungs[1:])]
    assert all(1.89 <= each <= 4.0 for each in growth)


def test_rows_that_judge_are_none_that_are_learned_from(monkeypatch):
    pairs = []
    of_all = RowHalving._parted

    def noted(self):
        learners, judges = of_all(self)
        tests = np.concatenate([self.search.folds.test[k] for k in self.folds])
        held = self.problem.place[tests]
        pairs.append((set(learners.tolist()), set(judges.tolist()), set(held.tolist())))
        return learners, judges

    monkeypatch.setattr(RowHalving, "_parted", noted)
    X, y = noisy(1200, 3)
    X[600:900] = X[:300]  # Equal rows of different folds are apart.
    y[600:900] = y[:300]
    Climbing(Cs=2, gammas=2, cv=3, random_state=0).fit(X, y)
    ((learners, judges, held),) = pairs
    assert not learners & judges
    assert judges <= held
    assert not learners & held


def test_the_exact_machine_is_taken_at_the_end_where_rows_have_no_noise():
    """How far an arm of seven links reaches: smooth, and without noise."""
    turned = np.random.default_rng(0).uniform(-2.2, 2.2, (16_000, 7))
    angles = np.cumsum(turned, axis=1)
    reach = np.hypot(np.cos(angles).sum(axis=1), np.sin(angles).sum(axis=1))
    y = (reach > np.median(reach)).astype(int)
    search = MarginClassifierCV(Cs=4, gammas=3, kernels=["rbf"], metrics=None, random_state=0)
    found = search.fit(turned[:14_000], y[:14_000])
    assert found.best_estimator_.engine_ == "exact"
    assert found.score(turned[14_000:], y[14_000:]) > found.best_score_ - 0.01 > 0.94


def test_a_score_of_the_users_decides_on_all_rungs():
    X, y = noisy(1500, 4)
    y[X[:, 2] > 1.2] = 1  # Unbalanced.

    def loss(truth, values):
        return log_loss(truth, 1.0 / (1.0 + np.exp(-4.0 * np.ravel(values))))

    scorer = make_scorer(loss, greater_is_better=False, response_method="decision_function")
    found = Climbing(Cs=3, gammas=3, scoring=scorer, random_state=0).fit(X, y)
    assert -0.7 < found.best_score_ < 0.0


@pytest.mark.parametrize("engine", ["exact", "span", "cells"])
def test_every_engine_that_the_user_names_climbs(engine):
    X, y = noisy(1200, 3)
    found = Climbing(Cs=2, gammas=2, engine=engine, random_state=0).fit(X[:800], y[:800])
    assert found.best_estimator_.engine_ == engine
    assert found.score(X[800:], y[800:]) > 0.8


def test_rows_that_no_fold_trains_on_are_not_learned_from():
    X, y = noisy(1500, 4)
    splits = list(ShuffleSplit(2, train_size=600, test_size=200, random_state=0).split(X))
    found = Climbing(Cs=3, gammas=3, cv=splits, random_state=0).fit(X, y)
    assert found.n_splits_ == 2
    assert found.score(X, y) > 0.85


def test_a_class_of_three_rows_among_many_does_not_stop_the_climb():
    X, y = noisy(5200, 4)
    y[:3] = 7
    X[:3] += 20.0
    found = MarginClassifierCV(Cs=3, gammas=3, cv=3, random_state=0).fit(X, y)
    assert set(found.classes_) == {0, 1, 7}
    assert (found.predict(X[:3]) == 7).all()


@pytest.mark.parametrize("max_time", [0.05, 0.5])
def test_a_climb_that_is_cut_short_leaves_a_machine_with_the_parameters_it_names(max_time):
    X, y = noisy(12_000, 12)
    with pytest.warns(ConvergenceWarning, match="cut short|stopped"):
        found = MarginClassifierCV(max_time=max_time, random_state=0).fit(X, y)
    best = found.best_estimator_
    assert found.best_params_["C"] == best.C
    assert best.kernel == found.best_params_["kernel"]
    assert (best.metric is None) == (found.best_params_["metric"] is None)


def test_threads_do_not_change_what_a_climb_chooses():
    X, y = noisy(1500, 5)
    found = [Climbing(Cs=3, gammas=3, random_state=0, n_jobs=k).fit(X, y) for k in (1, 3)]
    assert found[0].best_params_ == found[1].best_params_
    assert np.array_equal(found[0].decision_function(X), found[1].decision_function(X))


def test_sparse_rows_climb_over_kernels_and_widths_and_given_widths_do_not(monkeypatch):
    seen = watched(monkeypatch)
    X, y = noisy(2000, 4)
    X[np.abs(X) < 0.5] = 0.0
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    rows = sparse.csr_array(X)
    found = Climbing(Cs=3, random_state=0).fit(rows[:1500], y[:1500])
    assert next(n for n, _, _ in seen) == 200
    assert "kernel" in found.best_params_
    assert found.score(rows[1500:], y[1500:]) > 0.8
    seen.clear()
    Climbing(Cs=3, gammas=[0.1, 1.0], random_state=0).fit(rows[:1500], y[:1500])
    assert seen == []
