"""The squared-hinge machine with a regularised bias, slowly and exactly (design 4.1), in float64.

    primal   ½‖w‖² + ½b² + C Σ s_i ξ_i²,     ξ_i = max(0, 1 − y_i f(x_i)),  f = wᵀφ + b
    dual     min over α ≥ 0 of ½ αᵀQα − 1ᵀα

At the optimum w = Σ α_i y_i φ(x_i), b = Σ α_i y_i, and the primal value is minus the dual's.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import LinearSVC

Array = NDArray[np.float64]


def _weights(weight: ArrayLike | None, n: int) -> Array:
    return np.ones(n) if weight is None else np.asarray(weight, dtype=np.float64)


def signed_kernel(
    K: Array, y: ArrayLike, C: float, weight: ArrayLike | None = None, P: Array | None = None
) -> Array:
    """Q_ij = y_i y_j (K_ij + 1 − p_iᵀp_j) + δ_ij / (2 C s_i); row i of ``P`` is p_i = Uᵀφ(x_i)."""
    y = np.asarray(y, dtype=np.float64)
    n = len(y)
    inner = np.asarray(K, dtype=np.float64) + 1.0
    if P is not None:
        P = np.asarray(P, dtype=np.float64).reshape(n, -1)
        inner = inner - P @ P.T
    return np.outer(y, y) * inner + np.diag(1.0 / (2.0 * C * _weights(weight, n)))


def dual_value(Q: Array, alpha: Array) -> float:
    """½ αᵀQα − 1ᵀα, the minimised form (so minus a lower bound of the primal)."""
    return float(0.5 * alpha @ Q @ alpha - alpha.sum())


def l2svm_dual_exact(Q: Array) -> Array:
    """The α ≥ 0 that minimises ½ αᵀQα − 1ᵀα, for positive definite Q.

    An interior-point solve finds which α are positive; one linear solve on those then gives them
    to rounding. Should the first guess of the active set be off by a row, rows change sides until
    the optimality conditions hold, so what is returned always satisfies them.
    """
    import cvxpy as cp

    n = len(Q)
    # Unit diagonal: rows with tiny sample weights would otherwise set the solver's scale.
    scale = 1.0 / np.sqrt(np.diag(Q))
    H = scale[:, None] * Q * scale[None, :]
    factor = np.linalg.cholesky(H)
    u = cp.Variable(n, nonneg=True)
    objective = cp.Minimize(0.5 * cp.sum_squares(factor.T @ u) - scale @ u)
    cp.Problem(objective).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10
    )
    guess = np.maximum(u.value, 0.0)
    # Complementarity tells the sides apart better than the size of u: on the active side u is
    # larger than its gradient, on the other smaller.
    active = guess > H @ guess - scale
    rounding = 1e-12 * max(1.0, float(np.abs(scale).max()))
    for _ in range(10 * n):
        u_active = np.zeros(n)
        index = np.flatnonzero(active)
        u_active[index] = np.linalg.solve(H[np.ix_(index, index)], scale[index])
        gradient = H @ u_active - scale
        negative = active & (u_active < 0.0)
        violated = ~active & (gradient < -rounding)
        if not negative.any() and not violated.any():
            return scale * u_active
        # Only the worst row moves, which cannot cycle for long from so near the optimum.
        wrong = np.where(negative, -u_active, np.where(violated, -gradient, -np.inf))
        worst = int(np.argmax(wrong))
        active[worst] = not active[worst]
    raise RuntimeError("the active set did not settle; is Q positive definite?")


def l2svm_objective_primal(
    K: Array, y: ArrayLike, C: float, weight: ArrayLike | None, beta: Array, b: float
) -> float:
    """½ βᵀKβ + ½b² + C Σ s_i max(0, 1 − y_i (Kβ + b)_i)², for f = Σ_j β_j k(·, x_j) + b.

    ``beta`` carries the labels (β = yα). With earlier directions, pass the deflated K − PPᵀ.
    """
    y = np.asarray(y, dtype=np.float64)
    f = K @ beta + b
    xi = np.maximum(0.0, 1.0 - y * f)
    return float(0.5 * beta @ K @ beta + 0.5 * b * b + C * (_weights(weight, len(y)) * xi**2).sum())


def linear_svc_objective(
    X: Array, y: ArrayLike, C: float, weight: ArrayLike | None, coef: Array, intercept: float
) -> float:
    """The same objective for a linear machine: what ``LinearSVC(loss="squared_hinge")`` minimises.

    scikit-learn's own bias is regularised as a feature of value ``intercept_scaling``, so at
    ``intercept_scaling=1`` its penalty is the ½b² here.
    """
    y = np.asarray(y, dtype=np.float64)
    coef = np.asarray(coef, dtype=np.float64).ravel()
    b = float(np.squeeze(intercept))
    xi = np.maximum(0.0, 1.0 - y * (X @ coef + b))
    return float(0.5 * coef @ coef + 0.5 * b * b + C * (_weights(weight, len(y)) * xi**2).sum())


def rbf_via_cholesky(K: Array) -> Array:
    """Rows F with F Fᵀ = K, so that a linear machine on F is the kernel machine of K.

    From eigenvectors and not a Cholesky factor proper: K is often singular to rounding (repeated
    rows), and there Cholesky stops. Directions below rounding are dropped. To be used as
    ``LinearSVC(loss="squared_hinge", dual=..., tol=1e-10, fit_intercept=True,
    intercept_scaling=1)`` on the rows of F.
    """
    values, vectors = np.linalg.eigh((K + K.T) / 2.0)
    kept = values > len(K) * np.finfo(np.float64).eps * values[-1]
    return vectors[:, kept] * np.sqrt(values[kept])


def linear_svc_optimum(F: Array, sign: Array, C: float) -> float:
    """The optimum on features, by scikit-learn."""
    oracle = LinearSVC(C=C, loss="squared_hinge", dual=False, tol=1e-10, max_iter=100_000)
    oracle.fit(F, sign)
    return linear_svc_objective(F, sign, C, None, oracle.coef_, oracle.intercept_)


def exact_optimum(K: Array, sign: Array, C: float, weight: ArrayLike | None = None) -> float:
    """The optimum over all rows, by the exact dual."""
    Q = signed_kernel(K, sign, C, weight)
    return -dual_value(Q, l2svm_dual_exact(Q))


# What a fitted machine is worth, from its attributes alone.

Kernel = Callable[[Array, Array], Array]


def rbf(gamma: float) -> Kernel:
    """The Gaussian kernel, by scikit-learn."""
    return lambda A, B: rbf_kernel(A, B, gamma=gamma)


def dense(rows: Any) -> Array:
    return rows.toarray() if sparse.issparse(rows) else rows


def machine_objective(
    machine: Any,
    kernel: Kernel,
    X: Array,
    sign: Array,
    weight: ArrayLike | None = None,
    problem: int = 0,
    C: float | None = None,
) -> float:
    """Primal objective of one problem over all rows, in float64."""
    vectors, beta = dense(machine.support_vectors_), machine.dual_coef_[problem]
    b = float(machine.intercept_[problem])
    slack = np.maximum(0.0, 1.0 - sign * (kernel(X, vectors) @ beta + b))
    loss = (_weights(weight, len(sign)) * slack**2).sum()
    C = machine.C if C is None else C
    return float(0.5 * beta @ kernel(vectors, vectors) @ beta + 0.5 * b * b + C * loss)


def machine_objectives(
    machine: Any, kernel: Kernel, X: Array, y: NDArray[Any], weight: ArrayLike | None = None
) -> float:
    """The sum over the problems, as the certificate has it."""
    classes = machine.classes_
    if getattr(machine, "multi_class_", "ovr") == "ovo":
        weight = np.ones(len(y)) if weight is None else np.asarray(weight)
        total = 0.0
        for p, (first, second) in enumerate(combinations(classes, 2)):
            own = (y == first) | (y == second)
            sign = np.where(y[own] == first, 1.0, -1.0)
            total += machine_objective(machine, kernel, X[own], sign, weight[own], p)
        return total
    return sum(
        machine_objective(machine, kernel, X, np.where(y == label, 1.0, -1.0), weight, p)
        for p, label in enumerate(classes[1:] if len(classes) == 2 else classes)
    )


def assert_usable(machine: Any, X: Array, y: NDArray[Any], least: float = 0.7) -> None:
    """A fit that was stopped is a feasible RBF machine whose certificate is true."""
    assert machine.score(X, y) >= least
    certificate = machine.certificate_
    assert certificate.n_vectors == len(machine.support_vectors_) == machine.dual_coef_.shape[1]
    reached = machine_objectives(machine, rbf(machine.gamma_), X, y)
    np.testing.assert_allclose(certificate.primal, reached, rtol=1e-4)
    assert certificate.dual <= reached * (1 + 1e-9)
    in_span = getattr(machine, "engine_", "exact") == "span"
    assert certificate.scope == ("span" if in_span else "full")
    if in_span:
        assert certificate.full_dual <= reached
    else:
        sign = np.where(y == machine.classes_[1], 1.0, -1.0)
        assert (machine.dual_coef_[0] * sign[machine.support_] >= 0).all()


def leeway(*machines: Any) -> float:
    """How far apart decision values of RBF machines within their gaps of one optimum can be.

    The objective is strongly convex: ½‖v − v*‖² ≤ gap · primal for v = (w, b), and a value is the
    product of v with a point of norm √2.
    """
    certificates = [one.certificate_ for one in machines]
    return sum(2.0 * np.sqrt(known.gap * known.primal) for known in certificates) + 1e-6
