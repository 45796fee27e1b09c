"""The hinge loss with a free bias: the machine of SVC."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from widemargin import MarginClassifier


def two_classes(n=300):
    return make_classification(n, 6, n_informative=4, flip_y=0.1, random_state=3)


def pair(C, gamma=0.1, **known):
    """Ours and SVC's with the same parameters."""
    ours = MarginClassifier(C, gamma=gamma, loss="hinge", tol=1e-4, n_jobs=1, **known)
    shape = known.get("decision_function_shape", "ovr")
    return ours, SVC(C=C, gamma=gamma, tol=1e-7, decision_function_shape=shape)


@pytest.mark.parametrize("C", [1e-3, 1.0, 100.0, 1e4])
def test_two_classes_have_the_decision_values_of_svc(C):
    X, y = two_classes()
    ours, peer = pair(C)
    ours.fit(X, y)
    peer.fit(X, y)
    assert ours.certificate_.gap <= 1e-4
    # With so large a C it is SVC whose rows on the margin are off, by 1e-4 and more.
    atol = 1e-3 if C < 1e3 else 2e-2
    assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=atol)
    # Its objective is that of SVC's machine, to the gap.
    f = peer.decision_function(X)
    norm2 = float(peer.dual_coef_[0] @ (f - peer.intercept_)[peer.support_])
    primal = 0.5 * norm2 + C * np.maximum(0.0, 1.0 - np.where(y == 1, 1, -1) * f).sum()
    assert ours.certificate_.primal == pytest.approx(primal, rel=1e-3)


@pytest.mark.parametrize("load", [load_iris, load_digits])
def test_pairs_of_classes_have_the_decision_values_of_svc(load):
    X, y = load(return_X_y=True)
    X, y = X[::3], y[::3]
    ours, peer = pair(10.0, gamma=0.01, decision_function_shape="ovo")
    ours.fit(X, y)
    peer.fit(X, y)
    assert ours.multi_class_ == "ovo"
    assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-3)
    assert ours.dual_coef_.shape == (len(ours.intercept_), len(ours.support_))
    assert_allclose(ours.intercept_, peer.intercept_, atol=1e-3)
    assert np.mean(ours.predict(X) == peer.predict(X)) > 0.99


def test_each_class_against_the_rest_is_a_machine_of_two_classes():
    X, y = load_iris(return_X_y=True)
    ours, peer = pair(3.0, multi_class="ovr")
    values = ours.fit(X, y).decision_function(X)
    for k in range(3):
        assert_allclose(values[:, k], peer.fit(X, y == k).decision_function(X), atol=1e-3)


def test_weights_and_sparse_rows():
    X, y = two_classes()
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    ours, peer = pair(2.0, class_weight={0: 0.5, 1: 2.0})
    peer.set_params(class_weight={0: 0.5, 1: 2.0})
    expected = peer.fit(X, y, weight).decision_function(X)
    assert_allclose(ours.fit(X, y, weight).decision_function(X), expected, atol=1e-3)
    found = ours.fit(sparse.csr_array(X), y, weight).decision_function(sparse.csr_array(X))
    assert_allclose(found, expected, atol=1e-3)


def test_the_number_of_threads_does_not_change_a_bit():
    X, y = load_digits(return_X_y=True)
    X, y = X[::4], y[::4]
    one, four = (
        MarginClassifier(10.0, loss="hinge", n_jobs=n).fit(X, y).decision_function(X)
        for n in (1, 4)
    )
    np.testing.assert_array_equal(one, four)


def test_cells_are_machines_of_svc_on_their_own_rows():
    X, y = two_classes(400)
    centers = np.stack([X[X[:, 0] < 0].mean(axis=0), X[X[:, 0] >= 0].mean(axis=0)])
    known = {"engine": "cells", "cells": centers, "overlap": 0.0, "blend": 0.0}
    ours, peer = pair(1.0, **known)
    values = ours.fit(X, y).decision_function(X)
    nearest = ((X[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    for cell in range(2):
        own = nearest == cell
        assert len(np.unique(y[own])) == 2
        expected = peer.fit(X[own], y[own]).decision_function(X[own])
        assert_allclose(values[own], expected, atol=2e-3)


def test_a_cell_of_one_class_is_sure_of_it():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(60, 2)), 50.0 + rng.normal(size=(60, 2))])
    y = np.repeat([0, 1], 60)
    ours = MarginClassifier(
        loss="hinge",
        engine="cells",
        cells=np.array([[0.0, 0.0], [50.0, 50.0]]),
        overlap=0.0,
    ).fit(X, y)
    assert ours.score(X, y) == 1.0
    assert_allclose(np.abs(ours.decision_function(X)), 1.0)


@pytest.mark.parametrize(
    "known", [{"engine": "span"}, {"max_vectors": 10}, {"vectors": np.zeros((2, 6))}]
)
def test_a_span_knows_the_squared_hinge_only(known):
    X, y = two_classes()
    with pytest.raises(ValueError, match=r"loss='hinge'.*loss='squared_hinge'"):
        MarginClassifier(loss="hinge", **known).fit(X, y)


def test_a_matrix_that_does_not_fit_is_named():
    X, y = two_classes()
    with pytest.raises(ValueError, match=r"300 rows.*memory='\d+MB'.*engine='cells'"):
        MarginClassifier(loss="hinge", engine="exact", memory="100KB").fit(X, y)


def test_time_that_is_over_leaves_a_machine_and_a_warning():
    X, y = load_digits(return_X_y=True)
    ours = MarginClassifier(10.0, loss="hinge", engine="exact", max_time=1e-6)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        ours.fit(X, y)
    assert np.isfinite(ours.decision_function(X)).all()
    assert np.isfinite(ours.certificate_.primal) and ours.certificate_.gap <= 1.0
