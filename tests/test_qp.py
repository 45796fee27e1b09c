"""Small quadratic programs against SciPy, the reference solver, and plain NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import lsq_linear, nnls

from tests.reference import svm as reference
from widemargin.qp import (
    MarginDual,
    _compiled,
    margin,
    solve_margin_dual,
    solve_nonnegative,
    solve_sor,
)

N_PROBLEMS = 120
ORDERS = ["greedy", "cyclic"]


def random_program(seed, ridge=0.3):
    """A positive definite H and a linear term of either sign."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 31))
    A = rng.normal(size=(n, int(rng.integers(1, 2 * n + 1)))) / np.sqrt(n)
    return rng, A @ A.T + ridge * np.eye(n), rng.normal(size=n)


def least_squares_form(H, a):
    """A and b with ½‖Ax − b‖² = ½xᵀHx − aᵀx + constant."""
    factor = cholesky(H, lower=True)
    return factor.T, solve_triangular(factor, a, lower=True)


def nonnegative_oracle(H, a):
    return nnls(*least_squares_form(H, a))[0]


def box_oracle(H, a, lower, upper):
    """SciPy's active-set method for bounded least squares."""
    A, b = least_squares_form(H, a)
    solved = lsq_linear(A, b, bounds=(lower, upper), method="bvls", tol=1e-14, max_iter=2000)
    return solved.x


def kkt_violation(H, a, x, lower, upper):
    r = a - H @ x
    at_lower, at_upper = x <= lower, x >= upper
    r = np.where(at_lower & at_upper, 0.0, r)
    r = np.where(at_lower & ~at_upper, np.maximum(r, 0.0), r)
    r = np.where(at_upper & ~at_lower, np.minimum(r, 0.0), r)
    return np.abs(r).max(initial=0.0)


# ---------------------------------------------------------------- successive over-relaxation


@pytest.mark.parametrize("order", ORDERS)
def test_sor_agrees_with_nnls_for_any_omega_between_0_and_2(order):
    for seed in range(N_PROBLEMS):
        rng, H, a = random_program(seed)
        omega = rng.uniform(0.15, 1.85)
        result = solve_sor(H, a, omega=omega, order=order, tol=1e-10)
        np.testing.assert_allclose(result.x, nonnegative_oracle(H, a), atol=1e-8)
        assert result.x.min() >= 0.0


@pytest.mark.parametrize("order", ORDERS)
def test_sor_agrees_with_bounded_least_squares_on_boxes_with_free_variables(order):
    for seed in range(N_PROBLEMS):
        rng, H, a = random_program(seed)
        n = len(a)
        lower, upper = -rng.uniform(0.0, 0.5, n), rng.uniform(0.01, 0.5, n)
        lower[rng.random(n) < 0.4] = -np.inf
        upper[rng.random(n) < 0.4] = np.inf
        omega = rng.uniform(0.5, 1.7)
        result = solve_sor(H, a, lower=lower, upper=upper, omega=omega, order=order, tol=1e-10)
        np.testing.assert_allclose(result.x, box_oracle(H, a, lower, upper), atol=1e-8)
        assert (result.x >= lower).all() and (result.x <= upper).all()


@pytest.mark.parametrize("order", ORDERS)
def test_sor_without_bounds_solves_the_linear_system(order):
    for seed in range(20):
        _, H, a = random_program(seed)
        result = solve_sor(H, a, lower=-np.inf, order=order, tol=1e-11)
        np.testing.assert_allclose(result.x, np.linalg.solve(H, a), atol=1e-9)


@pytest.mark.parametrize("order", ORDERS)
def test_sor_returns_within_the_kkt_residual_that_was_asked_for(order):
    for seed in range(N_PROBLEMS):
        rng, H, a = random_program(seed)
        n = len(a)
        lower, upper = np.full(n, -0.1), np.full(n, 0.2)
        omega = rng.uniform(0.5, 1.7)
        for tol in (1e-2, 1e-6):
            result = solve_sor(H, a, lower=lower, upper=upper, omega=omega, order=order, tol=tol)
            true = kkt_violation(H, a, result.x, lower, upper)
            assert result.residual == pytest.approx(true, abs=1e-12)
            assert true <= tol + 1e-12, f"seed {seed}, tol {tol}"


@pytest.mark.parametrize("order", ORDERS)
def test_sor_starts_where_it_is_told_and_does_nothing_at_the_optimum(order):
    _, H, a = random_program(11)
    optimum = nonnegative_oracle(H, a)
    near = solve_sor(H, a, start=optimum, order=order, tol=1e-8)
    assert near.n_updates <= (0 if order == "greedy" else len(a))  # one sweep
    np.testing.assert_allclose(near.x, optimum, atol=1e-14)
    far = solve_sor(H, a, start=np.full(len(a), -5.0), order=order, tol=1e-10)
    np.testing.assert_allclose(far.x, optimum, atol=1e-8)


@pytest.mark.parametrize("order", ORDERS)
def test_sor_never_makes_more_updates_than_it_may(order):
    _, H, a = random_program(5, ridge=1e-3)
    assert solve_sor(H, a, lower=-np.inf, order=order, tol=1e-12).n_updates > 60
    for limit in (0, 1, 7, 50):
        result = solve_sor(H, a, lower=-np.inf, order=order, tol=1e-12, max_updates=limit)
        assert result.n_updates == limit
        assert result.residual == pytest.approx(np.abs(a - H @ result.x).max())


def test_sor_leaves_the_arguments_as_they_were():
    _, H, a = random_program(7)
    start, copies = np.ones(len(a)), (H.copy(), a.copy())
    solve_sor(H, a, start=start)
    assert (start == 1.0).all()
    np.testing.assert_array_equal(H, copies[0])
    np.testing.assert_array_equal(a, copies[1])


@pytest.mark.parametrize("omega", [0.0, 2.0, -1.0, 2.5, np.nan])
def test_sor_refuses_an_omega_that_does_not_converge(omega):
    with pytest.raises(ValueError, match=r"omega=.* between 0 and 2"):
        solve_sor(np.eye(2), np.ones(2), omega=omega)


def test_sor_refuses_an_unknown_order_and_a_diagonal_that_is_not_positive():
    with pytest.raises(ValueError, match='order=\'random\' must be "greedy" or "cyclic"'):
        solve_sor(np.eye(2), np.ones(2), order="random")
    with pytest.raises(ValueError, match="positive diagonal"):
        solve_sor(np.diag([1.0, 0.0]), np.ones(2))


# ---------------------------------------------------------------- the active set


def starts_of(rng, optimum):
    """Cold, warm, and hostile: the wrong half exactly, nothing, noise."""
    n = len(optimum)
    return {
        "cold": None,
        "warm": np.maximum(0.0, optimum + 1e-6 * (rng.random(n) - 0.5)),
        "the wrong support": (optimum <= 0).astype(float),
        "nothing": np.zeros(n),
        "negative": -np.ones(n),
        "noise": rng.normal(size=n),
    }


def test_active_set_agrees_with_nnls_from_any_start():
    for seed in range(N_PROBLEMS):
        rng, H, a = random_program(seed, ridge=0.01)
        oracle = nonnegative_oracle(H, a)
        for name, start in starts_of(rng, oracle).items():
            result = solve_nonnegative(H, a, start=start)
            np.testing.assert_allclose(result.x, oracle, atol=1e-7, err_msg=name)
            assert result.residual <= 1e-8, (seed, name)
            true = kkt_violation(H, a, result.x, 0.0, np.inf)
            assert result.residual == pytest.approx(true, abs=1e-12)
            assert result.x.min() >= 0.0


def test_active_set_agrees_with_bounded_least_squares_on_boxes_from_any_start():
    for seed in range(N_PROBLEMS):
        rng, H, a = random_program(seed, ridge=0.1)
        n = len(a)
        upper = rng.uniform(0.01, 0.5, n)
        upper[rng.random(n) < 0.3] = np.inf
        oracle = box_oracle(H, a, 0.0, upper)
        starts = {**starts_of(rng, oracle), "all at the top": np.full(n, 9.0), "there": oracle}
        for name, start in starts.items():
            result = solve_nonnegative(H, a, upper=upper, start=start)
            np.testing.assert_allclose(result.x, oracle, atol=1e-7, err_msg=name)
            true = kkt_violation(H, a, result.x, 0.0, upper)
            assert result.residual == pytest.approx(true, abs=1e-12)
            assert result.residual <= 1e-8, (seed, name)
            assert (result.x >= 0.0).all()
            assert (result.x <= upper).all()
        assert (oracle >= upper).any() or seed % 10 or n < 5


def test_active_set_with_bounds_out_of_reach_is_that_without():
    for seed in range(20):
        _, H, a = random_program(seed)
        free = solve_nonnegative(H, a)
        for upper in (np.full(len(a), np.inf), np.full(len(a), 2.0 * free.x.max() + 1.0)):
            np.testing.assert_allclose(solve_nonnegative(H, a, upper=upper).x, free.x, atol=1e-12)


def test_active_set_knows_its_place_in_the_box_when_it_starts_there():
    for seed in range(20):
        rng, H, a = random_program(seed)
        upper = rng.uniform(0.05, 0.3, len(a))
        optimum = solve_nonnegative(H, a, upper=upper)
        again = solve_nonnegative(H, a, upper=upper, start=optimum.x)
        assert again.n_rounds == 1
        np.testing.assert_allclose(again.x, optimum.x, atol=1e-12)


def test_active_set_agrees_with_the_reference_dual():
    for seed in range(N_PROBLEMS):
        K, y, C, weight = random_margin_problem(seed, C=10.0 ** (seed % 7 - 3))
        Q = reference.signed_kernel(K, y, C, weight)
        oracle = reference.l2svm_dual_exact(Q)
        result = solve_nonnegative(Q)
        assert result.residual <= 1e-8 * max(1.0, oracle.max())
        best = reference.dual_value(Q, oracle)
        assert reference.dual_value(Q, result.x) == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("ridge", [1e-6, 1e-10])
def test_active_set_gives_repeated_rows_together_what_one_row_of_their_weight_gets(ridge):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(3, 9))
        X, y = 2.0 * rng.normal(size=(n, 2)), rng.choice([-1.0, 1.0], n)
        inner = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)) + 1.0
        merged = inner * np.outer(y, y) + ridge / 3 * np.eye(n)
        oracle = nonnegative_oracle(merged, np.ones(n))
        copy = np.repeat(np.arange(n), 3)
        Q = (inner * np.outer(y, y))[np.ix_(copy, copy)] + ridge * np.eye(3 * n)
        for start in (None, np.zeros(3 * n), rng.normal(size=3 * n)):
            result = solve_nonnegative(Q, start=start)
            assert result.residual <= 1e-8
            # The objective and not α: to the tolerance copies may share in many ways.
            together = result.x.reshape(n, 3).sum(1)
            best = reference.dual_value(merged, oracle)
            assert reference.dual_value(merged, together) == pytest.approx(best, rel=1e-8)


def test_active_set_takes_equal_rows_with_opposite_labels():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 10))
        X = np.repeat(rng.normal(size=(n, 2)), 2, axis=0)
        y = np.tile([-1.0, 1.0], n)
        K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
        Q = (K + 1.0) * np.outer(y, y) + 1e-6 * np.eye(2 * n)
        result = solve_nonnegative(Q, start=rng.normal(size=2 * n))
        assert result.residual <= 1e-8
        # α = 1/ridge everywhere makes f = 0, where every residual vanishes.
        np.testing.assert_allclose(result.x, 1e6, rtol=1e-6)


def test_active_set_says_when_it_ran_out_of_rounds():
    rng, H, a = random_program(3, ridge=1e-3)
    full = solve_nonnegative(H, a, start=rng.normal(size=len(a)))
    assert full.n_rounds > 2
    short = solve_nonnegative(H, a, start=(full.x <= 0).astype(float), max_rounds=1)
    assert short.n_rounds == 1
    assert short.residual > 1e-3
    assert short.x.min() >= 0.0


def test_active_set_starts_warm_in_one_round():
    for seed in range(20):
        _, H, a = random_program(seed)
        optimum = nonnegative_oracle(H, a)
        assert solve_nonnegative(H, a, start=optimum).n_rounds == 1


def test_active_set_says_what_to_do_about_an_indefinite_matrix():
    with pytest.raises(ValueError, match=r"not positive definite: the kernel .* C "):
        solve_nonnegative(np.array([[1.0, 2.0], [2.0, 1.0]]))


# ---------------------------------------------------------------- the margin dual


def random_margin_problem(seed, C):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 41))
    X = rng.normal(size=(n, int(rng.integers(1, 5))))
    y = np.where(X[:, 0] + rng.normal(size=n) * rng.choice([0.0, 0.5, 3.0]) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    K = np.exp(-rng.uniform(0.5, 5.0) * ((X[:, None] - X[None]) ** 2).sum(-1))
    weight = rng.uniform(0.1, 3.0, n)
    return K, y, C, weight


def ridge_of(C, weight):
    return 1.0 / (2.0 * C * weight)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("small_working_sets", [False, True])
def test_margin_dual_is_solved_for_c_over_twelve_decades(dtype, small_working_sets, monkeypatch):
    if small_working_sets:
        monkeypatch.setattr(margin, "_FIRST", 6)
        monkeypatch.setattr(margin, "_LEAST", 2)
    for seed in range(104):
        C = 10.0 ** (seed % 13 - 6)
        K, y, C, weight = random_margin_problem(seed, C)
        K = K.astype(dtype)
        if C > 1e3:  # float32 values are positive definite only to their rounding
            K[np.diag_indices(len(K))] += dtype(1e-5)
        Q = reference.signed_kernel(K, y, C, weight)
        optimum = reference.l2svm_dual_exact(Q)
        point = solve_margin_dual(K, y, ridge_of(C, weight))
        best = reference.dual_value(Q, optimum)
        assert reference.dual_value(Q, point.alpha) == pytest.approx(best, rel=1e-10), seed
        assert point.alpha.min() >= 0.0
        scale = optimum.max()
        np.testing.assert_allclose(point.alpha, optimum, atol=1e-5 * scale)


def test_margin_dual_stops_at_the_gap_that_was_asked_for():
    updates = []
    for gap in (0.5, 1e-2, 1e-5):
        for seed in range(30):
            K, y, C, weight = random_margin_problem(seed, 3.0)
            point = solve_margin_dual(K, y, ridge_of(C, weight), gap=gap)
            Q = reference.signed_kernel(K, y, C, weight)
            beta = y * point.alpha
            primal = reference.l2svm_objective_primal(K, y, C, weight, beta, beta.sum())
            optimum = -reference.dual_value(Q, reference.l2svm_dual_exact(Q))
            assert (primal - optimum) / primal <= gap
            updates.append(point.gap())
    assert max(updates) > 1e-3  # it did stop early where it could


def test_margin_dual_starts_warm_from_another_c():
    for seed in range(30):
        K, y, C, weight = random_margin_problem(seed, 1.0)
        before = solve_margin_dual(K, y, ridge_of(C, weight)).alpha
        kept = before.copy()
        warm = solve_margin_dual(K, y, ridge_of(50.0, weight), start=before)
        np.testing.assert_array_equal(before, kept)
        oracle = reference.l2svm_dual_exact(reference.signed_kernel(K, y, 50.0, weight))
        np.testing.assert_allclose(warm.alpha, oracle, atol=1e-7 * oracle.max())
        again = solve_margin_dual(K, y, ridge_of(50.0, weight), start=warm.alpha, gap=1e-9)
        np.testing.assert_array_equal(again.alpha, warm.alpha)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_margin_dual_does_not_look_beyond_the_square(dtype, monkeypatch):
    for first in (768, 6):
        monkeypatch.setattr(margin, "_FIRST", first)
        monkeypatch.setattr(margin, "_LEAST", 2)
        for seed in range(15):
            K, y, C, weight = random_margin_problem(seed, 10.0)
            K = K.astype(dtype)
            wide = np.full((len(K), len(K) + 9), np.nan, dtype=dtype)
            wide[:, : len(K)] = K
            own = solve_margin_dual(K, y, ridge_of(C, weight))
            inside = solve_margin_dual(wide, y, ridge_of(C, weight))
            np.testing.assert_array_equal(inside.alpha, own.alpha)
            np.testing.assert_array_equal(inside.residual, own.residual)


def test_margin_dual_of_many_rows_is_optimal_by_its_own_kkt_conditions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1800, 3))
    y = np.where(np.sin(2 * X[:, 0]) + X[:, 1] > 0, 1.0, -1.0)
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
    point = solve_margin_dual(K, y, np.full(1800, 0.05), tol=1e-9)
    Q = reference.signed_kernel(K, y, 10.0)
    assert np.count_nonzero(point.alpha) < 900  # so that it was solved on working sets
    assert kkt_violation(Q, np.ones(1800), point.alpha, 0.0, np.inf) <= 1e-7


@pytest.mark.parametrize("off_diagonal", [-2.0, -5.0])
def test_margin_dual_says_what_to_do_about_a_kernel_that_is_not_mercers(off_diagonal):
    K = np.array([[-0.3, off_diagonal], [off_diagonal, -0.3]])
    with pytest.raises(ValueError, match=r"the kernel .* C "):
        solve_margin_dual(K, np.ones(2), np.full(2, 1e-8))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_objectives_are_those_of_the_svm(dtype):
    for seed in range(N_PROBLEMS):
        rng = np.random.default_rng(seed)
        K, y, C, weight = random_margin_problem(seed, 10.0 ** rng.uniform(-2, 2))
        K = K.astype(dtype)
        alpha = rng.random(len(y)) * (rng.random(len(y)) < 0.5)
        point = MarginDual.at(K, y, ridge_of(C, weight), alpha)
        Q = reference.signed_kernel(K, y, C, weight)
        beta, K64 = y * alpha, K.astype(np.float64)
        primal, dual = point.objectives()
        plain = reference.l2svm_objective_primal(K64, y, C, weight, beta, beta.sum())
        assert primal == pytest.approx(plain, rel=1e-11)
        assert dual == pytest.approx(-reference.dual_value(Q, alpha), rel=1e-11, abs=1e-11)
        np.testing.assert_allclose(point.residual, 1.0 - Q @ alpha, atol=1e-11 * (1 + 1 / C))
        np.testing.assert_allclose(point.margin(), y * (K64 @ beta + beta.sum()), atol=1e-11)
        assert point.gap() == pytest.approx(max(0.0, (plain - dual) / plain), abs=1e-11)
        violation = kkt_violation(Q, np.ones(len(y)), alpha, 0.0, np.inf)
        assert point.kkt_residual() == pytest.approx(violation, rel=1e-10)


# ---------------------------------------------------------------- compiled loops


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gather_picks_rows_and_columns(dtype):
    rng = np.random.default_rng(0)
    K = rng.normal(size=(20, 27)).astype(dtype)
    for size in (0, 1, 5, 20):
        index = rng.permutation(20)[:size]
        gathered = _compiled.gather(K, index)
        assert gathered.dtype == dtype
        np.testing.assert_array_equal(gathered, K[np.ix_(index, index)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", range(10))
def test_combine_sums_rows_of_the_square_part_in_float64(dtype, size):
    rng = np.random.default_rng(size)
    K = np.full((13, 17), np.nan, dtype=dtype)
    K[:, :13] = rng.normal(size=(13, 13))
    index, coef = rng.integers(13, size=size), rng.normal(size=size)
    total = _compiled.combine(K, index, coef)
    assert total.dtype == np.float64
    plain = coef @ K[index, :13].astype(np.float64) if size else np.zeros(13)
    np.testing.assert_allclose(total, plain, atol=1e-13)


@pytest.mark.parametrize(("n_old", "n"), [(1, 2), (31, 33), (32, 64), (40, 41), (70, 150), (5, 99)])
def test_mirror_completes_a_symmetric_matrix_and_touches_nothing_else(n_old, n):
    rng = np.random.default_rng(n)
    square = rng.normal(size=(n, n))
    square += square.T
    values = np.full((n + 3, n + 3), np.nan)
    values[:n_old, :n_old] = square[:n_old, :n_old]
    values[n_old:n, :n] = square[n_old:]
    _compiled.mirror(values, n_old, n)
    np.testing.assert_array_equal(values[:n, :n], square)
    assert np.isnan(values[n:]).all() and np.isnan(values[:, n:]).all()


def plain_ascent(Q, alpha, limit):
    """Greedy coordinate ascent that looks at everything anew at every step."""
    alpha = alpha.copy()
    for _ in range(limit):
        t = (1.0 - Q @ alpha) / np.diag(Q)
        s = np.maximum(t, -alpha)
        best = int(np.argmax(s * (2.0 * t - s)))
        alpha[best] += s[best]
    return alpha


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 63, 64, 65, 130])
def test_ascend_makes_the_greedy_steps_of_a_plain_version(dtype, n):
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)).astype(dtype)
    y, ridge = rng.choice([-1.0, 1.0], n), rng.uniform(0.05, 0.3, n)
    Q = (K.astype(np.float64) + 1.0) * np.outer(y, y) + np.diag(ridge)
    wide = np.full((n, n + 3), np.nan, dtype=dtype)
    wide[:, :n] = K
    for start in (np.zeros(n), rng.random(n)):
        for limit in (0, 1, 2, 25):
            alpha, residual = start.copy(), 1.0 - Q @ start
            diagonal = np.diag(Q).copy()
            updates = _compiled.ascend(wide, y, ridge, diagonal, alpha, residual, 1e-12, limit)
            assert updates <= limit
            np.testing.assert_allclose(residual, 1.0 - Q @ alpha, atol=1e-12)
            assert alpha.min() >= 0.0
            if updates == limit:
                np.testing.assert_allclose(alpha, plain_ascent(Q, start, limit), atol=1e-12)


def test_ascend_stops_at_its_tolerance_and_never_lowers_the_dual():
    for seed in range(N_PROBLEMS):
        K, y, C, weight = random_margin_problem(seed, 1.0)
        Q = reference.signed_kernel(K, y, C, weight)
        ridge, diagonal = ridge_of(C, weight), np.diag(Q).copy()
        alpha, residual = np.zeros(len(y)), np.ones(len(y))
        value = 0.0
        for _ in range(5):
            _compiled.ascend(K, y, ridge, diagonal, alpha, residual, 1e-12, 3)
            after = -reference.dual_value(Q, alpha)
            assert after >= value - 1e-14
            value = after
        updates = _compiled.ascend(K, y, ridge, diagonal, alpha, residual, 1e-4, 10**6)
        assert updates < 10**6
        change = kkt_violation(Q, np.ones(len(y)), alpha, 0.0, np.inf)
        assert change <= 1e-4 * diagonal.max() / diagonal.min()


def plain_pull(points, extra2, weight, spare, radius, reach, limit):
    """Algorithm 2 of BVM on explicit vectors, the furthest point first, every distance anew."""
    weight = weight.copy()
    updates = 0
    while True:
        center = weight @ points
        distance2 = ((points - center) ** 2).sum(1) + extra2 + spare**2
        far = int(np.argmax(distance2))
        if distance2[far] <= reach**2 or updates == limit:
            return weight, spare, updates
        beta = np.sqrt((radius**2 - extra2[far]) / (distance2[far] - extra2[far]))
        weight *= beta
        weight[far] += 1.0 - beta
        spare *= beta
        updates += 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("spare", [0.0, 0.7])
def test_pull_makes_the_moves_of_a_plain_version(dtype, spare):
    for seed in range(26):
        rng = np.random.default_rng(seed)
        n = int(rng.choice([2, 17, 64, 70, 129]))
        X = rng.normal(size=(n, 2))
        K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1)).astype(dtype)
        y, ridge = rng.choice([-1.0, 1.0], n), rng.uniform(0.1, 0.5, n)
        Q = (K.astype(np.float64) + 1.0) * np.outer(y, y) + np.diag(ridge)
        points = cholesky(Q, lower=True)
        diagonal = np.diag(Q).copy()
        eta = diagonal.max() * (1.0 + 0.1 * (seed % 2))
        radius, reach = np.sqrt(eta) * 0.98, 1.01 * np.sqrt(eta) * 0.98
        start = np.zeros(n)
        start[0] = 1.0
        wide = np.full((n, n + 5), np.nan, dtype=dtype)
        wide[:, :n] = K
        for limit in (0, 1, 30):
            weight, product = start.copy(), Q @ start
            center = np.array([start @ product, spare**2])
            updates = _compiled.pull(
                wide, y, ridge, diagonal, weight, product, center, eta, radius**2, reach**2, limit
            )
            plain = plain_pull(points, eta - diagonal, start, spare, radius, reach, limit)
            np.testing.assert_allclose(weight, plain[0], atol=1e-10)
            assert updates == plain[2]
            assert center[1] == pytest.approx(plain[1] ** 2, abs=1e-10)
            assert center[0] == pytest.approx(weight @ Q @ weight, rel=1e-10)
            np.testing.assert_allclose(product, Q @ weight, atol=1e-10)
            assert weight.sum() == pytest.approx(1.0)


def test_pull_survives_a_common_factor_that_would_underflow():
    Q = np.array([[2.0, 0.3], [0.3, 2.0]])
    K, ridge = Q - 1.0 - 0.1 * np.eye(2), np.full(2, 0.1)
    weight = np.array([1.0, 0.0])
    product, center = Q @ weight, np.array([2.0, 0.0])
    # No ball is that small: the centre jumps back and forth and the factor falls for ever.
    updates = _compiled.pull(
        K, np.ones(2), ridge, np.full(2, 2.0), weight, product, center, 2.0, 1e-6, 1e-6, 5001
    )
    assert updates == 5001
    plain, _, _ = plain_pull(
        cholesky(Q, lower=True), np.zeros(2), np.array([1.0, 0.0]), 0.0, 1e-3, 1e-3, 5001
    )
    np.testing.assert_allclose(weight, plain, atol=1e-9)
    np.testing.assert_allclose(product, Q @ weight, atol=1e-9)
    assert center[0] == pytest.approx(weight @ Q @ weight, rel=1e-9)
