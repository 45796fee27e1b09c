"""Shrinkage by Ledoit and Wolf, and whitened means."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import ledoit_wolf
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.preprocessing import scale

from tests.reference.data import whole_digits, wine
from widemargin.base.parameters import shrinkage as check_shrinkage
from widemargin.rows import as_rows
from widemargin.scatter.class_scatter import scatter_of
from widemargin.scatter.fourth_powers import directions
from widemargin.scatter.whitening import leading, whitened


def _rows(X, threads=1, memory=10**9):
    return as_rows(X, memory=memory, threads=threads)


def _batch(X, y, weight=None, n_classes=None):
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    return scatter_of(_rows(X), y, weight, n_classes or int(max(y)) + 1)


def _problem(n=60, d=5, c=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(c, size=n)
    return rng.normal(size=(n, d)) * np.linspace(0.5, 2.0, d) + 3 * rng.normal(size=(c, d))[y], y


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
        whole_digits(),
        load_wine(return_X_y=True),
        load_breast_cancer(return_X_y=True),
        wine(),
        (scale(whole_digits()[0]), whole_digits()[1]),
        whole_digits(10, 60),
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
        check_shrinkage("shrinkage", bad)
    with pytest.raises(TypeError, match="shrinkage"):
        check_shrinkage("shrinkage", [0.5])
    for good in (None, "auto", 0, 1, 0.5):
        check_shrinkage("shrinkage", good)


# Whitening.


@pytest.mark.parametrize("shrinkage", [None, 0.2, "auto"])
def test_the_whitened_covariance_is_the_identity(shrinkage):
    X, y = _problem(80, 6)
    # Columns of very different size.
    scatter = _batch(X * np.geomspace(1e-9, 1e9, 6), y)
    white = whitened(scatter, shrinkage)
    covariance = scatter.scaled_covariance(shrinkage) * scatter.unit**2
    identity = white.matrix.T @ covariance @ white.matrix
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
    covariance = scatter.scaled_covariance() * scatter.unit**2
    identity = white.matrix.T @ (covariance + 0.2 * total * np.eye(6)) @ white.matrix
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
