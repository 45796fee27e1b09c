"""Rows of every kind against plain indexing, and what is computed over them against NumPy."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse

from widemargin.rows import (
    ArrayRows,
    CSRRows,
    as_rows,
    distinct,
    distinct_rows,
    parse_memory,
    weighted_moments,
)
from widemargin.rows.budget import rows_per_block

DTYPES = ["int8", "uint8", "int16", "int32", "int64", "float32", "float64", "bool"]
KINDS = ["C", "F", "strided", "memmap", "read-only", "csr32", "csr64", "csr_matrix"]
SMALL = 1000  # a budget whose blocks hold sixteen rows, the fewest there are


def dense_data(seed=0, n=101, d=7, dtype="float64"):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)) * 3) * (rng.random((n, d)) < 0.6)
    return np.abs(X).astype(dtype) if dtype in ("uint8", "bool") else X.astype(dtype)


def stored(kind, X, tmp_path):
    if kind == "F":
        return np.asfortranarray(X)
    if kind == "strided":
        wide = np.zeros((2 * len(X), 2 * X.shape[1]), dtype=X.dtype)
        wide[::2, 1::2] = X
        return wide[::2, 1::2]
    if kind == "memmap":
        np.save(tmp_path / "X.npy", X)
        return np.load(tmp_path / "X.npy", mmap_mode="r")
    if kind == "read-only":
        X = X.copy()
        X.flags.writeable = False
        return X
    if kind.startswith("csr"):
        made = sparse.csr_matrix(X) if kind == "csr_matrix" else sparse.csr_array(X)
        index = np.int64 if kind == "csr64" else np.int32
        made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
        return made
    return X.copy()


def rows_of(X, memory=SMALL, threads=1):
    return as_rows(X, memory=memory, threads=threads)


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


# ---------------------------------------------------------------- distinct rows


def brute_distinct(X, code, weight):
    """Every different pair of row and label with its summed weight, by a dictionary."""
    found = {}
    for x, c, w in zip(X.tolist(), code.tolist(), weight.tolist(), strict=True):
        if w > 0:
            key = (tuple(v + 0.0 for v in x), c)
            found[key] = found.get(key, Fraction(0)) + Fraction(w)
    return found


def as_dict(result):
    X = result.rows.take(np.arange(len(result.index)))
    found = {}
    for x, c, w in zip(X.tolist(), result.code.tolist(), result.weight.tolist(), strict=True):
        key = (tuple(v + 0.0 for v in x), c)
        found[key] = found.get(key, Fraction(0)) + Fraction(w)
    return found


def random_labelled(seed):
    """Few different rows, many copies, labels, and weights whose sums are exact."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 80)), int(rng.integers(1, 4))
    X = rng.integers(-1, 2, size=(n, d)).astype(float)
    X[rng.random((n, d)) < 0.2] *= -0.0
    weight = rng.integers(0, 4, n) / 4.0
    weight[0] = 1.0
    return rng, X, rng.integers(0, 3, n), weight


@pytest.mark.parametrize("kind", ["C", "F", "memmap", "csr32", "csr64", "csr_matrix"])
def test_equal_rows_with_equal_labels_are_merged_and_their_weights_added(kind, tmp_path):
    for seed in range(120 if kind == "C" else 30):
        _, X, code, weight = random_labelled(seed)
        result = distinct_rows(rows_of(stored(kind, X, tmp_path)), code, weight)
        expected = brute_distinct(X, code, weight)
        assert len(result.index) == len(expected)
        assert as_dict(result) == expected
        np.testing.assert_array_equal(X[result.index], result.rows.take(np.arange(len(expected))))
        np.testing.assert_array_equal(code[result.index], result.code)


def test_the_order_of_distinct_rows_depends_on_their_content_only():
    for seed in range(120):
        rng, X, code, weight = random_labelled(seed)
        shuffled = rng.permutation(len(X))
        a = distinct_rows(rows_of(X), code, weight)
        b = distinct_rows(rows_of(X[shuffled]), code[shuffled], weight[shuffled])
        np.testing.assert_array_equal(X[a.index], X[shuffled][b.index])
        np.testing.assert_array_equal(a.code, b.code)
        np.testing.assert_array_equal(a.weight, b.weight)


def test_a_merged_row_stands_where_it_was_seen_first():
    X = np.array([[2.0], [1.0], [2.0], [1.0], [2.0]])
    result = distinct_rows(rows_of(X), np.zeros(5, dtype=int), np.array([0.0, 1, 1, 1, 1]))
    assert sorted(result.index) == [1, 2]


def test_weight_two_equals_a_repeated_row():
    rng = np.random.default_rng(0)
    X, code = rng.normal(size=(40, 3)), rng.integers(2, size=40)
    count = rng.integers(1, 4, 40)
    heavy = distinct_rows(rows_of(X), code, count.astype(float))
    again = np.repeat(np.arange(40), count)
    copies = distinct_rows(rows_of(X[again]), code[again], np.ones(len(again)))
    np.testing.assert_array_equal(X[heavy.index], X[again][copies.index])
    np.testing.assert_array_equal(heavy.weight, copies.weight)
    np.testing.assert_array_equal(heavy.code, copies.code)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_minus_zero_is_zero(dtype):
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0]], dtype=dtype)
    for data in (X, sparse.csr_array(X)):
        result = distinct_rows(rows_of(data), np.zeros(3, dtype=int), np.ones(3))
        assert sorted(result.weight) == [1.0, 2.0]
    explicit = sparse.csr_array(
        (np.array([-0.0, 1.0, 1.0], dtype=dtype), [0, 1, 1], [0, 2, 3]), shape=(2, 2)
    )
    result = distinct_rows(rows_of(explicit), np.zeros(2, dtype=int), np.ones(2))
    np.testing.assert_array_equal(result.weight, [2.0])


def test_dense_and_sparse_forms_give_the_same_order():
    for seed in range(50):
        _, X, code, weight = random_labelled(seed)
        dense = distinct_rows(rows_of(X), code, weight)
        thin = distinct_rows(rows_of(sparse.csr_array(X)), code, weight)
        np.testing.assert_array_equal(dense.index, thin.index)
        np.testing.assert_array_equal(dense.weight, thin.weight)


def test_an_entry_in_several_pieces_is_their_sum_and_the_users_matrix_stays_as_it_was():
    pieces = sparse.csr_array(
        (np.array([1.0, 2.0, 5.0, 5.0, 3.0]), [2, 2, 0, 0, 2], [0, 3, 5]),
        shape=(2, 3),
    )
    assert not pieces.has_canonical_format
    before = pieces.data.copy()
    result = distinct_rows(rows_of(pieces), np.zeros(2, dtype=int), np.ones(2))
    np.testing.assert_array_equal(result.weight, [2.0])
    np.testing.assert_array_equal(pieces.data, before)
    np.testing.assert_array_equal(result.rows.take(np.array([0])), [[5.0, 0.0, 3.0]])


def test_the_number_of_threads_does_not_change_the_order():
    rng = np.random.default_rng(0)
    X, code = rng.integers(3, size=(1000, 3)).astype(float), rng.integers(2, size=1000)
    one, four = (distinct_rows(rows_of(X, threads=t), code, np.ones(1000)) for t in (1, 4))
    np.testing.assert_array_equal(one.index, four.index)
    np.testing.assert_array_equal(one.weight, four.weight)


@pytest.mark.parametrize("kind", ["C", "csr32"])
@pytest.mark.parametrize("values", [1, 3])
def test_rows_that_share_a_hash_by_chance_are_kept_apart(kind, values, monkeypatch, tmp_path):
    class Weak(distinct._RowHash):
        def __call__(self, block, where):
            return super().__call__(block, where) % np.uint64(values)

    monkeypatch.setattr(distinct, "_RowHash", Weak)
    for seed in range(60):
        _, X, code, weight = random_labelled(seed)
        result = distinct_rows(rows_of(stored(kind, X, tmp_path)), code, weight)
        # Copies may stay unmerged in such a group, but nothing is lost, moved or mixed up.
        assert as_dict(result) == brute_distinct(X, code, weight)
        assert len(np.unique(result.index)) == len(result.index)
        np.testing.assert_array_equal(code[result.index], result.code)


def test_rows_that_differ_in_one_place_have_different_hashes():
    # 10^5 rows that differ by one small number in one of many columns, the hard case of weak hashes
    n, d = 1000, 100
    X = np.zeros((n * 10, d))
    number = np.arange(n * 10)
    X[number, number % d] = 1.0 + number // d
    result = distinct_rows(rows_of(X, memory=10**8), np.zeros(n * 10, dtype=int), np.ones(n * 10))
    assert len(result.index) == n * 10
    swapped = np.concatenate([X, X[:, ::-1]])
    both = distinct_rows(rows_of(swapped, 10**8), np.zeros(2 * n * 10, dtype=int), np.ones(n * 20))
    assert len(both.index) == len(np.unique(swapped, axis=0))


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
