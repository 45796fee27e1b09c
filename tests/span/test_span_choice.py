"""Where the vectors of a span come from."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tests.reference import kernels as plain_kernels
from tests.reference import span as reference
from widemargin.kernels import make_kernel
from widemargin.rows import as_rows
from widemargin.span import (
    STRATEGIES,
    CoreVectors,
    GivenVectors,
    KMeansVectors,
    LeverageVectors,
    RandomVectors,
    as_strategy,
)
from widemargin.span.draws import drawn_places


def plain(name, A, B):
    return plain_kernels.block(name, A, B, gamma=0.5)


def rows_of(X, memory=10**8, threads=1, precomputed=False):
    return as_rows(X, memory=memory, threads=threads, precomputed=precomputed)


def begun(strategy, X, weight=None, seed=0, kernel=None):
    weight = np.ones(len(X)) if weight is None else weight
    kernel = make_kernel("rbf", gamma=0.5) if kernel is None else kernel
    return strategy.begin(rows_of(X), kernel, weight, np.random.default_rng(seed))


@pytest.mark.parametrize("strategy", [RandomVectors(), CoreVectors(), LeverageVectors()])
def test_rows_are_drawn_once_and_those_of_no_weight_never(strategy):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    weight = np.where(rng.random(60) < 0.3, 0.0, 1.0)
    choice = begun(strategy, X, weight)
    drawn = [choice.draw(count, None) for count in (7, 11, 100)]
    index = np.concatenate([some.index for some in drawn])
    assert len(np.unique(index)) == len(index) == choice.drawn
    assert set(index) <= set(np.flatnonzero(weight))
    if not isinstance(strategy, LeverageVectors):
        assert len(index) == (weight > 0).sum()
    for some in drawn:
        np.testing.assert_array_equal(some.values, X[some.index])


def test_first_draws_are_in_proportion_to_the_weights():
    weight = np.array([1.0, 2.0, 0.0, 5.0])
    rng = np.random.default_rng(0)
    n_trials = 20_000
    first = [drawn_places(weight, 1, rng)[0] for _ in range(n_trials)]
    share = np.bincount(first, minlength=4) / n_trials
    np.testing.assert_allclose(share, weight / weight.sum(), atol=5 * 0.5 / np.sqrt(n_trials))


def test_second_draws_are_in_proportion_to_what_is_left():
    weight = np.array([1.0, 2.0, 5.0])
    rng = np.random.default_rng(1)
    n_trials = 20_000
    pairs = [tuple(drawn_places(weight, 2, rng)) for _ in range(n_trials)]
    for i, j in [(0, 1), (1, 0), (2, 0), (2, 1)]:
        expected = weight[i] / 8.0 * weight[j] / (8.0 - weight[i])
        assert pairs.count((i, j)) / n_trials == pytest.approx(
            expected, abs=2.5 / np.sqrt(n_trials)
        )


def test_core_vectors_come_from_inside_the_margin_as_long_as_there_are_some():
    X = np.random.default_rng(0).normal(size=(50, 2))
    felt = np.zeros(50)
    felt[10:30] = 1.0
    choice = begun(CoreVectors(), X)
    before = set(choice.draw(10, None).index)
    inside = set(range(10, 30)) - before
    assert set(choice.draw(len(inside) - 2, lambda: felt).index) < inside
    # Then what is left inside, and random rows.
    rest = choice.draw(12, lambda: felt).index
    assert len(rest) == 12 and len(set(rest) & inside) == 2
    assert choice.drawn == 10 + len(inside) + 10


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_the_seed_decides_the_vectors(name):
    X = np.random.default_rng(0).normal(size=(80, 3))
    first, same, other = (
        begun(STRATEGIES[name](), X, seed=seed).draw(10, None).values for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("name", ["random", "core", "leverage"])
def test_adopted_rows_are_not_drawn_again(name):
    X = np.random.default_rng(0).normal(size=(40, 3))
    choice = begun(STRATEGIES[name](), X)
    assert choice.adopt(np.arange(20)) and choice.drawn == 20
    assert choice.draw(100, None).index.min() >= 20
    assert choice.exhausted


def test_leverage_leaves_no_copy_in_and_covers_better_than_chance():
    rng = np.random.default_rng(0)
    X = np.vstack([np.repeat(rng.normal(size=(3, 2)), 100, axis=0), rng.normal(size=(60, 2)) * 4])
    K = plain("rbf", X, X)

    def uncovered(strategy, seed):
        index = begun(strategy, X, seed=seed).draw(15, None).index
        T = reference.orthonormal(K[np.ix_(index, index)], 1e-10)
        return len(K) - ((K[:, index] @ T.T) ** 2).sum()

    strategies = (LeverageVectors(), RandomVectors())
    lost = [[uncovered(s, seed) for seed in range(10)] for s in strategies]
    assert np.mean(lost[0]) < 0.8 * np.mean(lost[1])
    for seed in range(10):
        values = begun(LeverageVectors(), X[:300], seed=seed).draw(15, None).values
        assert len(np.unique(values, axis=0)) == len(values) == 3


def test_leverage_has_no_more_to_give_when_the_rows_are_covered():
    X = np.repeat(np.random.default_rng(0).normal(size=(3, 2)), 20, axis=0)
    for rows, size in ((X, 3), (np.zeros((30, 2)), 0)):
        choice = begun(LeverageVectors(), rows, kernel=make_kernel("poly", gamma=1.0, degree=2))
        assert len(choice.draw(6, None)) == size and choice.exhausted
    choice = begun(LeverageVectors(), np.random.default_rng(0).normal(size=(60, 2)))
    assert len(choice.draw(6, None)) == 6 and not choice.exhausted


def test_leverage_looks_at_the_kernel_of_the_rows_whatever_their_order():
    X = np.random.default_rng(0).normal(size=(60, 3))
    K = plain("rbf", X, X)
    order = np.random.default_rng(1).permutation(60)
    kernel, weight = make_kernel("precomputed"), np.ones(60)
    rows = rows_of(K, precomputed=True).subset(order)
    given = LeverageVectors().begin(rows, kernel, weight, np.random.default_rng(2)).draw(7, None)
    direct = begun(LeverageVectors(), X[order], seed=2).draw(7, None)
    np.testing.assert_array_equal(given.index, direct.index)
    np.testing.assert_array_equal(given.values[:, 0], order[given.index])


def test_kmeans_finds_the_centres_of_far_apart_clusters():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [50.0, 0.0], [0.0, 50.0]])
    X = np.repeat(centres, 40, axis=0) + rng.normal(size=(120, 2))
    choice = begun(KMeansVectors(rows_per_vector=40), X)
    found = choice.draw(12, None).values
    assert found.shape == (12, 2) and choice.exhausted
    distance = np.linalg.norm(found[:, None] - centres, axis=2)
    assert distance.min(axis=1).max() < 5.0


def test_kmeans_of_all_rows_uses_their_weights():
    X = np.array([[0.0], [1.0]])
    found = begun(KMeansVectors(), X, np.array([1.0, 3.0])).draw(1, None).values
    np.testing.assert_allclose(found, [[0.75]])


def test_given_vectors_come_in_their_order():
    vectors = np.arange(12.0).reshape(6, 2)
    choice = begun(as_strategy(vectors.tolist(), 2), np.zeros((3, 2)))
    np.testing.assert_array_equal(choice.draw(4, None).values, vectors[:4])
    assert not choice.exhausted
    np.testing.assert_array_equal(choice.draw(4, None).values, vectors[4:])
    assert choice.exhausted and choice.draw(4, None).index is None


def test_the_vectors_parameter_may_be_a_name_an_array_or_a_strategy():
    assert as_strategy("core", 3) == CoreVectors()
    own = KMeansVectors(5)
    assert as_strategy(own, 3) is own
    array = as_strategy(sparse.csr_array(np.eye(3)), 3)
    assert isinstance(array, GivenVectors)
    np.testing.assert_array_equal(array.vectors, np.eye(3))


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ("centres", r"vectors='centres' is not known; use one of 'random', 'core'"),
        (np.eye(3), r"shape \(3, 3\) must be a matrix with a column for each of the 4 features"),
        (np.empty((0, 4)), "at least one row"),
        (np.ones(4), r"shape \(4,\)"),
        (np.full((2, 4), np.nan), "NaN or infinite"),
    ],
)
def test_vectors_that_make_no_sense_are_refused(vectors, message):
    with pytest.raises(ValueError, match=message):
        as_strategy(vectors, 4)


def test_kmeans_refuses_a_precomputed_kernel():
    with pytest.raises(ValueError, match="vectors='kmeans' needs the rows themselves"):
        begun(KMeansVectors(), np.eye(3), kernel=make_kernel("precomputed"))


def test_given_vectors_need_a_kernel_that_can_be_evaluated():
    rows = as_rows(np.eye(4), memory=10**6, threads=1, precomputed=True)
    with pytest.raises(ValueError, match="precomputed"):
        as_strategy(np.eye(4)[:2], 4).begin(
            rows, make_kernel("precomputed"), np.ones(4), np.random.default_rng(0)
        )


@pytest.mark.parametrize("values", [np.ones((2, 3), dtype=complex), np.full((2, 3), "a")])
def test_vectors_that_are_no_real_numbers_are_an_error_that_names_them(values):
    with pytest.raises(TypeError, match="vectors"):
        as_strategy(values, 3)
