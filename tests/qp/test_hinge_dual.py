"""The dual of the hinge against scikit-learn, all vertices, and itself."""

from __future__ import annotations

from itertools import product

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
from widemargin.qp import HingeDual, polished, solve_hinge_dual


def joint_value(K, y, V, gram, alpha, gamma):
    """Minus the objective of (7), with all of its variables."""
    beta = y * alpha
    square = beta @ K @ beta + 2.0 * beta @ V @ gamma + gamma @ gram @ gamma
    return float(alpha.sum() - 0.5 * square)


def primal_value(y, upper, f, b, norm2):
    return float(0.5 * norm2 + upper @ np.maximum(0.0, 1.0 - y * (f + b)))


def enumerated_dual(K, y, upper):
    """The best dual over every choice of rows at zero, at their bound, and between.

    Some optimum has free rows whose KKT system is regular, so the least-squares solutions hold it.
    """
    n, best = len(y), 0.0
    for places in product((0, 1, 2), repeat=n):
        place = np.array(places)
        beta = np.where(place == 1, y * upper, 0.0)
        free = np.flatnonzero(place == 2)
        m = len(free)
        if m:
            system = np.ones((m + 1, m + 1))
            system[:m, :m] = K[np.ix_(free, free)]
            system[m, m] = 0.0
            right = np.append((y - K @ beta)[free], -beta.sum())
            beta[free] = np.linalg.lstsq(system, right, rcond=1e-12)[0][:m]
        alpha, rounding = y * beta, 1e-10 * upper
        if (
            (alpha >= -rounding).all()
            and (alpha <= upper + rounding).all()
            and abs(beta.sum()) <= 1e-10 * upper.max()
        ):
            best = max(best, dual_value(K, y, alpha))
    return best


def constrained_machine(X, y, upper, U):
    """Problem (6) of MMDA as it is written, by CVXPY."""
    import cvxpy as cp

    w, b = cp.Variable(X.shape[1]), cp.Variable()
    loss = upper @ cp.pos(1 - cp.multiply(y, X @ w + b))
    limits = [U.T @ w == 0] if U.shape[1] else []
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(w) + loss), limits)
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    return w.value, float(problem.value)


# ---------------------------------------------------------------- against others


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_dual_is_that_of_scikit_learn(kernel):
    n_arrived = 0
    for seed in range(N_PROBLEMS):
        K, y, upper = random_problem(seed, 10.0 ** (seed % 5 - 3), kernel, spread=0.5)
        alpha, machine = svc_alpha(K, y, upper)
        theirs = dual_value(K, y, alpha)
        result = solve_hinge_dual(K, y, upper)
        assert result.dual >= theirs - 1e-9 * abs(theirs), seed
        assert result.gap <= 1e-7, seed
        if machine.fit_status_:
            continue
        n_arrived += 1
        assert result.dual == pytest.approx(theirs, rel=1e-6), seed
        f = K @ (y * result.alpha)
        decision = machine.decision_function(K)
        # The bias is not unique where no row is on its margin; then both lie in one interval.
        if ((result.alpha > 1e-3 * upper) & (result.alpha < 0.999 * upper)).any():
            np.testing.assert_allclose(f + result.intercept, decision, atol=2e-3)
    assert n_arrived > N_PROBLEMS / 2


def test_the_dual_is_the_best_of_all_vertices():
    for seed in range(24):
        kernel = ["rbf", "linear"][seed % 2]
        K, y, upper = random_problem(seed, 10.0 ** (seed % 5 - 2), kernel, n_most=6, spread=0.3)
        best = enumerated_dual(K, y, upper)
        result = solve_hinge_dual(K, y, upper)
        assert result.dual == pytest.approx(best, rel=1e-8), seed
        assert polished(K, y, upper, np.zeros(len(y))).dual == pytest.approx(best, rel=1e-9), seed


@pytest.mark.parametrize("s", [0, 1, 3])
def test_the_machine_is_that_of_the_constrained_problem(s):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(30, 5))
        y = np.where(X @ rng.normal(size=5) + rng.normal(size=30) > 0, 1.0, -1.0)
        upper = 10.0 ** (seed % 4 - 2) * rng.uniform(0.5, 2.0, 30)
        U = rng.normal(size=(5, s))
        w, value = constrained_machine(X, y, upper, U)
        result = solve_hinge_dual(X @ X.T, y, upper, projection=X @ U, gram=U.T @ U)
        ours = X.T @ (y * result.alpha) + U @ result.gamma
        assert result.primal == pytest.approx(value, rel=1e-7)
        np.testing.assert_allclose(ours, w, atol=1e-4 * np.abs(w).max())
        np.testing.assert_allclose(U.T @ ours, 0.0, atol=1e-10 * max(upper))


# ---------------------------------------------------------------- properties


@settings(max_examples=N_PROBLEMS, deadline=None)
@given(seeds, exponents, st.integers(0, 3), st.sampled_from(["rbf", "linear"]))
def test_the_result_is_feasible_optimal_and_knows_its_values(seed, exponent, s, kernel):
    K, y, upper = random_problem(seed, 10.0**exponent, kernel, spread=0.5)
    V, gram = random_directions(K, seed, s)
    result = solve_hinge_dual(K, y, upper, projection=V, gram=gram)
    assert_feasible(y, upper, result)
    beta = y * result.alpha
    f = K @ beta + V @ result.gamma
    # γ at its optimum: w is orthogonal to the directions.
    size = np.abs(V).T @ np.abs(beta) + np.abs(gram) @ np.abs(result.gamma)
    np.testing.assert_allclose((V.T @ beta + gram @ result.gamma) / (1e-300 + size), 0, atol=1e-8)
    large = np.abs(K).max() * result.alpha.sum()
    assert kkt_violation(y, upper, f, result) <= 1e-6 + 1e-11 * large
    norm2 = beta @ f
    primal = primal_value(y, upper, f, result.intercept, norm2)
    assert result.primal == pytest.approx(primal, rel=1e-9, abs=1e-10 * upper.sum() * large)
    joint = joint_value(K, y, V, gram, result.alpha, result.gamma)
    rounding = 1e-14 * (1.0 + result.alpha.sum()) * (large + np.abs(V @ result.gamma).max())
    assert result.dual == pytest.approx(joint, rel=1e-6, abs=rounding)
    assert result.gap <= 1e-6
    assert result.gap == max(0.0, (result.primal - result.dual) / result.primal)


@settings(max_examples=N_PROBLEMS, deadline=None)
@given(seeds, st.floats(-3.0, 3.0), st.integers(1, 3))
def test_the_direct_method_equals_deflation(seed, exponent, s):
    """Proposition 3 of MMDA, for several directions."""
    K, y, upper = random_problem(seed, 10.0**exponent, spread=0.3)
    A = np.random.default_rng(seed).normal(size=(len(K), s))
    values, vectors = np.linalg.eigh(A.T @ K @ A)
    A = A @ vectors[:, values > 1e-9] / np.sqrt(values[values > 1e-9])
    V = K @ A
    deflated = K - V @ V.T
    direct = solve_hinge_dual(K, y, upper, projection=V)
    other = solve_hinge_dual(deflated, y, upper)
    assert direct.dual == pytest.approx(other.dual, rel=1e-7)
    assert dual_value(deflated, y, direct.alpha) == pytest.approx(direct.dual, rel=1e-9)
    # w is unique: both give the same values to all rows. ½‖w − w'‖² is at most the gaps together.
    apart = K @ (y * direct.alpha) + V @ direct.gamma - deflated @ (y * other.alpha)
    reach = np.sqrt(2.0 * (direct.primal * direct.gap + other.primal * other.gap))
    assert np.abs(apart).max() <= 1e-7 + 2.0 * reach
    np.testing.assert_allclose(direct.gamma, -V.T @ (y * direct.alpha), rtol=1e-9, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(seeds, st.floats(-2.0, 2.0))
def test_a_repeated_row_gets_what_one_row_with_its_bounds_together_gets(seed, exponent):
    K, y, upper = random_problem(3 * (seed // 3) + 1, 10.0**exponent, spread=0.3)
    copy = np.repeat(np.arange(len(y)), 2)
    once = solve_hinge_dual(K, y, 2.0 * upper)
    twice = solve_hinge_dual(K[np.ix_(copy, copy)], y[copy], upper[copy])
    assert twice.dual == pytest.approx(once.dual, rel=1e-7)
    together = twice.alpha.reshape(-1, 2).sum(axis=1)
    assert dual_value(K, y, together) == pytest.approx(once.dual, rel=1e-7)


# ---------------------------------------------------------------- hard cases


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("C", [1e-6, 1e-3, 1e3, 1e6])
def test_extreme_bounds_are_solved(kernel, C):
    for seed in range(20):
        K, y, upper = random_problem(seed, C, kernel, n_most=80)
        result = solve_hinge_dual(K, y, upper)
        assert result.gap <= 1.1e-8 + rounding_gap(K, upper, result), seed
        better = polished(K, y, upper, result.alpha)
        assert better.gap <= 1e-11 + rounding_gap(K, upper, better), seed


def test_bounds_of_twelve_decades_in_one_problem_are_solved():
    for seed in range(40):
        K, y, upper = random_problem(seed, 1.0, spread=6.0)
        result = solve_hinge_dual(K, y, upper)
        assert_feasible(y, upper, result)
        assert result.gap <= 1e-7, seed


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_a_kernel_matrix_of_rank_one_is_solved(C):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=30)
        y = np.where(x + 0.5 * (seed % 2) * rng.normal(size=30) > 0, 1.0, -1.0)
        K, upper = np.outer(x, x), np.full(30, C)
        result = solve_hinge_dual(K, y, upper)
        assert result.gap <= 1.1e-8 + rounding_gap(K, upper, result), seed
        better = polished(K, y, upper, result.alpha)
        assert better.gap <= 1e-11 + rounding_gap(K, upper, better), seed


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6])
def test_rows_that_are_all_equal_are_solved(C):
    for K in (np.zeros((7, 7)), np.ones((7, 7)), np.full((7, 7), 1e4)):
        y = np.array([1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
        result = solve_hinge_dual(K, y, np.full(7, C))
        # f + b is one number for all: the larger class wins and the other pays 2 a row.
        assert result.dual == pytest.approx(6.0 * C)
        assert result.gap <= 1e-12
        assert result.intercept == pytest.approx(1.0)


def test_equal_rows_with_opposite_labels_are_solved():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = np.repeat(rng.normal(size=(8, 2)), 2, axis=0)
        K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
        C = 10.0 ** (seed % 13 - 6)
        result = solve_hinge_dual(K, np.tile([1.0, -1.0], 8), np.full(16, C))
        # Nothing can be learnt: f = 0, every row pays 1.
        assert result.dual == pytest.approx(16 * C, rel=1e-9)
        assert result.gap <= 1e-9


def test_directions_that_leave_nothing_of_the_rows_are_solved():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(25, 2))
    y = np.where(X[:, 0] > 0.2, 1.0, -1.0)
    for C in (1e-6, 1.0, 1e6):
        result = solve_hinge_dual(X @ X.T, y, np.full(25, C), projection=X)
        assert result.dual == pytest.approx(2.0 * C * min((y > 0).sum(), (y < 0).sum()), rel=1e-8)
        assert result.gap <= 1e-8


def test_dependent_directions_count_once():
    K, y, upper = random_problem(5)
    V, gram = random_directions(K, 0, 2)
    mix = np.array([[1.0, 0.0, 2.0, 1e-5, 0.0], [0.0, 1.0, -1.0, 0.0, 0.0]])
    once = solve_hinge_dual(K, y, upper, projection=V, gram=gram)
    often = solve_hinge_dual(K, y, upper, projection=V @ mix, gram=mix.T @ gram @ mix)
    assert often.dual == pytest.approx(once.dual, rel=1e-7)
    assert often.gamma.shape == (5,)
    np.testing.assert_allclose(mix @ often.gamma, once.gamma, atol=1e-4)


def test_the_bias_is_in_the_middle_where_no_row_is_on_its_margin():
    x = np.array([-1.0, 1.0])
    result = solve_hinge_dual(np.outer(x, x) * 0.01, x, np.full(2, 1e-3))
    np.testing.assert_array_equal(result.alpha, 1e-3)
    assert result.intercept == pytest.approx(0.0, abs=1e-12)
    assert result.gap <= 1e-12


def test_a_row_with_the_bound_zero_takes_no_part():
    for seed in range(20):
        K, y, upper = random_problem(seed, 1.0)
        gone = np.random.default_rng(seed).random(len(y)) < 0.3
        gone[:2] = False
        kept = np.flatnonzero(~gone)
        part = solve_hinge_dual(np.ascontiguousarray(K[np.ix_(kept, kept)]), y[kept], upper[kept])
        whole = solve_hinge_dual(K, y, np.where(gone, 0.0, upper))
        assert whole.dual == pytest.approx(part.dual, rel=1e-7)
        assert (whole.alpha[gone] == 0.0).all()


def test_a_matrix_that_no_mercer_kernel_makes_does_not_hang():
    rng = np.random.default_rng(0)
    for seed in range(10):
        K = rng.normal(size=(20, 20))
        K += K.T
        y = np.tile([1.0, -1.0], 10)
        result = solve_hinge_dual(K, y, np.full(20, 10.0**seed / 1e3), max_updates=20_000)
        assert result.n_updates <= 20_000
        assert_feasible(y, np.full(20, 10.0**seed / 1e3), result)
        polished(K, y, np.full(20, 1.0), result.alpha)


# ---------------------------------------------------------------- arguments


def test_it_never_makes_more_updates_than_it_may():
    K, y, upper = random_problem(7, 100.0)
    full = solve_hinge_dual(K, y, upper)
    assert full.n_updates > 20 and full.gap <= 1e-8
    duals = []
    for limit in (0, 1, 5, 20):
        result = solve_hinge_dual(K, y, upper, max_updates=limit)
        assert result.n_updates == limit
        assert result.gap > full.gap
        duals.append(result.dual)
    assert duals == sorted(duals) and duals[0] == 0.0


def test_it_starts_where_it_is_told_and_is_never_worse():
    for seed in range(20):
        K, y, upper = random_problem(seed, 1.0)
        optimum = polished(K, y, upper, np.zeros(len(y)))
        again = solve_hinge_dual(K, y, upper, start=optimum.alpha)
        assert again.n_updates == 0
        np.testing.assert_allclose(again.alpha, optimum.alpha, rtol=1e-14, atol=1e-15)
        outside = np.random.default_rng(seed).normal(size=len(y)) * 1e3
        before = outside.copy()
        far = solve_hinge_dual(K, y, upper, start=outside)
        assert far.dual == pytest.approx(optimum.dual, rel=1e-7)
        np.testing.assert_array_equal(outside, before)


def test_float32_wide_and_turned_matrices_are_taken_as_they_are():
    K, y, upper = random_problem(11, 10.0)
    n = len(y)
    own = solve_hinge_dual(K, y, upper)
    wide = np.full((n, n + 9), np.nan)
    wide[:, :n] = K
    inside = solve_hinge_dual(wide, y, upper)
    np.testing.assert_array_equal(inside.alpha, own.alpha)
    np.testing.assert_array_equal(solve_hinge_dual(np.asfortranarray(K), y, upper).alpha, own.alpha)
    small = K.astype(np.float32)
    half, whole = (solve_hinge_dual(k, y, upper) for k in (small, small.astype(np.float64)))
    np.testing.assert_allclose(half.alpha, whole.alpha, atol=1e-9 * upper.max())
    assert solve_hinge_dual(np.eye(2, dtype=int), np.array([1, -1]), np.ones(2)).gap <= 1e-12


def test_it_leaves_the_arguments_as_they_were():
    K, y, upper = random_problem(3)
    V, gram = random_directions(K, 0, 2)
    arguments = (K, y, upper, V, gram)
    copies = [a.copy() for a in arguments]
    for a in arguments:
        a.flags.writeable = False
    result = solve_hinge_dual(K, y, upper, projection=V, gram=gram)
    polished(K, y, upper, result.alpha, projection=V, gram=gram)
    for a, b in zip(arguments, copies, strict=True):
        np.testing.assert_array_equal(a, b)
    assert isinstance(result, HingeDual)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sign": np.ones(3)}, r"sign -1 .* both classes; add"),
        ({"sign": -np.ones(3)}, r"sign \+1 .* both classes; add"),
        ({"upper": np.array([1.0, 0.0, 1.0])}, r"sign -1 has a positive upper"),
        ({"sign": np.array([1.0, 0.0, -1.0])}, r"only \+1 and -1"),
        ({"upper": np.array([1.0, np.inf, 1.0])}, "finite and not negative; use a large C"),
        ({"upper": np.array([1.0, -1.0, 1.0])}, "finite and not negative"),
        ({"upper": np.ones(2)}, r"upper has the shape \(2,\); give \(3,\)"),
        ({"K": np.eye(2)}, r"K has the shape \(2, 2\); give \(3, 3\)"),
        ({"K": np.full((3, 3), np.nan)}, "not finite; remove or replace"),
        ({"projection": np.ones((2, 1))}, r"projection has the shape \(2, 1\); give \(3, s\)"),
        ({"projection": np.ones((3, 1)), "gram": np.eye(2)}, r"gram has .* give \(1, 1\)"),
        ({"start": np.ones(2)}, "3 finite numbers"),
        ({"start": np.full(3, np.nan)}, "3 finite numbers"),
    ],
)
def test_what_cannot_be_solved_is_refused_with_the_remedy(change, message):
    arguments = {"K": np.eye(3), "sign": np.array([1.0, -1.0, 1.0]), "upper": np.ones(3)} | change
    K, sign, upper = (arguments.pop(name) for name in ("K", "sign", "upper"))
    with pytest.raises(ValueError, match=message):
        solve_hinge_dual(K, sign, upper, **arguments)
