"""Enclosing balls against exact ones, the papers' theorems, and the exact dual of the SVM."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.reference import balls as reference
from tests.reference import kernels as plain_kernels
from tests.reference import svm
from widemargin.balls import (
    CoreSet,
    FixedRadiusBall,
    MinimumBall,
    Points,
    fixed_radius,
    joining,
    multipliers,
)
from widemargin.balls.core import CoreProblem
from widemargin.kernels import make_kernel
from widemargin.loop import Limits, run
from widemargin.rows import as_rows

N_PROBLEMS = 105
EPSILONS = [0.1, 0.01, 0.001]
KERNELS = ["rbf", "linear", "poly", "laplacian", "inverse_squared_distance"]


@dataclass(frozen=True)
class Problem:
    """Labelled rows, and everything about their balls that an oracle knows."""

    points: Points
    y: np.ndarray
    K: np.ndarray
    Q: np.ndarray
    P: np.ndarray | None
    # The directions: vectors, and the coefficients of each direction.
    directions: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def eta(self) -> float:
        """The largest squared norm of a point, without regard to the directions."""
        return float(np.diag(self.Q).max())

    @property
    def delta2(self) -> np.ndarray:
        return self.eta - np.diag(self.Q)

    @property
    def signed_P(self) -> np.ndarray | None:
        return None if self.P is None else self.y[:, None] * self.P

    @property
    def deflated(self) -> np.ndarray:
        """Q without the directions."""
        return self.Q if self.P is None else self.Q - self.signed_P @ self.signed_P.T

    def distance(self, alpha: np.ndarray) -> np.ndarray:
        """Distance of every point from the centre with those dual variables."""
        weights = alpha / alpha.sum()
        return np.sqrt(reference.squared_distances(self.Q, weights, self.delta2, self.signed_P))


@cache
def problem(seed: int, directions: int = 0, kernel: str | None = None, n: int | None = None):
    """A random problem: kernel, C, weights, noise and dimension all vary with the seed."""
    rng = np.random.default_rng(seed)
    name = KERNELS[seed % len(KERNELS)] if kernel is None else kernel
    size = int(rng.integers(10, 31)) if n is None else n
    X = rng.normal(size=(size, int(rng.integers(1, 5))))
    y = np.where(X[:, 0] + rng.choice([0.0, 0.5, 5.0]) * rng.normal(size=size) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    weight = rng.uniform(0.2, 3.0, size) if seed % 2 else np.ones(size)
    C = float(10.0 ** rng.uniform(-1.5, 1.5))
    parameters = {"gamma": float(10.0 ** rng.uniform(-1, 0.7)), "degree": 2, "coef0": 1.0}

    def plain(A, B):
        return plain_kernels.block(name, A, B, **parameters)

    given, P = None, None
    if directions:
        vectors = rng.normal(size=(directions + 3, X.shape[1])) * 2.0
        values, basis = np.linalg.eigh(plain(vectors, vectors))
        # The best conditioned directions of the span, in a random rotation. The linear kernel of
        # few features has fewer than were asked for.
        rank = min(directions, int((values > 1e-3 * values[-1]).sum()))
        top = basis[:, -rank:] / np.sqrt(values[-rank:])
        rotation = np.linalg.qr(rng.normal(size=(rank, rank)))[0]
        coef = rotation @ top.T
        given = vectors, coef
        P = plain(X, vectors) @ coef.T
    points = Points(
        as_rows(X, memory=10**8, threads=1),
        make_kernel(name, **parameters),
        (y > 0).astype(np.intp),
        np.array([[-1.0], [1.0]]),
        weight,
        C,
        np.arange(size),
        None if P is None else P[None],
    )
    K = plain(X, X)
    return Problem(points, y, K, svm.signed_kernel(K, y, C, weight), P, given)


@cache
def exact_radius2(seed: int, directions: int = 0) -> float:
    p = problem(seed, directions)
    return reference.exact_ball(p.Q, p.delta2, p.signed_P)[1]


@cache
def exact_alpha(seed: int, directions: int = 0, **kwargs: Any) -> np.ndarray:
    return svm.l2svm_dual_exact(problem(seed, directions, **kwargs).deflated)


def exact_value(seed: int, directions: int = 0) -> float:
    return -svm.dual_value(problem(seed, directions).deflated, exact_alpha(seed, directions))


def core_set(points: Points, method: Any, **changes: Any) -> CoreSet:
    options = {
        "growth": "one",
        "sample_size": None,
        "tol": None,
        "capacity": 10_000,
        "capacity_name": "max_vectors=10000",
        "dtype": np.float64,
        "rng": np.random.default_rng(0),
        "threads": 1,
    }
    return CoreSet(points, method, **(options | changes))


def solved(points: Points, method: Any, limits: Limits | None = None, **changes: Any):
    solver = core_set(points, method, **changes)
    return solver, run(solver, limits or Limits(max_iter=5000))


def alpha_of(state: Any, n: int, p: int = 0) -> np.ndarray:
    alpha = np.zeros(n)
    alpha[state.core] = state.alpha()[p]
    return alpha


def primal_of(p: Problem, solver: CoreSet, state: Any) -> float:
    """The SVM's objective of the machine that is handed out, in float64 from scratch."""
    machines, core, beta = solver.machines(state)
    full = np.zeros(len(p.y))
    full[core] = beta[:, 0]
    K = p.K if p.P is None else p.K - p.P @ p.P.T
    weight = p.points.weight
    return svm.l2svm_objective_primal(K, p.y, p.points.C, weight, full, machines.intercept[0])


def small_steps(monkeypatch) -> None:
    """Let batches and samples be smaller than forty rows, as they are on large data."""
    monkeypatch.setattr(joining, "_FIRST", 4)
    monkeypatch.setattr(joining, "_LEAST", 3)
    monkeypatch.setattr(joining, "_SAMPLE", 6)


# ---------------------------------------------------------------- points


def test_eta_is_the_largest_squared_norm_of_a_point():
    for seed in range(N_PROBLEMS):
        assert problem(seed).points.eta == pytest.approx(problem(seed).eta, rel=1e-12)


def test_a_kernel_without_constant_diagonal_is_known_as_such():
    constant = {name: problem(0, kernel=name).points.kernel.constant_diagonal for name in KERNELS}
    assert constant["linear"] is None and constant["poly"] is None
    assert constant["rbf"] == constant["laplacian"] == 1.0


# ---------------------------------------------------------------- minimum balls (Theorems 1 and 2)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("method", ["exact", "sor"])
def test_furthest_point_growth_keeps_the_theorems(epsilon, method):
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        solver = core_set(p.points, MinimumBall(1e-3, epsilon, method))
        n_start = len(solver.start().core)
        result = run(solver, Limits(max_iter=2000))
        assert result.converged
        assert result.certificate.stopped == "no row lies outside the ball"
        ball = result.state.balls[0]
        radius2 = ball.radius2(p.points.eta)
        assert radius2 <= exact_radius2(seed) * (1 + 1e-6)
        assert exact_radius2(seed) <= (1 + epsilon) ** 2 * radius2 * (1 + 1e-9)
        assert len(result.state.core) - n_start <= 2 / epsilon
        far = p.distance(alpha_of(result.state, len(p.y))).max()
        assert far <= (1 + epsilon) * np.sqrt(radius2) * (1 + 1e-9)
        assert far >= np.sqrt(exact_radius2(seed)) * (1 - 1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_batch_growth_keeps_the_radius_and_the_reach(epsilon, monkeypatch):
    small_steps(monkeypatch)
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        # Room for all rows but one, so that the core starts small.
        method = MinimumBall(1e-3, epsilon)
        _, result = solved(p.points, method, growth="batch", capacity=len(p.y) - 1)
        if not result.converged:
            assert result.certificate.stopped == "max_vectors=10000 reached"
            continue
        radius2 = result.state.balls[0].radius2(p.points.eta)
        assert radius2 <= exact_radius2(seed) * (1 + 1e-6)
        assert exact_radius2(seed) <= (1 + epsilon) ** 2 * radius2 * (1 + 1e-9)
        far = p.distance(alpha_of(result.state, len(p.y))).max()
        assert far <= (1 + epsilon) * np.sqrt(radius2) * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "n"), [(0.1, 80), (0.01, 260)])
def test_core_set_is_bounded_where_all_rows_are_nearly_orthogonal(epsilon, n):
    # The worst case for core sets: every row is as far from the centre as any other.
    for seed in range(10 if n < 100 else 2):
        rng = np.random.default_rng(seed)
        X, C = 10.0 * rng.normal(size=(n, 4)), 10.0
        points = Points(
            as_rows(X, memory=10**8, threads=1),
            make_kernel("rbf", gamma=1.0),
            rng.integers(2, size=n),
            np.array([[-1.0], [1.0]]),
            np.ones(n),
            C,
            np.arange(n),
        )
        _, result = solved(points, MinimumBall(1e-3, epsilon))
        assert result.converged
        # At the bound's own scale: a wasteful growth would take all rows.
        assert 0.1 / epsilon < len(result.state.core) <= 2 + 2 / epsilon < n


def test_non_constant_diagonals_need_the_centre_constrained_form():
    differs = 0
    for seed in [s for s in range(N_PROBLEMS) if KERNELS[s % 5] in ("linear", "poly")]:
        p = problem(seed)
        assert p.points.kernel.constant_diagonal is None
        _, result = solved(p.points, MinimumBall(1e-9), growth="batch", tol=1e-9)
        alpha = alpha_of(result.state, len(p.y))
        radius2 = exact_radius2(seed)
        assert result.state.balls[0].radius2(p.points.eta) == pytest.approx(radius2, rel=1e-6)
        np.testing.assert_allclose(p.distance(alpha).max(), np.sqrt(radius2), rtol=1e-4)
        unconstrained = reference.exact_ball(p.Q)[1]
        differs += abs(unconstrained - radius2) > 1e-3 * radius2
    assert differs > 30


def test_a_sampled_search_ends_only_after_a_look_at_all_rows():
    sampled = 0
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        method = MinimumBall(1e-3, 0.01, "sor")
        _, result = solved(p.points, method, sample_size=5, rng=np.random.default_rng(seed))
        assert result.converged and result.certificate.scope == "full"
        radius = np.sqrt(result.state.balls[0].radius2(p.points.eta))
        assert p.distance(alpha_of(result.state, len(p.y))).max() <= 1.01 * radius * (1 + 1e-9)
        sampled += result.certificate.n_passes < result.certificate.n_iter
    assert sampled > 50


# ---------------------------------------------------------------- agreement of methods


def test_sor_and_exact_and_both_growths_find_the_machine_of_the_exact_dual(monkeypatch):
    small_steps(monkeypatch)
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        optimum, best = exact_alpha(seed), exact_value(seed)
        for method, grow in (("exact", "one"), ("sor", "one"), ("exact", "batch")):
            _, result = solved(p.points, MinimumBall(1e-8, None, method), growth=grow, tol=1e-8)
            assert result.converged, (seed, method, grow)
            assert result.certificate.dual == pytest.approx(best, rel=1e-7)
            alpha = alpha_of(result.state, len(p.y))
            f = p.Q @ alpha
            np.testing.assert_allclose(f, p.Q @ optimum, atol=2e-3)
            assert result.certificate.primal == pytest.approx(best, rel=1e-7)


def test_a_given_start_at_the_optimum_needs_no_step():
    for seed in range(10):
        p = problem(seed)
        alpha = exact_alpha(seed)
        first = np.flatnonzero(alpha)
        for method in (MinimumBall(1e-6), FixedRadiusBall(0.0)):
            _, result = solved(
                p.points,
                method,
                growth="batch",
                tol=1e-6,
                first=first,
                first_alpha=alpha[first][None],
            )
            if isinstance(method, MinimumBall):
                assert result.certificate.n_iter == 1
            assert result.converged
            assert result.certificate.dual == pytest.approx(exact_value(seed), rel=1e-6)


# ---------------------------------------------------------------- balls of fixed radius


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("grow", ["batch", "one"])
def test_algorithm_2_moves_at_most_one_over_epsilon_squared_times(epsilon, grow):
    moves = []
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        method = FixedRadiusBall(epsilon, multiscale=False, shrink=False)
        _, result = solved(p.points, method, growth=grow)
        ball = result.state.balls[0]
        assert result.converged
        assert ball.fixed_radius2 == pytest.approx(p.eta, rel=1e-12)
        assert ball.n_updates <= 1 / epsilon**2
        far = p.distance(alpha_of(result.state, len(p.y))).max()
        assert far <= (1 + epsilon) * np.sqrt(p.eta) * (1 + 1e-12)
        moves.append(ball.n_updates)
    assert max(moves) >= 3


def test_a_call_gives_the_loop_a_chance_to_look_up(monkeypatch):
    # Far from the origin and all but without a ridge, radii and scales never end.
    monkeypatch.setattr(fixed_radius, "_EFFORT", 10**6)
    rng = np.random.default_rng(0)
    X = 1e8 * rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    K = X @ X.T
    problem = CoreProblem(K, y, np.full(60, 0.5), float(np.diagonal(K).max()) + 1.5)
    method = FixedRadiusBall(0.0)
    ball = method.begin(problem, None)
    for _ in range(3):
        finer = method.refine(problem, ball)
        assert finer is not None and finer.n_updates > ball.n_updates
        # Working sets are smaller than the core, and two rounds may each take all of it.
        assert 60 * (finer.n_updates - ball.n_updates) <= 10 * 10**6
        ball = finer


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_algorithm_2_keeps_its_bound_at_the_smallest_possible_radius(epsilon):
    # At r = R* there is only one ball of that radius, which is the hardest case of Proposition 1.
    moves = []
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        r2 = exact_radius2(seed) * (1 + 1e-7)
        method = FixedRadiusBall(epsilon, multiscale=False, shrink=False, radius2=r2)
        _, result = solved(p.points, method, growth="batch")
        assert result.converged
        assert result.state.balls[0].n_updates <= 1 / epsilon**2
        far = p.distance(alpha_of(result.state, len(p.y))).max()
        assert far <= (1 + epsilon) * np.sqrt(r2) * (1 + 1e-12)
        moves.append(result.state.balls[0].n_updates)
    assert max(moves) > 0.02 / epsilon


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("grow", ["batch", "one"])
def test_algorithm_4_finds_a_radius_between_the_smallest_and_algorithm_3s(epsilon, grow):
    smaller = 0
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        radii2 = []
        for shrink in (False, True):
            _, result = solved(p.points, FixedRadiusBall(epsilon, True, shrink), growth=grow)
            assert result.converged
            ball = result.state.balls[0]
            assert ball.current_eps == pytest.approx(epsilon)
            far = p.distance(alpha_of(result.state, len(p.y))).max()
            assert far <= (1 + epsilon) * np.sqrt(ball.fixed_radius2) * (1 + 1e-9)
            radii2.append(ball.fixed_radius2)
        third, fourth = radii2
        assert third == pytest.approx(p.eta)
        assert fourth <= third
        assert fourth >= exact_radius2(seed) * (1 - 1e-7)
        smaller += fourth < third * (1 - 1e-6)
    # A coarse ε may leave nothing of the spare coordinate to shrink by; a fine one does.
    assert smaller >= {0.1: 0, 0.01: 10, 0.001: 60}[epsilon]


@pytest.mark.parametrize("epsilon", [0.1, 0.01])
def test_algorithm_4_shrinks_as_far_as_a_plain_version(epsilon):
    shrunk = 0
    for seed in range(0, 60, 2):
        p = problem(seed, kernel="rbf")
        assert (p.points.weight == 1.0).all()  # the plain version has no centre constraint
        explicit = np.linalg.cholesky(p.Q)
        naive = reference.naive_shrinking(explicit, float(np.sqrt(p.eta)), epsilon)
        _, result = solved(p.points, FixedRadiusBall(epsilon), growth="batch")
        radius = np.sqrt(result.state.balls[0].fixed_radius2)
        assert radius <= naive.radius * (1 + epsilon)
        shrunk += naive.radius < 0.999 * np.sqrt(p.eta)
    assert epsilon == 0.1 or shrunk > 0


def test_algorithm_4_comes_to_an_end_at_every_epsilon():
    # The radii may approach a limit that they never reach; each ε must get its turn all the same.
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        _, result = solved(p.points, FixedRadiusBall(2.0**-16), Limits(300), growth="batch")
        assert result.converged, (seed, result.certificate.stopped)
        assert result.state.balls[0].current_eps == 2.0**-16


def test_a_centre_on_a_single_point_is_certified_without_a_warning():
    # ε = 1 reaches every point from any other, and the ball of one point has no radius.
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        far = int(np.argmax(np.diag(p.Q)))
        first = np.concatenate([[far], np.delete(np.arange(len(p.y)), far)])
        alpha = np.zeros((1, len(p.y)))
        alpha[0, 0] = 1.0
        method = FixedRadiusBall(1.5, multiscale=False, shrink=False)
        _, result = solved(p.points, method, growth="batch", first=first, first_alpha=alpha)
        true = p.distance(alpha_of(result.state, len(p.y))).max() / np.sqrt(exact_radius2(seed))
        assert result.certificate.eps >= true - 1 - 1e-7


def test_ball_vectors_reach_the_gap_that_was_asked_for():
    for seed in range(0, N_PROBLEMS, 3):
        p = problem(seed)
        solver, result = solved(p.points, FixedRadiusBall(0.0), growth="batch", tol=1e-3)
        assert result.converged
        primal, best = primal_of(p, solver, result.state), exact_value(seed)
        assert (primal - best) / primal <= 1e-3


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
        solver, result = solved(p.points, METHODS[name], growth=grow, tol=1e-8)
        assert result.converged
        machines, core, beta = solver.machines(result.state)
        gamma = multipliers(p.points, core, beta)[0]
        vectors, coef = p.directions
        values = plain_block(p, vectors, machines.vectors) @ machines.coef[:, 0]
        normal = coef @ (values + plain_block(p, vectors, vectors) @ coef.T @ gamma)
        assert np.abs(normal).max() <= 1e-8
        assert result.certificate.dual == pytest.approx(exact_value(seed, s), rel=1e-7)
        alpha = alpha_of(result.state, len(p.y))
        # f of the machine as handed out is that of the deflated problem
        f = plain_block(p, p.points.rows.X, machines.vectors) @ machines.coef + machines.intercept
        f += (p.P @ gamma)[:, None]
        ridge = 1.0 / (2.0 * p.points.C * p.points.weight)
        np.testing.assert_allclose(p.y * f[:, 0] + ridge * alpha, p.deflated @ alpha, atol=1e-7)


def plain_block(p: Problem, A: np.ndarray, B: np.ndarray) -> np.ndarray:
    kernel = p.points.kernel
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
            _, result = solved(p.points, FixedRadiusBall(epsilon), growth="batch")
            own2 = result.state.balls[0].fixed_radius2
            assert radius2 * (1 - 1e-7) <= own2 <= p.eta * (1 + 1e-12)
        else:
            _, result = solved(p.points, MinimumBall(1e-3, epsilon, kind))
            own2 = result.state.balls[0].radius2(p.points.eta)
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
def test_certificate_never_promises_more_than_the_truth(way, dtype, monkeypatch):
    small_steps(monkeypatch)
    method, grow = WAYS[way]
    stopped_early = 0
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        # Some run to a gap, some are cut off: the certificate must hold at any state.
        limits = Limits(max_iter=(1, 2, 4, 200)[seed % 4])
        fine = 1e-5 if isinstance(method, MinimumBall) else 1e-2  # balls' last digits come slowly
        tol = (1e-1, 1e-3, fine)[seed % 3]
        capacity = len(p.y) if seed % 5 else len(p.y) // 2
        solver, result = solved(
            p.points, method, limits, growth=grow, tol=tol, dtype=dtype, capacity=capacity
        )
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
        solver, result = solved(p.points, method, limits, growth=grow, tol=1e-4)
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
        points = Points(
            as_rows(X, memory=10**8, threads=1),
            make_kernel("rbf", gamma=0.5),
            code,
            np.array([[-1.0], [1.0]]),
            np.ones(n),
            3.0,
            np.arange(n),
        )
        K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
        Q = svm.signed_kernel(K, y, 3.0)
        p = Problem(points, y, K, Q, None)
        solver, result = solved(points, MinimumBall(1e-3), growth="batch", tol=1e-3, dtype=dtype)
        best = -svm.dual_value(Q, svm.l2svm_dual_exact(Q))
        primal = primal_of(p, solver, result.state)
        assert result.certificate.gap >= (primal - best) / primal - 1e-12


@cache
def one_against_rest(seed: int, k: int, code: tuple[int, ...]):
    """Q of one class against the others, the optimum of the SVM and the radius² of the ball."""
    p = problem(seed)
    y = np.where(np.array(code) == k, 1.0, -1.0)
    Q = svm.signed_kernel(p.K, y, p.points.C, p.points.weight)
    delta2 = np.diag(Q).max() - np.diag(Q)
    best = -svm.dual_value(Q, svm.l2svm_dual_exact(Q))
    return Q, best, reference.exact_ball(Q, delta2)[1]


@pytest.mark.parametrize("way", WAYS)
def test_certificate_of_several_problems_is_that_of_their_sum(way, monkeypatch):
    small_steps(monkeypatch)
    method, grow = WAYS[way]
    for seed in range(0, N_PROBLEMS, 5):
        rng = np.random.default_rng(seed)
        p = problem(seed)
        code = rng.integers(3, size=len(p.y))
        code[:3] = 0, 1, 2
        table = 2.0 * np.eye(3) - 1.0
        points = Points(
            p.points.rows,
            p.points.kernel,
            code,
            table,
            p.points.weight,
            p.points.C,
            p.points.number,
        )
        solver, result = solved(
            points, method, Limits(max_iter=(2, 400)[seed % 2]), growth=grow, tol=1e-3
        )
        machines, core, beta = solver.machines(result.state)
        best, primal, eps = 0.0, 0.0, []
        for k in range(3):
            y = table[code, k]
            Q, value, radius2 = one_against_rest(seed, k, tuple(code))
            best += value
            full = np.zeros(len(y))
            full[core] = beta[:, k]
            primal += svm.l2svm_objective_primal(
                p.K, y, points.C, points.weight, full, machines.intercept[k]
            )
            delta2 = np.diag(Q).max() - np.diag(Q)
            weights = alpha_of(result.state, len(y), k)
            far2 = reference.squared_distances(Q, weights / weights.sum(), delta2).max()
            eps.append(np.sqrt(far2 / radius2) - 1)
        assert result.certificate.primal == pytest.approx(primal, rel=1e-8)
        assert result.certificate.dual <= best * (1 + 1e-12)
        assert result.certificate.gap >= (primal - best) / primal - 1e-12
        assert result.certificate.eps >= max(eps) - 1e-7


# ---------------------------------------------------------------- limits and reproducibility


@pytest.mark.parametrize("way", WAYS)
def test_a_core_without_room_stops_and_says_what_to_raise(way):
    method, grow = WAYS[way]
    for seed in range(0, 20):
        p = problem(seed)
        _, result = solved(
            p.points, method, growth=grow, tol=1e-6, capacity=5, capacity_name="max_vectors=5"
        )
        assert not result.converged
        assert result.certificate.stopped == "max_vectors=5 reached"
        assert len(result.state.core) == 5 >= result.certificate.n_vectors
        best = exact_value(seed)
        assert result.certificate.dual <= best <= result.certificate.primal


@pytest.mark.parametrize("way", WAYS)
def test_the_number_of_threads_does_not_change_a_bit(way, monkeypatch):
    small_steps(monkeypatch)
    method, grow = WAYS[way]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    code = rng.integers(4, size=300)
    answers = []
    for threads in (1, 2, 4):
        points = Points(
            as_rows(X, memory=16 * 8 * 20 * 16, threads=threads),  # blocks of few rows
            make_kernel("rbf", gamma=0.2),
            code,
            2.0 * np.eye(4) - 1.0,
            np.ones(300),
            1.0,
            np.arange(300),
        )
        _, result = solved(
            points, method, Limits(max_iter=6), growth=grow, tol=1e-3, threads=threads, capacity=250
        )
        answers.append(result)
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0].state.core, other.state.core)
        np.testing.assert_array_equal(answers[0].state.alpha(), other.state.alpha())
        assert answers[0].certificate.primal == other.certificate.primal
        assert answers[0].certificate.gap == other.certificate.gap


def test_weight_two_equals_a_repeated_row():
    for seed in range(20):
        p = problem(seed)
        twice = np.repeat(np.arange(len(p.y)), 2)
        rows = as_rows(p.points.rows.X[twice], memory=10**8, threads=1)
        q = p.points
        copies = Points(
            rows, q.kernel, q.code[twice], q.table, q.weight[twice], q.C, np.arange(len(twice))
        )
        heavy = Points(q.rows, q.kernel, q.code, q.table, 2.0 * q.weight, q.C, q.number)
        certificates = [
            solved(points, MinimumBall(1e-9), growth="batch", tol=1e-9)[1].certificate
            for points in (copies, heavy)
        ]
        assert certificates[0].dual == pytest.approx(certificates[1].dual, rel=1e-8)


def test_a_fixed_radius_ball_goes_through_all_scales_down_to_its_epsilon(monkeypatch):
    p = problem(0)
    sign = np.ascontiguousarray(p.y)
    ridge = 1.0 / (2.0 * p.points.C * p.points.weight)
    core = CoreProblem(p.K, sign, ridge, p.points.eta)
    method = FixedRadiusBall(0.01)
    epsilons, radii = [], []
    settle = FixedRadiusBall._settle

    def recorded(self, problem, ball):
        epsilons.append(ball.current_eps)
        radii.append(ball.fixed_radius2)
        return settle(self, problem, ball)

    monkeypatch.setattr(FixedRadiusBall, "_settle", recorded)
    ball = method.begin(core, None)
    assert sorted(set(epsilons), reverse=True) == reference.scales(0.01)
    assert epsilons == sorted(epsilons, reverse=True)
    assert radii == sorted(radii, reverse=True)
    assert method.finished(ball)
    assert method.refine(core, ball) is None
