"""Newton's method for intervals: dependent rows, against a slow minimiser of the primal."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.optimize import minimize

from widemargin import CoreVectorRegressor
from widemargin.qp.interval_newton import IntervalProgram


def _solved(program, point, steps=50):
    for _ in range(steps):
        point = program.step(point)
    return point


def _dependent(n=12, rank=2, seed=0):
    """A program whose kernel matrix has a low rank: many coefficients make the same scores."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank))
    target = rng.normal(size=(n, 1))
    return IntervalProgram(X @ X.T, target, np.array([0.1]), np.full(n, 0.5), 0.0), X


def _least_primal(program, X):
    """The optimum by a general method, over w."""

    def primal(w):
        residual = program.residuals((X @ w)[:, None])[:, 0]
        return 0.5 * w @ w + 0.5 * (residual**2 / program.ridge).sum()

    return minimize(primal, np.zeros(X.shape[1]), method="BFGS", options={"gtol": 1e-10}).fun


@pytest.mark.parametrize("seed", range(5))
def test_dependent_rows_are_solved_to_the_optimum(seed):
    program, X = _dependent(seed=seed)
    point = _solved(program, program.start())
    primal, dual = (each[0] for each in program.objectives(point))
    assert_allclose(primal, _least_primal(program, X), rtol=1e-8)
    assert_allclose(dual, primal, rtol=1e-10)


@pytest.mark.parametrize("seed", range(20))
def test_a_step_that_changes_no_score_goes_all_the_way(seed):
    program, X = _dependent(seed=seed)
    best = _solved(program, program.start())
    # The same scores by other coefficients, with which nothing is proved.
    nothing = np.linalg.svd(X.T)[2][2:]
    away = best.alpha + nothing.T @ np.random.default_rng(seed).normal(size=(len(nothing), 1))
    start = program.at(away)
    assert_allclose(start.scores, best.scores, atol=1e-12)
    assert program.gap(start) > 1e-3
    after = program.step(start)
    assert program.gap(after) < 1e-12
    assert np.abs(after.alpha).max() < 10.0


@pytest.mark.parametrize("seed", [4076, 5877, *range(10)])
def test_a_core_set_of_dependent_rows_is_not_lost_to_rounding(seed):
    # The first once ended at a primal value of minus 1e52, the second far from the optimum.
    rng = np.random.RandomState(0)
    X = rng.uniform(size=(40, 3))
    X[X < 0.6] = 0
    y = (4 * rng.uniform(size=40)).astype(np.int32)
    machine = CoreVectorRegressor(
        kernel="linear", fit_intercept=False, stopping="ball", n_jobs=1, random_state=seed
    )
    found = machine.fit(sparse.csr_array(X), y).certificate_
    assert found.gap < 1e-6
    program = IntervalProgram(X @ X.T, y[:, None] * 1.0, np.array([0.1]), np.full(40, 0.5), 0.0)
    assert_allclose(found.primal, _least_primal(program, X), rtol=1e-6)


def program_of(seed, epsilon, n=60, n_outputs=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    target = rng.normal(size=(n, n_outputs)) + np.sin(2.0 * X[:, :1])
    ridge = rng.uniform(0.01, 1.0, n)
    return IntervalProgram(K, target, np.full(n_outputs, epsilon), ridge, 1.0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("epsilon", [1e-3, 0.05, 0.3, 2.0])
def test_newton_ends_where_the_gap_is_nothing_with_few_rows_inside_and_with_many(seed, epsilon):
    program = program_of(seed, epsilon)
    point, gaps = program.start(), []
    for _ in range(30):
        point = program.step(point)
        gaps.append(program.gap(point))
    assert gaps[-1] < 1e-12
    residual = program.residuals(point.scores)
    # The optimum says so: α = r / ridge, zero inside.
    assert_allclose(point.alpha, residual / program.ridge[:, None], atol=1e-7)
    assert (point.alpha[residual == 0.0] == 0.0).all()
