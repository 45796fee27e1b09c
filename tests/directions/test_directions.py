"""Directions of every solver, against the papers' theorems and slow oracles."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from tests.reference.direction_problems import (
    KERNELS,
    both_constraints,
    both_kernels,
    both_losses,
    da,
    every_solver,
    every_way,
    exact,
    on_rows,
    oracle_of,
    problems_of,
    reference_features,
    third_of_wine,
    three_digits,
    threes_and_eights,
)
from tests.reference.mmda import from_kernel, from_rows, gram_of, objectives_of, related

# The reference itself.


@both_losses
def test_the_oracles_by_kernel_and_by_rows_agree(loss):
    X, y = threes_and_eights()
    (sign,) = problems_of(y)
    by_rows = from_rows(X, sign, 1.0, 6, loss=loss)
    by_kernel = from_kernel(X @ X.T, sign, 1.0, 6, loss=loss)
    assert_allclose(by_rows.features, by_kernel.features, atol=1e-8)
    assert_allclose(by_rows.coef @ by_rows.coef.T, np.eye(6), atol=1e-10)


def test_the_oracle_of_the_hinge_is_the_machine_of_svc():
    X, y = threes_and_eights()
    (sign,) = problems_of(y)
    found = from_rows(X, sign, 0.1, 1, loss="hinge")
    peer = SVC(kernel="linear", C=0.1, tol=1e-10).fit(X, sign)
    assert_allclose(found.norm[0] * found.coef[0], peer.coef_[0], atol=1e-6)
    assert_allclose(found.intercept, peer.intercept_, atol=1e-6)


# Propositions 2 and 3 of MMDA.


@both_losses
@both_kernels
def test_deflation_and_the_direct_method_give_the_same_directions(kernel, loss):
    X, y = threes_and_eights()
    parameters = {"kernel": kernel, "loss": loss, "C": 10.0}
    deflation = da(10, **exact("deflation"), **parameters).fit(X, y)
    direct = da(10, **exact("direct"), **parameters).fit(X, y)
    assert deflation.transform(X).shape == (100, 10)
    assert_allclose(direct.transform(X), deflation.transform(X), atol=1e-6)
    if kernel == "linear":
        assert_allclose(direct.components_, deflation.components_, atol=1e-6)
    else:
        change = on_rows(direct, 100) - on_rows(deflation, 100)
        distance2 = np.diagonal(change @ KERNELS[kernel](X, X) @ change.T)
        assert np.sqrt(np.maximum(0.0, distance2)).max() <= 1e-6
    expected = reference_features(kernel, loss, "orthogonal", threes_and_eights, 10.0, 10)
    assert_allclose(deflation.transform(X), expected, atol=1e-6)
    assert_allclose(direct.transform(X), expected, atol=1e-6)


@both_constraints
@every_way
def test_every_solver_finds_the_directions_of_the_oracle(kernel, solver, constraint):
    X, y = three_digits()
    model = da(4, kernel=kernel, constraint=constraint, C=0.5, **exact(solver)).fit(X, y)
    assert model.solver_ == solver
    expected = reference_features(kernel, "squared_hinge", constraint, three_digits, 0.5, 4)
    # A gap of 1e-13 leaves a direction its root, and the later ones what that does to them.
    atol = {"core": 1e-5, "span": 5e-6}.get(solver, 1e-6)
    assert_allclose(model.transform(X), expected, atol=atol)


@both_kernels
@pytest.mark.parametrize("solver", ["deflation", "direct"])
def test_uncorrelated_directions_of_the_hinge_are_those_of_the_oracle(kernel, solver):
    X, y = threes_and_eights()
    model = da(5, kernel=kernel, constraint="uncorrelated", loss="hinge", **exact(solver))
    expected = reference_features(kernel, "hinge", "uncorrelated", threes_and_eights, 1.0, 5)
    assert_allclose(model.fit_transform(X, y), expected, atol=1e-6)


@both_kernels
def test_the_first_direction_of_the_hinge_is_the_normal_of_svc(kernel):
    X, y = threes_and_eights()
    peer = SVC(kernel="precomputed", C=2.0, tol=1e-10).fit(KERNELS[kernel](X, X), y)
    normal = peer.decision_function(KERNELS[kernel](X, X)) - peer.intercept_
    for solver in ("deflation", "direct"):
        model = da(1, kernel=kernel, C=2.0, loss="hinge", **exact(solver)).fit(X, y)
        feature = model.transform(X)[:, 0]
        assert_allclose(feature, normal * model.directions_["margin"], atol=1e-5)
        boundary = model.intercept_ / model.directions_["margin"]
        assert_allclose(boundary, peer.intercept_, atol=1e-4)


@both_constraints
@every_way
def test_across_all_problems_each_direction_is_unrelated_to_all_before(kernel, solver, constraint):
    X, y = three_digits()
    model = da(2, kernel=kernel, constraint=constraint, across="all", **exact(solver)).fit(X, y)
    found, features = [], []
    for _ in range(2):
        for sign in problems_of(y):
            after = oracle_of(kernel, X)(sign, 1.0, 1, constraint=constraint, others=found)
            found.append(after.coef[0])
            features.append(after.features[:, 0])
    # The oracle goes round by round, the table class by class.
    expected = np.array(features)[[0, 3, 1, 4, 2, 5]].T
    assert_array_equal(model.directions_["order"], [1, 2, 1, 2, 1, 2])
    assert_allclose(model.transform(X), expected, atol=1e-5 if solver == "core" else 1e-6)


@both_losses
@pytest.mark.parametrize("solver", ["deflation", "direct"])
def test_weights_enter_as_in_the_oracle(solver, loss):
    X, y = threes_and_eights()
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(X))
    (sign,) = problems_of(y)
    for kernel in KERNELS:
        model = da(3, kernel=kernel, C=10.0, loss=loss, **exact(solver))
        model.fit(X, y, sample_weight=weight)
        expected = oracle_of(kernel, X)(sign, 10.0, 3, loss=loss, weight=weight)
        assert_allclose(model.transform(X), expected.features, atol=1e-6)


# Orthonormal, or uncorrelated.


@pytest.mark.parametrize(
    ("fine", "across"), [(False, "problem"), (False, "all"), (True, "all")], ids=str
)
@every_way
def test_directions_are_orthonormal_in_the_feature_space(kernel, solver, fine, across):
    X, y = three_digits()
    own = exact(solver) if fine else {"solver": solver, "max_vectors": 60}
    model = da(4, kernel=kernel, C=10.0, across=across, **own).fit(X, y)
    gram = gram_of(model)
    assert gram.shape == (12, 12)
    assert np.abs(np.where(related(model), gram - np.eye(12), 0.0)).max() <= 1e-8
    if across == "problem":
        # Else nothing would be gained by "all".
        assert np.abs(np.where(related(model), 0.0, gram)).max() > 1e-3


@both_losses
@both_kernels
def test_ten_directions_of_either_loss_are_orthonormal(kernel, loss):
    X, y = threes_and_eights()
    for solver in ("deflation", "direct"):
        for tol in (1e-3, 1e-13):
            model = da(10, kernel=kernel, C=100.0, loss=loss, solver=solver, tol=tol).fit(X, y)
            assert_allclose(gram_of(model), np.eye(10), atol=1e-8)


@pytest.mark.parametrize(
    ("fine", "across"), [(False, "problem"), (False, "all"), (True, "all")], ids=str
)
@every_way
def test_uncorrelated_features_are_uncorrelated_weights_included(kernel, solver, fine, across):
    X, y = three_digits()
    weight = np.random.default_rng(0).integers(1, 5, size=len(X))
    own = exact(solver) if fine else {"solver": solver, "max_vectors": 60}
    # One feature of each class says nearly all that uncorrelated features can say.
    n_directions = 2 if across == "problem" else 1
    model = da(n_directions, kernel=kernel, C=10.0, across=across, constraint="uncorrelated", **own)
    features = model.fit(X, y, sample_weight=weight).transform(X)
    moments = features.T @ (weight[:, None] * features)
    size = np.sqrt(np.diagonal(moments))
    correlation = moments / np.outer(size, size)
    assert np.abs(np.where(related(model), correlation - np.eye(len(size)), 0.0)).max() <= 1e-6
    assert_allclose(np.diagonal(gram_of(model)), 1.0, atol=1e-8)
    # The constraint is another one than right angles.
    assert np.abs(np.where(related(model), gram_of(model) - np.eye(len(size)), 0.0)).max() > 1e-3


@every_solver
def test_directions_are_orthonormal_also_where_C_is_large(solver):
    X, y = third_of_wine()
    # Φβ is long beside what is left of it without the earlier directions.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = da(3, gamma=1.0, C=1e4, solver=solver, epsilon=1e-4).fit(X, y)
    gram = model.coef_ @ rbf_kernel(model.vectors_, gamma=1.0) @ model.coef_.T
    for p in range(3):
        own = slice(3 * p, 3 * p + 3)
        assert_allclose(gram[own, own], np.eye(3), atol=1e-8)


# The gradient is large along the earlier directions, so that a rounding error of a step towards
# them looks downhill when nothing else is left to gain.
@pytest.mark.parametrize("seed", range(4))
def test_a_span_fit_to_the_last_digit_does_not_leave_the_subspace(seed):
    X, y = third_of_wine()
    model = da(4, solver="span", vectors="random", max_vectors=60, tol=1e-16, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert_allclose(model.directions_["primal"], objectives_of(model, X, y), rtol=1e-9)
    expected = reference_features("rbf", "squared_hinge", "orthogonal", third_of_wine, 1.0, 4)
    assert_allclose(model.transform(X), expected, atol=1e-6)
