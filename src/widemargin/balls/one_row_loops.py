"""Loops of the machines that one row joins at a time, compiled by Numba when first used.

Import this module through ``threads.Compiled``. A call works on one problem. Its rows stand in
pieces of the columns of `values` (`pieces`: first and last column of each), all rows of two classes
for example; row i of the problem is column `place[i]`, and its kernel values with all others are
the line `line[place[i]]` of `values`, or not there yet if that is −1. A call then ends with WANTED
and the row, and is told of it as `first` when it goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# How a call ended.
INSIDE, LIMIT, WANTED, NO_BALL, EXHAUSTED = 0, 1, 2, 3, 4
# Rows are looked at in runs of this many: the largest of a run is found by vector instructions, and
# only the winning run is searched for its index.
_RUN = 64
# Accuracy of the ball on the core rows, as a share of how far outside the row lay that joined last.
_ROUGH = 0.25


@njit(nogil=True, cache=True)
def draw(random: Any, n: int) -> Any:
    """Return a row number, by the generator of Marsaglia and Vigna (xorshift64*)."""
    x = random[0]
    x ^= x >> np.uint64(12)
    x ^= x << np.uint64(25)
    x ^= x >> np.uint64(27)
    random[0] = x
    high = (x * np.uint64(2685821657736338717)) >> np.uint64(33)
    return np.int64((high * np.uint64(n)) >> np.uint64(31))


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz"}, cache=True)
def _add(line: Any, pieces: Any, sign: Any, factor: float, into: Any) -> None:
    """Add factor · sign_j (k_j + 1) to every row."""
    begin = 0
    for piece in range(len(pieces)):
        part = line[pieces[piece, 0] : pieces[piece, 1]]
        end = begin + len(part)
        side = sign[begin:end]
        total = into[begin:end]
        for j in range(len(part)):
            total[j] += factor * side[j] * (part[j] + 1.0)
        begin = end


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz", "nnan", "ninf"}, cache=True)
def _lowest(values: Any) -> int:
    """Return the index of the smallest value."""
    n = len(values)
    best = 0
    for start in range(0, n, _RUN):
        end = min(n, start + _RUN)
        low = values[start]
        for j in range(start, end):
            low = values[j] if values[j] < low else low
        if low < values[best]:
            best = start
            while values[best] > low:
                best += 1
    return best


@njit(nogil=True, cache=True)
def _lowest_of_sample(values: Any, random: Any, sample: int) -> int:
    """Return the index of the smallest of some values; `sample` 0 or n looks at all."""
    n = len(values)
    if sample <= 0 or sample >= n:
        return int(_lowest(values))
    best: int = draw(random, n)
    for _ in range(sample - 1):
        i = draw(random, n)
        if values[i] < values[best]:
            best = i
    return best


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz"}, cache=True)
def touch(
    values: Any,
    line: Any,
    pieces: Any,
    place: Any,
    sign: Any,
    ridge: Any,
    diagonal: Any,
    weight: Any,
    product: Any,
    center: Any,
    random: Any,
    eta: float,
    radius2: float,
    epsilon: float,
    sample: int,
    limit: int,
    first: int,
) -> tuple[int, int]:
    """Move a ball of fixed radius until all rows are in it, in place; return how it ended, and row.

    Algorithm 3 of BVM, from the scale center[2] on, which is halved down to `epsilon`: while the
    furthest of `sample` random rows lies outside, or the furthest of all where none of those does,
    the centre moves towards it until the ball touches it, (5) and (6). `weight` are the
    coefficients λ of the centre, `product` = Qλ, and `center` holds ‖c‖², the square of the extra
    coordinate of Algorithm 4, the scale, the moves at it, and all moves.
    """
    n = len(weight)
    norm2 = center[0]
    augmented2 = center[1]
    scale = center[2]
    # All coefficients shrink by β with each move: one common factor does it.
    factor = 1.0
    moves = 0
    ended = INSIDE
    far = first
    while True:
        if far < 0:
            far = _lowest_of_sample(product, random, sample)
        reach2 = (1.0 + scale) ** 2 * radius2
        distance2 = eta + norm2 + augmented2 - 2.0 * factor * product[far]
        if distance2 <= reach2:
            far = _lowest(product)
            distance2 = eta + norm2 + augmented2 - 2.0 * factor * product[far]
        if distance2 <= reach2:
            if scale <= epsilon:
                break
            scale = max(epsilon, 0.5 * scale)
            center[3] = 0.0
            far = -1
            continue
        if moves == limit:
            ended = LIMIT
            break
        # Proposition 1: each move lowers the squared distance from the centre that is sought by
        # ε²r² at the least, and that distance is below 2r.
        if norm2 <= 0.0 or center[3] > 4.0 / scale**2 + 1.0:
            ended = NO_BALL
            break
        if line[place[far]] < 0:
            ended = WANTED
            break
        # The part of the distance that the centre cannot change (centre-constrained form).
        fixed = eta - diagonal[far]
        beta = np.sqrt(max(radius2 - fixed, 0.0) / (distance2 - fixed))
        here = factor * product[far]
        norm2 = beta * beta * norm2 + (1.0 - beta) * (
            2.0 * beta * here + (1.0 - beta) * diagonal[far]
        )
        augmented2 *= beta * beta
        factor *= beta
        added = (1.0 - beta) / factor
        weight[far] += added
        _add(values[line[place[far]]], pieces, sign, added * sign[far], product)
        product[far] += added * ridge[far]
        moves += 1
        center[3] += 1.0
        far = -1
        if factor < 1e-120:
            for j in range(n):
                product[j] *= factor
                weight[j] *= factor
            factor = 1.0
    for j in range(n):
        product[j] *= factor
        weight[j] *= factor
    center[0] = norm2
    center[1] = augmented2
    center[2] = scale
    center[4] += moves
    return ended, far


@njit(nogil=True, cache=True)
def _worst(residual: Any, member: Any, random: Any, sample: int) -> int:
    """Return the row with the largest residual that is not in the core; −1 if all rows are.

    Of `sample` random rows; 0 or n looks at all.
    """
    n = len(residual)
    worst = -1
    if 0 < sample < n:
        for _ in range(sample):
            i = draw(random, n)
            if not member[i] and (worst < 0 or residual[i] > residual[worst]):
                worst = i
        return worst
    for i in range(n):
        if not member[i] and (worst < 0 or residual[i] > residual[worst]):
            worst = i
    return worst


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz"}, cache=True)
def _ball(alpha: Any, residual: Any, member: Any, eta: float, facts: Any) -> None:
    """Write Σα, R², by how much α is too long, and the largest residual of a core row."""
    total = 0.0
    square = 0.0
    worst = -1e300
    for i in range(len(alpha)):
        total += alpha[i]
        square += alpha[i] * (1.0 - residual[i])
        if member[i] and residual[i] > worst:
            worst = residual[i]
    facts[0] = total
    # ‖c‖² = αᵀQα / (Σα)², and Qα = 1 where the core is solved.
    norm2 = square / total / total if total > 0.0 else 0.0
    facts[1] = eta - norm2
    facts[2] = max(0.0, norm2 * total - 1.0)
    facts[3] = worst


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz", "nnan", "ninf"}, cache=True)
def _best(residual: Any, inverse: Any, alpha: Any, gain: Any) -> int:
    """Return the core row whose variable changes most; rows outside have an `inverse` of zero."""
    n = len(alpha)
    for j in range(n):
        t = residual[j] * inverse[j]
        s = t if t > -alpha[j] else -alpha[j]
        gain[j] = s * (t + t - s)
    highest = 0.0
    begin = 0
    for start in range(0, len(gain), _RUN):
        top = 0.0
        for j in range(start, start + _RUN):
            top = gain[j] if gain[j] > top else top
        if top > highest:
            highest = top
            begin = start
    best = begin
    for j in range(begin, begin + _RUN):
        if gain[j] > gain[best]:
            best = j
    return best


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz"}, cache=True)
def enclose(
    values: Any,
    line: Any,
    pieces: Any,
    place: Any,
    sign: Any,
    ridge: Any,
    diagonal: Any,
    alpha: Any,
    residual: Any,
    member: Any,
    center: Any,
    random: Any,
    eta: float,
    epsilon: float,
    sample: int,
    limit: int,
    first: int,
) -> tuple[int, int]:
    """Grow a core set until its smallest ball holds all rows, in place; return its end, and row.

    Algorithm 1 of BVM with Algorithm 3 of MMDA-CVM inside (ω = 1, the largest change first):
    `member` are the rows of the core set, `residual` = 1 − Qα of all rows, and `center` holds the
    accuracy of the ball on the core rows, a share of ε, the changes of a variable, and how many
    rows have joined. The furthest of `sample` random rows joins, or that of all where none of them
    lies outside.
    """
    n = len(alpha)
    gain = np.zeros((n + _RUN - 1) // _RUN * _RUN)
    inverse = np.zeros(n)
    for j in range(n):
        if member[j]:
            inverse[j] = 1.0 / diagonal[j]
    facts = np.zeros(4)
    done = 0
    joining = first
    rough = 0.0
    while True:
        if joining >= 0:
            member[joining] = True
            inverse[joining] = 1.0 / diagonal[joining]
            center[2] += 1.0
            rough = _ROUGH * residual[joining]
        _ball(alpha, residual, member, eta, facts)
        tol = max(1e-12, center[0] * epsilon * facts[1] * facts[0], rough)
        while True:
            best = _best(residual, inverse, alpha, gain)
            if best >= n or gain[best] <= (tol * inverse[best]) ** 2:
                break
            if done == limit:
                center[1] += done
                return LIMIT, -1
            step = residual[best] * inverse[best]
            if step <= -alpha[best]:
                step = -alpha[best]
                alpha[best] = 0.0
            else:
                alpha[best] += step
            _add(values[line[place[best]]], pieces, sign, -step * sign[best], residual)
            residual[best] -= step * ridge[best]
            done += 1
        _ball(alpha, residual, member, eta, facts)
        # distance ≤ (1+ε) R  ⟺  residual ≤ (ε + ε²/2) R² Σα + 1 − ‖c‖² Σα; the ε² only widens it.
        threshold = epsilon * facts[1] * facts[0] - facts[2]
        joining = _worst(residual, member, random, sample)
        if joining < 0 or residual[joining] <= threshold:
            joining = _worst(residual, member, random, 0)
        if joining < 0 or residual[joining] <= threshold:
            joining = -1
            if rough > 0.0:
                rough = 0.0
                continue
            if facts[3] <= threshold or center[0] < 1e-12:
                center[1] += done
                return INSIDE if facts[3] <= threshold else EXHAUSTED, -1
            center[0] *= 0.1
        elif line[place[joining]] < 0:
            center[1] += done
            return WANTED, joining
