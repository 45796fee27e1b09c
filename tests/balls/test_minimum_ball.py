"""Minimum enclosing balls by core sets, against exact ones and the papers' theorems."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference import balls as reference
from tests.reference.ball_problems import (
    EPSILONS,
    KERNELS,
    N_PROBLEMS,
    alpha_of,
    core_set,
    exact_alpha,
    exact_radius2,
    exact_value,
    problem,
    small_steps,
    solved,
)
from widemargin.balls import FixedRadiusBall, MinimumBall, Points
from widemargin.kernels import make_kernel
from widemargin.loop import Limits, run
from widemargin.rows import as_rows

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


# ---------------------------------------------------------------- the certificate


WAYS = {
    "core, batch": (MinimumBall(1e-3), "batch"),
    "core, one": (MinimumBall(1e-3), "one"),
    "core, one, sor": (MinimumBall(1e-3, None, "sor"), "one"),
    "ball, batch": (FixedRadiusBall(0.0), "batch"),
    "ball, one": (FixedRadiusBall(0.0), "one"),
}


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
