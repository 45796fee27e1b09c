"""What `MarginClassifierCV` reports, its machine, its time and memory, and bad input."""

import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score

from tests.reference.searches import (
    CS,
    DATA,
    FINELY,
    GAMMAS,
    every_data,
    exact,
    grid_search,
    iris,
    overlapping,
    scores_of,
    search_of,
    searched_by_grid,
    stratified,
)
from widemargin import MarginClassifier
from widemargin.problem import winners
from widemargin.span import SpanFit
from widemargin.svm import search as search_module
from widemargin.svm.scoring import Judge

# Results.


def test_the_results_have_the_keys_and_shapes_of_grid_search():
    ours, theirs = search_of().fit(*overlapping()), searched_by_grid("two classes")
    timing = {"mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time"}
    assert set(ours.cv_results_) == set(theirs.cv_results_) - timing | {"fit_time"}
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    for name, values in ours.cv_results_.items():
        if name != "fit_time":
            assert type(values) is type(theirs.cv_results_[name]), name
        assert len(values) == 6, name
    for name in ("param_C", "param_gamma"):
        assert_array_equal(list(ours.cv_results_[name]), list(theirs.cv_results_[name]))
    assert ours.cv_results_["rank_test_score"].dtype == np.int32
    times = ours.cv_results_["fit_time"].reshape(3, 2)
    assert (times > 0).all()
    assert (times == times[0]).all()


def test_means_ranks_and_the_best_follow_from_the_splits():
    search = search_of(gammas=[0.1, "scale", 5.0]).fit(*overlapping())
    results, scores = search.cv_results_, scores_of(search)
    assert_allclose(results["mean_test_score"], scores.mean(axis=1))
    assert_allclose(results["std_test_score"], scores.std(axis=1))
    ranks = rankdata(-results["mean_test_score"], method="min")
    assert_array_equal(results["rank_test_score"], ranks)
    assert results["rank_test_score"][search.best_index_] == 1
    assert search.best_score_ == results["mean_test_score"].max()
    assert search.best_params_ == results["params"][search.best_index_]
    assert search.best_index_ == results["mean_test_score"].argmax()


def test_of_equal_scores_the_smallest_C_wins_whatever_the_order():
    X, y = make_moons(60, noise=0.0, random_state=0)
    X[:, 1] += 5 * y
    search = search_of(Cs=[100.0, 1.0, 10.0], gammas=[1.0, 0.5]).fit(X, y)
    assert_array_equal(search.cv_results_["mean_test_score"], 1.0)
    assert_array_equal(search.cv_results_["rank_test_score"], 1)
    assert search.best_params_ == {"C": 1.0, "gamma": 1.0}


def test_a_tie_between_widths_goes_to_the_smaller_C():
    # Everything is the same for a constant score.
    search = search_of(scoring=lambda estimator, X, y: 0.5, gammas=[2.0, 0.5]).fit(*overlapping(60))
    assert search.best_params_ == {"C": 0.1, "gamma": 2.0}

    def score(estimator, X, y):
        calls.append(None)
        # The first width is best with C = 10, and the second, as good, with C = 0.1.
        return 0.75 if 6 < len(calls) <= 12 else 0.25

    calls = []
    search = search_of(scoring=score, gammas=[2.0, 0.5]).fit(*overlapping(60))
    assert search.best_params_ == {"C": 0.1, "gamma": 0.5}


def test_a_number_of_values_of_C_stands_for_a_logarithmic_range():
    search = search_of(Cs=6, gammas=[1.0]).fit(*overlapping(60))
    assert_allclose(search.cv_results_["param_C"], [0.01, 0.1, 1, 10, 100, 1000])
    assert_array_equal(
        search_of(Cs=np.int64(2)).fit(*overlapping(60)).cv_results_["param_C"][0], 0.01
    )


@pytest.mark.parametrize("as_given", [list, tuple, np.array], ids=["list", "tuple", "array"])
def test_values_of_C_may_come_in_any_order_and_container(as_given):
    X, y = overlapping(60)
    sorted_ = search_of(Cs=[0.1, 1, 10], gammas=[1.0]).fit(X, y)
    given = as_given([10, 0.1, 1])
    search = search_of(Cs=given, gammas=[1.0]).fit(X, y)
    assert search.cv_results_["params"] == sorted_.cv_results_["params"]
    assert_array_equal(scores_of(search), scores_of(sorted_))
    assert search.Cs is given


def test_widths_may_be_words_and_numbers_together():
    X, y = overlapping(90)
    words = ["scale", "auto", "mean_distance"]
    search = search_of(gammas=[*words, 0.7]).fit(X, y)
    found = [exact(gamma=word).fit(X, y).gamma_ for word in words]
    numbers = search_of(gammas=[*found, 0.7]).fit(X, y)
    assert_array_equal(scores_of(search), scores_of(numbers))
    assert list(search.cv_results_["param_gamma"]) == [*words, 0.7] * len(CS)
    assert search.best_estimator_.gamma == search.best_params_["gamma"]


# The machine.


@every_data
@pytest.mark.parametrize("engine", ["exact", "span"])
def test_the_final_machine_is_a_direct_fit_with_the_best_pair(data, engine):
    X, y = DATA[data]()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
    shared = {"engine": engine, "random_state": 0, "tol": 1e-4, "n_jobs": 1}
    shared["max_vectors"] = {"exact": 1000, "span": 40}[engine]
    search = search_of(**shared).fit(X, y, weight)
    direct = MarginClassifier(**search.best_params_, **shared).fit(X, y, weight)
    assert_array_equal(search.decision_function(X), direct.decision_function(X))
    assert_array_equal(search.predict(X), direct.predict(X))
    assert_array_equal(search.classes_, direct.classes_)
    best = search.best_estimator_
    assert best.get_params() == direct.get_params()
    assert (best.engine_, search.n_iter_) == (engine, direct.n_iter_)
    assert search.certificate_ is best.certificate_
    assert search.score(X, y) == np.mean(direct.predict(X) == y)
    assert_array_equal(search.decision_function(X), best.decision_function(X))
    shape = (len(y),) if len(search.classes_) == 2 else (len(y), 3)
    assert search.decision_function(X).shape == shape


def test_labels_may_be_words():
    X, y = iris()
    words = np.array(["schön", "красный", "桜"])[y]
    search = search_of(gammas=[0.5]).fit(X, words)
    assert_allclose(scores_of(search), scores_of(grid_search(X, words, gammas=[0.5])), atol=0.05)
    assert set(search.predict(X)) == set(words)
    objects = search_of(gammas=[0.5]).fit(X, words.astype(object))
    assert_array_equal(scores_of(search), scores_of(objects))


# Resources.


@every_data
def test_scores_do_not_depend_on_the_number_of_threads(data):
    X, y = DATA[data]()
    one, two = (search_of(n_jobs=n, max_vectors="auto").fit(X, y) for n in (1, 2))
    assert_array_equal(scores_of(one), scores_of(two))
    assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_little_memory_gives_the_same_scores_in_several_batches(monkeypatch):
    X, y = overlapping(400)
    Cs = np.logspace(-2, 2, 20)
    batches = []
    original = search_module.span_batches

    def counted(*arguments):
        batches.append(list(original(*arguments)))
        return iter(batches[-1])

    monkeypatch.setattr(search_module, "span_batches", counted)
    much = search_of(**FINELY, Cs=Cs, gammas=[50.0], max_vectors=60).fit(X, y)
    little = search_of(**FINELY, Cs=Cs, gammas=[50.0], max_vectors=60, memory="1500kB").fit(X, y)
    assert (len(batches[0]), len(batches[1]) > 1) == (1, True)
    assert [place for batch in batches[1] for place in batch] == list(range(20))
    assert_allclose(scores_of(much), scores_of(little), atol=1.01 * 3 / 400)
    assert_allclose(
        much.cv_results_["mean_test_score"], little.cv_results_["mean_test_score"], atol=0.01
    )


def test_a_time_limit_returns_a_model():
    X, y = overlapping(2000)
    begun = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        search = search_of(gammas=[0.5, 1.0, 2.0], max_time=1e-3, engine="span", tol=1e-12).fit(
            X, y
        )
    assert time.perf_counter() - begun < 20
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(X).shape == y.shape
    assert search.best_estimator_.max_time <= 1e-3


@pytest.mark.parametrize("after", [1, 4])
def test_an_interrupt_ends_the_search_and_is_told(after, monkeypatch):
    X, y = overlapping(400)
    steps, step = [], SpanFit.step

    def interrupted(self, state):
        steps.append(self.problem.n_problems)
        if len(steps) == after:
            raise KeyboardInterrupt
        return step(self, state)

    monkeypatch.setattr(SpanFit, "step", interrupted)
    said = r"search of MarginClassifierCV was cut short \(interrupted\): 0 of 6 pairs"
    with pytest.warns(ConvergenceWarning, match=said):
        search = search_of(engine="span", max_vectors=50).fit(X, y)
    # Neither the other width nor the rest of this one: only the machine of the best pair follows.
    assert steps[:after] == [3 * len(CS)] * after
    assert set(steps[after:]) == {1}
    assert search.best_params_["gamma"] == GAMMAS[0]
    assert search.certificate_.gap <= 1e-3


def test_the_time_is_shared_by_widths_batches_and_the_final_fit(monkeypatch):
    given = []

    def noted(problem, options):
        given.append(options.deadline.left())
        return original(problem, options)

    original = search_module.solve_in_span
    monkeypatch.setattr(search_module, "solve_in_span", noted)
    X, y = overlapping(400)
    search = search_of(Cs=40, max_vectors=50, memory="1MB", max_time=1000.0)
    search.fit(X, y)
    assert len(given) > 2 * len(GAMMAS)
    # Two widths and a final fit: a third of the time for the first, shared by its batches.
    assert given[0] <= 1000 / 3 / (len(given) / 2)
    assert 900 < search.best_estimator_.max_time <= 1000


def test_a_random_state_gives_the_same_bits_twice():
    X, y = overlapping(400)
    first, second = (search_of(vectors="random", max_vectors=20).fit(X, y) for _ in range(2))
    assert_array_equal(scores_of(first), scores_of(second))
    assert_array_equal(first.decision_function(X), second.decision_function(X))


# scikit-learn.


def test_a_search_survives_pickle_and_clone():
    X, y = overlapping(90)
    search = search_of(scoring="f1", Cs=[1, 10]).fit(X, y)
    again = pickle.loads(pickle.dumps(search))
    assert_array_equal(again.decision_function(X), search.decision_function(X))
    assert_array_equal(scores_of(again), scores_of(search))
    assert again.best_params_ == search.best_params_
    copy = clone(search)
    assert not hasattr(copy, "best_params_")
    assert_array_equal(scores_of(copy.fit(X, y)), scores_of(search))


# Bad input.


@pytest.mark.parametrize(
    ("parameters", "remedy"),
    [
        ({"Cs": 0}, "Cs=0.*at least 1"),
        ({"Cs": -2}, "Cs=-2.*at least 1"),
        ({"Cs": []}, "Cs is empty"),
        ({"Cs": [1, -1]}, "Cs=-1.*positive"),
        ({"Cs": [1, np.nan]}, "Cs=nan.*positive"),
        ({"Cs": "a"}, "Cs='a'.*list"),
        ({"Cs": ["a"]}, "Cs='a'.*number"),
        ({"Cs": 1.5}, r"Cs=1\.5.*list"),
        ({"Cs": True}, "Cs=True.*list"),
        ({"Cs": None}, "Cs=None.*list"),
        ({"Cs": np.array(2.0)}, r"Cs=array\(2.*list"),
        ({"gammas": "scale"}, "gammas='scale'.*list"),
        ({"gammas": 0.5}, r"gammas=0\.5.*list"),
        ({"gammas": []}, "gammas is empty"),
        ({"gammas": [0.5, "wide"]}, "gamma='wide'.*'scale'"),
        ({"gammas": [-1.0]}, r"gamma=-1\.0.*positive"),
        ({"cv": 1}, "cv=1.*at least 2"),
        ({"cv": True}, "cv=True.*whole number"),
        ({"cv": "five"}, "cv.*five"),
        ({"cv": []}, "cv gives no folds"),
        ({"cv": [(np.arange(60), [])]}, "Fold 0 of cv.*hold out"),
        ({"cv": [([], np.arange(60))]}, "Fold 0 of cv.*train on"),
        ({"scoring": "best"}, "scoring"),
        ({"scoring": ["f1", "accuracy"]}, "scoring=.*one score"),
        ({"scoring": 3}, "scoring=3"),
        ({"engine": "dual"}, "engine='dual'"),
        ({"kernel": "box"}, "kernel='box'"),
        ({"vectors": "centres"}, "vectors='centres'"),
        ({"max_vectors": 0}, "max_vectors=0"),
        ({"memory": "much"}, "memory='much'"),
        ({"max_time": 0}, "max_time=0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"tol": -1}, "tol=-1"),
    ],
    ids=str,
)
def test_a_bad_parameter_is_an_error_that_names_it(parameters, remedy):
    X, y = overlapping(60)
    with pytest.raises((ValueError, TypeError), match=remedy):
        search_of(**parameters).fit(X, y)


def test_a_score_that_needs_probabilities_is_an_error():
    with pytest.raises((ValueError, AttributeError), match="predict_proba"):
        search_of(scoring="neg_log_loss").fit(*overlapping(60))


def test_a_fold_without_a_row_of_positive_weight_is_an_error():
    X, y = overlapping(60)
    splits = list(stratified().split(X, y))
    weight = np.ones(60)
    weight[splits[1][1]] = 0.0
    with pytest.raises(ValueError, match=r"Fold 1 of cv.*sample_weight"):
        search_of(cv=splits).fit(X, y, weight)


def test_little_memory_gives_the_same_scores_also_where_matrices_are_ill_conditioned(monkeypatch):
    X, y = overlapping(400)
    Cs = np.logspace(-2, 2, 20)
    batches = []
    original = search_module.span_batches

    def counted(*arguments):
        batches.append(list(original(*arguments)))
        return iter(batches[-1])

    monkeypatch.setattr(search_module, "span_batches", counted)
    much = search_of(Cs=Cs, gammas=[1.0], max_vectors=100).fit(X, y)
    little = search_of(Cs=Cs, gammas=[1.0], max_vectors=100, memory="1500kB").fit(X, y)
    assert (len(batches[0]), len(batches[1]) > 1) == (1, True)
    assert [place for batch in batches[1] for place in batch] == list(range(20))
    assert_allclose(scores_of(much), scores_of(little), atol=0.02)
    assert_allclose(
        much.cv_results_["mean_test_score"], little.cv_results_["mean_test_score"], atol=0.01
    )


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 40), st.integers(1, 4), st.integers(0, 10**6))
def test_accuracies_of_several_machines_are_those_of_each(n, n_machines, seed):
    rng = np.random.default_rng(seed)
    values = np.round(rng.normal(size=(n, n_machines)), 1)
    classes, code = np.array(["no", "yes"]), rng.integers(2, size=60)
    judge = Judge(None, code, rng.uniform(0.1, 2.0, size=60), classes)
    rows = rng.choice(60, n, replace=False)
    found = judge.accuracies(rows, values)
    expected = [
        accuracy_score(classes[code[rows]], winners(classes, v), sample_weight=judge.weight[rows])
        for v in values.T
    ]
    assert_allclose(found, expected)
    assert_allclose([judge.score(rows, v[:, None]) for v in values.T], expected)
    assert np.isnan(judge.accuracies(rows[:0], values[:0])).all()
