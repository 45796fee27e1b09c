"""Neighbours, `LocalFisherDA` and `LocalityPreservingProjection`."""

import pickle
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import scale

from tests.reference.locality import (
    largest_angle,
    local_fisher,
    local_fisher_scatters,
    local_scaling,
    locality_preserving,
    neighbour_graph,
    pair_scatter,
)
from widemargin import LocalFisherDA, LocalityPreservingProjection
from widemargin.discriminant import local_scatter
from widemargin.discriminant.eigenproblem import generalized_eigenvectors
from widemargin.discriminant.local_scatter import local_scatters
from widemargin.discriminant.neighbours import (
    FeatureRows,
    Neighbours,
    nearest_rows,
    squared_distances,
)
from widemargin.discriminant.scatter import DenseColumns, scatter_of
from widemargin.rows import ArrayRows, distinct_rows

LPP = LocalityPreservingProjection
# Memory for blocks of 16 rows that are read again and again.
LITTLE = 2000

EVERY = {
    "fisher": LocalFisherDA(2),
    "fisher plain": LocalFisherDA(2, embedding="plain", shrinkage=None),
    "fisher kernel": LocalFisherDA(2, kernel="rbf", gamma=0.02, n_vectors=40, random_state=0),
    "preserving": LPP(2),
    "preserving supervised": LPP(2, supervised=True, affinity="binary", variance=0.999),
    "preserving kernel": LPP(2, kernel="rbf", gamma=0.02, n_vectors=40, random_state=0),
}
every = pytest.mark.parametrize("name", EVERY)


def _model(name, **parameters):
    return clone(EVERY[name]).set_params(**parameters)


def _wine(step=1):
    X, y = load_wine(return_X_y=True)
    return scale(X)[::step], y[::step]


def _blobs(n, d, n_classes, seed):
    """Classes of two clusters each, of unequal size and scale."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    y[:n_classes] = np.arange(n_classes)
    centres = rng.standard_normal((2 * n_classes, d)) * 3
    X = centres[2 * y + rng.integers(2, size=n)] + rng.standard_normal((n, d)) * rng.uniform(
        0.3, 2, d
    )
    return X, y


def _same_features(A, B, atol):
    """Equal up to the signs of the columns."""
    sign = np.sign((A * B).sum(axis=0))
    assert_allclose(A, sign * B, atol=atol)


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


# The eigenproblem.


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(0, 3))
def test_the_eigenproblem_is_solved_at_right_angles_to_where_b_vanishes(seed, rank, null):
    rng = np.random.default_rng(seed)
    n = rank + null
    turn = ortho_group.rvs(n, random_state=seed) if n > 1 else np.eye(1)
    basis, beyond = turn[:, :rank], turn[:, rank:]
    root = rng.standard_normal((rank, rank)) + 3 * np.eye(rank)
    A, inner = rng.standard_normal((n, n)), root @ root.T
    A = A + A.T
    B = basis @ inner @ basis.T
    found = generalized_eigenvectors(A, B)
    values = eigh(basis.T @ A @ basis, inner, eigvals_only=True)
    assert_allclose(found.values, values, atol=1e-8 * np.abs(values).max())
    assert_allclose(found.vectors.T @ B @ found.vectors, np.eye(rank), atol=1e-8)
    assert_allclose(beyond.T @ found.vectors, 0, atol=1e-8)
    assert_array_equal(found.reversed().values, found.values[::-1])


@pytest.mark.parametrize("spread", [1, 10, 100])
def test_coordinates_of_very_different_size_cost_no_digits(spread):
    rng = np.random.default_rng(0)
    root, A = rng.standard_normal((6, 6)) + 3 * np.eye(6), rng.standard_normal((6, 6))
    A, B, size = A + A.T, root @ root.T, 10.0 ** np.linspace(-spread, spread, 6)
    found = generalized_eigenvectors(A * np.outer(size, size), B * np.outer(size, size))
    values, vectors = eigh(A, B)
    assert_allclose(found.values, values, rtol=1e-10)
    _same_features(found.vectors * size[:, None], vectors, 1e-10)


# Local Fisher discriminants against the plain version.


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("memory", ["1GB", LITTLE])
def test_the_subspace_is_that_of_the_plain_version(seed, memory):
    X, y = _blobs(150, 4 + seed, 2 + seed % 3, seed)
    y[y == 1] = np.where(np.arange((y == 1).sum()) < 3 + seed, 1, 0)  # a class of few rows
    for k, shrinkage in ((1, None), (3, 0.2), (X.shape[1], None)):
        model = LocalFisherDA(k, shrinkage=shrinkage, memory=memory).fit(X, y)
        values, vectors = local_fisher(X, y, k, 7, shrinkage or 0.0)
        assert_allclose(model.eigenvalues_, values, rtol=1e-8)
        assert largest_angle(model.components_.T, vectors) < 1e-6
        plain = clone(model).set_params(embedding="plain").fit(X, y)
        _same_features(plain.components_.T * len(X) ** -0.5, vectors, 1e-7)


@pytest.mark.parametrize("n_neighbors", [1, 2, 7, 40, 1000])
def test_the_number_of_neighbours_is_that_of_the_plain_version(n_neighbors):
    X, y = _wine()
    model = LocalFisherDA(3, n_neighbors=n_neighbors, shrinkage=None).fit(X, y)
    _, vectors = local_fisher(X, y, 3, n_neighbors)
    assert largest_angle(model.components_.T, vectors) < 1e-6


def _scatters(X, y, weight=None, n_neighbors=7):
    weight = np.ones(len(X)) if weight is None else weight
    distinct = distinct_rows(ArrayRows(X, 10**9, 1), y, weight)
    features, c = DenseColumns(X.shape[1]), y.max() + 1
    classes = scatter_of(distinct.rows, distinct.code, distinct.weight, c, features)
    found = local_scatters(distinct, features, classes, n_neighbors)
    return found, weight.sum() * classes.unit**2


def test_the_scatter_matrices_are_the_sums_over_pairs():
    X, y = _wine(2)
    for weight in (None, np.random.default_rng(0).uniform(0.1, 3, len(X))):
        found, unit = _scatters(X, y, weight)
        between, within = local_fisher_scatters(X, y, local_scaling(X, y, 7), weight)
        assert_allclose(found.within * unit, within, atol=1e-10)
        assert_allclose(found.between * unit, between, atol=1e-10)
        assert np.linalg.eigvalsh(found.between).min() > -1e-14


def _everything_near(monkeypatch):
    def far(points, k):
        return Neighbours(np.zeros((points.n, 1), dtype=np.intp), np.full((points.n, 1), 1e100))

    monkeypatch.setattr(local_scatter, "nearest_rows", far)


def test_with_all_affinities_one_it_is_lda(monkeypatch):
    X, y = _wine()
    _everything_near(monkeypatch)
    found, unit = _scatters(X, y)
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    offset = X - means[y]
    assert_allclose(found.within * unit, offset.T @ offset, atol=1e-9)
    offset = means[y] - X.mean(axis=0)
    assert_allclose(found.between * unit, offset.T @ offset, atol=1e-9)
    # Three means are all that is lost of the freedom of the rows.
    assert_allclose(found.freedom, len(X) - 3)
    model = LocalFisherDA(shrinkage=None).fit(X, y)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    assert largest_angle(model.components_[:2].T, lda.scalings_[:, :2]) < 1e-6
    assert_allclose(model.eigenvalues_[2:], 0, atol=1e-12)


def test_the_reference_with_all_affinities_one_is_lda():
    X, y = _wine()
    between, within = local_fisher_scatters(X, y, np.ones((len(X), len(X))))
    offset = X - np.array([X[y == c].mean(axis=0) for c in range(3)])[y]
    assert_allclose(within, offset.T @ offset, atol=1e-9)
    assert_allclose(between + within, len(X) * np.cov(X.T, bias=True), atol=1e-9)


def test_embeddings_are_the_same_directions():
    X, y = _wine()
    plain, weighted, orthonormal = (
        LocalFisherDA(5, embedding=embedding).fit(X, y)
        for embedding in ("plain", "weighted", "orthonormalized")
    )
    roots = np.sqrt(plain.eigenvalues_)[:, None]
    assert_allclose(weighted.components_, plain.components_ * roots, rtol=1e-12)
    assert_allclose(orthonormal.components_ @ orthonormal.components_.T, np.eye(5), atol=1e-12)
    for k in range(1, 6):
        assert largest_angle(orthonormal.components_[:k].T, plain.components_[:k].T) < 1e-6


def test_the_plain_embedding_whitens_the_local_scatter():
    X, y = _wine()
    model = LocalFisherDA(embedding="plain", shrinkage=None).fit(X, y)
    between, within = local_fisher_scatters(X, y, local_scaling(X, y, 7))
    W, n = model.components_, len(X)
    assert_allclose(W @ within @ W.T / n, np.eye(13), atol=1e-10)
    assert_allclose(W @ between @ W.T / n, np.diag(model.eigenvalues_), atol=1e-9)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        (name, size)
        for name in EVERY
        for size in (1e-150, 1e-3, 1.0, 1e150)
        # A kernel width of such rows would be no number.
        if "kernel" not in name or 1e-100 < size < 1e100
    ],
)
def test_rotations_shifts_and_scales_change_nothing(name, size):
    X, y = _wine()
    turn = ortho_group.rvs(13, random_state=3)
    model = _model(name)
    moved = X @ turn * size + (0 if size != 1 else 50.0)
    if "kernel" in name:
        model.set_params(n_vectors=len(X))
    first = model.fit(X, y).transform(X)
    gamma = {"gamma": 0.02 / size**2} if "kernel" in name else {}
    second = clone(model).set_params(**gamma).fit(moved, y).transform(moved)
    _same_features(first, second, 1e-6)


@pytest.mark.parametrize("name", ["fisher", "fisher plain", "preserving"])
def test_rotations_change_nothing_with_fewer_rows_than_columns(name):
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((50, 60)) * np.geomspace(1, 30, 60), np.arange(50) % 3
    turn = ortho_group.rvs(60, random_state=3)
    model = _model(name).fit(X[:40], y[:40])
    turned = _model(name).fit(X[:40] @ turn, y[:40])
    # Also of rows that were not there.
    _same_features(model.transform(X), turned.transform(X @ turn), 1e-6)


def test_classes_of_several_clusters_are_kept_apart_where_lda_mixes_them():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 1, 0], 60)  # both class means are the same
    X = np.c_[np.repeat([-6.0, -2.0, 2.0, 6.0], 60), np.zeros((240, 4))]
    X += rng.standard_normal(X.shape) * [0.5, 2, 2, 2, 2]
    score = {}
    for model in (LocalFisherDA(1), LinearDiscriminantAnalysis(n_components=1)):
        train, test = np.arange(0, 240, 2), np.arange(1, 240, 2)
        model.fit(X[train], y[train])
        nearest = KNeighborsClassifier(3).fit(model.transform(X[train]), y[train])
        score[type(model)] = nearest.score(model.transform(X[test]), y[test])
    assert score[LocalFisherDA] > 0.95
    assert score[LinearDiscriminantAnalysis] < 0.75


def test_two_classes_have_more_than_one_feature():
    X, y = _wine()
    model = LocalFisherDA().fit(X, y == 1)
    assert model.transform(X).shape == (178, 13)
    assert model.eigenvalues_.min() > 0.1
    assert (np.diff(model.eigenvalues_) < 0).all()


# Shrinkage.


def test_shrinkage_moves_the_local_scatter_towards_a_multiple_of_the_identity():
    X, y = _wine()
    full = LocalFisherDA(embedding="plain", shrinkage=1.0).fit(X, y)
    gram = full.components_ @ full.components_.T
    assert_allclose(gram, gram[0, 0] * np.eye(13), atol=1e-10)
    assert full.shrinkage_ == 1.0
    assert LocalFisherDA(shrinkage=None).fit(X, y).shrinkage_ == 0.0


def test_automatic_shrinkage_falls_with_the_rows_and_rises_with_the_columns():
    rng = np.random.default_rng(0)

    def intensity(n, d):
        X = rng.standard_normal((n, d)) * np.geomspace(1, 10, d)
        return LocalFisherDA().fit(X, np.arange(n) % 2).shrinkage_

    few, many, more = intensity(40, 20), intensity(400, 20), intensity(4000, 20)
    assert 0 < 3 * more < many < few / 3 < 1 / 3
    assert intensity(400, 5) < many
    # Round rows are a multiple of the identity but for chance.
    round_rows = LocalFisherDA().fit(rng.standard_normal((300, 10)), np.arange(300) % 2)
    assert round_rows.shrinkage_ > 0.5


def test_automatic_shrinkage_is_near_the_best_for_gaussian_rows(monkeypatch):
    # With all affinities 1 the rows of two classes with one covariance are the model's own case.
    _everything_near(monkeypatch)
    rng = np.random.default_rng(1)
    truth = np.diag(np.geomspace(1, 20, 15))
    loss = {}
    for _ in range(20):
        X = rng.standard_normal((24, 15)) * np.sqrt(np.diag(truth))
        y = np.arange(24) % 2
        found, unit = _scatters(X, y)
        S = found.within * unit / (24 - 2)
        target = np.trace(S) / 15 * np.eye(15)
        for share in (*np.linspace(0, 1, 21), "auto"):
            moved = found.intensity(share)
            error = ((1 - moved) * S + moved * target - truth) ** 2
            loss[share] = loss.get(share, 0.0) + error.sum()
    best = min(loss[share] for share in loss if share != "auto")
    assert loss["auto"] < 1.1 * best
    assert loss[0.0] > 1.5 * best


def test_fewer_rows_than_columns():
    X, y = load_digits(return_X_y=True)
    score = {}
    for shrinkage in ("auto", None):
        model = LocalFisherDA(9, shrinkage=shrinkage).fit(X[:60], y[:60])
        nearest = KNeighborsClassifier(1).fit(model.transform(X[:60]), y[:60])
        score[shrinkage] = nearest.score(model.transform(X[1000:]), y[1000:])
    assert score["auto"] > max(0.75, score[None] + 0.2)
    rank = np.linalg.matrix_rank(X[:60] - np.array([X[:60][y[:60] == c].mean(0) for c in y[:60]]))
    assert len(LocalFisherDA(shrinkage=None).fit(X[:60], y[:60]).components_) == rank
    with pytest.raises(ValueError, match=r"n_components=55.*directions only.*shrinkage > 0"):
        LocalFisherDA(55, shrinkage=None).fit(X[:60], y[:60])


# Locality preserving projections against the plain version.


@pytest.mark.parametrize("memory", ["1GB", LITTLE])
@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"affinity": "binary"},
        {"bandwidth": 3.0},
        {"n_neighbors": 12},
        {"n_neighbors": 1000},
        {"supervised": True},
        {"supervised": True, "n_neighbors": 2, "affinity": "binary"},
    ],
    ids=str,
)
def test_projections_are_those_of_the_plain_version(parameters, memory):
    graph = dict(parameters)
    for seed, step in ((0, 1), (1, 3)):
        X, y = _wine(step) if seed else _blobs(120, 18, 3, 0)
        graph = {k: v for k, v in parameters.items() if k not in ("supervised", "n_neighbors")}
        if "supervised" in parameters:
            graph["y"] = y
        W = neighbour_graph(X, parameters.get("n_neighbors", 5), **graph)
        for k in (1, 2, X.shape[1]):
            model = LPP(k, memory=memory, **parameters).fit(X, y)
            values, vectors = locality_preserving(X, W, k)
            assert_allclose(model.eigenvalues_, values, atol=1e-10)
            if parameters.get("n_neighbors") != 1000:  # all λ are the same there
                assert largest_angle(model.components_.T, vectors) < 1e-6
        degree = W.sum(axis=1)
        assert_allclose(model.mean_, degree @ X / degree.sum(), atol=1e-10)
        features = model.transform(X)
        share = degree / degree.sum()
        assert_allclose(features.T @ (share[:, None] * features), np.eye(k), atol=1e-8)
        smooth = pair_scatter(features, W) / degree.sum()
        assert_allclose(smooth, np.diag(model.eigenvalues_), atol=1e-8)


def test_the_bandwidth_is_the_mean_squared_length_of_an_edge():
    X, _ = _wine()
    joined = neighbour_graph(X, 5, affinity="binary")
    expected = (joined * cdist(X, X, "sqeuclidean")).sum() / joined.sum()
    assert_allclose(LPP().fit(X).bandwidth_, expected)
    assert LPP(bandwidth=2.5).fit(X).bandwidth_ == pytest.approx(2.5)
    assert np.isnan(LPP(affinity="binary").fit(X).bandwidth_)


def test_a_wide_bandwidth_is_a_binary_graph():
    X, _ = _wine()
    wide, binary = LPP(bandwidth=1e12).fit(X), LPP(affinity="binary").fit(X)
    assert_allclose(wide.components_, binary.components_, atol=1e-8)


def test_with_fewer_rows_than_columns_it_is_laplacian_eigenmaps():
    X = np.random.default_rng(0).standard_normal((25, 60))
    model = LPP(None).fit(X)
    W = neighbour_graph(X, 5)
    D = np.diag(W.sum(axis=1))
    values, functions = eigh(D - W, D)
    # The first is the constant.
    assert_allclose(model.eigenvalues_, values[1:], atol=1e-9)
    total = np.sqrt(W.sum())
    _same_features(model.transform(X), functions[:, 1:] * total, 1e-6)


def test_the_complete_graph_sees_no_direction_before_another():
    X, _ = _wine()
    model = LPP(None, n_neighbors=1000, affinity="binary").fit(X)
    n = len(X)
    assert_allclose(model.eigenvalues_, n / (n - 1))


def test_complete_graphs_of_classes_of_one_size_are_lda():
    X, y = _wine()
    kept = np.concatenate([np.flatnonzero(y == c)[:48] for c in range(3)])
    X, y = X[kept], y[kept]
    model = LPP(2, supervised=True, n_neighbors=47, affinity="binary").fit(X, y)
    lda = LinearDiscriminantAnalysis(solver="eigen").fit(X, y)
    assert largest_angle(model.components_.T, lda.scalings_[:, :2]) < 1e-6
    # λ = 48/47 of within over total scatter.
    means = np.array([X[y == c].mean(axis=0) for c in range(3)])
    offset = X - means[y]
    values = eigh(offset.T @ offset, len(X) * np.cov(X.T, bias=True), eigvals_only=True)
    assert_allclose(model.eigenvalues_, values[:2] * 48 / 47)


def test_labels_are_not_looked_at_unless_asked_for():
    X, y = _wine()
    plain = LPP().fit(X)
    assert_array_equal(LPP().fit(X, y).components_, plain.components_)
    assert not hasattr(LPP().fit(X, y), "classes_")
    supervised = LPP(supervised=True).fit(X, y)
    assert largest_angle(supervised.components_.T, plain.components_.T) > 0.1
    with pytest.raises(ValueError, match="y"):
        LPP(supervised=True).fit(X)


@pytest.mark.parametrize("variance", [0.5, 0.9, 0.999])
def test_the_pca_keeps_a_share_of_the_variance(variance):
    X, _ = _wine()
    W = neighbour_graph(X, 5)
    share = W.sum(axis=1) / W.sum()
    centred = X - share @ X
    variances, axes = eigh(centred.T @ (share[:, None] * centred))
    ratio = np.cumsum(variances[::-1]) / variances.sum()
    k = int((ratio < variance).sum()) + 1
    model = LPP(None, variance=variance).fit(X)
    assert len(model.components_) == k
    assert largest_angle(model.components_.T, axes[:, ::-1][:, :k]) < 1e-6
    _, vectors = locality_preserving(X @ axes[:, ::-1][:, :k], W, 1)
    assert largest_angle(model.components_[:1].T, axes[:, ::-1][:, :k] @ vectors) < 1e-6


# Kernels.


@pytest.mark.parametrize("name", ["fisher plain", "preserving", "preserving supervised"])
def test_the_linear_kernel_in_a_full_span_is_the_linear_method(name):
    X, y = _wine()
    linear = _model(name).fit(X, y)
    kernel = _model(name, kernel="linear", n_vectors=100, random_state=0).fit(X, y)
    _same_features(kernel.transform(X), linear.transform(X), 1e-6)
    assert linear.span_map_ is None
    assert kernel.components_.shape == (2, 13)


@pytest.mark.parametrize("vectors", ["kmeans", "random", "core"])
def test_the_kernel_method_is_the_linear_one_in_the_span(vectors):
    X, y = _wine()
    parameters = {"kernel": "rbf", "gamma": 0.02, "vectors": vectors, "n_vectors": 20}
    model = LocalFisherDA(3, shrinkage=None, random_state=0, **parameters).fit(X, y)
    features = model.span_map_.transform(X)
    _, reference = local_fisher(features, y, 3)
    assert largest_angle(model.components_.T, reference) < 1e-6
    assert_allclose(model.transform(X), (features - model.mean_) @ model.components_.T, atol=1e-8)
    preserving = LPP(3, supervised=True, random_state=0, **parameters).fit(X, y)
    features = preserving.span_map_.transform(X)
    _, reference = locality_preserving(features, neighbour_graph(features, 5, y=y), 3)
    assert largest_angle(preserving.components_.T, reference) < 1e-6


@pytest.mark.parametrize("name", ["fisher kernel", "preserving kernel"])
def test_a_precomputed_kernel_equals_the_kernel_itself(name):
    X, y = _wine(2)
    # All rows are vectors: the span is the same whatever their order.
    model = _model(name, n_vectors=80, vectors="random", gamma=0.2)
    K = rbf_kernel(X, gamma=0.2)
    expected = model.fit(X[:80], y[:80]).transform(X)
    model.set_params(kernel="precomputed").fit(K[:80, :80], y[:80])
    _same_features(model.transform(K[:, :80]), expected, 1e-6)
    model.fit(K, y, sample_weight=np.arange(len(X)) < 80)
    _same_features(model.transform(K), expected, 1e-6)


# Weights, order, threads.


@every
def test_weight_k_is_the_same_as_k_copies(name):
    X, y = _wine()
    rng = np.random.default_rng(0)
    k = rng.integers(0, 4, size=len(X))
    copies = rng.permutation(np.repeat(np.arange(len(X)), k))
    weighted = _model(name).fit(X, y, sample_weight=k)
    copied = _model(name).fit(X[copies], y[copies])
    assert_allclose(weighted.components_, copied.components_, atol=1e-9)
    kept = k > 0
    without = _model(name).fit(X[kept], y[kept], sample_weight=k[kept])
    assert_allclose(without.transform(X), weighted.transform(X), atol=1e-9)
    unweighted = _model(name).fit(X[kept], y[kept])
    assert np.abs(unweighted.transform(X) - weighted.transform(X)).max() > 1e-3


def test_weights_are_those_of_the_plain_versions():
    X, y = _wine(2)
    weight = np.random.default_rng(0).uniform(0.1, 3, len(X))
    model = LocalFisherDA(3, shrinkage=None).fit(X, y, sample_weight=weight)
    values, vectors = eigh(*local_fisher_scatters(X, y, local_scaling(X, y, 7), weight))
    assert_allclose(model.eigenvalues_, values[::-1][:3])
    assert largest_angle(model.components_.T, vectors[:, ::-1][:, :3]) < 1e-6
    model = LPP(3).fit(X, sample_weight=weight)
    values, vectors = locality_preserving(X, neighbour_graph(X, 5, weight=weight), 3)
    assert_allclose(model.eigenvalues_, values)
    assert largest_angle(model.components_.T, vectors) < 1e-6


@pytest.mark.parametrize("factor", [1e-200, 1e-3, 1e200])
@pytest.mark.parametrize("name", ["fisher", "preserving", "preserving supervised"])
def test_the_unit_of_the_weights_does_not_matter(name, factor):
    X, y = _wine()
    weight = np.random.default_rng(0).uniform(0.1, 3, len(X))
    first = _model(name).fit(X, y, sample_weight=weight)
    second = _model(name).fit(X, y, sample_weight=weight * factor)
    assert_allclose(second.components_, first.components_, rtol=1e-6, atol=1e-8)


@every
def test_the_order_of_the_rows_does_not_matter(name):
    X, y = load_digits(n_class=3, return_X_y=True)  # whole numbers: many distances are the same
    order = np.random.default_rng(5).permutation(len(X))
    gamma = {"gamma": 1e-3} if "kernel" in name else {}
    straight = _model(name, **gamma).fit(X, y)
    shuffled = _model(name, **gamma).fit(X[order], y[order])
    assert_allclose(shuffled.transform(X), straight.transform(X), atol=1e-8)


@every
def test_one_seed_gives_the_same_bits_for_any_number_of_threads(name):
    X, y = _blobs(2600, 20, 2, 0)  # more than a block of rows in each class
    first = _model(name, n_jobs=1).fit(X, y)
    again = _model(name, n_jobs=2).fit(X, y)
    assert_array_equal(again.components_, first.components_)
    assert_array_equal(again.transform(X), first.transform(X))


@every
def test_a_small_memory_budget_gives_the_same_features(name):
    X, y = _wine()
    plain = _model(name).fit(X, y)
    small = _model(name, memory=LITTLE).fit(X, y)
    assert_allclose(small.transform(X), plain.transform(X), atol=1e-7)


def test_thousands_of_small_classes():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(1500), 3)
    X = np.repeat(rng.standard_normal((1500, 20)) * np.r_[5, np.ones(19)], 3, axis=0)
    X += rng.standard_normal(X.shape) * 0.1 * np.r_[1, np.full(19, 10)]
    model = LocalFisherDA(1, embedding="orthonormalized").fit(X, y)
    assert abs(model.components_[0, 0]) > 0.99
    some = y < 40
    small = LocalFisherDA(4, shrinkage=None).fit(X[some], y[some])
    assert largest_angle(small.components_.T, local_fisher(X[some], y[some], 4)[1]) < 1e-6


# Storage and labels.


@every
def test_any_storage_of_the_rows_gives_the_same_features(name, tmp_path):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:90], y[:90]
    gamma = {"gamma": 1e-3} if "kernel" in name else {}
    model = _model(name, **gamma).fit(X, y)
    expected = model.transform(X)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for stored in (np.asfortranarray(X), mapped, np.repeat(X, 2, axis=0)[::2]):
        assert_array_equal(clone(model).fit(stored, y).transform(stored), expected)
    sparse_rows = sparse.csr_array(X)
    sparse_rows.indices = sparse_rows.indices.astype(np.int64)
    sparse_rows.indptr = sparse_rows.indptr.astype(np.int64)
    again = clone(model).fit(sparse_rows, y)
    assert_allclose(again.transform(sparse_rows), expected, atol=1e-8)
    for dtype in (np.int8, np.uint16, np.float16, np.float32):
        again = clone(model).fit(X.astype(dtype), y)
        _same_features(again.transform(X.astype(dtype)), expected, 1e-4 * np.abs(expected).max())
    assert again.transform(X.astype(np.float32)).dtype == np.float32
    assert again.transform(X).dtype == np.float64


@pytest.mark.parametrize("name", ["fisher", "preserving supervised", "fisher kernel"])
@pytest.mark.parametrize("names", [["größer", "日本", "naïve"], [2**40, -7, 3], [0.0, -1.0, 2.0]])
def test_labels_of_any_type_give_the_features_of_their_numbers(name, names):
    X, y = _wine()
    names = np.array(names)
    rank = np.argsort(np.argsort(names))
    model = _model(name).fit(X, names[y])
    assert_allclose(model.transform(X), _model(name).fit(X, rank[y]).transform(X), atol=1e-10)
    assert_array_equal(model.classes_, np.sort(names))


@every
def test_the_interface_of_transformers(name):
    X, y = _wine()
    model = _model(name).fit(X, y)
    word = type(model).__name__.lower()
    assert list(model.get_feature_names_out()) == [f"{word}0", f"{word}1"]
    assert_array_equal(clone(model).fit_transform(X, y), model.transform(X))
    assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))
    assert (model.components_[np.arange(2), np.abs(model.components_).argmax(axis=1)] > 0).all()


# Odd data.


@every
def test_duplicate_rows_are_one_row_with_their_weight(name):
    X, y = _wine()
    index = np.r_[np.arange(len(X)), np.repeat([0, 70, 170], 20)]
    weight = np.bincount(index, minlength=len(X))
    model = _model(name).fit(X[index], y[index])
    expected = _model(name).fit(X, y, sample_weight=weight)
    assert_allclose(model.transform(X), expected.transform(X), atol=1e-9)


@pytest.mark.parametrize("name", ["fisher plain", "preserving", "preserving supervised"])
def test_constant_columns_say_nothing(name):
    X, y = _wine()
    wide = np.column_stack([np.full(len(X), 0.1), X, np.full(len(X), 12345.678)])
    model = _model(name).fit(wide, y)
    assert_allclose(model.transform(wide), _model(name).fit(X, y).transform(X), atol=1e-8)
    assert_array_equal(model.components_[:, [0, -1]], 0)


def test_columns_that_do_not_vary_among_neighbours_say_nothing():
    X, y = _wine()
    places = np.random.default_rng(0).standard_normal((3, 20)) * 100
    wide = np.column_stack([places[y], X])
    model = LocalFisherDA(shrinkage=None).fit(wide, y)
    assert_array_equal(model.components_[:, :20], 0)
    assert_allclose(model.eigenvalues_, LocalFisherDA(shrinkage=None).fit(X, y).eigenvalues_)
    # The one row of its class has no neighbours, and the column is constant elsewhere.
    y[70] = 7
    wide = np.column_stack([np.where(y == 7, 123.456, 0.1), X])
    model = LPP(None, supervised=True, affinity="binary").fit(wide, y)
    assert_array_equal(model.components_[:, 0], 0)
    assert len(model.components_) == 13


def test_shrinkage_gives_constant_columns_no_say_either():
    X, y = _wine()
    wide = np.column_stack([np.full(len(X), 0.1), X])
    model = LocalFisherDA(5).fit(wide, y)
    assert_allclose(model.components_[:, 0], 0, atol=1e-10)


def test_classes_whose_rows_are_all_equal_are_spread():
    places = np.array([[0.0, 0.0, 1.0], [4.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    y = np.repeat([0, 1, 2], 3)
    for rows in (np.arange(3), y):
        model = LocalFisherDA(2, embedding="orthonormalized").fit(places[rows], rows)
        offset = places - places.mean(axis=0)
        axes = np.linalg.svd(offset)[2][:2]
        assert largest_angle(model.components_[:1].T, axes[:1].T) < 1e-6
        assert largest_angle(model.components_.T, axes.T) < 1e-6


def test_a_class_of_one_row_has_no_local_scatter():
    X, y = _wine()
    y = np.where(np.arange(len(X)) == 50, 7, y)
    model = LocalFisherDA(3, shrinkage=None).fit(X, y)
    assert largest_angle(model.components_.T, local_fisher(X, y, 3)[1]) < 1e-6
    joined = LPP(2, supervised=True, affinity="binary").fit(X, y)
    rest = LPP(2, supervised=True, affinity="binary").fit(X[y != 7], y[y != 7])
    assert_allclose(joined.components_, rest.components_, atol=1e-9)


def test_rows_with_the_same_features_but_different_columns():
    # The kernel does not see the sign: rows and their mirror images have one place in the span.
    X, y = _wine(2)
    X, y = np.concatenate([X, -X]), np.concatenate([y, y])
    for n_neighbors in (1, 3):
        for model in (LocalFisherDA(2, shrinkage=None), LPP(2)):
            model.set_params(
                kernel="poly", degree=2, n_vectors=30, random_state=0, n_neighbors=n_neighbors
            )
            features = model.fit(X, y).transform(X)
            assert np.isfinite(features).all()
            assert_allclose(features[: len(X) // 2], features[len(X) // 2 :], atol=1e-6)


@pytest.mark.parametrize("size", [1e-300, 1e200])
@pytest.mark.parametrize("name", ["fisher", "fisher plain", "preserving"])
def test_extreme_sizes_are_answered(name, size):
    X, y = _wine()
    first = _model(name).fit(X, y).transform(X)
    second = _model(name).fit(X * size, y).transform(X * size)
    _same_features(first, second, 1e-6)


@every
def test_bad_rows_are_refused(name):
    X, y = _wine()
    for bad in (np.nan, np.inf):
        broken = X.copy()
        broken[3, 4] = bad
        with pytest.raises(ValueError, match=r"NaN|infinity"):
            _model(name).fit(broken, y)
    with pytest.raises(ValueError, match="minimum of 2"):
        _model(name).fit(X[:1], y[:1])
    with pytest.raises(ValueError, match=r"(?i)sample.weight|class"):
        _model(name).fit(X, y, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match=r"(?i)sample.weight"):
        _model(name).fit(X, y, sample_weight=-np.ones(len(X)))
    if "fisher" in name or "supervised" in name:
        with pytest.raises(ValueError, match="1 class"):
            _model(name).fit(X, np.zeros(len(X)))
    with pytest.raises(ValueError, match="features"):
        _model(name).fit(X, y).transform(X[:, :3])


def test_rows_that_are_all_equal_have_no_neighbours():
    X, y = np.ones((6, 3)), np.arange(6) % 2
    with pytest.raises(ValueError, match="no two different rows"):
        LPP(1).fit(X)
    with pytest.raises(ValueError, match="no two different rows to join as neighbours in any"):
        LPP(1, supervised=True).fit(X, y)
    # Equal rows of different classes: nothing can be told apart, and nothing is.
    assert_array_equal(LocalFisherDA(1).fit_transform(X, y), np.zeros((6, 1)))


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (LocalFisherDA(0), ValueError, "n_components=0"),
        (LocalFisherDA(2.5), TypeError, "n_components=2.5"),
        (LocalFisherDA(14), ValueError, "n_components=14 is more than the 13 features"),
        (LocalFisherDA(n_neighbors=0), ValueError, "n_neighbors=0"),
        (LocalFisherDA(embedding="other"), ValueError, "embedding='other'"),
        (LocalFisherDA(shrinkage=1.5), ValueError, "shrinkage=1.5"),
        (LocalFisherDA(shrinkage="none"), ValueError, "shrinkage='none'"),
        (LocalFisherDA(kernel="other"), ValueError, "other"),
        (LocalFisherDA(kernel="rbf", n_vectors=0), ValueError, "n_vectors=0"),
        (LocalFisherDA(memory="much"), ValueError, "memory='much'"),
        (LPP(14), ValueError, "n_components=14 is more than the 13 features"),
        (LPP(5, variance=0.5), ValueError, r"n_components=5, but these rows have \d directions"),
        (LPP(n_neighbors=1.5), TypeError, "n_neighbors=1.5"),
        (LPP(affinity="cosine"), ValueError, "affinity='cosine'"),
        (LPP(bandwidth="wide"), ValueError, "bandwidth='wide'"),
        (LPP(bandwidth=-1.0), ValueError, "bandwidth=-1.0"),
        (LPP(bandwidth=1e-9), ValueError, "bandwidth=1e-09 gives all edges the weight zero"),
        (LPP(supervised="yes"), TypeError, "supervised='yes'"),
        (LPP(kernel="rbf", vectors="core"), ValueError, "vectors='core'.*supervised=True"),
        (LPP(variance=0.0), ValueError, "variance=0.0"),
        (LPP(variance=1.1), ValueError, "variance=1.1"),
    ],
    ids=lambda value: re.sub(r"\W+", " ", value) if isinstance(value, str) else "",
)
def test_bad_parameters_are_refused_by_name(model, error, message):
    with pytest.raises(error, match=message):
        model.fit(*_wine())
