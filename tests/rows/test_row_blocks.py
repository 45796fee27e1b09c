"""Rows by number, by sample and block by block, whatever they are stored in."""

from __future__ import annotations

import threading
import time
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from tests.reference.rows import SMALL, dense_data, rows_of, stored
from widemargin.rows import (
    ArrayRows,
    CSRRows,
    as_rows,
    distinct_rows,
    rows_per_block,
    weighted_moments,
)

DTYPES = ["int8", "uint8", "int16", "int32", "int64", "float32", "float64", "bool"]
KINDS = ["C", "F", "strided", "memmap", "read-only", "csr32", "csr64", "csr_matrix"]


def plain(block):
    return block.toarray() if sparse.issparse(block) else np.asarray(block)


class Kept:
    """Visitor: the block and where it stands."""

    def __call__(self, block, where):
        return plain(block).copy(), where


# ---------------------------------------------------------------- take, sample, scan


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_take_and_scan_give_the_rows_themselves(kind, dtype, tmp_path):
    X = dense_data(dtype=dtype)
    rows = rows_of(stored(kind, X, tmp_path))
    wanted = np.float32 if dtype == "float32" else np.float64
    assert rows.shape == X.shape
    assert rows.dtype == wanted
    index = np.array([5, 0, 100, 5])
    taken = rows.take(index)
    assert isinstance(taken, np.ndarray) and taken.dtype == wanted
    np.testing.assert_array_equal(taken, X[index].astype(wanted))
    blocks = list(rows.scan(Kept()))
    assert all(block.dtype == wanted for block, _ in blocks)
    np.testing.assert_array_equal(np.concatenate([b for b, _ in blocks]), X.astype(wanted))
    order = np.random.default_rng(0).permutation(101)[:50]
    some = np.concatenate([b for b, _ in rows.scan(Kept(), order)])
    np.testing.assert_array_equal(some, X[order].astype(wanted))


@pytest.mark.parametrize("kind", ["C", "F", "memmap", "read-only", "csr32"])
def test_what_was_taken_may_be_changed_without_touching_the_data(kind, tmp_path):
    X = dense_data()
    data = stored(kind, X, tmp_path)
    taken = rows_of(data).take(np.arange(101))
    taken[:] = -7.0
    np.testing.assert_array_equal(plain(data), X)


def test_sparse_blocks_stay_sparse():
    rows = rows_of(sparse.csr_array(dense_data()))
    assert isinstance(rows, CSRRows)
    assert all(rows.scan(lambda block, where: sparse.issparse(block)))
    assert isinstance(rows_of(dense_data()), ArrayRows)


def test_a_sample_is_sorted_without_repetition_and_follows_the_generator():
    rows = rows_of(dense_data())
    counts = np.zeros(101)
    for seed in range(200):
        drawn = rows.sample(20, np.random.default_rng(seed))
        assert len(drawn) == 20
        assert (np.diff(drawn) > 0).all() and drawn[0] >= 0 and drawn[-1] < 101
        np.testing.assert_array_equal(drawn, rows.sample(20, np.random.default_rng(seed)))
        counts[drawn] += 1
    # 200 draws of 20 in 101: each row about 40 times, with a deviation of 5.6.
    assert counts.min() > 10 and counts.max() < 70
    np.testing.assert_array_equal(rows.sample(101, np.random.default_rng(0)), np.arange(101))
    np.testing.assert_array_equal(rows.sample(500, np.random.default_rng(0)), np.arange(101))


def test_scan_tells_each_block_where_it_stands_in_order():
    rows = rows_of(dense_data(), threads=4)
    spans = [where for _, where in rows.scan(Kept())]
    assert spans[0].start == 0 and spans[-1].stop == 101
    assert all(a.stop == b.start for a, b in pairwise(spans))
    assert len(spans) == 7  # sixteen rows a block


@pytest.mark.parametrize("memory", [1, SMALL, 10**6, 10**9])
def test_blocks_depend_on_the_budget_and_not_on_the_threads(memory):
    X = dense_data(n=3000, d=3)
    spans = [
        [where for _, where in rows_of(X, memory, threads).scan(Kept(), width=40)]
        for threads in (1, 2, 4)
    ]
    assert spans[0] == spans[1] == spans[2]
    longest = max(where.stop - where.start for where in spans[0])
    assert longest <= max(16, memory // 16 // (8 * 43))
    assert (longest == 16) == (memory < 10**6)


def test_a_block_is_never_larger_than_its_share():
    for memory in (10**4, 10**6, 10**9, 10**12):
        for row in (8, 800, 8 * 10**6):
            for most in (1024, 16384):
                size = rows_per_block(memory, row, most)
                assert 16 <= size <= most
                assert size == 16 or size * row <= min(memory // 16, 8_000_000)


class AtWork:
    """Visitor: notes how many blocks are visited at a time."""

    def __init__(self):
        self.now, self.most, self.lock = 0, 0, threading.Lock()

    def __call__(self, block, where):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.002)
        with self.lock:
            self.now -= 1


def test_no_more_blocks_are_visited_at_a_time_than_fit_into_a_part_of_the_budget():
    X = dense_data(n=8000, d=3)
    for memory, most in ((1, 1), (8 * 43 * 16 * 4 * 2, 2), (10**7, 4)):
        visit = AtWork()
        for _ in rows_of(X, memory, threads=4).scan(visit, width=40):
            pass
        assert visit.most <= most
        assert visit.most > 1 or most == 1


def test_large_answers_let_fewer_threads_work_but_do_not_change_the_blocks():
    X, memory = dense_data(n=8000, d=3), 10**7
    for answer_bytes, most in ((0, 4), (10**4, 4), (2 * 10**5, 2), (10**7, 1)):
        visit = AtWork()
        rows = rows_of(X, memory, threads=4)
        n_blocks = len(list(rows.scan(visit, width=40, answer_bytes=answer_bytes)))
        assert n_blocks == 8
        assert visit.most <= most
        assert visit.most > 1 or most == 1


class FirstTwo:
    """Visitor: two columns of the block."""

    def __call__(self, block, where):
        return plain(block)[:, :2] + 0.5


@pytest.mark.parametrize("kind", ["C", "memmap", "csr32"])
@pytest.mark.parametrize("threads", [1, 4])
def test_what_a_visitor_says_of_the_rows_is_gathered_in_their_order(kind, threads, tmp_path):
    X = dense_data()
    rows = rows_of(stored(kind, X, tmp_path), threads=threads)
    np.testing.assert_array_equal(rows.gather(FirstTwo()), X[:, :2] + 0.5)
    some = np.random.default_rng(0).permutation(101)[:40]
    np.testing.assert_array_equal(rows.gather(FirstTwo(), some), X[some][:, :2] + 0.5)
    single = rows.gather(FirstTwo(), some, dtype=np.float32)
    assert single.dtype == np.float32
    flat = rows.subset(some).gather(lambda block, where: plain(block).sum(axis=1))
    np.testing.assert_array_equal(flat, X[some].sum(axis=1))


def test_nothing_can_be_gathered_where_there_are_no_rows():
    with pytest.raises(ValueError, match="no rows to look at"):
        rows_of(dense_data()).gather(FirstTwo(), np.empty(0, dtype=np.intp))


def test_rows_of_a_view_know_where_they_are_stored():
    rows, rng = rows_of(dense_data()), np.random.default_rng(0)
    first, second = rng.permutation(101)[:60], rng.permutation(60)[:35]
    some = np.array([3, 1, 30])
    np.testing.assert_array_equal(rows.stored_at(some), some)
    view = rows.subset(first).subset(second)
    np.testing.assert_array_equal(view.stored_at(some), first[second][some])
    np.testing.assert_array_equal(rows.block(view.stored_at(some)), view.block(some))


class Sums:
    def __call__(self, block, where):
        return np.asarray(block.sum(axis=0)).ravel()


@pytest.mark.parametrize("kind", ["C", "F", "memmap", "csr32"])
def test_sums_over_blocks_have_the_same_bits_for_any_number_of_threads(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5)) * 10.0 ** rng.integers(-8, 8, (2000, 1))
    weight = rng.random(2000)
    data = stored(kind, X, tmp_path)
    sums, moments = [], []
    for threads in (1, 2, 4):
        rows = rows_of(data, threads=threads)
        sums.append(sum(rows.scan(Sums())))
        moments.append(weighted_moments(rows, weight))
    for other in (1, 2):
        np.testing.assert_array_equal(sums[0], sums[other])
        np.testing.assert_array_equal(moments[0].mean, moments[other].mean)
        np.testing.assert_array_equal(moments[0].variance, moments[other].variance)


@pytest.mark.parametrize("kind", ["C", "memmap", "csr32", "csr64"])
def test_a_subset_of_a_subset_is_a_subset(kind, tmp_path):
    X = dense_data()
    rng = np.random.default_rng(0)
    rows = rows_of(stored(kind, X, tmp_path))
    first, second = rng.permutation(101)[:60], rng.permutation(60)[:35]
    view = rows.subset(first).subset(second)
    expected = X[first][second]
    assert view.shape == (35, 7) and rows.shape == (101, 7)
    np.testing.assert_array_equal(np.concatenate([b for b, _ in view.scan(Kept())]), expected)
    np.testing.assert_array_equal(view.take(np.array([34, 2])), expected[[34, 2]])
    some = np.array([3, 1, 30])
    got = np.concatenate([b for b, _ in view.scan(Kept(), some)])
    np.testing.assert_array_equal(got, expected[some])
    assert view.sample(10, rng).max() < 35


def test_rows_of_a_precomputed_kernel_are_taken_as_their_numbers():
    K = dense_data(n=30, d=30)
    rows = as_rows(K, memory=SMALL, threads=1, precomputed=True).subset(np.array([7, 3, 12]))
    np.testing.assert_array_equal(rows.take(np.array([2, 0])), [[12.0], [7.0]])
    np.testing.assert_array_equal(plain(rows.block(slice(0, 3))), K[[7, 3, 12]])


class Watched(np.memmap):
    """A mapped file that notes the size of everything that is read from it."""

    reads: list[int] = []  # noqa: RUF012

    def __array_finalize__(self, obj):
        super().__array_finalize__(obj)
        if obj is not None and self.shape:
            type(self).reads.append(self.shape[0])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_mapped_file_is_never_read_whole(dtype, order, tmp_path):
    n, d = 5000, 6
    X = dense_data(n=n, d=d, dtype=dtype)
    path = tmp_path / "X.bin"
    written = np.memmap(path, dtype=dtype, mode="w+", shape=(n, d), order=order)
    written[:] = X
    written.flush()
    mapped = Watched(path, dtype=dtype, mode="r", shape=(n, d), order=order)
    rows = rows_of(mapped)
    # Still the file and not a copy of it.
    assert np.shares_memory(rows.X, mapped)
    rows = ArrayRows(mapped, SMALL, 1)
    Watched.reads.clear()
    y = np.arange(n) % 3
    result = distinct_rows(rows, y, np.ones(n))
    weighted_moments(result.rows, result.weight)
    rows.take(np.arange(10))
    for _ in rows.scan(Kept()):
        pass
    assert len(Watched.reads) > 2 * n // 16
    assert max(Watched.reads) <= 16
    assert not mapped.flags.writeable


def test_a_mapped_file_costs_no_more_memory_than_its_blocks(tmp_path):
    import tracemalloc

    n, d = 40_000, 50  # 16 MB as float64, 2 MB on disk
    path = tmp_path / "X.bin"
    written = np.memmap(path, dtype="int8", mode="w+", shape=(n, d))
    written[:] = np.arange(d)
    written.flush()
    rows = rows_of(np.memmap(path, dtype="int8", mode="r", shape=(n, d)), memory=10**6)
    weight = np.ones(n)
    tracemalloc.start()
    weighted_moments(rows, weight)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2_000_000
