"""Means and variances of weighted rows."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.rows import dense_data, rows_of, stored
from widemargin.rows import weighted_moments


@pytest.mark.parametrize("kind", ["C", "F", "memmap", "csr32", "csr64"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_weighted_moments_are_those_of_numpy(kind, dtype, tmp_path):
    for seed in range(10):
        X = dense_data(seed, dtype=dtype)
        weight = np.random.default_rng(seed).random(101)
        moments = weighted_moments(rows_of(stored(kind, X, tmp_path)), weight)
        mean = np.average(X.astype(float), axis=0, weights=weight)
        variance = np.average((X.astype(float) - mean) ** 2, axis=0, weights=weight)
        np.testing.assert_allclose(moments.mean, mean, atol=1e-12)
        np.testing.assert_allclose(moments.variance, variance, atol=1e-12)
        assert moments.weight == pytest.approx(weight.sum())


@pytest.mark.parametrize("offset", [1e6, -1e9])
def test_a_large_common_offset_costs_the_variance_no_digits(offset):
    rng = np.random.default_rng(0)
    noise, weight = rng.normal(size=(500, 3)), rng.random(500)
    X = noise + offset
    exact = X - offset  # what is left after rounding to the grid of X
    mean = np.average(exact, axis=0, weights=weight)
    variance = np.average((exact - mean) ** 2, axis=0, weights=weight)
    moments = weighted_moments(rows_of(X), weight)
    np.testing.assert_allclose(moments.variance, variance, rtol=1e-11)
    np.testing.assert_allclose(moments.mean - offset, mean, atol=1e-15 * abs(offset))


def test_weight_two_counts_twice_in_the_moments():
    X = dense_data()
    count = np.random.default_rng(0).integers(1, 4, 101)
    heavy = weighted_moments(rows_of(X), count.astype(float))
    copies = weighted_moments(rows_of(np.repeat(X, count, axis=0)), np.ones(count.sum()))
    np.testing.assert_allclose(heavy.mean, copies.mean, atol=1e-13)
    np.testing.assert_allclose(heavy.variance, copies.variance, atol=1e-13)


def test_a_constant_column_has_no_variance():
    X = np.full((50, 2), 0.1)
    X[:, 1] = 1e8 + 0.3
    moments = weighted_moments(rows_of(X), np.random.default_rng(0).random(50))
    np.testing.assert_array_equal(moments.variance, [0.0, 0.0])
    np.testing.assert_allclose(moments.mean, [0.1, 1e8 + 0.3], rtol=1e-15)
