"""`MarginClassifier` in the span of a few vectors, against LinearSVC on the features there."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.linalg import solve_triangular
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from tests.reference.classifier_ways import SinglePrecision
from tests.reference.data import breast_cancer, digits, moons, signs, three_or_eight
from tests.reference.svm import (
    exact_optimum,
    linear_svc_optimum,
    machine_objective,
    machine_objectives,
    rbf,
    rbf_via_cholesky,
)
from widemargin import CoreVectorClassifier, MarginClassifier
from widemargin.kernels import RBF
from widemargin.span import CoreVectors, RandomVectors

STRATEGIES = ["core", "random", "kmeans", "leverage"]
every_strategy = pytest.mark.parametrize("vectors", STRATEGIES)
both_precisions = pytest.mark.parametrize("kind", [MarginClassifier, SinglePrecision])


def _span(kind=MarginClassifier, **parameters):
    return kind(**{"engine": "span", "random_state": 0, "n_jobs": 1} | parameters)


def _span_optimum(kernel, X, vectors, sign, C):
    """Optimum over all rows inside the span of `vectors`: LinearSVC on the features there."""
    factor = np.linalg.cholesky(kernel(vectors, vectors))
    features = solve_triangular(factor, kernel(vectors, X), lower=True).T
    return linear_svc_optimum(features, sign, C)


@both_precisions
@every_strategy
def test_a_span_fit_is_the_best_machine_over_all_rows_inside_its_span(vectors, kind):
    X, y = breast_cancer()
    sign, kernel = signs(y), rbf(0.02)
    single = kind is SinglePrecision
    tol = 1e-4 if single else 1e-8
    machine = _span(kind, C=5.0, gamma=0.02, vectors=vectors, max_vectors=40, tol=tol).fit(X, y)
    best = _span_optimum(kernel, X, machine.support_vectors_, sign, 5.0)
    reached = machine_objective(machine, kernel, X, sign)
    assert best * (1 - 1e-8) <= reached <= best * (1 + (2e-4 if single else 1e-6))


@both_precisions
@pytest.mark.parametrize("tol", [0.3, 1e-3])
@every_strategy
def test_the_certificate_of_a_span_is_true(vectors, tol, kind):
    X, y = three_or_eight()
    sign, kernel = signs(y), rbf(0.05)
    machine = _span(kind, C=10.0, gamma=0.05, vectors=vectors, max_vectors=50, tol=tol).fit(X, y)
    certificate = machine.certificate_
    assert certificate.scope == "span"
    assert certificate.n_vectors == len(machine.support_vectors_) <= 50
    reached = machine_objective(machine, kernel, X, sign)
    best = _span_optimum(kernel, X, machine.support_vectors_, sign, 10.0)
    full = _rbf_optimum_of_all_rows(10.0)
    rounding = 1e-4 if kind is SinglePrecision else 1e-9
    assert_allclose(certificate.primal, reached, rtol=rounding)
    assert certificate.gap <= tol * (1 + 1e-9) + rounding
    assert certificate.dual <= best * (1 + rounding)
    assert reached * (1 - certificate.gap) <= best * (1 + 1e-9)
    assert certificate.full_dual <= full * (1 + 1e-9)
    assert full * (1 - 1e-9) <= reached


@cache
def _rbf_optimum_of_all_rows(C):
    X, y = three_or_eight()
    return linear_svc_optimum(rbf_via_cholesky(rbf_kernel(X, gamma=0.05)), signs(y), C)


def test_the_gap_of_several_classes_is_that_of_their_sum():
    X, y = digits(5, 400)
    machine = _span(C=3.0, gamma=0.05, max_vectors=60, tol=1e-3).fit(X, y)
    certificate = machine.certificate_
    reached = machine_objectives(machine, rbf(0.05), X, y)
    best = sum(
        _span_optimum(rbf(0.05), X, machine.support_vectors_, signs(y, label), 3.0)
        for label in machine.classes_
    )
    assert_allclose(certificate.primal, reached, rtol=1e-9)
    assert certificate.dual <= best * (1 + 1e-9)
    assert best * (1 - 1e-9) <= reached <= best / (1 - 1e-3)
    assert certificate.gap <= 1e-3
    assert_allclose(certificate.gap, 1 - certificate.dual / certificate.primal, atol=1e-12)


def test_more_vectors_never_raise_the_objective():
    X, y = three_or_eight()
    parameters = {"C": 10.0, "gamma": 0.05, "vectors": "random", "tol": 1e-8}
    rows, primal = set(), np.inf
    for m in (10, 30, 90, 200):
        machine = _span(max_vectors=m, **parameters).fit(X, y)
        assert rows <= set(machine.support_)  # one seed draws the same rows first
        assert machine.certificate_.primal <= primal * (1 + 1e-8)
        rows, primal = set(machine.support_), machine.certificate_.primal
    assert primal >= _rbf_optimum_of_all_rows(10.0) * (1 - 1e-8)


def test_all_rows_in_the_loss_beat_a_machine_fitted_to_the_vectors_rows_alone():
    X, y = three_or_eight()
    sign, kernel = signs(y), rbf(0.05)
    machine = _span(C=1.0, gamma=0.05, max_vectors=60, tol=1e-6).fit(X, y)
    rows = machine.support_
    alone = CoreVectorClassifier(C=1.0, gamma=0.05, tol=1e-6).fit(X[rows], y[rows])
    assert machine_objective(machine, kernel, X, sign) < machine_objective(alone, kernel, X, sign)


@every_strategy
def test_vectors_grow_from_few_to_many_within_the_budget(vectors):
    # More than one level of vectors, and more rows than the first look takes.
    X, y = moons(6000, noise=0.25)
    kernel, sign = rbf(5.0), signs(y)
    machine = _span(C=1.0, gamma=5.0, vectors=vectors, max_vectors=600, tol=1e-3).fit(X, y)
    certificate = machine.certificate_
    assert certificate.n_vectors == len(machine.support_vectors_) <= 600
    assert certificate.n_vectors > 100
    reached = machine_objective(machine, kernel, X, sign)
    assert_allclose(certificate.primal, reached, rtol=1e-5)
    assert certificate.dual <= reached
    assert certificate.gap <= 1e-3
    assert certificate.full_dual <= reached


def test_vectors_that_lie_in_the_span_of_the_others_are_left_out():
    # Two columns and a linear kernel: two vectors span everything.
    X, y = moons(300)
    machine = _span(kernel="linear", max_vectors=100, tol=1e-8).fit(X, y)
    assert machine.certificate_.n_vectors == 2
    best = linear_svc_optimum(X, signs(y), 1.0)
    assert_allclose(machine_objective(machine, linear_kernel, X, signs(y)), best, rtol=1e-6)


def test_more_copies_than_vectors_still_span_all_different_rows():
    X, y = moons(12, noise=0.4)
    copies = np.repeat(np.arange(12), 50)
    machine = _span(gamma=1.0, vectors="random", max_vectors=12, tol=1e-8).fit(X[copies], y[copies])
    assert machine.certificate_.n_vectors == 12
    best = exact_optimum(rbf_kernel(X, gamma=1.0), signs(y), 1.0, np.full(12, 50.0))
    assert_allclose(machine.certificate_.primal, best, rtol=1e-6)


@pytest.mark.parametrize("m", [1, 7])
@every_strategy
def test_a_very_small_budget_is_kept(vectors, m):
    X, y = digits(3, 200)
    machine = _span(vectors=vectors, max_vectors=m).fit(X, y)
    assert machine.dual_coef_.shape == (3, m)
    assert machine.certificate_.gap <= 1e-3
    assert machine.certificate_.primal < 3 * 200  # the zero function's


def test_vectors_of_the_users_own_are_the_machines():
    X, y = digits(3, 200)
    mine = np.random.default_rng(0).uniform(size=(15, 64))
    for given in (mine, mine.tolist(), sparse.csr_array(mine)):
        machine = _span(gamma=0.05, vectors=given, tol=1e-8).fit(X, y)
        assert machine.support_ is None
        assert_allclose(np.sort(machine.support_vectors_, axis=0), np.sort(mine, axis=0))
    for p, label in enumerate(machine.classes_):
        best = _span_optimum(rbf(0.05), X, mine, signs(y, label), 1.0)
        reached = machine_objective(machine, rbf(0.05), X, signs(y, label), problem=p)
        assert_allclose(reached, best, rtol=1e-6)


def test_a_strategy_object_equals_its_name():
    X, y = digits(3, 200)
    for name, strategy in (("core", CoreVectors()), ("random", RandomVectors())):
        named = _span(vectors=name, max_vectors=30).fit(X, y)
        given = _span(vectors=strategy, max_vectors=30).fit(X, y)
        assert_array_equal(given.decision_function(X), named.decision_function(X))


@pytest.mark.parametrize("m", [20, 150])
def test_a_precomputed_kernel_equals_the_named_one(m):
    X, y = digits(3, 200)
    K = rbf_kernel(X, gamma=0.05)
    given = _span(kernel="precomputed", max_vectors=m, tol=1e-8).fit(K[:150, :150], y[:150])
    rows = given.support_
    assert_array_equal(given.support_vectors_, rows[:, None])
    named = _span(gamma=0.05, vectors=X[rows], tol=1e-8).fit(X[:150], y[:150])
    assert_allclose(given.certificate_.primal, named.certificate_.primal, rtol=1e-7)
    assert_allclose(
        given.decision_function(K[150:, :150]), named.decision_function(X[150:]), atol=1e-3
    )
    stored = _span(kernel="precomputed", max_vectors=m, tol=1e-8)
    stored.fit(sparse.csr_array(K[:150, :150]), y[:150])
    assert_allclose(
        stored.decision_function(sparse.csr_array(K[150:, :150])),
        given.decision_function(K[150:, :150]),
        atol=1e-6,
    )


@every_strategy
def test_a_function_or_a_kernel_object_equals_the_name(vectors):
    X, y = digits(3, 150)
    parameters = {"vectors": vectors, "max_vectors": 30, "tol": 1e-8}
    named = _span(gamma=0.05, **parameters).fit(X, y).decision_function(X)
    function = _span(kernel=rbf_kernel, kernel_params={"gamma": 0.05}, **parameters).fit(X, y)
    assert_allclose(function.decision_function(X), named, atol=1e-4)
    thing = _span(kernel=RBF(gamma=0.05), **parameters).fit(X, y)
    assert_allclose(thing.decision_function(X), named, atol=1e-9)


@pytest.mark.parametrize(
    ("vectors", "kernel", "index"),
    [
        ("core", "rbf", np.int64),
        ("core", "linear", np.int32),
        ("random", "laplacian", np.int64),
        ("kmeans", "rbf", np.int32),
        ("leverage", "poly", np.int64),
    ],
)
def test_sparse_rows_equal_dense_ones(vectors, kernel, index):
    X, y = digits(3, 150)
    stored = sparse.csr_array(X)
    stored.indices, stored.indptr = stored.indices.astype(index), stored.indptr.astype(index)
    parameters = {"kernel": kernel, "gamma": 0.05, "vectors": vectors, "max_vectors": 30}
    dense = _span(tol=1e-8, **parameters).fit(X, y)
    machine = _span(tol=1e-8, **parameters).fit(stored, y)
    assert_allclose(machine.decision_function(stored), dense.decision_function(X), atol=1e-3)
    assert_allclose(machine.decision_function(X), machine.decision_function(stored), atol=1e-9)
    assert_allclose(machine.certificate_.primal, dense.certificate_.primal, rtol=1e-7)
    assert sparse.issparse(machine.support_vectors_)


@every_strategy
def test_single_precision_rows_give_nearly_the_values_of_double(vectors):
    X, y = digits(3, 150)  # sixteenths: the same numbers in both
    parameters = {"gamma": 0.05, "vectors": vectors, "max_vectors": 30, "tol": 1e-6}
    double = _span(**parameters).fit(X, y)
    single = _span(**parameters).fit(X.astype(np.float32), y)
    values = single.decision_function(X.astype(np.float32))
    assert values.dtype == np.float64
    assert_allclose(values, double.decision_function(X), atol=1e-2)
