"""Successive over-relaxation against SciPy's solvers."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.qp import (
    N_PROBLEMS,
    box_oracle,
    kkt_violation,
    nonnegative_oracle,
    random_program,
)
from widemargin.qp import (
    solve_sor,
)

ORDERS = ["greedy", "cyclic"]


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
