"""A quadratic program on the simplex: the smallest ball around a few points.

    min  αᵀKα − dᵀα,   α ≥ 0,   Σα = 1.

With K the kernel matrix of the points and d its diagonal, this is the dual of the smallest
enclosing ball (BVM (1)): the centre is Σ αφ, and −(αᵀKα − dᵀα) its squared radius.

How: an active-set method in the manner of Fischer, Gärtner and Kutz ("Fast smallest-enclosing-ball
computation in high dimensions", ESA 2003). The point outside that is farthest joins the support;
the centre walks to the best one of the support, and a point whose share would become negative
leaves on the way. Where the points of the support are affinely dependent there is a direction in
which the objective falls and the centre stands still: the walk goes along it until a point leaves.
Each walk lowers the objective, so that no support comes twice.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.loop import Deadline

# A pivot of the Cholesky factor, or an eigenvalue, that is rounding beside the largest.
_DEPENDENT = 1e-11
# Walks at the most, for each point.
_WALKS = 50


@dataclass(frozen=True)
class SimplexPoint:
    """A point of the program and what follows from it.

    Attributes
    ----------
    alpha : ndarray of shape (m,)
        Shares: not negative, of sum one.
    value : float
        dᵀα − αᵀKα, the dual's value.
    slope : ndarray of shape (m,)
        d − 2Kα: of a ball, the squared distances from the centre less ‖c‖².
    """

    alpha: Vector
    value: float
    slope: Vector

    @classmethod
    def at(cls, K: Matrix, d: Vector, alpha: Vector) -> SimplexPoint:
        """Return the point at given shares."""
        product = K @ alpha
        return cls(alpha, float(alpha @ (d - product)), d - 2.0 * product)

    def violation(self) -> float:
        """Return by how much the largest slope exceeds the average, which it equals at the best."""
        return float(self.slope.max() - self.alpha @ self.slope)


def solve_simplex(
    K: Matrix,
    d: Vector,
    *,
    start: Vector | None = None,
    tol: float = 1e-10,
    deadline: Deadline | None = None,
) -> SimplexPoint:
    """Solve the program on K.

    Parameters
    ----------
    K : ndarray of shape (m, m)
        Symmetric and positive semidefinite.
    d : ndarray of shape (m,)
        The linear term.
    start : ndarray of shape (m,), default=None
        Shares to start from; None begins with the point of the largest d.
    tol : float, default=1e-10
        Violation to stop at, as a share of the value.
    deadline : Deadline, default=None
        When to be content with what there is.

    Returns
    -------
    SimplexPoint
        The solution.
    """
    alpha = np.zeros(len(d))
    if start is None or not start.any():
        alpha[int(np.argmax(d))] = 1.0
    else:
        alpha = np.maximum(start, 0.0) / np.maximum(start, 0.0).sum()
    point, best = SimplexPoint.at(K, d, alpha), -np.inf
    noise = 64.0 * np.finfo(float).eps * float(np.abs(d).max(initial=0.0))
    support = np.flatnonzero(alpha)
    for _ in range(_WALKS * len(d)):
        alpha = _walked(K, point, support, deadline)
        point = SimplexPoint.at(K, d, alpha)
        stuck = point.value <= best
        best = max(best, point.value)
        small = point.violation() <= max(tol * point.value, noise)
        if small or stuck or (deadline is not None and deadline.passed):
            break
        support = np.union1d(np.flatnonzero(alpha), [int(np.argmax(point.slope))])
    return point


def _walked(
    K: Matrix, point: SimplexPoint, support: IndexArray, deadline: Deadline | None
) -> Vector:
    """Return the best shares of a support, or of those of its points that do not leave."""
    alpha, slope = point.alpha.copy(), point.slope.copy()
    while len(support) > 1 and not (deadline is not None and deadline.passed):
        step, length = _direction(K, alpha, slope, support)
        falls = np.flatnonzero(step < 0.0)
        room = -alpha[support[falls]] / step[falls]
        most = float(room.min(initial=np.inf))
        if not np.isfinite(min(length, most)):
            break
        taken = min(length, most)
        before = slope[support]
        alpha[support] = np.maximum(alpha[support] + taken * step, 0.0)
        slope = slope - 2.0 * taken * (K[:, support] @ step)
        if length <= most or float(before @ step) <= 0.0:
            break
        leaving = falls[room <= most]
        alpha[support[leaving]] = 0.0
        support = np.delete(support, leaving)
    return np.asarray(alpha / alpha.sum())


def _direction(
    K: Matrix, alpha: Vector, slope: Vector, support: IndexArray
) -> tuple[Vector, float]:
    """Return where the shares of a support go, and how many times that: 1, or without end.

    Shares are written about the point with the largest, so that those of the others are free.
    """
    base = int(np.argmax(alpha[support]))
    others = np.delete(np.arange(len(support)), base)
    index, root = support[others], support[base]
    cross = K[index, root]
    G = K[np.ix_(index, index)] - cross[:, None] - cross[None, :] + K[root, root]
    wanted = 0.5 * (slope[index] - slope[root])
    step, length = np.zeros(len(support)), 1.0
    found = _newton(G, wanted)
    if found is None:
        values, vectors = eigh(G)
        flat = values <= _DEPENDENT * max(float(values[-1]), np.finfo(float).tiny)
        along = vectors.T @ wanted
        lost = float(np.linalg.norm(along[flat]))
        if lost > 1e-9 * max(float(np.linalg.norm(along)), np.finfo(float).tiny):
            found, length = vectors[:, flat] @ along[flat], np.inf
        else:
            found = vectors[:, ~flat] @ (along[~flat] / values[~flat])
    step[others] = found
    step[base] = -found.sum()
    return step, length


def _newton(G: Matrix, wanted: Vector) -> Vector | None:
    """Return the solution of Gx = wanted, or None where G is as good as singular."""
    try:
        factor = cho_factor(G, lower=True)
    except LinAlgError:
        return None
    pivots = np.diag(factor[0]) ** 2
    if float(pivots.min()) <= _DEPENDENT * float(np.diag(G).max()):
        return None
    return np.asarray(cho_solve(factor, wanted))
