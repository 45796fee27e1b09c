"""MarginOneClass: the machine of OneClassSVM, its scale, offset and width, and its limits."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

from widemargin import MarginOneClass
from widemargin.base.unlabelled import ColumnScale, median_distance_gamma


def data(n=400, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)) * [1.0, 10.0, 0.1] + [5.0, 0.0, 0.0]


@pytest.mark.parametrize("nu", [0.02, 0.1, 0.5])
@pytest.mark.parametrize("engine", ["exact", "span"])
def test_decision_values_are_those_of_one_class_svm(nu, engine):
    X = StandardScaler().fit_transform(data())
    tol = 1e-7 if engine == "exact" else 1e-6
    ours = MarginOneClass(nu, gamma=0.5, scale="none", engine=engine, max_vectors=400, tol=tol)
    peer = OneClassSVM(nu=nu, gamma=0.5, tol=1e-8).fit(X)
    values, expected = ours.fit(X).decision_function(X), peer.decision_function(X)
    np.testing.assert_allclose(values, expected, atol=1e-3 * np.abs(expected).max())
    assert ours.engine_ == engine and ours.certificate_.gap <= tol


def test_a_precomputed_kernel_gives_the_same():
    X = StandardScaler().fit_transform(data())
    K = rbf_kernel(X, gamma=0.5)
    given = MarginOneClass(0.1, kernel="precomputed", tol=1e-7).fit(K)
    found = MarginOneClass(0.1, gamma=0.5, scale="none", tol=1e-7).fit(X)
    np.testing.assert_allclose(given.decision_function(K), found.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("engine", ["exact", "span"])
def test_weights_are_copies(engine):
    X = data(150)
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    options = {"engine": engine, "max_vectors": 500, "contamination": 0.1, "random_state": 0}
    weighted = MarginOneClass(**options).fit(X, sample_weight=weight)
    copied = MarginOneClass(**options).fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(weighted.score_samples(X), copied.score_samples(X), rtol=1e-9)
    assert weighted.offset_ == pytest.approx(copied.offset_, rel=1e-9)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5])
def test_contamination_is_the_share_of_training_rows_outside(share):
    X = data(1000)
    found = MarginOneClass(contamination=share).fit(X)
    assert (found.predict(X) == -1).mean() == pytest.approx(share, abs=1e-3)
    np.testing.assert_array_equal(
        found.predict(X), np.where(found.decision_function(X) >= 0, 1, -1)
    )


def test_rows_that_only_rounding_tells_apart_are_on_one_side():
    # Each row is there twice, once a few digits off: the scores differ by as much.
    half = np.random.default_rng(0).normal(size=(50, 3))
    X = np.vstack([half, half * (1.0 + 1e-13)])
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(X))
        # The share ends between the two rows of a pair.
        detector = MarginOneClass(scale="none", contamination=0.11, n_jobs=1).fit(X[order])
        found = detector.predict(X)
        assert (found[:50] == found[50:]).all()
        assert (found == -1).sum() == 10


def test_nu_bounds_the_share_of_outliers():
    X = data(1000)
    for nu in (0.05, 0.3):
        assert (MarginOneClass(nu, tol=1e-6).fit(X).predict(X) == -1).mean() <= nu + 1e-3


def test_the_units_of_columns_do_not_matter():
    X = data()
    for scale in ("robust", "standard"):
        one = MarginOneClass(scale=scale, tol=1e-6).fit(X)
        other = MarginOneClass(scale=scale, tol=1e-6).fit(X * [1e3, 1.0, 1e-3] + 7.0)
        values = other.score_samples(X * [1e3, 1.0, 1e-3] + 7.0)
        np.testing.assert_allclose(values, one.score_samples(X), rtol=1e-3)


def test_a_wild_value_does_not_squeeze_the_others():
    X = data()
    wild = np.vstack([X, [[1e9, 0.0, 0.0]]])
    found = MarginOneClass().fit(wild)
    assert np.argmin(found.score_samples(wild)) == len(X)
    kept = ColumnScale.of("robust", wild, np.ones(len(wild)))
    assert kept.spread[0] == pytest.approx(X[:, 0].std(), rel=0.2)


def test_constant_columns_and_equal_rows_are_no_harm():
    X = np.hstack([data(60), np.full((60, 1), 0.1)])
    assert np.isfinite(MarginOneClass().fit(X).score_samples(X)).all()
    same = np.ones((50, 2))
    found = MarginOneClass().fit(same)
    assert (found.predict(same) == 1).all()
    assert found.predict([[9.0, -9.0]])[0] == -1


def test_the_width_is_four_over_the_median_squared_distance():
    X = np.random.default_rng(0).normal(size=(500, 2))
    distance = ((X[:, None] - X[None]) ** 2).sum(-1)[np.triu_indices(500, 1)]
    expected = 4.0 / np.median(distance)
    assert median_distance_gamma(X, np.ones(500)) == pytest.approx(expected, rel=1e-3)


def test_threads_change_no_bit_and_pickles_keep_all():
    X = data(20_000)
    one, two = (
        MarginOneClass(max_vectors=50, random_state=0, n_jobs=jobs).fit(X) for jobs in (1, 2)
    )
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    again = pickle.loads(pickle.dumps(one))
    np.testing.assert_array_equal(again.score_samples(X[:50]), one.score_samples(X[:50]))


def test_sparse_rows_are_taken_as_they_are():
    X = np.where(data() > 0.5, data(), 0.0)
    rows = sparse.csr_array(X)
    ours = MarginOneClass(0.2, gamma=0.1, tol=1e-6).fit(rows)
    whole = MarginOneClass(0.2, gamma=0.1, tol=1e-6, scale="none").fit(X)
    np.testing.assert_allclose(ours.score_samples(rows), whole.score_samples(X), rtol=1e-4)
    with pytest.raises(ValueError, match="scale='robust'"):
        MarginOneClass(scale="robust").fit(rows)


def test_time_that_is_over_leaves_a_valid_machine_and_a_warning():
    X = data(5000)
    found = MarginOneClass(0.01, max_time=1e-9, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        found.fit(X)
    assert np.isfinite(found.score_samples(X)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nu": 0.0}, "nu=0.0"),
        ({"nu": 1.5}, "nu=1.5"),
        ({"contamination": 0.7}, "contamination=0.7"),
        ({"engine": "trees"}, "engine='trees'"),
        ({"engine": "cells", "max_vectors": 10}, "max_vectors=10"),
        ({"engine": "cells", "kernel": "precomputed"}, "engine='cells'"),
        ({"gamma": "wide"}, "gamma='wide'"),
    ],
)
def test_errors_name_the_argument_and_the_value(given, message):
    with pytest.raises(ValueError, match=message):
        MarginOneClass(**given).fit(data(20))
