"""Random quadratic programs, what SciPy says of them, and how far an answer is from optimal."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import lsq_linear, nnls

N_PROBLEMS = 120


def random_program(seed, ridge=0.3):
    """A positive definite H and a linear term of either sign."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 31))
    A = rng.normal(size=(n, int(rng.integers(1, 2 * n + 1)))) / np.sqrt(n)
    return rng, A @ A.T + ridge * np.eye(n), rng.normal(size=n)


def least_squares_form(H, a):
    """A and b with ½‖Ax − b‖² = ½xᵀHx − aᵀx + constant."""
    factor = cholesky(H, lower=True)
    return factor.T, solve_triangular(factor, a, lower=True)


def nonnegative_oracle(H, a):
    return nnls(*least_squares_form(H, a))[0]


def box_oracle(H, a, lower, upper):
    """SciPy's active-set method for bounded least squares."""
    A, b = least_squares_form(H, a)
    solved = lsq_linear(A, b, bounds=(lower, upper), method="bvls", tol=1e-14, max_iter=2000)
    return solved.x


def kkt_violation(H, a, x, lower, upper):
    r = a - H @ x
    at_lower, at_upper = x <= lower, x >= upper
    r = np.where(at_lower & at_upper, 0.0, r)
    r = np.where(at_lower & ~at_upper, np.maximum(r, 0.0), r)
    r = np.where(at_upper & ~at_lower, np.minimum(r, 0.0), r)
    return np.abs(r).max(initial=0.0)


def random_margin_problem(seed, C):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(10, 41))
    X = rng.normal(size=(n, int(rng.integers(1, 5))))
    y = np.where(X[:, 0] + rng.normal(size=n) * rng.choice([0.0, 0.5, 3.0]) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    K = np.exp(-rng.uniform(0.5, 5.0) * ((X[:, None] - X[None]) ** 2).sum(-1))
    weight = rng.uniform(0.1, 3.0, n)
    return K, y, C, weight


def ridge_of(C, weight):
    return 1.0 / (2.0 * C * weight)
