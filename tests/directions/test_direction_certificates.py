"""What solvers of directions prove, in core sets and in spans."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from tests.reference.balls import exact_ball, squared_distances
from tests.reference.direction_problems import (
    CONSTRAINTS,
    KERNELS,
    LOSSES,
    both_constraints,
    both_kernels,
    on_rows,
    oracle_of,
    problems_of,
    reference_features,
    signs,
    three_digits,
    threes_and_eights,
)
from tests.reference.direction_problems import da as _da
from tests.reference.mmda import features_of, gram_of, objectives_of
from tests.reference.span import best_machine, orthonormal
from tests.reference.svm import signed_kernel
from widemargin import MaxMarginDA
from widemargin.balls import CoreSet
from widemargin.span.span_sizes import SpanSizes

# Core sets: MMDA-CVM.


@both_constraints
@both_kernels
def test_core_sets_come_to_the_exact_solution_as_epsilon_falls(kernel, constraint):
    X, y = threes_and_eights()
    expected = reference_features(kernel, "squared_hinge", constraint, threes_and_eights, 0.5, 3)
    parameters = {"kernel": kernel, "constraint": constraint, "C": 0.5, "solver": "core"}
    error = [
        np.abs(_da(3, epsilon=epsilon, **parameters).fit_transform(X, y) - expected).max()
        for epsilon in (1e-2, 1e-5, 1e-8)
    ]
    assert error[0] > 10 * error[1]
    # The second may be as good as rounding allows.
    assert error[2] <= min(max(error[1], 1e-10), 1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 0.01, 0.001])
@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    C=st.sampled_from([0.1, 1.0, 30.0]),
    kernel=st.sampled_from(sorted(KERNELS)),
)
# Centres that are a little too long: with ε = 1e-3 rows lay outside by some 1e-5.
@example(seed=8, C=1.0, kernel="rbf")
@example(seed=30, C=1.0, kernel="rbf")
@example(seed=36, C=1.0, kernel="rbf")
@example(seed=58, C=1.0, kernel="rbf")
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
        assert distance2.max() <= (1 + epsilon) ** 2 * radius2 * (1 + 1e-9)
        # Line q of the table tells the same ball: ‖c‖² = 1 / (2 dual).
        assert_allclose(model.directions_["dual"][q], 0.5 / (share @ inner @ share), rtol=1e-2)


def _recorded_balls(model, X, y):
    """Fit, and return the coefficients of each ball's centre: all rows, their sum being one."""
    machines, balls = CoreSet.machines, []

    def recorded(self, state):
        answer = machines(self, state)
        share = np.zeros(len(X))
        share[self.problem.number[answer.index]] = np.abs(answer.expansion.coef[:, 0])
        balls.append(share / share.sum())
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CoreSet, "machines", recorded)
        model.fit(X, y)
    return balls


def test_core_sets_have_few_vectors_and_fewer_for_a_larger_epsilon():
    X, y = three_digits()
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
    X, y = three_digits()
    parameters = {"solver": "span", "max_vectors": 90, "constraint": constraint, "C": 0.5}
    expected = reference_features("rbf", "squared_hinge", constraint, three_digits, 0.5, 4)
    given = _da(4, vectors=X, tol=1e-13, **parameters).fit(X, y)
    assert given.support_ is None
    assert_allclose(given.transform(X), expected, atol=1e-6)


@pytest.mark.parametrize("vectors", ["core", "random", "kmeans", "leverage"])
@both_constraints
def test_directions_in_a_span_are_the_best_of_it_and_the_certificate_is_true(vectors, constraint):
    X, y = three_digits()
    parameters = {"solver": "span", "max_vectors": 20, "C": 10.0, "constraint": constraint}
    # A seed for which all second directions are worth more than the largest tolerance.
    parameters |= {"random_state": 1}
    for tol in (0.05, 1e-3, 1e-9):
        model = _da(2, vectors=vectors, tol=tol, **parameters).fit(X, y)
        assert model.certificate_.scope == "span"
        assert len(model.vectors_) == 20
        best = _best_in_span(model, X, y)
        _assert_certified(model, X, y, best, tol)


class _InSinglePrecision(MaxMarginDA):
    """With few kernel values too in the precision that many would have."""

    def _options(self, *known):
        return replace(super()._options(*known), span_sizes=SpanSizes(few_values=0))


def test_the_certificate_of_a_span_is_true_in_single_precision():
    X, y = three_digits()
    for constraint in CONSTRAINTS:
        start = _da(3, solver="span", max_vectors=20, C=10.0, constraint=constraint)
        model = _InSinglePrecision(**start.get_params()).fit(X, y)
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
        best.append(best_machine(left, signs(y, label), model.C, weight).value)
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
    X, y = threes_and_eights()
    (sign,) = problems_of(y)
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
    earlier = model.components_ if kernel == "linear" else on_rows(model, len(X))
    best = [
        oracle_of(kernel, X)(sign, 10.0, 1, loss=loss, constraint=constraint, others=earlier[:q])
        for q in range(n_directions)
    ]
    # What a ball's ε says of the gap is no matter here: only that the bounds are true.
    tol = np.inf if solver == "core" else 0.02
    _assert_certified(model, X, y, np.concatenate([after.objective for after in best]), tol)
