"""`MarginClassifierCV` against `GridSearchCV` and against direct fits."""

import pickle
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RepeatedKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
)

from widemargin import MarginClassifier, MarginClassifierCV
from widemargin.svm import grid

CS = [0.1, 1.0, 10.0]
GAMMAS = [0.5, 2.0]


def _moons(n_rows=120, noise=0.3):
    return make_moons(n_rows, noise=noise, random_state=0)


def _iris():
    X, y = load_iris(return_X_y=True)
    X = X[:, :2] - X[:, :2].mean(axis=0)
    # One of its rows is there twice.
    return X + 1e-3 * np.random.default_rng(0).normal(size=X.shape), y


DATA = {"two classes": _moons, "three classes": _iris}
every_data = pytest.mark.parametrize("data", DATA)


def _folds(n_splits=3):
    return StratifiedKFold(n_splits, shuffle=True, random_state=0)


def _search(Cs=CS, gammas=GAMMAS, **parameters):
    """A search in the span of all rows: its machines are then the exact ones."""
    return MarginClassifierCV(
        Cs, gammas, **{"cv": _folds(), "max_vectors": 1000, "random_state": 0} | parameters
    )


def _exact(**parameters):
    return MarginClassifier(**{"engine": "exact", "tol": 1e-8} | parameters)


def _grid_search(X, y, Cs=CS, gammas=GAMMAS, cv=None, scoring=None, **parameters):
    grid = {"C": Cs, "gamma": gammas}
    return GridSearchCV(_exact(**parameters), grid, cv=cv or _folds(), scoring=scoring).fit(X, y)


def _scores(search):
    """Scores of every pair (rows) in every fold (columns)."""
    results = search.cv_results_
    n_splits = search.n_splits_
    return np.column_stack([results[f"split{k}_test_score"] for k in range(n_splits)])


class _Recorder:
    """A score that keeps the decision values it is asked to judge."""

    def __init__(self):
        self.seen = []

    def __call__(self, estimator, X, y):
        self.seen.append((np.array(y), estimator.decision_function(X), estimator.predict(X)))
        return np.mean(estimator.predict(X) == y)


def _finely(monkeypatch):
    """Let the search go on until its machines are the optima, for comparison."""
    monkeypatch.setattr("widemargin.svm.grid._SEARCH_TOL", 1e-9)


def _assert_same_machines(recorder, X, y, Cs, gamma, splits, weight=None, **parameters):
    """The search is done C by C and fold by fold, for one gamma."""
    cases = [(C, train, test) for C in Cs for train, test in splits]
    assert len(recorder.seen) == len(cases)
    weight = np.ones(len(y)) if weight is None else weight
    for (labels, decision, predicted), (C, train, test) in zip(recorder.seen, cases, strict=True):
        machine = _exact(C=C, gamma=gamma, **parameters)
        machine.fit(X[train], y[train], weight[train])
        test = test[weight[test] > 0]
        assert_array_equal(labels, y[test])
        expected = machine.decision_function(X[test])
        assert_allclose(decision, expected, atol=2e-3 * np.abs(expected).max())
        assert (predicted != machine.predict(X[test])).sum() <= 1


# The same answer as a search without short cuts.


@every_data
def test_at_the_optimum_every_score_is_that_of_grid_search_up_to_a_row(data, monkeypatch):
    _finely(monkeypatch)
    X, y = DATA[data]()
    ours, theirs = _search().fit(X, y), _grid_search(X, y)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    assert_allclose(_scores(ours), _scores(theirs), atol=1.01 * 3 / len(y))
    means = [search.cv_results_["mean_test_score"] for search in (ours, theirs)]
    assert_allclose(*means, atol=1.01 / len(y))
    assert_allclose(ours.best_score_, theirs.best_score_, atol=1.01 / len(y))


@every_data
def test_near_the_optimum_every_score_is_that_of_grid_search_up_to_two_rows(data):
    X, y = DATA[data]()
    ours, theirs = _search().fit(X, y), _grid_search(X, y)
    assert_allclose(_scores(ours), _scores(theirs), atol=2.01 * 3 / len(y))
    assert_allclose(ours.best_score_, theirs.best_score_, atol=0.01)


@every_data
def test_held_out_rows_get_the_decision_values_of_a_fit_to_the_other_rows(data, monkeypatch):
    _finely(monkeypatch)
    X, y = DATA[data]()
    recorder = _Recorder()
    search = _search(gammas=[0.5], scoring=recorder).fit(X, y)
    _assert_same_machines(recorder, X, y, CS, 0.5, list(_folds().split(X, y)))
    right = [np.mean(predicted == labels) for labels, _, predicted in recorder.seen]
    assert_array_equal(_scores(search).ravel(), right)


def test_the_search_goes_on_for_as_many_steps_as_it_needs(monkeypatch):
    _finely(monkeypatch)
    X, y = _moons(150)
    recorder = _Recorder()
    _search(Cs=[300.0], gammas=[2.0], scoring=recorder).fit(X, y)
    _assert_same_machines(recorder, X, y, [300.0], 2.0, list(_folds().split(X, y)))


@pytest.mark.parametrize(
    "scoring",
    ["accuracy", "balanced_accuracy", "f1", "roc_auc", make_scorer(balanced_accuracy_score)],
    ids=str,
)
def test_other_scores_are_those_of_grid_search_too(scoring, monkeypatch):
    _finely(monkeypatch)
    X, y = _moons()
    ours = _search(Cs=[0.1, 1.0], gammas=[0.5], scoring=scoring).fit(X, y)
    theirs = _grid_search(X, y, Cs=[0.1, 1.0], gammas=[0.5], scoring=scoring)
    assert_allclose(_scores(ours), _scores(theirs), atol=0.03)
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
def test_any_way_to_split_the_rows_gives_the_machines_of_direct_fits(splitter, monkeypatch):
    _finely(monkeypatch)
    X, y = _moons()
    recorder = _Recorder()
    cv = SPLITTERS[splitter](X, y)
    search = _search(Cs=[0.1, 10.0], gammas=[1.0], cv=cv, scoring=recorder).fit(X, y)
    cv = SPLITTERS[splitter](X, y)
    splits = cv.split(X, y) if hasattr(cv, "split") else cv
    numbers = np.arange(len(y))
    splits = [(numbers[train], numbers[test]) for train, test in splits]
    _assert_same_machines(recorder, X, y, [0.1, 10.0], 1.0, splits)
    assert search.n_splits_ == len(splits)


def test_cv_as_a_number_is_that_many_stratified_folds():
    X, y = _moons()
    plain = _search(cv=4).fit(X, y)
    assert_array_equal(_scores(plain), _scores(_search(cv=StratifiedKFold(4)).fit(X, y)))
    assert plain.n_splits_ == 4


# Weights and repeated rows.


def test_weights_enter_the_loss_and_the_accuracy(monkeypatch):
    _finely(monkeypatch)
    X, y = _moons()
    weight = np.random.default_rng(0).uniform(0.1, 5.0, size=len(y))
    weight[::7] = 0.0
    recorder, splits = _Recorder(), list(_folds().split(X, y))
    search = _search(gammas=[0.5]).fit(X, y, weight)
    recorded = _search(gammas=[0.5], scoring=recorder).fit(X, y, weight)
    _assert_same_machines(recorder, X, y, CS, 0.5, splits, weight)
    tests = [test[weight[test] > 0] for _ in CS for _, test in splits]
    right = [
        np.average(predicted == labels, weights=weight[test])
        for (labels, _, predicted), test in zip(recorder.seen, tests, strict=True)
    ]
    assert_allclose(_scores(search).ravel(), right)
    assert not np.allclose(_scores(search), _scores(recorded))


def test_whole_weights_are_the_same_as_copies_in_the_same_fold():
    X, y = _moons(90)
    count = np.random.default_rng(0).integers(0, 3, size=90)
    copies = np.repeat(np.arange(90), count)
    splits = list(_folds().split(X, y))
    of_copies = [tuple(np.flatnonzero(np.isin(copies, part)) for part in pair) for pair in splits]
    weighted = _search(cv=splits).fit(X, y, count)
    repeated = _search(cv=of_copies).fit(X[copies], y[copies])
    assert_allclose(_scores(weighted), _scores(repeated), atol=1e-12)
    assert_array_equal(weighted.decision_function(X), repeated.decision_function(X))


def test_rows_of_weight_zero_are_as_good_as_absent_with_any_label():
    X, y = _moons(90)
    splits = list(_folds().split(X, y))
    extra = np.vstack([X, 50 + X[:10]]), np.append(y, np.repeat(7, 10))
    weight = np.append(np.ones(90), np.zeros(10))
    wider = [
        (np.append(train, np.arange(90, 95)), np.append(test, np.arange(95, 100)))
        for train, test in splits
    ]
    plain, more = _search(cv=splits).fit(X, y), _search(cv=wider).fit(*extra, weight)
    assert_array_equal(_scores(plain), _scores(more))
    assert_array_equal(plain.classes_, more.classes_)


def test_equal_rows_in_different_folds_are_not_merged(monkeypatch):
    _finely(monkeypatch)
    X, y = _moons(60)
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
    _search(gammas=[1.0], cv=splits, scoring=recorder).fit(X, y)
    _assert_same_machines(recorder, X, y, CS, 1.0, splits)


def test_a_copy_of_a_held_out_row_does_not_tell_its_label():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    noise = rng.integers(0, 2, size=200)
    twice = np.vstack([X, X]), np.append(noise, 1 - noise)
    halves = [(np.arange(200), np.arange(200, 400)), (np.arange(200, 400), np.arange(200))]
    search = _search(Cs=[1e4], gammas=[100.0], cv=halves).fit(*twice)
    # Each row is learnt by heart with one label, and held out with the other.
    assert search.best_score_ < 0.05


@pytest.mark.parametrize("class_weight", [{0: 3.0, 1: 0.5}, "balanced"], ids=str)
def test_class_weight_enters_the_loss_alone(class_weight, monkeypatch):
    _finely(monkeypatch)
    X, y = _moons(200)
    kept = np.append(np.flatnonzero(y == 0)[:30], np.flatnonzero(y == 1)[:90])
    X, y = X[kept], y[kept]
    recorder = _Recorder()
    search = _search(Cs=[1.0], gammas=[0.5], class_weight=class_weight).fit(X, y)
    recorded = _search(Cs=[1.0], gammas=[0.5], class_weight=class_weight, scoring=recorder)
    assert_array_equal(_scores(search), _scores(recorded.fit(X, y)))
    splits = list(_folds().split(X, y))
    # Folds of 30 and 90 rows have the proportions of the whole.
    _assert_same_machines(recorder, X, y, [1.0], 0.5, splits, class_weight=class_weight)


# Results.


def test_the_results_have_the_keys_and_shapes_of_grid_search():
    X, y = _moons()
    ours, theirs = _search().fit(X, y), _grid_search(X, y)
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
    search = _search(gammas=[0.1, "scale", 5.0]).fit(*_moons())
    results, scores = search.cv_results_, _scores(search)
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
    search = _search(Cs=[100.0, 1.0, 10.0], gammas=[1.0, 0.5]).fit(X, y)
    assert_array_equal(search.cv_results_["mean_test_score"], 1.0)
    assert_array_equal(search.cv_results_["rank_test_score"], 1)
    assert search.best_params_ == {"C": 1.0, "gamma": 1.0}


def test_a_tie_between_widths_goes_to_the_smaller_C():
    # Everything is the same for a constant score.
    search = _search(scoring=lambda estimator, X, y: 0.5, gammas=[2.0, 0.5]).fit(*_moons(60))
    assert search.best_params_ == {"C": 0.1, "gamma": 2.0}

    def score(estimator, X, y):
        calls.append(None)
        # The first width is best with C = 10, and the second, as good, with C = 0.1.
        return 0.75 if 6 < len(calls) <= 12 else 0.25

    calls = []
    search = _search(scoring=score, gammas=[2.0, 0.5]).fit(*_moons(60))
    assert search.best_params_ == {"C": 0.1, "gamma": 0.5}


def test_a_number_of_values_of_C_stands_for_a_logarithmic_range():
    search = _search(Cs=6, gammas=[1.0]).fit(*_moons(60))
    assert_allclose(search.cv_results_["param_C"], [0.01, 0.1, 1, 10, 100, 1000])
    assert_array_equal(_search(Cs=np.int64(2)).fit(*_moons(60)).cv_results_["param_C"][0], 0.01)


@pytest.mark.parametrize("as_given", [list, tuple, np.array], ids=["list", "tuple", "array"])
def test_values_of_C_may_come_in_any_order_and_container(as_given):
    X, y = _moons(60)
    sorted_ = _search(Cs=[0.1, 1, 10], gammas=[1.0]).fit(X, y)
    given = as_given([10, 0.1, 1])
    search = _search(Cs=given, gammas=[1.0]).fit(X, y)
    assert search.cv_results_["params"] == sorted_.cv_results_["params"]
    assert_array_equal(_scores(search), _scores(sorted_))
    assert search.Cs is given


def test_widths_may_be_words_and_numbers_together():
    X, y = _moons(90)
    words = ["scale", "auto", "mean_distance"]
    search = _search(gammas=[*words, 0.7]).fit(X, y)
    found = [_exact(gamma=word).fit(X, y).gamma_ for word in words]
    numbers = _search(gammas=[*found, 0.7]).fit(X, y)
    assert_array_equal(_scores(search), _scores(numbers))
    assert list(search.cv_results_["param_gamma"]) == [*words, 0.7] * len(CS)
    assert search.best_estimator_.gamma == search.best_params_["gamma"]


# The machine.


@every_data
@pytest.mark.parametrize("engine", ["exact", "span"])
def test_the_final_machine_is_a_direct_fit_with_the_best_pair(data, engine):
    X, y = DATA[data]()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(y))
    shared = {"engine": engine, "random_state": 0, "tol": 1e-4}
    shared["max_vectors"] = {"exact": 1000, "span": 40}[engine]
    search = _search(**shared).fit(X, y, weight)
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


@pytest.mark.parametrize("vectors", ["core", "random", "kmeans", "leverage", "array"])
def test_a_span_of_few_vectors_finds_a_good_pair_too(vectors):
    X, y = _moons(400)
    given = X[:50] if vectors == "array" else vectors
    few = _search(vectors=given, max_vectors=50).fit(X, y)
    assert few.best_estimator_.engine_ == "span"
    assert_allclose(_scores(few), _scores(_grid_search(X, y)), atol=0.03)


def test_labels_may_be_words():
    X, y = _iris()
    words = np.array(["schön", "красный", "桜"])[y]
    search = _search(gammas=[0.5]).fit(X, words)
    assert_allclose(_scores(search), _scores(_grid_search(X, words, gammas=[0.5])), atol=0.05)
    assert set(search.predict(X)) == set(words)
    objects = _search(gammas=[0.5]).fit(X, words.astype(object))
    assert_array_equal(_scores(search), _scores(objects))


def test_sparse_rows_give_the_scores_of_dense_ones():
    X, y = _moons()
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    dense = _search().fit(X, y)
    for form in (sparse.csr_array, sparse.csc_matrix, sparse.coo_array):
        search = _search().fit(form(X), y)
        assert_allclose(_scores(search), _scores(dense), atol=1.01 / 40)
        assert_allclose(search.decision_function(form(X)), dense.decision_function(X), atol=1e-2)


def _rbf(A, B, gamma=1.0):
    return rbf_kernel(A, B, gamma=gamma)


@pytest.mark.parametrize("kernel", ["precomputed", "callable", "callable with a parameter"])
def test_other_forms_of_a_kernel_give_the_same_scores(kernel, monkeypatch):
    _finely(monkeypatch)
    X, y = _moons()
    named = _search(gammas=[1.0]).fit(X, y)
    if kernel == "precomputed":
        search, rows = _search(gammas=[1.0], kernel="precomputed"), rbf_kernel(X, gamma=1.0)
    else:
        given = {"gamma": 1.0} if "parameter" in kernel else None
        search, rows = _search(gammas=["scale"], kernel=_rbf, kernel_params=given), X
    search.fit(rows, y)
    assert_allclose(_scores(search), _scores(named), atol=1.01 / 40)
    assert search.__sklearn_tags__().input_tags.pairwise == (kernel == "precomputed")
    assert_allclose(search.best_score_, named.best_score_, atol=0.01)
    assert search.predict(rows).shape == y.shape


def test_the_linear_kernel_gives_the_scores_of_grid_search():
    X, y = _moons()
    ours = _search(gammas=["scale"], kernel="linear").fit(X, y)
    theirs = _grid_search(X, y, gammas=["scale"], kernel="linear")
    assert_allclose(_scores(ours), _scores(theirs), atol=1.01 / 40)


# Resources.


@every_data
def test_scores_do_not_depend_on_the_number_of_threads(data):
    X, y = DATA[data]()
    one, two = (_search(n_jobs=n, max_vectors="auto").fit(X, y) for n in (1, 2))
    assert_array_equal(_scores(one), _scores(two))
    assert_array_equal(one.decision_function(X), two.decision_function(X))


def test_little_memory_gives_the_same_scores_in_several_batches(monkeypatch):
    _finely(monkeypatch)
    X, y = _moons(400)
    Cs = np.logspace(-2, 2, 40)
    batches = []
    original = grid.span_batches

    def counted(*arguments):
        batches.append(list(original(*arguments)))
        return iter(batches[-1])

    monkeypatch.setattr(grid, "span_batches", counted)
    much = _search(Cs=Cs, gammas=[50.0], max_vectors=100).fit(X, y)
    little = _search(Cs=Cs, gammas=[50.0], max_vectors=100, memory="3MB").fit(X, y)
    assert (len(batches[0]), len(batches[1]) > 1) == (1, True)
    assert [place for batch in batches[1] for place in batch] == list(range(40))
    assert_allclose(_scores(much), _scores(little), atol=1.01 * 3 / 400)
    assert_allclose(
        much.cv_results_["mean_test_score"], little.cv_results_["mean_test_score"], atol=0.01
    )


def test_a_time_limit_returns_a_model():
    X, y = _moons(2000)
    begun = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="max_time"):
        search = _search(gammas=[0.5, 1.0, 2.0], max_time=1e-3, engine="span", tol=1e-12).fit(X, y)
    assert time.perf_counter() - begun < 20
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict(X).shape == y.shape
    assert search.best_estimator_.max_time <= 1e-3


def test_the_time_is_shared_by_widths_batches_and_the_final_fit(monkeypatch):
    given = []

    def noted(solver, limits, report):
        given.append(limits.deadline.left())
        return original(solver, limits, report)

    original = grid.run
    monkeypatch.setattr("widemargin.svm.grid.run", noted)
    X, y = _moons(400)
    search = _search(Cs=40, max_vectors=50, memory="1MB", max_time=1000.0)
    search.fit(X, y)
    assert len(given) > 2 * len(GAMMAS)
    # Two widths and a final fit: a third of the time for the first, shared by its batches.
    assert given[0] <= 1000 / 3 / (len(given) / 2)
    assert 900 < search.best_estimator_.max_time <= 1000


def test_a_random_state_gives_the_same_bits_twice():
    X, y = _moons(400)
    first, second = (_search(vectors="random", max_vectors=20).fit(X, y) for _ in range(2))
    assert_array_equal(_scores(first), _scores(second))
    assert_array_equal(first.decision_function(X), second.decision_function(X))


# scikit-learn.


def test_a_search_survives_pickle_and_clone():
    X, y = _moons(90)
    search = _search(scoring="f1", Cs=[1, 10]).fit(X, y)
    again = pickle.loads(pickle.dumps(search))
    assert_array_equal(again.decision_function(X), search.decision_function(X))
    assert_array_equal(_scores(again), _scores(search))
    assert again.best_params_ == search.best_params_
    copy = clone(search)
    assert not hasattr(copy, "best_params_")
    assert_array_equal(_scores(copy.fit(X, y)), _scores(search))


def test_fit_does_not_change_its_arguments():
    X, y = _moons(60)
    weight = np.ones(60)
    before = X.copy(), y.copy()
    search = _search(max_time=60.0)
    parameters = search.get_params()
    search.fit(X, y, weight)
    assert_array_equal(X, before[0])
    assert_array_equal(y, before[1])
    assert_array_equal(weight, 1.0)
    assert search.get_params() == parameters


def test_names_of_features_are_kept_and_checked():
    pandas = pytest.importorskip("pandas")
    X, y = _moons(60)
    frame = pandas.DataFrame(X, columns=["länge", "breite"])
    search = _search().fit(frame, y)
    assert list(search.feature_names_in_) == ["länge", "breite"]
    assert search.n_features_in_ == 2
    assert_array_equal(search.predict(frame), search.best_estimator_.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        search.predict(frame[["breite", "länge"]])


def test_rows_with_another_number_of_features_are_an_error():
    X, y = _moons(60)
    search = _search().fit(X, y)
    assert search.n_features_in_ == 2
    with pytest.raises(ValueError, match=r"3 features.*2 features"):
        search.predict(np.zeros((4, 3)))


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
    X, y = _moons(60)
    with pytest.raises((ValueError, TypeError), match=remedy):
        _search(**parameters).fit(X, y)


def test_a_score_that_needs_probabilities_is_an_error():
    with pytest.raises((ValueError, AttributeError), match="predict_proba"):
        _search(scoring="neg_log_loss").fit(*_moons(60))


def test_bad_rows_and_labels_are_errors():
    X, y = _moons(60)
    with pytest.raises(ValueError, match="at least two classes"):
        _search().fit(X, np.ones(60))
    with pytest.raises(ValueError, match="at least two classes"):
        _search().fit(X, y, sample_weight=y)
    with pytest.raises(ValueError, match="NaN"):
        _search().fit(np.where(X > 1, np.nan, X), y)
    with pytest.raises(ValueError, match="NaN"):
        _search().fit(X, np.where(y > 0, np.nan, 0.0))
    with pytest.raises(ValueError, match="continuous"):
        _search().fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"sample_weight|[Nn]egative"):
        _search().fit(X, y, sample_weight=y - 0.5)
    with pytest.raises(ValueError, match=r"inconsistent|sample_weight\.shape"):
        _search().fit(X, y, sample_weight=np.ones(59))
    with pytest.raises(ValueError, match="square"):
        _search(kernel="precomputed").fit(X, y)


def test_a_fold_without_a_row_of_positive_weight_is_an_error():
    X, y = _moons(60)
    splits = list(_folds().split(X, y))
    weight = np.ones(60)
    weight[splits[1][1]] = 0.0
    with pytest.raises(ValueError, match=r"Fold 1 of cv.*sample_weight"):
        _search(cv=splits).fit(X, y, weight)


def test_an_unfitted_search_says_so():
    from sklearn.exceptions import NotFittedError

    for method in ("predict", "decision_function"):
        with pytest.raises(NotFittedError, match="MarginClassifierCV"):
            getattr(_search(), method)(np.zeros((2, 2)))


def test_little_memory_gives_the_same_scores_also_where_matrices_are_ill_conditioned(monkeypatch):
    X, y = _moons(400)
    Cs = np.logspace(-2, 2, 40)
    batches = []
    original = grid.span_batches

    def counted(*arguments):
        batches.append(list(original(*arguments)))
        return iter(batches[-1])

    monkeypatch.setattr(grid, "span_batches", counted)
    much = _search(Cs=Cs, gammas=[1.0], max_vectors=100).fit(X, y)
    little = _search(Cs=Cs, gammas=[1.0], max_vectors=100, memory="3MB").fit(X, y)
    assert (len(batches[0]), len(batches[1]) > 1) == (1, True)
    assert [place for batch in batches[1] for place in batch] == list(range(40))
    assert_allclose(_scores(much), _scores(little), atol=0.02)
    assert_allclose(
        much.cv_results_["mean_test_score"], little.cv_results_["mean_test_score"], atol=0.01
    )


@every_data
def test_every_mean_score_is_that_of_grid_search_at_the_default_tolerance(data):
    X, y = DATA[data]()
    ours, theirs = _search().fit(X, y), _grid_search(X, y)
    assert ours.cv_results_["params"] == theirs.cv_results_["params"]
    row = 3 / len(y)
    assert_allclose(_scores(ours), _scores(theirs), atol=2.01 * row)
    assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=0.01
    )
