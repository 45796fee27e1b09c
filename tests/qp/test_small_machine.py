"""The small machine: one compiled call for the dual of the L2-SVM, against exact references."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from tests.reference.svm import dual_value, l2svm_dual_exact, signed_kernel
from widemargin.loop import Deadline
from widemargin.qp.margin_dual import (
    MarginDual,
    lapack_addresses,
    next_round,
    path_values,
    small,
    solve_all,
    solve_margin_dual,
)

CS = [1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e6]


def _rows(n=60, seed=0, noise=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] * X[:, 1] + noise * rng.normal(size=n) > 0, 1.0, -1.0)


def _optimum(K, sign, C, weight=None):
    Q = signed_kernel(K.astype(np.float64), sign, C, weight)
    alpha = l2svm_dual_exact(Q)
    return -dual_value(Q, alpha), alpha


@pytest.mark.parametrize("C", CS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_over_all_C_the_gap_is_reached_and_encloses_the_optimum(C, dtype, kernel):
    X, sign = _rows()
    K = (rbf_kernel(X, gamma=0.5) if kernel == "rbf" else linear_kernel(X)).astype(dtype)
    if dtype == np.float32:  # positive definite only to its rounding
        K[np.diag_indices(len(K))] += dtype(1e-5)
    ridge = np.full(len(X), 0.5 / C)
    best, _ = _optimum(K, sign, C)
    for gap in (1e-2, 1e-6):
        point = solve_margin_dual(K, sign, ridge, gap=gap)
        primal, dual = point.objectives()
        assert (point.alpha >= 0).all()
        assert point.gap() <= gap or point.kkt_residual() <= 1e-10
        # The reference itself knows so many digits.
        assert dual <= best * (1 + 1e-7)
        assert primal >= best * (1 - 1e-7)
        assert_allclose(primal, best, rtol=2 * gap)


@pytest.mark.parametrize("C", CS)
def test_weights_are_prices(C):
    X, sign = _rows(40)
    weight = np.random.default_rng(1).uniform(0.01, 10.0, size=40)
    K = rbf_kernel(X, gamma=0.5)
    point = solve_margin_dual(K, sign, 0.5 / (C * weight), gap=1e-10)
    best, alpha = _optimum(K, sign, C, weight)
    assert_allclose(point.objectives(), best, rtol=1e-7)
    assert_allclose(point.alpha, alpha, atol=1e-3 * alpha.max())


def test_rows_that_are_there_twice_share_what_one_would_have():
    X, sign = _rows(40)
    K = rbf_kernel(X, gamma=0.5)
    twice = np.repeat(np.arange(40), 2)
    for C in (0.1, 10.0, 1e6):
        point = solve_margin_dual(
            K[np.ix_(twice, twice)], sign[twice], np.full(80, 0.5 / C), gap=1e-9
        )
        once = solve_margin_dual(K, sign, np.full(40, 0.25 / C), gap=1e-9)
        assert_allclose(point.objectives(), once.objectives(), rtol=1e-7)
        shared = point.alpha.reshape(40, 2).sum(axis=1)
        assert_allclose(shared, once.alpha, atol=1e-2 * once.alpha.max())


def test_equal_rows_of_both_signs():
    X, sign = _rows(30)
    K = rbf_kernel(np.vstack([X, X]), gamma=0.5)
    sign = np.concatenate([sign, -sign])
    for C in (1e-3, 1.0, 1e4):
        point = solve_margin_dual(K, sign, np.full(60, 0.5 / C), gap=1e-10)
        # f = 0, and every row is at its price.
        assert_allclose(point.alpha, 2.0 * C, rtol=1e-4)
        assert_allclose(point.objectives(), 60 * C, rtol=1e-9)


@pytest.mark.parametrize("C", CS)
def test_one_row_a_class(C):
    K = np.array([[1.0, 0.3], [0.3, 1.0]])
    point = solve_margin_dual(K, np.array([1.0, -1.0]), np.full(2, 0.5 / C), gap=1e-12)
    # α(1 − 0.3 + 1/2C) = 1 for both; the bias vanishes.
    assert_allclose(point.alpha, 1.0 / (0.7 + 0.5 / C), rtol=1e-6)


def test_one_side_and_one_row():
    for sign in (np.ones(5), -np.ones(5), np.ones(1)):
        n = len(sign)
        K = np.eye(n)
        point = solve_margin_dual(K, sign, np.full(n, 0.5), gap=1e-12)
        assert_allclose(point.alpha, 1.0 / (n + 1.5), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("C", [0.1, 10.0, 1e4])
def test_levels_do_not_change_the_answer(C, dtype):
    # More rows than the smallest part: every second, fourth, ... row comes first.
    X, sign = _rows(1400)
    K = rbf_kernel(X, gamma=0.5).astype(dtype)
    ridge = np.full(len(X), 0.5 / C)
    fresh = solve_margin_dual(K, sign, ridge, gap=1e-6)
    start = np.full(len(X), 1e-3)
    warm = solve_margin_dual(K, sign, ridge, start=start, gap=1e-6)
    assert_allclose(fresh.objectives()[0], warm.objectives()[0], rtol=3e-6)
    assert max(fresh.gap(), warm.gap()) <= 1e-6


def test_a_round_leaves_its_point_and_ends():
    X, sign = _rows(500)
    K = rbf_kernel(X, gamma=0.5)
    point = MarginDual.at(K, sign, np.full(500, 0.5 / 1e3))
    before = point.alpha.copy(), point.residual.copy()
    rounds, finished = 0, False
    reached = [point.objectives()[0]]
    while not finished:
        # Almost no work a call: a Newton step each.
        after, finished = next_round(point, 1e-9, 1e-12, 1.0)
        if not rounds:
            assert_array_equal(point.alpha, before[0])
            assert_array_equal(point.residual, before[1])
        point, rounds = after, rounds + 1
        reached.append(point.objectives()[0])
        assert rounds < 200
    assert rounds > 2
    assert point.gap() <= 1e-9
    again = MarginDual.at(K, sign, point.ridge, point.alpha)
    assert_allclose(point.residual, again.residual, atol=1e-7)


def test_a_gap_beyond_the_digits_ends():
    X, sign = _rows(300)
    for dtype in (np.float32, np.float64):
        K = rbf_kernel(X, gamma=0.5).astype(dtype)
        # Also where each call does one step.
        for work in (1.0, 1e12):
            point = MarginDual.at(K, sign, np.full(300, 0.5 / 1e4))
            for _ in range(200):
                point, finished = next_round(point, 0.0, 0.0, work)
                if finished:
                    break
            assert finished
            assert point.gap() <= 1e-4


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e140, 1e150])
def test_linear_rows_of_any_size_end(scale):
    X, sign = _rows(60)
    X = X[:, :1] * scale
    sign = np.where(X[:, 0] > 0, 1.0, -1.0)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        K = X @ X.T
    point = solve_margin_dual(K, sign, np.full(60, 0.5), gap=1e-3)
    assert np.isfinite(point.alpha).all()
    assert (point.alpha >= 0).all()


def test_no_time_is_the_start():
    X, sign = _rows(50)
    K = rbf_kernel(X, gamma=0.5)
    point = solve_margin_dual(K, sign, np.full(50, 0.5), gap=1e-6, deadline=Deadline.after(0.0))
    assert not point.alpha.any()


def test_what_is_no_kernel_is_named():
    rng = np.random.default_rng(0)
    K = rng.normal(size=(50, 50))
    K = K + K.T
    sign = np.where(rng.uniform(size=50) < 0.5, 1.0, -1.0)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        solve_margin_dual(K, sign, np.full(50, 1e-6), gap=1e-9)


# Several problems in one call.


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_problems_at_once_are_the_problems_one_by_one(dtype):
    X, first = _rows(120)
    rng = np.random.default_rng(2)
    K = rbf_kernel(X, gamma=0.5).astype(dtype)
    code = rng.integers(3, size=120)
    pair = np.array([1.0, 0.0, -1.0])[code]
    one_side = np.array([1.0, 0.0, 0.0])[code]
    nobody = np.zeros(120)
    signs = np.stack([first, pair, one_side, nobody], axis=1)
    weight, C = rng.uniform(0.5, 2.0, size=120), np.array([0.1, 10.0, 1.0, 1.0])
    beta, intercept, proved = np.zeros((120, 4)), np.empty(4), np.empty((4, 4))
    solve_all(K, signs, weight, C, 1e-8, beta, intercept, proved)
    assert not beta[:, 2:].any()
    assert_allclose(intercept[:2], beta.sum(axis=0)[:2], rtol=1e-12)
    # The best constant of one side, and no problem at all.
    total = weight[code == 0].sum()
    assert_allclose(intercept[2:], [2.0 * total / (1.0 + 2.0 * total), 0.0])
    best = _optimum(
        K[np.ix_(code == 0, code == 0)], np.ones((code == 0).sum()), 1.0, weight[code == 0]
    )
    assert proved[2, 1] <= best[0] * (1 + 1e-9) and best[0] <= proved[2, 0] * (1 + 1e-9)
    assert_array_equal(proved[3], [0.0, 0.0, 0.0, small.SOLVED])
    for p in (0, 1):
        own = np.flatnonzero(signs[:, p])
        best, alpha = _optimum(K[np.ix_(own, own)], signs[own, p], C[p], weight[own])
        assert_allclose(proved[p, :2], best, rtol=1e-6)
        assert_allclose(proved[p, 2], np.linalg.norm(beta[:, p]), rtol=1e-12)
        assert proved[p, 3] == small.SOLVED
        assert_allclose(beta[own, p], signs[own, p] * alpha, atol=1e-3 * alpha.max())
        assert not beta[signs[:, p] == 0, p].any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_path_over_C_is_its_machines_at_rows_held_out(dtype):
    X, sign = _rows(150)
    K = rbf_kernel(X, gamma=0.5).astype(dtype)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=150)
    order = np.random.default_rng(1).permutation(150)
    train, held, Cs = np.sort(order[:100]), np.sort(order[100:]), np.array([0.01, 1.0, 50.0])
    values = path_values(K, train, held, sign, weight, Cs, 1e-9)
    assert values.shape == (50, 3)
    for c, C in enumerate(Cs):
        inner = K[np.ix_(train, train)]
        _, alpha = _optimum(inner, sign[train], C, weight[train])
        beta = alpha * sign[train]
        expected = K[np.ix_(held, train)].astype(np.float64) @ beta + beta.sum()
        assert_allclose(values[:, c], expected, atol=1e-3)


def test_there_are_four_addresses():
    found = lapack_addresses()
    assert (found.dtype, found.shape) == (np.uint64, (4,))
    assert len(set(found.tolist())) == 4
    assert lapack_addresses() is found


# The step on the support.


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(4, 40), st.sampled_from([0.1, 10.0, 1000.0]))
def test_a_step_on_the_support_leads_to_a_feasible_solution_on_some_of_it(seed, n, C):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2)).astype(np.float32)
    sign = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    ridge = np.full(n, 0.5 / C)
    Q = np.outer(sign, sign) * (K.astype(np.float64) + 1.0) + np.diag(ridge)
    alpha = np.where(rng.random(n) < 0.6, rng.uniform(0, C, n), 0.0)
    index = np.flatnonzero((alpha > 0) | (rng.random(n) < 0.3))
    if not len(index):
        return
    residual = 1.0 - Q @ alpha
    step = small._best_on(lapack_addresses(), K, sign, ridge, index, alpha, residual)
    assert len(step) == len(index)
    after = alpha[index] + step
    size = np.abs(after).max() + 1.0
    assert (after >= -1e-9 * size).all()
    # On the rows that are not zero nothing is left to gain, but for float32 and what was cut off.
    free = after > 0
    if (~free).sum() <= len(index) // 3:
        best = np.linalg.solve(Q[np.ix_(index[free], index[free])], np.ones(free.sum()))
        assert_allclose(after[free], best, rtol=1e-2, atol=1e-3 * size)


def test_a_path_of_C_is_that_of_each_C_by_itself():
    X, y = make_moons(400, noise=0.3, random_state=0)
    K = np.exp(-2.0 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    sign, weight = np.where(y > 0, 1.0, -1.0), np.ones(400)
    train, held = np.arange(300), np.arange(300, 400)
    Cs = np.array([0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])
    values = path_values(K, train, held, sign, weight, Cs, 1e-6)
    for c, C in enumerate(Cs):
        part = np.ascontiguousarray(K[:300, :300])
        alone = solve_margin_dual(part, sign[train], np.full(300, 0.5 / C), gap=1e-9)
        beta = sign[train] * alone.alpha
        expected = K[np.ix_(held, train)] @ beta + beta.sum()
        close = 4.0 * np.sqrt(1e-6 * alone.objectives()[0])
        assert_allclose(values[:, c], expected, rtol=0, atol=close)
