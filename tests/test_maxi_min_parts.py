"""The parts of `MaxiMinDA` against CVXPY, plain loops and theorems."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import eigh

from tests.reference.fisher_da import scatter_by_loops
from tests.reference.maxi_min import (
    algorithm_1,
    all_pairs,
    distances,
    relaxation_value,
    semidefinite,
    smallest_distance,
    soft_criterion,
    soft_minimum,
)
from widemargin.deadline import Deadline
from widemargin.discriminant import interior, pair_program, pairs, relaxation, sharpness
from widemargin.discriminant.maxi_min_search import n_directions
from widemargin.discriminant.online import Online, default_lam
from widemargin.discriminant.pair_program import PairProgram
from widemargin.discriminant.pairs import ClassPairs, Pairs, spanned
from widemargin.discriminant.projection import LabelledRows
from widemargin.discriminant.refine import (
    Refine,
    orthonormal,
    pushed_apart,
    softened,
    widest_mean,
)
from widemargin.discriminant.relaxation import upper_bound
from widemargin.discriminant.scatter import DenseColumns
from widemargin.discriminant.semidefinite import solve_semidefinite
from widemargin.discriminant.sharpness import choose, nearest_mean_weight
from widemargin.discriminant.stream import Stream
from widemargin.loop import Limits, run
from widemargin.rows import as_rows as any_rows
from widemargin.rows import distinct_rows, row_keys


def as_rows(X):
    return any_rows(X, memory=10**6, threads=1)


def _means(seed, most_classes=12, most_columns=20):
    """Class means of any shape, in units of their median distance."""
    rng = np.random.default_rng(seed)
    c, k = int(rng.integers(2, most_classes + 1)), int(rng.integers(1, most_columns + 1))
    means = rng.normal(size=(c, k)) * rng.uniform(0.3, 1.0, size=k)
    means -= means.mean(axis=0)
    return rng, means / np.sqrt(np.median(distances(means)[np.triu_indices(c, 1)]))


def _classes(means, prior=None, threads=1):
    return ClassPairs(means, np.ones(len(means)) if prior is None else prior, threads)


def _solved(means, C=np.inf, squared=False):
    return run(PairProgram(_classes(means), C, squared=squared), Limits())


# Pairs of classes.


@pytest.mark.parametrize("block", [1, 50, 1 << 18])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_closest_pairs_are_those_of_the_whole_matrix(block, threads, monkeypatch):
    monkeypatch.setattr(pairs, "_BLOCK", block)
    for seed in range(10):
        _, Y = _means(seed)
        first, second, delta = all_pairs(Y)
        expected = (delta**2).sum(axis=1)
        order = np.argsort(expected, kind="stable")
        classes = _classes(Y, threads=threads)
        for count in (1, 3, classes.n_pairs, 10 * classes.n_pairs):
            found = classes.closest(Y, count)
            assert_allclose(found.distance, expected[order][:count], rtol=1e-10)
            assert_array_equal(found.first, first[order][:count])
            assert_array_equal(found.second, second[order][:count])


def test_pairs_of_thousands_of_classes_need_no_matrix_of_them():
    import tracemalloc

    means = np.random.default_rng(0).normal(size=(2500, 6))
    classes = _classes(means)
    tracemalloc.start()
    classes.closest(means, 2500)
    classes.soft_minimum(means, np.array([1.0, 0.1]), np.ones(2))
    classes.shortfall(means, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # All pairs would take 50 MB; the closest of each block are at most 2,500.
    assert peak < 20_000_000


@pytest.mark.parametrize("rate", [1e-6, 0.1, 1.0, 30.0])
def test_the_soft_minimum_is_that_of_the_plain_sum(rate):
    for seed in range(10):
        rng, Y = _means(seed)
        prior = rng.dirichlet(np.ones(len(Y))) * 7
        found = _classes(Y, prior).soft_minimum(Y, np.array([rate]), np.ones(1))[0]
        assert_allclose(found, soft_minimum(distances(Y), prior, rate), rtol=1e-8)


def test_the_soft_minimum_runs_from_the_mean_to_the_minimum():
    for seed in range(20):
        rng, Y = _means(seed)
        prior = rng.uniform(0.5, 1.5, len(Y))
        classes = _classes(Y, prior)
        first, second, delta = all_pairs(Y)
        weight = prior[first] * prior[second]
        D = (delta**2).sum(axis=1)
        mean = weight @ D / weight.sum()
        rates = 10.0 ** np.arange(-6, 7)
        values = [classes.soft_minimum(Y, np.array([r]), np.ones(1))[0] for r in rates]
        assert_allclose(values[0], mean, rtol=1e-4)
        assert_allclose(values[-1], D.min(), rtol=1e-4, atol=1e-4)
        assert (np.diff(values) <= 1e-9 * mean).all()
        assert_allclose(np.trace(classes.mean_scatter()), mean, rtol=1e-10)


def test_the_derivative_of_the_soft_minimum_is_that_of_central_differences():
    for seed in range(8):
        rng, Y = _means(seed, 8, 5)
        prior = rng.uniform(0.5, 1.5, len(Y))
        classes = _classes(Y, prior)
        rates, shares = np.array([0.3, 5.0]), np.array([1.0, 0.2])
        slope = classes.soft_minimum(Y, rates, shares)[1]

        def value(Z, prior=prior, rates=rates, shares=shares):
            D = distances(Z)
            terms = (b * soft_minimum(D, prior, r) for r, b in zip(rates, shares, strict=True))
            return sum(terms)

        for i, j in np.ndindex(Y.shape):
            step = np.zeros_like(Y)
            step[i, j] = 1e-5
            central = (value(Y + step) - value(Y - step)) / 2e-5
            assert slope[i, j] == pytest.approx(central, abs=1e-7)


@pytest.mark.parametrize("power", [1, 2])
def test_the_shortfall_is_the_sum_over_the_pairs(power):
    for seed in range(10):
        _, Y = _means(seed)
        short = np.maximum(0.0, 1.0 - (all_pairs(Y)[2] ** 2).sum(axis=1))
        found = _classes(Y).shortfall(Y, power)
        assert found == pytest.approx((short**power).sum(), abs=1e-10)


def test_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr(pairs, "_BLOCK", 100)
    _, Y = _means(0, 12, 5)
    Y = np.vstack([Y, Y[:, ::-1] + 1.0])
    answers = []
    for threads in (1, 2, 5):
        classes = _classes(Y, threads=threads)
        value, slope = classes.soft_minimum(Y, np.array([0.5]), np.ones(1))
        near = classes.closest(Y, 7)
        answers.append((value, slope, near.first, near.distance, classes.shortfall(Y, 2)))
    for other in answers[1:]:
        for one, two in zip(answers[0], other, strict=True):
            assert_array_equal(one, two)


def test_equal_means_are_merged_with_their_weights():
    rng = np.random.default_rng(0)
    means = rng.normal(size=(40, 4))
    means[[5, 9]] = means[2]
    means[30] = means[31] + 1e-13
    prior = rng.uniform(size=40)
    distinct, group = _classes(means, prior).merged()
    assert distinct.n_classes == 37
    assert group[2] == group[5] == group[9]
    assert group[30] == group[31]
    assert len(set(group)) == 37
    assert_allclose(distinct.means[group], means, atol=1e-12)
    assert_allclose(distinct.prior[group[2]], prior[[2, 5, 9]].sum())
    assert_allclose(distinct.prior.sum(), prior.sum())
    same, group = _classes(np.zeros((30, 2))).merged()
    assert same.n_classes == 1
    assert not group.any()
    # Nothing to merge: a close pair is not an equal one.
    means = rng.normal(size=(5, 3))
    means[1] = means[0] + 1e-7
    assert _classes(means).merged()[0].n_classes == 5


def test_the_span_of_the_differences_is_found_for_any_shape():
    rng = np.random.default_rng(0)
    for c, k, rank in ((3, 10, 2), (30, 4, 4), (30, 6, 3), (5, 3, 1)):
        means = rng.normal(size=(c, rank)) @ rng.normal(size=(rank, k)) + 5.0
        basis = spanned(means)
        assert basis.shape == (k, rank)
        assert_allclose(basis.T @ basis, np.eye(rank), atol=1e-12)
        apart = means - means.mean(axis=0)
        assert_allclose(apart @ basis @ basis.T, apart, atol=1e-6)
    assert spanned(np.ones((4, 3))).shape == (3, 0)


# The relaxation, exactly.


@pytest.mark.parametrize("seed", range(36))
def test_the_exact_solution_is_that_of_the_semidefinite_program(seed):
    rng, means = _means(seed)
    ways = [
        (np.inf, 1),
        (10.0 ** rng.uniform(-2, 2), 1),
        (10.0 ** rng.uniform(-2, 2), 2),
    ]
    # Clarabel takes most of the time: every problem with no errors, and one way to allow them.
    for C, power in (ways[0], ways[1 + seed % 2]):
        expected, value = semidefinite(means, C, power)
        result = _solved(means, C, power == 2)
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
    _, means = _means(5)
    for unit in (1.0, 1e3):
        # Q goes with one over the squared unit, C with the fourth power.
        scaled = C * unit**-4
        Q = solve_semidefinite(_classes(means * unit), scaled, squared=squared)
        exact = _solved(means * unit, scaled, squared).state.Q
        assert_allclose(Q, exact, atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize(("C", "squared"), [(np.inf, False), (0.2, False), (5.0, True)])
def test_growth_by_the_closest_pairs_has_the_answer_of_all_pairs_at_once(C, squared, monkeypatch):
    means = np.random.default_rng(3).normal(size=(24, 5))
    everything = PairProgram(_classes(means), C, squared=squared)
    everything.batch = 24 * 23 // 2
    full = run(everything, Limits())
    assert full.certificate.n_iter == 1
    monkeypatch.setattr(pair_program, "_LEAST", 4)
    monkeypatch.setattr(pair_program, "_JOIN", 0)
    grown = _solved(means, C, squared)
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
        result = _solved(means, C, squared)
        assert len(result.state.pairs.first) < 1000 < 150 * 149 // 2
        # The bounds hold for all 11,175 pairs.
        value = relaxation_value(result.state.Q, means, C, 2 if squared else 1)
        assert value == pytest.approx(result.state.primal, rel=1e-8)
        assert (value - result.state.dual) / value <= 1e-8


def test_close_pairs_among_far_ones_are_solved_exactly():
    # Distances over six decades: the weights of the pairs differ by twelve.
    means = np.random.default_rng(0).normal(size=(10, 3)) * 10.0 ** np.linspace(-1, 2, 10)[:, None]
    means[1] = means[0] + [1e-3, 0.0, 0.0]
    result = _solved(means)
    assert result.converged
    assert result.certificate.gap <= 1e-6


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(1e-3, 1e3))
def test_the_bounds_of_the_relaxation_hold_at_every_step(seed, C):
    _, means = _means(seed, 8, 4)
    for squared in (False, True):
        program = PairProgram(_classes(means), C, squared=squared)
        program.batch = 2
        best = relaxation_value(_solved(means, C, squared).state.Q, means, C, 2 if squared else 1)
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
def test_online_steps_are_those_of_algorithm_1_and_equation_20(at_a_time, monkeypatch):
    monkeypatch.setattr("widemargin.discriminant.online._AT_A_TIME", at_a_time)
    for seed in range(5):
        _, means = _means(seed, 8, 6)
        rng = _Drawn(seed)
        lam = 0.05
        online = Online(_classes(means), lam, 150, False, rng)
        state = run(online, Limits(None, None, patience=10**6)).state
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
        assert_array_equal(Online(_classes(means), lam, 1, True, rng).matrix(state), state.mean)


def test_every_pair_is_drawn_as_often_as_another():
    rng = _Drawn(0)
    means = np.random.default_rng(0).normal(size=(5, 2))
    run(Online(_classes(means), 1.0, 4000, False, rng), Limits(None, None, patience=10**6))
    first, step = (np.concatenate(rng.drawn[k::2]) for k in (0, 1))
    count = np.zeros((5, 5))
    np.add.at(count, (first, (first + step) % 5), 1)
    assert not np.diagonal(count).any()
    both = (count + count.T)[np.triu_indices(5, 1)]
    # Binomial(4000, 1/10): 400 with a deviation of 19.
    assert (np.abs(both - 400) < 5 * 19).all()


@pytest.mark.parametrize("average", [True, False])
def test_online_approaches_the_soft_optimum(average):
    _, means = _means(7, 8, 6)
    n_pairs = _classes(means).n_pairs
    C = 2.0
    lam = 1.0 / (C * n_pairs)
    best = relaxation_value(_solved(means, C).state.Q, means, C)
    gaps = []
    for n_updates in (100, 1000, 10_000, 100_000):
        online = Online(_classes(means), lam, n_updates, average, np.random.default_rng(1))
        Q = online.matrix(run(online, Limits(None, None, patience=10**6)).state)
        gaps.append(relaxation_value(Q, means, C) / best - 1)
    assert min(gaps) >= -1e-9
    assert gaps[0] > gaps[1] > gaps[2] > gaps[3]
    # About 1/T, up to logarithms (Corollary 1).
    assert gaps[3] < gaps[0] / 100
    assert gaps[3] < 2e-3


def test_the_regret_is_below_the_bound_of_theorem_1():
    for seed in range(5):
        rng, means = _means(seed, 8, 6)
        lam = 0.1
        pairs_drawn = [rng.choice(len(means), 2, replace=False) for _ in range(300)]
        steps, _ = algorithm_1(pairs_drawn, means, lam)
        best = _solved(means, 1 / (lam * _classes(means).n_pairs)).state.Q

        def f(Q, i, j, means=means, lam=lam):
            delta = means[i] - means[j]
            return 0.5 * lam * np.sum(Q * Q) + max(0.0, 1.0 - delta @ Q @ delta)

        before = [np.zeros_like(best), *steps[:-1]]
        left = np.mean([f(Q, i, j) for Q, (i, j) in zip(before, pairs_drawn, strict=True)])
        right = np.mean([f(best, i, j) for i, j in pairs_drawn])
        R4 = distances(means).max() ** 2
        assert left <= right + 4 * R4 * (1 + np.log(300)) / (2 * lam * 300)


def test_three_slips_of_the_paper():
    _, means = _means(7, 8, 6)
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
    online = Online(_classes(means), lam / n_pairs, 50_000, True, np.random.default_rng(0))
    right = online.matrix(run(online, Limits(None, None, patience=10**6)).state)
    online = Online(_classes(means), lam, 50_000, True, np.random.default_rng(0))
    literal = online.matrix(run(online, Limits(None, None, patience=10**6)).state)
    best = _solved(means, C).state.Q
    assert np.linalg.norm(right - best) < 0.1 * np.linalg.norm(best)
    assert np.linalg.norm(literal - best) > 0.5 * np.linalg.norm(best)


def test_the_default_lambda_is_small_beside_the_loss():
    for seed in range(10):
        _, means = _means(seed)
        classes = _classes(means)
        lam = default_lam(classes)
        k = means.shape[1]
        Q = np.eye(k) / classes.closest(means, 1).distance[0]
        assert 0.5 * lam * np.sum(Q * Q) == pytest.approx(0.01)


# The upper bound.


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_no_projection_exceeds_the_bound(seed):
    rng, means = _means(seed, 8, 6)
    classes = _classes(means)
    k = means.shape[1]
    d = int(rng.integers(1, k + 1))
    near = classes.closest(means, 64)
    bound = upper_bound(classes, near, np.ones(len(near.first)), d)
    few = classes.closest(means, 2)
    loose = upper_bound(classes, few, np.ones(len(few.first)), d)
    assert bound <= classes.closest(means, 1).distance[0] * (1 + 1e-12)
    # The relaxation's own, as A = WWᵀ has the norm √d; its weights are no worse.
    relaxed = _solved(means).state
    own = upper_bound(classes, relaxed.pairs, relaxed.alpha, d)
    assert own <= np.sqrt(d) / np.linalg.norm(relaxed.Q) * (1 + 1e-5)
    tried = [np.linalg.qr(rng.normal(size=(k, d)))[0] for _ in range(50)]
    tried.append(pushed_apart(classes, tried[0], np.inf))
    tried.append(widest_mean(classes, d))
    for W in tried:
        least = smallest_distance(means, W)
        assert least <= bound * (1 + 1e-9)
        assert least <= loose * (1 + 1e-9)
        assert least <= own * (1 + 1e-9)


def test_the_bound_is_the_value_of_the_convex_problem(monkeypatch):
    import cvxpy as cp

    for seed in (1, 2, 4, 8, 20, 29):
        _, means = _means(seed, 12, 6)
        k = means.shape[1]
        d = max(1, k // 3)
        delta = all_pairs(means)[2]
        A = cp.Variable((k, k), symmetric=True)
        least = cp.min(np.stack([np.outer(x, x).ravel() for x in delta]) @ cp.vec(A, order="C"))
        problem = cp.Problem(cp.Maximize(least), [A >> 0, np.eye(k) - A >> 0, cp.trace(A) == d])
        problem.solve(solver=cp.CLARABEL)
        classes, relaxed = _classes(means), _solved(means).state
        starts = [(relaxed.pairs, relaxed.alpha)]
        # Pairs that are wrong to begin with: the others join.
        starts += [(classes.closest(means, n), np.ones(min(n, len(delta)))) for n in (2, 64)]
        for near, weight in starts:
            bound = upper_bound(classes, near, weight, d)
            assert problem.value * (1 - 1e-6) <= bound <= problem.value * 1.01
        # The search for more classes knows no gap; with pairs of the relaxation it is near.
        with monkeypatch.context() as patch:
            patch.setattr(relaxation, "_NEWTON", 0.0)
            bound = upper_bound(classes, *starts[0], d)
        assert problem.value * (1 - 1e-6) <= bound <= problem.value * 1.15


@pytest.mark.parametrize("d", [1, 3])
def test_the_interior_method_knows_how_good_it_is(d):
    rng = np.random.default_rng(d)
    means = 3 * rng.normal(size=(25, 12)) * rng.uniform(0.2, 1.0, size=12)
    classes = _classes(means)
    near = classes.closest(means, 10)
    values = []
    for tol in (0.1, 1e-2, 1e-4):
        bound, least = interior.least_bound(classes, near, np.ones(10), d, tol)
        assert least <= bound <= least / (1 - tol) * (1 + 1e-12)
        values.append((bound, least))
    # All intervals hold the optimum.
    assert max(low for _, low in values) <= min(high for high, _ in values)
    # Many classes: pairs that are closest in all dimensions are not those that are hard to keep
    # apart in a few.
    loose = relaxation._searched(classes, near, np.ones(10), d)
    assert values[-1][1] <= loose <= 1.2 * values[-1][0]


def test_eigenvalues_are_counted_so_that_there_are_d():
    values = np.array([0.0, 1.0, 1.0 + 1e-9, 2.0, 5.0])
    for d in (1, 2, 3, 4):
        for width in (1e-6, 0.1, 10.0):
            filling = interior.Filling.of(values, d, width)
            assert filling.filled.sum() == pytest.approx(d)
            assert (np.diff(filling.filled) >= 0).all()
            most = values[-d:].sum()
            assert most - 1e-9 <= filling.total <= most + width * 5 * np.log(2)


# The criterion itself.


@pytest.mark.parametrize("sharp", [0.1, 1.0, 10.0])
def test_the_search_ends_where_no_direction_is_uphill(sharp):
    for seed in range(5):
        rng, means = _means(seed, 8, 6)
        means = 4 * means
        prior = rng.uniform(0.5, 1.5, len(means))
        k = means.shape[1]
        d = max(1, k // 2)
        W = pushed_apart(_classes(means, prior), rng.normal(size=(k, d)), sharp, tol=1e-12)
        assert_allclose(W.T @ W, np.eye(d), atol=1e-12)
        value = soft_criterion(means, prior, W, sharp)
        for _ in range(20):
            step = 1e-3 * rng.normal(size=W.shape)
            assert soft_criterion(means, prior, W + step, sharp) <= value * (1 + 1e-7) + 1e-7


def test_the_gradient_of_the_search_is_that_of_the_span(monkeypatch):
    # What L-BFGS is given, against central differences of the plain criterion.
    from scipy import optimize

    seen = {}

    def minimize(fun, x0, **options):
        seen["fun"], seen["x0"] = fun, x0
        return optimize.OptimizeResult(x=x0)

    monkeypatch.setattr("widemargin.discriminant.refine.optimize.minimize", minimize)
    rng, means = _means(6, 8, 6)
    prior = rng.uniform(0.5, 1.5, len(means))
    shape = (means.shape[1], max(1, means.shape[1] // 2))
    softened(_classes(means, prior), rng.normal(size=shape), np.array([0.5]), np.ones(1), 1e-6)
    at = seen["x0"] + 0.3 * rng.normal(size=seen["x0"].shape)
    start = soft_criterion(means, prior, seen["x0"].reshape(shape), 4.0)
    value, slope = seen["fun"](at)
    assert value == pytest.approx(
        -soft_criterion(means, prior, at.reshape(shape), 4.0) / abs(start)
    )
    for i in range(len(at)):
        step = np.zeros_like(at)
        step[i] = 1e-5
        up, down = (
            soft_criterion(means, prior, v.reshape(shape), 4.0) for v in (at + step, at - step)
        )
        assert slope[i] == pytest.approx(-(up - down) / 2e-5 / abs(start), abs=1e-7)


def test_in_the_plane_the_hard_minimum_is_found():
    # One direction in two dimensions: all angles can be tried.
    angle = np.linspace(0, np.pi, 20001)
    W = np.stack([np.cos(angle), np.sin(angle)])
    found = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        means = rng.normal(size=(int(rng.integers(3, 8)), 2)) * [9.0, 3.0]
        least = ((all_pairs(means)[2] @ W) ** 2).min(axis=0)
        classes = _classes(means)
        starts = [widest_mean(classes, 1), *(rng.normal(size=(2, 1)) for _ in range(10))]
        state = run(Refine(classes, starts, np.inf, np.inf), Limits(patience=99)).state
        assert smallest_distance(means, state.best) == pytest.approx(state.reached, rel=1e-9)
        # The best of its neighbourhood at the least.
        near = np.abs(state.best[:, 0] @ W) > np.cos(0.01)
        assert least[near].max() <= state.reached * 1.001
        assert state.reached <= least.max() * (1 + 1e-3)
        found += state.reached >= 0.999 * least.max()
    assert found >= 10


@pytest.mark.parametrize("sharp", [1.0, np.inf])
def test_more_starts_never_make_it_worse_and_none_is_better_than_the_answer(sharp):
    for seed in range(6):
        rng, means = _means(seed, 8, 6)
        k = means.shape[1]
        d = max(1, k // 2)
        classes = _classes(means)
        prior = np.ones(len(means))
        starts = [rng.normal(size=(k, d)) for _ in range(4)]
        starts.append(orthonormal(pushed_apart(classes, rng.normal(size=(k, d)), np.inf)))

        def value(W, means=means, prior=prior):
            return soft_criterion(means, prior, W, sharp)

        solver = Refine(classes, starts, sharp, np.inf)
        state = solver.start()
        for number, start in enumerate(starts, 1):
            before, state = state, solver.step(state)
            assert state.number == number
            assert state.value >= before.value
            assert value(state.best) == pytest.approx(state.value, rel=1e-8)
            assert state.value >= value(start) * (1 - 1e-9)
        assert solver.stopped(state).converged


def test_a_small_gain_counts_only_where_a_start_has_it_already(monkeypatch):
    means = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 3.0]])
    classes = _classes(means)

    def turned(angle):
        return np.array([[np.cos(angle)], [np.sin(angle)]])

    best = turned(0.4)
    for start, searched, accepted in ((0.4 + 1e-6, 0.4 + 1e-6, True), (0.3, 0.4 + 1e-6, False)):
        monkeypatch.setattr(
            "widemargin.discriminant.refine.pushed_apart",
            lambda classes, V, *args, searched=searched, **kwargs: (
                best if V is best else turned(searched)
            ),
        )
        solver = Refine(classes, [best, turned(start)], np.inf, np.inf)
        one = solver.step(solver.start())
        two = solver.step(one)
        gain = smallest_distance(means, turned(searched)) / one.value - 1
        assert 0 < gain < 1e-4
        assert (two.value > one.value) is accepted


def test_a_share_of_the_distance_gives_as_many_directions_as_it_takes():
    for seed in (0, 1, 3):
        _, means = _means(seed, 10, 8)
        means = means @ spanned(means)
        classes = _classes(means)
        k = means.shape[1]
        full = smallest_distance(means)
        assert n_directions(classes, None) == k
        assert n_directions(classes, 1) == 1
        numbers = [n_directions(classes, share) for share in (1e-6, 0.5, 0.9, 1.0)]
        assert numbers == sorted(numbers)
        assert 1 <= numbers[0] <= numbers[-1] <= k
        d = numbers[2]
        W = pushed_apart(classes, widest_mean(classes, d), np.inf, tol=1e-4)
        assert smallest_distance(means, W) >= 0.9 * full * (1 - 1e-9)
        with pytest.raises(ValueError, match=rf"n_components={k + 1} is more than {k}"):
            n_directions(classes, k + 1)


# Streams.


def _labelled(X, y, weight=None):
    weight = np.ones(len(y)) if weight is None else weight
    return LabelledRows(as_rows(X), np.asarray(y), weight, np.arange(len(y)))


def _stream(X, y, weight, capacity, cuts=()):
    stream = Stream.empty(int(max(y)) + 1, X.shape[1], capacity)
    for part in np.split(np.arange(len(y)), cuts):
        stream.add(_labelled(X[part], y[part], weight[part]), DenseColumns(X.shape[1]))
    return stream


def _data(n=120, c=5, d=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    X = 2 * rng.normal(size=(c, d))[y] + rng.normal(size=(n, d))
    # Copies, some of them with another label.
    X[: n // 4] = X[n // 2 : n // 2 + n // 4]
    y[: n // 8] = y[n // 2 : n // 2 + n // 8]
    return X, y, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("capacity", [0, 1, 17, 60, 1000])
def test_the_sample_and_the_rest_are_all_rows_in_any_order(capacity):
    X, y, weight = _data()
    total, mean, within = scatter_by_loops(X, y, weight)
    n_distinct = len(np.unique(np.column_stack([X, y]), axis=0))
    assert n_distinct < 120 - 10
    samples = []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(y))
        cuts = [[], [60], [1, 2, 50, 119], list(range(1, 120))][seed]
        stream = _stream(X[order], y[order], weight[order], capacity, cuts)
        scatter = stream.scatter()
        assert_allclose(scatter.weight, total)
        assert_allclose(scatter.mean, mean, rtol=1e-10)
        assert_allclose(scatter.within, within, rtol=1e-9, atol=1e-9)
        assert len(stream.sample) == min(capacity, n_distinct)
        assert_allclose(
            stream.rest.weight + np.bincount(stream.sample.code, stream.sample.weight, len(total)),
            total,
        )
        samples.append(stream.sample)
    for other in samples[1:]:
        assert_array_equal(other.key, samples[0].key)
        assert_array_equal(other.rows, samples[0].rows)
        assert_array_equal(other.code, samples[0].code)
        assert_allclose(other.weight, samples[0].weight, rtol=1e-12)


def test_rows_of_the_sample_stay_where_they_are():
    X, y, weight = _data(400)
    stream = _stream(X[:300], y[:300], weight[:300], 50)
    storage = stream.sample.storage
    before = dict(zip(stream.sample.key, stream.sample.place, strict=True))
    assert len(storage) == 50
    for row in range(300, 400):
        one = _labelled(X[[row]], y[[row]], weight[[row]])
        stream.add(one, DenseColumns(X.shape[1]))
    # A small block is worth no copy of all.
    assert stream.sample.storage is storage
    after = dict(zip(stream.sample.key, stream.sample.place, strict=True))
    assert 0 < len(before.keys() - after.keys()) < 25
    assert all(after[key] == before[key] for key in before.keys() & after.keys())
    assert sorted(after.values()) == list(range(50))
    assert_array_equal(row_keys(as_rows(stream.sample.rows), stream.sample.code), stream.sample.key)


@pytest.mark.parametrize("capacity", [17, 1000])
@pytest.mark.parametrize("n_folds", [2, 5])
def test_no_row_that_is_held_out_is_in_its_own_scatter(capacity, n_folds):
    X, y, weight = _data()
    stream = _stream(X, y, weight, capacity, [30, 70])
    held_out = []
    for fold in stream.folds(n_folds):
        out = fold.held_out
        # By content: every copy of a row with its label goes with it.
        left = np.array(
            [
                any(
                    (row == x).all() and k == label
                    for row, k in zip(out.rows, out.code, strict=True)
                )
                for x, label in zip(X, y, strict=True)
            ]
        )
        assert_allclose(weight[left].sum(), out.weight.sum())
        total, mean, within = scatter_by_loops(X[~left], np.append(y[~left], 4)[:-1], weight[~left])
        known = np.flatnonzero(total)
        assert_allclose(fold.scatter.weight[known], total[known], rtol=1e-12)
        assert_allclose(fold.scatter.mean[known], mean[known], rtol=1e-9)
        assert_allclose(fold.scatter.within, within, rtol=1e-9, atol=1e-9)
        held_out.append(out.key)
    keys = np.concatenate(held_out)
    assert_array_equal(np.sort(keys), stream.sample.key)


def test_every_fold_has_its_share_of_every_class():
    X, y, weight = _data(400)
    sizes = [
        np.bincount(f.held_out.code, minlength=5) for f in _stream(X, y, weight, 1000).folds(5)
    ]
    assert len(sizes) == 5
    assert (np.ptp(sizes, axis=0) <= 1).all()
    assert np.ptp(np.sum(sizes, axis=1)) <= 5


def test_keys_are_those_of_the_content():
    X = np.round(np.random.default_rng(0).normal(size=(50, 4)), 1)
    X[10], X[11] = X[20], X[20]
    X[3, 2], X[30] = 0.0, X[3]
    X[30, 2] = -0.0
    code = np.zeros(50, dtype=np.intp)
    key = row_keys(as_rows(X), code)
    assert key[10] == key[11] == key[20]
    assert key[3] == key[30]
    assert len(np.unique(key)) == len(np.unique(X + 0.0, axis=0))
    code[11] = 1
    assert row_keys(as_rows(X), code)[11] != key[10]
    assert_array_equal(row_keys(as_rows(sparse.csr_array(X)), code), row_keys(as_rows(X), code))
    index = np.array([20, 3])
    assert_array_equal(row_keys(as_rows(X), code[index], index), key[index])
    distinct = distinct_rows(as_rows(X), code, np.ones(50))
    assert len(distinct.index) == len(np.unique(row_keys(as_rows(X), code)))


# The choice of sharpness and shrinkage.


def _plain_accuracy(X, y, weight, shrinkage, d, n_folds=5):
    """Cross-validated nearest-class-mean accuracy of LDA, from whole matrices."""
    stream = _stream(X, y, weight, len(X))
    right = 0.0
    for fold in stream.folds(n_folds):
        out = fold.held_out
        left = np.isin(row_keys(as_rows(X), y), out.key)
        total, mean, within = scatter_by_loops(X[~left], y[~left], weight[~left])
        S = within / total.sum()
        S = (1 - shrinkage) * S + shrinkage * np.trace(S) / len(S) * np.eye(len(S))
        center = total @ mean / total.sum()
        between = ((mean - center).T * total) @ (mean - center)
        W = eigh(between, S)[1][:, ::-1][:, :d]
        apart = ((out.rows @ W)[:, None] - (mean @ W)[None]) ** 2
        nearest = apart.sum(axis=-1).argmin(axis=1)
        right += out.weight[nearest == out.code].sum()
    return right / weight.sum()


def test_the_accuracy_of_lda_is_that_of_plain_folds():
    X, y, weight = _data(200)
    stream = _stream(X, y, weight, 1000)
    for shrinkage in (0.0, 0.3):
        for d in (1, 2, None):
            found = choose(stream, [shrinkage], [0.0, 1.0], d, None, 1)
            expected = _plain_accuracy(X, y, weight, shrinkage, 3 if d is None else d)
            assert found.shrinkage == shrinkage
            assert found.accuracy["sharpness"][0] == 0.0
            assert found.accuracy["accuracy"][0] == pytest.approx(expected, rel=1e-12)


def test_a_single_value_is_not_questioned():
    X, y, weight = _data()
    found = choose(_stream(X, y, weight, 1000), [0.25], [3.0], 2, None, 1)
    assert (found.shrinkage, found.sharpness) == (0.25, 3.0)
    assert all(len(column) == 0 for column in found.accuracy.values())
    # Nothing can be held out: the softest.
    found = choose(_stream(X, y, weight, 0), [0.1, 0.2], [0.0, np.inf], 2, None, 1)
    assert (found.shrinkage, found.sharpness) == (0.1, 0.0)


def test_the_best_is_chosen_and_of_equals_the_first():
    lines = [(0.1, 0.0, 0.5), (0.1, 1.0, 0.7), (0.1, 3.0, 0.7), (0.1, np.inf, 0.6)]
    assert sharpness._best(lines) == lines[1]

    # Two worse ones in a row end the search; one does not.
    for values, last in (((5, 4, 6, 5, 5, 7), 3.0), ((5, 4, 6, 5, 6, 7), 30.0)):
        curve = dict(zip((0.0, 0.1, 0.3, 1.0, 3.0, 30.0), values, strict=True))
        fold = _KnownFold(curve)
        done = run(sharpness.Trials(lambda fold=fold: [fold], [0.1], list(curve)), Limits())
        assert done.converged
        assert fold.asked[-1] == last
        assert [line[2] for line in done.state.curve] == [curve[s] / 10 for s in fold.asked]


class _KnownFold:
    """What `Trials` needs of a fold, with accuracies that are known; an interrupt in between."""

    weight = 10.0

    def __init__(self, curve, rough=None, interrupt=None):
        self.curve, self.rough, self.interrupt = curve, rough or {}, interrupt
        self.asked, self.shrinkage = [], None

    def at(self, shrinkage):
        self.shrinkage = shrinkage
        return self

    def roughly_right(self):
        return self._told(self.shrinkage, self.rough)

    def right(self, s):
        return self._told(s, self.curve)

    def _told(self, value, known):
        if len(self.asked) == self.interrupt:
            raise KeyboardInterrupt
        self.asked.append(value)
        return known[value]


@pytest.mark.parametrize(
    ("interrupt", "expected"),
    [
        (0, (0.0, 0.0)),  # nothing is known: the softest
        (1, (0.0, 1.0)),  # shrinkages are tried at a sharpness of 1
        (2, (0.3, 1.0)),
        (3, (0.3, 1.0)),  # better than the first of the curve
        (4, (0.3, 1.0)),
        (5, (0.3, 0.3)),  # better than that
        (6, (0.3, 0.3)),
        (99, (0.3, 3.0)),
    ],
)
def test_an_interrupt_of_the_choice_leaves_the_best_until_then(interrupt, expected):
    rough = {0.0: 1.0, 0.3: 6.0}
    curve = dict(zip((0.0, 0.1, 0.3, 1.0, 3.0), (4.0, 5.0, 7.0, 6.5, 8.0), strict=True))
    fold = _KnownFold(curve, rough, interrupt)
    trials = sharpness.Trials(lambda: [fold], list(rough), list(curve))
    result = run(trials, Limits(patience=100))
    assert result.converged == (interrupt == 99)
    assert len(result.state.lines) == min(interrupt, 7)
    assert trials.best(result.state) == expected


def test_what_was_given_is_kept_when_the_choice_is_cut_short():
    X, y, weight = _data()
    stream = _stream(X, y, weight, 1000)
    found = choose(stream, [0.0, 0.1, 0.2], [3.0], 2, None, 1, Deadline.after(1e-9))
    assert (found.shrinkage, found.sharpness, found.converged) == (0.0, 3.0, False)
    assert "max_time" in found.stopped
    fold = _KnownFold({}, {0.0: 1.0, 0.3: 6.0, 0.6: 6.0}, 2)
    trials = sharpness.Trials(lambda: [fold], [0.0, 0.3, 0.6], [3.0])
    assert trials.best(run(trials, Limits()).state) == (0.3, 3.0)


def test_the_nearest_mean_is_that_of_all_distances():
    rng = np.random.default_rng(0)
    means, rows = rng.normal(size=(7, 3)), rng.normal(size=(100, 3))
    code, weight = rng.integers(7, size=100), rng.uniform(size=100)
    nearest = ((rows[:, None] - means[None]) ** 2).sum(-1).argmin(axis=1)
    found = nearest_mean_weight(means, rows, code, weight)
    assert found == pytest.approx(weight[nearest == code].sum())


def test_pairs_are_a_plain_record():
    near = _classes(np.array([[0.0], [1.0], [3.0]])).closest(np.array([[0.0], [1.0], [3.0]]), 2)
    assert isinstance(near, Pairs)
    assert near.distance.tolist() == [1.0, 4.0]
    assert (near.first.tolist(), near.second.tolist()) == ([0, 1], [1, 2])
