"""More than two classes: pairs or one against the rest, in every engine."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.svm import SVC

from tests.reference.cell_data import MANY, board
from tests.reference.classifier_ways import sized
from widemargin import MarginClassifier, MarginClassifierCV
from widemargin.cells.engine_choice import Trial
from widemargin.problem import class_scores, one_vs_one, one_vs_rest

ENGINES = {
    "exact": {"engine": "exact"},
    "span": {"engine": "span", "max_vectors": 60},
    "cells": {"engine": "cells", "cells": 60},
}
every_engine = pytest.mark.parametrize("engine", ENGINES)


def _rows(n=300, n_classes=4, seed=0):
    return make_blobs(n, 3, centers=n_classes, cluster_std=2.0, random_state=seed)


def _machine(engine="exact", **parameters):
    known = {"gamma": 0.2, "random_state": 0, "n_jobs": 1}
    return MarginClassifier(**known | ENGINES[engine] | parameters)


# Tables and votes.


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_the_table_of_pairs_has_the_order_of_svc(k):
    table = one_vs_one(k)
    assert table.shape == (k, k * (k - 1) // 2)
    for p, (a, b) in enumerate(combinations(range(k), 2)):
        expected = np.zeros(k)
        expected[a], expected[b] = 1.0, -1.0
        assert_array_equal(table[:, p], expected)


@pytest.mark.parametrize("k", [3, 4, 6])
def test_scores_are_the_votes_and_the_votes_are_those_of_svc(k):
    X, y = _rows(60 * k, k)
    theirs = SVC(gamma=0.2, decision_function_shape="ovo").fit(X, y)
    values = theirs.decision_function(X)
    scores = class_scores(values, k)
    votes = np.zeros((len(X), k))
    for p, (a, b) in enumerate(combinations(range(k), 2)):
        votes[:, a] += values[:, p] > 0
        votes[:, b] += values[:, p] < 0
    assert np.abs(scores - votes).max() < 0.5
    theirs.set_params(decision_function_shape="ovr")
    assert_allclose(scores, theirs.decision_function(X), atol=1e-12)
    theirs.set_params(break_ties=True)
    assert_array_equal(scores.argmax(axis=1), theirs.predict(X))
    # Nobody wins a draw.
    assert not class_scores(np.zeros((1, k * (k - 1) // 2)), k).any()


def test_one_problem_alone_has_the_rows_and_classes_of_its_pair():
    from tests.reference.problems import problem_of

    X, y = _rows(120, 4)
    problem = problem_of(X, y, np.linspace(1, 2, 120), C=3.0)
    assert not problem.partial
    assert len(problem.members(0)) == problem.n
    pairs = problem.with_signs(one_vs_one(4))
    assert pairs.partial
    for p, (a, b) in enumerate(combinations(range(4), 2)):
        members = pairs.members(p)
        assert_array_equal(members, np.flatnonzero(np.isin(problem.code, [a, b])))
        alone = pairs.alone(p)
        assert (alone.n, alone.n_problems, alone.partial) == (len(members), 1, False)
        assert_array_equal(alone.sign(0), np.where(problem.code[members] == a, 1.0, -1.0))
        assert_array_equal(alone.weight, problem.weight[members])
        assert_array_equal(alone.C, [3.0])
    back = pairs.with_signs(one_vs_rest(4))
    assert not back.partial


# What is taken, and what it answers.


def test_auto_takes_pairs_where_they_are_cheap(monkeypatch):
    X, y = _rows()
    taken = {engine: _machine(engine).fit(X, y).multi_class_ for engine in ENGINES}
    assert taken == {"exact": "ovo", "span": "ovr", "cells": "ovo"}
    assert _machine(max_vectors=1000).fit(X, y).multi_class_ == "ovr"
    # Whatever the memory, unless the coefficients of all pairs would be too many.
    many = np.arange(300) % 60
    assert _machine("cells", memory="2MB").fit(X, many).multi_class_ == "ovo"
    monkeypatch.setattr("widemargin.svm.margin_classifier._PAIRS_BYTES", 1_000_000)
    assert _machine("cells").fit(X, many).multi_class_ == "ovr"
    assert _machine("exact", multi_class="ovr").fit(X, y).multi_class_ == "ovr"
    assert _machine("span", multi_class="ovo").fit(X, y).multi_class_ == "ovo"
    two = _machine(multi_class="ovo").fit(X, y > 1)
    assert (two.multi_class_, two.decision_function(X).shape) == ("ovr", (300,))
    assert not hasattr(two, "n_support_")


@every_engine
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("k", [3, 4])
def test_shapes_agree_with_each_other_and_with_predict(engine, multi_class, k):
    X, y = _rows(300, k)
    labels = np.array(["d", "a", "c", "b"])[:k]
    found = _machine(engine, multi_class=multi_class).fit(X, labels[y])
    assert found.multi_class_ == multi_class
    n_pairs = k * (k - 1) // 2
    n_problems = n_pairs if multi_class == "ovo" else k
    assert found.dual_coef_.shape[0] == found.intercept_.shape[-1] == n_problems
    scores, answer = found.decision_function(X), found.predict(X)
    assert scores.shape == (300, k)
    assert_array_equal(answer, found.classes_[scores.argmax(axis=1)])
    assert found.score(X, labels[y]) > 0.8
    # Another shape is another view of the same machine.
    found.set_params(decision_function_shape="ovo")
    values = found.decision_function(X)
    assert values.shape == (300, n_pairs)
    assert_array_equal(found.predict(X), answer)
    if multi_class == "ovo":
        assert_array_equal(class_scores(values, k), scores)
        return
    for p, (a, b) in enumerate(combinations(range(k), 2)):
        assert_array_equal(values[:, p], scores[:, a] - scores[:, b])
    wins = np.zeros((300, k))
    for p, (a, b) in enumerate(combinations(range(k), 2)):
        wins[:, a] += values[:, p] > 0
        wins[:, b] += values[:, p] < 0
    assert_array_equal(found.classes_[wins.argmax(axis=1)], answer)


@every_engine
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_the_bits_do_not_depend_on_threads(engine, multi_class):
    X, y = _rows(900, 5)
    one = _machine(engine, multi_class=multi_class).fit(X, y)
    for n_jobs in (2, 3, 4):
        other = clone(one).set_params(n_jobs=n_jobs).fit(X, y)
        assert_array_equal(other.dual_coef_, one.dual_coef_)
        assert_array_equal(other.decision_function(X), one.decision_function(X))


def test_wrong_words_are_named():
    X, y = _rows(30, 3)
    with pytest.raises(ValueError, match="multi_class"):
        _machine(multi_class="pairs").fit(X, y)
    with pytest.raises(ValueError, match="decision_function_shape"):
        _machine(decision_function_shape="pairs").fit(X, y)


# In a span, and in cells.


def test_pairs_in_the_span_of_all_rows_are_exact():
    X, y = _rows(150, 3)
    shape = {"multi_class": "ovo", "decision_function_shape": "ovo", "tol": 1e-9}
    exact = _machine("exact", **shape).fit(X, y)
    span = _machine("span", **shape | {"max_vectors": 150, "vectors": X}).fit(X, y)
    assert_allclose(span.certificate_.primal, exact.certificate_.primal, rtol=1e-6)
    assert_allclose(span.decision_function(X), exact.decision_function(X), atol=1e-3)


def test_pairs_in_a_span_are_machines_of_two_classes_in_it():
    X, y = _rows(300, 4)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=300)
    known = {"vectors": X[:30], "tol": 1e-9, "C": 3.0}
    shape = {"multi_class": "ovo", "decision_function_shape": "ovo"}
    found = _machine("span", **known, **shape).fit(X, y, weight)
    values = found.decision_function(X)
    for p, (a, b) in enumerate(combinations(range(4), 2)):
        own = (y == a) | (y == b)
        two = _machine("span", **known).fit(X[own], y[own] == a, weight[own])
        assert_allclose(values[:, p], two.decision_function(X), atol=1e-3)


def test_pairs_in_one_cell_are_exact():
    X, y = _rows(200, 4)
    shape = {"multi_class": "ovo", "decision_function_shape": "ovo", "tol": 1e-9}
    exact = _machine("exact", **shape).fit(X, y)
    cells = _machine("cells", **shape | {"cells": 10_000}).fit(X, y)
    assert_allclose(cells.decision_function(X), exact.decision_function(X), atol=1e-3)


def test_pairs_in_cells_do_as_well_as_one_against_the_rest():
    X, y = board(1500, squares=6)
    y = (y + 2 * (X[:, 0] > 0.5)).astype(int)
    score = {}
    for multi_class in ("ovr", "ovo"):
        cells = {"gamma": 60.0, "C": 10.0, "cells": 150, "multi_class": multi_class}
        found = _machine("cells", **cells).fit(X[:1000], y[:1000])
        score[multi_class] = found.score(X[1000:], y[1000:])
    assert min(score.values()) > 0.8
    assert abs(score["ovr"] - score["ovo"]) < 0.05


@pytest.mark.parametrize("k", [3, 4])
def test_a_trial_of_engines_counts_the_votes_of_pairs(monkeypatch, k):
    # There are as many pairs of three classes as there are classes.
    X, y = _rows(1500, k)
    seen = []
    accuracy = Trial.accuracy

    def noting(self, scores, stated):
        seen.append((stated.partial, accuracy(self, scores, stated)))
        return seen[-1][1]

    monkeypatch.setattr(Trial, "accuracy", noting)
    found = sized(**MANY)(gamma=0.2, random_state=0, n_jobs=1).fit(X, y)
    assert found.engine_ in ("cells", "span")
    # Cells, the span, and cells on half of the rows where both are equally good.
    assert [partial for partial, _ in seen][:2] == [True, False]
    score = found.score(X, y)
    # Held out, on fewer rows; classes in the wrong order would be no better than chance.
    assert all(abs(each - score) < 0.15 for _, each in seen)


# A search.


@pytest.mark.parametrize("engine", ["auto", "exact", "span", "cells"])
@pytest.mark.parametrize("multi_class", ["auto", "ovr", "ovo"])
def test_a_search_judges_the_machines_that_it_fits(engine, multi_class):
    X, y = _rows(300, 3)
    known = {"engine": engine, "multi_class": multi_class, "random_state": 0, "n_jobs": 1, "cv": 3}
    if engine == "cells":
        known["cells"] = 100
    search = MarginClassifierCV([0.1, 10.0], [0.05, 1.0], **known).fit(X, y)
    best = search.best_estimator_
    expected = "ovr" if engine == "span" else "ovo"
    assert best.multi_class_ == (expected if multi_class == "auto" else multi_class)
    assert search.decision_function(X).shape == (300, 3)
    assert_array_equal(
        search.predict(X), search.classes_[search.decision_function(X).argmax(axis=1)]
    )
    folds = [search.cv_results_[f"split{k}_test_score"][search.best_index_] for k in range(3)]
    from sklearn.model_selection import cross_val_score

    again = clone(best).set_params(max_time=None)
    # Held-out rows: the same machines up to their gaps, and the edges of cells.
    few = 0.06 if engine == "cells" else 0.031
    assert_allclose(folds, cross_val_score(again, X, y, cv=3), atol=few)


def test_a_search_has_the_shape_that_is_asked_for():
    X, y = _rows(200, 4)
    search = MarginClassifierCV([1.0], cv=2, decision_function_shape="ovo", n_jobs=1).fit(X, y)
    assert search.decision_function(X).shape == (200, 6)
    assert_array_equal(
        search.classes_[class_scores(search.decision_function(X), 4).argmax(axis=1)],
        search.predict(X),
    )
