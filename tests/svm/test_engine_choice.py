"""Which engine `MarginClassifier` takes, and the size of its cells."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.reference.cell_data import as_if_rows_were_many, board
from tests.reference.data import moons
from widemargin import MarginClassifier
from widemargin.span import RandomVectors, SpanFit
from widemargin.svm import engines, in_cells


def _margin(**parameters):
    return MarginClassifier(**{"random_state": 0, "n_jobs": 1} | parameters)


def _cells(**parameters):
    return _margin(**{"engine": "cells", "cells": 40, "gamma": 2.0} | parameters)


# What the parameters and the number of rows say.


def test_auto_is_exact_for_few_different_rows_and_a_span_beyond(monkeypatch):
    monkeypatch.setattr("widemargin.svm.engine_choice._EXACT_ROWS", 100)
    monkeypatch.setattr("widemargin.svm.engine_choice._MOST_EXACT_ROWS", 100)
    X, y = moons(101)
    assert _margin().fit(X[:100], y[:100]).engine_ == "exact"
    assert _margin().fit(X, y).engine_ == "span"
    copies = np.repeat(np.arange(100), 3)
    assert _margin().fit(X[copies], y[copies]).engine_ == "exact"
    assert _margin().fit(X, y, sample_weight=np.arange(101) > 0).engine_ == "exact"


def test_between_few_and_many_rows_auto_is_exact_if_few_of_them_support_the_machine(monkeypatch):
    monkeypatch.setattr("widemargin.svm.engine_choice._EXACT_ROWS", 100)
    monkeypatch.setattr("widemargin.svm.engine_choice._PROBE", (50, 100))
    monkeypatch.setattr("widemargin.svm.engine_choice._EXACT_WORK", 1e6)  # about 140 support vectors
    X, y = moons(600, noise=0.05)
    apart = _margin(C=100, gamma=1.0).fit(X, y)
    assert (apart.engine_, len(apart.support_) < 140) == ("exact", True)
    mixed = np.random.default_rng(0).integers(0, 2, size=600)
    assert _margin(C=100, gamma=1.0).fit(X, mixed).engine_ == "span"
    support = _margin(C=100, gamma=1.0, engine="exact").fit(X, mixed).support_
    assert len(support) > 300


@pytest.mark.parametrize(
    ("parameters", "engine"),
    [
        ({}, "exact"),
        ({"max_vectors": 100}, "exact"),
        ({"max_vectors": 99}, "span"),
        ({"vectors": "random"}, "exact"),
        ({"vectors": np.array([[0.5, 0.2]])}, "span"),
        ({"vectors": RandomVectors()}, "span"),
        ({"memory": 8 * 100 * 100}, "exact"),
        ({"memory": 8 * 100 * 100 - 1}, "span"),
        ({"engine": "exact", "max_vectors": 99}, "exact"),
        ({"engine": "span"}, "span"),
    ],
    ids=str,
)
def test_the_engine_is_the_one_that_the_parameters_ask_for(parameters, engine):
    X, y = moons(100)
    machine = _margin(gamma=1.0, **parameters)
    machine.fit(X, y)
    assert machine.engine_ == engine
    assert machine.certificate_.scope == {"exact": "full", "span": "span"}[engine]
    if engine == "span" and parameters.get("max_vectors"):
        assert machine.certificate_.n_vectors <= 99


@pytest.mark.parametrize(
    ("parameters", "remedy"),
    [
        ({"engine": "dual"}, r"engine='dual'.*'auto', 'exact', 'span'"),
        ({"engine": None}, r"engine=None.*'auto', 'exact', 'span'"),
        ({"vectors": "centres"}, r"vectors='centres'.*'random', 'core', 'kmeans', 'leverage'"),
        ({"engine": "exact", "vectors": "centres"}, r"vectors='centres'.*'random'"),
        ({"max_vectors": "all"}, r"max_vectors='all'.*'auto'"),
        ({"max_vectors": 0}, r"max_vectors=0.*at least 1"),
        ({"max_vectors": 2.5}, r"max_vectors=2\.5.*whole"),
        ({"vectors": np.zeros((4, 5))}, r"vectors of shape \(4, 5\).*2 features"),
        ({"vectors": np.zeros((0, 2))}, r"vectors of shape \(0, 2\).*at least one row"),
        ({"vectors": np.zeros(2)}, r"vectors of shape \(2,\).*matrix"),
        ({"vectors": np.full((3, 2), np.nan)}, r"vectors hold NaN"),
    ],
    ids=str,
)
def test_an_unknown_engine_or_strategy_is_an_error_that_lists_what_there_is(parameters, remedy):
    X, y = moons(30)
    with pytest.raises((ValueError, TypeError), match=remedy):
        _margin(**parameters).fit(X, y)


def test_a_bad_name_does_not_harm_a_fitted_machine():
    X, y = moons(60)
    for bad in ({"vectors": "centres"}, {"engine": "dual"}, {"max_vectors": "all"}):
        machine = _margin(engine="span").fit(X, y)
        before = machine.decision_function(X)
        with pytest.raises(ValueError, match=next(iter(bad))):
            machine.set_params(**bad).fit(X * 3, y)
        assert_array_equal(machine.decision_function(X), before)


# What held-out rows say.


@pytest.fixture
def quickly(monkeypatch):
    as_if_rows_were_many(monkeypatch)


def _said(machine):
    named = re.search(
        r"\(engine: on held-out rows of a sample (\S+) % in a span, (\S+) % in cells\)$",
        machine.certificate_.stopped,
    )
    return float(named[1]), float(named[2])


def test_auto_takes_cells_where_a_span_cannot_hold_the_boundary(quickly):
    X, y = board(2400)
    machine = MarginClassifier(C=10.0, gamma=60.0, random_state=0, n_jobs=1).fit(X, y)
    assert machine.engine_ == "cells"
    assert machine.certificate_.scope == "cells"
    span, cells = _said(machine)
    assert cells > span + 5
    assert len(machine.cell_centers_) == pytest.approx(2400 / 60, rel=0.5)
    given = MarginClassifier(
        C=10.0, gamma=60.0, random_state=0, cells=[[0.25, 0.5], [0.75, 0.5]], n_jobs=1
    )
    assert_array_equal(given.fit(X, y).cell_centers_, [[0.25, 0.5], [0.75, 0.5]])


def _plane(n=1500, n_features=30):
    X = np.random.default_rng(0).normal(size=(n, n_features))
    return X, (X.sum(axis=1) > 0).astype(int)


def test_auto_takes_a_span_where_cells_are_too_small_to_see_the_boundary(quickly):
    X, y = _plane()
    machine = MarginClassifier(kernel="linear", random_state=0, n_jobs=1).fit(X, y)
    assert machine.engine_ == "span"
    span, cells = _said(machine)
    assert span > cells + 5
    assert not hasattr(machine, "cell_centers_")
    forced = MarginClassifier(kernel="linear", random_state=0, n_jobs=1, engine="span").fit(X, y)
    assert_array_equal(machine.decision_function(X), forced.decision_function(X))


def test_the_choice_learns_from_a_quarter_of_the_rows_at_most(quickly, monkeypatch):
    trials, accuracy = [], engines.Trial.of_cells

    def noting(trial, *arguments):
        trials.append(trial)
        return accuracy(trial, *arguments)

    monkeypatch.setattr(engines.Trial, "of_cells", noting)
    X, y = board(4000)
    for n in (1000, 4000):
        MarginClassifier(gamma=60.0, random_state=0, n_jobs=1).fit(X[:n], y[:n])
    assert [(trial.learn.n, trial.judge.n) for trial in trials] == [(250, 600), (600, 600)]
    for trial in trials:
        assert not set(trial.learn.number) & set(trial.judge.number)


def test_auto_does_not_ask_where_a_user_has_decided_or_rows_are_few(quickly):
    X, y = board(2400)
    for parameters in ({"max_vectors": 30}, {"vectors": X[:20]}, {"engine": "span"}):
        machine = MarginClassifier(gamma=60.0, random_state=0, **parameters).fit(X, y)
        assert machine.engine_ == "span"
        assert "held-out" not in machine.certificate_.stopped
    small = MarginClassifier(gamma=60.0, random_state=0).fit(X[:250], y[:250])
    exact = MarginClassifier(gamma=60.0, random_state=0, engine="exact").fit(X[:250], y[:250])
    assert small.engine_ == "exact"
    assert "held-out" not in small.certificate_.stopped
    assert_array_equal(small.decision_function(X), exact.decision_function(X))


def test_auto_is_not_confused_by_a_class_that_the_sample_does_not_hold(quickly):
    X, y = board(2400)
    y[:2] = 2
    X[:2] += 5.0
    machine = MarginClassifier(C=10.0, gamma=60.0, random_state=0, n_jobs=1).fit(X, y)
    assert machine.engine_ == "cells"
    assert_array_equal(machine.predict(X[:2]), [2, 2])


def test_the_size_of_cells_is_chosen_on_held_out_rows(quickly):
    small = _cells(cells="auto").fit(*moons(2400))
    X, y = _plane()
    large = _cells(cells="auto", kernel="linear").fit(X, y)
    for machine, n in ((small, 2400), (large, 1500)):
        named = re.search(
            r"held-out rows of a sample (\S+) % in cells of 60, (\S+) % in cells of 200\)$",
            machine.certificate_.stopped,
        )
        size = 60 if machine is small else 200
        assert (float(named[2]) >= float(named[1]) + 0.5) == (size == 200)
        assert n / size / 2 <= len(machine.cell_centers_) <= 3 * n / size


def test_few_rows_are_one_cell_where_the_size_is_left_to_it():
    X, y = moons(30)
    machine = _cells(cells="auto", tol=1e-10).fit(X, y)
    assert len(machine.cell_centers_) == 1
    exact = _cells(engine="exact", tol=1e-10).fit(X, y)
    assert_allclose(machine.decision_function(X), exact.decision_function(X), atol=1e-10)
    two = _cells(cells="auto").fit([[0.0], [1.0]], [0, 1])
    assert_array_equal(two.predict([[0.0], [1.0]]), [0, 1])


@pytest.mark.parametrize("where", ["span", "cells"])
def test_an_interrupt_while_the_engine_is_chosen_ends_the_fit(where, quickly, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    if where == "span":
        monkeypatch.setattr(SpanFit, "step", interrupted)
    else:
        monkeypatch.setattr(in_cells, "exact_machine", interrupted)
    with pytest.raises(KeyboardInterrupt):
        MarginClassifier(gamma=60.0, random_state=0, n_jobs=1).fit(*board(800))
