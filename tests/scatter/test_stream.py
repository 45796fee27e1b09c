"""Scatters of streams, and the sample of rows that can be held out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from tests.reference.fisher_da import scatter_by_loops
from tests.reference.streams import as_rows, data_with_copies, labelled, stream_of
from widemargin.rows import distinct_rows, row_keys
from widemargin.scatter.class_scatter import DenseColumns
from widemargin.scatter.stream import Stream


@pytest.mark.parametrize("capacity", [0, 1, 17, 60, 1000])
def test_the_sample_and_the_rest_are_all_rows_in_any_order(capacity):
    X, y, weight = data_with_copies()
    total, mean, within = scatter_by_loops(X, y, weight)
    n_distinct = len(np.unique(np.column_stack([X, y]), axis=0))
    assert n_distinct < 120 - 10
    samples = []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(y))
        cuts = [[], [60], [1, 2, 50, 119], list(range(1, 120))][seed]
        stream = stream_of(X[order], y[order], weight[order], capacity, cuts)
        scatter = stream.scatter()
        assert_allclose(scatter.weight, total)
        assert_allclose(scatter.mean, mean, rtol=1e-10)
        assert_allclose(scatter.within, within, rtol=1e-9, atol=1e-9)
        assert len(stream.sample) == min(capacity, n_distinct)
        assert_allclose(
            stream.rest.weight + np.bincount(stream.sample.code, stream.sample.weight, len(total)),
            total,
        )
        samples.append(stream.sample)
    for other in samples[1:]:
        assert_array_equal(other.key, samples[0].key)
        assert_array_equal(other.rows, samples[0].rows)
        assert_array_equal(other.code, samples[0].code)
        assert_allclose(other.weight, samples[0].weight, rtol=1e-12)


@pytest.mark.parametrize("capacity", [17, 1000])
@pytest.mark.parametrize("n_folds", [2, 5])
def test_no_row_that_is_held_out_is_in_its_own_scatter(capacity, n_folds):
    X, y, weight = data_with_copies()
    stream = stream_of(X, y, weight, capacity, [30, 70])
    held_out = []
    for fold in stream.folds(n_folds):
        out = fold.held_out
        # By content: every copy of a row with its label goes with it.
        left = np.array(
            [
                any(
                    (row == x).all() and k == label
                    for row, k in zip(out.rows, out.code, strict=True)
                )
                for x, label in zip(X, y, strict=True)
            ]
        )
        assert_allclose(weight[left].sum(), out.weight.sum())
        total, mean, within = scatter_by_loops(X[~left], np.append(y[~left], 4)[:-1], weight[~left])
        known = np.flatnonzero(total)
        assert_allclose(fold.scatter.weight[known], total[known], rtol=1e-12)
        assert_allclose(fold.scatter.mean[known], mean[known], rtol=1e-9)
        assert_allclose(fold.scatter.within, within, rtol=1e-9, atol=1e-9)
        held_out.append(out.key)
    keys = np.concatenate(held_out)
    assert_array_equal(np.sort(keys), stream.sample.key)


@pytest.mark.parametrize("capacity", [0, 17, 1000])
def test_a_stored_stream_goes_on_where_it_was(capacity):
    X, y, weight = data_with_copies()
    straight = stream_of(X, y, weight, capacity, [40, 80])
    stored = stream_of(X[:40], y[:40], weight[:40], capacity)
    # Classes that are not there yet are known from the beginning.
    assert stored.rest.weight.shape == straight.rest.weight.shape
    for part in (slice(40, 80), slice(80, 120)):
        state = {name: np.copy(value) for name, value in stored.state().items()}
        stored = Stream.of_state(state)
        stored.add(labelled(X[part], y[part], weight[part]), DenseColumns(X.shape[1]))
    assert_array_equal(stored.sample.key, straight.sample.key)
    assert_array_equal(stored.sample.rows, straight.sample.rows)
    assert_array_equal(stored.scatter().scatter, straight.scatter().scatter)
    assert stored.capacity == capacity


def test_every_fold_has_its_share_of_every_class():
    X, y, weight = data_with_copies(400)
    sizes = [
        np.bincount(f.held_out.code, minlength=5) for f in stream_of(X, y, weight, 1000).folds(5)
    ]
    assert len(sizes) == 5
    assert (np.ptp(sizes, axis=0) <= 1).all()
    assert np.ptp(np.sum(sizes, axis=1)) <= 5


def test_keys_are_those_of_the_content():
    X = np.round(np.random.default_rng(0).normal(size=(50, 4)), 1)
    X[10], X[11] = X[20], X[20]
    X[3, 2], X[30] = 0.0, X[3]
    X[30, 2] = -0.0
    code = np.zeros(50, dtype=np.intp)
    key = row_keys(as_rows(X), code)
    assert key[10] == key[11] == key[20]
    assert key[3] == key[30]
    assert len(np.unique(key)) == len(np.unique(X + 0.0, axis=0))
    code[11] = 1
    assert row_keys(as_rows(X), code)[11] != key[10]
    assert_array_equal(row_keys(as_rows(sparse.csr_array(X)), code), row_keys(as_rows(X), code))
    index = np.array([20, 3])
    assert_array_equal(row_keys(as_rows(X), code[index], index), key[index])
    distinct = distinct_rows(as_rows(X), code, np.ones(50))
    assert len(distinct.index) == len(np.unique(row_keys(as_rows(X), code)))
