"""The dual of the squared hinge, for any C."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference import svm as reference
from tests.reference.qp import (
    N_PROBLEMS,
    kkt_violation,
    random_margin_problem,
    ridge_of,
)
from widemargin.qp import MarginDual, solve_margin_dual
from widemargin.qp.margin_dual import next_round


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_margin_dual_is_solved_for_c_over_twelve_decades(dtype):
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
def test_margin_dual_does_not_look_beyond_the_square(dtype):
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
    assert np.count_nonzero(point.alpha) < 900
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
        assert point.gap() == pytest.approx(np.clip((plain - dual) / plain, 0, 1), abs=1e-11)
        violation = kkt_violation(Q, np.ones(len(y)), alpha, 0.0, np.inf)
        assert point.kkt_residual() == pytest.approx(violation, rel=1e-10)


def test_a_round_leaves_the_point_before_it_as_it_was():
    K, y, C, weight = random_margin_problem(4, 10.0)
    point = MarginDual.at(K, y, ridge_of(C, weight))
    for gap in (0.5, 1e-2, 1e-6, 0.0):
        alpha, residual = point.alpha.copy(), point.residual.copy()
        after, _ = next_round(point, gap, 1e-10)
        np.testing.assert_array_equal(point.alpha, alpha)
        np.testing.assert_array_equal(point.residual, residual)
        assert after.objectives()[1] >= point.objectives()[1] * (1 - 1e-12)
        point = after
