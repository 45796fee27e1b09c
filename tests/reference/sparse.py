"""Sparse machines, and what is said about them computed from their vectors alone."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh, solve_triangular
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from tests.reference.data import moons, wine
from widemargin.sparse import SparseFisherClassifier, SparseMarginClassifier
from widemargin.sparse.sparse_options import PlacementSizes

RIDGE = 1e-8  # of the matrix of the vectors, see sparse/marginal.py
GAMMA = 0.1
WAYS = {
    "hinge": {"loss": "hinge"},
    "squared": {"loss": "squared_hinge"},
    "shared hinge": {"loss": "hinge", "share_vectors": True},
    "shared squared": {"loss": "squared_hinge", "share_vectors": True},
    "fisher": {"coefficients": "fisher"},
    "fisher svm": {"coefficients": "svm"},
}
every_way = pytest.mark.parametrize("way", WAYS)


def small_moons(n=120):
    return moons(n, noise=0.25)


def half_of_wine():
    return wine(2)


DATA = {"two": small_moons, "three": half_of_wine}
two_and_three = pytest.mark.parametrize("classes", DATA)


def sparse_machine(way="hinge", n_vectors=3, **parameters):
    cls = SparseFisherClassifier if "fisher" in way else SparseMarginClassifier
    return cls(
        n_vectors, **{"random_state": 0, "gamma": GAMMA, "n_jobs": 1} | WAYS[way] | parameters
    )


def with_sizes(machine, **sizes):
    """The same machine, for which few rows are many."""

    class Sized(type(machine)):
        def _options(self, resources):
            return replace(super()._options(resources), sizes=PlacementSizes(**sizes))

    return Sized(**machine.get_params())


def problems_of(machine, y):
    """The number of each problem, its signs, and the places of its vectors."""
    shared = getattr(machine, "share_vectors", False)
    for p, label in enumerate(machine.classes_[len(machine.classes_) == 2 :]):
        own = np.flatnonzero(machine.vector_problem_ == (0 if shared else p))
        yield p, np.where(y == label, 1.0, -1.0), own


def gram_with_ridge(kernel, Z):
    K = kernel(Z, Z)
    return K + RIDGE * np.trace(K) / len(Z) * np.eye(len(Z))


def svm_objective(machine, X, y, weight, kernel, gram=gram_with_ridge):
    """The SVM's objective, over all problems."""
    total = 0.0
    for p, sign, own in problems_of(machine, y):
        Z, beta, b = machine.expansion_vectors_[own], machine.coef_[p, own], machine.intercept_[p]
        slack = np.maximum(0.0, 1.0 - sign * (kernel(X, Z) @ beta + b))
        total += 0.5 * beta @ gram(kernel, Z) @ beta
        if getattr(machine, "loss", "hinge") == "hinge":
            total += machine.C * (weight @ slack)
        else:
            total += 0.5 * b * b + machine.C * (weight @ slack**2)
    return total


def fisher_quotient(machine, X, y, weight, kernel):
    """Minus the largest generalised eigenvalue of Fisher's matrices, over all problems."""
    total = 0.0
    for _, sign, own in problems_of(machine, y):
        Z = machine.expansion_vectors_[own]
        K = kernel(X, Z)
        mean = {s: np.average(K[sign == s], axis=0, weights=weight[sign == s]) for s in (1, -1)}
        rest = K - np.where(sign[:, None] > 0, mean[1], mean[-1])
        within = (rest * weight[:, None]).T @ rest / weight.sum() + machine.mu * gram_with_ridge(
            kernel, Z
        )
        d = mean[1] - mean[-1]
        total -= eigh(np.outer(d, d), within, eigvals_only=True)[-1]
    return total


def W_of(machine, X, y, weight=None, kernel=None):
    value = fisher_quotient if isinstance(machine, SparseFisherClassifier) else svm_objective
    weight = np.ones(len(X)) if weight is None else weight
    return value(machine, X, y, weight, kernel or partial(rbf_kernel, gamma=machine.gamma_))


def svm_in_span(X, sign, Z, kernel):
    """The least objective of the hinge in the span of vectors, by scikit-learn."""
    F = solve_triangular(np.linalg.cholesky(gram_with_ridge(kernel, Z)), kernel(Z, X), lower=True).T
    machine = SVC(kernel="linear", tol=1e-8).fit(F, sign)
    slack = np.maximum(0.0, 1.0 - sign * machine.decision_function(F))
    return 0.5 * float(machine.coef_[0] @ machine.coef_[0]) + slack.sum()


def assert_valid(machine, X, y, weight=None, kernel=None):
    """All that is said about a machine is true of it."""
    certificate = machine.certificate_
    assert_allclose(certificate.primal, W_of(machine, X, y, weight, kernel), rtol=1e-6)
    assert certificate.dual <= certificate.primal + 1e-9 * abs(certificate.primal)
    assert np.isfinite(machine.decision_function(X)).all()
    for history in machine.history_:
        assert (np.diff(history) <= 0).all()
    vectors = len(machine.expansion_vectors_)
    assert vectors == machine.n_vectors_ == len(machine.vector_problem_) == certificate.n_vectors
