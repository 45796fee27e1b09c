"""The small machine on a device, of many rows: one L2-SVM by Newton's method on its primal.

As in ``margin_batch``: with the rows A = {y f < 1} inside the margin, the minimum of the present
quadratic piece is

    (K_AA + 1 + diag(ridge_A)) β_A = y_A,        β = 0 elsewhere,

and the step towards it is as long as is best, where a whole one is not good enough. Here only the
rows of A are factorised, which are few of many, and the first point is the machine of a part of the
rows. The matrix that is to be factorised also has the dual of the present point, α = ξ / ridge
times the best factor, so that a round begins with what is proved. Where A is large and the ridge
too, conjugate gradients solve the system; ξ / ridge enlarges what they leave, so that the
coefficients themselves, as far as they have the right sign, are the dual point.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.device import Array, Device, to_numpy
from widemargin.device.in_place import (
    add_to_diagonal,
    cholesky,
    scattered,
    solve_lower,
    solve_upper,
    square_of,
)
from widemargin.loop import Deadline, relative_gap
from widemargin.qp.margin_batch import step_length

# Rounds at the most,
_ROUNDS = 100
# and rounds with little progress after which there is none.
_SLOW = 5
# A round that leaves more than this of the gap is slow, if the objective does not fall either,
_PROGRESS = 0.9
# by more than so many roundings.
_ROUNDINGS = 64
# The part of the gap that is asked for at which only rounding can be what is left,
_NOTHING_LEFT = 0.25
# and how many times as large as it rounding must be to end the rounds: it falls a little.
_HOPELESS = 2.0
# The part of what is between the objective and its bound that a whole step must take off, not to
# be cut to its best length.
_ENOUGH = 0.1
# Rows inside the margin from which conjugate gradients take the place of factors, if
_MOST_FACTORED = 6000
# ridge is at least this, relative to k(x, x) + 1: few steps are enough then.
_EASY_RIDGE = 0.05
# Steps of theirs at the most; one in how many looks at the residual;
_STEPS = 200
_LOOK = 4
# and what they may leave of the gap that there is, or of that which is asked for.
_OF_THE_GAP = 0.02
_OF_TOL = 0.1
# Rows from which the machine of a part of them comes first, and one in how many these are.
_WORTH_A_START = 2000
_ONE_IN = 8
# The gap of that machine.
_START_TOL = 0.05


@dataclass(frozen=True)
class Square:
    """Kernel values among some rows, in a matrix that may have more.

    Attributes
    ----------
    device : Device
        Where it is.
    values : array of shape (N, N)
        The matrix.
    parts : tuple of slice
        Where the rows stand in it.
    """

    device: Device
    values: Array
    parts: tuple[slice, ...]

    @classmethod
    def all_of(cls, device: Device, values: Array) -> Square:
        """Return all of a matrix."""
        return cls(device, values, (slice(0, values.shape[0]),))

    @property
    def places(self) -> NDArray[np.int64]:
        """Where the rows stand, one by one."""
        return np.concatenate([np.arange(part.start, part.stop) for part in self.parts])

    def times(self, columns: Array) -> Array:
        """Return (K + 1) times coefficients of the rows, in float64."""
        xp, K = self.device.xp, self.values
        short = xp.astype(columns, K.dtype, copy=False)
        ends = np.cumsum([part.stop - part.start for part in self.parts]).tolist()
        pieces = [
            short[end - (part.stop - part.start) : end]
            for part, end in zip(self.parts, ends, strict=True)
        ]
        products = []
        for rows in self.parts:
            each = [
                xp.astype(xp.matmul(K[rows, part], piece), xp.float64)
                for part, piece in zip(self.parts, pieces, strict=True)
            ]
            products.append(each[0] if len(each) == 1 else sum(each[1:], each[0]))
        return xp.concat(products) + xp.sum(columns)


@dataclass(frozen=True)
class MarginPoint:
    """Where a machine stands.

    Attributes
    ----------
    beta : array of float64 of shape (n,)
        Coefficients y α.
    primal, dual : float
        The objective, and a lower bound on its optimum.
    gap : float
        Their relative distance, with what rounding may hide of it.
    rounds : int
        Factors that it took, those of its start not counted.
    """

    beta: Array
    primal: float
    dual: float
    gap: float
    rounds: int


def solve_margin_there(
    square: Square,
    sign: Vector,
    ridge: Vector,
    *,
    tol: float,
    rounding: float = 0.0,
    deadline: Deadline | None = None,
    start: Array | None = None,
) -> MarginPoint:
    """Solve min ½ αᵀQα − 1ᵀα, α ≥ 0, with Q = y yᵀ ∘ (K + 1) + diag(ridge).

    Parameters
    ----------
    square : Square
        Kernel values of the rows.
    sign : ndarray of shape (n,)
        Labels ±1.
    ridge : ndarray of shape (n,)
        1 / (2 C s), positive.
    tol : float
        Relative duality gap to stop at.
    rounding : float, default=0.0
        What rounding may hide of a gap, for dual variables of length one. Where it hides more than
        `tol`, the machine is left as it is.
    deadline : Deadline, default=None
        When to be content with what there is.
    start : array of float64 of shape (n,), default=None
        Coefficients to start from; None for those of a part of the rows.

    Returns
    -------
    MarginPoint
        The machine.
    """
    deadline = Deadline() if deadline is None else deadline
    if start is None and len(sign) > _WORTH_A_START:
        with deadline.ends_on_interrupt():
            start = _of_a_part(square, sign, ridge, max(tol, _START_TOL), rounding, deadline)
    newton = _Newton(square, sign, ridge, tol, rounding)
    point = newton.begun(start)
    slow, rounds = 0, 0
    while not point.ended(tol) and slow < _SLOW and rounds < _ROUNDS:
        after = None
        if not deadline.passed:
            with deadline.ends_on_interrupt():
                after = newton.after(point)
        if after is None:
            break
        rounds += 1
        fell = after.primal < (1.0 - newton.noise) * point.primal
        slow = 0 if fell or after.gap < _PROGRESS * point.gap else slow + 1
        point = after
    return MarginPoint(point.beta, point.primal, point.dual, min(1.0, point.gap), rounds)


def _of_a_part(
    square: Square, sign: Vector, ridge: Vector, tol: float, rounding: float, deadline: Deadline
) -> Array:
    """Return the coefficients of the machine of a part of the rows, zero for the others."""
    device, n = square.device, len(sign)
    # Rows of a class follow each other, and are in no order.
    chosen = np.arange(0, n, _ONE_IN)
    places = device.index(square.places[chosen])
    few = Square.all_of(device, square_of(device, square.values, places))
    found = solve_margin_there(
        few, sign[chosen], ridge[chosen] / _ONE_IN, tol=tol, rounding=rounding, deadline=deadline
    )
    return scattered(device, n, device.index(chosen), found.beta)


@dataclass(frozen=True)
class _Point:
    """Coefficients, their scores, and what is proved; and the matrix of the rows inside."""

    beta: Array
    scores: Array
    slack: Array
    active: Array
    matrix: Array | None
    primal: float
    dual: float
    gap: float
    hidden: float

    def ended(self, tol: float) -> bool:
        """Return whether the gap is met, or would be but for rounding."""
        if self.gap <= tol or self.hidden > _HOPELESS * tol > 0.0:
            return True
        return self.hidden > 0.0 and self.gap - self.hidden <= _NOTHING_LEFT * tol


class _Newton:
    """The rounds of one machine."""

    def __init__(
        self, square: Square, sign: Vector, ridge: Vector, tol: float, rounding: float
    ) -> None:
        self.square, self.tol, self.rounding = square, tol, rounding
        self.sign, self.ridge = square.device.array(sign), square.device.array(ridge)
        self.places = square.device.index(square.places)
        corner = square.parts[0].start
        largest = float(square.values[corner, corner]) + 1.0
        # Whether conjugate gradients need few steps.
        self.easy = float(ridge.min()) >= _EASY_RIDGE * largest
        double = square.values.dtype == square.device.xp.float64
        self.noise = _ROUNDINGS * float(np.finfo(np.float64 if double else np.float32).eps)

    def begun(self, start: Array | None) -> _Point:
        """Return the first point."""
        zero = self.square.device.xp.zeros_like(self.sign)
        if start is None:
            return self._at(zero, zero, 0.0)
        return self._at(start, self.square.times(start), 0.0)

    def _at(self, beta: Array, scores: Array, dual: float) -> _Point:
        """Return a point; no dual bound that was found before is lost."""
        device, xp = self.square.device, self.square.device.xp
        slack = xp.clip(1.0 - self.sign * scores, 0.0, None)
        active = xp.nonzero(slack > 0)[0]
        if self.easy and active.shape[0] > _MOST_FACTORED:
            matrix, alpha = None, xp.clip(self.sign * beta, 0.0, None)
            signed = self.sign * alpha
            product = self.square.times(signed)
        else:
            matrix = square_of(device, self.square.values, xp.take(self.places, active))
            matrix += 1.0
            alpha = slack / self.ridge
            signed = xp.take(self.sign * alpha, active)
            short = xp.matmul(matrix, xp.astype(signed, matrix.dtype))
            product = xp.astype(short, xp.float64)
        sums = (
            beta * scores,
            slack * slack / self.ridge,
            alpha,
            signed * product,
            self.ridge * alpha * alpha,
            alpha * alpha,
            beta * beta,
        )
        found = to_numpy(xp.stack([xp.sum(each) for each in sums]))
        norm2, loss, linear, product, more, of_dual, of_primal = found.tolist()
        primal, quadratic, factor = 0.5 * (norm2 + loss), product + more, 0.0
        if quadratic > 0.0:
            factor = linear / quadratic
            dual = max(dual, 0.5 * factor * linear)
        hidden = self.rounding * math.sqrt(max(factor**2 * of_dual, of_primal))
        gap = relative_gap(primal, dual) + hidden
        return _Point(beta, scores, slack, active, matrix, primal, dual, gap, hidden)

    def after(self, point: _Point) -> _Point | None:
        """Return the point after a step; None if its matrix has no factor at this precision."""
        target = self._minimum(point)
        if target is None:
            return None
        there = self.square.times(target)
        whole = self._at(target, there, point.dual)
        enough = point.primal - _ENOUGH * (point.primal - whole.dual)
        if whole.gap <= self.tol or whole.primal <= enough:
            return whole
        dual = whole.dual
        # Its matrix makes room for the next.
        del whole
        step, change = target - point.beta, there - point.scores
        before = (point.beta, step, point.scores, change, self.sign, self.ridge)
        beta, along, scores, rise, sign, ridge = (each[None, :] for each in before)
        device = self.square.device
        length = step_length(device, beta, along, scores, rise, sign, ridge, self.tol)[0, :]
        return self._at(point.beta + length * step, point.scores + length * change, dual)

    def _minimum(self, point: _Point) -> Array | None:
        """Return the minimum of the quadratic piece of a point, whose matrix is used up."""
        device, xp = self.square.device, self.square.device.xp
        n, active = self.sign.shape[0], point.active
        if not active.shape[0]:
            return xp.zeros_like(self.sign)
        if point.matrix is None:
            return self._approached(point)
        kind = point.matrix.dtype
        matrix = add_to_diagonal(device, point.matrix, xp.take(self.ridge, active))
        right = xp.astype(xp.take(self.sign, active), kind)[:, None]
        factor = cholesky(device, matrix)
        if factor is not None:
            solution = solve_upper(device, factor, solve_lower(device, factor, right))
        elif kind == xp.float64:
            # Not every kernel is positive definite.
            solution = xp.linalg.solve(matrix, right)
        else:
            return None
        return scattered(device, n, active, xp.astype(solution[:, 0], xp.float64))

    def _approached(self, point: _Point) -> Array:
        """Return nearly the minimum of the piece of a point, by conjugate gradients.

        Coefficients β with the residual r have a gap of ½ Σ r² / ridge on the piece, which tells
        when they are good enough.
        """
        xp = self.square.device.xp
        inside = point.slack > 0
        zero = xp.zeros_like(self.sign)

        def times(columns: Array) -> Array:
            product = self.square.times(columns) + self.ridge * columns
            return xp.where(inside, product, zero)

        least = max(_OF_TOL * self.tol * point.primal, _OF_THE_GAP * (point.primal - point.dual))
        scale = 1.0 / (1.0 + self.ridge)
        beta = xp.where(inside, point.beta, zero)
        left = xp.where(inside, self.sign, zero) - times(beta)
        along = scale * left
        size = xp.sum(left * along)
        for number in range(_STEPS):
            if number % _LOOK == 0 and 0.5 * float(xp.sum(left * left / self.ridge)) <= least:
                return beta
            product = times(along)
            length = size / xp.sum(along * product)
            beta, left = beta + length * along, left - length * product
            scaled = scale * left
            after = xp.sum(left * scaled)
            along, size = scaled + (after / size) * along, after
        # Factors do better.
        self.easy = False
        return beta
