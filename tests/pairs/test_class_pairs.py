"""Pairs of classes: the closest, their soft minimum and its derivative."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests.reference.maxi_min import all_pairs, distances, soft_minimum
from tests.reference.pair_problems import classes_of, random_means
from widemargin.pairs.class_pairs import Pairs, spanned


@pytest.mark.parametrize("block", [1, 50, 1 << 18])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_closest_pairs_are_those_of_the_whole_matrix(block, threads):
    for seed in range(10):
        _, Y = random_means(seed)
        first, second, delta = all_pairs(Y)
        expected = (delta**2).sum(axis=1)
        order = np.argsort(expected, kind="stable")
        classes = classes_of(Y, threads=threads, block=block)
        for count in (1, 3, classes.n_pairs, 10 * classes.n_pairs):
            found = classes.closest(Y, count)
            assert_allclose(found.distance, expected[order][:count], rtol=1e-10)
            assert_array_equal(found.first, first[order][:count])
            assert_array_equal(found.second, second[order][:count])


def test_pairs_of_thousands_of_classes_need_no_matrix_of_them():
    import tracemalloc

    means = np.random.default_rng(0).normal(size=(2500, 6))
    classes = classes_of(means)
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
        rng, Y = random_means(seed)
        prior = rng.dirichlet(np.ones(len(Y))) * 7
        found = classes_of(Y, prior).soft_minimum(Y, np.array([rate]), np.ones(1))[0]
        assert_allclose(found, soft_minimum(distances(Y), prior, rate), rtol=1e-8)


def test_the_soft_minimum_runs_from_the_mean_to_the_minimum():
    for seed in range(20):
        rng, Y = random_means(seed)
        prior = rng.uniform(0.5, 1.5, len(Y))
        classes = classes_of(Y, prior)
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
        rng, Y = random_means(seed, 8, 5)
        prior = rng.uniform(0.5, 1.5, len(Y))
        classes = classes_of(Y, prior)
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
        _, Y = random_means(seed)
        short = np.maximum(0.0, 1.0 - (all_pairs(Y)[2] ** 2).sum(axis=1))
        found = classes_of(Y).shortfall(Y, power)
        assert found == pytest.approx((short**power).sum(), abs=1e-10)


def test_threads_do_not_change_a_bit():
    _, Y = random_means(0, 12, 5)
    Y = np.vstack([Y, Y[:, ::-1] + 1.0])
    answers = []
    for threads in (1, 2, 5):
        classes = classes_of(Y, threads=threads, block=100)
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
    distinct, group = classes_of(means, prior).merged()
    assert distinct.n_classes == 37
    assert group[2] == group[5] == group[9]
    assert group[30] == group[31]
    assert len(set(group)) == 37
    assert_allclose(distinct.means[group], means, atol=1e-12)
    assert_allclose(distinct.prior[group[2]], prior[[2, 5, 9]].sum())
    assert_allclose(distinct.prior.sum(), prior.sum())
    same, group = classes_of(np.zeros((30, 2))).merged()
    assert same.n_classes == 1
    assert not group.any()
    # Nothing to merge: a close pair is not an equal one.
    means = rng.normal(size=(5, 3))
    means[1] = means[0] + 1e-7
    assert classes_of(means).merged()[0].n_classes == 5


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


def test_pairs_are_a_plain_record():
    near = classes_of(np.array([[0.0], [1.0], [3.0]])).closest(np.array([[0.0], [1.0], [3.0]]), 2)
    assert isinstance(near, Pairs)
    assert near.distance.tolist() == [1.0, 4.0]
    assert (near.first.tolist(), near.second.tolist()) == ([0, 1], [1, 2])
