"""Solvers whose time is over: a valid point at once, and one that is no worse than the start."""

from __future__ import annotations

from time import perf_counter

import numpy as np
import pytest

from tests.reference import hinge
from tests.reference.qp import kkt_violation, random_margin_problem, random_program, ridge_of
from widemargin.loop import Deadline
from widemargin.qp import (
    box_ascent,
    hinge_dual,
    margin_dual,
    polished,
    solve_hinge_dual,
    solve_margin_dual,
    solve_nonnegative,
    solve_sor,
)
from widemargin.qp.interior_point import solve_interior


def over():
    """A deadline that has passed, and one that an interrupt ends."""
    interrupted = Deadline()
    interrupted.interrupt()
    return [Deadline.after(0.0), interrupted]


def large_problem(n=1500, C=1e4):
    """A margin problem that takes seconds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 6))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    return np.exp(-0.05 * ((X[:, None] - X[None]) ** 2).sum(-1)), y, np.full(n, 0.5 / C)


@pytest.mark.parametrize("order", ["greedy", "cyclic"])
def test_sor_leaves_its_start_where_it_is_when_time_is_over(order):
    _, H, a = random_program(5)
    for deadline in over():
        for start in (None, np.full(len(a), 0.3)):
            result = solve_sor(H, a, start=start, order=order, deadline=deadline)
            assert result.n_updates == 0
            np.testing.assert_array_equal(result.x, 0.0 if start is None else start)
            assert result.residual == pytest.approx(kkt_violation(H, a, result.x, 0.0, np.inf))


@pytest.mark.parametrize("order", ["greedy", "cyclic"])
def test_sor_with_time_enough_does_not_notice_the_deadline(order):
    for seed in range(20):
        _, H, a = random_program(seed)
        free = solve_sor(H, a, order=order)
        timed = solve_sor(H, a, order=order, deadline=Deadline.after(600.0))
        np.testing.assert_array_equal(free.x, timed.x)
        assert free.n_updates == timed.n_updates


def test_sor_looks_at_the_clock_on_the_way():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(900, 30))
    H = A @ A.T + 1e-6 * np.eye(900)  # takes for ever
    solve_sor(np.eye(2), np.ones(2))  # compiled
    begun = perf_counter()
    result = solve_sor(H, np.ones(900), tol=1e-14, max_updates=10**9, deadline=Deadline.after(0.2))
    assert perf_counter() - begun < 3.0
    assert 0 < result.n_updates < 10**9
    assert result.residual == pytest.approx(
        kkt_violation(H, np.ones(900), result.x, 0.0, np.inf), rel=1e-6
    )


def test_the_margin_dual_leaves_its_start_where_it_is_when_time_is_over():
    K, y, C, weight = random_margin_problem(3, 10.0)
    ridge = ridge_of(C, weight)
    near = solve_margin_dual(K, y, ridge, gap=0.1)
    for deadline in over():
        cold = solve_margin_dual(K, y, ridge, deadline=deadline)
        assert not cold.alpha.any()
        np.testing.assert_array_equal(cold.residual, 1.0)
        warm = solve_margin_dual(K, y, ridge, start=near.alpha, deadline=deadline)
        np.testing.assert_array_equal(warm.alpha, near.alpha)
        assert warm.gap() == pytest.approx(near.gap())


def test_the_margin_dual_looks_at_the_clock_between_calls():
    K, y, ridge = large_problem()
    solve_margin_dual(K[:20, :20].copy(), y[:20], ridge[:20])  # compiled
    begun = perf_counter()
    point = solve_margin_dual(K, y, ridge, work=0.0, deadline=Deadline.after(1e-3))
    assert perf_counter() - begun < 1.5
    assert (point.alpha >= 0.0).all()
    whole = margin_dual.MarginDual.at(K, y, ridge, point.alpha)
    np.testing.assert_allclose(point.residual, whole.residual, atol=1e-6)
    assert point.gap() > 1e-6


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_margin_dual_in_many_calls_is_that_of_one(kind):
    K, y, ridge = large_problem(600, 100.0)
    K = K.astype(kind)
    one = solve_margin_dual(K, y, ridge, gap=1e-6)
    point, calls = margin_dual.MarginDual.at(K, y, ridge), 0
    finished = False
    while not finished:
        point, finished = margin_dual.next_round(point, 1e-6, 0.0, work=0.0)
        calls += 1
    assert calls > 2
    assert point.gap() <= 1e-6 and one.gap() <= 1e-6
    assert point.objectives() == pytest.approx(one.objectives(), rel=2e-6)


def test_the_hinge_dual_leaves_its_start_where_it_is_when_time_is_over():
    for seed in range(10):
        K, y, upper = hinge.random_problem(seed, 10.0)
        best = solve_hinge_dual(K, y, upper)
        for deadline in over():
            cold = solve_hinge_dual(K, y, upper, deadline=deadline)
            assert not cold.alpha.any() and cold.n_updates == 0
            hinge.assert_feasible(y, upper, cold)
            assert cold.dual == 0.0 and cold.primal >= best.dual
            warm = polished(K, y, upper, 0.5 * best.alpha, deadline=deadline)
            hinge.assert_feasible(y, upper, warm)
            np.testing.assert_allclose(warm.alpha, 0.5 * best.alpha, atol=1e-12 * upper.max())


def test_the_hinge_dual_looks_at_the_clock_on_the_way():
    K, y, _ = large_problem()
    upper = np.full(len(y), 1e6)
    solve_hinge_dual(K[:20, :20].copy(), y[:20], upper[:20])  # compiled
    begun = perf_counter()
    result = solve_hinge_dual(K, y, upper, tol=1e-12, deadline=Deadline.after(0.3))
    assert perf_counter() - begun < 6.0
    hinge.assert_feasible(y, upper, result)
    assert result.dual >= 0.0


def test_the_active_set_and_the_interior_point_method_stop_after_a_round():
    _, H, a = random_program(8, ridge=1e-3)
    K, y, upper = hinge.random_problem(3, 10.0)
    box = hinge_dual._Problem(K, y, upper, None, None, False).box
    for deadline in over():
        result = solve_nonnegative(H, a, start=-np.ones(len(a)), deadline=deadline)
        assert result.n_rounds == 1
        assert result.x.min() >= 0.0
        assert result.residual == pytest.approx(kkt_violation(H, a, result.x, 0.0, np.inf))
        beta = solve_interior(box, deadline=deadline)
        assert (beta >= box.lower).all() and (beta <= box.upper).all()


def interrupts(monkeypatch, module, name, after):
    """Let a function of a module raise KeyboardInterrupt when it is called for the nth time."""
    function, calls = getattr(module, name), []

    def interrupted(*arguments, **options):
        calls.append(name)
        if len(calls) > after:
            raise KeyboardInterrupt
        return function(*arguments, **options)

    monkeypatch.setattr(module, name, interrupted)


@pytest.mark.parametrize("after", [0, 1])
def test_an_interrupt_ends_a_solver_that_has_a_deadline_and_no_other(monkeypatch, after):
    K, y, ridge = large_problem(600, 100.0)
    interrupts(monkeypatch, margin_dual, "next_round", after)
    deadline = Deadline()
    point = solve_margin_dual(K, y, ridge, work=0.0, deadline=deadline)
    assert deadline.interrupted
    assert bool(point.alpha.any()) == (after > 0)
    whole = margin_dual.MarginDual.at(K, y, ridge, point.alpha)
    np.testing.assert_allclose(point.residual, whole.residual, atol=1e-9)
    with pytest.raises(KeyboardInterrupt):
        solve_margin_dual(K, y, ridge, work=0.0)


@pytest.mark.parametrize("after", [0, 1])
def test_an_interrupt_leaves_the_hinge_dual_a_feasible_point(monkeypatch, after):
    K, y, upper = hinge.random_problem(4, 1e4, "linear", n_most=60)
    interrupts(monkeypatch, box_ascent, "newton", after)
    deadline = Deadline()
    result = polished(K, y, upper, np.zeros(len(y)), deadline=deadline)
    assert deadline.interrupted
    hinge.assert_feasible(y, upper, result)
    with pytest.raises(KeyboardInterrupt):
        polished(K, y, upper, np.zeros(len(y)))
