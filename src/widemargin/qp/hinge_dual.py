"""The dual of the hinge-loss SVM with a free bias, and with directions that w must avoid.

Kocsor, Kovács and Szepesvári, "Margin maximizing discriminant analysis" (MMDA). The machine

    min ½‖w‖² + Σ upper_i ξ_i,   ξ_i ≥ 1 − y_i (wᵀφ_i + b),   ξ ≥ 0,   Uᵀw = 0,

(1) and, with U, (6), has the dual (4) and (7):

    min ½ (α, γ)ᵀ G (α, γ) − 1ᵀα,   yᵀα = 0,   0 ≤ α ≤ upper,   γ free,
    G = [[Y K Y, Y V], [Vᵀ Y, UᵀU]],   V = ΦᵀU,   w = ΦYα + Uγ.

(The paper writes −γ for our γ.) This is the *direct method* of its section 3.2: γ stays among the
variables, and K is not changed. All steps set γ to its optimum, which amounts to K − V (UᵀU)⁻¹ Vᵀ
in place of K, made row by row as needed; the steps are those of ``box_ascent``. The code works with
β = yα, whose sum is zero, and with the error y − f of f = wᵀφ: a row on its margin has the error b.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.loop import Deadline, relative_gap
from widemargin.qp.box_ascent import INTERIOR_ROUNDS, BoxAscent
from widemargin.qp.box_newton import BoxProblem

_EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class HingeDual:
    """A solution of the dual, with the machine that it stands for.

    Attributes
    ----------
    alpha : ndarray of shape (n,)
        The dual variables, within their bounds.
    gamma : ndarray of shape (s,)
        Coefficients of the columns of U: w = ΦYα + Uγ.
    intercept : float
        The bias: what the rows on the margin say, or the middle of the interval that the KKT
        conditions leave where no row is there. Far from the optimum, the one of least loss.
    primal, dual : float
        Values of the machine (1), and of the dual as a lower bound to it.
    gap : float
        (primal − dual) / primal.
    n_updates : int
        Pairs moved by sequential minimal optimisation.
    """

    alpha: Vector
    gamma: Vector
    intercept: float
    primal: float
    dual: float
    gap: float
    n_updates: int


def solve_hinge_dual(
    K: NDArray[Any],
    sign: Vector,
    upper: Vector,
    *,
    projection: NDArray[Any] | None = None,
    gram: NDArray[Any] | None = None,
    start: NDArray[Any] | None = None,
    tol: float = 1e-8,
    max_updates: int | None = None,
    factored: bool = False,
    interior_after: float = INTERIOR_ROUNDS,
    deadline: Deadline | None = None,
) -> HingeDual:
    """Solve the dual of the hinge-loss SVM with a free bias.

    Parameters
    ----------
    K : ndarray of shape (n, n) or wider
        Kernel matrix without labels, positive semidefinite, float32 or float64; C-contiguous, or
        it is copied. Columns beyond the square are not looked at.
    sign : ndarray of shape (n,)
        ±1; both must be there.
    upper : ndarray of shape (n,)
        C times the weight of each row. A row with 0 takes no part.
    projection : ndarray of shape (n, s), default=None
        V = ΦᵀU, the rows projected on directions that w must be orthogonal to.
    gram : ndarray of shape (s, s), default=None
        UᵀU; None says that the directions are orthonormal. It may be singular.
    start : ndarray of shape (n,), default=None
        α to start from; it is moved into the feasible set. None starts at zero.
    tol : float, default=1e-8
        Stop when the KKT conditions hold to this, relative to the margin (1) or to the range of
        wᵀφ, whichever is smaller, and so well that the gap is at most this; or at rounding.
    max_updates : int, default=None
        Pairs to move at the most; None allows 100 a row, at least 10^6. `gap` says how far it came.
    factored : bool, default=False
        K is F of shape (n, d) and stands for F Fᵀ, the linear kernel of its rows, which is never
        formed.
    interior_after : float, default=10
        Rounds of the interior-point method that pairs and Newton steps may cost before it is
        tried; infinite for never.
    deadline : Deadline, default=None
        When to stop all the same; an interrupt then brings it about.

    Returns
    -------
    HingeDual
        The point, its machine and its gap; never worse than `start`.

    Raises
    ------
    ValueError
        If the labels are not ±1 with both present, a bound is negative or infinite, or the shapes
        do not agree.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([-3.0, -1.0, 1.0, 4.0])
    >>> result = solve_hinge_dual(np.outer(x, x), np.sign(x), np.full(4, 10.0))
    >>> result.alpha.round(6).tolist(), round(result.intercept, 6)
    ([0.0, 0.5, 0.5, 0.0], 0.0)
    """
    problem = _Problem(K, sign, upper, projection, gram, factored)
    limit = max(100 * len(sign), 10**6) if max_updates is None else max_updates
    ascent = BoxAscent(problem.box, problem.feasible(start), tol, limit, interior_after)
    return problem.solved(ascent, deadline)


def polished(
    K: NDArray[Any],
    sign: Vector,
    upper: Vector,
    alpha: NDArray[Any],
    *,
    projection: NDArray[Any] | None = None,
    gram: NDArray[Any] | None = None,
    factored: bool = False,
    deadline: Deadline | None = None,
) -> HingeDual:
    """Turn an approximate solution into one that is exact to rounding.

    The α between their bounds and the bias solve a linear system in float64. Those that leave the
    box go to its edge and violators come in by pairs, until the KKT conditions hold or rounding
    ends it. Every step is checked by the dual that it gains, so a singular K is no harm.

    Parameters
    ----------
    K, sign, upper, projection, gram, factored, deadline
        As for `solve_hinge_dual`.
    alpha : ndarray of shape (n,)
        The approximate solution, as from scikit-learn's ``SVC(kernel="precomputed")``, which keeps
        kernel values in float32.

    Returns
    -------
    HingeDual
        Never worse than `alpha`. Its `n_updates` is 0 where the linear system alone was enough.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([-3.0, -1.0, 1.0, 4.0])
    >>> rough = np.array([0.0, 0.4, 0.4, 0.0])
    >>> polished(np.outer(x, x), np.sign(x), np.full(4, 10.0), rough).alpha.round(12).tolist()
    [0.0, 0.5, 0.5, 0.0]
    """
    problem = _Problem(K, sign, upper, projection, gram, factored)
    limit = max(100 * len(sign), 10**6)
    ascent = BoxAscent(problem.box, problem.feasible(alpha), 1e-13, limit, newton_first=True)
    return problem.solved(ascent, deadline)


class _Problem:
    """The dual in β, and the way back from it."""

    def __init__(
        self,
        K: NDArray[Any],
        sign: Vector,
        upper: Vector,
        projection: NDArray[Any] | None,
        gram: NDArray[Any] | None,
        factored: bool,
    ) -> None:
        self.sign, self.bound = _checked(K, sign, upper, factored)
        n = len(self.sign)
        K = np.asarray(K)
        K = K if K.dtype in (np.float32, np.float64) else K.astype(np.float64)
        V = np.zeros((n, 0)) if projection is None else np.asarray(projection, dtype=np.float64)
        if V.ndim != 2 or len(V) != n:
            raise ValueError(f"projection has the shape {V.shape}; give ({n}, s), a row of K each.")
        self.whiten = _inverse_root(gram, V.shape[1])
        self.box = BoxProblem(
            np.ascontiguousarray(K),
            np.ascontiguousarray((V @ self.whiten).T),
            self.sign,
            np.where(self.sign > 0, 0.0, -self.bound),
            np.where(self.sign > 0, self.bound, 0.0),
            factored,
        )

    def feasible(self, alpha: NDArray[Any] | None) -> Vector:
        """Return β near yα in the feasible set."""
        n = len(self.sign)
        if alpha is None:
            return np.zeros(n)
        given = np.asarray(alpha, dtype=np.float64)
        if given.shape != (n,) or not np.isfinite(given).all():
            raise ValueError(f"the α to start from must be {n} finite numbers, one for each row.")
        # What is at a bound but for rounding is meant to be there.
        given = np.where(given > 4.0 * _EPS * self.bound, given, 0.0)
        given = np.where(given < (1.0 - 4.0 * _EPS) * self.bound, given, self.bound)
        return self.box.balanced(self.sign * given)

    def solution(self, beta: Vector, n_updates: int) -> HingeDual:
        """Return the point with its machine."""
        error = self.box.error(beta)
        norm2 = max(float(beta @ (self.sign - error)), 0.0)
        primal, intercept = np.inf, 0.0
        for b in (0.5 * sum(self.box.between(beta, error)), self._least_loss(error)):
            value = 0.5 * norm2 + float(self.bound @ np.maximum(self.sign * (error - b), 0.0))
            # The second only where it is better by more than rounding.
            if value < primal * (1.0 - 1e-13):
                primal, intercept = value, b
        dual = float(self.sign @ beta) - 0.5 * norm2
        gamma = -self.whiten @ (self.box.part @ beta)
        gap = relative_gap(primal, dual)
        return HingeDual(np.abs(beta), gamma, intercept, primal, dual, gap, n_updates)

    def solved(self, ascent: BoxAscent, deadline: Deadline | None) -> HingeDual:
        """Return the point of an ascent with the smallest gap, perhaps not the last.

        Gaps below 1e-13 are rounding and count as equal; then it is the last one.
        """
        start = ascent.beta
        found = (*ascent.run(deadline), start)
        points = [self.solution(each, ascent.n_updates) for each in found]
        return min(points, key=lambda point: max(point.gap, 1e-13))

    def _least_loss(self, error: Vector) -> float:
        """Return the bias with the least loss: a weighted median of the errors."""
        order = np.argsort(error)
        passed = np.cumsum(self.bound[order])
        k = int(np.searchsorted(passed, float(self.bound[self.sign > 0].sum())))
        return float(error[order[min(k, len(order) - 1)]])


def _checked(K: NDArray[Any], sign: Vector, upper: Vector, factored: bool) -> tuple[Vector, Vector]:
    """Return the labels and the bounds in float64, or raise."""
    sign = np.ascontiguousarray(sign, dtype=np.float64)
    n = len(sign)
    least = 0 if factored else n
    if np.ndim(K) != 2 or K.shape[0] != n or K.shape[1] < least:
        raise ValueError(f"K has the shape {np.shape(K)}; give ({n}, {n}), a row for each sign.")
    upper = np.asarray(upper, dtype=np.float64)
    if upper.shape != (n,):
        raise ValueError(f"upper has the shape {upper.shape}; give ({n},), C times the weights.")
    if not (np.isfinite(upper) & (upper >= 0)).all():
        raise ValueError("upper must be finite and not negative; use a large C for a hard margin.")
    if not (np.abs(sign) == 1.0).all():
        raise ValueError("sign must hold only +1 and -1.")
    for side, name in ((1.0, "+1"), (-1.0, "-1")):
        if not (upper[sign == side] > 0).any():
            raise ValueError(
                f"no row with sign {name} has a positive upper bound: a free bias needs rows of "
                "both classes; add some of the other class, or drop this problem."
            )
    looked_at = K if factored else K[:, :n]
    if not np.isfinite(looked_at.sum(dtype=np.float64)):
        raise ValueError("K holds values that are not finite; remove or replace such rows.")
    return sign, upper


def _inverse_root(gram: NDArray[Any] | None, s: int) -> Vector:
    """Return R of shape (s, rank) with R Rᵀ = (UᵀU)⁺, so that U R is orthonormal."""
    if gram is None:
        return np.eye(s)
    gram = np.asarray(gram, dtype=np.float64)
    if gram.shape != (s, s):
        raise ValueError(f"gram has the shape {gram.shape}; give ({s}, {s}), as projection has.")
    if s == 0:
        return np.eye(0)
    length = np.sqrt(np.maximum(np.diagonal(gram), 0.0))
    # Directions of length 1 first: a short one is not a dependent one.
    scale = np.divide(1.0, length, out=np.zeros(s), where=length > 0)
    values, vectors = np.linalg.eigh(scale[:, None] * gram * scale)
    kept = values > 1e-12 * values[-1]
    root: Vector = scale[:, None] * vectors[:, kept] / np.sqrt(values[kept])
    return root
