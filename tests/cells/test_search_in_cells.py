"""`MarginClassifierCV` in cells: scores of held-out rows, a pair for each cell, memory."""

import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import StratifiedKFold

from tests.reference.cell_data import (
    CENTERS,
    DATA,
    HALVES,
    board,
    in_cells_of,
    search_in_cells,
    three_classes,
    two_classes,
    two_halves,
)
from tests.reference.classifier_ways import sized
from tests.reference.problems import problem_of
from tests.reference.searches import FINELY
from widemargin import MarginClassifier
from widemargin.cells import CellOptions, cut, held_out
from widemargin.cells.held_out import HeldOutOptions, batches, held_out_values
from widemargin.folds import Folds
from widemargin.loop import Deadline
from widemargin.svm.margin_classifier import CellParameters

every_data = pytest.mark.parametrize("data", DATA)


class _Recorder:
    """A score that keeps the decision values it is asked to judge."""

    def __init__(self):
        self.seen = []

    def __call__(self, estimator, X, y):
        self.seen.append(estimator.decision_function(X))
        return np.mean(estimator.predict(X) == y)


@every_data
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_of_a_search_are_those_of_fits_to_the_other_rows(data, weighted):
    X, y = DATA[data]()
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(y)) if weighted else np.ones(300)
    recorder = _Recorder()
    search = search_in_cells(overlap=0.0, scoring=recorder, tol=1e-12).fit(X, y, weight)
    plain = search_in_cells(overlap=0.0, **FINELY).fit(X, y, weight)
    seen = iter(recorder.seen)
    splits = list(search.cv.split(X, y))
    scores = np.empty((2, 3, 3))
    for g, gamma in enumerate((0.5, 5.0)):
        for c, C in enumerate((0.1, 1.0, 20.0)):
            for k, (train, test) in enumerate(splits):
                machine = in_cells_of(
                    cells=CENTERS, overlap=0.0, blend=0.0, C=C, gamma=gamma, tol=1e-11
                ).fit(X[train], y[train], weight[train])
                expected = machine.decision_function(X[test])
                assert_allclose(next(seen), expected, atol=1e-4 * np.abs(expected).max())
                scores[g, c, k] = machine.score(X[test], y[test], weight[test])
    flat = scores.swapaxes(0, 1).reshape(6, 3)
    for k in range(3):
        assert_allclose(plain.cv_results_[f"split{k}_test_score"], flat[:, k], atol=1.5 / 100)
    best = plain.cv_results_["mean_test_score"].argmax()
    assert plain.best_params_ == plain.cv_results_["params"][best]
    assert plain.best_score_ >= flat.mean(axis=1).max() - 0.01
    final = in_cells_of(cells=CENTERS, overlap=0.0, **FINELY, **plain.best_params_)
    final.fit(X, y, weight)
    assert_array_equal(plain.decision_function(X), final.decision_function(X))
    assert plain.certificate_.scope == "cells"


def test_a_search_in_cells_by_size_finds_a_good_pair():
    X, y = board(1200)
    search = search_in_cells([0.1, 10.0], [0.5, 60.0], cells=100).fit(X[:900], y[:900])
    assert search.best_params_ == {"C": 10.0, "gamma": 60.0}
    assert search.score(X[900:], y[900:]) == pytest.approx(search.best_score_, abs=0.06)
    for n_jobs in (2, 3):
        other = search_in_cells([0.1, 10.0], [0.5, 60.0], cells=100, n_jobs=n_jobs).fit(
            X[:900], y[:900]
        )
        for name, values in search.cv_results_.items():
            if name.endswith("score"):
                assert_array_equal(other.cv_results_[name], values)


def test_every_cell_gets_the_pair_that_is_best_for_it():
    X, y = two_halves()
    grid = {"Cs": [0.1, 10.0], "gammas": [0.2, 30.0]}
    # Rounding may hide a gap of 1e-10 at the largest C.
    search = search_in_cells(**grid, cells=HALVES, per_cell=True, overlap=0.0, tol=1e-9).fit(X, y)
    machine = search.best_estimator_
    assert_array_equal(machine.cell_gamma_, [30.0, 0.2])
    decision = search.decision_function(X)
    splits = list(search.cv.split(X, y))
    pairs = zip(machine.cell_gamma_, machine.cell_C_, strict=True)
    for side, pair in zip((X[:, 0] < 0, X[:, 0] > 0), pairs, strict=True):
        hand = MarginClassifier(engine="exact", tol=1e-10, gamma=pair[0], C=pair[1])
        hand.fit(X[side], y[side])
        assert_allclose(decision[side], hand.decision_function(X[side]), atol=1e-4)
        # No other pair answers more of the rows of this cell right when they are held out.
        right = {}
        for gamma in grid["gammas"]:
            for C in grid["Cs"]:
                other = MarginClassifier(C, engine="exact", gamma=gamma)
                right[gamma, C] = sum(
                    other.fit(X[train][side[train]], y[train][side[train]]).score(
                        X[test][side[test]], y[test][side[test]]
                    )
                    * side[test].sum()
                    for train, test in splits
                )
        assert right[pair] >= max(right.values()) - 2
    shared = search_in_cells(**grid, cells=HALVES, overlap=0.0).fit(X, y)
    assert not hasattr(shared.best_estimator_, "cell_gamma_")
    assert search.score(X, y) != shared.score(X, y)
    # A machine of its own, that can be fitted anew.
    again = machine.set_params(cells=40).fit(X, y)
    assert not hasattr(again, "cell_gamma_")


def test_a_pair_of_its_own_also_where_a_cell_is_not_exact():
    X, y = two_halves()
    pairs = CellParameters(HALVES, np.array([30.0, 0.2]), np.array([0.1, 10.0]))
    parameters = {"cells": pairs, "overlap": 0.0, "tol": 1e-8}
    exact = in_cells_of(**parameters).fit(X, y)
    large = in_cells_of(sized(matrix_rows=10), **parameters).fit(X, y)
    assert_array_equal(large.cell_gamma_, [30.0, 0.2])
    assert_array_equal(large.cell_C_, [0.1, 10.0])
    assert_allclose(large.decision_function(X), exact.decision_function(X), atol=1e-3)
    assert large.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=1e-6)


def test_a_pair_of_its_own_also_in_the_span_of_fewer_vectors():
    gammas, Cs = np.array([5.0, 0.2]), np.array([50.0, 0.1])
    X, y = two_halves()
    machine = in_cells_of(cells=CellParameters(HALVES, gammas, Cs), overlap=0.0, max_vectors=60)
    machine.fit(X, y)
    assert len(machine.support_vectors_) <= 60
    total = 0.0
    for cell, side in enumerate((X[:, 0] < 0, X[:, 0] > 0)):
        own = slice(machine.cell_offsets_[cell], machine.cell_offsets_[cell + 1])
        Z, beta = machine.support_vectors_[own], machine.dual_coef_[0, own]
        b = machine.intercept_[cell, 0]
        f = rbf_kernel(X[side], Z, gamma=gammas[cell]) @ beta + b
        slack = np.maximum(0.0, 1.0 - (2 * y[side] - 1) * f)
        w2 = beta @ rbf_kernel(Z, gamma=gammas[cell]) @ beta
        total += 0.5 * (w2 + b * b) + Cs[cell] * slack @ slack
        assert_allclose(machine.decision_function(X[side]), f, atol=1e-8)
    assert_allclose(machine.certificate_.primal, total, rtol=1e-6)
    exact = [
        MarginClassifier(C, gamma=gamma, engine="exact", tol=1e-8).fit(X[side], y[side])
        for gamma, C, side in zip(gammas, Cs, (X[:, 0] < 0, X[:, 0] > 0), strict=True)
    ]
    optimum = sum(m.certificate_.dual for m in exact)
    assert machine.certificate_.full_dual <= optimum <= machine.certificate_.primal


def test_the_choice_for_a_cell_does_not_depend_on_the_unit_of_weights():
    X, y = two_halves()
    plain = search_in_cells([0.1, 10.0], [0.2, 30.0], cells=30, per_cell=True).fit(X, y)
    light = search_in_cells([1e2, 1e4], [0.2, 30.0], cells=30, per_cell=True)
    light.fit(X, y, np.full(len(y), 1e-3))
    assert len(set(plain.best_estimator_.cell_gamma_)) == 2
    assert_array_equal(plain.best_estimator_.cell_gamma_, light.best_estimator_.cell_gamma_)


def test_searches_can_be_kept_and_copied():
    X, y = two_halves()
    search = search_in_cells([1.0, 10.0], [0.2, 30.0], cells=HALVES, per_cell=True).fit(X, y)
    again = pickle.loads(pickle.dumps(search))
    assert_array_equal(again.decision_function(X), search.decision_function(X))
    copy = clone(search)
    assert copy.get_params()["per_cell"] is True
    assert_array_equal(copy.fit(X, y).decision_function(X), search.decision_function(X))
    sparse_search = clone(search).fit(sparse.csr_array(X), y)
    assert_array_equal(sparse_search.best_estimator_.cell_gamma_, [30.0, 0.2])


def test_a_search_says_which_cells_are_too_large_for_it():
    X, y = two_classes()
    folds = Folds(list(StratifiedKFold(3).split(X, y)), np.ones(len(y)))
    problem = problem_of(X, y, folds=folds)
    members = cut(problem, CellOptions(cells=CENTERS))
    options = HeldOutOptions(1e-3, 10**9, 1, Deadline(), matrix_rows=50)
    with pytest.raises(ValueError, match=r"A cell has .* rows.*cells of at most 50 rows"):
        held_out_values(problem, members, np.ones(1), folds, [0, 1, 2], options)


# Whether the time is enough for the final fit is not sure.
@pytest.mark.filterwarnings("ignore:MarginClassifier stopped before its rule was met")
@pytest.mark.parametrize("per_cell", [False, True])
def test_a_search_without_time_is_a_valid_model(per_cell, monkeypatch):
    X, y = three_classes(600)
    asked, scores = [], held_out._cell_values

    def noting(points, members, *arguments):
        asked.append(len(members))
        return scores(points, members, *arguments)

    monkeypatch.setattr(held_out, "_cell_values", noting)
    with pytest.warns(ConvergenceWarning, match=r"cut short \(max_time=1e-06 reached\)"):
        search = search_in_cells(cells=8, max_time=1e-6, per_cell=per_cell).fit(X, y)
    assert 2 <= len(asked) < len(search.best_estimator_.cell_centers_)
    assert search.best_params_ in search.cv_results_["params"]
    assert set(search.predict(X)) <= {0, 1, 2}


def test_words_for_gamma_and_balanced_classes_work_in_a_search():
    X, y = three_classes()
    search = search_in_cells(
        gammas=["scale", "mean_distance"], class_weight="balanced", per_cell=True
    )
    search.fit(X, y)
    assert search.score(X, y) > 0.85
    widths = [in_cells_of(gamma=word).fit(X, y).gamma_ for word in ("scale", "mean_distance")]
    for width in search.best_estimator_.cell_gamma_:
        assert np.isclose(width, widths, rtol=1e-9).any()


# The memory of a search, and its score in each cell.


def _many_classes(n=900, n_classes=30):
    y = np.arange(n) % n_classes
    X = np.random.default_rng(0).normal(size=(n, 2))
    return X + 8.0 * np.stack([y % 6, y // 6], axis=1), y


def test_a_search_keeps_to_its_memory_budget(monkeypatch):
    X, y = _many_classes()
    Cs = np.logspace(-1, 1, 8)
    # The final fit has a budget of its own.
    monkeypatch.setattr(MarginClassifier, "fit", _predicts_nothing)
    peaks, found = [], []
    for memory in ("1GB", "1MB"):
        search = search_in_cells(Cs, [0.5], cells=20, memory=memory, overlap=0.0)
        search.set_params(multi_class="ovr")
        tracemalloc.start()
        search.fit(X, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        found.append(search.cv_results_["mean_test_score"])
    # All decision values of rows that are held out are more than that.
    values = 8 * len(y) * 30 * len(Cs)
    assert peaks[1] < 1e6 < values < peaks[0]
    assert_allclose(*found, atol=2 / 900)


def _predicts_nothing(self, X, y, weight=None):
    self.classes_, self.certificate_, self.n_iter_ = np.unique(y), None, 1
    return self


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (10**9, [([0, 1, 2], [0, 1, 2, 3, 4])]),
        # A quarter of it is for 12, 7, 2 or no pairs of a fold and a C.
        (4 * 8 * 12 * 100 * 3, [([0, 1], [0, 1, 2, 3, 4]), ([2], [0, 1, 2, 3, 4])]),
        (4 * 8 * 7 * 100 * 3, [([k], [0, 1, 2, 3, 4]) for k in range(3)]),
        (4 * 8 * 2 * 100 * 3, [([k], Cs) for k in range(3) for Cs in ([0, 1], [2, 3], [4])]),
        (1, [([k], [c]) for k in range(3) for c in range(5)]),
    ],
)
def test_batches_are_of_folds_first(memory, expected):
    X, y = three_classes(300)
    splits = list(StratifiedKFold(3).split(X, y))
    folds = Folds(splits, np.ones(300))
    problem = problem_of(X, y, folds=folds)
    assert list(batches(problem, 5, folds, memory)) == expected


def test_large_cells_are_searched_one_at_a_time_where_memory_is_little(monkeypatch):
    asked, ordered_map = [], held_out.ordered_map

    def noting(function, items, threads):
        asked.append(threads)
        return ordered_map(function, items, threads)

    monkeypatch.setattr(held_out, "ordered_map", noting)
    X, y = two_classes(300)
    for memory in ("1GB", "1MB"):
        search_in_cells([1.0], [0.5], cells=HALVES, overlap=0.0, memory=memory, n_jobs=4).fit(X, y)
    assert asked == [4, 1]


def _rare(n=500):
    """Few rows of the second class, among many on the left and beside them on the right."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1, 1, size=(n, 2))
    share = np.where(X[:, 1] > 0.4, 0.4, 0.05)
    y = (rng.uniform(size=n) < share).astype(int)
    return X + np.where(X[:, :1] < 0, [-5.0, 0.0], [5.0, 0.0]), y


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy", "roc_auc"])
def test_every_cell_gets_the_pair_that_its_score_likes_best(scoring):
    X, y = _rare()
    Cs, gammas = [0.01, 10.0], [0.1, 30.0]
    search = search_in_cells(
        Cs, gammas, cells=HALVES, per_cell=True, overlap=0.0, scoring=scoring, **FINELY
    )
    machine = search.fit(X, y).best_estimator_
    score, splits = get_scorer(scoring), list(search.cv.split(X, y))
    for cell, side in enumerate((X[:, 0] < 0, X[:, 0] > 0)):
        by_hand = {}
        for gamma in gammas:
            for C in Cs:
                found, rows = [], []
                for train, test in splits:
                    train, test = train[side[train]], test[side[test]]
                    hand = MarginClassifier(C, gamma=gamma, engine="exact", tol=1e-9)
                    found.append(score(hand.fit(X[train], y[train]), X[test], y[test]))
                    rows.append(len(test))
                by_hand[gamma, C] = np.average(found, weights=rows)
        chosen = machine.cell_gamma_[cell], machine.cell_C_[cell]
        assert by_hand[chosen] == pytest.approx(max(by_hand.values()), abs=1e-3)


def test_a_score_of_cells_is_not_the_accuracy():
    X, y = _rare()
    grid_of = {"Cs": [0.01, 1.0, 100.0], "gammas": [0.1, 30.0], "cells": HALVES, "per_cell": True}
    plain = search_in_cells(**grid_of).fit(X, y)
    other = search_in_cells(**grid_of, scoring="balanced_accuracy").fit(X, y)
    pairs = [(m.best_estimator_.cell_gamma_, m.best_estimator_.cell_C_) for m in (plain, other)]
    assert not np.array_equal(*pairs)


def test_a_cell_of_one_class_gets_the_pair_that_is_best_everywhere():
    X, y = two_halves()
    y[X[:, 0] > 0] = 0
    search = search_in_cells(
        [0.1, 10.0], [0.2, 30.0], cells=HALVES, per_cell=True, scoring="roc_auc"
    )
    machine = search.fit(X, y).best_estimator_
    best = search.best_params_
    assert (machine.cell_gamma_[1], machine.cell_C_[1]) == (best["gamma"], best["C"])


def test_a_score_that_cells_cannot_have_is_named():
    def all_classes(estimator, X, y):
        if len(set(y)) < 3:
            raise ValueError("There must be three classes.")
        return 0.5

    X, y = three_classes()
    with pytest.raises(ValueError, match=r"per_cell=True .*scoring=.*There must be three classes"):
        search_in_cells(per_cell=True, scoring=all_classes).fit(X, y)
    assert search_in_cells(scoring=all_classes).fit(X, y).best_score_ == 0.5


def test_a_search_fits_the_size_of_cells_that_it_scored():
    X, y = board(1200)
    search = search_in_cells([1.0], [60.0], cells="auto").fit(X, y)
    assert search.best_estimator_.cells == 300
    assert "held-out" not in search.certificate_.stopped
