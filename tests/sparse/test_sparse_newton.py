"""Newton's method for losses in pieces: optimality, updates, problems together and apart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime

from widemargin.kernels import RBF
from widemargin.problem import Problem
from widemargin.qp.newton import DenseFeatures, Newton, Piecewise
from widemargin.rows import as_rows
from widemargin.sparse.marginal import VectorSpan
from widemargin.sparse.squared_marginal import solve_squared
from widemargin.threads import single_threaded_blas


@pytest.fixture(autouse=True)
def blas_as_in_a_fit():
    with single_threaded_blas():
        yield


KINDS = ["squared hinge", "hinge", "squared error", "squared interval", "interval", "quantile"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def problems(n=400, size=8, count=3, kind="squared hinge"):
    """Problems on the same rows: squared losses, or losses with rounded corners."""
    rng = np.random.default_rng(0)
    G, truth = rng.normal(size=(n, size)), rng.normal(size=(count, size))
    weight = rng.uniform(0.5, 2.0, n)
    weight[:5] = 0.0
    made = []
    for each in truth:
        target = G @ each + rng.normal(size=n)
        sign = np.where(target > 0, 1.0, -1.0)
        linear = 0.1 * rng.normal(size=size)
        offset, lower, upper = np.zeros(n), np.full(n, -np.inf), np.full(n, np.inf)
        if kind in ("hinge", "interval", "quantile"):
            lower, upper = -weight, (0.2 if kind == "quantile" else 1.0) * weight
            offset = rng.uniform(0.0, 0.5, n) * np.where(sign > 0, upper, lower)
        if "hinge" in kind:
            target = sign
            lower, upper = np.where(sign > 0, 0.0, lower), np.where(sign > 0, upper, 0.0)
        width = rng.uniform(0.2, 1.0, n) if "interval" in kind else None
        ends = (3.0 * weight, offset, lower, upper, np.ones(size), linear)
        made.append(Piecewise(target, *ends, width))
    return G, made


def newton(G, some, starts=None, threads=1, **ways):
    """The method as for many rows: derivatives are updated, and sums have several pieces."""
    features = DenseFeatures(G, threads, chunk=64)
    if starts is None:
        starts = [(np.zeros(G.shape[1]), np.zeros(len(G)))] * len(some)
    found = Newton(features, some, starts, **{"update": True} | ways)
    # It would leave threads alone, so few rows there are.
    found.features = features
    return found


def solutions(G, some, starts=None, threads=1, **ways):
    return [point.x for point in newton(G, some, starts, threads, **ways).run()]


def slope(G, problem, x):
    return problem.diagonal * x - problem.linear - G.T @ problem.pull(G @ x)


@every_kind
def test_the_slope_is_that_of_the_value(kind):
    G, (problem,) = problems(60, 4, 1, kind)
    x = np.random.default_rng(1).normal(size=4)
    found = approx_fprime(x, lambda x: problem.value(x, G @ x), 1e-7)
    np.testing.assert_allclose(slope(G, problem, x), found, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("ways", [{}, {"update": False}, {"form": False}], ids=str)
@every_kind
def test_it_ends_where_the_slope_vanishes(kind, ways):
    G, some = problems(kind=kind)
    for problem, point in zip(some, newton(G, some, **ways).run(), strict=True):
        np.testing.assert_allclose(point.scores, G @ point.x, atol=1e-12)
        assert point.value == problem.value(point.x, point.scores)
        first = np.linalg.norm(slope(G, problem, np.zeros(8)))
        # Conjugate gradients solve Newton's system to a part of it only.
        exact = 1e-12 if "form" not in ways else 1e-7
        assert np.linalg.norm(slope(G, problem, point.x)) <= exact * first


# Squared errors have one piece, and are solved by the first step.
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "squared error"])
def test_derivatives_brought_up_to_date_are_those_summed_anew(kind):
    G, some = problems(kind=kind)
    method, seen = newton(G, some), 0
    while not method.done:
        method.step()
        for state in method._states:
            if not (state.done or state.stale):
                gradient, matrix = state.gradient, state.matrix
                method._sum_derivatives([state])
                scale = np.abs(G).sum()
                np.testing.assert_allclose(gradient, state.gradient, atol=1e-14 * scale)
                np.testing.assert_allclose(matrix, state.matrix, atol=1e-12 * np.abs(matrix).max())
                seen += 1
    assert seen >= len(some)


def test_rows_are_summed_over_once_where_few_of_them_change(monkeypatch):
    G, some = problems()
    near = [(x + 1e-3, G @ (x + 1e-3)) for x in solutions(G, some)]
    summed, sum_derivatives = [], Newton._sum_derivatives

    def counted(self, states):
        summed.append(len(states))
        sum_derivatives(self, states)

    monkeypatch.setattr(Newton, "_sum_derivatives", counted)
    solutions(G, some, near)
    assert sum(summed) == len(some)


@every_kind
def test_problems_together_are_the_problems_apart(kind):
    G, some = problems(kind=kind)
    for problem, x in zip(some, solutions(G, some), strict=True):
        for ways in ({}, {"update": False}):
            (alone,) = solutions(G, [problem], **ways)
            np.testing.assert_allclose(alone, x, rtol=1e-9, atol=1e-12)


@every_kind
def test_threads_do_not_change_a_bit(kind):
    G, some = problems(kind=kind)
    one, three = (newton(G, some, threads=threads).run() for threads in (1, 3))
    for point, other in zip(one, three, strict=True):
        np.testing.assert_array_equal(point.x, other.x)
        np.testing.assert_array_equal(point.scores, other.scores)


def test_squared_errors_take_one_step_and_share_second_derivatives():
    G, some = problems(kind="squared error")
    some = [replace(each, stiff=some[0].stiff) for each in some]
    method, counted = newton(G, some), []
    curved = method.features.curved
    method.features.curved = lambda *args: counted.append(0) or curved(*args)
    method.step()
    assert method.done
    assert len(counted) == -(-len(G) // method.features.chunk)
    for problem, point in zip(some, method.points, strict=True):
        H = np.eye(8) + (G * problem.stiff[:, None]).T @ G
        exact = np.linalg.solve(H, G.T @ (problem.stiff * problem.target) + problem.linear)
        np.testing.assert_allclose(point.x, exact, rtol=1e-10, atol=1e-12)


def test_products_and_sums_are_those_of_the_matrices():
    rng = np.random.default_rng(2)
    G, X, R = rng.normal(size=(200, 5)), rng.normal(size=(3, 5)), rng.normal(size=(3, 200))
    for threads in (1, 2):
        features = DenseFeatures(G, threads, chunk=64)
        np.testing.assert_allclose(features.products(X), X @ G.T, atol=1e-12)
        np.testing.assert_allclose(features.sums(R), R @ G, atol=1e-12)
    np.testing.assert_allclose(DenseFeatures(G[:50]).products(X), X @ G[:50].T, atol=1e-12)


def test_many_problems_are_solved_a_few_at_a_time():
    rng = np.random.default_rng(3)
    code = rng.integers(0, 5, 120)
    X = rng.normal(size=(120, 6)) + 1.5 * np.eye(5, 6)[code]
    rows = as_rows(X, memory=1 << 26, threads=1)
    problem = Problem.of(rows, RBF(0.3), code, 2.0 * np.eye(5) - 1.0, np.ones(120), 10.0)
    features = VectorSpan(rows, RBF(0.3)).whitened(X[:8], with_one=True).features
    near = solve_squared(problem, features)[0] + 0.01
    few = 2 * (9 * 9 + 120)
    for start in (None, near):
        whole = solve_squared(problem, features, start)
        parts = solve_squared(problem, features, start, most_numbers=few)
        for expected, found in zip(whole, parts, strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("kind", [np.float64, np.float32, sparse.csr_array])
@pytest.mark.parametrize("far", [0.0, 1e3])
def test_the_gaussian_gradient_from_the_features_is_that_from_the_rows(kind, far):
    rng = np.random.default_rng(4)
    X = np.where(rng.random((90, 7)) < 0.5, rng.normal(size=(90, 7)), 0.0) + far
    X, Z = X.astype(np.float32), rng.normal(size=(5, 7)) + far
    rows = as_rows(kind(X) if kind is not np.float32 else X, memory=1 << 14, threads=1)
    span = VectorSpan(rows, RBF(0.2))
    beta, pull = rng.normal(size=(5, 2)), rng.normal(size=(90, 2))
    space = span.whitened(Z, with_one=True)
    before = span.n_kernel
    for some in (90, 30):
        pull[some:] = 0.0  # rows that do not pull are not looked at
        expected = span.gradient(Z, beta, pull)
        found = span.gradient(Z, beta, pull, space=space)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())
    assert span.n_kernel == before + 90 * 5 + 30 * 5 + 4 * 5 * 5
