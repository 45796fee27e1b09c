"""Rows in shards: sums do not depend on how rows are cut."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from widemargin.kernels import make_kernel
from widemargin.problem import Problem, one_vs_rest
from widemargin.rows import as_rows, distinct_rows
from widemargin.span.draws import earliest, exponential
from widemargin.span.shard import GramPlan, Shard
from widemargin.span.shards import Each, Here, Shards

N, VECTORS = 300, 7


def _rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    y = rng.integers(3, size=N)
    weight = rng.uniform(0.5, 2.0, size=N)
    return X, y, weight


def _shard(X, y, weight, room=10**7):
    distinct = distinct_rows(as_rows(X, memory=10**7, threads=1), y, weight)
    kernel = make_kernel("rbf", gamma=0.5)
    table = one_vs_rest(3)
    problem = Problem.of(
        distinct.rows, kernel, y[distinct.index], table, distinct.weight, 2.0, distinct.index
    )
    return Shard(problem, np.dtype(np.float64), room, VECTORS, 32)


def _cut(count, seed=0, room=10**7):
    """Return the rows in one shard, and in several."""
    X, y, weight = _rows(seed)
    bounds = np.linspace(0, N, count + 1).astype(int)
    parts = [slice(a, b) for a, b in itertools.pairwise(bounds)]
    cut = [_shard(X[part], y[part], weight[part], room) for part in parts]
    return Shards(Here([_shard(X, y, weight, room)]), 32), Shards(Here(cut), 32)


@given(st.integers(2, 9), st.integers(0, 100), st.integers(10, N))
@settings(max_examples=25, deadline=None)
def test_sums_over_shards_are_those_over_all_rows(count, seed, wanted):
    whole, cut = _cut(count, seed)
    rng = np.random.default_rng(seed)
    vectors, live = rng.normal(size=(VECTORS, 3)), np.arange(3)
    beta, direction = rng.normal(size=(2, VECTORS + 1, 3))
    answers = []
    for shards in (whole, cut):
        shards.add(vectors)
        n_rows = shards.first(wanted)
        assert n_rows == wanted
        shards.score(beta, 0, n_rows)
        told = [*shards.pull(n_rows, live, True, None)]
        slope, scale = shards.look_along(direction, live, n_rows, n_rows, np.zeros((1, 3)))
        told += [slope, scale, shards.along(live, np.array([[0.1, 0.5, 2.0], [0.2, 0.0, 1.0]]))]
        shards.advance(live, np.array([0.1, 0.5, 2.0]))
        shards.blend(n_rows, live, np.array([0.5, 0.2, 1.0]))
        told += [*shards.pull(n_rows, live, True, 0.1 * direction)]
        plan = GramPlan((1,), n_rows, 40, None, False, True, True)
        gram = shards.gram(plan)
        told += [*gram.sums, gram.count, gram.weight, gram.used_weight]
        told += [shards.moments(beta[:-1])]
        answers.append(told)
    for one, many in zip(*answers, strict=True):
        assert_allclose(many, one, rtol=1e-9, atol=1e-10)


@given(st.integers(2, 9), st.integers(0, 100), st.integers(1, N))
@settings(max_examples=25, deadline=None)
def test_the_same_rows_are_drawn_however_they_are_cut(count, seed, wanted):
    whole, cut = _cut(count, seed)

    drawn = [shards.draw(wanted, seed, None) for shards in (whole, cut)]
    assert_array_equal(drawn[0][0], drawn[1][0])
    again = [shards.draw(5, seed, None)[0] for shards in (whole, cut)]
    assert_array_equal(again[0], again[1])
    # Each row once.
    both = np.concatenate([drawn[1][0], again[1]])
    assert len(np.unique(both, axis=0)) == len(both) == min(N, wanted + 5)


def test_rows_that_the_machine_feels_are_drawn_among_the_first_ones():
    whole, cut = _cut(4)
    vectors = np.random.default_rng(1).normal(size=(VECTORS, 3))
    for shards in (whole, cut):
        shards.add(vectors)
        shards.score(np.zeros((VECTORS + 1, 3)), 0, shards.first(50))
    one, many = (shards.draw(20, 3, shards.first(50)) for shards in (whole, cut))
    assert_array_equal(one[0], many[0])
    keys = whole.only.problem.rows.keys
    first = set(map(tuple, whole.only.problem.rows.take(np.argsort(keys)[:50])))
    assert all(tuple(row) in first for row in many[0])


def test_draws_follow_the_weights():
    keys = np.random.default_rng(0).integers(2**63, size=20_000, dtype=np.uint64)
    weight = np.repeat([1.0, 3.0], 10_000)
    counts = [(earliest(weight, 400, keys, seed)[1] >= 10_000).mean() for seed in range(50)]
    assert np.mean(counts) == pytest.approx(0.75, abs=0.02)
    times = exponential(keys, 7)
    assert times.mean() == pytest.approx(1.0, abs=0.05)
    assert (times > 1.0).mean() == pytest.approx(np.exp(-1.0), abs=0.02)


@pytest.mark.parametrize("room", [0, 10**7])
def test_near_rows_come_to_the_front_of_every_shard(room):
    whole, cut = _cut(3, room=room)
    vectors = np.random.default_rng(1).normal(size=(VECTORS, 3))
    live, beta = np.arange(3), 2.0 * np.random.default_rng(2).normal(size=(VECTORS + 1, 3))
    sums = []
    for shards in (whole, cut):
        shards.add(vectors)
        shards.score(beta, 0, N)
        full = shards.pull(N, live, False, None)
        near = shards.near(1.0)
        n_rows = shards.bring_near(1.0, near)
        assert n_rows == sum(near)
        # Rows outside every margin add nothing.
        front = shards.pull(n_rows, live, False, None)
        assert_allclose(front[0], full[0], rtol=1e-10)
        sums.append(full[0])
    assert_allclose(sums[0], sums[1], rtol=1e-10)


def test_a_fork_leaves_the_shard_as_it_was():
    shard = _shard(*_rows())
    vectors = np.random.default_rng(1).normal(size=(VECTORS, 3))
    beta, live = np.random.default_rng(2).normal(size=(VECTORS + 1, 3)), np.arange(3)
    shard.add(vectors)
    shard.score(beta, 0, N)
    before = shard.pull(N, live, True, None)
    other = shard.fork()
    other.pull(N, live, True, beta)
    other.blend(N, live, np.ones(3))
    other.bring_near(0.5)
    other.taken(np.arange(5))
    other.add(vectors[:2] + 1.0)
    other.score(np.zeros((VECTORS + 3, 3)), 0, N)
    after = shard.pull(N, live, True, None)
    for one, two in zip(before, after, strict=True):
        assert_array_equal(one, two)
    assert shard.values.size == VECTORS
    assert shard.candidates(N, 0, None)[1].size == N


def test_an_argument_may_be_another_one_for_each_shard():
    _, cut = _cut(3)
    sizes = cut.place.sizes
    answers = cut.place.ask("below", Each(np.full(1, 2**64 - 1, dtype=np.uint64) for _ in sizes))
    assert [int(each[0]) for each in answers] == list(sizes)


def test_other_problems_begin_anew_on_rows_that_have_changed_places():
    whole, cut = _cut(4)
    rng = np.random.default_rng(2)
    vectors, beta = rng.normal(size=(VECTORS, 3)), rng.normal(size=(VECTORS + 1, 3))
    problem = whole.only.problem.columns([2, 0])
    answers = []
    for shards in (whole, cut):
        shards.add(vectors)
        shards.score(beta, 0, N)
        computed = shards.n_kernel
        shards.bring_near(0.9, shards.near(0.9))
        shards.restate(problem)
        assert shards.first(100) <= 100
        shards.score(beta[:, 1:], 0, N)
        told = [*shards.pull(N, np.arange(2), True, None)]
        outcome = shards.outcome()
        answers.append([*told, outcome.wrong, outcome.weight, outcome.least, outcome.largest])
        assert shards.n_kernel == computed
    for one, many in zip(*answers, strict=True):
        assert_allclose(many, one, rtol=1e-9, atol=1e-10)
    decision = whole.scores()
    wrong = problem.table[whole.only.problem.code[np.argsort(whole.only.order)]] * decision <= 0
    weight = whole.only.weight()
    assert_allclose(answers[0][2], [weight[each].sum() for each in wrong.T])
