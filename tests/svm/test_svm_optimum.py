"""The machines of all engines against LinearSVC, the exact dual, and their own attributes."""

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, polynomial_kernel, rbf_kernel

from tests.reference.classifier_ways import BALLS, SVMS, every, machine
from tests.reference.data import breast_cancer, digits, moons, signs, three_or_eight
from tests.reference.kernels import PAIRWISE
from tests.reference.svm import (
    dense,
    exact_optimum,
    linear_svc_optimum,
    machine_objective,
    rbf,
    rbf_via_cholesky,
)
from widemargin import CoreVectorClassifier
from widemargin.kernels import KERNELS

DATA = {"breast cancer": breast_cancer, "digits 3 and 8": three_or_eight}
# All rows are vectors.
EXACT = ["core", "exact", "span of all rows"]
KERNEL = {"linear": linear_kernel, "rbf": rbf(0.05)}


@cache
def _problem(data, n_rows=150):
    X, y = DATA[data]()
    return X[:n_rows], signs(y[:n_rows])


@cache
def _optimum(data, kernel, C):
    X, sign = _problem(data)
    return linear_svc_optimum(rbf_via_cholesky(KERNEL[kernel](X, X)), sign, C)


# The optimum.


@every(EXACT)
@pytest.mark.parametrize("C", [0.01, 1, 100])
@pytest.mark.parametrize("data", DATA)
def test_the_linear_machine_reaches_the_objective_of_linear_svc(data, C, way):
    X, sign = _problem(data, None)
    found = machine(way, C=C, kernel="linear", tol=1e-8).fit(X, sign)
    reached = machine_objective(found, linear_kernel, X, sign)
    assert_allclose(reached, _linear_optimum(data, C), rtol=1e-6)


@cache
def _linear_optimum(data, C):
    return linear_svc_optimum(*_problem(data, None), C)


@every(EXACT)
@pytest.mark.parametrize("C", [0.01, 1, 100])
@pytest.mark.parametrize("data", DATA)
def test_the_rbf_machine_reaches_the_objective_of_linear_svc_on_a_factor(data, C, way):
    X, sign = _problem(data)
    found = machine(way, C=C, gamma=0.05, tol=1e-8).fit(X, sign)
    assert_allclose(
        machine_objective(found, rbf(0.05), X, sign), _optimum(data, "rbf", C), rtol=1e-6
    )


@pytest.mark.parametrize("kernel", KERNEL)
@pytest.mark.parametrize("C", [0.01, 1, 100])
@pytest.mark.parametrize("data", DATA)
def test_the_ball_vector_machine_is_within_its_certificate_of_linear_svc(data, C, kernel):
    X, sign = _problem(data)
    found = machine("ball", C=C, kernel=kernel, gamma=0.05, tol=1e-2).fit(X, sign)
    reached, best = machine_objective(found, KERNEL[kernel], X, sign), _optimum(data, kernel, C)
    assert found.certificate_.gap <= 1e-2
    assert best * (1 - 1e-9) <= reached
    assert reached * (1 - found.certificate_.gap) <= best * (1 + 1e-9)


@every(BALLS)
def test_the_certificate_brackets_the_optimum_at_every_tolerance(way):
    X, sign = _problem("breast cancer", 120)
    best = exact_optimum(rbf_kernel(X, gamma=0.05), sign, 5.0)
    for tol in (0.3, 1e-1, 1e-2):
        found = machine(way, C=5.0, gamma=0.05, tol=tol).fit(X, sign)
        certificate = found.certificate_
        assert certificate.gap <= tol
        assert certificate.dual <= best * (1 + 1e-6)
        assert best <= certificate.primal * (1 + 1e-6)
        reached = machine_objective(found, rbf(0.05), X, sign)
        assert_allclose(certificate.primal, reached, rtol=1e-4)


@every(BALLS)
def test_with_a_growing_core_the_certificate_brackets_the_optimum(way):
    X, y = moons(600)
    sign = signs(y)
    exact = machine("core", gamma=1.0, tol=1e-10).fit(X, y)
    best = machine_objective(exact, rbf(1.0), X, sign)  # itself compared with LinearSVC above
    found = machine(way, gamma=1.0, tol=1e-2, max_vectors=550).fit(X, y)
    certificate = found.certificate_
    assert certificate.gap <= 1e-2
    assert certificate.dual <= best * (1 + 1e-6)
    assert best <= certificate.primal * (1 + 1e-6)
    reached = machine_objective(found, rbf(1.0), X, sign)
    assert_allclose(certificate.primal, reached, rtol=1e-5)


def _against_rest(way):
    """What asks a machine for classes against the rest, where it would take pairs of them."""
    return {"multi_class": "ovr"} if way == "exact" else {}


@every(EXACT)
def test_several_classes_reach_the_optimum_of_each_against_the_rest(way):
    X, y = digits(4, 120)
    found = machine(way, C=2.0, gamma=0.02, tol=1e-9, **_against_rest(way)).fit(X, y)
    columns = found.decision_function(X)
    assert columns.shape == (120, 4)
    best, reached = _optima_of_four_digits(), np.zeros(4)
    for p, label in enumerate(found.classes_):
        reached[p] = machine_objective(found, rbf(0.02), X, signs(y, label), problem=p)
        binary = machine(way, C=2.0, gamma=0.02, tol=1e-9).fit(X, y == label)
        close = 1e-4 if way == "span of all rows" else 1e-6
        assert_allclose(columns[:, p], binary.decision_function(X), atol=close)
    assert_allclose(reached, best, rtol=1e-6)
    # The certificate is that of the sum.
    assert_allclose(found.certificate_.primal, reached.sum(), rtol=1e-9)
    assert_allclose(found.certificate_.dual, best.sum(), rtol=1e-7)
    assert found.certificate_.dual <= best.sum() * (1 + 1e-9)


@cache
def _optima_of_four_digits():
    X, y = digits(4, 120)
    K = rbf_kernel(X, gamma=0.02)
    return np.array([exact_optimum(K, signs(y, label), 2.0) for label in range(4)])


@every(EXACT)
def test_the_weighted_machine_solves_the_weighted_problem(way):
    X, sign = _problem("breast cancer")
    weight = np.random.default_rng(0).exponential(size=len(X))
    best = exact_optimum(rbf_kernel(X, gamma=0.05), sign, 2.0, weight)
    found = machine(way, C=2.0, gamma=0.05, tol=1e-8).fit(X, sign, sample_weight=weight)
    assert_allclose(machine_objective(found, rbf(0.05), X, sign, weight), best, rtol=1e-7)


def test_the_sampled_fit_of_many_rows_is_certified_over_all_of_them():
    C = 1.0
    X, y = moons(40_000, noise=0.1)
    sign = signs(y)
    found = machine("core", C=C, gamma=1.0, max_vectors=6_000)
    found.fit(X[:, ::-1], y)
    certificate = found.certificate_
    f = found.decision_function(X[:, ::-1])
    assert_array_equal(found.predict(X[:, ::-1]), (f > 0).astype(int))
    V, beta = found.support_vectors_, found.dual_coef_[0]
    norm2 = beta @ rbf_kernel(V, gamma=1.0) @ beta + found.intercept_[0] ** 2
    primal = 0.5 * norm2 + C * (np.maximum(0.0, 1.0 - sign * f) ** 2).sum()
    assert certificate.scope == "full"
    assert certificate.gap <= 1e-3
    assert_allclose(certificate.primal, primal, rtol=1e-4)
    # α on the vectors, zero elsewhere, is feasible; its value is the dual.
    alpha = np.abs(beta)
    dual = alpha.sum() - 0.5 * norm2 - 0.5 * (alpha**2).sum() / (2 * C)
    assert_allclose(certificate.dual, dual, rtol=1e-4)


def test_single_precision_rows_keep_the_certificate_of_the_ball_vector_machine():
    X, sign = _problem("breast cancer")
    X = X.astype(np.float32)
    found = machine("ball", gamma=0.05, tol=1e-2).fit(X, sign)
    X = X.astype(np.float64)
    best = exact_optimum(rbf_kernel(X, gamma=0.05), sign, 1.0)
    assert best * (1 - 1e-9) <= machine_objective(found, rbf(0.05), X, sign) <= best / (1 - 1e-2)


# Kernels.


@cache
def _values(kernel):
    X, _ = digits(3, 60)
    return np.array([[PAIRWISE[kernel](x, z, 0.05, 2, 1.0) for z in X] for x in X])


@cache
def _optimum_of_kernel(kernel, label):
    _, y = digits(3, 60)
    return exact_optimum(_values(kernel), signs(y, label), 1.0)


@cache
def _core_of_kernel(kernel):
    parameters = {"kernel": kernel, "gamma": 0.05, "degree": 2, "coef0": 1.0, "tol": 1e-9}
    return machine("core", **parameters).fit(*digits(3, 60))


@pytest.mark.parametrize(
    ("way", "kernel"),
    # The sigmoid is no Mercer kernel, and the span of its vectors no subspace.
    [
        (way, kernel)
        for way in [*EXACT, "ball"]
        for kernel in sorted(set(KERNELS) - {"precomputed"})
        if (way, kernel) != ("span of all rows", "sigmoid")
    ],
)
def test_every_named_kernel_fits_digits(way, kernel):
    X, y = digits(3, 60)
    tol = 1e-2 if way == "ball" else 1e-9
    parameters = {"kernel": kernel, "gamma": 0.05, "degree": 2, "coef0": 1.0, "tol": tol}
    found = machine(way, **parameters, **_against_rest(way))
    values = _values(kernel)
    if np.linalg.eigvalsh(values)[0] < -0.5 / (2 * found.C):
        with pytest.raises(ValueError, match="kernel"):
            found.fit(X, y)
        return
    found.fit(X, y)
    assert found.score(X, y) > 0.97
    for p, label in enumerate(found.classes_):
        best = _optimum_of_kernel(kernel, label)
        beta, b = np.zeros(60), found.intercept_[p]
        beta[found.support_] = found.dual_coef_[p]
        slack = np.maximum(0.0, 1.0 - signs(y, label) * (values @ beta + b))
        reached = 0.5 * beta @ values @ beta + 0.5 * b * b + slack @ slack
        assert best * (1 - 1e-6) <= reached <= best / (1 - tol) * (1 + 1e-7)
    if way != "ball":
        # As near to each other as their gaps.
        core = _core_of_kernel(kernel)
        assert_allclose(found.certificate_.primal, core.certificate_.primal, rtol=1e-7)
        assert_allclose(found.decision_function(X), core.decision_function(X), atol=1e-3)


@pytest.mark.parametrize(
    ("kernel", "function"),
    [
        ("linear", linear_kernel),
        ("laplacian", lambda A, B: laplacian_kernel(A, B, gamma=0.05)),
        ("poly", lambda A, B: polynomial_kernel(A, B, degree=2, gamma=0.05, coef0=1.0)),
    ],
)
def test_new_rows_meet_the_kernel_that_the_machine_was_fitted_with(kernel, function):
    X, y = digits(3, 200)
    found = CoreVectorClassifier(kernel=kernel, gamma=0.05, degree=2, coef0=1.0)
    found.fit(X[:150], y[:150])
    by_hand = function(X[150:], X[found.support_]) @ found.dual_coef_.T + found.intercept_
    assert_allclose(found.decision_function(X[150:]), by_hand, atol=1e-9)


@every(BALLS)
def test_a_precomputed_kernel_with_copies_and_weights_is_solved_to_the_gap(way):
    X, y = digits(3, 80)
    copies = np.concatenate([np.arange(80), np.arange(30), np.arange(20)])
    X, y = X[copies], y[copies]
    weight = np.random.default_rng(0).exponential(size=len(X))
    weight[::7] = 0.0
    K, kept = rbf_kernel(X, gamma=0.05), weight > 0
    given = machine(way, kernel="precomputed", tol=1e-3).fit(K, y, sample_weight=weight)
    assert_array_equal(given.support_vectors_, given.support_[:, None])
    given.support_vectors_ = X[given.support_]
    for p, label in enumerate(given.classes_):
        sign = signs(y, label)
        best = exact_optimum(K[np.ix_(kept, kept)], sign[kept], 1.0, weight[kept])
        reached = machine_objective(given, rbf(0.05), X, sign, weight, p)
        assert best * (1 - 1e-6) <= reached <= best * (1 + 1.1e-3)


# Attributes.


@every(SVMS)
@pytest.mark.parametrize(
    ("as_stored", "n_classes"),
    [(np.asarray, 2), (sparse.csr_array, 4)],
    ids=["dense-2", "sparse-4"],
)
def test_the_attributes_are_the_machine(way, n_classes, as_stored):
    X, y = digits(n_classes, 150)
    found = machine(way, C=2.0).fit(as_stored(X[:100]), y[:100])
    vectors = dense(found.support_vectors_)
    assert sparse.issparse(found.support_vectors_) == (as_stored is sparse.csr_array)
    if way == "span kmeans":
        assert found.support_ is None
    else:
        assert_array_equal(vectors, X[found.support_])
        # Exact machines of pairs have their vectors class after class.
        sizes = getattr(found, "n_support_", [len(vectors)])
        assert hasattr(found, "n_support_") == (way == "exact" and n_classes == 4)
        for part in np.split(found.support_, np.cumsum(sizes)[:-1]):
            assert (np.diff(part) > 0).all()
            assert len(sizes) == 1 or len(np.unique(y[part])) == 1
    pairs = getattr(found, "multi_class_", "ovr") == "ovo"
    n_problems = 1 if n_classes == 2 else 6 if pairs else n_classes
    assert found.dual_coef_.shape == (n_problems, len(vectors))
    assert found.intercept_.shape == (n_problems,)
    by_hand = rbf_kernel(X[100:], vectors, gamma=found.gamma_) @ found.dual_coef_.T
    if pairs:
        found.set_params(decision_function_shape="ovo")
    scores = found.decision_function(as_stored(X[100:])).reshape(50, -1)
    assert_allclose(scores, by_hand + found.intercept_, rtol=1e-9, atol=1e-9)
    if way in BALLS:
        for p in range(n_problems):
            sign = signs(y, found.classes_[1] if n_classes == 2 else found.classes_[p])
            assert (found.dual_coef_[p] * sign[found.support_] >= 0).all()
            assert_allclose(found.intercept_[p], found.dual_coef_[p].sum(), rtol=1e-9)


def test_the_dual_variables_are_the_slacks_at_the_optimum():
    X, y = digits(2, 150)
    found = CoreVectorClassifier(C=0.5, tol=1e-12, gamma=0.05).fit(X, y)
    slack = np.maximum(0.0, 1.0 - signs(y) * found.decision_function(X))
    alpha = np.zeros(len(X))
    alpha[found.support_] = np.abs(found.dual_coef_[0])
    assert_allclose(alpha, 2 * 0.5 * slack, atol=1e-6)
