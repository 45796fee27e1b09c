"""Scores of `MarginClassifierCV` against `GridSearchCV` and against direct fits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import KFold, RepeatedKFold, StratifiedKFold, StratifiedShuffleSplit

from tests.reference.searches import (
    CS,
    DATA,
    FINELY,
    every_data,
    exact,
    grid_search,
    overlapping,
    scores_of,
    search_of,
    searched_by_grid,
    stratified,
)


class _Recorder:
    """A score that keeps the decision values it is asked to judge."""

    def __init__(self):
        self.seen = []

    def __call__(self, estimator, X, y):
        self.seen.append((np.array(y), estimator.decision_function(X), estimator.predict(X)))
        return np.mean(estimator.predict(X) == y)


def _assert_same_machines(recorder, X, y, Cs, gamma, splits, weight=None, atol=2e-3, **parameters):
    """The search is done C by C and fold by fold, for one gamma."""
    cases = [(C, train, test) for C in Cs for train, test in splits]
    assert len(recorder.seen) == len(cases)
    weight = np.ones(len(y)) if weight is None else weight
    for (labels, decision, predicted), (C, train, test) in zip(recorder.seen, cases, strict=True):
        machine = exact(C=C, gamma=gamma, **parameters)
        machine.fit(X[train], y[train], weight[train])
        test = test[weight[test] > 0]
        assert_array_equal(labels, y[test])
        expected = machine.decision_function(X[test])
        assert_allclose(decision, expected, atol=atol * np.abs(expected).max())
        assert (predicted != machine.predict(X[test])).sum() <= 1


# The same answer as a search without short cuts.


@every_data
def test_at_the_optimum_every_score_is_that_of_grid_search_up_to_a_row(data):
    X, y = DATA[data]()
    ours, theirs = search_of(**FINELY).fit(X, y), searched_by_grid(data)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    assert_allclose(scores_of(ours), scores_of(theirs), atol=1.01 * 3 / len(y))
    means = [search.cv_results_["mean_test_score"] for search in (ours, theirs)]
    assert_allclose(*means, atol=1.01 / len(y))
    assert_allclose(ours.best_score_, theirs.best_score_, atol=1.01 / len(y))


@every_data
def test_every_mean_score_is_that_of_grid_search_at_the_default_tolerance(data):
    X, y = DATA[data]()
    ours, theirs = search_of().fit(X, y), searched_by_grid(data)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    row = 3 / len(y)
    assert_allclose(scores_of(ours), scores_of(theirs), atol=2.01 * row)
    assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=0.01
    )
    assert_allclose(ours.best_score_, theirs.best_score_, atol=0.01)


@every_data
def test_held_out_rows_get_the_decision_values_of_a_fit_to_the_other_rows(data):
    X, y = DATA[data]()
    recorder = _Recorder()
    search = search_of(**FINELY, gammas=[0.5], scoring=recorder).fit(X, y)
    _assert_same_machines(recorder, X, y, CS, 0.5, list(stratified().split(X, y)))
    right = [np.mean(predicted == labels) for labels, _, predicted in recorder.seen]
    assert_array_equal(scores_of(search).ravel(), right)


def test_the_search_goes_on_for_as_many_steps_as_it_needs():
    X, y = overlapping(150)
    recorder = _Recorder()
    search_of(**FINELY, Cs=[300.0], gammas=[2.0], scoring=recorder).fit(X, y)
    # The larger C is, the more count the digits that single precision takes from a span.
    splits = list(stratified().split(X, y))
    _assert_same_machines(recorder, X, y, [300.0], 2.0, splits, atol=1e-2)


@pytest.mark.parametrize(
    "scoring",
    ["accuracy", "balanced_accuracy", "f1", "roc_auc", make_scorer(balanced_accuracy_score)],
    ids=str,
)
def test_other_scores_are_those_of_grid_search_too(scoring):
    X, y = overlapping()
    ours = search_of(**FINELY, Cs=[0.1, 1.0], gammas=[0.5], scoring=scoring).fit(X, y)
    theirs = grid_search(X, y, Cs=[0.1, 1.0], gammas=[0.5], scoring=scoring)
    assert_allclose(scores_of(ours), scores_of(theirs), atol=0.03)
    assert ours.scoring is scoring


def _pairs(X, y):
    """Overlapping parts, one of them a mask, and rows in neither part."""
    n = len(y)
    return [
        (np.arange(0, n, 2), np.arange(1, n, 4)),
        (np.arange(n) % 3 > 0, np.arange(n) % 3 == 0),
        (np.arange(n // 4, n), np.arange(n // 8)),
    ]


def _bootstrap(X, y):
    rng = np.random.default_rng(0)
    drawn = [rng.integers(len(y), size=len(y)) for _ in range(2)]
    return [(train, np.setdiff1d(np.arange(len(y)), train)) for train in drawn]


SPLITTERS = {
    "KFold": lambda X, y: KFold(4, shuffle=True, random_state=1),
    "rows in neither part": lambda X, y: StratifiedShuffleSplit(
        3, test_size=0.2, train_size=0.5, random_state=0
    ),
    "rows in several test parts": lambda X, y: RepeatedKFold(
        n_splits=2, n_repeats=2, random_state=0
    ),
    "pairs": _pairs,
    "a generator of pairs": lambda X, y: (pair for pair in _pairs(X, y)),
    "repeated training rows": _bootstrap,
}


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_any_way_to_split_the_rows_gives_the_machines_of_direct_fits(splitter):
    X, y = overlapping()
    recorder = _Recorder()
    cv = SPLITTERS[splitter](X, y)
    search = search_of(**FINELY, Cs=[0.1, 10.0], gammas=[1.0], cv=cv, scoring=recorder).fit(X, y)
    cv = SPLITTERS[splitter](X, y)
    splits = cv.split(X, y) if hasattr(cv, "split") else cv
    numbers = np.arange(len(y))
    splits = [(numbers[train], numbers[test]) for train, test in splits]
    _assert_same_machines(recorder, X, y, [0.1, 10.0], 1.0, splits)
    assert search.n_splits_ == len(splits)


def test_cv_as_a_number_is_that_many_stratified_folds_of_shuffled_rows():
    X, y = overlapping()
    plain = search_of(cv=4).fit(X, y)
    folds = StratifiedKFold(4, shuffle=True, random_state=0)
    assert_array_equal(scores_of(plain), scores_of(search_of(cv=folds).fit(X, y)))
    assert plain.n_splits_ == 4


def test_a_sorted_file_is_judged_as_one_in_random_order():
    X, y = overlapping(600)
    order = np.argsort(X[:, 0])
    sorted_rows = search_of().fit(X[order], y[order])
    assert abs(sorted_rows.best_score_ - search_of().fit(X, y).best_score_) < 0.03
    in_order = search_of(cv=StratifiedKFold(5)).fit(X[order], y[order])
    assert in_order.best_score_ < sorted_rows.best_score_ - 0.03


# Weights and repeated rows.


def test_weights_enter_the_loss_and_the_accuracy():
    X, y = overlapping()
    weight = np.random.default_rng(0).uniform(0.1, 5.0, size=len(y))
    weight[::7] = 0.0
    recorder, splits = _Recorder(), list(stratified().split(X, y))
    search = search_of(**FINELY, gammas=[0.5]).fit(X, y, weight)
    recorded = search_of(**FINELY, gammas=[0.5], scoring=recorder).fit(X, y, weight)
    _assert_same_machines(recorder, X, y, CS, 0.5, splits, weight)
    tests = [test[weight[test] > 0] for _ in CS for _, test in splits]
    right = [
        np.average(predicted == labels, weights=weight[test])
        for (labels, _, predicted), test in zip(recorder.seen, tests, strict=True)
    ]
    assert_allclose(scores_of(search).ravel(), right)
    assert not np.allclose(scores_of(search), scores_of(recorded))


def test_whole_weights_are_the_same_as_copies_in_the_same_fold():
    X, y = overlapping(90)
    count = np.random.default_rng(0).integers(0, 3, size=90)
    copies = np.repeat(np.arange(90), count)
    splits = list(stratified().split(X, y))
    of_copies = [tuple(np.flatnonzero(np.isin(copies, part)) for part in pair) for pair in splits]
    weighted = search_of(cv=splits).fit(X, y, count)
    repeated = search_of(cv=of_copies).fit(X[copies], y[copies])
    assert_allclose(scores_of(weighted), scores_of(repeated), atol=1e-12)
    assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))


def test_rows_of_weight_zero_are_as_good_as_absent_with_any_label():
    X, y = overlapping(90)
    splits = list(stratified().split(X, y))
    extra = np.vstack([X, 50 + X[:10]]), np.append(y, np.repeat(7, 10))
    weight = np.append(np.ones(90), np.zeros(10))
    wider = [
        (np.append(train, np.arange(90, 95)), np.append(test, np.arange(95, 100)))
        for train, test in splits
    ]
    plain, more = search_of(cv=splits).fit(X, y), search_of(cv=wider).fit(*extra, weight)
    assert_array_equal(scores_of(plain), scores_of(more))
    assert_array_equal(plain.classes_, more.classes_)


def test_equal_rows_in_different_folds_are_not_merged():
    X, y = overlapping(60)
    X, y = np.vstack([X, X, X]), np.concatenate([y, y, y])
    third = np.repeat(np.arange(3), 60)
    numbers = np.arange(180)
    # The third copy is trained on alone, or held out together with the first.
    splits = [
        (numbers[third == 0], numbers[third == 1]),
        (numbers[third == 2], numbers[third == 0]),
        (numbers[third == 1], numbers[third != 1]),
        (numbers[third > 0], numbers[third == 0]),
    ]
    recorder = _Recorder()
    search_of(**FINELY, gammas=[1.0], cv=splits, scoring=recorder).fit(X, y)
    _assert_same_machines(recorder, X, y, CS, 1.0, splits)


def test_a_copy_of_a_held_out_row_does_not_tell_its_label():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    noise = rng.integers(0, 2, size=200)
    twice = np.vstack([X, X]), np.append(noise, 1 - noise)
    halves = [(np.arange(200), np.arange(200, 400)), (np.arange(200, 400), np.arange(200))]
    search = search_of(Cs=[1e4], gammas=[100.0], cv=halves).fit(*twice)
    # Each row is learnt by heart with one label, and held out with the other.
    assert search.best_score_ < 0.05


@pytest.mark.parametrize("class_weight", [{0: 3.0, 1: 0.5}, "balanced"], ids=str)
def test_class_weight_enters_the_loss_alone(class_weight):
    X, y = overlapping(200)
    kept = np.append(np.flatnonzero(y == 0)[:30], np.flatnonzero(y == 1)[:90])
    X, y = X[kept], y[kept]
    recorder = _Recorder()
    search = search_of(**FINELY, Cs=[1.0], gammas=[0.5], class_weight=class_weight).fit(X, y)
    recorded = search_of(
        **FINELY, Cs=[1.0], gammas=[0.5], class_weight=class_weight, scoring=recorder
    )
    assert_array_equal(scores_of(search), scores_of(recorded.fit(X, y)))
    splits = list(stratified().split(X, y))
    # Folds of 30 and 90 rows have the proportions of the whole.
    _assert_same_machines(recorder, X, y, [1.0], 0.5, splits, class_weight=class_weight)


@pytest.mark.parametrize("vectors", ["core", "random", "kmeans", "leverage", "array"])
def test_a_span_of_few_vectors_finds_a_good_pair_too(vectors):
    X, y = overlapping(400)
    given = X[:50] if vectors == "array" else vectors
    few = search_of(vectors=given, max_vectors=50).fit(X, y)
    assert few.best_estimator_.engine_ == "span"
    assert_allclose(scores_of(few), scores_of(grid_search(X, y)), atol=0.03)


def test_sparse_rows_give_the_scores_of_dense_ones():
    X, y = overlapping()
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    dense = search_of().fit(X, y)
    for form in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        search = search_of().fit(form(X), y)
        assert_allclose(scores_of(search), scores_of(dense), atol=1.01 / 40)
        assert_allclose(search.decision_function(form(X)), dense.decision_function(X), atol=1e-2)


def _rbf(A, B, gamma=1.0):
    return rbf_kernel(A, B, gamma=gamma)


@pytest.mark.parametrize("kernel", ["precomputed", "callable", "callable with a parameter"])
def test_other_forms_of_a_kernel_give_the_same_scores(kernel):
    X, y = overlapping()
    named = search_of(**FINELY, gammas=[1.0]).fit(X, y)
    if kernel == "precomputed":
        search, rows = (
            search_of(**FINELY, gammas=[1.0], kernel="precomputed"),
            rbf_kernel(X, gamma=1.0),
        )
    else:
        given = {"gamma": 1.0} if "parameter" in kernel else None
        search, rows = search_of(**FINELY, gammas=["scale"], kernel=_rbf, kernel_params=given), X
    search.fit(rows, y)
    assert_allclose(scores_of(search), scores_of(named), atol=1.01 / 40)
    assert search.__sklearn_tags__().input_tags.pairwise == (kernel == "precomputed")
    assert_allclose(search.best_score_, named.best_score_, atol=0.01)
    assert search.predict(rows).shape == y.shape


def test_the_linear_kernel_gives_the_scores_of_grid_search():
    X, y = overlapping()
    ours = search_of(gammas=["scale"], kernel="linear").fit(X, y)
    theirs = grid_search(X, y, gammas=["scale"], kernel="linear")
    assert_allclose(scores_of(ours), scores_of(theirs), atol=1.01 / 40)
