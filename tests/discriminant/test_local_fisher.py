"""`LocalFisherDA` against the plain version and LDA."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import eigh
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import KNeighborsClassifier

from tests.reference.data import pairs_of_clusters, wine
from tests.reference.locality import (
    assert_same_features,
    largest_angle,
    local_fisher,
    local_fisher_scatters,
    local_scaling,
    locality_preserving,
    neighbour_graph,
)
from tests.reference.projection_ways import LPP
from widemargin import LocalFisherDA

# Memory for blocks of 16 rows that are read again and again.
LITTLE = 2000


# Local Fisher discriminants against the plain version.


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("memory", ["1GB", LITTLE])
def test_the_subspace_is_that_of_the_plain_version(seed, memory):
    X, y = pairs_of_clusters(150, 4 + seed, 2 + seed % 3, seed)
    y[y == 1] = np.where(np.arange((y == 1).sum()) < 3 + seed, 1, 0)  # a class of few rows
    for k, shrinkage in ((1, None), (3, 0.2), (X.shape[1], None)):
        model = LocalFisherDA(k, shrinkage=shrinkage, memory=memory).fit(X, y)
        values, vectors = local_fisher(X, y, k, 7, shrinkage or 0.0)
        assert_allclose(model.eigenvalues_, values, rtol=1e-8)
        assert largest_angle(model.components_.T, vectors) < 1e-6
        plain = clone(model).set_params(embedding="plain").fit(X, y)
        assert_same_features(plain.components_.T * len(X) ** -0.5, vectors, 1e-7)


@pytest.mark.parametrize("n_neighbors", [1, 2, 7, 40, 1000])
def test_the_number_of_neighbours_is_that_of_the_plain_version(n_neighbors):
    X, y = wine()
    model = LocalFisherDA(3, n_neighbors=n_neighbors, shrinkage=None).fit(X, y)
    _, vectors = local_fisher(X, y, 3, n_neighbors)
    assert largest_angle(model.components_.T, vectors) < 1e-6


def test_embeddings_are_the_same_directions():
    X, y = wine()
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
    X, y = wine()
    model = LocalFisherDA(embedding="plain", shrinkage=None).fit(X, y)
    between, within = local_fisher_scatters(X, y, local_scaling(X, y, 7))
    W, n = model.components_, len(X)
    assert_allclose(W @ within @ W.T / n, np.eye(13), atol=1e-10)
    assert_allclose(W @ between @ W.T / n, np.diag(model.eigenvalues_), atol=1e-9)


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
    X, y = wine()
    model = LocalFisherDA().fit(X, y == 1)
    assert model.transform(X).shape == (178, 13)
    assert model.eigenvalues_.min() > 0.1
    assert (np.diff(model.eigenvalues_) < 0).all()


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


def test_weights_are_those_of_the_plain_versions():
    X, y = wine(2)
    weight = np.random.default_rng(0).uniform(0.1, 3, len(X))
    model = LocalFisherDA(3, shrinkage=None).fit(X, y, sample_weight=weight)
    values, vectors = eigh(*local_fisher_scatters(X, y, local_scaling(X, y, 7), weight))
    assert_allclose(model.eigenvalues_, values[::-1][:3])
    assert largest_angle(model.components_.T, vectors[:, ::-1][:, :3]) < 1e-6
    model = LPP(3).fit(X, sample_weight=weight)
    values, vectors = locality_preserving(X, neighbour_graph(X, 5, weight=weight), 3)
    assert_allclose(model.eigenvalues_, values)
    assert largest_angle(model.components_.T, vectors) < 1e-6


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


def test_columns_that_do_not_vary_among_neighbours_say_nothing():
    X, y = wine()
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
    X, y = wine()
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
    X, y = wine()
    y = np.where(np.arange(len(X)) == 50, 7, y)
    model = LocalFisherDA(3, shrinkage=None).fit(X, y)
    assert largest_angle(model.components_.T, local_fisher(X, y, 3)[1]) < 1e-6
    joined = LPP(2, supervised=True, affinity="binary").fit(X, y)
    rest = LPP(2, supervised=True, affinity="binary").fit(X[y != 7], y[y != 7])
    assert_allclose(joined.components_, rest.components_, atol=1e-9)
