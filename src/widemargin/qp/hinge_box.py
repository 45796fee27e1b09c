"""The dual of the hinge-loss SVM whose hyperplane goes through the origin.

Kocsor, Kovács and Szepesvári, "Margin maximizing discriminant analysis" (MMDA), footnote 4: with
b = 0 the dual (4) loses its equality constraint,

    min ½ αᵀ Y K Y α − 1ᵀα,   0 ≤ α ≤ upper,

and Gauss–Seidel steps on one α at a time solve it (the Adatron; ``qp.sor``). With directions U that
w must avoid, γ without bounds stands beside α, as in (7): G = [[YKY, YV], [VᵀY, UᵀU]], V = ΦᵀU.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.loop import Deadline
from widemargin.qp.sor import solve_sor

# KKT residuals: of the first solution, and of the last.
_FIRST_TOL = 1e-2
_LAST_TOL = 1e-13
# Share of the largest K_ii below which a row is the origin up to rounding.
_AT_ORIGIN = 1e-14


@dataclass(frozen=True)
class HingeBox:
    """A solution of the dual, and the machine that it stands for.

    Attributes
    ----------
    alpha : ndarray of shape (n,)
        The dual variables, within their bounds.
    gamma : ndarray of shape (s,)
        Coefficients of the columns of U: w = ΦYα + Uγ.
    values : ndarray of shape (n,)
        wᵀφ(x) of the rows.
    primal, dual : float
        ½‖w‖² + Σ upper max(0, 1 − y wᵀφ), and the lower bound of it.
    """

    alpha: Vector
    gamma: Vector
    values: Vector
    primal: float
    dual: float


def solve_hinge_box(
    K: Matrix,
    sign: Vector,
    upper: Vector,
    *,
    projection: Matrix,
    gram: Matrix,
    tol: float,
    deadline: Deadline,
) -> HingeBox:
    """Solve the dual to a relative gap of `tol`, or as far as time and digits allow.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix without labels, positive semidefinite.
    sign : ndarray of shape (n,)
        Labels ±1.
    upper : ndarray of shape (n,)
        C times the weight of each row.
    projection : ndarray of shape (n, s)
        V = ΦᵀU, the rows projected on directions that w must be orthogonal to.
    gram : ndarray of shape (s, s)
        UᵀU, with a positive diagonal.
    tol : float
        Relative duality gap.
    deadline : Deadline
        The end of the time.
    """
    n, s = projection.shape
    across = sign[:, None] * projection
    G = np.block([[np.outer(sign, sign) * K, across], [across.T, gram]])
    diagonal = np.diagonal(K)
    at_origin = np.flatnonzero(diagonal <= _AT_ORIGIN * max(float(diagonal.max()), 0.0))
    # Such a row pays 1 whatever w is, and its α, which is in no product, goes to its bound.
    G[at_origin, :] = G[:, at_origin] = 0.0
    G[at_origin, at_origin] = np.finfo(float).tiny
    linear = np.append(np.ones(n), np.zeros(s))
    lower = np.append(np.zeros(n), np.full(s, -np.inf))
    most = np.append(upper, np.full(s, np.inf))
    start = np.append(np.zeros(n), np.zeros(s))
    start[at_origin] = upper[at_origin]
    residual_tol = _FIRST_TOL
    while True:
        solved = solve_sor(
            G, linear, lower=lower, upper=most, start=start, tol=residual_tol, deadline=deadline
        )
        start, alpha = solved.x, solved.x[:n]
        beta = sign * alpha
        # The best γ for this α; of dependent directions the shortest.
        best = np.linalg.lstsq(gram, projection.T @ beta, rcond=None)[0] if s else np.zeros(0)
        gamma = -np.asarray(best, dtype=np.float64)
        values = K @ beta + projection @ gamma
        norm2 = max(0.0, float(beta @ values))
        loss = float(upper @ np.maximum(0.0, 1.0 - sign * values))
        primal, dual = 0.5 * norm2 + loss, float(alpha.sum()) - 0.5 * norm2
        met = primal - dual <= tol * primal
        if met or residual_tol < _LAST_TOL or solved.residual > residual_tol or deadline.passed:
            return HingeBox(alpha, gamma, values, primal, dual)
        residual_tol *= 0.1
