"""Local scatter matrices against sums over pairs, and their shrinkage."""

import numpy as np
from numpy.testing import assert_allclose
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from tests.reference.data import wine
from tests.reference.locality import largest_angle, local_fisher_scatters, local_scaling
from widemargin import LocalFisherDA
from widemargin.rows import ArrayRows, distinct_rows
from widemargin.scatter import local_scatter
from widemargin.scatter.class_scatter import DenseColumns, scatter_of
from widemargin.scatter.local_scatter import local_scatters
from widemargin.scatter.neighbours import Neighbours


def _scatters(X, y, weight=None, n_neighbors=7):
    weight = np.ones(len(X)) if weight is None else weight
    distinct = distinct_rows(ArrayRows(X, 10**9, 1), y, weight)
    features, c = DenseColumns(X.shape[1]), y.max() + 1
    classes = scatter_of(distinct.rows, distinct.code, distinct.weight, c, features)
    found = local_scatters(distinct, features, classes, n_neighbors)
    return found, weight.sum() * classes.unit**2


def test_the_scatter_matrices_are_the_sums_over_pairs():
    X, y = wine(2)
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
    X, y = wine()
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
    X, y = wine()
    between, within = local_fisher_scatters(X, y, np.ones((len(X), len(X))))
    offset = X - np.array([X[y == c].mean(axis=0) for c in range(3)])[y]
    assert_allclose(within, offset.T @ offset, atol=1e-9)
    assert_allclose(between + within, len(X) * np.cov(X.T, bias=True), atol=1e-9)


# Shrinkage.


def test_shrinkage_moves_the_local_scatter_towards_a_multiple_of_the_identity():
    X, y = wine()
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
