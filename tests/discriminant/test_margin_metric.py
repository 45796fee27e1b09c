"""The metric as a transformer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_wine
from sklearn.neighbors import KNeighborsClassifier

from widemargin import MarginMetric


def noisy(n=300, d=8, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, X[:, 0] * X[:, 1] > 0


def test_euclidean_distances_of_transformed_rows_are_those_of_the_metric():
    X, y = noisy()
    found = MarginMetric(scale=None, C=10).fit(X, y)
    U, difference = found.transform(X[:2]), X[0] - X[1]
    assert np.sum((U[0] - U[1]) ** 2) == pytest.approx(difference @ found.metric_ @ difference)
    np.testing.assert_allclose(found.components_ @ found.components_.T, found.metric_)


def test_nearest_neighbours_gain_from_the_metric():
    X, y = noisy(900)
    found = MarginMetric(C=10).fit(X[:600], y[:600])
    score = {}
    for name, change in (("metric", found.transform), ("none", np.asarray)):
        near = KNeighborsClassifier(5).fit(change(X[:600]), y[:600])
        score[name] = near.score(change(X[600:]), y[600:])
    assert score["metric"] > score["none"] + 0.03


def test_columns_of_any_scale_have_the_metric_of_standard_ones():
    X, y = noisy()
    scale = 10.0 ** np.arange(8)
    exact = {"C": 10, "tol": 1e-8, "validation_fraction": 0.0, "n_rounds": 1}
    one, other = (MarginMetric(**exact).fit(each, y) for each in (X, X * scale + 5.0 * scale))
    np.testing.assert_allclose(one.metric_, other.metric_, rtol=1e-2, atol=1e-3)


def test_leading_eigenvectors_are_features_of_descending_variance_in_the_metric():
    X, y = load_wine(return_X_y=True)
    found = MarginMetric(3).fit(X, y)
    assert found.components_.shape == (3, 13)
    assert (np.diff(found.eigenvalues_) <= 1e-12).all()
    for row, value in zip(found.components_, found.eigenvalues_, strict=False):
        assert row @ row == pytest.approx(value)
        np.testing.assert_allclose(found.metric_ @ row, value * row, atol=1e-8)
    assert list(found.get_feature_names_out()) == [f"marginmetric{k}" for k in range(3)]


def test_importances_are_shares_and_sparse_rows_count_as_dense_ones():
    X, y = load_digits(n_class=3, return_X_y=True)
    dense = MarginMetric(kind="diagonal", n_rounds=1).fit(X, y)
    thin = MarginMetric(kind="diagonal", n_rounds=1).fit(sparse.csr_array(X), y)
    assert dense.feature_importances_.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(thin.feature_importances_, dense.feature_importances_)
    np.testing.assert_allclose(thin.transform(sparse.csr_array(X)), dense.transform(X), rtol=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"kernel": "precomputed"}, "gradient"),
        ({"kernel": lambda X, Z: X @ Z.T}, "gradient"),
        ({"scale": "robust"}, "scale"),
        ({"validation_fraction": 0.7}, "validation_fraction"),
        ({"n_components": 9}, "n_components"),
        ({"memory": 10, "kind": "full"}, "memory"),
    ],
)
def test_what_cannot_be_done_is_refused_with_the_remedy(given, said):
    X, y = noisy()
    rows = sparse.csr_array(X) if "memory" in given else X
    with pytest.raises(ValueError, match=said):
        MarginMetric(**given).fit(rows, y)


def test_time_that_is_too_short_gives_no_metric_and_says_so():
    X, y = noisy()
    with pytest.warns(UserWarning, match="rounds"):
        found = MarginMetric(max_time=1e-9).fit(X, y)
    np.testing.assert_array_equal(found.metric_, np.eye(8))


def test_leading_eigenvectors_are_learned_even_where_no_metric_is_better():
    X, y = load_digits(n_class=4, return_X_y=True)
    found = MarginMetric(2, C=10, scale=None).fit(X / 16.0, y)
    assert found.n_rounds_ >= 1
    assert np.ptp(np.diag(found.metric_)) > 0.1
    assert (np.abs(found.components_) > 1e-3).sum() > 20
