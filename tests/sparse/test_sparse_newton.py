"""Newton's method for losses in pieces: optimality, updates, problems together and apart."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import approx_fprime

from widemargin.kernels import RBF
from widemargin.rows import as_rows
from widemargin.sparse import newton as module
from widemargin.sparse.marginal import Span
from widemargin.qp.newton import Piecewise, at_a_time, newton, newton_together, products, sums
from widemargin.sparse.squared_hinge_marginal import SquaredHinge
from widemargin.threads import single_threaded_blas


@pytest.fixture(autouse=True)
def blas_as_in_a_fit():
    with single_threaded_blas():
        yield


@pytest.fixture
def large(monkeypatch):
    """Let few rows be treated as many: updates of the derivatives, and several pieces of sums."""
    monkeypatch.setattr(module, "_SMALL", 0)
    monkeypatch.setattr(module, "_CHUNK", 64)


def problems(n=400, size=8, count=3, capped=False):
    """Problems on the same rows: squared hinges, or hinges with a rounded corner."""
    rng = np.random.default_rng(0)
    G, truth = rng.normal(size=(n, size)), rng.normal(size=(count, size))
    weight = rng.uniform(0.5, 2.0, n)
    weight[:5] = 0.0
    made = []
    for each in truth:
        sign = np.where(G @ each + rng.normal(size=n) > 0, 1.0, -1.0)
        offset = rng.uniform(0.0, 0.5, n) * weight if capped else np.zeros(n)
        cap = weight if capped else np.full(n, np.inf)
        linear = 0.1 * rng.normal(size=size)
        made.append(Piecewise(G, sign, 3.0 * weight, offset, cap, np.ones(size), linear, 1.0))
    return made


def starts(some):
    return [(np.zeros(each.G.shape[1]), np.zeros(len(each.G))) for each in some]


def slope(problem, x):
    pull = problem.sign * problem.alpha(problem.G @ x)
    return problem.diagonal * x - problem.linear - problem.G.T @ pull


@pytest.mark.parametrize("capped", [False, True])
def test_the_slope_is_that_of_the_value(capped):
    (problem,) = problems(60, 4, 1, capped)
    x = np.random.default_rng(1).normal(size=4)
    found = approx_fprime(x, lambda x: problem.value(x, problem.G @ x), 1e-7)
    np.testing.assert_allclose(slope(problem, x), found, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("capped", [False, True])
def test_it_ends_where_the_slope_vanishes(large, capped):
    some = problems(capped=capped)
    for problem, (x, scores) in zip(some, newton_together(some, starts(some)), strict=True):
        np.testing.assert_allclose(scores, problem.G @ x, atol=1e-12)
        first = np.linalg.norm(slope(problem, np.zeros(len(x))))
        assert np.linalg.norm(slope(problem, x)) <= 1e-12 * first


@pytest.mark.parametrize("capped", [False, True])
def test_derivatives_brought_up_to_date_are_those_summed_anew(large, monkeypatch, capped):
    some = problems(capped=capped)
    seen, step = [], module._State.step

    def watched(state, direction, moved):
        step(state, direction, moved)
        if not (state.done or state.stale):
            gradient, matrix = state.gradient, state.matrix
            module._sum_derivatives(state.problem.G, [state], 1)
            scale = np.abs(state.problem.G).sum()
            np.testing.assert_allclose(gradient, state.gradient, atol=1e-14 * scale)
            np.testing.assert_allclose(matrix, state.matrix, atol=1e-12 * np.abs(matrix).max())
            seen.append(state)

    monkeypatch.setattr(module._State, "step", watched)
    newton_together(some, starts(some))
    assert len(seen) >= len(some)


def test_rows_are_summed_over_once_where_few_of_them_change(large, monkeypatch):
    some = problems()
    near = [(x + 1e-3, each.G @ (x + 1e-3)) for each, x in _solutions(some)]
    summed = []
    sum_derivatives = module._sum_derivatives
    monkeypatch.setattr(
        module,
        "_sum_derivatives",
        lambda G, states, threads: (
            summed.append(len(states)),
            sum_derivatives(G, states, threads),
        ),
    )
    newton_together(some, near)
    assert sum(summed) == len(some)


def _solutions(some):
    found = newton_together(some, starts(some))
    return [(each, x) for each, (x, _) in zip(some, found, strict=True)]


@pytest.mark.parametrize("capped", [False, True])
def test_problems_together_are_the_problems_apart(large, capped):
    some = problems(capped=capped)
    for (problem, x), (start, scores) in zip(_solutions(some), starts(some), strict=True):
        np.testing.assert_allclose(newton(problem, start, scores)[0], x, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(newton(problem, start)[0], x, rtol=1e-9, atol=1e-12)


def test_threads_do_not_change_a_bit(large):
    some = problems()
    one, three = (newton_together(some, starts(some), threads) for threads in (1, 3))
    for (x, scores), (other, other_scores) in zip(one, three, strict=True):
        np.testing.assert_array_equal(x, other)
        np.testing.assert_array_equal(scores, other_scores)


def test_products_and_sums_are_those_of_the_matrices(large):
    rng = np.random.default_rng(2)
    G, X, R = rng.normal(size=(200, 5)), rng.normal(size=(3, 5)), rng.normal(size=(3, 200))
    for threads in (1, 2):
        np.testing.assert_allclose(products(G, X, threads), X @ G.T, atol=1e-12)
        np.testing.assert_allclose(sums(G, R, threads), R @ G, atol=1e-12)
    np.testing.assert_allclose(products(G[:50], X), X @ G[:50].T, atol=1e-12)


def test_many_problems_are_solved_a_few_at_a_time(monkeypatch):
    rng = np.random.default_rng(3)
    code = rng.integers(0, 5, 120)
    X = rng.normal(size=(120, 6)) + 1.5 * np.eye(5, 6)[code]
    rows = as_rows(X, memory=1 << 26, threads=1)
    function = SquaredHinge(rows, RBF(0.3), code, 2.0 * np.eye(5) - 1.0, np.ones(120), 10.0)
    near = function(X[:8] + 0.01)
    whole = function(X[:8]), function(X[:8], near)
    monkeypatch.setattr(module, "_MOST_NUMBERS", 2 * (9 * 9 + 120))
    assert at_a_time(120, 9) == 2
    for expected, found in zip(whole, (function(X[:8]), function(X[:8], near)), strict=True):
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-12)
        np.testing.assert_allclose(found.dual, expected.dual, rtol=1e-12)
        np.testing.assert_allclose(found.beta, expected.beta, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kind", [np.float64, np.float32, sparse.csr_array])
@pytest.mark.parametrize("far", [0.0, 1e3])
def test_the_gaussian_gradient_from_the_features_is_that_from_the_rows(kind, far):
    rng = np.random.default_rng(4)
    X = np.where(rng.random((90, 7)) < 0.5, rng.normal(size=(90, 7)), 0.0) + far
    X, Z = X.astype(np.float32), rng.normal(size=(5, 7)) + far
    rows = as_rows(kind(X) if kind is not np.float32 else X, memory=1 << 14, threads=1)
    span = Span(rows, RBF(0.2))
    beta, pull = rng.normal(size=(5, 2)), rng.normal(size=(90, 2))
    space = span.whitened(Z, more=1)
    before = span.n_kernel
    for some in (90, 30):
        pull[some:] = 0.0  # rows that do not pull are not looked at
        expected = span.gradient(Z, beta, pull)
        found = span.gradient(Z, beta, pull, space=space)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())
    assert span.n_kernel == before + 90 * 5 + 30 * 5 + 4 * 5 * 5
