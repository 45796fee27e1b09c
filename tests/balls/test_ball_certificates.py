"""What the certificates of balls promise, and machines orthogonal to given directions."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from tests.reference import balls as reference
from tests.reference import kernels as plain_kernels
from tests.reference import svm
from tests.reference.ball_problems import (
    EPSILONS,
    N_PROBLEMS,
    SMALL_STEPS,
    Case,
    alpha_of,
    exact_radius2,
    exact_value,
    primal_of,
    problem,
    solved,
    stated_problem,
)
from widemargin.balls import FixedRadiusBall, MinimumBall
from widemargin.kernels import make_kernel
from widemargin.loop import Limits

# ---------------------------------------------------------------- directions


METHODS = {
    "exact": MinimumBall(1e-9),
    "sor": MinimumBall(1e-9, None, "sor"),
}


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("grow", ["batch", "one"])
def test_the_machine_is_orthogonal_to_given_directions_and_the_best_such(name, grow):
    for seed in range(N_PROBLEMS):
        s = 1 + seed % 3
        p = problem(seed, s)
        solver, result = solved(p, METHODS[name], growth=grow, tol=1e-8)
        assert result.converged
        machines = solver.machines(result.state)
        found, gamma = machines.expansion, machines.gamma[0]
        vectors, coef = p.directions
        values = plain_block(p, vectors, found.vectors) @ found.coef[:, 0]
        normal = coef @ (values + plain_block(p, vectors, vectors) @ coef.T @ gamma)
        assert np.abs(normal).max() <= 1e-8
        assert result.certificate.dual == pytest.approx(exact_value(seed, s), rel=1e-7)
        alpha = alpha_of(result.state, len(p.y))
        # f of the machine as handed out is that of the deflated problem
        f = plain_block(p, p.problem.rows.X, found.vectors) @ found.coef + found.intercept
        f += (p.P @ gamma)[:, None]
        ridge = 1.0 / (2.0 * p.problem.C[0] * p.problem.weight)
        np.testing.assert_allclose(p.y * f[:, 0] + ridge * alpha, p.deflated @ alpha, atol=1e-7)


def plain_block(p: Case, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    kernel = p.problem.kernel
    names = ("gamma", "degree", "coef0")
    parameters = {name: getattr(kernel, name) for name in names if hasattr(kernel, name)}
    return plain_kernels.block(kernel.name, A, B, **parameters)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", ["exact", "sor", "fixed radius"])
def test_constrained_balls_keep_the_same_bounds(epsilon, kind):
    for seed in range(0, N_PROBLEMS, 3):
        s = 1 + seed % 3
        p = problem(seed, s)
        radius2 = exact_radius2(seed, s)
        if kind == "fixed radius":
            _, result = solved(p, FixedRadiusBall(epsilon), growth="batch")
            own2 = result.state.balls[0].fixed_radius2
            assert radius2 * (1 - 1e-7) <= own2 <= p.eta * (1 + 1e-12)
        else:
            _, result = solved(p, MinimumBall(1e-3, epsilon, kind))
            own2 = result.state.balls[0].radius2(p.eta)
            assert own2 <= radius2 * (1 + 1e-6)
            assert radius2 <= (1 + epsilon) ** 2 * own2 * (1 + 1e-9)
        assert result.converged
        far = p.distance(alpha_of(result.state, len(p.y))).max()
        assert far <= (1 + epsilon) * np.sqrt(own2) * (1 + 1e-9)


def test_directions_change_the_answer():
    changed = 0
    for seed in range(0, N_PROBLEMS, 3):
        changed += exact_value(seed, 1 + seed % 3) > exact_value(seed) * (1 + 1e-6)
    assert changed > 20


# ---------------------------------------------------------------- the certificate


WAYS = {
    "core, batch": (MinimumBall(1e-3), "batch"),
    "core, one": (MinimumBall(1e-3), "one"),
    "core, one, sor": (MinimumBall(1e-3, None, "sor"), "one"),
    "ball, batch": (FixedRadiusBall(0.0), "batch"),
    "ball, one": (FixedRadiusBall(0.0), "one"),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("way", WAYS)
def test_certificate_never_promises_more_than_the_truth(way, dtype):
    method, grow = WAYS[way]
    stopped_early = 0
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        # Some run to a gap, some are cut off: the certificate must hold at any state.
        limits = Limits(max_iter=(1, 2, 4, 200)[seed % 4])
        fine = 1e-5 if isinstance(method, MinimumBall) else 1e-2  # balls' last digits come slowly
        tol = (1e-1, 1e-3, fine)[seed % 3]
        room = {"max_vectors": None if seed % 5 else len(p.y) // 2, "sizes": SMALL_STEPS}
        solver, result = solved(p, method, limits, growth=grow, tol=tol, dtype=dtype, **room)
        certificate = result.certificate
        assert certificate.scope == "full"
        best = exact_value(seed)
        primal = primal_of(p, solver, result.state)
        true_gap = (primal - best) / primal
        assert certificate.gap >= true_gap - 1e-12, (seed, certificate.gap, true_gap)
        rough = 1e-12 if dtype == np.float64 else 1e-3
        assert certificate.primal == pytest.approx(primal, rel=max(rough, 1e-10))
        assert certificate.dual <= best * (1 + rough)
        assert certificate.gap >= (certificate.primal - certificate.dual) / certificate.primal
        alpha = alpha_of(result.state, len(p.y))
        true_eps = p.distance(alpha).max() / np.sqrt(exact_radius2(seed)) - 1
        assert certificate.eps >= true_eps - 1e-7, (seed, certificate.eps, true_eps)
        assert certificate.n_vectors == np.count_nonzero(alpha)
        assert result.converged == (certificate.gap <= tol)
        stopped_early += not result.converged
    assert stopped_early > 10


@pytest.mark.parametrize("way", WAYS)
def test_certificate_holds_with_directions(way):
    method, grow = WAYS[way]
    for seed in range(0, N_PROBLEMS, 3):
        s = 1 + seed % 3
        p = problem(seed, s)
        limits = Limits(max_iter=(1, 3, 300)[seed % 3])
        solver, result = solved(p, method, limits, growth=grow, tol=1e-4)
        best, primal = exact_value(seed, s), primal_of(p, solver, result.state)
        assert result.certificate.primal == pytest.approx(primal, rel=1e-8)
        assert result.certificate.gap >= (primal - best) / primal - 1e-12
        alpha = alpha_of(result.state, len(p.y))
        true_eps = p.distance(alpha).max() / np.sqrt(exact_radius2(seed, s)) - 1
        assert result.certificate.eps >= true_eps - 1e-7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_certificate_holds_for_widely_spread_rows(dtype):
    # Float32 squared distances of rows far apart from each other are off by more than a roundoff.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = 30
        X = rng.normal(size=(n, 3)) + 300.0 * rng.choice([-1.0, 1.0], (n, 1))
        code = rng.integers(2, size=n)
        code[:2] = 0, 1
        y = np.array([-1.0, 1.0])[code]
        stated = stated_problem(X, code, np.ones(n), 3.0, make_kernel("rbf", gamma=0.5))
        K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
        Q = svm.signed_kernel(K, y, 3.0)
        p = Case(stated, y, K, Q, None)
        solver, result = solved(p, MinimumBall(1e-3), growth="batch", tol=1e-3, dtype=dtype)
        best = -svm.dual_value(Q, svm.l2svm_dual_exact(Q))
        primal = primal_of(p, solver, result.state)
        assert result.certificate.gap >= (primal - best) / primal - 1e-12


@cache
def one_against_rest(seed: int, k: int, code: tuple[int, ...]):
    """Q of one class against the others, the optimum of the SVM and the radius² of the ball."""
    p = problem(seed)
    y = np.where(np.array(code) == k, 1.0, -1.0)
    Q = svm.signed_kernel(p.K, y, p.problem.C[0], p.problem.weight)
    delta2 = np.diag(Q).max() - np.diag(Q)
    best = -svm.dual_value(Q, svm.l2svm_dual_exact(Q))
    return Q, best, reference.exact_ball(Q, delta2)[1]


@pytest.mark.parametrize("way", WAYS)
def test_certificate_of_several_problems_is_that_of_their_sum(way):
    method, grow = WAYS[way]
    for seed in range(0, N_PROBLEMS, 5):
        rng = np.random.default_rng(seed)
        p = problem(seed)
        code = rng.integers(3, size=len(p.y))
        code[:3] = 0, 1, 2
        table = 2.0 * np.eye(3) - 1.0
        C, weight = p.problem.C[0], p.problem.weight
        stated = stated_problem(p.problem.rows.X, code, weight, C, p.problem.kernel, table)
        limits = Limits(max_iter=(2, 400)[seed % 2])
        solver, result = solved(stated, method, limits, growth=grow, tol=1e-3, sizes=SMALL_STEPS)
        machines = solver.machines(result.state)
        beta, bias = machines.expansion.coef, machines.expansion.intercept
        best, primal, eps = 0.0, 0.0, []
        for k in range(3):
            y = table[code, k]
            Q, value, radius2 = one_against_rest(seed, k, tuple(code))
            best += value
            full = np.zeros(len(y))
            full[machines.index] = beta[:, k]
            primal += svm.l2svm_objective_primal(p.K, y, C, weight, full, bias[k])
            delta2 = np.diag(Q).max() - np.diag(Q)
            weights = alpha_of(result.state, len(y), k)
            far2 = reference.squared_distances(Q, weights / weights.sum(), delta2).max()
            eps.append(np.sqrt(far2 / radius2) - 1)
        assert result.certificate.primal == pytest.approx(primal, rel=1e-8)
        assert result.certificate.dual <= best * (1 + 1e-12)
        assert result.certificate.gap >= (primal - best) / primal - 1e-12
        assert result.certificate.eps >= max(eps) - 1e-7
