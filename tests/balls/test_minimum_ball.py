"""Minimum enclosing balls by core sets, against exact ones and the papers' theorems."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference import balls as reference
from tests.reference.ball_problems import (
    EPSILONS,
    KERNELS,
    N_PROBLEMS,
    SMALL_STEPS,
    alpha_of,
    core_set,
    earlier,
    exact_alpha,
    exact_radius2,
    exact_value,
    problem,
    solved,
    stated_problem,
)
from widemargin.balls import FixedRadiusBall, MinimumBall
from widemargin.balls.ball import largest_norm2
from widemargin.kernels import make_kernel
from widemargin.loop import Ended, Limits, run

# ---------------------------------------------------------------- points


def test_eta_is_the_largest_squared_norm_of_a_point():
    for seed in range(N_PROBLEMS):
        assert largest_norm2(problem(seed).problem) == pytest.approx(problem(seed).eta, rel=1e-12)


def test_a_kernel_without_constant_diagonal_is_known_as_such():
    constant = {name: problem(0, kernel=name).problem.kernel.constant_diagonal for name in KERNELS}
    assert constant["linear"] is None and constant["poly"] is None
    assert constant["rbf"] == constant["laplacian"] == 1.0


# ---------------------------------------------------------------- minimum balls (Theorems 1 and 2)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("method", ["exact", "sor"])
def test_furthest_point_growth_keeps_the_theorems(epsilon, method):
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        solver = core_set(p, MinimumBall(1e-3, epsilon, method))
        n_start = len(solver.start().core)
        result = run(solver, Limits(max_iter=2000))
        assert result.converged
        assert result.certificate.stopped == "no row lies outside the ball"
        ball = result.state.balls[0]
        radius2 = ball.radius2(p.eta)
        assert radius2 <= exact_radius2(seed) * (1 + 1e-6)
        assert exact_radius2(seed) <= (1 + epsilon) ** 2 * radius2 * (1 + 1e-9)
        assert len(result.state.core) - n_start <= 2 / epsilon
        far = p.distance(alpha_of(result.state, len(p.y))).max()
        assert far <= (1 + epsilon) * np.sqrt(radius2) * (1 + 1e-9)
        assert far >= np.sqrt(exact_radius2(seed)) * (1 - 1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_batch_growth_keeps_the_radius_and_the_reach(epsilon):
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        # Room for all rows but one, so that the core starts small.
        method = MinimumBall(1e-3, epsilon)
        room = {"max_vectors": len(p.y) - 1, "sizes": SMALL_STEPS}
        _, result = solved(p, method, growth="batch", **room)
        if not result.converged:
            assert result.stop.kind is Ended.CAPACITY
            assert result.certificate.stopped == f"max_vectors={len(p.y) - 1} reached"
            continue
        radius2 = result.state.balls[0].radius2(p.eta)
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
        kernel = make_kernel("rbf", gamma=1.0)
        stated = stated_problem(X, rng.integers(2, size=n), np.ones(n), C, kernel)
        _, result = solved(stated, MinimumBall(1e-3, epsilon))
        assert result.converged
        # At the bound's own scale: a wasteful growth would take all rows.
        assert 0.1 / epsilon < len(result.state.core) <= 2 + 2 / epsilon < n


def test_non_constant_diagonals_need_the_centre_constrained_form():
    differs = 0
    for seed in [s for s in range(N_PROBLEMS) if KERNELS[s % 5] in ("linear", "poly")]:
        p = problem(seed)
        assert p.problem.kernel.constant_diagonal is None
        _, result = solved(p, MinimumBall(1e-9), growth="batch", tol=1e-9)
        alpha = alpha_of(result.state, len(p.y))
        radius2 = exact_radius2(seed)
        assert result.state.balls[0].radius2(p.eta) == pytest.approx(radius2, rel=1e-6)
        np.testing.assert_allclose(p.distance(alpha).max(), np.sqrt(radius2), rtol=1e-4)
        unconstrained = reference.exact_ball(p.Q)[1]
        differs += abs(unconstrained - radius2) > 1e-3 * radius2
    assert differs > 30


def test_a_sampled_search_ends_only_after_a_look_at_all_rows():
    sampled = 0
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        method = MinimumBall(1e-3, 0.01, "sor")
        _, result = solved(p, method, sample_size=5, seed=seed)
        assert result.converged and result.certificate.scope == "full"
        radius = np.sqrt(result.state.balls[0].radius2(p.eta))
        assert p.distance(alpha_of(result.state, len(p.y))).max() <= 1.01 * radius * (1 + 1e-9)
        sampled += result.certificate.n_passes < result.certificate.n_iter
    assert sampled > 50


# ---------------------------------------------------------------- agreement of methods


def test_sor_and_exact_and_both_growths_find_the_machine_of_the_exact_dual():
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        optimum, best = exact_alpha(seed), exact_value(seed)
        for method, grow in (("exact", "one"), ("sor", "one"), ("exact", "batch")):
            ball = MinimumBall(1e-8, None, method)
            _, result = solved(p, ball, growth=grow, tol=1e-8, sizes=SMALL_STEPS)
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
            start = earlier(p, first, alpha[first])
            _, result = solved(p, method, growth="batch", tol=1e-6, earlier=start)
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
        _, result = solved(p, method, growth=grow, tol=1e-6, max_vectors=5)
        assert not result.converged and result.stop.kind is Ended.CAPACITY
        assert result.certificate.stopped == "max_vectors=5 reached"
        assert len(result.state.core) == 5 >= result.certificate.n_vectors
        best = exact_value(seed)
        assert result.certificate.dual <= best <= result.certificate.primal


@pytest.mark.parametrize("way", WAYS)
def test_the_number_of_threads_does_not_change_a_bit(way):
    method, grow = WAYS[way]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    code = rng.integers(4, size=300)
    answers = []
    for threads in (1, 2, 4):
        stated = stated_problem(
            X,
            code,
            np.ones(300),
            1.0,
            make_kernel("rbf", gamma=0.2),
            table=2.0 * np.eye(4) - 1.0,
            memory=16 * 8 * 20 * 16,  # blocks of few rows
            threads=threads,
        )
        options = {"tol": 1e-3, "threads": threads, "max_vectors": 250, "sizes": SMALL_STEPS}
        answers.append(solved(stated, method, Limits(max_iter=6), growth=grow, **options)[1])
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0].state.core, other.state.core)
        np.testing.assert_array_equal(answers[0].state.alpha(), other.state.alpha())
        assert answers[0].certificate.primal == other.certificate.primal
        assert answers[0].certificate.gap == other.certificate.gap


def test_weight_two_equals_a_repeated_row():
    for seed in range(20):
        p = problem(seed)
        twice = np.repeat(np.arange(len(p.y)), 2)
        q = p.problem
        X, C = q.rows.X, q.C[0]
        copies = stated_problem(X[twice], q.code[twice], q.weight[twice], C, q.kernel)
        heavy = stated_problem(X, q.code, 2.0 * q.weight, C, q.kernel)
        certificates = [
            solved(stated, MinimumBall(1e-9), growth="batch", tol=1e-9)[1].certificate
            for stated in (copies, heavy)
        ]
        assert certificates[0].dual == pytest.approx(certificates[1].dual, rel=1e-8)
