"""Compiled loops against plain versions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import cholesky

from tests.reference import svm as reference
from tests.reference.qp import (
    N_PROBLEMS,
    kkt_violation,
    random_margin_problem,
    ridge_of,
)
from widemargin.kernels import mirror_loops
from widemargin.qp import margin_loops, pair_loops


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gather_picks_rows_and_columns(dtype):
    rng = np.random.default_rng(0)
    K = rng.normal(size=(20, 27)).astype(dtype)
    for size in (0, 1, 5, 20):
        index = rng.permutation(20)[:size]
        gathered = margin_loops.gather(K, index)
        assert gathered.dtype == dtype
        np.testing.assert_array_equal(gathered, K[np.ix_(index, index)])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", range(10))
def test_combine_sums_rows_of_the_square_part_in_float64(dtype, size):
    rng = np.random.default_rng(size)
    K = np.full((13, 17), np.nan, dtype=dtype)
    K[:, :13] = rng.normal(size=(13, 13))
    index, coef = rng.integers(13, size=size), rng.normal(size=size)
    total = margin_loops.combine(K, index, coef)
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
    mirror_loops.mirror(values, n_old, n)
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
            updates = margin_loops.ascend(wide, y, ridge, diagonal, alpha, residual, 1e-12, limit)
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
            margin_loops.ascend(K, y, ridge, diagonal, alpha, residual, 1e-12, 3)
            after = -reference.dual_value(Q, alpha)
            assert after >= value - 1e-14
            value = after
        updates = margin_loops.ascend(K, y, ridge, diagonal, alpha, residual, 1e-4, 10**6)
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
            updates = pair_loops.pull(
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
    updates = pair_loops.pull(
        K, np.ones(2), ridge, np.full(2, 2.0), weight, product, center, 2.0, 1e-6, 1e-6, 5001
    )
    assert updates == 5001
    plain, _, _ = plain_pull(
        cholesky(Q, lower=True), np.zeros(2), np.array([1.0, 0.0]), 0.0, 1e-3, 1e-3, 5001
    )
    np.testing.assert_allclose(weight, plain, atol=1e-9)
    np.testing.assert_allclose(product, Q @ weight, atol=1e-9)
    assert center[0] == pytest.approx(weight @ Q @ weight, rel=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compress_moves_rows_and_columns_to_the_front_in_place(dtype):
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(30, 30)).astype(dtype)
    for size in (0, 1, 7, 29, 30):
        index = np.sort(rng.permutation(30)[:size])
        values = whole.copy()
        margin_loops.compress(values, index)
        np.testing.assert_array_equal(values[:size, :size], whole[np.ix_(index, index)])
