"""Scatter matrices of classes, by blocks and by streams."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_iris

from tests.reference.fisher_da import scatter_by_loops
from widemargin.rows import as_rows
from widemargin.scatter.class_scatter import ClassScatter, scatter_of
from widemargin.scatter.whitening import whitened


def _rows(X, threads=1, memory=10**9):
    return as_rows(X, memory=memory, threads=threads)


def _batch(X, y, weight=None, n_classes=None):
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    return scatter_of(_rows(X), y, weight, n_classes or int(max(y)) + 1)


def _problem(n=60, d=5, c=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    return rng.normal(size=(n, d)) * np.linspace(0.5, 2.0, d) + 3 * rng.normal(size=(c, d))[y], y


def _assert_same(one, other, rtol=1e-10):
    assert_allclose(one.weight, other.weight, rtol=rtol)
    largest = np.abs(one.mean).max()
    assert_allclose(one.mean, other.mean, rtol=0, atol=rtol * largest)
    assert_allclose(one.within, other.within, rtol=0, atol=rtol * np.abs(one.within).max())
    assert_allclose(one.intensity("auto"), other.intensity("auto"), rtol=rtol)


# The numbers themselves.


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sparse.csr_array, np.float32])
def test_it_is_what_plain_loops_give(form):
    X, y = _problem()
    weight = np.random.default_rng(1).uniform(0.5, 3.0, len(y))
    stored = form(X)
    found = _batch(stored, y, weight)
    rows = np.asarray(stored.toarray() if sparse.issparse(stored) else stored, dtype=float)
    total, mean, within = scatter_by_loops(rows, y, weight)
    assert_allclose(found.weight, total, rtol=1e-13)
    assert_allclose(found.mean, mean, rtol=1e-12)
    assert_allclose(found.within, within, rtol=1e-11, atol=1e-12)
    covariance = found.scaled_covariance() * found.unit**2
    assert_allclose(covariance, within / weight.sum(), rtol=1e-11, atol=1e-12)
    variance = np.trace(within) / weight.sum() / 5
    expected = 0.7 * within / weight.sum() + 0.3 * variance * np.eye(5)
    covariance = found.scaled_covariance(0.3) * found.unit**2
    assert_allclose(covariance, expected, rtol=1e-11, atol=1e-12)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([2, 12]), st.sampled_from([1.0, 1e8]))
def test_blocks_in_any_order_and_any_tree_give_the_same(seed, d, offset):
    rng = np.random.default_rng(seed)
    X, y = _problem(50, d, 4, seed)
    # Numbers of few digits, so that the offset is exact.
    X = np.round(X * 64) / 64 + offset
    weight = rng.integers(0, 3, size=50).astype(float)
    weight[np.unique(y, return_index=True)[1]] = 1.0
    batch = _batch(X, y, weight, 4)
    pieces = np.split(rng.permutation(50), np.sort(rng.integers(0, 51, size=6)))
    streamed = ClassScatter.empty(4, d)
    parts = []
    for piece in pieces:
        streamed.add(X[piece], y[piece], weight[piece])
        part = ClassScatter.empty(4, d)
        part.add(X[piece], y[piece], weight[piece])
        parts.append(part)
    while len(parts) > 1:
        one = parts.pop(int(rng.integers(len(parts))))
        parts[int(rng.integers(len(parts)))].merge(one)
    _assert_same(streamed, batch)
    _assert_same(parts[0], batch)


def test_a_merge_leaves_the_other_as_it_is():
    X, y = _problem()
    one, other = ClassScatter.empty(3, 5), _batch(X[:30], y[:30], n_classes=3)
    before = other.mean.copy(), other.within.copy(), other.intensity("auto")
    one.merge(other)
    one.add(X[30:] * 100, y[30:], np.ones(30))
    assert_array_equal(other.mean, before[0])
    assert_array_equal(other.within, before[1])
    assert other.intensity("auto") == before[2]
    other.merge(ClassScatter.empty(3, 5))
    other.add(X[:0], y[:0], np.ones(0))
    assert_array_equal(other.within, before[1])


def test_weight_k_is_the_same_as_k_copies_and_weight_zero_is_none():
    for d in (4, 20):
        X, y = _problem(60, d)
        k = np.random.default_rng(2).integers(0, 4, size=60)
        copies = np.repeat(np.arange(60), k)
        _assert_same(_batch(X, y, k), _batch(X[copies], y[copies]))


def test_classes_without_rows_do_not_disturb():
    X, y = _problem(60, 12)
    plain, more = _batch(X, y), _batch(X, 2 * y, n_classes=7)
    assert_array_equal(more.weight, [plain.weight[0], 0, plain.weight[1], 0, plain.weight[2], 0, 0])
    assert more.intensity("auto") == plain.intensity("auto")
    assert_array_equal(more.within, plain.within)
    one, other = whitened(plain, "auto"), whitened(more, "auto")
    assert_allclose(other.matrix, one.matrix, rtol=1e-12)
    assert_allclose(other.mean, one.mean, rtol=1e-12)
    assert_allclose(other.means[::2][:3], one.means, rtol=1e-10, atol=1e-12)
    assert_array_equal(other.means[1::2], 0.0)
    # Their rows may come later.
    late = np.arange(60)[y == 1]
    streamed = ClassScatter.empty(3, 12)
    streamed.add(X[y != 1], y[y != 1], np.ones(60 - len(late)))
    streamed.add(X[late], y[late], np.ones(len(late)))
    _assert_same(streamed, plain)


@pytest.mark.parametrize("d", [6, 40])
def test_threads_do_not_change_a_bit(d):
    X, y = _problem(5000, d, 7)
    weight = np.random.default_rng(3).uniform(size=5000)
    one, two = (scatter_of(_rows(X, threads, 10**6), y, weight, 7) for threads in (1, 3))
    for name in ("weight", "origin", "offset", "scatter"):
        assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.intensity("auto") == two.intensity("auto")


def test_blocks_of_another_size_give_the_same():
    X, y = _problem(5000, 20, 7)
    small, large = (scatter_of(_rows(X, 1, memory), y, np.ones(5000), 7) for memory in (1, 10**9))
    _assert_same(small, large, rtol=1e-11)


# Digits.


@pytest.mark.parametrize("d", [5, 12])
def test_an_offset_costs_no_digits(d):
    X, y = _problem(200, d)
    X = np.round(X * 64) / 64
    near, far = _batch(X, y), _batch(X + 1e8, y)
    assert_allclose(far.within, near.within, rtol=0, atol=1e-13 * np.abs(near.within).max())
    assert_allclose(far.intensity("auto"), near.intensity("auto"), rtol=1e-11)
    # Means that blocks come to later are as good as those of the first.
    streamed = ClassScatter.empty(3, d)
    for first in range(0, 200, 10):
        here = slice(first, first + 10)
        streamed.add(X[here] + 1e8, y[here], np.ones(10))
    assert_allclose(streamed.within, near.within, rtol=0, atol=1e-13 * np.abs(near.within).max())


def test_classes_far_apart_cost_no_digits():
    X, y = _problem(200, 5)
    apart = X + 1e6 * y[:, None]
    assert_allclose(_batch(apart, y).within, _batch(X, y).within, rtol=1e-8, atol=1e-8)
    assert_allclose(_batch(apart, y).intensity("auto"), _batch(X, y).intensity("auto"), rtol=1e-8)


@pytest.mark.parametrize("size", [1e-150, 1e-30, 1e30, 1e145])
def test_rows_of_any_size_have_the_same_intensity_and_whitening(size):
    X, y = _problem(80, 12)
    plain, sized = _batch(X, y), _batch(X * size, y)
    assert_allclose(sized.intensity("auto"), plain.intensity("auto"), rtol=1e-10)
    one, other = whitened(plain, 0.1), whitened(sized, 0.1)
    features = (X - one.mean) @ one.matrix, (X * size - other.mean) @ other.matrix
    assert_allclose(features[1] @ features[1].T, features[0] @ features[0].T, rtol=1e-8, atol=1e-9)


def test_streams_may_grow_in_size():
    X, y = _problem(60, 12)
    X = X * np.geomspace(1e-100, 1e100, 60)[:, None]
    for order in (np.arange(60), np.arange(60)[::-1]):
        streamed = ClassScatter.empty(3, 12)
        for i in order:
            streamed.add(X[i : i + 1], y[i : i + 1], np.ones(1))
        _assert_same(streamed, _batch(X, y))


def test_values_without_a_sum_of_squares_are_refused():
    with pytest.raises(ValueError, match=r"too far apart.*StandardScaler"):
        _batch(np.array([[1e308], [-1e308]]), np.array([0, 1]))


def test_rows_too_small_to_divide_by_are_refused_with_a_remedy():
    X, y = _problem(80, 4)
    for size in (1e-300, 1e-307):
        space = whitened(_batch(X * size, y))
        assert np.isfinite(space.matrix).all()
        assert_allclose((X * size - space.mean) @ space.matrix @ np.ones(4), _whitened_sum(X, y))
    for size in (1e-310, 1e-320):
        with pytest.raises(ValueError, match=r"X has values so close.*scale X"):
            whitened(_batch(X * size, y))
    # As features of something else that varies, they are as good as constant.
    mixed = np.column_stack([X, X[:, 0] * 1e-310])
    assert whitened(_batch(mixed, y)).matrix.shape == (5, 4)


def _whitened_sum(X, y):
    space = whitened(_batch(X, y))
    return (X - space.mean) @ space.matrix @ np.ones(4)


@pytest.mark.parametrize("rows", [0, 1, 60])
def test_a_state_is_plain_and_goes_on_where_it_was(rows):
    X, y = _problem()
    scatter = ClassScatter.empty(3, 5)
    scatter.add(X[:rows], y[:rows], np.ones(rows))
    state = scatter.state()
    assert all(isinstance(value, np.ndarray | float) for value in state.values())
    again = ClassScatter(**{name: np.copy(value) for name, value in state.items()})
    for each in (scatter, again):
        each.add(X[rows:], y[rows:], np.ones(60 - rows))
    _assert_same(again, scatter, rtol=1e-15)
    _assert_same(scatter, _batch(X, y))


def test_the_spread_is_that_of_the_rows_about_the_first():
    X, y = _problem()
    scatter = _batch(X, y)
    mean = np.array([X[y == k].mean(axis=0) for k in range(3)])
    about, deviation = np.abs(mean - X[0]).max(axis=0), (X - mean[y]).std(axis=0)
    assert_allclose(scatter.spread(), np.maximum(about, deviation), rtol=1e-12)
    assert_array_equal(_batch(np.full((4, 2), 0.1), np.array([0, 1, 0, 1])).spread(), 0.0)


def test_iris_streamed_one_row_at_a_time():
    X, y = load_iris(return_X_y=True)
    streamed = ClassScatter.empty(3, 4)
    for i in np.random.default_rng(0).permutation(150):
        streamed.add(X[i : i + 1], y[i : i + 1], np.ones(1))
    _assert_same(streamed, _batch(X, y), rtol=1e-12)
