"""Losses on intervals in a span: against the exact dual in the same features, and its promises."""

from dataclasses import replace

import numpy as np
import pytest

from widemargin.balls.exact_intervals import fit_exact_intervals
from widemargin.expansion import Expansion, MachineOptions
from widemargin.intervals import IntervalProblem, one_class
from widemargin.kernels import make_kernel
from widemargin.loop import Deadline
from widemargin.qp.interval_dual import solve_interval_dual
from widemargin.rows import as_rows
from widemargin.span.interval_fit import IntervalSpanOptions, fit_interval_span
from widemargin.span.landmarks import CoreVectors, RandomVectors
from widemargin.span.smoothed import Smoothed
from widemargin.span.span_sizes import SpanSizes

CASES = ("one-class", "epsilon-insensitive", "quantiles")


def stated(case, n=600, seed=0, threads=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = (np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n))[:, None]
    rows, kernel = as_rows(X, memory=10**9, threads=threads), make_kernel("rbf", gamma=0.3)
    if case == "one-class":
        return one_class(rows, kernel, np.ones(n), 0.1)
    one = np.ones((n, 1))
    if case == "epsilon-insensitive":
        return IntervalProblem(
            rows, kernel, y - 0.1, y + 0.1, 3 * one, 3 * one, np.zeros(1), np.arange(n)
        )
    tau, Y = np.array([0.1, 0.5, 0.9]), np.tile(y, 3)
    return IntervalProblem(
        rows, kernel, Y, Y, one * tau, one * (1 - tau), np.zeros(3), np.arange(n)
    )


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("tol", [1e-3, 1e-6])
def test_the_bounds_hold_the_optimum_in_the_span(case, tol):
    problem = stated(case)
    found = fit_interval_span(problem, IntervalSpanOptions(tol=tol, max_vectors=40))
    Z, kernel = found.vectors, problem.kernel
    K_z, k = np.empty((len(Z), len(Z))), np.empty((problem.n, len(Z)))
    kernel.block(Z, Z, out=K_z)
    kernel.block(problem.rows.take(np.arange(problem.n)), Z, out=k)
    features = np.linalg.solve(np.linalg.cholesky(K_z), k.T).T
    best = sum(
        solve_interval_dual(
            features @ features.T,
            problem.low[:, p],
            problem.high[:, p],
            problem.below[:, p],
            problem.above[:, p],
            pull=problem.pull[p],
            tol=1e-9,
        ).dual
        for p in range(problem.n_problems)
    )
    slack = 1e-6 * abs(best)
    assert found.certificate.dual - slack <= best <= found.certificate.primal + slack
    assert found.certificate.gap <= tol
    # The machine that is returned has the primal that is stated.
    values = Expansion(kernel, Z, found.coef, found.intercept).values(problem.rows)
    under = np.maximum(problem.low - values, 0) * problem.below
    over = np.maximum(values - problem.high, 0) * problem.above
    primal = 0.5 * np.trace(found.coef.T @ K_z @ found.coef) + problem.pull @ found.intercept
    assert primal + (under + over).sum() == pytest.approx(found.certificate.primal, rel=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_all_rows_as_vectors_give_the_exact_machine(case):
    problem = stated(case, n=200)
    whole = fit_exact_intervals(problem, MachineOptions(tol=1e-8))
    span = fit_interval_span(problem, IntervalSpanOptions(tol=1e-7, max_vectors=200))
    exact, found = (
        Expansion(problem.kernel, each.vectors, each.coef, each.intercept).values(problem.rows)
        for each in (whole, span)
    )
    np.testing.assert_allclose(found, exact, atol=2e-3 * np.ptp(exact))


def test_a_sample_comes_first_and_threads_change_nothing():
    one, two = (
        fit_interval_span(
            stated("one-class", 20_000, threads=threads),
            IntervalSpanOptions(tol=1e-3, max_vectors=30, threads=threads),
        )
        for threads in (1, 2)
    )
    np.testing.assert_array_equal(one.coef, two.coef)
    np.testing.assert_array_equal(one.intercept, two.intercept)


def test_time_that_is_over_leaves_a_machine_with_a_gap():
    options = {"tol": 1e-9, "deadline": Deadline.after(0.0)}
    found = fit_interval_span(stated("quantiles"), IntervalSpanOptions(max_vectors=40, **options))
    assert not found.stop.converged and 1e-9 < found.certificate.gap <= 1
    exact = fit_exact_intervals(stated("one-class"), MachineOptions(**options))
    assert exact.certificate.gap == 1.0 and np.isfinite(exact.coef).all()


def test_a_matrix_that_does_not_fit_is_refused_with_a_remedy():
    with pytest.raises(ValueError, match="engine='span'"):
        fit_exact_intervals(stated("one-class"), MachineOptions(memory=10**5))


@pytest.mark.parametrize("pull", [-30.0, -0.5, 0.0, 0.5, 30.0])
def test_a_dual_point_whose_sum_is_wrong_is_made_feasible(pull):
    rng = np.random.default_rng(0)
    below, above = rng.uniform(0.0, 2.0, (2, 50))
    below[:5] = above[5:10] = 0.0
    loss = Smoothed(np.zeros(50), np.zeros(50), below, above, pull, 1.0)
    for shift in (-3.0, 0.0, 3.0):
        found = loss.feasible(loss.beta(rng.normal(size=50) + shift))
        assert found.sum() == pytest.approx(pull, abs=1e-12)
        assert (found <= below + 1e-15).all() and (found >= -above - 1e-15).all()


def test_what_float32_rounds_is_not_in_the_certificate():
    # Far from the origin float32 loses most of the distances; primal and dual must not.
    problem = stated("quantiles")
    X = problem.rows.take(np.arange(problem.n)) + 300.0
    problem = replace(problem, rows=as_rows(X, memory=10**9, threads=1))
    found = fit_interval_span(problem, IntervalSpanOptions(tol=1e-3, max_vectors=40))
    K_z = np.empty((len(found.vectors), len(found.vectors)))
    problem.kernel.block(found.vectors, found.vectors, out=K_z)
    values = Expansion(problem.kernel, found.vectors, found.coef, found.intercept)
    at = values.values(problem.rows)
    paid = np.maximum(problem.low - at, 0) * problem.below
    paid += np.maximum(at - problem.high, 0) * problem.above
    primal = 0.5 * np.trace(found.coef.T @ K_z @ found.coef) + paid.sum()
    assert found.certificate.primal == pytest.approx(primal, rel=1e-9)
    assert found.certificate.gap <= 1e-3


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("gamma", [1e-3, 3.0])
def test_vectors_grow_as_long_as_the_objective_falls(case, gamma):
    problem = replace(stated(case, 1500), kernel=make_kernel("rbf", gamma=gamma))
    sizes = SpanSizes(first_vectors=8)
    found = fit_interval_span(problem, IntervalSpanOptions(span_sizes=sizes, most_auto=128))
    assert found.certificate.gap <= 1e-3
    # A smooth function needs no more than the first vectors.
    assert len(found.vectors) <= 16 if gamma < 1.0 else len(found.vectors) > 64
    other = 64 if gamma < 1.0 else 32
    compared = fit_interval_span(problem, IntervalSpanOptions(max_vectors=other))
    primal, reached = compared.certificate.primal, found.certificate.primal
    assert abs(reached - primal) <= 0.03 * abs(reached) if gamma < 1.0 else reached < primal


def test_core_vectors_are_rows_that_are_felt():
    # Outside the tube there are rows on one side only: half of the span is there.
    problem = stated("epsilon-insensitive", 2000)
    X = problem.rows.take(np.arange(2000))
    far = X[:, 0] > 0.0
    wide = np.where(far[:, None], 0.0, 10.0)
    problem = replace(problem, low=problem.low - wide, high=problem.high + wide)
    sizes = SpanSizes(first_vectors=20)
    core, random = (
        fit_interval_span(
            problem, IntervalSpanOptions(max_vectors=100, landmarks=kind(), span_sizes=sizes)
        )
        for kind in (CoreVectors, RandomVectors)
    )
    shares = [(each.vectors[:, 0] > 0.0).mean() for each in (core, random)]
    assert shares[0] > 0.75 > 0.65 > shares[1]
    assert core.certificate.primal < random.certificate.primal


def test_growing_vectors_stop_in_time_and_within_memory():
    problem = replace(stated("quantiles", 1500), kernel=make_kernel("rbf", gamma=5.0))
    options = IntervalSpanOptions(deadline=Deadline.after(0.0))
    late = fit_interval_span(problem, options)
    assert not late.stop.converged and len(late.vectors) <= 256
    small = fit_interval_span(problem, IntervalSpanOptions(memory=3_000_000))
    assert len(small.vectors) < 150 and "memory leaves room" in small.certificate.stopped
