"""The dual of machines whose loss is zero on an interval and linear outside it.

    min ½‖u‖² + ½ρb² + g b + Σ_i max(0, q_i (l_i − f_i), p_i (f_i − h_i)),     f_i = φ_iᵀu + b,

with l ≤ h, slopes q, p ≥ 0, and ρ = 0 (a free bias), 1, or infinite (no bias). Cases:

* ε-insensitive regression (Vapnik 1995; ``SVR``): l = y − ε, h = y + ε, q = p = C;
* quantile regression (Takeuchi, Le, Sears and Smola 2006): l = h = y, q = Cτ, p = C(1 − τ);
* the ν-one-class machine (Schölkopf et al. 2001; ``OneClassSVM``), b = −offset: l = h = 0, q = 1,
  p = 0, g = ν n;
* the hinge: l = 1 for the class +1 (p = 0), h = −1 for the class −1 (q = 0).

The dual, with u = Σ β_i φ_i, is

    max Σ (l_i β_i⁺ − h_i β_i⁻) − ½ βᵀKβ,   −p ≤ β ≤ q,   Σβ = g   (ρ = 0),

and for ρ = 1 there is −½ (Σβ − g)² in the place of the sum; without a bias there is nothing. It is
a ``box_newton.BoxProblem`` with a = (l + h)/2 and the width (h − l)/2, solved as every one
(``box_ascent``). But for ρ = 0 one more variable without bounds, whose row of K is zero, takes up
what the sum is short of.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.loop import Deadline, signed_gap
from widemargin.qp.box_ascent import INTERIOR_ROUNDS, BoxAscent
from widemargin.qp.box_newton import BoxProblem

# Gaps below this are rounding.
_SAME_GAP = 1e-13


@dataclass(frozen=True)
class IntervalDual:
    """A solution of the dual, with the machine that it stands for.

    Attributes
    ----------
    beta : ndarray of shape (n,)
        Coefficients of the rows, within their bounds.
    intercept : float
        The bias b.
    primal, dual : float
        Values of the machine, and of the dual as a lower bound to it.
    gap : float
        primal − dual, relative to the larger modulus of both.
    n_updates : int
        Pairs moved by sequential minimal optimisation.
    """

    beta: Vector
    intercept: float
    primal: float
    dual: float
    gap: float
    n_updates: int


def solve_interval_dual(
    K: NDArray[Any],
    low: Vector,
    high: Vector,
    below: Vector,
    above: Vector,
    *,
    pull: float = 0.0,
    bias: str = "free",
    start: NDArray[Any] | None = None,
    tol: float = 1e-8,
    max_updates: int | None = None,
    factored: bool = False,
    interior_after: float = INTERIOR_ROUNDS,
    deadline: Deadline | None = None,
) -> IntervalDual:
    """Solve the dual on a kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel matrix, positive semidefinite, float32 or float64; C-contiguous, or it is copied. It
        is copied, too, where the bias is not free.
    low, high : ndarray of shape (n,)
        Ends l ≤ h of the intervals. Where a slope is zero its end does not matter.
    below, above : ndarray of shape (n,)
        Slopes q and p of the loss below and above the interval, not negative.
    pull : float, default=0.0
        g, the price of the bias.
    bias : {"free", "priced", "none"}, default="free"
        ρ: 0, 1 or infinite.
    start : ndarray of shape (n,), default=None
        β to start from; it is moved into the feasible set.
    tol : float, default=1e-8
        Stop when the gap is at most this, or at rounding.
    max_updates : int, default=None
        Pairs to move at the most; None allows 100 a row, at least 10^6.
    factored : bool, default=False
        K is F of shape (n, d) and stands for F Fᵀ, which is never formed; the bias must be free.
    interior_after : float, default=10
        Rounds of the interior-point method that pairs and Newton steps may cost before it is
        tried; infinite for never.
    deadline : Deadline, default=None
        When to stop all the same; an interrupt then brings it about.

    Returns
    -------
    IntervalDual
        The point, its machine and its gap.

    Raises
    ------
    ValueError
        If the shapes do not agree, an interval or a slope is not what it should be, or no bias
        makes the objective finite.

    Examples
    --------
    >>> import numpy as np
    >>> x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 5.0])
    >>> ones = np.ones(3)
    >>> found = solve_interval_dual(np.outer(x, x), y - 0.5, y + 0.5, ones, ones)
    >>> found.beta.round(6).tolist(), round(found.intercept, 6)
    ([0.0, -1.0, 1.0], 0.5)
    """
    machine = _Machine(K, low, high, below, above, pull, bias, factored)
    limit = max(100 * machine.n, 10**6) if max_updates is None else max_updates
    ascent = BoxAscent(
        machine.box,
        machine.feasible(start),
        tol,
        limit,
        interior_after,
        margin=np.inf,
        enough=lambda beta, error: machine.solution(beta, error, 0).gap <= tol,
    )
    first = ascent.beta
    found = (*ascent.run(deadline), first)
    error = machine.box.error
    points = [machine.solution(beta, error(beta), ascent.n_updates) for beta in found]
    return min(points, key=lambda point: max(point.gap, _SAME_GAP))


class _Machine:
    """The dual as a program with a box, and the way back from it."""

    def __init__(
        self,
        K: NDArray[Any],
        low: Vector,
        high: Vector,
        below: Vector,
        above: Vector,
        pull: float,
        bias: str,
        factored: bool,
    ) -> None:
        self.priced, free_bias = bias == "priced", bias == "free"
        self.n, self.pull, self.free_bias = len(low), float(pull), free_bias
        if factored and not free_bias:
            raise ValueError("factored=True needs bias='free'; give K itself.")
        self.low, self.high, self.below, self.above = _checked(K, low, high, below, above, factored)
        if free_bias and not -self.above.sum() <= pull <= self.below.sum() * (1 + 1e-12):
            raise ValueError(
                f"pull={pull:g} is not between {-self.above.sum():g} and {self.below.sum():g}, the "
                "sums of the slopes: no bias is the best one. Give larger slopes."
            )
        middle, width = 0.5 * (self.low + self.high), 0.5 * (self.high - self.low)
        K = np.asarray(K)
        K = K if K.dtype in (np.float32, np.float64) else K.astype(np.float64)
        lower, upper = -self.above, self.below
        if not free_bias:
            bordered = np.zeros((self.n + 1, self.n + 1), dtype=K.dtype)
            bordered[: self.n, : self.n] = K[:, : self.n]
            bordered[: self.n, : self.n] += float(self.priced)
            # Without bounds, for more than all others together is never needed.
            room = float(lower.sum() - upper.sum())
            K, lower, upper = bordered, np.append(lower, room), np.append(upper, -room)
            middle, width = np.append(middle + self.priced * pull, 0.0), np.append(width, 0.0)
        self.box = BoxProblem(
            np.ascontiguousarray(K),
            np.zeros((0, len(middle))),
            middle,
            lower,
            upper,
            factored,
            total=self.pull if free_bias else 0.0,
            width=width,
        )

    def feasible(self, start: NDArray[Any] | None) -> Vector:
        """Return β near a start in the feasible set; without one, a good guess."""
        n = self.n
        if start is None:
            return self._guess()
        given = np.asarray(start, dtype=np.float64)
        if given.shape != (n,) or not np.isfinite(given).all():
            raise ValueError(f"the β to start from must be {n} finite numbers, one for each row.")
        return self._completed(np.clip(given, -self.above, self.below))

    def _completed(self, beta: Vector) -> Vector:
        if not self.free_bias:
            return np.append(beta, -beta.sum())
        return self.box.balanced(beta)

    def _guess(self) -> Vector:
        """Return zero; if the sum must be another, rows far from all others make up for it."""
        beta, missing = np.zeros(self.n), abs(self.pull)
        if not self.free_bias or not missing:
            return self._completed(beta)
        room = self.below if self.pull > 0 else self.above
        near = self.box.product(room)
        order = np.argsort(near if self.pull > 0 else -near, kind="stable")
        filled = np.cumsum(room[order])
        part = np.clip(room[order] - (filled - missing), 0.0, room[order])
        beta[order] = np.copysign(part, self.pull)
        return self._completed(beta)

    def solution(self, beta: Vector, error: Vector, n_updates: int) -> IntervalDual:
        """Return the machine of a point, given a − Kβ."""
        kept = beta[: self.n]
        if self.free_bias:
            scores = self.box.linear - error
            norm2 = max(float(kept @ scores), 0.0)
            dual = self.box.value(beta, error)
            b = best_bias(scores, self.low, self.high, self.below, self.above, self.pull)
            primal = 0.5 * norm2 + self.pull * b
        else:
            # The matrix holds the bias, and a the pull.
            b = float(kept.sum()) - self.pull if self.priced else 0.0
            scores = (self.box.linear - error)[: self.n] - self.priced * float(kept.sum())
            norm2 = max(float(kept @ scores), 0.0)
            linear = float(self.low @ np.maximum(kept, 0.0) - self.high @ np.maximum(-kept, 0.0))
            dual = linear - 0.5 * norm2 - 0.5 * b * b
            primal = 0.5 * norm2 + 0.5 * b * b + self.pull * b
        primal += self.loss(scores + b)
        return IntervalDual(kept, b, primal, dual, signed_gap(primal, dual), n_updates)

    def loss(self, values: Vector) -> float:
        """Return the loss of the rows."""
        under, over = np.maximum(self.low - values, 0.0), np.maximum(values - self.high, 0.0)
        return float(self.below @ under + self.above @ over)


def best_bias(
    scores: Vector, low: Vector, high: Vector, below: Vector, above: Vector, pull: float
) -> float:
    """Return the bias of least loss, the middle of the best ones where they are an interval.

    The slope of the objective in b is a staircase: it rises by q where b passes l − f, and by
    p where it passes h − f.

    Parameters
    ----------
    scores : ndarray of shape (n,)
        Values without a bias.
    low, high, below, above, pull
        As for `solve_interval_dual`, ends finite.
    """
    at = np.concatenate([low - scores, high - scores])
    rise = np.concatenate([below, above])
    at, rise = at[rise > 0], rise[rise > 0]
    if not len(at):
        return 0.0
    order = np.argsort(at)
    at, slope = at[order], pull - float(below.sum()) + np.cumsum(rise[order])
    # Slopes of this size are rounding of zero.
    rounding = 1e-12 * float(rise.sum())
    first = min(int(np.searchsorted(slope, -rounding)), len(at) - 1)
    last = min(int(np.searchsorted(slope, rounding, side="right")), len(at) - 1)
    return 0.5 * float(at[first] + at[last])


def _checked(
    K: NDArray[Any], low: Vector, high: Vector, below: Vector, above: Vector, factored: bool
) -> tuple[Vector, Vector, Vector, Vector]:
    """Return ends and slopes in float64, or raise."""
    names = ("low", "high", "below", "above")
    given = [np.ascontiguousarray(each, dtype=np.float64) for each in (low, high, below, above)]
    n = len(given[0])
    least = 0 if factored else n
    if np.ndim(K) != 2 or K.shape[0] != n or K.shape[1] < least:
        raise ValueError(
            f"K has the shape {np.shape(K)}; give ({n}, {n}), a row for each interval."
        )
    for name, each in zip(names, given, strict=True):
        if each.shape != (n,):
            raise ValueError(f"{name} has the shape {each.shape}; give ({n},).")
    low, high, below, above = given
    for name, slope in (("below", below), ("above", above)):
        if not (np.isfinite(slope) & (slope >= 0)).all():
            raise ValueError(f"{name} must be finite and not negative.")
    # An end beyond which nothing is paid may lie anywhere: here, at the other one.
    low = np.where(below > 0, low, np.where(above > 0, high, 0.0))
    high = np.where(above > 0, high, low)
    if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
        raise ValueError("low and high must be finite with low <= high in every row.")
    looked_at = K if factored else K[:, :n]
    if not np.isfinite(looked_at.sum(dtype=np.float64)):
        raise ValueError("K holds values that are not finite; remove or replace such rows.")
    return low, high, below, above
