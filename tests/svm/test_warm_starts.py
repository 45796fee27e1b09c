"""Warm starts end where cold fits do, sooner, whatever has changed in between."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from tests.reference.classifier_ways import MARGINS, every, machine
from tests.reference.data import digits, moons, signs, three_or_eight
from tests.reference.svm import exact_optimum, leeway, machine_objective, machine_objectives, rbf
from widemargin import CoreVectorClassifier, MarginClassifier

# Paths over C.


@every(["core"], MARGINS)
def test_a_warm_path_over_C_ends_where_cold_fits_do_in_no_more_steps(way):
    X, y = moons(2500, 0.3) if way == "exact" else digits(3, 150)
    parameters = {"gamma": 1.0 if way == "exact" else 0.05, "tol": 1e-8 if way == "core" else 1e-7}
    path = machine(way, warm_start=True, **parameters)
    warm_steps = cold_steps = 0
    for C in (0.1, 1, 10) if way == "core" else (0.3, 1, 3):
        path.set_params(C=C).fit(X, y)
        given = {}
        if way.startswith("span") and path.support_ is not None:
            # The same span, cold; it is the objective in it that must be the same.
            given = {"vectors": X[path.support_]}
        cold = machine(way, C=C, **parameters, **given).fit(X, y)
        assert_allclose(path.certificate_.primal, cold.certificate_.primal, rtol=1e-6)
        if way == "core":
            assert_allclose(path.decision_function(X), cold.decision_function(X), atol=1e-5)
        elif way != "exact":
            assert path.certificate_.n_vectors == cold.certificate_.n_vectors
        warm_steps += path.n_iter_
        cold_steps += cold.n_iter_
    if way == "exact":
        # A step is a compiled call, whatever is done in it, after one look at a set of rows; cold
        # ones begin at a low rank.
        assert warm_steps <= 12
    elif way in ("span kmeans", "core"):  # centres are drawn anew, and a core is solved at once
        assert warm_steps <= cold_steps
    else:
        assert warm_steps < cold_steps


def test_a_warm_path_of_growing_cores_ends_where_cold_fits_do():
    X, y = moons(1200)
    path = CoreVectorClassifier(gamma=1.0, tol=1e-11, warm_start=True, max_vectors=1100)
    for C in (0.1, 1, 10):
        path.set_params(C=C).fit(X, y)
        cold = CoreVectorClassifier(C=C, gamma=1.0, tol=1e-11).fit(X, y)
        assert_allclose(path.decision_function(X), cold.decision_function(X), atol=1e-5)


def test_a_warm_path_of_ball_vector_machines_keeps_its_certificate():
    X, y = three_or_eight()
    X, sign = X[:150], signs(y[:150])
    K = rbf_kernel(X, gamma=0.05)
    path = machine("ball", gamma=0.05, tol=1e-2, warm_start=True)
    for C in (0.1, 1, 10):
        path.set_params(C=C).fit(X, sign)
        best = exact_optimum(K, sign, C)
        reached = machine_objective(path, rbf(0.05), X, sign)
        assert best * (1 - 1e-9) <= reached <= best / (1 - 1e-2) * (1 + 1e-6)


@pytest.mark.parametrize("growth", ["batch", "one"])
@pytest.mark.parametrize("max_vectors", [None, 900])
def test_a_warm_start_needs_no_more_steps_or_kernel_values(growth, max_vectors):
    X, y = moons(1000, noise=0.1)
    parameters = {"gamma": 1.0, "max_vectors": max_vectors, "growth": growth, "tol": 1e-2}
    found = CoreVectorClassifier(C=1.0, random_state=0, warm_start=True, **parameters)
    cold = found.fit(X, y).certificate_
    warm = found.set_params(C=1.01).fit(X, y).certificate_
    assert warm.gap <= 1e-2
    assert warm.n_iter <= cold.n_iter
    assert warm.n_kernel <= cold.n_kernel
    if growth == "one":
        assert warm.n_iter < cold.n_iter / 2


def test_a_warm_start_at_the_solution_is_done_at_once():
    X, y = digits(3, 300)
    found = machine("span", C=2.0, gamma=0.05, max_vectors=60, warm_start=True).fit(X, y)
    first = found.certificate_
    again = found.fit(X, y).certificate_
    assert again.n_iter < first.n_iter / 2
    assert again.primal <= first.primal * (1 + 1e-9)


# Other data.


def _other_rows(X, y):
    return X[::-1] * 0.5 + 0.1, y[::-1], None


def _fewer_rows(X, y):
    return X[:90], y[:90], None


def _more_rows(X, y):
    return np.concatenate([X, X[:, ::-1]]), np.concatenate([y, y]), None


def _other_labels(X, y):
    return X, np.roll(y, 1), None


def _fewer_columns(X, y):
    return X[:, 20:40], y, None


def _other_classes(X, y):
    return X, y + 1, None


def _one_class_more(X, y):
    return X, np.where(np.arange(len(y)) % 7 == 0, 9, y), None


def _other_weights(X, y):
    return X, y, np.linspace(0.0, 3.0, len(y))


def _sparse(X, y):
    return sparse.csr_array(X), y, None


CHANGES = [
    _other_rows, _fewer_rows, _more_rows, _other_labels, _fewer_columns, _other_classes,
    _one_class_more, _other_weights, _sparse,
]  # fmt: skip


@every(["core", "ball", "exact", "span of all rows"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_warm_start_on_changed_data_gives_the_cold_answer(way, change):
    X, y = digits(3, 120)
    tol = 1e-2 if way == "ball" else 1e-9
    X2, y2, weight = change(X, y)
    warm = machine(way, warm_start=True, gamma=0.05, tol=tol).fit(X, y)
    warm.fit(X2, y2, sample_weight=weight)
    cold = machine(way, gamma=0.05, tol=tol).fit(X2, y2, sample_weight=weight)
    assert warm.certificate_.gap <= tol
    close = {"core": 1e-5, "ball": leeway(warm, cold)}.get(way, 1e-3)
    assert_allclose(warm.decision_function(X2), cold.decision_function(X2), atol=close)
    if way != "ball":
        assert_allclose(warm.certificate_.primal, cold.certificate_.primal, rtol=1e-7)


# Other parameters.


@pytest.mark.parametrize(
    "change",
    [{"max_vectors": 40}, {"kernel": "linear"}, {"gamma": 1.0}, {"memory": "10kB"}],
    ids=str,
)
def test_a_warm_start_with_changed_parameters_gives_the_cold_answer(change):
    X, y = digits(3, 150)
    parameters = {"gamma": 0.05, "tol": 1e-11}
    warm = CoreVectorClassifier(warm_start=True, **parameters).fit(X, y)
    warm.set_params(**change)
    cold = CoreVectorClassifier(**parameters | change)
    if {"max_vectors", "memory"} & set(change):
        for found in (warm, cold):
            with pytest.warns(ConvergenceWarning, match=next(iter(change))):
                found.fit(X, y)
            assert len(found.support_) <= 40
            assert found.score(X, y) > 0.9
    else:
        difference = warm.fit(X, y).decision_function(X) - cold.fit(X, y).decision_function(X)
        assert_allclose(difference, 0.0, atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        {"max_vectors": 20},
        {"max_vectors": 120},
        {"vectors": "random"},
        {"vectors": "kmeans"},
        {"engine": "exact", "max_vectors": "auto"},
        {"gamma": 0.5},
        {"kernel": "linear"},
        {"memory": "1MB"},
    ],
    ids=str,
)
def test_a_warm_start_with_changed_parameters_keeps_its_promises(change):
    X, y = digits(3, 300)
    found = machine("span", C=2.0, gamma=0.05, max_vectors=60, warm_start=True).fit(X, y)
    found.set_params(**change).fit(X, y)
    kernel = linear_kernel if found.kernel == "linear" else rbf(found.gamma_)
    assert found.certificate_.gap <= 1e-3
    assert found.engine_ == change.get("engine", "span")
    if found.engine_ == "span":
        assert found.certificate_.n_vectors <= change.get("max_vectors", 60)
        if "max_vectors" in change:
            assert found.certificate_.n_vectors == change["max_vectors"]
    assert_allclose(found.certificate_.primal, machine_objectives(found, kernel, X, y), rtol=1e-6)
    assert found.score(X, y) > 0.97


def test_warm_starts_begin_anew_in_cells():
    X, y = moons(300, noise=0.25)
    cells = {"engine": "cells", "cells": 40, "gamma": 2.0, "random_state": 0, "tol": 1e-8}
    found = MarginClassifier(warm_start=True, **cells).fit(X, y)
    found.set_params(C=5.0).fit(X, y)
    cold = MarginClassifier(C=5.0, **cells).fit(X, y)
    assert_array_equal(found.decision_function(X), cold.decision_function(X))
    # And after cells, where rows are vectors of several.
    for engine in ("exact", "span"):
        warm = MarginClassifier(warm_start=True, **cells).fit(X, y).set_params(engine=engine)
        cold = MarginClassifier(**cells | {"engine": engine}).fit(X, y)
        assert_allclose(warm.fit(X, y).decision_function(X), cold.decision_function(X), atol=1e-3)


def test_parameters_can_be_set_after_a_fit():
    X, y = digits(3, 150)
    found = MarginClassifier(random_state=0).fit(X, y)
    found.set_params(engine="span", max_vectors=20, C=3.0).fit(X, y)
    fresh = MarginClassifier(3.0, engine="span", max_vectors=20, random_state=0).fit(X, y)
    assert_array_equal(found.decision_function(X), fresh.decision_function(X))
