"""`ClassScatter` and `whitened`: blocks in any order, weights, offsets, scales, Ledoit and Wolf."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.covariance import ledoit_wolf
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

from tests.reference.fisher_da import scatter_by_loops
from widemargin.discriminant.fourth_powers import directions
from widemargin.discriminant.scatter import ClassScatter, check_shrinkage, scatter_of
from widemargin.discriminant.whitening import leading, whitened
from widemargin.rows import as_rows


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
    assert_allclose(found.covariance(), within / weight.sum(), rtol=1e-11, atol=1e-12)
    variance = np.trace(within) / weight.sum() / 5
    expected = 0.7 * within / weight.sum() + 0.3 * variance * np.eye(5)
    assert_allclose(found.covariance(0.3), expected, rtol=1e-11, atol=1e-12)


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


# Ledoit and Wolf.


@pytest.mark.parametrize("d", range(1, 9))
def test_up_to_eight_columns_the_intensity_is_that_of_scikit_learn(d):
    X, y = _problem(40, d, 3, d)
    X = X**3
    mean = np.array([X[y == k].mean(axis=0) for k in range(3)])
    expected = ledoit_wolf(X - mean[y], assume_centered=True)[1]
    assert_allclose(_batch(X, y).intensity("auto"), expected, rtol=1e-9)
    assert d == 1 or 0.01 < expected < 1


def _tailed(kind, d):
    rng = np.random.default_rng(d)
    y = np.arange(150) % 5
    noise = {
        "normal": rng.normal(size=(150, d)),
        "elliptical": rng.normal(size=(150, d)) / np.sqrt(rng.chisquare(6, size=(150, 1)) / 6),
        "uniform": rng.uniform(size=(150, d)),
        "binary": rng.integers(0, 2, size=(150, d)).astype(float),
    }
    return noise[kind] * np.linspace(0.2, 2, d) + y[:, None], y


@pytest.mark.parametrize(
    "data",
    [
        load_digits(return_X_y=True),
        load_wine(return_X_y=True),
        load_breast_cancer(return_X_y=True),
        (scale(load_wine().data), load_wine().target),
        (scale(load_digits().data), load_digits().target),
        (load_digits().data[:60], load_digits().target[:60]),
        *(_tailed(kind, d) for kind in ("normal", "uniform", "binary") for d in (10, 100, 300)),
        _tailed("elliptical", 30),
    ],
    ids=lambda data: "x".join(map(str, data[0].shape)),
)
def test_the_intensity_is_close_to_that_of_scikit_learn(data):
    X, y = data
    mean = np.array([X[y == k].mean(axis=0) for k in range(int(max(y)) + 1)])
    expected = ledoit_wolf(X - mean[y], assume_centered=True)[1]
    found = _batch(X, y).intensity("auto")
    assert 0 <= found <= 1
    assert abs(found - expected) <= 0.1 * expected


def test_the_directions_are_those_of_an_identity_for_few_columns():
    for d in range(1, 9):
        g, share = directions(d)
        a = np.random.default_rng(d).normal(size=(7, d))
        assert_allclose((a @ g) ** 4 @ share, (a * a).sum(axis=1) ** 2, rtol=1e-12)
    for d in (9, 200):
        g, share = directions(d)
        assert_allclose((g * g).sum(axis=0), 1.0)
        assert_allclose(share.sum(), 1.0)


def test_shrinkage_is_zero_for_a_multiple_of_the_identity_and_for_one_row_a_class():
    assert _batch(np.array([[1.0], [2.0], [5.0]]), np.array([0, 0, 1])).intensity("auto") == 0.0
    alone = _batch(np.eye(4), np.arange(4))
    assert alone.intensity("auto") == 0.0
    assert_array_equal(alone.within, 0.0)


@pytest.mark.parametrize("bad", ["some", -0.1, 1.1, np.nan])
def test_a_shrinkage_that_is_none_is_refused(bad):
    with pytest.raises(ValueError, match=r"shrinkage=.*'auto'"):
        check_shrinkage(bad)
    with pytest.raises(TypeError, match="shrinkage"):
        check_shrinkage([0.5])
    for good in (None, "auto", 0, 1, 0.5):
        check_shrinkage(good)


# Whitening.


@pytest.mark.parametrize("shrinkage", [None, 0.2, "auto"])
def test_the_whitened_covariance_is_the_identity(shrinkage):
    X, y = _problem(80, 6)
    # Columns of very different size.
    scatter = _batch(X * np.geomspace(1e-9, 1e9, 6), y)
    white = whitened(scatter, shrinkage)
    identity = white.matrix.T @ scatter.covariance(shrinkage) @ white.matrix
    assert_allclose(identity, np.eye(6), atol=1e-7)
    assert_allclose((scatter.mean - white.mean) @ white.matrix, white.means, atol=1e-7)
    assert_allclose(white.mean, (X * np.geomspace(1e-9, 1e9, 6)).mean(axis=0), rtol=1e-12)


def test_directions_without_variance_are_left_out():
    X, y = _problem(80, 4)
    more = np.column_stack([X, X[:, 0] + X[:, 1], np.full(80, 0.1), 0.1 * y + 1e6, X[:, 2]])
    white = whitened(_batch(more, y))
    assert white.matrix.shape == (8, 4)
    assert_array_equal(white.matrix[5:7], 0.0)
    one, other = (X - X.mean(axis=0)) @ whitened(_batch(X, y)).matrix, (more - white.mean)
    other = other @ white.matrix
    assert_allclose(other @ other.T, one @ one.T, atol=1e-8)
    # What rounding leaves of a column that is constant in each class is no variance.
    rng = np.random.default_rng(0)
    level = rng.normal(size=(3, 20))[y]
    scatter = _batch(np.column_stack([X, level]), y, rng.uniform(size=80))
    assert scatter.within.diagonal()[4:].max() > 0
    assert_array_equal(whitened(scatter).matrix[4:], 0.0)
    # Fewer rows than columns: what the rows span.
    few, labels = _problem(10, 30, 2)
    assert whitened(_batch(few, labels)).matrix.shape == (30, 8)
    assert whitened(_batch(few, labels), 0.1).matrix.shape == (30, 30)


def test_without_any_variance_the_means_set_the_scale():
    means = np.array([[0.0, 1.0], [4.0, 0.0], [1.0, 1.0]])
    y = np.array([0, 1, 2, 1, 0])
    for factor in (1.0, 1e-140):
        for shrinkage in (None, 0.5, "auto"):
            white = whitened(_batch(means[y] * factor, y), shrinkage)
            assert white.matrix.shape == (2, 2)
            share = np.bincount(y) / 5
            assert_allclose(share @ (white.means**2).sum(axis=1), 1.0, rtol=1e-12)
    everything_equal = whitened(_batch(np.ones((4, 2)), np.array([0, 1, 0, 1])))
    assert_array_equal(everything_equal.matrix, np.eye(2))
    assert_array_equal(everything_equal.means, 0.0)


def test_the_ridge_is_a_share_of_the_total_variance():
    X, y = _problem(80, 6)
    scatter = _batch(X, y)
    white = whitened(scatter, ridge=0.2)
    total = ((X - X.mean(axis=0)) ** 2).sum() / 80
    identity = white.matrix.T @ (scatter.covariance() + 0.2 * total * np.eye(6)) @ white.matrix
    assert_allclose(identity, np.eye(6), atol=1e-12)


@pytest.mark.parametrize("shape", [(4, 9), (9, 4)])
def test_leading_directions_are_eigenvectors(shape):
    rng = np.random.default_rng(0)
    c = shape[0]
    means = rng.normal(size=shape)
    link = rng.uniform(size=(c, c))
    laplacian = np.diag((link + link.T).sum(axis=1)) - link - link.T
    vectors, values = leading(means, laplacian @ means, None)
    between = means.T @ laplacian @ means
    assert vectors.shape == (shape[1], min(c - 1, shape[1]))
    assert_allclose(between @ vectors, vectors * values, atol=1e-10)
    assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=1e-12)
    assert_allclose(values, np.sort(np.linalg.eigvalsh(between))[::-1][: len(values)], rtol=1e-10)


def test_iris_streamed_one_row_at_a_time():
    X, y = load_iris(return_X_y=True)
    streamed = ClassScatter.empty(3, 4)
    for i in np.random.default_rng(0).permutation(150):
        streamed.add(X[i : i + 1], y[i : i + 1], np.ones(1))
    _assert_same(streamed, _batch(X, y), rtol=1e-12)
