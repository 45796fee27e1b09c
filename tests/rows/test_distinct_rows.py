"""Equal rows become one, in an order that their content decides."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from tests.reference.rows import rows_of, stored
from widemargin.rows import (
    distinct,
    distinct_rows,
)


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
