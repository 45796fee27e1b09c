"""The upper bound, and the search for directions below it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.reference.maxi_min import all_pairs, smallest_distance, soft_criterion
from tests.reference.pair_problems import classes_of, random_means, solved
from widemargin.loop import Limits, run
from widemargin.pairs.class_pairs import spanned
from widemargin.pairs.interior_bound import filling, least_bound
from widemargin.pairs.maxi_min_engine import n_directions
from widemargin.pairs.refine import Refine, orthonormal, pushed_apart, softened, widest_mean
from widemargin.pairs.relaxation import upper_bound

# The upper bound.


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6))
def test_no_projection_exceeds_the_bound(seed):
    rng, means = random_means(seed, 8, 6)
    classes = classes_of(means)
    k = means.shape[1]
    d = int(rng.integers(1, k + 1))
    near = classes.closest(means, 64)
    bound = upper_bound(classes, near, np.ones(len(near.first)), d)
    few = classes.closest(means, 2)
    loose = upper_bound(classes, few, np.ones(len(few.first)), d)
    assert bound <= classes.closest(means, 1).distance[0] * (1 + 1e-12)
    # The relaxation's own, as A = WWᵀ has the norm √d; its weights are no worse.
    relaxed = solved(means).state
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


def test_the_bound_is_the_value_of_the_convex_problem():
    import cvxpy as cp

    for seed in (1, 2, 4, 8, 20, 29):
        _, means = random_means(seed, 12, 6)
        k = means.shape[1]
        d = max(1, k // 3)
        delta = all_pairs(means)[2]
        A = cp.Variable((k, k), symmetric=True)
        least = cp.min(np.stack([np.outer(x, x).ravel() for x in delta]) @ cp.vec(A, order="C"))
        problem = cp.Problem(cp.Maximize(least), [A >> 0, np.eye(k) - A >> 0, cp.trace(A) == d])
        problem.solve(solver=cp.CLARABEL)
        classes, relaxed = classes_of(means), solved(means).state
        starts = [(relaxed.pairs, relaxed.alpha)]
        # Pairs that are wrong to begin with: the others join.
        starts += [(classes.closest(means, n), np.ones(min(n, len(delta)))) for n in (2, 64)]
        for near, weight in starts:
            bound = upper_bound(classes, near, weight, d)
            assert problem.value * (1 - 1e-6) <= bound <= problem.value * 1.01
        # The search for more classes knows no gap; with pairs of the relaxation it is near.
        bound = upper_bound(classes, *starts[0], d, most_by_newton=0.0)
        assert problem.value * (1 - 1e-6) <= bound <= problem.value * 1.15


@pytest.mark.parametrize("d", [1, 3])
def test_the_interior_method_knows_how_good_it_is(d):
    rng = np.random.default_rng(d)
    means = 3 * rng.normal(size=(25, 12)) * rng.uniform(0.2, 1.0, size=12)
    classes = classes_of(means)
    near = classes.closest(means, 10)
    values = []
    for tol in (0.1, 1e-2, 1e-4):
        bound, least = least_bound(classes, near, np.ones(10), d, tol)
        assert least <= bound <= least / (1 - tol) * (1 + 1e-12)
        values.append((bound, least))
    # All intervals hold the optimum.
    assert max(low for _, low in values) <= min(high for high, _ in values)
    # Many classes: pairs that are closest in all dimensions are not those that are hard to keep
    # apart in a few.
    loose = upper_bound(classes, near, np.ones(10), d, most_by_newton=0.0)
    assert values[-1][1] <= loose <= 1.2 * values[-1][0]


def test_eigenvalues_are_counted_so_that_there_are_d():
    values = np.array([0.0, 1.0, 1.0 + 1e-9, 2.0, 5.0])
    for d in (1, 2, 3, 4):
        for width in (1e-6, 0.1, 10.0):
            filled, total = filling(values, d, width)
            assert filled.sum() == pytest.approx(d)
            assert (np.diff(filled) >= 0).all()
            most = values[-d:].sum()
            assert most - 1e-9 <= total <= most + width * 5 * np.log(2)


# The criterion itself.


@pytest.mark.parametrize("sharp", [0.1, 1.0, 10.0])
def test_the_search_ends_where_no_direction_is_uphill(sharp):
    for seed in range(5):
        rng, means = random_means(seed, 8, 6)
        means = 4 * means
        prior = rng.uniform(0.5, 1.5, len(means))
        k = means.shape[1]
        d = max(1, k // 2)
        W = pushed_apart(classes_of(means, prior), rng.normal(size=(k, d)), sharp, tol=1e-12)
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

    monkeypatch.setattr("widemargin.pairs.refine.optimize.minimize", minimize)
    rng, means = random_means(6, 8, 6)
    prior = rng.uniform(0.5, 1.5, len(means))
    shape = (means.shape[1], max(1, means.shape[1] // 2))
    softened(classes_of(means, prior), rng.normal(size=shape), np.array([0.5]), np.ones(1), 1e-6)
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
        classes = classes_of(means)
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
        rng, means = random_means(seed, 8, 6)
        k = means.shape[1]
        d = max(1, k // 2)
        classes = classes_of(means)
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
    classes = classes_of(means)

    def turned(angle):
        return np.array([[np.cos(angle)], [np.sin(angle)]])

    best = turned(0.4)
    for start, searched, accepted in ((0.4 + 1e-6, 0.4 + 1e-6, True), (0.3, 0.4 + 1e-6, False)):
        monkeypatch.setattr(
            "widemargin.pairs.refine.pushed_apart",
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
        _, means = random_means(seed, 10, 8)
        means = means @ spanned(means)
        classes = classes_of(means)
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
