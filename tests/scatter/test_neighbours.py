"""The nearest rows of rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist

from widemargin.rows import ArrayRows
from widemargin.scatter.class_scatter import DenseColumns
from widemargin.scatter.neighbours import FeatureRows, nearest_rows, squared_distances

# Memory for blocks of 16 rows that are read again and again.
LITTLE = 2000


# Neighbours.


def _points(X, memory=10**9, threads=1):
    rows = ArrayRows(X, memory, threads)
    return FeatureRows(rows, np.arange(len(X)), DenseColumns(X.shape[1]), X.mean(axis=0), 2.0)


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize(("n", "memory"), [(2500, 10**9), (90, LITTLE), (4, 10**9), (2, 10**9)])
def test_neighbours_are_those_of_sorted_distances(n, d, memory):
    X = np.random.default_rng(n + d).standard_normal((n, d)) + 100.0
    k = min(6, n - 1)
    squares = cdist(X, X, "sqeuclidean") / 4
    np.fill_diagonal(squares, np.inf)
    order = np.argsort(squares, axis=1)[:, :k]
    for threads in (1, 2):
        points = _points(X, memory, threads)
        assert points.in_memory == (8 * n * d <= memory // 2)
        found = nearest_rows(points, 6)
        assert_array_equal(found.index, order)
        assert_allclose(found.squares, np.take_along_axis(squares, order, 1), rtol=1e-9)


@pytest.mark.parametrize("d", [2, 16])
def test_of_equally_near_rows_any_are_neighbours_and_never_the_row_itself(d):
    X = np.zeros((100, d))
    X[:, :2] = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), -1).reshape(-1, 2)
    X[90:] = X[0]  # rows in one place, more than neighbours
    found = nearest_rows(_points(X), 4)
    assert not (found.index == np.arange(100)[:, None]).any()
    assert all(len(set(row)) == 4 for row in found.index)
    squares = cdist(X, X, "sqeuclidean") / 4
    np.fill_diagonal(squares, np.inf)
    assert_allclose(found.squares, np.sort(squares, axis=1)[:, :4], atol=1e-12)


def test_small_distances_far_from_the_origin_keep_their_digits():
    rng = np.random.default_rng(0)
    near = rng.standard_normal((300, 20)) * 1e-4
    X = near + np.where(np.arange(300) % 2, 1e4, -1e4)[:, None]
    X = near + (X - near)  # what is left of the small numbers
    exact = cdist(X, X, "sqeuclidean")
    assert_allclose(squared_distances(X, X), exact, rtol=1e-8, atol=0)
    norms = (X * X).sum(axis=1)
    plain = norms[:, None] + norms - 2 * X @ X.T
    assert np.abs(plain / np.where(exact > 0, exact, 1) - 1)[exact > 0].max() > 0.1


@pytest.mark.parametrize("width", [1e-1, 1e-3, 1e-6, 1e-25])
def test_neighbours_in_narrow_clusters_are_right(width):
    # Too narrow for float32 beside their distance from each other.
    rng = np.random.default_rng(1)
    centres = np.zeros((3, 20))
    centres[1:] = rng.standard_normal((2, 20))  # the first cluster may be as narrow as it likes
    X = centres[np.arange(1500) % 3] + width * rng.standard_normal((1500, 20))
    rows = ArrayRows(X, 10**9, 1)
    points = FeatureRows(rows, np.arange(1500), DenseColumns(20), np.zeros(20), 1.0)
    found = nearest_rows(points, 5)
    squares = cdist(X, X, "sqeuclidean")
    np.fill_diagonal(squares, np.inf)
    assert_allclose(found.squares, np.sort(squares, axis=1)[:, :5], rtol=1e-6, atol=1e-300)
