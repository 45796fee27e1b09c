"""The best machine inside the span of a few vectors, slowly and exactly, in float64.

    min over w in the span of φ(Z), and b:   ½‖w‖² + ½b² + C Σ s_i max(0, 1 − y_i (wᵀφ(x_i) + b))²

Eigenvectors of K_z give an orthonormal basis of the span; in it the machine is linear, and Newton's
method on all rows, with the full matrix and a careful line search, ends at the optimum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Optimum:
    """The optimum: its value, the machine in the basis of the features, and its scores."""

    value: float
    coef: Array
    intercept: float
    scores: Array


def orthonormal(Kz: Array, rounding: float = 1e-13) -> Array:
    """T with φ_z(x) = T k(Z, x), one row for each direction of the span."""
    values, vectors = np.linalg.eigh((Kz + Kz.T) / 2.0)
    kept = values > rounding * max(values[-1], 0.0)
    return (vectors[:, kept] / np.sqrt(values[kept])).T


def features(Kz: Array, Kxz: Array, directions: Array | None = None) -> Array:
    """Rows φ_z(x_i); those of ``directions`` (s, m), coefficients of Z, are taken out of them."""
    T = orthonormal(Kz)
    F = Kxz @ T.T
    if directions is None:
        return F
    units = np.atleast_2d(directions) @ Kz @ T.T
    # The complement of the directions' rows: what is left of an orthonormal basis.
    complement = np.linalg.svd(units, full_matrices=True)[2][len(units) :]
    return F @ complement.T


def objective(
    F: Array, y: Array, C: float, weight: ArrayLike | None, coef: Array, intercept: float
) -> float:
    """½‖w‖² + ½b² + C Σ s max(0, 1 − y f)² of a linear machine on the features."""
    s = np.ones(len(y)) if weight is None else np.asarray(weight)
    slack = np.maximum(0.0, 1.0 - y * (F @ coef + intercept))
    return float(0.5 * coef @ coef + 0.5 * intercept**2 + C * (s * slack**2).sum())


def best_machine(F: Array, y: Array, C: float, weight: ArrayLike | None = None) -> Optimum:
    """The optimum on features, by Newton's method with bisection on every step's length.

    The answer proves itself: α = 2 C s ξ is feasible for the dual, whose value must be the same.
    """
    s = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=np.float64)
    G = np.hstack([F, np.ones((len(y), 1))])
    u = np.zeros(G.shape[1])

    def slope(u: Array, d: Array) -> float:
        slack = np.maximum(0.0, 1.0 - y * (G @ u))
        return float(d @ u - 2.0 * C * (s * y * slack) @ (G @ d))

    for _ in range(500):
        inside = y * (G @ u) < 1.0
        A = G[inside] * np.sqrt(2.0 * C * s[inside])[:, None]
        target = A.T @ (np.sqrt(2.0 * C * s) * y)[inside]
        new = np.linalg.solve(np.eye(len(u)) + A.T @ A, target)
        d = new - u
        if slope(new, d) > 0.0:
            low, high = 0.0, 1.0
            for _ in range(60):
                middle = 0.5 * (low + high)
                low, high = (low, middle) if slope(u + middle * d, d) > 0 else (middle, high)
            new = u + low * d
        done = np.linalg.norm(new - u) <= 1e-14 * (1.0 + np.linalg.norm(u))
        u = new
        if done:
            break
    value = objective(F, y, C, s, u[:-1], u[-1])
    alpha = 2.0 * C * s * np.maximum(0.0, 1.0 - y * (G @ u))
    norm2 = ((G.T @ (alpha * y)) ** 2).sum() + (alpha**2 / (2.0 * C * s)).sum()
    gap = value - alpha.sum() ** 2 / (2.0 * norm2)
    if gap > 1e-9 * value:
        raise RuntimeError(f"the optimum is known only to {gap / value:.1e}")
    return Optimum(value, u[:-1], float(u[-1]), G @ u)
