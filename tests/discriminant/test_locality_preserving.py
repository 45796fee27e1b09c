"""`LocalityPreservingProjection` against the plain version."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from scipy.spatial.distance import cdist
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tests.reference.data import pairs_of_clusters, wine
from tests.reference.locality import (
    assert_same_features,
    largest_angle,
    locality_preserving,
    neighbour_graph,
    pair_scatter,
)
from tests.reference.projection_ways import LPP

# Memory for blocks of 16 rows that are read again and again.
LITTLE = 2000


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
        X, y = wine(step) if seed else pairs_of_clusters(120, 18, 3, 0)
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
    X, _ = wine()
    joined = neighbour_graph(X, 5, affinity="binary")
    expected = (joined * cdist(X, X, "sqeuclidean")).sum() / joined.sum()
    assert_allclose(LPP().fit(X).bandwidth_, expected)
    assert LPP(bandwidth=2.5).fit(X).bandwidth_ == pytest.approx(2.5)
    assert np.isnan(LPP(affinity="binary").fit(X).bandwidth_)


def test_a_wide_bandwidth_is_a_binary_graph():
    X, _ = wine()
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
    assert_same_features(model.transform(X), functions[:, 1:] * total, 1e-6)


def test_the_complete_graph_sees_no_direction_before_another():
    X, _ = wine()
    model = LPP(None, n_neighbors=1000, affinity="binary").fit(X)
    n = len(X)
    assert_allclose(model.eigenvalues_, n / (n - 1))


def test_complete_graphs_of_classes_of_one_size_are_lda():
    X, y = wine()
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
    X, y = wine()
    plain = LPP().fit(X)
    assert_array_equal(LPP().fit(X, y).components_, plain.components_)
    assert not hasattr(LPP().fit(X, y), "classes_")
    supervised = LPP(supervised=True).fit(X, y)
    assert largest_angle(supervised.components_.T, plain.components_.T) > 0.1
    with pytest.raises(ValueError, match="y"):
        LPP(supervised=True).fit(X)


@pytest.mark.parametrize("variance", [0.5, 0.9, 0.999])
def test_the_pca_keeps_a_share_of_the_variance(variance):
    X, _ = wine()
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
