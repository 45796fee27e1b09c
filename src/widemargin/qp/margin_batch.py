"""The small machine in batches, on a device: many L2-SVMs at a time, on matrices of one size.

Newton's method on the primal in kernel space. With the rows A = {y f < 1} inside the margin, the
minimum of the present quadratic piece is

    (K_AA + 1 + diag(ridge_A)) β_A = y_A,        β = 0 elsewhere,

and the step towards it is as long as is best for the objective itself, which is quadratic in
pieces along it: its slope is a sum over rows that come and go in the order of their sorted places.
Rows outside the margin, and those that only fill up a matrix, are replaced by the identity, so that
all matrices of a batch are factorised at once. Nothing depends on what comes out before the end of
a round, where one number says whether all are done.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.device import Array, Device, to_numpy
from widemargin.device.in_place import solve_spd

# Rounds at the most, if nothing else is said.
_ROUNDS = 30
# The share of the gap that counts as nothing, when two points, or two rounds, are compared.
_SNAP = 0.1


@dataclass(frozen=True)
class BatchPoint:
    """Where the machines of a batch stand.

    Attributes
    ----------
    beta : array of float64 of shape (b, m)
        Coefficients y α, of the primal.
    scores : array of float64 of shape (b, m)
        (K + 1) β.
    primal, dual : ndarray of shape (b,)
        Objectives, and lower bounds on their optima.
    rounds : int
        Rounds that it took.
    """

    beta: Array
    scores: Array
    primal: Any
    dual: Any
    rounds: int


def solve_margin_batch(
    device: Device,
    K: Array,
    sign: Array,
    ridge: Array,
    *,
    gap: float,
    max_rounds: int = _ROUNDS,
    start: Array | None = None,
) -> BatchPoint:
    """Solve min ½ αᵀQα − 1ᵀα, α ≥ 0, with Q = y yᵀ ∘ (K + 1) + diag(ridge), of every machine.

    Parameters
    ----------
    device : Device
        Where everything is.
    K : array of shape (b, m, m) or (m, m)
        Kernel values; one matrix serves all if there is one.
    sign : array of float64 of shape (b, m)
        Labels ±1; 0 for rows that are not there.
    ridge : array of float64 of shape (b, m)
        1 / (2 C s), positive.
    gap : float
        Relative duality gap at which a machine is done.
    max_rounds : int, default=30
        Factors at the most.
    start : array of float64 of shape (b, m), default=None
        Coefficients to start from.

    Returns
    -------
    BatchPoint
        The machines.
    """
    xp = device.xp
    there = sign != 0
    zero = xp.zeros_like(sign)
    beta = zero if start is None else start
    scores = zero if start is None else _times(xp, K, beta)
    primal = dual = zero[:, 0]
    rounds, done, single = 0, False, K.dtype == xp.float32
    while rounds < max_rounds and not done:
        rounds += 1
        slack = xp.where(there, 1.0 - sign * scores, zero)
        active = slack > 0
        target = _minimum(device, K, xp.where(active, sign, zero), ridge, active)
        step = target - beta
        change = _times(xp, K, step)
        length = step_length(device, beta, step, scores, change, sign, ridge, gap)
        beta, scores = beta + length * step, scores + length * change
        before, below = primal, dual
        primal, dual = _objectives(device, K, beta, scores, sign, ridge)
        ended = primal - dual <= gap * primal
        if rounds > 1 and single:
            # What does not get better has no more digits.
            least = _SNAP * gap * primal
            ended = ended | ((before - primal <= least) & (dual - below <= least))
        done = bool(xp.all(ended))
    return BatchPoint(beta, scores, to_numpy(primal), to_numpy(dual), rounds)


def _times(xp: Any, K: Array, columns: Array) -> Array:
    """Return (K + 1) times a column of each machine, in float64."""
    if K.ndim == 2:
        product = xp.matmul(xp.astype(columns, K.dtype, copy=False), K)
    else:
        product = xp.matmul(K, xp.astype(columns, K.dtype, copy=False)[:, :, None])[:, :, 0]
    return xp.astype(product, xp.float64) + xp.sum(columns, axis=1, keepdims=True)


def _minimum(device: Device, K: Array, right: Array, ridge: Array, active: Array) -> Array:
    """Return the minimum of the quadratic piece of the active rows."""
    xp, m = device.xp, right.shape[1]
    inside = xp.astype(active, K.dtype)
    matrix = (K + 1.0) * (inside[:, :, None] * inside[:, None, :])
    diagonal = xp.where(active, ridge, xp.ones_like(ridge))
    eye = xp.eye(m, dtype=K.dtype, device=device.where)
    matrix += xp.astype(diagonal, K.dtype)[:, :, None] * eye
    solution = solve_spd(device, matrix, xp.astype(right, K.dtype)[:, :, None])
    return xp.astype(solution[:, :, 0], xp.float64)


def step_length(
    device: Device,
    beta: Array,
    step: Array,
    scores: Array,
    change: Array,
    sign: Array,
    ridge: Array,
    gap: float,
) -> Array:
    """Return how far to go along steps to the minima of pieces, of shape (b, 1).

    As far as is best for the objectives, but all the way where that is as good as makes no
    difference to a gap.
    """
    xp = device.xp
    slack = xp.where(sign != 0, 1.0 - sign * scores, xp.zeros_like(scores))
    length = _best_length(device, beta, step, slack, change, sign, ridge)[:, None]
    points = xp.stack([beta + length * step, beta + step])
    values = xp.stack([scores + length * change, scores + change])
    found = _primal(xp, points, values, sign, ridge)
    good = (found[1, :] <= (1.0 + _SNAP * gap) * found[0, :])[:, None]
    return xp.where(good, xp.ones_like(length), length)


def _best_length(
    device: Device,
    beta: Array,
    step: Array,
    slack: Array,
    change: Array,
    sign: Array,
    ridge: Array,
) -> Array:
    """Return where the slopes of the objectives along their steps vanish."""
    xp = device.xp
    falls = sign * change
    each, inside = falls / ridge, slack > 0
    # What a row adds to the slope while it is inside: u + w · length. Both are worked on together.
    rates = xp.stack([-slack * each, falls * each])
    # Rows leave if they fall from inside, and come if they rise from outside.
    moves = (inside == (falls > 0)) & (falls != 0)
    place = xp.where(moves, slack / xp.where(moves, falls, xp.ones_like(falls)), np.inf)
    turn = xp.where(moves, -xp.sign(falls), xp.zeros_like(falls))
    order = xp.argsort(place, axis=1)
    table = xp.concat([place[None, :, :], turn * rates])
    table = xp.take_along_axis(table, xp.broadcast_to(order[None, :, :], table.shape), axis=2)
    place = table[0, :, :]
    first = xp.where(inside, rates, xp.zeros_like(rates)) + xp.stack([beta, step]) * change
    first = xp.sum(first, axis=2, keepdims=True)
    lines = xp.concat([first, first + xp.cumulative_sum(table[1:, :, :], axis=2)], axis=2)
    # The slope at the end of each piece rises; the root is in the first where it is not negative.
    known = place < np.inf
    at = xp.where(known, place, xp.zeros_like(place))
    ends = xp.where(known, lines[0, :, :-1] + lines[1, :, :-1] * at, xp.ones_like(place))
    piece = xp.sum(xp.astype(ends < 0, xp.int64), axis=1, keepdims=True)
    piece = xp.broadcast_to(piece[None, :, :], (2, *piece.shape))
    line = xp.take_along_axis(lines, piece, axis=2)[:, :, 0]
    some = line[1, :] > 0
    length = -line[0, :] / xp.where(some, line[1, :], xp.ones_like(line[1, :]))
    return xp.where(some & (length > 0), length, xp.zeros_like(length))


def _primal(xp: Any, beta: Array, scores: Array, sign: Array, ridge: Array) -> Array:
    """Return the primal, of one point or several of each machine."""
    slack = xp.clip(xp.where(sign != 0, 1.0 - sign * scores, xp.zeros_like(scores)), 0.0, None)
    return 0.5 * xp.sum(beta * scores + slack * slack / ridge, axis=-1)


def _objectives(
    device: Device, K: Array, beta: Array, scores: Array, sign: Array, ridge: Array
) -> tuple[Array, Array]:
    """Return the primal, and the dual of its own dual point times the best factor."""
    xp = device.xp
    slack = xp.where(sign != 0, 1.0 - sign * scores, xp.zeros_like(scores))
    slack = xp.clip(slack, 0.0, None)
    alpha = slack / ridge
    primal = 0.5 * xp.sum(beta * scores + slack * alpha, axis=1)
    signed = sign * alpha
    quadratic = xp.sum(signed * _times(xp, K, signed) + slack * alpha, axis=1)
    linear = xp.sum(alpha, axis=1)
    some = quadratic > 0
    bound = linear * linear / (2.0 * xp.where(some, quadratic, xp.ones_like(quadratic)))
    return primal, xp.where(some, bound, xp.zeros_like(bound))
