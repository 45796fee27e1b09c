"""Mapped files that are larger than the memory for a fit: looked at in parts, without Dask."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from widemargin import MarginClassifier
from widemargin.places import partitions, sources
from widemargin.places.loading import Cache
from widemargin.places.sources import groups_of

# So many rows that a file of them is larger than this memory.
N, MEMORY = 6000, "2MB"
SPAN = {"engine": "span", "max_vectors": 30, "random_state": 0, "tol": 1e-9}


def _rows(n=N, d=200, dtype=np.float64):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, d))
    X[:, 2:] *= 0.1
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, "yes", "no")
    X = np.round(100 * X) if np.dtype(dtype).kind == "i" else X
    return X.astype(dtype), y


@pytest.fixture
def file(tmp_path):
    def mapped(X, mode="r", order="C"):
        path = tmp_path / "rows.npy"
        np.save(path, np.asarray(X, order=order))
        return np.load(path, mmap_mode=mode)

    return mapped


@pytest.fixture
def in_pieces(monkeypatch):
    """Files of a megabyte are cut as those of gigabytes are."""
    monkeypatch.setattr(partitions, "_PIECE", 100_000)
    monkeypatch.setattr(sources, "_LEAST_SHARD", 150_000)


@pytest.mark.parametrize(
    ("dtype", "mode", "order"),
    [("f8", "r", "C"), ("f4", "r", "C"), ("i2", "c", "C"), ("f8", "r+", "F")],
)
def test_a_large_file_gives_the_machine_of_the_array(file, in_pieces, dtype, mode, order):
    X, y = _rows(dtype=dtype)
    stored = file(X, mode, order)
    assert partitions.is_large_map(stored, MEMORY)
    there = MarginClassifier(**SPAN, memory=MEMORY).fit(stored, y)
    here = MarginClassifier(**SPAN, memory="100MB").fit(X, y)
    assert_array_equal(there.support_, here.support_)
    values = here.decision_function(X[:500])
    assert_allclose(there.decision_function(X[:500]), values, atol=1e-4 * np.abs(values).max())
    assert there.n_features_in_ == X.shape[1]
    assert_array_equal(np.asarray(stored), X)


def test_it_needs_no_dask(file, in_pieces, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] in ("dask", "distributed")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dask", None)
    X, y = _rows()
    weight = np.random.default_rng(2).uniform(0.0, 2.0, len(y))
    machine = MarginClassifier(**SPAN, memory=MEMORY, class_weight="balanced")
    assert machine.fit(file(X), y, weight).score(X, y) > 0.7


def test_a_small_file_is_read_as_an_array(file):
    X, _ = _rows()
    stored = file(X)
    assert not partitions.is_large_map(stored, "100MB")
    assert not partitions.is_large_map(X, MEMORY)


def test_a_kernel_matrix_and_an_exact_machine_are_not_cut(file, in_pieces):
    X, y = _rows(n=400)
    machine = MarginClassifier(kernel="precomputed", memory="1MB", engine="span", max_vectors=20)
    assert machine.fit(file(X @ X.T), y).engine_ == "span"
    assert MarginClassifier(engine="exact", memory="500KB").fit(file(X), y).engine_ == "exact"


def test_bad_rows_are_told_of_by_their_part(file, in_pieces):
    X, y = _rows()
    X[5500, 3] = np.nan
    with pytest.raises(ValueError, match=r"partition \d+ of X.*NaN"):
        MarginClassifier(**SPAN, memory=MEMORY).fit(file(X), y)
    with pytest.raises(ValueError, match="6,000 rows, but y has 5,999"):
        MarginClassifier(**SPAN, memory=MEMORY).fit(file(X), y[:-1])


def test_too_little_memory_for_what_is_kept_of_each_row_is_told(file, in_pieces):
    X, y = _rows()
    with pytest.raises(ValueError, match=r"memory leaves 0.3 MB for 6,000 rows.*more memory"):
        MarginClassifier(**SPAN, memory="300KB").fit(file(X), y)


def test_groups_are_about_equal_and_fit_into_memory():
    groups = groups_of([1_000_000] * 1000, memory=10**9)
    assert [each for group in groups for each in group] == list(range(1000))
    assert 50 <= len(groups) <= 80
    # A shard is never more than a sixteenth of the memory, as long as partitions are not.
    assert max(len(group) for group in groups_of([10**6] * 1000, memory=10**8)) <= 6
    assert groups_of([10] * 5, memory=10**6) == [range(5)]
    assert groups_of([10**9] * 3, memory=10**6) == [range(1), range(1, 2), range(2, 3)]


def test_a_cache_keeps_what_came_first_and_the_last_one():
    loads = []

    def get(cache, number):
        return cache.get(number, lambda: (loads.append(number), np.zeros(10))[1])

    cache = Cache(200)
    for _ in range(3):
        for number in range(4):
            get(cache, number)
            get(cache, number)
    # Two fit; of the others each is loaded once in every round.
    assert loads == [0, 1, 2, 3, 2, 3, 2, 3]


def test_cells_of_a_large_file_are_those_of_the_array(file, in_pieces):
    X, y = _rows()
    ways = {"engine": "cells", "cells": 300, "random_state": 0}
    stored = file(X)
    # Of the same memory: the way to the machine of a cell depends on it.
    here = MarginClassifier(**ways, memory="9MB").fit(X, y)
    assert partitions.is_large_map(stored, "9MB")
    there = MarginClassifier(**ways, memory="9MB").fit(stored, y)
    assert_array_equal(there.cell_centers_, here.cell_centers_)
    assert_allclose(there.dual_coef_, here.dual_coef_, atol=1e-12)
