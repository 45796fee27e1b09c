"""Reduced sets of trained machines, and machines on random rows."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from sklearn.base import clone
from sklearn.datasets import load_iris, make_moons
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import scale
from sklearn.svm import SVC, LinearSVC, NuSVC

from widemargin import CoreVectorClassifier, MarginClassifier, MarginClassifierCV
from widemargin.kernels import RBF
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


def moons(n=120, seed=0):
    return make_moons(n, noise=0.25, random_state=seed)


def iris():
    X, y = load_iris(return_X_y=True)
    return scale(X), np.array(["c", "a", "b"])[y]


def hinge_objective(kernel, X, sign, C, vectors, coef, intercept):
    """The SVM's objective of a machine, per problem."""
    scores = kernel.block(X, vectors) @ coef + intercept
    loss = np.maximum(0, 1 - sign * scores)
    return 0.5 * coef @ kernel.block(vectors, vectors) @ coef + C * loss.sum()


def test_a_linear_machine_needs_one_vector():
    X, y = iris()
    svm = SVC(kernel="linear").fit(X[50:], y[50:])
    small = ReducedSetClassifier(svm, n_vectors=5, random_state=0).fit(X[50:])
    assert small.n_vectors_ == 1
    assert np.allclose(small.decision_function(X), svm.decision_function(X), rtol=1e-6, atol=1e-6)


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
)
def test_bad_parameters_are_named(estimator, error, words):
    X, y = moons(30)
    with pytest.raises(error, match=words):
        estimator.fit(X, y)


@pytest.mark.parametrize("method", ["rs", "mrs"])
@pytest.mark.parametrize(
    "cells",
    [
        MarginClassifier(engine="cells", cells=30, random_state=0),
        MarginClassifierCV([1.0], cv=2, engine="cells", cells=30, random_state=0),
    ],
    ids=["one", "search"],
)
def test_machines_of_cells_are_refused_by_name_fitted_or_not(cells, method):
    X, y = moons()
    refused = pytest.raises(
        ValueError, match=r"(?s)estimator=Margin.*machine for each cell.*engine='exact' or.*'span'"
    )
    with refused:
        ReducedSetClassifier(cells, 3, method=method).fit(X, y)
    fitted = clone(cells).fit(X, y)
    for estimator in (fitted, FrozenEstimator(fitted)):
        with refused:
            ReducedSetClassifier(estimator, 3, method=method).fit(X, y)
    # As where the engine was chosen: cells are what it has, whatever it was told.
    with refused:
        ReducedSetClassifier(fitted.set_params(engine="auto"), 3, method=method).fit(X, y)
    # Fitted again with one machine, it is compressed.
    whole = fitted.set_params(engine="span").fit(X, y)
    assert ReducedSetClassifier(whole, 3, method=method, random_state=0).fit(X, y).n_vectors_ == 3


def test_a_choice_of_cells_is_refused_when_it_is_made():
    class Chosen(MarginClassifier):
        """The engine chooses cells of its own accord."""

        def _fit(self, problem, resources, earlier):
            self.engine = "cells"
            try:
                return super()._fit(problem, resources, earlier)
            finally:
                self.engine = "auto"

    X, y = moons()
    with pytest.raises(ValueError, match=r"estimator=Chosen.*machine for each cell"):
        ReducedSetClassifier(Chosen(cells=30, random_state=0), 3).fit(X, y)


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
