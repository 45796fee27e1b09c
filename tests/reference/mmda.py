"""Maximum margin discriminant analysis, slowly and obviously, in float64.

Kocsor, Kovács and Szepesvári, "Margin maximizing discriminant analysis" (MMDA), section 3.1. Every
direction is the normal of the widest margin on rows from which the earlier directions were taken
out: `from_kernel` deflates the kernel matrix by Proposition 2, `from_rows` projects the rows
themselves by (2). The papers' w = Xα lacks the labels: w = XYα. And where w is written with the
rows as they were, before (2), its part along the earlier directions has to be taken out of (9) too.

The machines are solved exactly: the squared hinge with a regularised bias by `svm`, the hinge with
a free bias, (1) and (4), here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from tests.reference.svm import l2svm_dual_exact, signed_kernel

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Extracted:
    """Directions of one problem, in the order in which they were found.

    Attributes
    ----------
    coef : (r, n) or (r, d)
        Unit directions: coefficients of the rows' images, or the directions themselves.
    features : (n, r)
        Projections of the training rows.
    norm, intercept, objective : (r,)
        ‖w‖ and b of the machines, and their optima.
    """

    coef: Array
    features: Array
    norm: Array
    intercept: Array
    objective: Array


def from_kernel(
    K: Array,
    y: ArrayLike,
    C: float,
    n_directions: int,
    *,
    loss: str = "squared_hinge",
    constraint: str = "orthogonal",
    weight: ArrayLike | None = None,
    others: ArrayLike = (),
) -> Extracted:
    """Directions by deflation of the kernel matrix: R' = Y (K − (KA)(KA)ᵀ) Y, (5).

    ``others`` (q, n) are unit directions of other problems that all of these must be unrelated to.
    """
    K, y = np.asarray(K, dtype=np.float64), np.asarray(y, dtype=np.float64)
    s = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    before = [np.asarray(a) for a in others]
    found, norm, intercept, objective = [], [], [], []
    for _ in range(n_directions):
        earlier = before + found
        # u itself, or Φ S Φᵀu, whose product with w is the sum of s uᵀφ(x) wᵀφ(x) over the rows.
        normals = [a if constraint == "orthogonal" else s * (K @ a) for a in earlier]
        A = _orthonormal(normals, K)
        deflated = K - (K @ A.T) @ (K @ A.T).T
        alpha, b, value = machine(deflated, y, C, s, loss)
        a = _without(y * alpha, A, K)
        norm.append(_length(np.sqrt(a @ K @ a), value))
        found.append(a / norm[-1])
        intercept.append(b)
        objective.append(value)
    coef = np.array(found)
    return Extracted(coef, K @ coef.T, np.array(norm), np.array(intercept), np.array(objective))


def from_rows(
    X: Array,
    y: ArrayLike,
    C: float,
    n_directions: int,
    *,
    loss: str = "squared_hinge",
    constraint: str = "orthogonal",
    weight: ArrayLike | None = None,
    others: ArrayLike = (),
) -> Extracted:
    """Directions in the input space, by x' = x − (wᵀx) w, (2), of every row."""
    X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    s = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    before = [np.asarray(u) for u in others]
    found, norm, intercept, objective = [], [], [], []
    for _ in range(n_directions):
        earlier = before + found
        normals = [u if constraint == "orthogonal" else X.T @ (s * (X @ u)) for u in earlier]
        A = _orthonormal(normals, np.eye(X.shape[1]))
        left = X.copy()
        for i in range(len(left)):
            for u in A:
                left[i] = left[i] - (u @ left[i]) * u
        alpha, b, value = machine(left @ left.T, y, C, s, loss)
        w = _without(left.T @ (y * alpha), A, np.eye(X.shape[1]))
        norm.append(_length(np.linalg.norm(w), value))
        found.append(w / norm[-1])
        intercept.append(b)
        objective.append(value)
    coef = np.array(found)
    return Extracted(coef, X @ coef.T, np.array(norm), np.array(intercept), np.array(objective))


def _length(norm: float, objective: float) -> float:
    """‖w‖, which is noise if the machine is a constant."""
    if not norm**2 > 1e-9 * objective:
        raise ValueError("there is no direction left that separates the classes")
    return float(norm)


def _orthonormal(functions: list[Array], metric: Array) -> Array:
    """Rows with A metric Aᵀ = 1 that span the same as ``functions`` (Gram and Schmidt)."""
    kept = np.empty((0, len(metric)))
    for a in functions:
        left = _without(a / np.sqrt(a @ metric @ a), kept, metric)
        kept = np.vstack([kept, left / np.sqrt(left @ metric @ left)])
    return kept


def _without(a: Array, A: Array, metric: Array) -> Array:
    """What is left of a without its parts along the orthonormal rows of A."""
    # Again and again, for the last digits.
    for _ in range(4):
        for other in A:
            a = a - (other @ metric @ a) * other
    return a


def machine(K: Array, y: Array, C: float, weight: Array, loss: str) -> tuple[Array, float, float]:
    """α, b and the optimum of a machine on a kernel matrix."""
    if loss == "hinge":
        return hinge_exact(K, y, C * weight)
    Q = signed_kernel(K, y, C, weight)
    alpha = l2svm_dual_exact(Q)
    return alpha, float(alpha @ y), float(alpha.sum() - 0.5 * alpha @ Q @ alpha)


def hinge_exact(K: Array, y: Array, upper: Array) -> tuple[Array, float, float]:
    """α, b and the optimum of ½‖w‖² + Σ upper ξ with a free bias: (4) of MMDA.

    An interior-point solve tells which α are zero, at their upper bound or between; one linear
    system then gives those between, and b, to rounding. The answer proves itself: primal and dual
    must have the same value. α need not be unique, but w is.
    """
    import cvxpy as cp

    n = len(y)
    values, vectors = np.linalg.eigh((K + K.T) / 2.0)
    factor = (vectors * np.sqrt(np.maximum(values, 0.0))) * y[:, None]
    # In units of the bounds, so that their size does not matter to the solver.
    u = cp.Variable(n)
    balance = cp.sum(cp.multiply(y * upper, u)) == 0
    objective = cp.Minimize(0.5 * cp.sum_squares((factor * upper[:, None]).T @ u) - upper @ u)
    cp.Problem(objective, [balance, u >= 0, u <= 1]).solve(
        solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11
    )
    guess = np.clip(u.value, 0.0, 1.0)
    b = -float(balance.dual_value)
    b = min((b, -b), key=lambda bias: _hinge_gap(K, y, upper, guess * upper, bias)[0])
    best = (*_hinge_gap(K, y, upper, guess * upper, b), guess * upper, b)
    slack = 1.0 - y * (K @ (y * guess * upper) + b)
    # Complementarity tells the sides apart: u against how far outside the margin, 1 − u against how
    # far inside.
    side = np.where(guess < -slack, -1, np.where(1.0 - guess < slack, 1, 0))
    for _ in range(3 * n + 20):
        alpha, b = _on_sides(K, y, upper, side)
        tried = (*_hinge_gap(K, y, upper, alpha, b), alpha, b)
        best = min(best, tried, key=lambda point: point[0])
        slack = 1.0 - y * (K @ (y * alpha) + b)
        wrong = np.where(
            side == 0,
            np.maximum(-alpha / upper, alpha / upper - 1.0),
            np.where(side < 0, slack, -slack),
        )
        worst = int(np.argmax(wrong))
        if wrong[worst] <= 1e-12:
            break
        if side[worst]:
            side[worst] = 0
        else:
            side[worst] = -1 if alpha[worst] < 0 else 1
    gap, value, alpha, b = best
    if gap > 1e-11 * value:
        raise RuntimeError(f"the optimum is known only to {gap / value:.1e}")
    return np.clip(alpha, 0.0, upper), b, value


def _on_sides(K: Array, y: Array, upper: Array, side: NDArray[np.int_]) -> tuple[Array, float]:
    """α and b when it is known which α are zero (−1), at the bound (1) and between (0)."""
    alpha = np.where(side > 0, upper, 0.0)
    index = np.flatnonzero(side == 0)
    m = len(index)
    system, target = np.zeros((m + 1, m + 1)), np.empty(m + 1)
    system[:m, :m] = K[np.ix_(index, index)] * np.outer(y[index], y[index])
    system[:m, m] = system[m, :m] = y[index]
    target[:m] = 1.0 - y[index] * (K[index] @ (y * alpha))
    target[m] = -(y @ alpha)
    # Least squares, because more rows may lie on the margin than are independent.
    solution = np.linalg.lstsq(system, target, rcond=1e-14)[0]
    alpha[index] = solution[:m]
    return alpha, float(solution[m])


def _hinge_gap(K: Array, y: Array, upper: Array, alpha: Array, b: float) -> tuple[float, float]:
    """Primal minus dual, and the primal, of α made feasible by clipping; its imbalance counts."""
    alpha = np.clip(alpha, 0.0, upper)
    values = K @ (y * alpha)
    norm2 = float(y * alpha @ values)
    primal = 0.5 * norm2 + float(upper @ np.maximum(0.0, 1.0 - y * (values + b)))
    dual = float(alpha.sum()) - 0.5 * norm2
    return primal - dual + abs(float(y @ alpha)) * (1.0 + abs(b)), primal


# What a fitted `MaxMarginDA` with a linear or RBF kernel says of itself, by the definitions.


def _exact(rows: Any) -> Array:
    return (rows.toarray() if sparse.issparse(rows) else np.asarray(rows)).astype(np.float64)


def kernel_of(model: Any) -> Callable[[Array, Array], Array]:
    """k(A, B), by scikit-learn, in float64."""
    if isinstance(model.kernel, str) and model.kernel == "rbf":
        return lambda A, B: rbf_kernel(_exact(A), _exact(B), gamma=model.gamma_)
    return lambda A, B: _exact(A) @ _exact(B).T


def features_of(model: Any, X: Any) -> Array:
    """uᵀφ(x) of every row and direction."""
    if model.kernel == "linear":
        return _exact(X) @ model.components_.T
    return kernel_of(model)(X, model.vectors_) @ model.coef_.T


def gram_of(model: Any) -> Array:
    """Inner products of the directions in the feature space."""
    if model.kernel == "linear":
        return model.components_ @ model.components_.T
    return model.coef_ @ kernel_of(model)(model.vectors_, model.vectors_) @ model.coef_.T


def related(model: Any) -> NDArray[np.bool_]:
    """Which pairs of directions have to be at right angles, or uncorrelated."""
    same = np.equal.outer(model.directions_["problem"], model.directions_["problem"])
    return np.ones_like(same) if model.across == "all" else same


def signs_of(model: Any, y: NDArray[Any]) -> Array:
    """Labels ±1 of every row in every direction's problem."""
    if model.codes is None:
        return np.where(y[:, None] == model.directions_["problem"], 1.0, -1.0)
    return model.codes_[np.searchsorted(model.classes_, y)][:, model.directions_["problem"]]


def objectives_of(model: Any, X: Any, y: NDArray[Any], weight: ArrayLike | None = None) -> Array:
    """Primal objectives of the machines whose normals the directions are."""
    s = np.ones(len(y)) if weight is None else np.asarray(weight)
    norm = 1.0 / model.directions_["margin"]
    margin = signs_of(model, y) * norm * (features_of(model, X) + model.intercept_)
    slack = np.maximum(0.0, 1.0 - margin)
    if model.loss == "hinge":
        return 0.5 * norm**2 + model.C * (s @ slack)
    return 0.5 * norm**2 + 0.5 * (norm * model.intercept_) ** 2 + model.C * (s @ slack**2)


def assert_valid(model: Any, X: Any, y: NDArray[Any], rtol: float = 1e-6) -> None:
    """Whatever happened in the fit, features, table and directions belong together."""
    features, table = model.transform(X), model.directions_
    n_features = len(table["order"])
    assert n_features >= 1
    assert features.shape == (len(y), n_features)
    assert len(model.get_feature_names_out()) == len(model.intercept_) == n_features
    size = max(1.0, float(np.abs(features).max()))
    np.testing.assert_allclose(features, features_of(model, X), atol=1e-7 * size)
    np.testing.assert_allclose(table["primal"], objectives_of(model, X, y), rtol=rtol)
    assert (table["dual"] <= table["primal"] * (1 + 1e-9)).all()
    if model.constraint == "orthogonal":
        angles = np.where(related(model), gram_of(model) - np.eye(n_features), 0.0)
        assert np.abs(angles).max() <= 1e-7
