"""Reduced sets of trained machines, and machines on random rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize, sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from widemargin import CoreVectorClassifier, MarginClassifier, MarginClassifierCV
from widemargin.kernels import RBF, make_kernel
from widemargin.sparse.pre_image import Distance, Expansion, pre_image, reduced
from widemargin.sparse.reduced_set import ReducedSetClassifier
from widemargin.sparse.reduced_svm import ReducedSVMClassifier

SMALL = {"n_vectors": 2, "n_restarts": 2, "max_iter": 5}
ESTIMATORS = [
    ReducedSetClassifier(**SMALL),
    ReducedSetClassifier(method="mrs", refine=False, **SMALL),
    ReducedSetClassifier(MarginClassifier(), method="mrs", **SMALL),
    ReducedSVMClassifier(),
    ReducedSVMClassifier(5, method="mrsvm", share_vectors=True),
]


@parametrize_with_checks(ESTIMATORS)
def test_the_estimator_meets_scikit_learns_contract(estimator, check):
    check(estimator)


def moons(n=120, seed=0):
    return make_moons(n, noise=0.25, random_state=seed)


def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), np.array(["c", "a", "b"])[y]


def machine_of(gamma=1.0, n=120, kernel=None):
    """The expansion of an SVM of two moons."""
    X, y = moons(n)
    kernel = RBF(gamma) if kernel is None else kernel
    svm = SVC(kernel="precomputed").fit(kernel.block(X, X), y)
    return Expansion(kernel, X[svm.support_], svm.dual_coef_[0])


def distance(machine, vectors, coef):
    """(4) relative to ‖w‖², written out."""
    k, X, a = machine.kernel.block, machine.vectors, machine.coef
    square = a @ k(X, X) @ a
    cross = a @ k(X, vectors) @ coef
    return (square - 2 * cross + coef @ k(vectors, vectors) @ coef) / square


def hinge_objective(kernel, X, sign, C, vectors, coef, intercept):
    """The SVM's objective of a machine, per problem."""
    scores = kernel.block(X, vectors) @ coef + intercept
    loss = np.maximum(0, 1 - sign * scores)
    return 0.5 * coef @ kernel.block(vectors, vectors) @ coef + C * loss.sum()


# One vector.


def test_a_pre_image_is_a_fixed_point_where_the_gradient_vanishes():
    machine = machine_of()
    z, _ = pre_image(machine, machine.vectors[:5], max_iter=500)
    terms = machine.terms(z[None])[:, 0]
    assert np.allclose(terms @ machine.vectors / terms.sum(), z, rtol=0, atol=1e-5)
    gradient = machine.kernel.gradient(machine.vectors, z[None], machine.coef[:, None])
    assert np.abs(gradient).max() <= 1e-5 * np.abs(terms).sum()


def test_the_best_of_many_starts_is_the_best_of_a_grid():
    machine = machine_of()
    z, _ = pre_image(machine, machine.vectors)
    grid = np.stack(np.meshgrid(*[np.linspace(-2, 3, 81)] * 2), axis=-1).reshape(-1, 2)
    assert machine.onto(z[None])[0] ** 2 >= (machine.onto(grid) ** 2).max()


def test_a_start_where_the_denominator_vanishes_is_survived():
    machine = Expansion(RBF(1.0), np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([1.0, -1.0]))
    far = np.array([[0.0, 0.0], [0.0, 1e3]])
    z, _ = pre_image(machine, far)
    assert np.isfinite(z).all()
    z, _ = pre_image(machine, np.concatenate([far, [[0.9, 0.1]]]))
    assert abs(machine.onto(z[None])[0]) >= 0.98


@pytest.mark.parametrize(
    "kernel",
    [
        make_kernel("poly", gamma=0.5, degree=3, coef0=1.0),
        make_kernel("cosine_power", degree=3),
        make_kernel("inverse_squared_distance"),
    ],
    ids=lambda kernel: kernel.name,
)
def test_other_kernels_climb_by_their_gradient(kernel):
    machine = machine_of(kernel=kernel)
    z, _ = pre_image(machine, machine.vectors[:3])

    def minus(x):
        return -(machine.onto(x[None])[0] ** 2) / kernel.diagonal(x[None])[0]

    assert minus(z) <= min(minus(x) for x in machine.vectors[:3])
    slope = optimize.approx_fprime(z, minus, 1e-6)
    assert np.abs(slope).max() <= 1e-3 * abs(minus(z))


# A few vectors.


@pytest.mark.parametrize("refine", [False, True])
def test_the_distance_never_rises_and_is_the_distance(refine):
    machine = machine_of()
    result = reduced(machine, 8, np.random.default_rng(0), refine=refine)
    assert result.vectors.shape == (8, 2)
    assert len(result.distance) == 8 + refine
    assert (np.diff(result.distance) <= 0).all()
    expected = distance(machine, result.vectors, result.coef)
    assert result.distance[-1] == pytest.approx(expected, rel=1e-4, abs=1e-9)


def test_coefficients_are_the_least_squares_solution_in_feature_space():
    machine = machine_of()
    result = reduced(machine, 6, np.random.default_rng(0), refine=False)
    both = np.concatenate([machine.vectors, result.vectors])
    values, vectors = np.linalg.eigh(machine.kernel.block(both, both))
    images = np.sqrt(np.maximum(values, 0)) * vectors
    w = machine.coef @ images[: len(machine.coef)]
    beta, *_ = np.linalg.lstsq(images[len(machine.coef) :].T, w)
    assert np.allclose(result.coef, beta, rtol=1e-6, atol=1e-8)


def test_moving_all_vectors_brings_them_nearer():
    machine = machine_of()
    greedy = reduced(machine, 8, np.random.default_rng(0), refine=False)
    moved = reduced(machine, 8, np.random.default_rng(0))
    assert moved.distance[-1] < 0.1 * greedy.distance[-1]


def test_the_gradient_of_the_distance_equals_differences():
    machine = machine_of()
    k, X, a = machine.kernel.block, machine.vectors, machine.coef
    function = Distance(machine, float(a @ k(X, X) @ a))
    Z = np.random.default_rng(0).normal(size=(3, 2))
    slope = optimize.approx_fprime(Z.ravel(), lambda z: function(z.reshape(3, 2)).value, 1e-6)
    assert np.allclose(function(Z).gradient.ravel(), slope, rtol=1e-4, atol=1e-4)


def test_enough_vectors_reproduce_the_machine():
    machine = machine_of(gamma=0.2)
    assert reduced(machine, 30, np.random.default_rng(0)).distance[-1] < 1e-6
    as_it_is = reduced(machine, len(machine.coef), np.random.default_rng(0))
    assert as_it_is.vectors is machine.vectors
    assert as_it_is.distance.tolist() == [0.0]


def test_a_linear_machine_needs_one_vector():
    X, y = iris()
    svm = SVC(kernel="linear").fit(X[50:], y[50:])
    small = ReducedSetClassifier(svm, n_vectors=5, random_state=0).fit(X[50:])
    assert small.n_vectors_ == 1
    assert np.allclose(small.decision_function(X), svm.decision_function(X), rtol=1e-6, atol=1e-6)


def test_a_machine_of_zero_and_one_without_length_are_told_apart():
    X = np.random.default_rng(0).normal(size=(6, 2))
    zero = Expansion(RBF(1.0), X[[0, 0, 1]], np.array([1.0, -1.0, 0.0]))
    assert reduced(zero, 2, np.random.default_rng(0)).coef.tolist() == [0.0]
    negative = Expansion(make_kernel("sigmoid", gamma=1.0, coef0=-5.0), X, np.ones(6))
    with pytest.raises(ValueError, match="squared length"):
        reduced(negative, 2, np.random.default_rng(0))


# Trained machines as input.


@pytest.mark.parametrize("data", [moons, iris], ids=["binary", "three classes"])
@pytest.mark.parametrize(
    "svm",
    [
        SVC(),
        SVC(kernel="poly", coef0=1.0, degree=2),
        SVC(break_ties=True),
        NuSVC(nu=0.2),
        CoreVectorClassifier(),
        MarginClassifier(),
        MarginClassifier(engine="span", max_vectors=20, random_state=0),
        MarginClassifierCV(Cs=[1.0, 10.0], gammas=[0.5], cv=2),
    ],
    ids=str,
)
def test_with_all_support_vectors_the_decision_is_the_estimators(svm, data):
    X, y = data()
    svm = clone(svm).fit(X, y)
    same = ReducedSetClassifier(svm, n_vectors=1.0).fit(X)
    assert np.array_equal(same.predict(X), svm.predict(X))
    new = X + 0.3 * np.random.default_rng(0).normal(size=X.shape)
    assert np.array_equal(same.predict(new), svm.predict(new))
    assert np.allclose(same.decision_function(X), svm.decision_function(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("svm", [SVC(C=3.0), MarginClassifier(C=3.0)], ids=["SVC", "ours"])
@pytest.mark.parametrize("method", ["rs", "mrs"])
def test_a_few_vectors_agree_with_three_classes(svm, method):
    X, y = iris()
    svm = clone(svm).fit(X, y)
    small = ReducedSetClassifier(svm, n_vectors=5, method=method, random_state=0).fit(X, y)
    assert small.expansion_vectors_.shape == (15, 4)
    assert small.coef_.shape == (3, 15)
    assert np.count_nonzero(small.coef_) == 15
    assert np.mean(small.predict(X) == svm.predict(X)) >= 0.97


@pytest.mark.parametrize("svm", [SVC(gamma=1.0), MarginClassifier(gamma=1.0)], ids=["SVC", "ours"])
def test_an_estimator_that_is_not_fitted_is_fitted_and_left_alone(svm):
    X, y = moons()
    first = ReducedSetClassifier(svm, n_vectors=4, random_state=0).fit(X, y)
    assert not hasattr(svm, "classes_")
    second = ReducedSetClassifier(clone(svm).fit(X, y), n_vectors=4, random_state=0).fit(X)
    assert np.array_equal(first.decision_function(X), second.decision_function(X))


def test_a_frozen_estimator_stays_fitted_in_a_copy():
    X, y = moons()
    svm = SVC().fit(X[:80], y[:80])
    small = clone(ReducedSetClassifier(FrozenEstimator(svm), n_vectors=1.0)).fit(X)
    assert np.allclose(small.decision_function(X), svm.decision_function(X))


def test_a_share_is_of_each_machines_support_vectors():
    X, y = moons()
    svm = SVC().fit(X, y)
    small = ReducedSetClassifier(svm, n_vectors=0.1, random_state=0).fit(X)
    assert small.n_vectors_ == round(0.1 * len(svm.support_))


def test_sparse_rows_give_the_same():
    X, y = moons()
    dense = ReducedSetClassifier(SVC(gamma=1.0), n_vectors=4, method="mrs", random_state=0)
    rare = clone(dense).fit(sparse.csr_array(X), y)
    dense.fit(X, y)
    X = X[:20]
    assert np.allclose(
        dense.decision_function(X), rare.decision_function(sparse.csr_array(X)), atol=1e-3
    )


# The machine fitted again in the span.


def test_the_modified_method_has_the_same_vectors_and_no_higher_objective():
    X, y = moons()
    svm = SVC(C=2.0, gamma=1.0).fit(X, y)
    sign, values = np.where(y == 1, 1.0, -1.0), {}
    for method in ("rs", "mrs"):
        small = ReducedSetClassifier(svm, 4, method=method, refine=False, random_state=0).fit(X, y)
        args = small.expansion_vectors_, small.coef_[0], small.intercept_[0]
        values[method] = hinge_objective(RBF(1.0), X, sign, 2.0, *args), args[0]
    assert np.array_equal(values["rs"][1], values["mrs"][1])
    assert values["mrs"][0] <= values["rs"][0] * (1 + 1e-7)


@pytest.mark.parametrize("data", [moons, iris], ids=["binary", "three classes"])
@pytest.mark.parametrize(
    "svm",
    [
        SVC(class_weight="balanced", tol=1e-9),
        MarginClassifier(class_weight="balanced", tol=1e-9, engine="exact"),
    ],
    ids=["SVC", "ours"],
)
def test_in_the_span_of_the_support_vectors_the_optimum_is_the_svm(svm, data):
    X, y = data()
    X, y = X[20:], y[20:]
    svm = clone(svm).fit(X, y)
    same = ReducedSetClassifier(svm, n_vectors=1.0, method="mrs").fit(X, y)
    assert np.allclose(same._values(X), ReducedSetClassifier(svm, 1.0).fit(X)._values(X), atol=1e-3)


# Random rows.


def test_the_reduced_svm_is_the_minimum_of_its_objective():
    X, y = moons(40)
    machine = ReducedSVMClassifier(4, C=3.0, gamma=1.0, random_state=0).fit(X, y)
    psi = RBF(1.0).block(X, machine.expansion_vectors_)
    sign = np.where(y == 1, 1.0, -1.0)

    def objective(x):
        slack = np.maximum(0, 1 - sign * (psi @ x[:4] + x[4]))
        return 0.5 * x @ x + 3.0 * slack @ slack

    best = optimize.minimize(objective, np.zeros(5), method="BFGS", options={"gtol": 1e-5})
    found = np.append(machine.coef_[0], machine.intercept_)
    assert objective(found) <= best.fun * (1 + 1e-7)
    assert np.allclose(found, best.x, atol=1e-4)
    assert machine.certificate_.primal == pytest.approx(best.fun, rel=1e-6)
    direct = LinearSVC(C=3.0, dual=False, tol=1e-10).fit(psi, y)
    assert np.allclose(machine.decision_function(X), direct.decision_function(psi), atol=1e-4)


def test_the_modified_reduced_svm_is_the_svm_in_the_span():
    X, y = moons(60)
    machine = ReducedSVMClassifier(5, method="mrsvm", C=3.0, gamma=1.0, random_state=0).fit(X, y)
    Z, kernel = machine.expansion_vectors_, RBF(1.0)
    factor = np.linalg.cholesky(kernel.block(Z, Z))
    features = np.linalg.solve(factor, kernel.block(Z, X)).T
    direct = SVC(C=3.0, kernel="linear", tol=1e-10).fit(features, y)
    assert np.allclose(machine.decision_function(X), direct.decision_function(features), atol=1e-4)


def test_both_reduced_svms_have_the_same_vectors_which_are_rows():
    X, y = iris()
    first = ReducedSVMClassifier(6, random_state=3).fit(X, y)
    second = ReducedSVMClassifier(6, method="mrsvm", random_state=3).fit(X, y)
    assert np.array_equal(first.expansion_vectors_, second.expansion_vectors_)
    assert first.expansion_vectors_.shape == (18, 4)
    rows = {tuple(x) for x in X}
    assert all(tuple(z) in rows for z in first.expansion_vectors_)
    shared = ReducedSVMClassifier(6, share_vectors=True, random_state=3).fit(X, y)
    assert shared.expansion_vectors_.shape == (6, 4)
    assert shared.score(X, y) > 0.8


@pytest.mark.parametrize("method", ["rsvm", "mrsvm"])
def test_no_row_is_taken_twice(method):
    X, y = moons(20)
    X, y = np.concatenate([X, X, X]), np.concatenate([y, y, 1 - y])
    machine = ReducedSVMClassifier(40, method=method, random_state=0).fit(X, y)
    assert machine.n_vectors_ == len(np.unique(machine.expansion_vectors_, axis=0)) == 20


@pytest.mark.parametrize(
    "estimator",
    [
        ReducedSVMClassifier(5, random_state=0),
        ReducedSVMClassifier(5, method="mrsvm", random_state=0),
        ReducedSVMClassifier(0.1, random_state=0),
        ReducedSetClassifier(SVC(class_weight="balanced"), n_vectors=3, random_state=0),
        ReducedSetClassifier(n_vectors=3, method="mrs", random_state=0),
        ReducedSetClassifier(MarginClassifier(), n_vectors=3, method="mrs", random_state=0),
    ],
    ids=str,
)
def test_a_weight_equals_repeated_rows(estimator):
    X, y = moons(60)
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    weighted = clone(estimator).fit(X, y, sample_weight=weight)
    repeated = clone(estimator).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    assert np.allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_the_seed_decides_and_threads_do_not(estimator):
    X, y = iris()
    results = [
        clone(estimator).set_params(random_state=1, n_jobs=n_jobs).fit(X, y).decision_function(X)
        for n_jobs in (1, 1, 3)
    ]
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


# Errors.


@pytest.mark.parametrize(
    ("estimator", "error", "words"),
    [
        (ReducedSetClassifier(n_vectors=0), ValueError, "n_vectors=0"),
        (ReducedSetClassifier(n_vectors=1.5), ValueError, r"n_vectors=1\.5"),
        (ReducedSetClassifier(n_vectors="few"), TypeError, "n_vectors='few'"),
        (ReducedSetClassifier(method="best"), ValueError, "method='best'"),
        (ReducedSetClassifier(n_restarts=0), ValueError, "n_restarts=0"),
        (ReducedSetClassifier(SVC(kernel="precomputed")), ValueError, "precomputed"),
        (ReducedSetClassifier(SVC(kernel=np.inner)), ValueError, "no gradient"),
        (ReducedSetClassifier(SVC), TypeError, "not a kernel SVM"),
        (ReducedSetClassifier(LogisticRegression()), TypeError, "not a kernel SVM"),
        (ReducedSetClassifier(NuSVC(), method="mrs"), ValueError, "needs its C"),
        (ReducedSVMClassifier(n_vectors=0), ValueError, "n_vectors=0"),
        (ReducedSVMClassifier(n_vectors=-0.5), ValueError, r"n_vectors=-0\.5"),
        (ReducedSVMClassifier(method="best"), ValueError, "method='best'"),
        (ReducedSVMClassifier(kernel="precomputed"), ValueError, "precomputed"),
        (ReducedSVMClassifier(5, method="mrsvm", kernel=np.inner), ValueError, "method='rsvm'"),
    ],
    ids=str,
)
def test_bad_parameters_are_named(estimator, error, words):
    X, y = moons(30)
    with pytest.raises(error, match=words):
        estimator.fit(X, y)


def test_a_kernel_without_a_gradient_serves_the_reduced_svm():
    X, y = moons()

    def kernel(X, Z):
        return RBF(1.0).block(X, Z)

    machine = ReducedSVMClassifier(8, kernel=kernel, random_state=0).fit(X, y)
    named = ReducedSVMClassifier(8, gamma=1.0, random_state=0).fit(X, y)
    assert np.allclose(machine.decision_function(X), named.decision_function(X))


def test_labels_are_asked_for_where_they_are_needed():
    X, y = moons(30)
    svm = SVC().fit(X, y)
    with pytest.raises(ValueError, match="requires y to be passed"):
        ReducedSetClassifier(SVC()).fit(X)
    with pytest.raises(ValueError, match="requires y to be passed"):
        ReducedSetClassifier(svm, method="mrs").fit(X)
    with pytest.raises(ValueError, match="not fitted to"):
        ReducedSetClassifier(svm, method="mrs").fit(X, y + 1)
    with pytest.raises(ValueError, match="lacks a class"):
        ReducedSetClassifier(svm, method="mrs").fit(X, 0 * y)
    with pytest.raises(ValueError, match="features"):
        ReducedSetClassifier(svm).fit(X[:, :1])
