"""Means and variances of weighted rows, and the memory that a user grants."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.rows import dense_data, rows_of, stored
from widemargin.rows import (
    parse_memory,
    weighted_moments,
)

# ---------------------------------------------------------------- moments


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


# ---------------------------------------------------------------- the memory budget


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (1, 1),
        (5e8, 500_000_000),
        (np.int64(7), 7),
        ("12345", 12345),
        ("500MB", 500_000_000),
        ("500mb", 500_000_000),
        ("1GB", 10**9),
        ("2.5 GB", 2_500_000_000),
        (" 64 MiB ", 64 * 1024**2),
        ("1KiB", 1024),
        ("3K", 3000),
        ("2TiB", 2 * 1024**4),
        ("1e9", 10**9),
        ("10B", 10),
    ],
)
def test_memory_is_read_as_a_user_writes_it(text, size):
    assert parse_memory(text) == size
    assert isinstance(parse_memory(text), int)


@pytest.mark.parametrize(
    "bad",
    ["", "GB", "much", "1.2.3GB", "-1GB", "1 PB", "1GBs", "1 G B", "0", 0, -5, 0.5, float("nan")],
)
def test_what_is_no_amount_of_memory_is_refused_by_name_and_value(bad):
    with pytest.raises(ValueError, match="memory="):
        parse_memory(bad)


@pytest.mark.parametrize("bad", [float("inf"), "1e999", None, [1], {}])
def test_infinite_and_foreign_amounts_of_memory_are_refused_by_name_too(bad):
    with pytest.raises((ValueError, TypeError), match="memory="):
        parse_memory(bad)
