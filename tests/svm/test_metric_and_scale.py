"""MarginClassifier on rows that it scales, and in a metric that is learned or given."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_wine

from widemargin import MarginClassifier, ReducedSetClassifier


def noisy(n=900, d=12, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("engine", ["exact", "span", "cells"])
@pytest.mark.parametrize("metric", ["diagonal", "full"])
def test_a_learned_metric_answers_more_rows_right(metric, engine):
    X, y = noisy()
    score = [
        MarginClassifier(10, engine=engine, metric=each)
        .fit(X[:600], y[:600])
        .score(X[600:], y[600:])
        for each in (None, metric)
    ]
    assert score[1] > score[0] + 0.03


def test_a_given_metric_is_the_machine_of_rows_times_its_root():
    X, y = noisy(200, 4)
    A = np.random.default_rng(1).standard_normal((4, 4))
    given = MarginClassifier(metric=A @ A.T, gamma=0.3).fit(X, y)
    values, vectors = np.linalg.eigh(A @ A.T)
    root = (vectors * np.sqrt(values)) @ vectors.T
    same = MarginClassifier(gamma=0.3).fit(X @ root, y)
    np.testing.assert_allclose(
        given.decision_function(X), same.decision_function(X @ root), atol=1e-5
    )
    diagonal = MarginClassifier(metric=[1.0, 4.0, 0.0, 1.0], gamma=0.3).fit(X, y)
    assert diagonal.metric_root_.tolist() == [1.0, 2.0, 0.0, 1.0]


def test_a_learned_metric_given_again_is_the_same_machine():
    X, y = noisy(300)
    learned = MarginClassifier(10, metric="full").fit(X, y)
    again = MarginClassifier(10, metric=learned.metric_, gamma=learned.gamma_).fit(X, y)
    np.testing.assert_allclose(learned.decision_function(X), again.decision_function(X), atol=1e-2)


def test_scaled_columns_make_raw_columns_as_good_as_standard_ones():
    X, y = load_wine(return_X_y=True)
    score = {
        scale: MarginClassifier(scale=scale).fit(X[::2], y[::2]).score(X[1::2], y[1::2])
        for scale in (None, "auto")
    }
    assert score["auto"] > 0.95 > score[None]


def test_sparse_rows_and_kernel_matrices_are_taken_as_they_are():
    X, y = noisy(150, 5)
    thin = MarginClassifier(scale="auto").fit(sparse.csr_array(X), y)
    plain = MarginClassifier().fit(X, y)
    assert not hasattr(thin, "column_centers_")
    np.testing.assert_allclose(thin.decision_function(X), plain.decision_function(X), atol=1e-4)
    K = X @ X.T
    MarginClassifier(kernel="precomputed", scale="auto").fit(K, y)


def test_the_map_goes_where_the_machine_goes_and_is_forgotten_by_the_next_fit():
    X, y = noisy(150, 5)
    machine = MarginClassifier(metric="full", scale="auto").fit(X, y)
    copy = pickle.loads(pickle.dumps(machine))
    assert np.array_equal(copy.decision_function(X), machine.decision_function(X))
    assert np.array_equal(
        machine.decision_function(sparse.csr_array(X)), machine.decision_function(X)
    )
    machine.set_params(metric=None, scale=None).fit(X, y)
    assert not hasattr(machine, "metric_")
    assert not hasattr(machine, "column_centers_")


def test_a_file_is_mapped_as_it_is_read(tmp_path):
    X, y = noisy(400, 6)
    np.save(tmp_path / "rows.npy", X)
    stored = np.load(tmp_path / "rows.npy", mmap_mode="r")
    parameters = {"scale": "auto", "gamma": 0.2, "tol": 1e-7, "random_state": 0}
    here = MarginClassifier(**parameters).fit(X, y)
    there = MarginClassifier(**parameters, memory=50_000).fit(stored, y)
    # The objective is strongly convex, so each machine is within sqrt(2 gap) of the best one in the
    # norm of its space, and a decision value within sqrt(k(x, x) + 1) times that: two machines.
    apart = 2 * np.sqrt(2) * np.sqrt(2 * 1e-7 * here.certificate_.primal)
    np.testing.assert_allclose(
        here.decision_function(X), there.decision_function(stored), atol=apart
    )


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"metric": "half"}, ValueError, "metric='half'"),
        ({"metric": 3}, TypeError, "metric=3"),
        ({"metric": np.eye(2)}, ValueError, "shape"),
        ({"scale": "robust"}, ValueError, "scale='robust'"),
        ({"metric": "full", "kernel": "precomputed"}, ValueError, "gradient"),
        ({"scale": "auto", "vectors": np.zeros((2, 5)), "engine": "span"}, ValueError, "vectors"),
        ({"scale": "auto", "cells": np.zeros((2, 5)), "engine": "cells"}, ValueError, "cells"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(given, error, said):
    X, y = noisy(60, 5)
    with pytest.raises(error, match=said):
        MarginClassifier(**given).fit(X, y)


def test_dask_collections_are_refused_with_the_remedy():
    array = pytest.importorskip("dask.array")
    X, y = noisy(60, 5)
    with pytest.raises(TypeError, match="scale='auto'"):
        MarginClassifier(scale="auto").fit(array.from_array(X), array.from_array(y))


def test_vectors_of_a_mapped_machine_are_not_reduced():
    X, y = noisy(60, 5)
    with pytest.raises(ValueError, match="scale or metric"):
        ReducedSetClassifier(MarginClassifier(scale="auto"), 3).fit(X, y)


@pytest.mark.parametrize("scale", ["auto", None])
@pytest.mark.parametrize("metric", ["full", "diagonal", None])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_odd_rows_give_a_machine_or_an_error(kernel, metric, scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    X[:, 1] = 7.0
    X[:, 2] *= 1e30
    X[:, 3] *= 1e-30
    y = np.arange(40) % 2
    machine = MarginClassifier(kernel=kernel, metric=metric, scale=scale).fit(X, y)
    assert np.isfinite(machine.decision_function(X)).all()
    same = MarginClassifier(kernel=kernel, metric=metric, scale=scale).fit(X * 0.0, y)
    assert np.isfinite(same.decision_function(X * 0.0)).all()
