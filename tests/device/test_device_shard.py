"""A shard on a device answers as one on this machine does."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from widemargin.device import DeviceRows, to_numpy
from widemargin.kernels import make_kernel
from widemargin.problem import Problem, one_vs_one, one_vs_rest
from widemargin.rows import as_rows, distinct_rows
from widemargin.span.basis import Basis, Vectors
from widemargin.span.device_basis import DeviceBasis
from widemargin.span.device_shard import DeviceShard
from widemargin.span.shard import GramPlan, Shard

N, VECTORS = 300, 7


def _problem(pairs=False, memory=10**7, stored=np.asarray):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(N, 3)), rng.integers(3, size=N)
    distinct = distinct_rows(
        as_rows(stored(X), memory=memory, threads=1), y, rng.uniform(0.5, 2.0, size=N)
    )
    code, kernel = y[distinct.index], make_kernel("rbf", gamma=0.5)
    problem = Problem.of(
        distinct.rows, kernel, code, one_vs_rest(3), distinct.weight, 2.0, distinct.index
    )
    return problem.with_signs(one_vs_one(3)) if pairs else problem


def _told(shard, live, wanted=240, by_fold=False):
    """Return the answers of a shard to all questions of a fit."""
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(VECTORS, 3))
    beta, direction = rng.normal(size=(2, VECTORS + 1, 3))
    direction, length = direction[:, live], np.array([0.1, 0.5, 2.0])[live]
    shard.add(vectors[:4])
    shard.add(vectors[4:])
    shard.score(beta, 0, wanted)
    told = [*shard.pull(wanted, live, True, None)]
    shard.blend(wanted, live, np.array([0.5, 0.2, 1.0])[live])
    lengths = np.stack([0.0 * length, length])
    told += [*shard.look_along(direction, live, wanted, wanted, lengths)]
    told += [shard.along(live, length[None])]
    shard.advance(live, length)
    told += [*shard.pull(wanted, live, True, 0.1 * direction)]
    for judges in ((), (1,), (0, 2)):
        for most in (40, 1000):
            plan = GramPlan(judges, wanted, most, None, by_fold, True, True)
            gram = shard.gram(plan)
            told += [*map(to_numpy, gram.sums), gram.count, gram.weight, gram.used_weight]
            told += [*shard.inside(plan)]
    threshold = int(shard.problem.rows.keys[20])
    gram = shard.gram(GramPlan((1,), wanted, 40, threshold, False, True, True))
    told += [to_numpy(gram.sums[0]), gram.count, shard.moments(beta[:-1]), shard.felt(wanted)]
    told += [*shard.candidates(20, 5, wanted), *shard.candidates(20, 6, None)]
    told += [*shard.taken(np.array([3, 8, 250]))]
    shard.score(beta, wanted, N)
    told += [shard.near(0.3), shard.rounding(vectors, beta, 50)]
    shard.bring_near(0.3)
    near = shard.near(0.3)
    told += [near, shard.order.copy(), *shard.pull(near, live, True, None)]
    gram = shard.gram(GramPlan((1,), near, 10, None, False, True, True))
    told += [to_numpy(gram.sums[0]), gram.count, shard.scores_in_order(), shard.weight()]
    told += [shard.below(np.sort(shard.problem.rows.keys)[[5, 50]]), shard.rows_kept(3)]
    shard.forget_mixture()
    found = shard.outcome()
    told += [found.wrong, found.weight, found.least, found.largest]
    shard.restart(shard.dtype)
    told += [shard.pull(N, live, False, None)[0]]
    problem = shard.problem
    shard.restate(-problem.table, 2.0 * problem.C, problem.counts)
    return [*told, shard.pull(N, live, False, None)[0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("live", [[0, 1, 2], [0, 2], [1]])
@pytest.mark.parametrize("room", [10**7, 4 * VECTORS * 8 * 10, 0], ids=["kept", "few kept", "none"])
def test_answers_are_those_of_a_shard_here(device, dtype, live, room):
    problem, dtype = _problem(), np.dtype(dtype)
    here = Shard(problem, dtype, room, VECTORS, 32)
    # Operands and scores are counted there, too.
    others = N * dtype.itemsize * (3 + 2 + 9 * 3)
    there = DeviceShard(problem, device, dtype, room + others, VECTORS, 32)
    tolerance = 1e-9 if dtype == np.float64 else 2e-4
    answers = _told(here, np.array(live)), _told(there, np.array(live))
    for expected, found in zip(*answers, strict=True):
        assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    assert there.complete() == here.complete()


@pytest.mark.parametrize("by_fold", [False, True])
def test_pairs_of_classes_leave_out_rows(device, by_fold):
    problem, dtype, live = _problem(pairs=True), np.dtype(np.float64), np.arange(3)
    here = _told(Shard(problem, dtype, 10**7, VECTORS, 32), live, by_fold=by_fold)
    there = DeviceShard(problem, device, dtype, 10**7, VECTORS, 32)
    for expected, found in zip(here, _told(there, live, by_fold=by_fold), strict=True):
        assert_allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("memory", [10**7, 4000], ids=["there", "travelling"])
@pytest.mark.parametrize("stored", ["array", "csr", "device"])
def test_it_makes_no_difference_where_rows_are_stored(device, memory, stored):
    forms = {"array": np.asarray, "csr": sparse.csr_array, "device": np.asarray}
    problem = _problem(memory=memory, stored=forms[stored])
    if stored == "device":
        X = device.array(problem.rows.X)
        rows = DeviceRows(X, device, memory, 1).subset(problem.number).keyed(problem.rows.keys)
        problem = Problem.of(
            rows, problem.kernel, problem.code, problem.table, problem.weight, 2.0, problem.number
        )
    dtype, live = np.dtype(np.float64), np.arange(3)
    expected = _told(Shard(_problem(), dtype, 10**7, VECTORS, 32), live)
    found = _told(DeviceShard(problem, device, dtype, 10**7, VECTORS, 32), live)
    for one, other in zip(expected, found, strict=True):
        assert_allclose(other, one, rtol=1e-9, atol=1e-9)


def test_a_shard_that_shares_values_has_the_order_of_the_other(device):
    problem, dtype, live = _problem(), np.dtype(np.float64), np.arange(3)
    shards = []
    for first in (
        Shard(problem, dtype, 10**7, VECTORS, 32),
        DeviceShard(problem, device, dtype, 10**7, VECTORS, 32),
    ):
        _told(first, live)
        args = (device,) if isinstance(first, DeviceShard) else ()
        shards.append(type(first)(problem, *args, dtype, 10**7, VECTORS, 32, shared=first))
    beta = np.random.default_rng(2).normal(size=(VECTORS + 1, 3))
    for shard in shards:
        shard.score(beta, 0, N)
    # The last of the sums means nothing without a mixture.
    (pull, sums), (other, others) = (shard.pull(N, live, False, None) for shard in shards)
    assert_allclose(other, pull, rtol=1e-9, atol=1e-9)
    assert_allclose(others[:3], sums[:3], rtol=1e-9, atol=1e-9)
    assert_array_equal(shards[0].order, shards[1].order)


def test_independent_vectors_are_taken_as_they_come(device):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 5))
    rows, kernel = as_rows(X, memory=10**7, threads=1), make_kernel("rbf", gamma=2.0)
    here, there = Basis.empty(), DeviceBasis.on(device, 1)
    for first, last in ((0, 25), (25, 60)):
        index = np.arange(first, last)
        here, there = (
            basis.extended(kernel, Vectors(X[index], index), 1e-6, rows) for basis in (here, there)
        )
    # No pivots are looked for: their order is the only difference.
    assert_array_equal(there.vectors.index, np.arange(60))
    order = here.vectors.index
    columns = rng.normal(size=(61, 2))
    permuted = np.vstack([columns[:-1][order], columns[-1]])
    assert_allclose(there.metric(columns)[:-1][order], here.metric(permuted)[:-1], rtol=1e-9)
    lengths = np.linalg.norm(there.whitened(columns[:-1]), axis=0)
    assert_allclose(lengths, np.linalg.norm(here.whitened(permuted[:-1]), axis=0), rtol=1e-9)


@pytest.mark.parametrize("name", ["rbf", "linear"])
def test_a_basis_has_the_vectors_and_the_algebra_of_one_here(device, name):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 5))
    # Some vectors lie in the span of the others.
    X[[20, 24, 50]] = X[[3, 1, 7]]
    rows, kernel = as_rows(X, memory=10**7, threads=1), make_kernel(name, gamma=0.2)
    here, there = Basis.empty(), DeviceBasis.on(device)
    for first, last in ((0, 25), (25, 60)):
        index = np.arange(first, last)
        here, there = (
            basis.extended(kernel, Vectors(X[index], index), 1e-6, rows) for basis in (here, there)
        )
        assert_array_equal(there.vectors.index, here.vectors.index)
        assert_allclose(there.gram_here, here.gram, rtol=1e-12, atol=1e-12)
    assert there.size == here.size
    columns = rng.normal(size=(here.size + 1, 2))
    matrix = np.cov(rng.normal(size=(here.size + 1, 200)))
    for told in (
        lambda b: b.metric(columns),
        lambda b: b.whitened(columns[:-1]),
        lambda b: b.coefficients(columns[:-1]),
        lambda b: b.solved(
            b.factorised(
                device.array(matrix) if b is there else matrix.copy(),
                np.float64,
            ),
            columns,
        ),
    ):
        assert_allclose(told(there), told(here), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("at_a_time", [1, 4, 10**9])
def test_copies_of_a_vector_are_left_out(device, at_a_time):
    X = np.random.default_rng(3).normal(size=(30, 5))
    X[10:20] = X[:10]
    rows = as_rows(X, memory=10**7, threads=1)
    basis, kernel = DeviceBasis.on(device, at_a_time), make_kernel("rbf", gamma=0.2)
    for part in (slice(0, 15), slice(15, 30)):
        basis = basis.extended(kernel, Vectors(X[part], np.arange(30)[part]), 1e-6, rows)
    assert basis.size == len(np.unique(X[basis.vectors.index], axis=0)) == 20


def test_a_matrix_without_a_factor_is_changed_until_it_has_one(device):
    basis = DeviceBasis.on(device)
    factor = basis.factorised(device.array(np.full((1, 1), -1.0 - 1e-16)), np.float64)
    assert np.isfinite(to_numpy(factor)).all()


@pytest.mark.parametrize("at_a_time", [7, 20, 40])
def test_vectors_that_join_in_parts_span_what_all_of_them_span(device, at_a_time):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 15)) @ rng.normal(size=(15, 15))
    rows, kernel = as_rows(X, memory=10**7, threads=1), make_kernel("linear")
    basis = DeviceBasis.on(device, at_a_time)
    basis = basis.extended(kernel, Vectors(X, np.arange(40)), 1e-10, rows)
    assert basis.size == 15
    # What the span leaves of every row is nothing.
    below = basis.whitened(X[basis.vectors.index] @ X.T)
    assert_allclose((below**2).sum(axis=0), (X**2).sum(axis=1), rtol=1e-9)
    # Where no vector lies in the span of the others, all join at once.
    alone = DeviceBasis.on(device, at_a_time).extended(
        kernel, Vectors(X[:15], np.arange(15)), 1e-10, rows
    )
    assert_array_equal(np.sort(alone.vectors.index), np.arange(15))
