"""How far to go along the steps of many machines at a time, on a device.

The primal of a machine is quadratic in pieces along a step: its slope is a sum over rows that come
and go in the order of their sorted places.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin.device import Array, Device

# The share of the gap that counts as nothing, when two points are compared.
_SNAP = 0.1


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
