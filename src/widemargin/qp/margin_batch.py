"""The small machine on a device: many L2-SVMs side by side, of few rows or of many.

Newton's method on the primal in kernel space. With the rows A = {y f < 1} inside the margin, the
minimum of the present quadratic piece is

    (K_AA + 1 + diag(ridge_A)) β_A = y_A,        β = 0 elsewhere,

and the step towards it is as long as is best for the objective itself (``batch_line_search``). All
machines take a round together, because a GPU waits for orders and not for arithmetic: kernel values
among the rows of A are gathered, which are few of many, and systems of about one size are solved at
once (``batch_systems``). The first point is the machine of one row in twelve, and so on down to
a few thousand rows.

Two points of the dual are looked at: ξ / ridge, and the coefficients themselves as far as they have
the right sign, each times its best factor. The former is exact at a solution; the latter does not
enlarge what conjugate gradients leave.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.device import Array, Device, to_numpy
from widemargin.device.in_place import written
from widemargin.loop import Deadline
from widemargin.qp.batch_line_search import step_length
from widemargin.qp.batch_systems import Systems
from widemargin.qp.device_matrices import Matrices

# Rounds at the most, if nothing else is said,
_ROUNDS = 100
# and rounds with little progress after which there is none.
_SLOW = 4
# A round that leaves more than this of the gap is slow, if the objective does not fall either,
_PROGRESS = 0.9
# by more than so many roundings.
_ROUNDINGS = 64
# The part of the gap that is asked for at which only rounding can be what is left,
_NOTHING_LEFT = 0.25
# and how many times as large as it rounding must be to end the rounds: it falls a little.
_HOPELESS = 2.0
# What solutions of systems may leave of the gap that there is, or of that which is asked for.
_OF_THE_GAP = 1e-3
_OF_TOL = 0.1
# The gap from which on systems are solved to it: factors give digits that nobody asks for above.
_FINE = 1e-5
# Rows from which the machine of a part of them comes first, and one in how many these are.
_WORTH_A_START = 6000
_ONE_IN = 12
# The gap of that machine.
_START_TOL = 0.05
# Numbers in the matrices that are gathered at a time, if nothing else is said.
_NUMBERS = 1 << 30
# Systems are filled up to the largest of a group: those below this part of its rows are in the
# next, unless all of the others are small,
_FILLED = 0.6
# of so many numbers together at the most.
_SMALL = 1 << 27


@dataclass(frozen=True)
class BatchPoint:
    """Where the machines of a batch stand.

    Attributes
    ----------
    beta : array of float64 of shape (b, m)
        Coefficients y α, of the primal.
    primal, dual : ndarray of shape (b,)
        Objectives, and lower bounds on their optima.
    gap : ndarray of shape (b,)
        Their relative distances, with what rounding may hide of them.
    rounds : int
        Rounds that it took, those of its start not counted.
    """

    beta: Array
    primal: Vector
    dual: Vector
    gap: Vector
    rounds: int


def solve_margin_batch(
    matrices: Matrices,
    sign: Array,
    ridge: Array,
    *,
    tol: float,
    rounding: float | Vector = 0.0,
    deadline: Deadline | None = None,
    start: Array | None = None,
    max_rounds: int = _ROUNDS,
    most_numbers: int = _NUMBERS,
) -> BatchPoint:
    """Solve min ½ αᵀQα − 1ᵀα, α ≥ 0, with Q = y yᵀ ∘ (K + 1) + diag(ridge), of every machine.

    Parameters
    ----------
    matrices : Matrices
        Kernel values of the machines.
    sign : array of float64 of shape (b, m)
        Labels ±1; 0 for rows that are not there.
    ridge : array of float64 of shape (b, m)
        1 / (2 C s), positive.
    tol : float
        Relative duality gap at which a machine is done.
    rounding : float or ndarray of shape (b,), default=0.0
        What rounding may hide of a gap, for dual variables of length one. Where it hides more than
        `tol`, a machine is left as it is.
    deadline : Deadline, default=None
        When to be content with what there is.
    start : array of float64 of shape (b, m), default=None
        Coefficients to start from; None for those of a part of the rows.
    max_rounds : int, default=100
        Rounds at the most.
    most_numbers : int, default=2**30
        Numbers in the matrices that are gathered at a time; one machine may need more.

    Returns
    -------
    BatchPoint
        The machines.
    """
    deadline = Deadline() if deadline is None else deadline
    hides = np.broadcast_to(np.asarray(rounding, dtype=np.float64), (sign.shape[0],))
    if start is None and sign.shape[1] > _WORTH_A_START:
        with deadline.ends_on_interrupt():
            start = _of_a_part(matrices, sign, ridge, tol, hides, deadline, most_numbers)
    batch = _Batch(matrices, sign, ridge, tol, hides, most_numbers)
    batch.begin(start)
    rounds = 0
    while len(batch.live):
        if rounds == max_rounds or deadline.passed:
            batch.round(last=True)
            break
        with deadline.ends_on_interrupt():
            batch.round(last=False)
            rounds += bool(len(batch.live))
    return BatchPoint(batch.beta, batch.primal, batch.dual, np.minimum(1.0, batch.gap), rounds)


def _of_a_part(
    matrices: Matrices,
    sign: Array,
    ridge: Array,
    tol: float,
    hides: Vector,
    deadline: Deadline,
    most_numbers: int,
) -> Array:
    """Return the coefficients of the machines of a part of the rows, zero for the others."""
    device, xp, (b, m) = matrices.device, matrices.device.xp, sign.shape
    # Rows of a class follow each other, and are in no order.
    found = solve_margin_batch(
        matrices.part(_ONE_IN),
        sign[:, ::_ONE_IN],
        ridge[:, ::_ONE_IN] / _ONE_IN,
        tol=max(tol, _START_TOL),
        rounding=hides,
        deadline=deadline,
        most_numbers=most_numbers,
    )
    where = xp.reshape(xp.arange(b * m, dtype=xp.int64, device=device.where), (b, m))[:, ::_ONE_IN]
    flat = device.zeros((b * m,), np.float64)
    flat = written(device, flat, xp.reshape(where, (-1,)), xp.reshape(found.beta, (-1,)))
    return xp.reshape(flat, (b, m))


class _Packed:
    """The rows inside the margin of some machines, packed to the front.

    Parameters
    ----------
    device : Device
        Where they are.
    inside : array of bool of shape (b, m)
        Which.
    count : array of int64 of shape (b,)
        How many.
    k : int
        The largest of these numbers.
    """

    def __init__(self, device: Device, inside: Array, count: Array, k: int) -> None:
        xp, (b, m) = device.xp, inside.shape
        self.device, self.shape = device, (b, m)
        self.places = xp.nonzero(xp.reshape(inside, (-1,)))[0]
        machine = self.places // m
        rank = xp.arange(self.places.shape[0], dtype=xp.int64, device=device.where)
        begin = xp.cumulative_sum(count) - count - xp.arange(b, device=device.where) * k
        self.packed = rank - xp.take(begin, machine)
        own = xp.zeros((b * k,), dtype=xp.int64, device=device.where)
        self.own = xp.reshape(written(device, own, self.packed, self.places % m), (b, k))
        number = xp.arange(k, dtype=xp.int64, device=device.where)[None, :]
        self.there = number < count[:, None]

    def of(self, values: Array) -> Array:
        """Return the values of these rows, zero where there are none."""
        xp = self.device.xp
        found = xp.take_along_axis(values, self.own, axis=1)
        return xp.where(self.there, found, xp.zeros_like(found))

    def spread(self, values: Array) -> Array:
        """Return values in the places of these rows, zero elsewhere."""
        xp, (b, m) = self.device.xp, self.shape
        flat = xp.take(xp.reshape(values, (-1,)), self.packed)
        total = self.device.zeros((b * m,), np.float64)
        return xp.reshape(written(self.device, total, self.places, flat), (b, m))


class _Batch:
    """The rounds of all machines; `live` are those that are not done."""

    def __init__(
        self,
        matrices: Matrices,
        sign: Array,
        ridge: Array,
        tol: float,
        hides: Vector,
        most_numbers: int,
    ) -> None:
        self.device, b = matrices.device, sign.shape[0]
        self.tol, self.most_numbers = tol, most_numbers
        self.matrices, self.sign, self.ridge, self.hides = matrices, sign, ridge, hides
        self.live: IndexArray = np.arange(b)
        self.live_there = self.device.index(self.live)
        self.primal, self.dual = np.full(b, np.inf), np.zeros(b)
        self.gap = np.full(b, np.inf)
        self.stiff, self.slow = np.full(b, tol < _FINE), np.zeros(b, dtype=int)
        xp = self.device.xp
        kind = np.float64 if matrices.dtype == xp.float64 else np.float32
        self.noise = _ROUNDINGS * float(np.finfo(kind).eps)

    def begin(self, start: Array | None) -> None:
        """Set the first point."""
        xp = self.device.xp
        # Of the live ones; coefficients of all are written to.
        self.now = xp.zeros_like(self.sign) if start is None else start
        self.scores = xp.zeros_like(self.sign) if start is None else self.matrices.times(start)
        self.beta = xp.asarray(self.now, copy=True)

    def round(self, last: bool) -> None:
        """Say what is proved, and take a step unless it is the last look."""
        xp = self.device.xp
        slack = xp.where(self.sign != 0, 1.0 - self.sign * self.scores, xp.zeros_like(self.scores))
        slack = xp.clip(slack, 0.0, None)
        inside = slack > 0
        number = xp.sum(xp.astype(inside, xp.int64), axis=1)
        count = to_numpy(number).astype(np.intp)
        target = None
        for group in _groups(count, self.most_numbers):
            largest = max(1, int(count[group].max()))
            found = self._in_group(group, slack, inside, number, largest, last)
            if found is None:
                continue
            if len(group) == len(self.live):
                target = found
            else:
                target = xp.asarray(self.now, copy=True) if target is None else target
                target = written(self.device, target, self.device.index(group), found)
        if target is not None:
            self._move(target)
        self._drop()

    def _in_group(
        self, group: IndexArray, slack: Array, inside: Array, count: Array, k: int, last: bool
    ) -> Array | None:
        """Return the minima of the pieces of some machines; None if all of them are done."""
        whole = len(group) == len(self.live)
        arrays = (slack, inside, count, self.sign, self.ridge, self.now, self.scores)
        if not whole:
            index = self.device.index(group)
            arrays = tuple(self.device.xp.take(each, index, axis=0) for each in arrays)
        slack, inside, count, sign, ridge, beta, scores = arrays
        rows = _Packed(self.device, inside, count, k)
        square = self.matrices.among(rows.own, None if whole else group)
        number = self.live[group]
        self._prove(number, rows, square, slack, sign, ridge, beta, scores)
        opened = self._open(number)
        if last or not opened.any():
            return None
        xp = self.device.xp
        packed_ridge = xp.where(rows.there, xp.take_along_axis(ridge, rows.own, axis=1), 1.0)
        systems = Systems(self.device, square, packed_ridge, rows.there)
        primal, dual = self.primal[number], self.dual[number]
        least = np.maximum(_OF_TOL * self.tol * primal, _OF_THE_GAP * (primal - dual))
        # Machines that are done ask for nothing, and stay where they are.
        asked = self.device.array(np.where(opened, least, np.inf))
        stiff = self.stiff[number] & opened
        found, stiff = systems.solved(rows.of(sign), rows.of(beta), asked, stiff)
        self.stiff[number] |= stiff
        return xp.where((asked < np.inf)[:, None], rows.spread(found), beta)

    def _prove(
        self,
        number: IndexArray,
        rows: _Packed,
        square: Array,
        slack: Array,
        sign: Array,
        ridge: Array,
        beta: Array,
        scores: Array,
    ) -> None:
        """Take in objectives and lower bounds of the present points."""
        xp = self.device.xp
        # Two points of the dual, with their signs.
        points = xp.stack([rows.of(sign * slack / ridge), self._of_right_sign(rows, sign, beta)])
        columns = xp.astype(xp.permute_dims(points, (1, 2, 0)), square.dtype)
        products = xp.astype(xp.permute_dims(xp.matmul(square, columns), (2, 0, 1)), xp.float64)
        packed_ridge = rows.of(ridge)[None, :, :]
        sums = (
            xp.sum(beta * scores, axis=1)[None, :],
            xp.sum(slack * slack / ridge, axis=1)[None, :],
            xp.sum(beta * beta, axis=1)[None, :],
            xp.sum(xp.abs(points), axis=2),
            xp.sum(points * (products + packed_ridge * points), axis=2),
            xp.sum(points * points, axis=2),
        )
        found = to_numpy(xp.concat(sums))
        norm2, loss, length2 = found[:3]
        linear, quadratic, dual_length2 = found[3:5], found[5:7], found[7:9]
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(quadratic > 0, linear / quadratic, 0.0)
        values = 0.5 * factor * linear
        best = np.argmax(values, axis=0)[None, :]
        dual = np.take_along_axis(values, best, axis=0)[0]
        alpha2 = np.take_along_axis(factor**2 * dual_length2, best, axis=0)[0]
        self._take_in(number, 0.5 * (norm2 + loss), dual, np.maximum(length2, alpha2))

    def _of_right_sign(self, rows: _Packed, sign: Array, beta: Array) -> Array:
        """Return the coefficients that are dual variables, too."""
        xp = self.device.xp
        return rows.of(sign * xp.clip(sign * beta, 0.0, None))

    def _take_in(self, number: IndexArray, primal: Vector, dual: Vector, length2: Vector) -> None:
        """Note what is proved, and which machines make no progress."""
        before, gap_before = self.primal[number], self.gap[number]
        dual = np.maximum(self.dual[number], np.minimum(dual, primal))
        hidden = self.hides[number] * np.sqrt(length2)
        with np.errstate(invalid="ignore"):
            relative = np.where(primal > 0, (primal - dual) / np.where(primal > 0, primal, 1), 0.0)
        gap = np.where(np.isfinite(primal), relative + hidden, np.inf)
        fell = primal < (1.0 - self.noise) * before
        slow = ~(fell | (gap < _PROGRESS * gap_before))
        self.slow[number] = np.where(slow, self.slow[number] + 1, 0)
        self.primal[number], self.dual[number], self.gap[number] = primal, dual, gap
        # Rounding is all that is left, or hides what is asked for.
        left = (hidden > 0) & (gap - hidden <= _NOTHING_LEFT * self.tol)
        hopeless = hidden > _HOPELESS * self.tol if self.tol > 0 else np.zeros(len(gap), dtype=bool)
        self.slow[number[left | hopeless | ~np.isfinite(primal)]] = _SLOW

    def _open(self, number: IndexArray) -> NDArray[np.bool_]:
        """Return which of some machines are not done."""
        return (self.gap[number] > self.tol) & (self.slow[number] < _SLOW)

    def _move(self, target: Array) -> None:
        """Go towards the minima of pieces, as far as is best."""
        step = target - self.now
        change = self.matrices.times(target) - self.scores
        length = step_length(
            self.device, self.now, step, self.scores, change, self.sign, self.ridge, self.tol
        )
        self.now, self.scores = self.now + length * step, self.scores + length * change
        self.beta = written(self.device, self.beta, self.live_there, self.now)

    def _drop(self) -> None:
        """Leave out machines that are done."""
        stays = self._open(self.live)
        if stays.all():
            return
        index, xp = np.flatnonzero(stays), self.device.xp
        if not len(index):
            self.live = self.live[index]
            return
        chosen, matrices = self.device.index(index), self.matrices.machines(index)
        arrays = (self.live_there, self.sign, self.ridge, self.now, self.scores)
        there, sign, ridge, now, scores = (xp.take(each, chosen, axis=0) for each in arrays)
        found = (self.live[index], there, matrices, sign, ridge, now, scores)
        # In one statement: an interrupt finds all of the old ones, or all of the new ones.
        (
            self.live,
            self.live_there,
            self.matrices,
            self.sign,
            self.ridge,
            self.now,
            self.scores,
        ) = found


def _groups(count: IndexArray, most_numbers: int) -> list[IndexArray]:
    """Return machines in groups of about as many rows inside the margin, the largest first."""
    order = np.argsort(-count, kind="stable")
    falling = np.maximum(1, count[order]).astype(np.float64)
    groups, begin = [], 0
    while begin < len(order):
        largest = falling[begin]
        end = begin + max(1, int(most_numbers / largest**2))
        if (len(order) - begin) * largest**2 > _SMALL:
            end = min(end, int(np.searchsorted(-falling, -_FILLED * largest, side="right")))
        groups.append(np.sort(order[begin:end]))
        begin = end
    return groups
