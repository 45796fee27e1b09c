"""The active-set method against SciPy's solvers and the dual of the SVM."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference import svm as reference
from tests.reference.qp import (
    N_PROBLEMS,
    box_oracle,
    kkt_violation,
    nonnegative_oracle,
    random_margin_problem,
    random_program,
)
from widemargin.qp import (
    solve_nonnegative,
)


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
