"""Directions of every solver of `MaxMarginDA`, against the papers' theorems and slow oracles."""

import tracemalloc
import warnings
from functools import cache, partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from tests.reference.balls import exact_ball, squared_distances
from tests.reference.mmda import (
    features_of,
    from_kernel,
    from_rows,
    gram_of,
    objectives_of,
    related,
)
from tests.reference.span import best_machine, orthonormal
from tests.reference.svm import signed_kernel
from widemargin import MaxMarginDA
from widemargin.balls import CoreSet

GAMMA = 0.05
KERNELS = {"linear": linear_kernel, "rbf": lambda A, B: rbf_kernel(A, B, gamma=GAMMA)}
LOSSES = ["squared_hinge", "hinge"]
CONSTRAINTS = ["orthogonal", "uncorrelated"]
SOLVERS = ["deflation", "direct", "span", "core"]
# With the linear kernel "span" is the input space, and "core" the only one with vectors.
WAYS = [(kernel, solver) for kernel in KERNELS for solver in SOLVERS]
every_way = pytest.mark.parametrize(("kernel", "solver"), WAYS)
every_solver = pytest.mark.parametrize("solver", SOLVERS)
both_kernels = pytest.mark.parametrize("kernel", KERNELS)
both_losses = pytest.mark.parametrize("loss", LOSSES)
both_constraints = pytest.mark.parametrize("constraint", CONSTRAINTS)


# Data, small enough to be compared with slow oracles.


@cache
def _three_digits():
    X, y = load_digits(n_class=3, return_X_y=True)
    return X[:90] / 16.0, y[:90]


@cache
def _wine():
    """Fewer features than rows: the linear kernel is not of full rank."""
    X, y = load_wine(return_X_y=True)
    return scale(X)[::3], y[::3]


@cache
def _three_or_eight(n_each=50):
    """As many threes as eights: the hinge, with its free bias, then has many directions."""
    X, y = load_digits(return_X_y=True)
    rows = np.concatenate([np.flatnonzero(y == digit)[:n_each] for digit in (3, 8)])
    return X[rows] / 16.0, y[rows]


def _da(n_directions=3, **parameters):
    return MaxMarginDA(
        n_directions, **{"kernel": "rbf", "gamma": GAMMA, "random_state": 0} | parameters
    )


def _exact(solver):
    """Parameters with which a solver is as good as exact."""
    if solver == "core":
        return {"solver": "core", "epsilon": 1e-9}
    if solver == "span":
        # Vectors "random" are then all rows.
        return {"solver": "span", "vectors": "random", "max_vectors": 10_000, "tol": 1e-14}
    return {"solver": solver, "tol": 1e-13}


def _signs(y, label):
    return np.where(y == label, 1.0, -1.0)


def _problems(y):
    """The labels ±1 of each problem: one for two classes, else one for each class."""
    classes = np.unique(y)
    return [_signs(y, label) for label in (classes[1:] if len(classes) == 2 else classes)]


def _on_rows(model, n):
    """Coefficients of all training rows, for solvers whose vectors are rows."""
    coef = np.zeros((len(model.coef_), n))
    coef[:, model.support_] = model.coef_
    return coef


@cache
def _reference(kernel, loss, constraint, data, C, n_directions):
    """The oracle's features of all problems, side by side."""
    X, y = data()
    found = [
        _oracle(kernel, X)(sign, C, n_directions, loss=loss, constraint=constraint)
        for sign in _problems(y)
    ]
    return np.hstack([problem.features for problem in found])


def _oracle(kernel, X):
    """Deflation of the rows, or of the kernel matrix."""
    return (
        partial(from_rows, X)
        if kernel == "linear"
        else partial(from_kernel, rbf_kernel(X, gamma=GAMMA))
    )


# The reference itself.


@both_losses
def test_the_oracles_by_kernel_and_by_rows_agree(loss):
    X, y = _three_or_eight()
    (sign,) = _problems(y)
    by_rows = from_rows(X, sign, 1.0, 6, loss=loss)
    by_kernel = from_kernel(X @ X.T, sign, 1.0, 6, loss=loss)
    assert_allclose(by_rows.features, by_kernel.features, atol=1e-8)
    assert_allclose(by_rows.coef @ by_rows.coef.T, np.eye(6), atol=1e-10)


def test_the_oracle_of_the_hinge_is_the_machine_of_svc():
    X, y = _three_or_eight()
    (sign,) = _problems(y)
    found = from_rows(X, sign, 0.1, 1, loss="hinge")
    peer = SVC(kernel="linear", C=0.1, tol=1e-10).fit(X, sign)
    assert_allclose(found.norm[0] * found.coef[0], peer.coef_[0], atol=1e-6)
    assert_allclose(found.intercept, peer.intercept_, atol=1e-6)


# Propositions 2 and 3 of MMDA.


@both_losses
@both_kernels
def test_deflation_and_the_direct_method_give_the_same_directions(kernel, loss):
    X, y = _three_or_eight()
    parameters = {"kernel": kernel, "loss": loss, "C": 10.0}
    deflation = _da(10, **_exact("deflation"), **parameters).fit(X, y)
    direct = _da(10, **_exact("direct"), **parameters).fit(X, y)
    assert deflation.transform(X).shape == (100, 10)
    assert_allclose(direct.transform(X), deflation.transform(X), atol=1e-6)
    if kernel == "linear":
        assert_allclose(direct.components_, deflation.components_, atol=1e-6)
    else:
        change = _on_rows(direct, 100) - _on_rows(deflation, 100)
        distance2 = np.diagonal(change @ KERNELS[kernel](X, X) @ change.T)
        assert np.sqrt(np.maximum(0.0, distance2)).max() <= 1e-6
    expected = _reference(kernel, loss, "orthogonal", _three_or_eight, 10.0, 10)
    assert_allclose(deflation.transform(X), expected, atol=1e-6)
    assert_allclose(direct.transform(X), expected, atol=1e-6)


@both_constraints
@every_way
def test_every_solver_finds_the_directions_of_the_oracle(kernel, solver, constraint):
    X, y = _three_digits()
    model = _da(4, kernel=kernel, constraint=constraint, C=0.5, **_exact(solver)).fit(X, y)
    assert model.solver_ == solver
    expected = _reference(kernel, "squared_hinge", constraint, _three_digits, 0.5, 4)
    # A gap of 1e-13 leaves a direction its root, and the later ones what that does to them.
    atol = {"core": 1e-5, "span": 5e-6}.get(solver, 1e-6)
    assert_allclose(model.transform(X), expected, atol=atol)


@both_kernels
@pytest.mark.parametrize("solver", ["deflation", "direct"])
def test_uncorrelated_directions_of_the_hinge_are_those_of_the_oracle(kernel, solver):
    X, y = _three_or_eight()
    model = _da(5, kernel=kernel, constraint="uncorrelated", loss="hinge", **_exact(solver))
    expected = _reference(kernel, "hinge", "uncorrelated", _three_or_eight, 1.0, 5)
    assert_allclose(model.fit_transform(X, y), expected, atol=1e-6)


@both_kernels
def test_the_first_direction_of_the_hinge_is_the_normal_of_svc(kernel):
    X, y = _three_or_eight()
    peer = SVC(kernel="precomputed", C=2.0, tol=1e-10).fit(KERNELS[kernel](X, X), y)
    normal = peer.decision_function(KERNELS[kernel](X, X)) - peer.intercept_
    for solver in ("deflation", "direct"):
        model = _da(1, kernel=kernel, C=2.0, loss="hinge", **_exact(solver)).fit(X, y)
        feature = model.transform(X)[:, 0]
        assert_allclose(feature, normal * model.directions_["margin"], atol=1e-5)
        boundary = model.intercept_ / model.directions_["margin"]
        assert_allclose(boundary, peer.intercept_, atol=1e-4)


@both_constraints
@every_way
def test_across_all_problems_each_direction_is_unrelated_to_all_before(kernel, solver, constraint):
    X, y = _three_digits()
    model = _da(2, kernel=kernel, constraint=constraint, across="all", **_exact(solver)).fit(X, y)
    found, features = [], []
    for _ in range(2):
        for sign in _problems(y):
            after = _oracle(kernel, X)(sign, 1.0, 1, constraint=constraint, others=found)
            found.append(after.coef[0])
            features.append(after.features[:, 0])
    # The oracle goes round by round, the table class by class.
    expected = np.array(features)[[0, 3, 1, 4, 2, 5]].T
    assert_array_equal(model.directions_["order"], [1, 2, 1, 2, 1, 2])
    assert_allclose(model.transform(X), expected, atol=1e-5 if solver == "core" else 1e-6)


@both_losses
@pytest.mark.parametrize("solver", ["deflation", "direct"])
def test_weights_enter_as_in_the_oracle(solver, loss):
    X, y = _three_or_eight()
    weight = np.random.default_rng(0).uniform(0.2, 3.0, size=len(X))
    (sign,) = _problems(y)
    for kernel in KERNELS:
        model = _da(3, kernel=kernel, C=10.0, loss=loss, **_exact(solver))
        model.fit(X, y, sample_weight=weight)
        expected = _oracle(kernel, X)(sign, 10.0, 3, loss=loss, weight=weight)
        assert_allclose(model.transform(X), expected.features, atol=1e-6)


# Orthonormal, or uncorrelated.


@pytest.mark.parametrize(
    ("fine", "across"), [(False, "problem"), (False, "all"), (True, "all")], ids=str
)
@every_way
def test_directions_are_orthonormal_in_the_feature_space(kernel, solver, fine, across):
    X, y = _three_digits()
    own = _exact(solver) if fine else {"solver": solver, "max_vectors": 60}
    model = _da(4, kernel=kernel, C=10.0, across=across, **own).fit(X, y)
    gram = gram_of(model)
    assert gram.shape == (12, 12)
    assert np.abs(np.where(related(model), gram - np.eye(12), 0.0)).max() <= 1e-8
    if across == "problem":
        # Else nothing would be gained by "all".
        assert np.abs(np.where(related(model), 0.0, gram)).max() > 1e-3


@both_losses
@both_kernels
def test_ten_directions_of_either_loss_are_orthonormal(kernel, loss):
    X, y = _three_or_eight()
    for solver in ("deflation", "direct"):
        for tol in (1e-3, 1e-13):
            model = _da(10, kernel=kernel, C=100.0, loss=loss, solver=solver, tol=tol).fit(X, y)
            assert_allclose(gram_of(model), np.eye(10), atol=1e-8)


@pytest.mark.parametrize(
    ("fine", "across"), [(False, "problem"), (False, "all"), (True, "all")], ids=str
)
@every_way
def test_uncorrelated_features_are_uncorrelated_weights_included(kernel, solver, fine, across):
    X, y = _three_digits()
    weight = np.random.default_rng(0).integers(1, 5, size=len(X))
    own = _exact(solver) if fine else {"solver": solver, "max_vectors": 60}
    # One feature of each class says nearly all that uncorrelated features can say.
    n_directions = 2 if across == "problem" else 1
    model = _da(
        n_directions, kernel=kernel, C=10.0, across=across, constraint="uncorrelated", **own
    )
    features = model.fit(X, y, sample_weight=weight).transform(X)
    moments = features.T @ (weight[:, None] * features)
    size = np.sqrt(np.diagonal(moments))
    correlation = moments / np.outer(size, size)
    assert np.abs(np.where(related(model), correlation - np.eye(len(size)), 0.0)).max() <= 1e-6
    assert_allclose(np.diagonal(gram_of(model)), 1.0, atol=1e-8)
    # The constraint is another one than right angles.
    assert np.abs(np.where(related(model), gram_of(model) - np.eye(len(size)), 0.0)).max() > 1e-3


# Where the kernel matrix is not of full rank, expansions over all rows can gather parts that it
# does not see, which grow from direction to direction until they drown the others.
@pytest.mark.parametrize("kernel", ["linear", linear_kernel], ids=["linear", "function"])
@every_solver
def test_a_kernel_of_low_rank_has_the_directions_of_the_oracle(solver, kernel):
    X, y = _wine()
    model = _da(4, kernel=kernel, C=10.0, **_exact(solver)).fit(X, y)
    directions = model.components_ if kernel == "linear" else model.coef_ @ model.vectors_
    for p, sign in enumerate(_problems(y)):
        own = slice(4 * p, 4 * p + 4)
        assert_allclose(directions[own] @ directions[own].T, np.eye(4), atol=1e-8)
        expected = from_rows(X, sign, 10.0, 4)
        atol = 1e-5 if solver == "core" else 1e-6
        assert_allclose(model.transform(X)[:, own], expected.features, atol=atol)


@every_solver
def test_directions_are_orthonormal_also_where_C_is_large(solver):
    X, y = _wine()
    # Φβ is long beside what is left of it without the earlier directions.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = _da(3, gamma=1.0, C=1e4, solver=solver, epsilon=1e-4).fit(X, y)
    gram = model.coef_ @ rbf_kernel(model.vectors_, gamma=1.0) @ model.coef_.T
    for p in range(3):
        own = slice(3 * p, 3 * p + 3)
        assert_allclose(gram[own, own], np.eye(3), atol=1e-8)


# The gradient is large along the earlier directions, so that a rounding error of a step towards
# them looks downhill when nothing else is left to gain.
@pytest.mark.parametrize("seed", range(4))
def test_a_span_fit_to_the_last_digit_does_not_leave_the_subspace(seed):
    X, y = _wine()
    model = _da(4, solver="span", vectors="random", max_vectors=60, tol=1e-16, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert_allclose(model.directions_["primal"], objectives_of(model, X, y), rtol=1e-9)
    expected = _reference("rbf", "squared_hinge", "orthogonal", _wine, 1.0, 4)
    assert_allclose(model.transform(X), expected, atol=1e-6)


# Core sets: MMDA-CVM.


@both_constraints
@both_kernels
def test_core_sets_come_to_the_exact_solution_as_epsilon_falls(kernel, constraint):
    X, y = _three_or_eight()
    expected = _reference(kernel, "squared_hinge", constraint, _three_or_eight, 0.5, 3)
    parameters = {"kernel": kernel, "constraint": constraint, "C": 0.5, "solver": "core"}
    error = [
        np.abs(_da(3, epsilon=epsilon, **parameters).fit_transform(X, y) - expected).max()
        for epsilon in (1e-2, 1e-5, 1e-8)
    ]
    assert error[0] > 10 * error[1]
    assert error[2] <= min(error[1], 1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 0.01, 0.001])
@settings(max_examples=4, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1),
    C=st.sampled_from([0.1, 1.0, 30.0]),
    kernel=st.sampled_from(sorted(KERNELS)),
)
def test_theorem_2_holds_for_every_direction(epsilon, seed, C, kernel):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, 6)) * 1.5
    sign = np.where(X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=80) > 0, 1.0, -1.0)
    model = _da(3, kernel=kernel, C=C, solver="core", epsilon=epsilon, random_state=seed % 1000)
    balls = _recorded_balls(model, X, sign)
    assert len(balls) == len(model.directions_["order"]) == 3
    Q = signed_kernel(KERNELS[kernel](X, X), sign, C)
    # (16): an extra coordinate makes all points as long as the longest.
    delta2 = Q.diagonal().max() - Q.diagonal()
    features = sign[:, None] * features_of(model, X)
    for q, share in enumerate(balls):
        P = features[:, :q] if q else None
        inner = Q - features[:, :q] @ features[:, :q].T
        radius2 = Q.diagonal().max() - share @ inner @ share
        best2 = exact_ball(Q, delta2, P)[1]
        assert max(radius2 / best2, best2 / radius2) <= (1 + epsilon) ** 2 * (1 + 1e-9)
        # The reason for it: no row lies outside (1 + ε) times the radius.
        distance2 = squared_distances(Q, share, delta2, P)
        assert distance2.max() <= (1 + epsilon) ** 2 * radius2 * (1 + 1e-6)
        # Line q of the table tells the same ball: ‖c‖² = 1 / (2 dual).
        assert_allclose(model.directions_["dual"][q], 0.5 / (share @ inner @ share), rtol=1e-2)


def _recorded_balls(model, X, y):
    """Fit, and return the coefficients of each ball's centre: all rows, their sum being one."""
    machines, balls = CoreSet.machines, []

    def recorded(self, state):
        answer = machines(self, state)
        share = np.zeros(len(X))
        share[self.points.number[answer[1]]] = np.abs(answer[2][:, 0])
        balls.append(share / share.sum())
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CoreSet, "machines", recorded)
        model.fit(X, y)
    return balls


def test_core_sets_have_few_vectors_and_fewer_for_a_larger_epsilon():
    X, y = _three_digits()
    vectors = [
        _da(3, solver="core", epsilon=epsilon).fit(X, y).directions_["n_vectors"]
        for epsilon in (0.1, 1e-2, 1e-6)
    ]
    assert (vectors[0] < vectors[1]).all()
    assert (vectors[1] < vectors[2]).all()
    assert vectors[0].max() <= 20


# The span of a few vectors.


@both_constraints
def test_all_rows_as_given_vectors_are_the_exact_solution(constraint):
    X, y = _three_digits()
    parameters = {"solver": "span", "max_vectors": 90, "constraint": constraint, "C": 0.5}
    expected = _reference("rbf", "squared_hinge", constraint, _three_digits, 0.5, 4)
    given = _da(4, vectors=X, tol=1e-13, **parameters).fit(X, y)
    assert given.support_ is None
    assert_allclose(given.transform(X), expected, atol=1e-6)


@pytest.mark.parametrize("vectors", ["core", "random", "kmeans", "leverage"])
@both_constraints
def test_directions_in_a_span_are_the_best_of_it_and_the_certificate_is_true(vectors, constraint):
    X, y = _three_digits()
    parameters = {"solver": "span", "max_vectors": 20, "C": 10.0, "constraint": constraint}
    for tol in (0.05, 1e-3, 1e-9):
        model = _da(2, vectors=vectors, tol=tol, **parameters).fit(X, y)
        assert model.certificate_.scope == "span"
        assert len(model.vectors_) == 20
        best = _best_in_span(model, X, y)
        _assert_certified(model, X, y, best, tol)


def test_the_certificate_of_a_span_is_true_in_single_precision(monkeypatch):
    monkeypatch.setattr("widemargin.span.sizes._FEW_VALUES", 0)
    X, y = _three_digits()
    for constraint in CONSTRAINTS:
        model = _da(3, solver="span", max_vectors=20, C=10.0, constraint=constraint).fit(X, y)
        _assert_certified(model, X, y, _best_in_span(model, X, y), 1e-3, rounding=2e-6)
        features, gram = model.transform(X), gram_of(model)
        moments = features.T @ features / np.outer(*2 * [np.linalg.norm(features, axis=0)])
        for p in range(3):
            own = slice(3 * p, 3 * p + 3)
            if constraint == "orthogonal":
                assert_allclose(gram[own, own], np.eye(3), atol=1e-8)
            else:
                assert_allclose(moments[own, own], np.eye(3), atol=1e-6)


def _best_in_span(model, X, y, weight=None):
    """The optimum of every line of the table, given the directions before it."""
    kernel = KERNELS[model.kernel]
    F = kernel(X, model.vectors_) @ orthonormal(kernel(model.vectors_, model.vectors_)).T
    features, s = features_of(model, X), np.ones(len(y)) if weight is None else weight
    T = orthonormal(kernel(model.vectors_, model.vectors_))
    units = model.coef_ @ kernel(model.vectors_, model.vectors_) @ T.T
    best = []
    for q, (label, order) in enumerate(
        zip(model.directions_["problem"], model.directions_["order"], strict=True)
    ):
        before = slice(q + 1 - order, q)
        normals = units[before]
        if model.constraint == "uncorrelated":
            normals = (F.T @ (s[:, None] * features[:, before])).T
        left = F
        if len(normals):
            left = F @ np.linalg.svd(normals)[2][len(normals) :].T
        best.append(best_machine(left, _signs(y, label), model.C, weight).value)
    return np.array(best)


def _assert_certified(model, X, y, best, tol, rounding=1e-9, weight=None):
    """The table tells the truth: objectives as recomputed, bounds below the optimum."""
    table, reached = model.directions_, objectives_of(model, X, y, weight)
    assert_allclose(table["primal"], reached, rtol=max(rounding, 1e-8))
    assert (table["dual"] <= best * (1 + rounding)).all()
    assert (reached >= best * (1 - max(1e-8, rounding))).all()
    assert (table["gap"] >= (reached - best) / reached - rounding).all()
    # A tolerance is one for all problems of a round together.
    assert model.certificate_.gap <= 2 * tol + rounding
    assert_allclose(model.certificate_.primal, table["primal"].sum(), rtol=1e-12)
    assert_allclose(model.certificate_.dual, table["dual"].sum(), rtol=1e-12)


# Certificates of the other solvers.


@both_constraints
@both_kernels
@pytest.mark.parametrize(
    ("solver", "loss"),
    [("core", "squared_hinge"), *product(["deflation", "direct"], LOSSES)],
)
def test_the_certificate_is_true_however_rough_the_solution(kernel, solver, loss, constraint):
    X, y = _three_or_eight()
    (sign,) = _problems(y)
    n_directions = 3 if constraint == "orthogonal" else 2
    model = _da(
        n_directions,
        kernel=kernel,
        solver=solver,
        loss=loss,
        constraint=constraint,
        C=10.0,
        tol=0.02,
        epsilon=0.02,
    ).fit(X, y)
    assert model.certificate_.scope == "full"
    earlier = model.components_ if kernel == "linear" else _on_rows(model, len(X))
    best = [
        _oracle(kernel, X)(sign, 10.0, 1, loss=loss, constraint=constraint, others=earlier[:q])
        for q in range(n_directions)
    ]
    # What a ball's ε says of the gap is no matter here: only that the bounds are true.
    tol = np.inf if solver == "core" else 0.02
    _assert_certified(model, X, y, np.concatenate([after.objective for after in best]), tol)


# The linear kernel: in the input space.


def _wide_data(n=80, d=1500):
    rng = np.random.default_rng(0)
    X = sparse.random_array((n, d), density=0.02, rng=rng, format="csr")
    y = (np.asarray(X[:, :200].sum(axis=1)).ravel() > X[:, :200].sum() / n).astype(int)
    return X, y


@both_constraints
@pytest.mark.parametrize("solver", ["deflation", "direct"])
def test_many_features_are_solved_by_conjugate_gradients_to_the_same_directions(solver, constraint):
    X, y = _wide_data()
    n_directions = 3 if constraint == "orthogonal" else 2
    model = _da(n_directions, kernel="linear", C=10.0, constraint=constraint, **_exact(solver))
    model.fit(X, y)
    dense = X.toarray()
    (sign,) = _problems(y)
    expected = from_kernel(dense @ dense.T, sign, 10.0, n_directions, constraint=constraint)
    assert_allclose(model.transform(X), expected.features, atol=1e-6)
    assert_allclose(model.components_, expected.coef @ dense, atol=1e-6)


@both_constraints
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_conjugate_gradients_equal_newtons_matrix(monkeypatch, as_stored, constraint):
    X, y = _three_digits()
    X, y = X[y < 2], y[y < 2]
    parameters = {"kernel": "linear", "constraint": constraint, "C": 0.5}
    for solver in ("deflation", "direct"):
        formed = _da(4, **_exact(solver), **parameters).fit(as_stored(X), y)
        with monkeypatch.context() as patch:
            patch.setattr("widemargin.discriminant.linear._FEW_FEATURES", 5)
            iterated = _da(4, **_exact(solver), **parameters).fit(as_stored(X), y)
        assert_allclose(iterated.components_, formed.components_, atol=1e-6)


@both_losses
@pytest.mark.parametrize("solver", ["deflation", "direct"])
def test_the_linear_kernel_forms_no_matrix_of_all_rows(solver, loss):
    rng = np.random.default_rng(0)
    y = np.arange(4000) % 2
    # Without their difference, the first two columns still say something of the classes.
    X = rng.normal(size=(4000, 5))
    X[:, 1] = 2.0 * X[:, 0] + 0.3 * X[:, 1]
    X[:, 0] = 2.0 * X[:, 0] + y
    model = _da(2, kernel="linear", solver=solver, loss=loss, memory="10MB")
    model.fit(X[:200], y[:200])  # what is compiled or imported at first is not counted
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The matrix would take 128 MB.
    assert peak < 30e6
    assert_allclose(gram_of(model), np.eye(2), atol=1e-8)
