"""Random duals of the hinge, and how far an answer is from optimal."""

from __future__ import annotations

import warnings

import numpy as np
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

N_PROBLEMS = 100
seeds = st.integers(0, 2**32 - 1)
exponents = st.floats(-6.0, 6.0)


def random_problem(seed, C=1.0, kernel="rbf", n_most=40, spread=0.0):
    """K, labels and bounds; a few rows are repeated, some with the other label."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, n_most + 1))
    X = rng.normal(size=(n, int(rng.integers(1, 5))))
    y = np.where(X[:, 0] + rng.normal(size=n) * rng.choice([0.0, 0.5, 3.0]) > 0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    if seed % 3 == 0:
        X[n // 2 :] = X[: n - n // 2]
    if kernel == "rbf":
        K = np.exp(-rng.uniform(0.2, 3.0) * ((X[:, None] - X[None]) ** 2).sum(-1))
    else:
        K = X @ X.T
    return K, y, C * 10.0 ** rng.uniform(-spread, spread, n)


def random_directions(K, seed, s):
    """V and UᵀU of s random directions in the span of the rows, which are not orthonormal."""
    A = np.random.default_rng(seed).normal(size=(len(K), s))
    return K @ A, A.T @ K @ A


def dual_value(K, y, alpha):
    beta = y * alpha
    return float(alpha.sum() - 0.5 * beta @ K @ beta)


def kkt_violation(y, upper, f, result):
    """How far the margins are from where α says they are."""
    short = 1.0 - y * (f + result.intercept)
    wrong = np.abs(short)
    wrong = np.where(result.alpha <= 1e-14 * upper, np.maximum(short, 0.0), wrong)
    wrong = np.where(result.alpha >= (1.0 - 1e-14) * upper, np.maximum(-short, 0.0), wrong)
    return float(np.where(upper > 0, wrong, 0.0).max())


def rounding_gap(K, upper, result):
    """What the gap may be because a margin that is short by rounding costs its bound times that."""
    rounding = 1e-15 * (1.0 + np.abs(K).max() * result.alpha.sum())
    return rounding * upper.sum() / result.primal


def assert_feasible(y, upper, result):
    assert (result.alpha >= 0.0).all() and (result.alpha <= upper).all()
    assert abs(y @ result.alpha) <= 1e-13 * max(result.alpha.sum(), 1e-300)


def svc_alpha(K, y, upper, tol=1e-10):
    # Its kernel values are float32, with which it may never reach the tolerance.
    machine = SVC(kernel="precomputed", C=1.0, tol=tol, max_iter=20_000)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        machine.fit(K, y, sample_weight=upper)
    alpha = np.zeros(len(y))
    alpha[machine.support_] = np.abs(machine.dual_coef_[0])
    return alpha, machine
