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
# What a whole step may cost of the objective, as a share of the gap: after it no row outside the
# margin has a coefficient.
_FOR_A_WHOLE_STEP = 0.125


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
    rounds, done = 0, False
    while rounds < max_rounds and not done:
        rounds += 1
        slack = xp.where(there, 1.0 - sign * scores, zero)
        active = slack > 0
        target = _minimum(device, K, xp.where(active, sign, zero), ridge, active)
        step = target - beta
        change = _times(xp, K, step)
        length = step_length(device, beta, step, scores, change, sign, ridge, gap)
        beta, scores = beta + length * step, scores + length * change
        primal, dual = _objectives(device, K, beta, scores, sign, ridge)
        done = bool(xp.all(primal - dual <= gap * primal))
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
    best = _primal(xp, beta + length * step, scores + length * change, sign, ridge)
    whole = _primal(xp, beta + step, scores + change, sign, ridge)
    good = (whole <= (1.0 + _FOR_A_WHOLE_STEP * gap) * best)[:, None]
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
    zero, falls = xp.zeros_like(slack), sign * change
    inside = slack > 0
    # What a row adds to the slope while it is inside: u + w · length.
    u, w = -slack * falls / ridge, falls * falls / ridge
    leaves, comes = inside & (falls > 0), ~inside & (falls < 0)
    moves = leaves | comes
    place = xp.where(moves, slack / xp.where(moves, falls, xp.ones_like(falls)), np.inf)
    turn = xp.where(comes, 1.0, xp.where(leaves, -1.0, zero))
    order = xp.argsort(place, axis=1)
    place, du, dw = (
        xp.take_along_axis(each, order, axis=1) for each in (place, turn * u, turn * w)
    )
    first = xp.sum(beta * change + xp.where(inside, u, zero), axis=1, keepdims=True)
    bend = xp.sum(step * change + xp.where(inside, w, zero), axis=1, keepdims=True)
    du, dw = xp.cumulative_sum(du, axis=1), xp.cumulative_sum(dw, axis=1)
    slopes = xp.concat([first, first + du], axis=1)
    bends = xp.concat([bend, bend + dw], axis=1)
    # The slope at the end of each piece rises; the root is in the first where it is not negative.
    some = place < np.inf
    ends = slopes[:, :-1] + bends[:, :-1] * xp.where(some, place, xp.zeros_like(place))
    ends = xp.where(some, ends, xp.ones_like(place))
    piece = xp.sum(xp.astype(ends < 0, xp.int64), axis=1, keepdims=True)
    slope = xp.take_along_axis(slopes, piece, axis=1)[:, 0]
    bending = xp.take_along_axis(bends, piece, axis=1)[:, 0]
    some = bending > 0
    length = -slope / xp.where(some, bending, xp.ones_like(bending))
    return xp.where(some & (length > 0), length, xp.zeros_like(length))


def _primal(xp: Any, beta: Array, scores: Array, sign: Array, ridge: Array) -> Array:
    """Return the objectives."""
    slack = xp.where(sign != 0, xp.clip(1.0 - sign * scores, 0.0, None), xp.zeros_like(scores))
    return 0.5 * xp.sum(beta * scores + slack * slack / ridge, axis=1)


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
