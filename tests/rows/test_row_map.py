"""Robust standardisation and linear maps of rows."""

from __future__ import annotations

import numpy as np
import pytest

from widemargin.rows import RowMap, as_rows, distinct_rows, mapped_rows, robust_map
from widemargin.rows.row_map import BEND, MappedRows


def rows_of(X, **given):
    return as_rows(X, **({"memory": 10**8, "threads": 1} | given))


def test_columns_of_any_scale_become_alike():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 3)) * [1e-6, 1.0, 1e9] + [5.0, 0.0, -1e12]
    mapped = robust_map(rows_of(X), np.ones(4000))(X)
    assert np.abs(np.median(mapped, axis=0)).max() < 0.01
    assert np.abs(mapped.std(axis=0) - 0.95).max() < 0.05


def test_values_of_outliers_stay_below_the_bend():
    X = np.r_[np.random.default_rng(0).standard_normal(100), 1e300, -1e300][:, None]
    mapped = robust_map(rows_of(X), np.ones(102))(X)
    assert np.isfinite(mapped).all()
    assert np.abs(mapped).max() == pytest.approx(BEND)


def test_a_constant_column_becomes_zero_and_a_rare_value_counts_by_its_deviation():
    X = np.zeros((100, 2))
    X[:4, 1] = 1.0
    found = robust_map(rows_of(X), np.ones(100))
    assert not found(X)[:, 0].any()
    assert found(np.full((1, 2), 7.0))[0, 0] == 0.0
    assert found(X)[0, 1] > 1.0


def test_weight_three_equals_three_copies():
    rng = np.random.default_rng(0)
    X, weight = rng.standard_normal((50, 4)), rng.integers(0, 4, 50).astype(float)
    copies = np.repeat(X, weight.astype(int), axis=0)
    a = distinct_rows(rows_of(X), np.zeros(50, dtype=int), weight)
    b = distinct_rows(rows_of(copies), np.zeros(len(copies), dtype=int), np.ones(len(copies)))
    for one, other in ((a, b),):
        first, second = robust_map(one.rows, one.weight), robust_map(other.rows, other.weight)
        assert np.array_equal(first.center, second.center)
        np.testing.assert_allclose(first.factor, second.factor, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_rows_of_a_file_are_mapped_as_they_are_read(tmp_path, dtype):
    X = np.random.default_rng(0).integers(0, 9, (40, 3)).astype(dtype)
    np.save(tmp_path / "rows.npy", X)
    mapped_file = np.load(tmp_path / "rows.npy", mmap_mode="r")
    matrix = np.random.default_rng(1).standard_normal((3, 2))
    row_map = robust_map(rows_of(X), np.ones(40)).then(matrix)
    here = mapped_rows(rows_of(X), row_map)
    there = mapped_rows(rows_of(mapped_file, memory=100), row_map)
    assert isinstance(there, MappedRows)
    twice = mapped_rows(there, RowMap.linear(np.array([2.0, 3.0])))
    np.testing.assert_allclose(twice.take(np.arange(3)), there.take(np.arange(3)) * [2.0, 3.0])
    assert here.shape == there.shape == (40, 2)
    index = np.array([3, 1, 7])
    np.testing.assert_allclose(here.take(index), there.take(index), rtol=1e-6)
    assert np.array_equal(there.subset(index).take(np.arange(3)), there.take(index))
    assert there.dtype == (np.float32 if dtype == np.float32 else np.float64)


def test_a_map_keeps_the_type_of_the_rows_and_a_diagonal_is_a_matrix():
    X = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    diagonal = np.array([1.0, 2.0, 3.0])
    one, other = RowMap.linear(diagonal)(X), RowMap.linear(np.diag(diagonal))(X)
    assert one.dtype == np.float32
    np.testing.assert_allclose(one, other, rtol=1e-6)
    assert np.array_equal(RowMap.identity(3)(X), X)
