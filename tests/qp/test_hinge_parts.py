"""What solves the dual of the hinge: pairs, Newton's steps and the interior point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference.hinge import (
    N_PROBLEMS,
    assert_feasible,
    dual_value,
    exponents,
    kkt_violation,
    random_directions,
    random_problem,
    rounding_gap,
    seeds,
    svc_alpha,
)
from widemargin.loop import Deadline
from widemargin.qp import hinge_dual, pair_loops, polished, solve_hinge_dual
from widemargin.qp.box_newton import BoxProblem, newton
from widemargin.qp.interior_point import solve_interior


@settings(max_examples=N_PROBLEMS, deadline=None)
@given(seeds, exponents, st.sampled_from(["rbf", "linear"]), st.floats(0.0, 1.0))
def test_polish_makes_any_point_exact_and_never_worse(seed, exponent, kernel, noise):
    K, y, upper = random_problem(seed, 10.0**exponent, kernel, spread=0.5)
    rng = np.random.default_rng(seed)
    rough = solve_hinge_dual(K, y, upper, tol=1e-2).alpha + noise * upper * rng.normal(size=len(y))
    before = rough.copy()
    held = solve_hinge_dual(K, y, upper, start=rough, max_updates=0)
    result = polished(K, y, upper, rough)
    np.testing.assert_array_equal(rough, before)
    assert_feasible(y, upper, result)
    large = np.abs(K).max() * result.alpha.sum()
    assert result.dual >= held.dual - 1e-15 * large * (1.0 + result.alpha.sum())
    assert result.gap <= max(held.gap, 1e-13)
    assert result.gap <= 1e-11 + rounding_gap(K, upper, result)
    assert kkt_violation(y, upper, K @ (y * result.alpha), result) <= 1e-9 + 1e-12 * large


# ---------------------------------------------------------------- polishing


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_polish_takes_scikit_learns_solution_to_rounding(kernel):
    few = 0
    for seed in range(N_PROBLEMS):
        K, y, upper = random_problem(seed, 10.0 ** (seed % 5 - 3), kernel, n_most=80)
        alpha, _ = svc_alpha(K, y, upper, tol=1e-3 if seed % 2 else 1e-10)
        result = polished(K, y, upper, alpha)
        assert result.gap <= 1e-12, seed
        assert result.dual >= dual_value(K, y, alpha) * (1.0 - 1e-9), seed
        few += result.n_updates == 0
    assert few > N_PROBLEMS / 4  # the linear system alone was often enough


def test_polish_is_needed_for_a_direction_at_a_small_c():
    K, y, upper = random_problem(1, 1e-6)
    exact = polished(K, y, upper, np.zeros(len(y)))
    again = polished(K, y, upper, exact.alpha)
    np.testing.assert_allclose(again.alpha, exact.alpha, rtol=1e-9)
    loose = solve_hinge_dual(K, y, upper, tol=1e-8)
    np.testing.assert_allclose(K @ (y * loose.alpha), K @ (y * exact.alpha), rtol=1e-4, atol=1e-12)


def test_a_newton_step_solves_for_the_free_variables_and_the_bias():
    K, y, _ = random_problem(4)
    n = len(y)
    box = BoxProblem(K, np.zeros((0, n)), y, np.full(n, -1e9), np.full(n, 1e9))
    beta, error = np.zeros(n), y.copy()
    newton(box, beta, error, Deadline())
    assert abs(beta.sum()) <= 1e-9
    assert np.ptp(y - K @ beta) <= 1e-7
    np.testing.assert_allclose(error, y - K @ beta, atol=1e-7)


def test_a_newton_step_never_goes_uphill_or_outside():
    for seed in range(N_PROBLEMS):
        K, y, upper = random_problem(seed, 10.0 ** (seed % 9 - 4), ["rbf", "linear"][seed % 2])
        n, rng = len(y), np.random.default_rng(seed)
        lower, high = np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0)
        box = BoxProblem(K, np.zeros((0, n)), y, lower, high)
        beta = box.balanced(y * upper * rng.random(n) * (rng.random(n) < 0.7))
        before, error = dual_value(K, y, y * beta), box.error(beta)
        newton(box, beta, error, Deadline())
        assert dual_value(K, y, y * beta) >= before - 1e-12 * abs(before)
        assert (beta >= lower).all() and (beta <= high).all()
        assert abs(beta.sum()) <= 1e-12 * upper.sum()
        np.testing.assert_allclose(error, box.error(beta), atol=1e-11 * (1 + upper.sum()))


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_interior_point_method_comes_close_for_any_bounds(kernel, C):
    for seed in range(20):
        K, y, upper = random_problem(seed, C, kernel, spread=0.5)
        upper[-1] = 0.0
        V, gram = random_directions(K, seed, seed % 3)
        problem = hinge_dual._Problem(K, y, upper, V, gram, False)
        beta = solve_interior(problem.box)
        assert (beta >= problem.box.lower).all() and (beta <= problem.box.upper).all()
        assert abs(beta.sum()) <= 1e-2 * upper.sum()
        optimum = solve_hinge_dual(K, y, upper, projection=V, gram=gram)
        result = problem.solution(problem.box.balanced(beta), 0)
        assert result.dual >= (1.0 - 1e-4) * optimum.dual


def test_the_interior_point_method_rescues_what_pairs_would_take_for_ever_over():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.7 * rng.normal(size=300) > 0, 1.0, -1.0)
    for K in (X @ X.T, np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(-1))):
        result = solve_hinge_dual(K, y, np.full(300, 1e5))
        assert result.gap <= 1e-8 + rounding_gap(K, np.full(300, 1e5), result)
        assert result.n_updates < 100_000


def test_the_interior_point_method_gives_a_factor_what_its_square_gets():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d, s = 40, int(rng.integers(2, 8)), seed % 3
        X, U = rng.normal(size=(n, d)), np.linalg.qr(rng.normal(size=(d, s)))[0]
        y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
        upper = rng.uniform(0.5, 1.0, n) * 10.0 ** (seed % 7 - 3)
        whole = hinge_dual._Problem(X @ X.T, y, upper, X @ U, None, False)
        factored = hinge_dual._Problem(X, y, upper, X @ U, None, True)
        values = [
            problem.solution(problem.box.balanced(solve_interior(problem.box)), 0).dual
            for problem in (whole, factored)
        ]
        assert values[0] == pytest.approx(values[1], rel=1e-5), seed


def test_a_factor_of_few_columns_is_solved_without_a_matrix_of_all_free_rows(monkeypatch):
    rng = np.random.default_rng(0)
    # Features that hardly differ: α of the larger class is anywhere between its bounds.
    F, y = 1e-3 * rng.normal(size=(3000, 5)), np.where(np.arange(3000) % 4, 1.0, -1.0)
    sizes, among = [], BoxProblem.among

    def noted(self, index):
        sizes.append(len(index))
        return among(self, index)

    monkeypatch.setattr(BoxProblem, "among", noted)
    upper = np.ones(3000)
    start = np.where(y > 0, 1.0 / 3.0, 1.0)
    result = solve_hinge_dual(F, y, upper, start=start, tol=1e-12, factored=True)
    assert result.gap <= 1e-9
    assert max(sizes, default=0) <= 200


def test_a_factor_with_large_bounds_is_solved():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 6))
    y = np.where(np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.7 * rng.normal(size=2000) > 0, 1.0, -1.0)
    for C in (1.0, 1e3, 1e5):
        upper = np.full(2000, C)
        result = solve_hinge_dual(X, y, upper, factored=True)
        assert result.gap <= 1.1e-8 + rounding_gap(X @ X.T, upper, result), C


def test_pairs_and_newton_arrive_without_the_interior_point_method():
    for seed in range(20):
        K, y, upper = random_problem(seed, 10.0 ** (seed % 10 - 4), ["rbf", "linear"][seed % 2])
        result = solve_hinge_dual(K, y, upper, interior_after=np.inf)
        assert result.gap <= 1.1e-8 + rounding_gap(K, upper, result), seed


# ---------------------------------------------------------------- the compiled loop


def plain_exchange(Q, y, lower, upper, beta, limit):
    """Pairs by second-order information, looking at everything anew at every step."""
    beta = beta.copy()
    for _ in range(limit):
        error = y - Q @ beta
        i = int(np.argmax(np.where(beta < upper, error, -np.inf)))
        ahead = np.where((beta > lower) & (error < error[i]), error[i] - error, 0.0)
        curvature = np.maximum(Q[i, i] + np.diag(Q) - 2.0 * Q[i], 1e-12)
        j = int(np.argmax(ahead**2 / curvature))
        step = min(ahead[j] / curvature[j], upper[i] - beta[i], beta[j] - lower[j])
        beta[i] += step
        beta[j] -= step
    return beta


@pytest.mark.parametrize("s", [0, 2])
@pytest.mark.parametrize("n", [2, 63, 64, 65, 130])
def test_exchange_moves_the_pairs_of_a_plain_version(n, s):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3))
    y = np.tile([1.0, -1.0], n)[:n]
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    part = 0.1 * rng.normal(size=(s, n)) @ K
    Q = K - part.T @ part
    upper = rng.uniform(0.1, 1.0, n)
    lower, high = np.where(y > 0, 0.0, -upper), np.where(y > 0, upper, 0.0)
    wide = np.full((n, n + 3), np.nan)
    wide[:, :n] = K
    for limit in (0, 1, 2, 25):
        beta, error = np.zeros(n), y.copy()
        box = lower, high, np.zeros(n)
        updates = pair_loops.exchange(
            wide, part, np.diag(Q).copy(), *box, beta, error, 1e-12, 1e-13, limit, False
        )
        assert updates <= limit
        np.testing.assert_allclose(error, y - Q @ beta, atol=1e-12)
        assert (beta >= lower).all() and (beta <= high).all()
        if updates == limit:
            plain = plain_exchange(Q, y, lower, high, np.zeros(n), limit)
            np.testing.assert_allclose(beta, plain, atol=1e-12)


@pytest.mark.parametrize("s", [0, 2])
def test_a_factor_stands_for_its_square(s):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(4, 60)), int(rng.integers(s + 1, 8))
        X = rng.normal(size=(n, d))
        y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
        y[:2] = 1.0, -1.0
        upper = rng.uniform(0.1, 1.0, n) * 10.0 ** rng.uniform(-2, 2)
        U = np.linalg.qr(rng.normal(size=(d, s)))[0]
        options = {"projection": X @ U}
        whole = solve_hinge_dual(X @ X.T, y, upper, tol=1e-12, **options)
        factored = solve_hinge_dual(X, y, upper, tol=1e-12, factored=True, **options)
        assert factored.gap <= 1e-9
        assert factored.primal == pytest.approx(whole.primal, rel=1e-9)
        w = X.T @ (y * factored.alpha) + U @ factored.gamma
        np.testing.assert_allclose(w, X.T @ (y * whole.alpha) + U @ whole.gamma, atol=1e-7)
        rough = np.round(factored.alpha, 3)
        better = polished(X, y, upper, rough, factored=True, **options)
        assert better.primal == pytest.approx(whole.primal, rel=1e-9)
