"""The dual of the L2-SVM on a kernel matrix that many problems share.

    min ½ αᵀQα − aᵀα,  α ≥ 0,   Q_ij = y_i y_j (K_ij + 1) + δ_ij ridge_i,   ridge_i = 1/(2C s_i).

K carries no labels, so that all one-vs-rest problems use one matrix, in float32 or float64. a is 1
for the problem itself, and less where other rows, whose α stay what they are, have done their part.

Few rows are active, so the problem is solved on a working set, the support and the worst violators,
whose values are gathered into a small matrix of their own; then one product with K shows the next
violators. On the working set two methods take turns. Greedy coordinate ascent
(``margin_loops.ascend``) costs one row an update and finds the support fast unless C is large; the
active-set method (``active_set``) is exact and does not mind a large C, but wants a small guess of
the support. So coordinate ascent runs until it has cost as much as a few factorisations would;
then they take over.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.loop import Deadline, relative_gap
from widemargin.qp.active_set import solve_nonnegative
from widemargin.threads import Compiled

loops = Compiled("widemargin.qp.margin_loops")

# Coordinate updates between two looks at the gap.
_UPDATES = 512
# What a floating-point operation inside a factorisation costs, relative to one of a coordinate
# update: the former runs from cache in BLAS, the latter streams a row of K.
_BLAS_ADVANTAGE = 30.0
# Coordinate ascent may cost as much as this many factorisations before they take over.
_TURNS = 3.0


@dataclass(frozen=True)
class WorkingSets:
    """How large working sets are: rows of the first, and how many join at the least."""

    first: int = 768
    least: int = 128


_USUAL = WorkingSets()


@dataclass
class MarginDual:
    """A point of one dual problem, kept with what follows from it.

    Attributes
    ----------
    K : ndarray of shape (n, n) or wider
        Kernel matrix without labels; columns beyond the square are not looked at.
    sign : ndarray of shape (n,)
        Labels ±1, as float64.
    ridge : ndarray of shape (n,)
        1 / (2 C s).
    alpha : ndarray of shape (n,)
        The dual variables.
    residual : ndarray of shape (n,)
        a − Qα: how far each row is inside its margin.
    linear : ndarray of shape (n,) or None
        a, the margin that each row should have; None for 1.
    """

    K: NDArray[Any]
    sign: Vector
    ridge: Vector
    alpha: Vector
    residual: Vector
    linear: Vector | None = None

    @classmethod
    def at(
        cls,
        K: NDArray[Any],
        sign: Vector,
        ridge: Vector,
        alpha: Vector | None = None,
        linear: Vector | None = None,
    ) -> MarginDual:
        """Return the problem at `alpha` (zero if None); `alpha` is copied."""
        residual = np.ones(len(sign)) if linear is None else np.array(linear, dtype=np.float64)
        point = cls(K, sign, ridge, np.zeros(len(sign)), residual, linear)
        if alpha is not None and alpha.any():
            point.move_to(alpha)
        return point

    def move_to(self, alpha: Vector) -> None:
        """Set α and compute the residual from scratch."""
        support = np.flatnonzero(alpha)
        beta = (alpha * self.sign)[support]
        product = loops.combine(self.K, support, beta) + beta.sum()
        self.alpha = np.array(alpha)
        self.residual = self._asked - self.sign * product - self.ridge * alpha

    def restricted_to(self, index: NDArray[np.intp]) -> MarginDual:
        """Return the problem on some rows that include the support, with values of its own."""
        return MarginDual(
            loops.gather(self.K, index),
            self.sign[index],
            self.ridge[index],
            self.alpha[index],
            self.residual[index],
            None if self.linear is None else self.linear[index],
        )

    @property
    def _asked(self) -> Vector | float:
        """a, the margin that each row should have."""
        return 1.0 if self.linear is None else self.linear

    def margin(self) -> Vector:
        """Return y f of every row."""
        return self._asked - self.residual - self.ridge * self.alpha

    def objectives(self) -> tuple[float, float]:
        """Return the primal and the dual value, over the rows of K."""
        margin = self.margin()
        slack = np.maximum(0.0, self._asked - margin)
        norm2 = float(self.alpha @ margin)
        primal = 0.5 * norm2 + 0.5 * float((slack * slack / self.ridge).sum())
        # In this order: α² may vanish where α does not.
        spread = float((self.alpha * (self.alpha * self.ridge)).sum())
        return primal, float((self._asked * self.alpha).sum()) - 0.5 * (norm2 + spread)

    def gap(self) -> float:
        """Return the relative duality gap."""
        return relative_gap(*self.objectives())

    def kkt_residual(self) -> float:
        """Return the largest violation of the KKT conditions."""
        violation = np.where(self.alpha > 0, np.abs(self.residual), np.maximum(self.residual, 0))
        return float(violation.max(initial=0.0))

    def solved(self, gap: float, tol: float) -> bool:
        """Return whether the gap or the KKT residual is small enough."""
        return self.gap() <= gap or self.kkt_residual() <= tol


def solve_margin_dual(
    K: NDArray[Any],
    sign: Vector,
    ridge: Vector,
    *,
    linear: Vector | None = None,
    start: Vector | None = None,
    gap: float = 0.0,
    tol: float = 1e-10,
    max_rounds: int = 200,
    sets: WorkingSets = _USUAL,
    deadline: Deadline | None = None,
) -> MarginDual:
    """Solve the dual of the L2-SVM on K.

    Parameters
    ----------
    K : ndarray of shape (n, n) or wider
        Kernel matrix, float32 or float64, C-contiguous for speed.
    sign : ndarray of shape (n,)
        ±1.
    ridge : ndarray of shape (n,)
        1 / (2 C s), positive.
    linear : ndarray of shape (n,), default=None
        a; None for 1.
    start : ndarray of shape (n,), default=None
        Where to start.
    gap : float, default=0
        Stop when the relative duality gap is at most this,
    tol : float, default=1e-10
        or when the KKT residual is.
    max_rounds : int, default=200
        Rounds of working sets at the most.
    sets : WorkingSets, optional
        How large they are.
    deadline : Deadline, default=None
        When to stop all the same; an interrupt then brings it about.

    Returns
    -------
    MarginDual
        The problem at its solution.
    """
    point = MarginDual.at(K, sign, ridge, start, linear)
    for _ in range(max_rounds):
        if deadline is not None and deadline.passed:
            break
        with nullcontext() if deadline is None else deadline.ends_on_interrupt():
            if point.solved(gap, tol):
                break
            after = next_round(point, gap, tol, sets, deadline)
            if np.array_equal(after.alpha, point.alpha):
                break
            point = after
    return point


def next_round(
    point: MarginDual,
    gap: float,
    tol: float,
    sets: WorkingSets = _USUAL,
    deadline: Deadline | None = None,
) -> MarginDual:
    """Return the point after one working set; `point` stays as it is.

    Parameters
    ----------
    point : MarginDual
        Where the solution stands.
    gap, tol : float
        What it is to reach.
    sets : WorkingSets, optional
        How large working sets are.
    deadline : Deadline, default=None
        When to leave it at what is done.
    """
    index = _working_set(point, sets)
    after = replace(point, alpha=point.alpha.copy(), residual=point.residual.copy())
    if 2 * len(index) > len(point.sign):
        # A matrix of its own would not be much smaller than K.
        solve_all_rows(after, gap, tol, deadline)
        after.move_to(after.alpha)
        return after
    inner = point.restricted_to(index)
    # Far from the end a rough answer shows the next violators as well.
    solve_all_rows(inner, max(0.5 * gap, 0.02 * point.gap()), tol, deadline)
    alpha = np.zeros(len(point.sign))
    alpha[index] = inner.alpha
    after.move_to(alpha)
    return after


def _working_set(point: MarginDual, sets: WorkingSets) -> NDArray[np.intp]:
    """Return the support and as many of the worst violators, in ascending order."""
    support = np.flatnonzero(point.alpha)
    n = len(point.alpha)
    if not len(support):
        # Rows come in the order of a hash: the first ones are a random sample, to which the worst
        # say nothing yet. Both signs must be there.
        half = sets.first // 2
        first = [np.flatnonzero(point.sign == side)[:half] for side in (-1.0, 1.0)]
        return np.unique(np.concatenate([np.arange(min(n, half)), *first]))
    return np.union1d(support, worst_violators(point, max(sets.least, len(support))))


def worst_violators(point: MarginDual, count: int) -> NDArray[np.intp]:
    """Return rows with α = 0 that violate their margin most, `count` at the most."""
    violators = np.flatnonzero((point.alpha <= 0) & (point.residual > 0))
    if len(violators) > count:
        worst = np.argpartition(-point.residual[violators], count - 1)[:count]
        violators = violators[worst]
    return violators


def solve_all_rows(
    point: MarginDual, gap: float, tol: float, deadline: Deadline | None = None
) -> None:
    """Solve a problem on all of its rows, in place: coordinate ascent, then the active set."""
    K, sign, ridge = point.K, point.sign, point.ridge
    diagonal = np.diagonal(K).astype(np.float64) + 1.0 + ridge
    n, spent = len(sign), 0
    while True:
        updates = loops.ascend(K, sign, ridge, diagonal, point.alpha, point.residual, tol, _UPDATES)
        spent += updates
        if point.solved(gap, tol) or (deadline is not None and deadline.passed):
            return
        support = int(np.count_nonzero(point.alpha))
        factorisation = support**3 / 3 / _BLAS_ADVANTAGE + support * n + support**2
        # Fewer updates than asked for: float32, in which it chooses, sees nothing more to gain.
        if updates < _UPDATES or spent * n > _TURNS * factorisation:
            break
    index = np.flatnonzero((point.alpha > 0) | (point.residual > 0))
    # In place: a copy more of a large matrix would break the memory budget.
    Q = loops.gather(K, index).astype(np.float64, copy=False)
    Q += 1.0
    Q *= sign[index, None]
    Q *= sign[index]
    Q[np.diag_indices(len(index))] += ridge[index]
    linear = None if point.linear is None else point.linear[index]
    alpha = np.zeros(n)
    alpha[index] = solve_nonnegative(Q, linear, start=point.alpha[index], deadline=deadline).x
    point.move_to(alpha)
