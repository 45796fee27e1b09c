"""Odd rows, scales and weights: the optimum is found, or an error says what to do."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from tests.reference.classifier_ways import every, machine
from tests.reference.svm import exact_optimum, l2svm_objective_primal
from widemargin import BallVectorClassifier, CoreVectorClassifier, MarginClassifier

every_engine = every(["core", "ball", "exact", "span of all rows"])


def _rows(n=60, n_features=3):
    X = np.random.default_rng(0).normal(size=(n, n_features))
    return X, (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)


def _assert_near_optimum(found, K, y, C, tol):
    """The machine's objective is within `tol` of the exact optimum over all rows, copies too."""
    sign = np.where(y == found.classes_[1], 1.0, -1.0)
    best = exact_optimum(K, sign, C)
    beta = np.zeros(len(K))
    beta[found.support_] = found.dual_coef_[0]
    reached = l2svm_objective_primal(K, sign, C, None, beta, float(found.intercept_[0]))
    assert best * (1 - 1e-6) <= reached <= best / (1 - tol) * (1 + 1e-6)


@every_engine
def test_a_class_with_one_row_is_learnt(way):
    X = np.array([[0.0, 0.0], [0.1, 0.0], [3.0, 0.0], [3.0, 0.1], [0.0, 4.0]])
    y = np.array(["a", "a", "b", "b", "c"])
    found = machine(way, C=10.0, gamma=1.0, tol=1e-2).fit(X, y)
    assert_array_equal(found.predict(X), y)


@every_engine
def test_one_column_is_enough(way):
    x = np.linspace(-1, 1, 40)[:, None]
    y = (np.abs(x[:, 0]) > 0.5).astype(int)
    found = machine(way, C=10.0, gamma=5.0, tol=1e-3).fit(x, y)
    _assert_near_optimum(found, rbf_kernel(x, gamma=5.0), y, 10.0, 1e-3)


@every_engine
def test_two_rows_are_enough(way):
    X, y = np.array([[1.0], [-1.0]]), np.array([1, 0])
    found = machine(way, C=2.0, kernel="linear", tol=1e-3).fit(X, y)
    assert_array_equal(found.predict(X), y)
    _assert_near_optimum(found, X @ X.T, y, 2.0, 1e-3)
    # ½w² + 2·2 (1 − w)² is least at w = 8/9.
    assert_allclose(found.decision_function(X), [8 / 9, -8 / 9], atol=0.05)


@every_engine
def test_copies_with_the_same_label_count_as_often_as_they_occur(way):
    X, y = _rows(20)
    copies = np.repeat(np.arange(20), np.arange(20) % 4 + 1)
    found = machine(way, C=2.0, gamma=0.5, tol=1e-3).fit(X[copies], y[copies])
    _assert_near_optimum(found, rbf_kernel(X[copies], gamma=0.5), y[copies], 2.0, 1e-3)


@every_engine
def test_copies_with_contradicting_labels_are_weighed_against_each_other(way):
    X, y = _rows(30)
    X2, y2 = np.concatenate([X, X[:10], X[:10]]), np.concatenate([y, 1 - y[:10], y[:10]])
    found = machine(way, C=5.0, gamma=0.5, tol=1e-3).fit(X2, y2)
    _assert_near_optimum(found, rbf_kernel(X2, gamma=0.5), y2, 5.0, 1e-3)


@every_engine
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_rows_that_are_all_the_same_give_the_label_of_the_majority(way, kernel):
    X, y = np.ones((30, 2)), (np.arange(30) < 20).astype(int)
    found = machine(way, kernel=kernel, tol=1e-3).fit(X, y)
    K = np.full((30, 30), 1.0 if kernel == "rbf" else 2.0)
    _assert_near_optimum(found, K, y, 1.0, 1e-3)
    assert_array_equal(found.predict(X), 1)


@every_engine
def test_constant_columns_do_not_matter_to_distances(way):
    X, y = _rows()
    plain = machine(way, gamma=0.5, tol=1e-2).fit(X, y)
    wide = np.column_stack([np.zeros(len(X)), X, np.full(len(X), 1e3)])
    constant = machine(way, gamma=0.5, tol=1e-2).fit(wide, y)
    _assert_near_optimum(constant, rbf_kernel(X, gamma=0.5), y, 1.0, 1e-2)
    assert (constant.predict(wide) == plain.predict(X)).mean() > 0.95


SCALES = [1e150, 1e100, 1e-100, 1e-150]


@every_engine
@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("gamma", ["scale", "mean_distance"])
def test_any_scale_of_the_rows_gives_the_same_machine_or_an_error(way, scale, gamma):
    # The relative kernel widths make the machine independent of the scale.
    X, y = _rows()
    plain = machine(way, gamma=gamma, tol=1e-3).fit(X, y).decision_function(X)
    found = machine(way, gamma=gamma, tol=1e-3)
    try:
        found.fit(X * scale, y)
    except ValueError as error:
        assert "gamma" in str(error) or "kernel" in str(error)
        assert "cale X" in str(error)
    else:
        assert_allclose(found.decision_function(X * scale), plain, atol=0.05)


@every(["core", "ball", "exact", "span", "cells"])
def test_values_of_rows_far_apart_do_not_depend_on_those_beside_them(way):
    X, y = _rows(120, 5)
    X *= 1e7
    found = machine(way, gamma=1.0).fit(X, y)
    together = found.decision_function(X)
    for size in (1, 7):
        parts = [found.decision_function(X[i : i + size]) for i in range(0, len(X), size)]
        assert_allclose(np.concatenate(parts), together, atol=1e-9)
    certificate = found.certificate_
    assert certificate.dual <= certificate.primal * (1 + 1e-12)
    assert certificate.gap <= 1e-2


@every_engine
@pytest.mark.parametrize("scale", [1e150, 1e100])
def test_rows_too_large_for_a_linear_kernel_are_an_error_or_separated(way, scale):
    X, y = _rows()
    found = machine(way, kernel="linear", tol=1e-2, max_time=0.3)
    try:
        found.fit(X * scale, y)
    except ValueError as error:
        assert "kernel" in str(error)
    except ConvergenceWarning as warning:
        assert "gap" in str(warning)
    else:
        assert found.score(X * scale, y) == 1.0


@every_engine
@pytest.mark.parametrize("scale", [1e-100, 1e-150, 0.0])
def test_rows_too_small_for_a_linear_kernel_leave_the_bias_alone(way, scale):
    # K vanishes, and ½b² + C Σ (1 − y b)² is least at b = 2 C Σy / (1 + 2 C n).
    X, y = _rows()
    y[:20] = 1
    found = machine(way, kernel="linear", C=0.7, tol=1e-4).fit(X * scale, y)
    bias = 2 * 0.7 * (2 * y - 1).sum() / (1 + 2 * 0.7 * len(y))
    assert_allclose(found.decision_function(X * scale), bias, atol=0.01)


@every_engine
@pytest.mark.parametrize("C", [1e-6, 1e-3, 1e3, 1e6])
def test_any_C_from_a_millionth_to_a_million_is_solved_to_the_gap(way, C):
    X, y = _rows()
    found = machine(way, C=C, gamma=0.5, tol=1e-2).fit(X, y)
    assert found.certificate_.gap <= 1e-2
    _assert_near_optimum(found, rbf_kernel(X, gamma=0.5), y, C, 1e-2)


@every_engine
def test_more_classes_than_a_block_has_rows_of_each_work(way):
    n = 120
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(n, 5)) * 3, 2, axis=0) + rng.normal(size=(2 * n, 5)) * 0.01
    y = np.repeat(np.arange(n), 2)
    found = machine(way, C=10, gamma=0.5, tol=0.3).fit(X, y)
    assert_array_equal(found.classes_, np.arange(n))
    assert found.decision_function(X[:7]).shape == (7, n)
    assert found.score(X, y) > 0.98


@every_engine
@pytest.mark.parametrize("factor", [1e-300, 1e-100, 1e100])
def test_weights_of_any_size_are_scaled_C_or_an_error(way, factor):
    X, y = _rows()
    found = machine(way, C=1.0 / factor, gamma=0.5, tol=1e-2)
    found.fit(X, y, sample_weight=np.full(len(X), factor))
    _assert_near_optimum(found, rbf_kernel(X, gamma=0.5), y, 1.0, 1e-2)
    tiny = machine(way, gamma=0.5, tol=1e-2, max_time=0.3)
    try:
        tiny.fit(X, y, sample_weight=np.full(len(X), factor))
    except ValueError as error:
        assert "weight" in str(error) or " C " in str(error)
    except ConvergenceWarning as warning:
        assert "gap" in str(warning)
    else:
        assert np.isfinite(tiny.decision_function(X)).all()
        assert tiny.certificate_.gap <= 1e-2


@pytest.mark.parametrize(
    ("way", "limit"),
    [
        ("core", {"max_vectors": 3}),
        ("core", {"memory": 100}),
        ("ball", {"max_vectors": 3}),
        ("ball", {"memory": 100}),
        ("exact", {"max_vectors": 3}),
    ],
    ids=str,
)
def test_room_for_fewer_vectors_than_classes_is_an_error(way, limit):
    X, _ = _rows()
    with pytest.raises(ValueError, match=f"{next(iter(limit))}.*5 classes"):
        machine(way, **limit).fit(X, np.arange(len(X)) % 5)


# Parameters of their own.


@pytest.mark.parametrize(
    ("estimator", "parameters"),
    [
        (ball, bad)
        for ball in (CoreVectorClassifier(), BallVectorClassifier())
        for bad in (
            {"epsilon": 0.0},
            {"epsilon": "0.1"},
            {"stopping": "never"},
            {"stopping": None},
            {"max_vectors": 1},
        )
    ]
    + [
        (CoreVectorClassifier(), bad)
        for bad in ({"growth": "two"}, {"growth": None}, {"sample_size": 0}, {"sample_size": 5.5})
    ]
    + [
        (MarginClassifier(), bad)
        for bad in (
            {"engine": "fast"},
            {"engine": None},
            {"vectors": "good"},
            {"vectors": None},
            {"vectors": 7},
            {"vectors": np.ones(3)},
            {"max_vectors": 0},
            {"max_vectors": None},
        )
    ],
    ids=str,
)
def test_a_bad_parameter_is_named_in_the_error(estimator, parameters):
    with pytest.raises((ValueError, TypeError), match=next(iter(parameters))):
        clone(estimator).set_params(**parameters).fit(*_rows())
