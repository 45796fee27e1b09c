"""Squared losses of regression: which engine is taken, and what left-out rows say of it."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import r2_score

from tests.reference.problems import problem_of
from widemargin import MarginRegressor
from widemargin.cells import ExactSizes
from widemargin.cells.engine_choice import ChoiceOptions, TrialSizes
from widemargin.regression.squared_losses import fit_squares
from widemargin.span import LeftOut, as_strategy, left_out

FEW = ExactSizes(always=100, targets=200, targets_if_better=400)


def strangers(n=2000, d=24, seed=0):
    """Rows of many features that have little to do with each other: no small span has them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.05 * rng.normal(size=n)


def waves(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2.0, 2.0, size=(n, 2))
    return X, np.sin(3.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


def stated(X, y, C=10.0, gamma=0.1, epsilon=0.0):
    problem = problem_of(X, np.arange(len(y)) % 2, C=C, gamma=gamma)
    values = (y - y.mean())[problem.number, None]
    return problem.with_targets(values, epsilon, 1.0)


@pytest.mark.parametrize(
    ("n", "epsilon", "memory", "engine"),
    [
        (100, 0.1, 10**9, "exact"),
        (150, 0.0, 10**9, "exact"),
        (150, 0.1, 10**9, "span"),
        (150, 0.0, 100_000, "span"),
        (201, 0.0, 10**9, "span"),
    ],
)
def test_auto_is_exact_on_few_rows_if_the_matrix_fits(n, epsilon, memory, engine):
    problem = stated(*waves(n), epsilon=epsilon)
    found = fit_squares(problem, ChoiceOptions(exact_sizes=FEW, memory=memory))
    assert (found.engine, found.doubt) == (engine, "")


def test_auto_without_memory_for_a_matrix_of_few_rows_is_no_error():
    X, y = waves(1000)
    machine = MarginRegressor(memory="10MB", random_state=0).fit(X, y)
    assert machine.engine_ == "span"
    assert machine.score(X, y) > 0.9


def test_a_span_that_learns_single_rows_by_heart_is_noticed():
    X, y = strangers()
    with pytest.warns(ConvergenceWarning, match="on rows that were left out"):
        machine = MarginRegressor(10.0, gamma=0.05, engine="span", max_vectors=300).fit(X, y)
    assert machine.score(X, y) > 0.1
    assert machine.score(*strangers(seed=1)) < 0.1
    assert "left out" in machine.certificate_.stopped


def test_auto_takes_the_exact_machine_where_a_span_does_not_represent():
    X, y = strangers()
    sizes = replace(FEW, targets_if_better=len(y))
    # Too few rows for a trial: the span itself is judged.
    options = ChoiceOptions(exact_sizes=sizes, cuttable=False)
    found = fit_squares(stated(X, y, gamma=0.05), options)
    assert found.engine == "exact"
    assert "left out" in found.fitted.certificate.stopped
    kept = fit_squares(stated(X, y, gamma=0.05), replace(options, exact_sizes=FEW))
    assert kept.engine == "span"
    assert "left out" in kept.doubt


def test_auto_takes_the_exact_machine_where_held_out_rows_of_a_sample_speak_for_it():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(3000, 2))
    y = np.sin(20.0 * X[:, 0]) * np.sin(20.0 * X[:, 1])
    sizes = replace(FEW, targets_if_better=len(y))
    trial = TrialSizes(least_rows=10**6, exact_share=0.9)
    options = ChoiceOptions(exact_sizes=sizes, trial=trial)
    found = fit_squares(stated(X, y, C=1e3, gamma=60.0), options)
    assert found.engine == "exact"
    assert "by the exact machine" in found.fitted.certificate.stopped
    smooth = fit_squares(stated(X, X[:, 0], gamma=0.1), options)
    assert smooth.engine == "span"


def test_a_span_that_finds_what_rows_have_in_common_is_not_doubted():
    X, y = waves(2000)
    found = fit_squares(stated(X, y), ChoiceOptions(engine="span", max_vectors=200))
    assert (found.engine, found.doubt) == ("span", "")


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_rows_are_judged_by_the_machine_without_them(monkeypatch, epsilon):
    monkeypatch.setattr(left_out, "_TOL", 1e-8)
    X, y = strangers(2000, 8)
    problem = stated(X, y, epsilon=epsilon)
    options = ChoiceOptions(engine="span", max_vectors=150, tol=1e-8)
    fitted, found = left_out.fit_span_and_judge(problem, options)
    judges = np.arange(problem.n - problem.n // 8, problem.n)
    values = problem.regression.values[:, 0]
    seen = MarginRegressor(
        10.0,
        loss="squared_epsilon_insensitive",
        epsilon=epsilon,
        gamma=0.1,
        engine="span",
        vectors=fitted.vectors,
        tol=1e-8,
    )
    rows = X[problem.number]
    seen.fit(rows, values)
    assert found.seen == pytest.approx(
        r2_score(values[judges], seen.predict(rows[judges])), abs=1e-3
    )
    # In the same units: without the rows, targets are centred by another mean.
    part = problem.subset(np.arange(problem.n - len(judges)))
    without, _ = left_out.fit_span_and_judge(
        part, replace(options, landmarks=as_strategy(fitted.vectors, X.shape[1]))
    )
    kernel = problem.kernel.block(rows[judges], without.vectors)
    answer = kernel @ without.coef[:, 0] + without.intercept[0]
    assert_allclose(found.unseen, r2_score(values[judges], answer), atol=1e-3)


def test_what_counts_as_poor():
    assert LeftOut(0.5, 0.0).poor and LeftOut(0.5, -2.0).poor
    assert not LeftOut(0.5, 0.4).poor
    # Nothing learnt, nothing overfitted.
    assert not LeftOut(0.01, -0.01).poor
