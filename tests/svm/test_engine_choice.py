"""Which engine `MarginClassifier` takes, and the size of its cells."""

import re
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from tests.reference.cell_data import MANY, board
from tests.reference.classifier_ways import sized
from tests.reference.data import moons
from tests.reference.problems import problem_of
from widemargin import MarginClassifier
from widemargin.cells import ExactSizes, cell_engine
from widemargin.cells.engine_choice import ChoiceOptions, Trial, choose_engine
from widemargin.span import RandomVectors, SpanFit


def _margin(**parameters):
    return MarginClassifier(**{"random_state": 0, "n_jobs": 1} | parameters)


def _cells(**parameters):
    return _margin(**{"engine": "cells", "cells": 40, "gamma": 2.0} | parameters)


# What the parameters and the number of rows say.


def _chosen(X, y, weight=None, **options):
    """The decision for rows, with thresholds of the test's own."""
    problem = problem_of(X, y, weight, **options.pop("problem", {}))
    return choose_engine(problem, ChoiceOptions(**options))


def test_auto_is_exact_for_few_different_rows_and_a_span_beyond():
    few = {"exact_sizes": ExactSizes(always=100, most=100, most_if_better=100)}
    X, y = moons(101)
    assert _chosen(X[:100], y[:100], **few).engine == "exact"
    assert _chosen(X, y, **few).engine == "span"
    copies = np.repeat(np.arange(100), 3)
    assert _chosen(X[copies], y[copies], **few).engine == "exact"
    assert _chosen(X, y, np.arange(101) > 0, **few).engine == "exact"


def test_between_few_and_many_rows_auto_is_exact_if_few_of_them_support_the_machine():
    # About 140 support vectors are worth that much work.
    sizes = ExactSizes(always=100, work=1e6, share=0.0, work_if_better=0.0)
    kind = sized(exact_sizes=sizes)
    X, y = moons(600, noise=0.05)
    machine = kind(C=100, gamma=1.0).fit(X, y)
    assert machine.engine_ == "exact" and machine.certificate_.scope == "full"
    assert len(machine.support_) < 140
    mixed = np.random.default_rng(0).integers(0, 2, size=600)
    assert kind(C=100, gamma=1.0).fit(X, mixed).engine_ == "span"
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
        ({"memory": "10KB"}, "exact"),
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


def _strangers(n=1200, n_features=400):
    """Rows that have little to do with each other: a span of a fifth of them misses the rest."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    return X, (X @ rng.normal(size=n_features) > 0).astype(int)


@pytest.mark.parametrize("C", [0.1, 1.0])
def test_auto_is_exact_where_updates_alone_solve_it_however_many_rows_support_it(C):
    # A factor of the support would take 1200³ / 3 multiplications, and kernel values 3.3e8.
    kind = sized(exact_sizes=ExactSizes(always=100, work=6e8, share=0.0, work_if_better=0.0))
    X, y = _strangers()
    machine = kind(C=C, gamma="scale").fit(X, y)
    assert machine.engine_ == "exact" and len(machine.support_) > 1000


def test_auto_is_exact_where_that_is_clearly_better_than_a_span_of_the_size_that_it_may_have():
    sizes = {"always": 100, "work": 0.0, "share": 0.0}
    X, y = _strangers()
    decision = _chosen(X, y, exact_sizes=ExactSizes(**sizes, most=100), problem={"gamma": 1 / 400})
    assert decision.engine == "exact"
    said = re.fullmatch(r".* (\S+) % in a span, (\S+) % by the exact machine", decision.reason)
    assert float(said[2]) > float(said[1]) + 3
    # Not where it would take too much, and not where a span is as good.
    for fewer in ({"most_if_better": 1000}, {"work_if_better": 1e6}):
        few = ExactSizes(**sizes, most=100, **fewer)
        assert _chosen(X, y, exact_sizes=few, problem={"gamma": 1 / 400}).engine == "span"
    plain = _chosen(*moons(1200), exact_sizes=ExactSizes(**sizes, most=100))
    assert plain.engine == "span"


# What held-out rows say.


def _said(decision):
    named = re.fullmatch(
        r"on held-out rows of a sample (\S+) % in a span, (\S+) % in cells.*", decision.reason
    )
    return float(named[1]), float(named[2])


def test_auto_takes_cells_where_a_span_cannot_hold_the_boundary():
    decision = _chosen(*board(2400), **MANY, problem={"C": 10.0, "gamma": 60.0})
    assert decision.engine == "cells"
    span, cells = _said(decision)
    assert cells > span + 5


def _reach(n, noise=0.0):
    """Whether an arm of five links reaches far, with noise or without."""
    rng = np.random.default_rng(0)
    angles = np.cumsum(rng.uniform(-1.5, 1.5, (n, 5)), axis=1)
    reach = np.hypot(np.cos(angles).sum(axis=1), np.sin(angles).sum(axis=1))
    reach += noise * rng.normal(size=n)
    return np.diff(angles, axis=1, prepend=0.0), (reach > np.median(reach)).astype(int)


def test_cells_are_larger_where_rows_have_no_noise_and_all_rows_together_if_they_may():
    sizes = {"trial": replace(MANY["trial"], vectors=10)}
    few = ExactSizes(always=100, most=100, work=0.0, share=0.0, most_if_better=100)
    for exact, expected in ((few, "cells"), (replace(few, most_if_better=10**5), "exact")):
        stated = {"problem": {"C": 100.0, "gamma": 0.2}, "exact_sizes": exact}
        decision = _chosen(*_reach(2400), **MANY | sizes | stated)
        assert decision.engine == expected
        assert decision.size == MANY["trial"].cells[-1]
    noise = _chosen(*_reach(2400, 6.0), **MANY | sizes | stated | {"problem": {"gamma": 0.2}})
    assert noise.size == MANY["trial"].cells[0]


def _plane(n=1500, n_features=30):
    X = np.random.default_rng(0).normal(size=(n, n_features))
    return X, (X.sum(axis=1) > 0).astype(int)


def test_auto_takes_a_span_where_cells_are_too_small_to_see_the_boundary():
    decision = _chosen(*_plane(), **MANY, problem={"kernel": "linear"})
    assert decision.engine == "span"
    span, cells = _said(decision)
    assert span > cells + 5


def test_a_machine_of_the_engine_that_was_chosen_says_why():
    X, y = board(13_000, squares=30)
    machine = MarginClassifier(C=10.0, gamma=1500.0, random_state=0, n_jobs=1).fit(X, y)
    assert machine.engine_ == "cells"
    assert machine.certificate_.scope == "cells"
    assert re.search(r"\(engine: on held-out rows .* % in cells\)$", machine.certificate_.stopped)
    assert len(machine.cell_centers_) == pytest.approx(13_000 / 300, rel=0.5)
    centers = np.stack(np.meshgrid(*2 * [np.linspace(0.1, 0.9, 5)], indexing="ij"), axis=-1)
    given = clone(machine).set_params(cells=centers.reshape(-1, 2)).fit(X, y)
    assert_array_equal(given.cell_centers_, centers.reshape(-1, 2))


def test_the_choice_learns_from_a_quarter_of_the_rows_at_most(monkeypatch):
    trials, accuracy = [], Trial.of_cells

    def noting(trial, *arguments):
        trials.append(trial)
        return accuracy(trial, *arguments)

    monkeypatch.setattr(Trial, "of_cells", noting)
    X, y = board(4000)
    for n in (1000, 4000):
        _chosen(X[:n], y[:n], **MANY, problem={"gamma": 60.0})
    assert [(trial.learn.n, trial.judge.n) for trial in trials] == [
        (250, 600),
        *[(600, 600)] * 2,
    ]
    for trial in trials:
        assert not set(trial.learn.number) & set(trial.judge.number)


def test_auto_does_not_ask_where_a_user_has_decided_or_rows_are_few():
    X, y = board(2400)
    stated = {"problem": {"gamma": 60.0}}
    for options in ({"cuttable": False}, {"cuttable": False, "in_a_span": True}):
        decision = _chosen(X, y, **MANY, **stated, **options)
        assert (decision.engine, decision.reason) == ("span", "")
    decision = _chosen(X[:250], y[:250], **MANY, **stated)
    assert (decision.engine, decision.reason) == ("exact", "")
    for parameters in ({"max_vectors": 30}, {"vectors": X[:20]}, {"engine": "span"}):
        machine = MarginClassifier(gamma=60.0, random_state=0, **parameters).fit(X, y)
        assert machine.engine_ == "span"
        assert "held-out" not in machine.certificate_.stopped


def test_auto_is_not_confused_by_a_class_that_the_sample_does_not_hold():
    X, y = board(2400)
    y[:2] = 2
    X[:2] += 5.0
    decision = _chosen(X, y, **MANY, problem={"C": 10.0, "gamma": 60.0})
    assert decision.engine == "cells"
    machine = _cells(cells=60, C=10.0, gamma=60.0).fit(X, y)
    assert_array_equal(machine.predict(X[:2]), [2, 2])


def test_the_size_of_cells_is_chosen_on_held_out_rows():
    small = _chosen(*moons(2400), **MANY, engine="cells", problem={"gamma": 2.0})
    large = _chosen(*_plane(), **MANY, engine="cells", problem={"kernel": "linear"})
    for decision, size in ((small, 60), (large, 200)):
        named = re.fullmatch(
            r"on held-out rows of a sample (\S+) % in cells of 60, (\S+) % in cells of 200",
            decision.reason,
        )
        assert (decision.engine, decision.size) == ("cells", size)
        assert (float(named[2]) >= float(named[1]) + 0.5) == (size == 200)


def test_few_rows_are_one_cell_where_the_size_is_left_to_it():
    X, y = moons(30)
    machine = _cells(cells="auto", tol=1e-10).fit(X, y)
    assert len(machine.cell_centers_) == 1
    exact = _cells(engine="exact", tol=1e-10).fit(X, y)
    assert_allclose(machine.decision_function(X), exact.decision_function(X), atol=1e-10)
    two = _cells(cells="auto").fit([[0.0], [1.0]], [0, 1])
    assert_array_equal(two.predict([[0.0], [1.0]]), [0, 1])


@pytest.mark.parametrize("where", ["span", "cells"])
def test_an_interrupt_while_the_engine_is_chosen_ends_the_fit(where, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    if where == "span":
        monkeypatch.setattr(SpanFit, "step", interrupted)
    else:
        monkeypatch.setattr(cell_engine, "exact_machines", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _chosen(*board(800), **MANY, problem={"gamma": 60.0})
