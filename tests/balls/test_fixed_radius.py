"""Balls of fixed radius: Algorithms 2 and 4 of the ball vector machine."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import numpy as np
import pytest

from tests.reference import balls as reference
from tests.reference.ball_problems import (
    EPSILONS,
    N_PROBLEMS,
    alpha_of,
    earlier,
    exact_alpha,
    exact_radius2,
    exact_value,
    primal_of,
    problem,
    solved,
)
from widemargin import BallVectorClassifier
from widemargin.balls import FixedRadiusBall
from widemargin.balls.ball import CoreProblem
from widemargin.loop import Deadline, Limits


def _indefinite(n=40):
    """A kernel matrix with a constant diagonal that no space has."""
    rng = np.random.default_rng(0)
    K = rng.uniform(-1, 1, size=(n, n))
    K = 0.5 * (K + K.T)
    np.fill_diagonal(K, 0.1)
    return CoreProblem(K, np.where(np.arange(n) % 2, 1.0, -1.0), np.full(n, 1e-3), 1.101)


@pytest.mark.parametrize("shrink", [False, True])
def test_rows_of_a_kernel_without_a_space_are_in_no_ball(shrink):
    with pytest.raises(ValueError, match=r"not positive semidefinite.*another kernel"):
        method, problem = FixedRadiusBall(0.0, shrink=shrink, effort=10**7), _indefinite()
        ball = method.begin(problem, None)
        while ball is not None:
            ball = method.refine(problem, ball)


@pytest.mark.parametrize("n_features", [2, 6])
def test_an_indefinite_kernel_is_named_by_the_machine(n_features):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, n_features)), rng.integers(4, size=150)
    with pytest.raises(ValueError, match="not positive semidefinite"):
        BallVectorClassifier(kernel="sigmoid", gamma=1.0).fit(X, y)


def test_a_large_C_with_the_linear_kernel_does_not_take_long():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = X[:, 0] + 0.3 * rng.normal(size=120) > 0
    BallVectorClassifier(kernel="linear").fit(X, y)  # compiled loops are loaded
    begun = process_time()
    machine = BallVectorClassifier(kernel="linear", C=100.0, tol=1e-3, n_jobs=1).fit(X, y)
    assert machine.certificate_.gap <= 1e-3
    assert process_time() - begun < 5


def test_a_deadline_ends_the_moves():
    # All but without a ridge there are many millions of them.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=120) > 0, 1.0, -1.0)
    K = X @ X.T
    late = Deadline()
    late.interrupt()
    problem = CoreProblem(K, y, np.full(120, 5e-3), float(np.diagonal(K).max()) + 1.005)
    method = FixedRadiusBall(0.0, effort=10**6)
    patient = method.begin(problem, None)
    hurried = method.begin(replace(problem, deadline=late), None)
    assert hurried.n_updates < patient.n_updates / 2
    assert hurried.alpha.any()
    assert 0 < hurried.dual <= 0.5 * patient.norm2 + patient.loss


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("grow", ["batch", "one"])
def test_algorithm_2_moves_at_most_one_over_epsilon_squared_times(epsilon, grow):
    moves = []
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        method = FixedRadiusBall(epsilon, multiscale=False, shrink=False)
        _, result = solved(p, method, growth=grow)
        ball = result.state.balls[0]
        assert result.converged
        assert ball.fixed_radius2 == pytest.approx(p.eta, rel=1e-12)
        assert ball.n_updates <= 1 / epsilon**2
        far = p.distance(alpha_of(result.state, len(p.y))).max()
        assert far <= (1 + epsilon) * np.sqrt(p.eta) * (1 + 1e-12)
        moves.append(ball.n_updates)
    assert max(moves) >= 3


def test_a_call_gives_the_loop_a_chance_to_look_up():
    # Far from the origin and all but without a ridge, radii and scales never end.
    rng = np.random.default_rng(0)
    X = 1e8 * rng.normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    K = X @ X.T
    problem = CoreProblem(K, y, np.full(60, 0.5), float(np.diagonal(K).max()) + 1.5)
    method = FixedRadiusBall(0.0, effort=10**6)
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
        _, result = solved(p, method, growth="batch")
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
            _, result = solved(p, FixedRadiusBall(epsilon, True, shrink), growth=grow)
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
        assert (p.problem.weight == 1.0).all()  # the plain version has no centre constraint
        explicit = np.linalg.cholesky(p.Q)
        naive = reference.naive_shrinking(explicit, float(np.sqrt(p.eta)), epsilon)
        _, result = solved(p, FixedRadiusBall(epsilon), growth="batch")
        radius = np.sqrt(result.state.balls[0].fixed_radius2)
        assert radius <= naive.radius * (1 + epsilon)
        shrunk += naive.radius < 0.999 * np.sqrt(p.eta)
    assert epsilon == 0.1 or shrunk > 0


def test_algorithm_4_comes_to_an_end_at_every_epsilon():
    # The radii may approach a limit that they never reach; each ε must get its turn all the same.
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        _, result = solved(p, FixedRadiusBall(2.0**-16), Limits(300), growth="batch")
        assert result.converged, (seed, result.certificate.stopped)
        assert result.state.balls[0].current_eps == 2.0**-16


def test_a_centre_on_a_single_point_is_certified_without_a_warning():
    # ε = 1 reaches every point from any other, and the ball of one point has no radius.
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        far = int(np.argmax(np.diag(p.Q)))
        start = earlier(p, np.array([far]), np.ones(1))
        method = FixedRadiusBall(1.5, multiscale=False, shrink=False)
        _, result = solved(p, method, growth="batch", earlier=start)
        assert result.certificate.n_vectors == 1
        true = p.distance(alpha_of(result.state, len(p.y))).max() / np.sqrt(exact_radius2(seed))
        assert result.certificate.eps >= true - 1 - 1e-7


def test_ball_vectors_reach_the_gap_that_was_asked_for():
    for seed in range(0, N_PROBLEMS, 3):
        p = problem(seed)
        solver, result = solved(p, FixedRadiusBall(0.0), growth="batch", tol=1e-3)
        assert result.converged
        primal, best = primal_of(p, solver, result.state), exact_value(seed)
        assert (primal - best) / primal <= 1e-3


def test_a_fixed_radius_ball_goes_through_all_scales_down_to_its_epsilon(monkeypatch):
    p = problem(0)
    sign = np.ascontiguousarray(p.y)
    ridge = 1.0 / (2.0 * p.problem.C[0] * p.problem.weight)
    core = CoreProblem(p.K, sign, ridge, p.eta)
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


# What the paper proves of the centre.


def _centre(alpha):
    return alpha / alpha.sum()


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("shrink", [False, True])
def test_the_centre_is_as_near_to_the_best_one_as_proposition_2_says(epsilon, shrink):
    promises = []
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        _, result = solved(p, FixedRadiusBall(epsilon, True, shrink), growth="batch")
        center = _centre(alpha_of(result.state, len(p.y)))
        apart = center - _centre(exact_alpha(seed))
        distance = np.sqrt(max(0.0, apart @ p.Q @ apart))
        best = np.sqrt(exact_radius2(seed))
        reach = (1 + epsilon) * np.sqrt(result.state.balls[0].fixed_radius2)
        # (9), which needs a centre no farther than R*; and what the certificate says instead.
        if distance <= best:
            assert distance <= best * np.sqrt((1 + np.sqrt(2)) * (reach / best - 1)) + 1e-6
        promised = result.certificate.center_error * np.sqrt(center @ p.Q @ center)
        assert distance <= promised * (1 + 1e-6) + 1e-6
        promises.append(promised / best)
        # The bound after (11): decision values differ by no more than that times √(k(x, x) + 1).
        values = (p.K + 1.0) @ (p.y * apart)
        assert (np.abs(values) <= (distance + 1e-9) * np.sqrt(np.diag(p.K) + 1.0)).all()
    # Where the radius shrinks to the smallest one, what is promised is of the order of √ε.
    assert not shrink or np.median(promises) <= 3 * np.sqrt(epsilon)


@pytest.mark.parametrize("power", [2, 4, 6])
def test_algorithm_3_keeps_the_bound_of_proposition_3_at_the_smallest_radius(power):
    most = 4 + sum((1 + np.sqrt(2)) * 2 ** (m + 1) for m in range(2, power + 1))
    moves = []
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        r2 = exact_radius2(seed) * (1 + 1e-7)
        method = FixedRadiusBall(2.0**-power, multiscale=True, shrink=False, radius2=r2)
        _, result = solved(p, method, growth="batch")
        assert result.converged
        moves.append(result.state.balls[0].n_updates)
    assert 1 <= max(moves) <= most


def test_one_radius_of_algorithm_4_is_what_the_papers_program_does():
    several = 0
    for seed in range(N_PROBLEMS):
        p = problem(seed)
        _, once = solved(p, FixedRadiusBall(1e-3, max_radii=1), growth="batch")
        assert once.converged
        assert once.state.balls[0].fixed_radius2 == pytest.approx(p.eta, rel=1e-12)
        _, often = solved(p, FixedRadiusBall(1e-3), growth="batch")
        assert often.certificate.eps <= once.certificate.eps * (1 + 1e-6) + 1e-3
        several += often.state.balls[0].fixed_radius2 < p.eta * (1 - 1e-6)
    assert several > 0


# The parameters of the machine.


def _rings(n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (np.linalg.norm(X, axis=1) > 1.5).astype(int)


@pytest.mark.parametrize("algorithm", ["single", "multiscale", "shrinking"])
@pytest.mark.parametrize("growth", ["batch", "one"])
def test_every_algorithm_of_the_paper_can_be_asked_for(algorithm, growth):
    X, y = _rings()
    machine = BallVectorClassifier(
        C=5.0, stopping="ball", epsilon=1e-3, algorithm=algorithm, growth=growth, random_state=0
    )
    machine.fit(X, y)
    assert machine.score(X, y) > 0.9
    # All rows are within (1 + ε) r; the certificate speaks of the smallest ball.
    radius2 = 1.0 + 1.0 + 1.0 / (2 * 5.0)
    center2 = np.square(machine.certificate_.center_error)
    assert machine.certificate_.eps < np.sqrt(radius2) and np.isfinite(center2)
    if algorithm == "shrinking":
        once = machine.set_params(max_radii=1).fit(X, y)
        assert once.score(X, y) > 0.9


def test_a_radius_that_holds_no_ball_is_an_error_that_says_so():
    X, y = _rings(60)
    machine = BallVectorClassifier(stopping="ball", algorithm="single", epsilon=0.1, radius=0.2)
    with pytest.raises(ValueError, match=r"radius=0\.2 is smaller.*None for 1\.58"):
        machine.fit(X, y)
    assert machine.set_params(radius=3.0).fit(X, y).certificate_.stopped.startswith("no row lies")


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"algorithm": "single"}, "algorithm='single'"),
        ({"algorithm": "multiscale"}, "algorithm='multiscale'"),
        ({"max_radii": 1}, "max_radii=1"),
    ],
)
def test_a_ball_that_is_not_the_smallest_needs_the_papers_rule(parameters, named):
    X, y = _rings(60)
    with pytest.raises(ValueError, match=rf"{named}.*stopping='ball'"):
        BallVectorClassifier(**parameters).fit(X, y)
