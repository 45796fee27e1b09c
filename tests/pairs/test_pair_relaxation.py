"""The relaxation of Maxi-Min: exact, semidefinite, and by Algorithm 1."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from tests.reference.maxi_min import (
    algorithm_1,
    all_pairs,
    distances,
    relaxation_value,
    semidefinite,
)
from tests.reference.pair_problems import classes_of, random_means, solved
from widemargin.loop import Limits, run
from widemargin.pairs.online import Online, default_lam
from widemargin.pairs.pair_program import PairProgram
from widemargin.pairs.semidefinite import solve_semidefinite

# The relaxation, exactly.


@pytest.mark.parametrize("seed", range(36))
def test_the_exact_solution_is_that_of_the_semidefinite_program(seed):
    rng, means = random_means(seed)
    ways = [
        (np.inf, 1),
        (10.0 ** rng.uniform(-2, 2), 1),
        (10.0 ** rng.uniform(-2, 2), 2),
    ]
    # Clarabel takes most of the time: every problem with no errors, and one way to allow them.
    for C, power in (ways[0], ways[1 + seed % 2]):
        expected, value = semidefinite(means, C, power)
        result = solved(means, C, power == 2)
        Q = result.state.Q
        assert result.converged
        assert result.certificate.gap <= 1e-8
        assert relaxation_value(Q, means, C, power) == pytest.approx(value, rel=1e-6)
        assert result.certificate.primal == pytest.approx(value, rel=1e-6)
        assert result.certificate.dual == pytest.approx(value, rel=1e-6)
        assert_allclose(Q, expected, atol=1e-4 * max(1.0, np.abs(expected).max()))
        # Nothing asks for it, but Q is positive semidefinite.
        assert np.linalg.eigvalsh(Q)[0] >= -1e-10
        near = result.state.pairs
        delta = means[near.first] - means[near.second]
        assert result.state.alpha.min() >= 0.0
        assert result.state.alpha.max() <= (C if power == 1 else np.inf) * (1 + 1e-12)
        assert_allclose((delta.T * result.state.alpha) @ delta, Q, atol=1e-9 * np.abs(Q).max())


@pytest.mark.parametrize(("C", "squared"), [(np.inf, False), (0.5, False), (20.0, True)])
def test_the_semidefinite_solver_has_the_exact_solution(C, squared):
    _, means = random_means(5)
    for unit in (1.0, 1e3):
        # Q goes with one over the squared unit, C with the fourth power.
        scaled = C * unit**-4
        Q = solve_semidefinite(classes_of(means * unit), scaled, squared=squared)
        exact = solved(means * unit, scaled, squared).state.Q
        assert_allclose(Q, exact, atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize(("C", "squared"), [(np.inf, False), (0.2, False), (5.0, True)])
def test_growth_by_the_closest_pairs_has_the_answer_of_all_pairs_at_once(C, squared):
    means = np.random.default_rng(3).normal(size=(24, 5))
    full = solved(means, C, squared, batch=24 * 23 // 2)
    assert full.certificate.n_iter == 1
    grown = solved(means, C, squared, batch=4)
    assert grown.certificate.n_iter > 2
    assert len(grown.state.pairs.first) < 24 * 23 // 2
    assert grown.converged
    assert grown.state.primal == pytest.approx(full.state.primal, rel=1e-8)
    assert_allclose(grown.state.Q, full.state.Q, rtol=1e-5, atol=1e-5 * np.abs(full.state.Q).max())
    # Pairs join once.
    c = np.stack([grown.state.pairs.first, grown.state.pairs.second])
    assert np.unique(c, axis=1).shape == c.shape


def test_few_of_the_pairs_of_many_classes_are_ever_looked_at():
    means = np.random.default_rng(0).normal(size=(150, 5))
    for C, squared in ((np.inf, False), (0.1, False), (3.0, True)):
        result = solved(means, C, squared)
        assert len(result.state.pairs.first) < 1000 < 150 * 149 // 2
        # The bounds hold for all 11,175 pairs.
        value = relaxation_value(result.state.Q, means, C, 2 if squared else 1)
        assert value == pytest.approx(result.state.primal, rel=1e-8)
        assert (value - result.state.dual) / value <= 1e-8


def test_close_pairs_among_far_ones_are_solved_exactly():
    # Distances over six decades: the weights of the pairs differ by twelve.
    means = np.random.default_rng(0).normal(size=(10, 3)) * 10.0 ** np.linspace(-1, 2, 10)[:, None]
    means[1] = means[0] + [1e-3, 0.0, 0.0]
    result = solved(means)
    assert result.converged
    assert result.certificate.gap <= 1e-6


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-3, 1e3))
def test_the_bounds_of_the_relaxation_hold_at_every_step(seed, C):
    _, means = random_means(seed, 8, 4)
    for squared in (False, True):
        program = PairProgram(classes_of(means), C, squared=squared, batch=2)
        best = relaxation_value(solved(means, C, squared).state.Q, means, C, 2 if squared else 1)
        state = program.start()
        for _ in range(6):
            assert state.primal >= best * (1 - 1e-7)
            assert state.dual <= best * (1 + 1e-7)
            state = program.step(state)


# Algorithm 1.


class _Drawn:
    """A generator that also writes down what it draws."""

    def __init__(self, seed):
        self.rng, self.drawn = np.random.default_rng(seed), []

    def integers(self, *args, **kwargs):
        self.drawn.append(self.rng.integers(*args, **kwargs))
        return self.drawn[-1]


@pytest.mark.parametrize("at_a_time", [1, 7, 1000])
def test_online_steps_are_those_of_algorithm_1_and_equation_20(at_a_time):
    for seed in range(5):
        _, means = random_means(seed, 8, 6)
        rng = _Drawn(seed)
        lam = 0.05
        online = Online(classes_of(means), lam, 150, False, rng, at_a_time=at_a_time)
        state = run(online, Limits(patience=10**6)).state
        assert state.t == 150
        pairs_drawn = []
        for i, step in zip(rng.drawn[::2], rng.drawn[1::2], strict=True):
            pairs_drawn += [(a, (a + b) % len(means)) for a, b in zip(i, step, strict=True)]
        steps, added = algorithm_1(pairs_drawn, means, lam)
        assert all(a != b for a, b in pairs_drawn)
        assert_allclose(state.Q, steps[-1], rtol=1e-9, atol=1e-12)
        assert_allclose(state.Q, added / (lam * 150), rtol=1e-9, atol=1e-12)
        assert_allclose(state.mean, np.mean(steps, axis=0), rtol=1e-9, atol=1e-12)
        assert_array_equal(online.matrix(state), state.Q)
        assert_array_equal(Online(classes_of(means), lam, 1, True, rng).matrix(state), state.mean)


def test_every_pair_is_drawn_as_often_as_another():
    rng = _Drawn(0)
    means = np.random.default_rng(0).normal(size=(5, 2))
    run(Online(classes_of(means), 1.0, 4000, False, rng), Limits(patience=10**6))
    first, step = (np.concatenate(rng.drawn[k::2]) for k in (0, 1))
    count = np.zeros((5, 5))
    np.add.at(count, (first, (first + step) % 5), 1)
    assert not np.diagonal(count).any()
    both = (count + count.T)[np.triu_indices(5, 1)]
    # Binomial(4000, 1/10): 400 with a deviation of 19.
    assert (np.abs(both - 400) < 5 * 19).all()


@pytest.mark.parametrize("average", [True, False])
def test_online_approaches_the_soft_optimum(average):
    _, means = random_means(7, 8, 6)
    n_pairs = classes_of(means).n_pairs
    C = 2.0
    lam = 1.0 / (C * n_pairs)
    best = relaxation_value(solved(means, C).state.Q, means, C)
    gaps = []
    for n_updates in (100, 1000, 10_000, 100_000):
        online = Online(classes_of(means), lam, n_updates, average, np.random.default_rng(1))
        Q = online.matrix(run(online, Limits(patience=10**6)).state)
        gaps.append(relaxation_value(Q, means, C) / best - 1)
    assert min(gaps) >= -1e-9
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    # About 1/T, up to logarithms (Corollary 1).
    assert gaps[3] < gaps[0] / 100
    assert gaps[3] < 2e-3


def test_the_regret_is_below_the_bound_of_theorem_1():
    for seed in range(5):
        rng, means = random_means(seed, 8, 6)
        lam = 0.1
        pairs_drawn = [rng.choice(len(means), 2, replace=False) for _ in range(300)]
        steps, _ = algorithm_1(pairs_drawn, means, lam)
        best = solved(means, 1 / (lam * classes_of(means).n_pairs)).state.Q

        def f(Q, i, j, means=means, lam=lam):
            delta = means[i] - means[j]
            return 0.5 * lam * np.sum(Q * Q) + max(0.0, 1.0 - delta @ Q @ delta)

        before = [np.zeros_like(best), *steps[:-1]]
        left = np.mean([f(Q, i, j) for Q, (i, j) in zip(before, pairs_drawn, strict=True)])
        right = np.mean([f(best, i, j) for i, j in pairs_drawn])
        R4 = distances(means).max() ** 2
        assert left <= right + 4 * R4 * (1 + np.log(300)) / (2 * lam * 300)


def test_three_slips_of_the_paper():
    _, means = random_means(7, 8, 6)
    delta = all_pairs(means)[2]
    n_pairs, lam = len(delta), 0.05
    rng = np.random.default_rng(0)
    A = rng.normal(size=(means.shape[1], means.shape[1]))
    Q = 0.3 * A @ A.T / len(A)
    d = delta[np.argmin(np.einsum("pi,ij,pj->p", delta, Q, delta))]
    assert d @ Q @ d < 1

    # (12): the subgradient (13) is that of ξ = max{0, 1 − δᵀQδ}, not of the minimum.
    def f(Q, pick):
        return 0.5 * lam * np.sum(Q * Q) + pick(0.0, 1.0 - d @ Q @ d)

    slope = lam * Q - np.outer(d, d)
    step = 1e-6 * A
    for pick, is_it in ((max, True), (min, False)):
        central = (f(Q + step, pick) - f(Q - step, pick)) / 2
        assert bool(central == pytest.approx(np.sum(slope * step), rel=1e-4)) is is_it
    # (18): v is added, not subtracted: (14) is a step against the gradient.
    t = 3
    moved = Q - slope / (lam * t)
    assert_allclose(moved, (1 - 1 / t) * Q + np.outer(d, d) / (lam * t), atol=1e-12)
    # (11) has the sum over the pairs, Algorithm 1 the mean: λ differs by the number of pairs.
    C = 1 / lam
    online = Online(classes_of(means), lam / n_pairs, 50_000, True, np.random.default_rng(0))
    right = online.matrix(run(online, Limits(patience=10**6)).state)
    online = Online(classes_of(means), lam, 50_000, True, np.random.default_rng(0))
    literal = online.matrix(run(online, Limits(patience=10**6)).state)
    best = solved(means, C).state.Q
    assert np.linalg.norm(right - best) < 0.1 * np.linalg.norm(best)
    assert np.linalg.norm(literal - best) > 0.5 * np.linalg.norm(best)


def test_the_default_lambda_is_small_beside_the_loss():
    for seed in range(10):
        _, means = random_means(seed)
        classes = classes_of(means)
        lam = default_lam(classes)
        k = means.shape[1]
        Q = np.eye(k) / classes.closest(means, 1).distance[0]
        assert 0.5 * lam * np.sum(Q * Q) == pytest.approx(0.01)
