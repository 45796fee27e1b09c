"""The small machine, compiled by Numba when first used and kept on disk for the next process.

Import this module through ``threads.Compiled``. Nothing in here holds Python's lock, so calls of
several threads run beside each other. See ``margin_dual`` for the problem and the method.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from widemargin.qp.lapack_loops import divide, factorise
from widemargin.qp.margin_loops import ascend, gather
from widemargin.qp.newton_loops import (
    NOT_POSITIVE as NOT_POSITIVE,
)
from widemargin.qp.newton_loops import (
    SOLVED,
    STUCK,
    changed,
    gather_lower,
    is_solved,
    newton,
    objectives,
)
from widemargin.qp.newton_loops import (
    UNFINISHED as UNFINISHED,
)

# What a multiplication of an update costs, relative to one inside a factorisation.
_UPDATE_COST = 40.0
# Steps on the support whose cost coordinate ascent may take, at the most where it is nearly there,
# and that which it may still take then.
_TURNS = 1.0
_MOST_TURNS = 6.0
_TURNS_LEFT = 2.0
# Updates between two looks at the gap, at the least.
_LEAST_SPELL = 32
# Rounds of ascent and a step at the most, and factors of the support as it is at last.
_MOST_ROUNDS = 30
_MOST_FACTORS = 8.0
# The share of the gap that a call which has run out of work must leave at the most.
_LEADS = 0.7
# Rows that join the support in a step: at the least, and as a share of it.
_LEAST_JOINING = 32
_JOINING = 0.15
# Coefficients that are held at zero: times that more of them are, and the share that may not be.
_MOST_HOLDS = 8
_LEAST_FREE = 3
# Rows of the smallest part that is solved before the rest.
_LEAST_LEVEL = 300
# The gap to which parts are solved.
LEVEL_GAP = 1e-2


@njit(nogil=True, cache=True)
def _ascent(
    K: Any,
    sign: Any,
    ridge: Any,
    diagonal: Any,
    alpha: Any,
    residual: Any,
    gap: float,
    tol: float,
    cost: Any,
) -> bool:
    """Coordinate ascent as long as it is worth its time; return whether the gap is reached.

    It has the time of a step on the support, and more where it will soon be there at the rate of
    the later half of it.
    """
    n = len(alpha)
    spell = max(_LEAST_SPELL, n // 16)
    spent = 0.0
    half, gap_at_half = 0.0, 1.0
    while True:
        updates = ascend(K, sign, ridge, diagonal, alpha, residual, tol, spell)
        spent += _UPDATE_COST * updates * n
        cost[0] += _UPDATE_COST * updates * n
        if is_solved(alpha, residual, ridge, gap, tol):
            return True
        support = float((alpha > 0.0).sum())
        turn = _TURNS * support**3 / 3.0
        if updates < spell:
            return False
        primal, dual = objectives(alpha, residual, ridge)
        now = (primal - dual) / primal
        if spent > turn:
            fallen = np.log(gap_at_half / now)
            if fallen <= 0.0 or gap <= 0.0 or spent > _MOST_TURNS * turn:
                return False
            if np.log(now / gap) / fallen * (spent - half) > _TURNS_LEFT * turn:
                return False
        if spent > 2.0 * half:
            half, gap_at_half = spent, now


@njit(nogil=True, cache=True)
def _best_on(
    addresses: Any, K: Any, sign: Any, ridge: Any, index: Any, alpha: Any, residual: Any
) -> Any:
    """Return the step from α to the solution on the rows at `index`, none where there is no factor.

    Coefficients that would become negative are held at zero by further equations, one for each: a
    Schur complement of the factor that is there. Where that would be too many, they are cut off.
    """
    m = len(index)
    first = 2 if K.itemsize == 8 else 0
    potrf, potrs = addresses[first], addresses[first + 1]
    factor = np.empty((m, m), dtype=K.dtype)
    gather_lower(K, index, ridge, factor)
    own, now = sign[index], alpha[index]
    right = (own * residual[index]).astype(K.dtype)
    if not factorise(potrf, factor):
        return now[:0]
    divide(potrs, factor, right)
    free = own * now + right
    target = free.copy()
    held = np.zeros(m, dtype=np.bool_)
    most = m // _LEAST_FREE
    columns = np.empty((most, m), dtype=K.dtype)
    place = np.empty(most, dtype=np.int64)
    count = 0
    for _ in range(_MOST_HOLDS):
        wrong = np.flatnonzero((own * target < 0.0) & ~held)
        if len(wrong) == 0 or count + len(wrong) > most:
            break
        new = columns[count : count + len(wrong)]
        new[:] = 0.0
        for k in range(len(wrong)):
            new[k, wrong[k]] = 1.0
            place[count + k] = wrong[k]
        held[wrong] = True
        divide(potrs, factor, new)
        count += len(wrong)
        complement = np.empty((count, count))
        price = np.empty(count)
        for k in range(count):
            price[k] = free[place[k]]
            for j in range(count):
                complement[k, j] = columns[k, place[j]]
        if not factorise(addresses[2], complement):
            break
        divide(addresses[3], complement, price)
        target = free - np.dot(price.astype(K.dtype), columns[:count])
    for i in range(m):
        target[i] = 0.0 if held[i] else max(0.0, own[i] * target[i])
    return target - now


@njit(nogil=True, cache=True)
def _support_and_worst(alpha: Any, residual: Any) -> Any:
    """Return the rows that support the machine, and the worst of those that ought to."""
    inside = alpha > 0.0
    outside = residual[(residual > 0.0) & ~inside]
    room = max(_LEAST_JOINING, int(_JOINING * inside.sum()))
    least = 0.0
    if len(outside) > room:
        least = np.partition(outside, len(outside) - room)[len(outside) - room]
    return np.flatnonzero(inside | (residual > least))


@njit(nogil=True, cache=True)
def _rounds(
    addresses: Any,
    K: Any,
    sign: Any,
    ridge: Any,
    alpha: Any,
    residual: Any,
    gap: float,
    tol: float,
    work: float,
    cost: Any,
) -> int:
    """Ascent and steps on the support in turn, in place; return how it ended.

    Ascent finds which rows support the machine. It is slow to move them together, which a step to
    the solution on these rows does. It ends as stuck where it takes too many of them.
    """
    n = len(alpha)
    diagonal = np.empty(n)
    for i in range(n):
        diagonal[i] = K[i, i] + 1.0 + ridge[i]
    primal, dual = objectives(alpha, residual, ridge)
    before = primal - dual
    spent = 0.0
    for _ in range(_MOST_ROUNDS):
        if _ascent(K, sign, ridge, diagonal, alpha, residual, gap, tol, cost):
            return SOLVED
        index = _support_and_worst(alpha, residual)
        spent += float(len(index)) ** 3
        if spent > _MOST_FACTORS * float(len(index)) ** 3:
            return STUCK
        cost[0] += float(len(index)) ** 3 / 3.0
        step = _best_on(addresses, K, sign, ridge, index, alpha, residual)
        if len(step) == 0:
            return STUCK
        change = changed(K, sign, index, step)
        for k in range(len(index)):
            change[index[k]] += ridge[index[k]] * step[k]
        rise = (residual[index] * step).sum()
        curve = (change[index] * step).sum()
        if rise <= 0.0 or curve <= 0.0:
            return STUCK
        t = min(1.0, rise / curve)
        for k in range(len(index)):
            alpha[index[k]] = max(0.0, alpha[index[k]] + t * step[k])
        residual -= t * change
        if is_solved(alpha, residual, ridge, gap, tol):
            return SOLVED
        if spent > work:
            # The next call goes on, if this one has led anywhere.
            primal, dual = objectives(alpha, residual, ridge)
            return UNFINISHED if primal - dual < _LEADS * before else STUCK
    return STUCK


@njit(nogil=True, cache=True)
def solve(
    addresses: Any,
    K: Any,
    sign: Any,
    ridge: Any,
    alpha: Any,
    residual: Any,
    gap: float,
    tol: float,
    work: float,
    fresh: bool,
    cost: Any,
) -> int:
    """Solve the dual on K to a relative gap, in place; return how it ended.

    Parameters
    ----------
    addresses : ndarray of uint64 of shape (4,)
        Of LAPACK's spotrf, spotrs, dpotrf and dpotrs.
    K : ndarray of shape (n, n) or wider
        Kernel matrix.
    sign, ridge : ndarray of shape (n,)
        Labels ±1, and 1 / (2 C s).
    alpha, residual : ndarray of shape (n,)
        Where to start, and 1 − Qα there.
    gap, tol : float
        The relative gap or the KKT residual to be reached.
    work : float
        Multiplications of Newton steps after which to return, so that a clock can be looked at.
    fresh : bool
        Whether the start is zero. Every second, fourth, ... row is then solved first.
    cost : ndarray of shape (1,)
        To which the work of the call is added, in multiplications of a factorisation.
    """
    n = len(alpha)
    turning = (alpha >= 0.0).all()
    if fresh:
        stride = 1
        while n // (2 * stride) >= _LEAST_LEVEL:
            stride *= 2
        while stride > 1:
            index = np.arange(0, n, stride)
            part = gather(K, index)
            start = alpha[index]
            values = changed(part, sign[index], np.flatnonzero(start), start[start > 0.0])
            left = 1.0 - values - ridge[index] * start
            rough = max(gap, LEVEL_GAP)
            own, price = sign[index], ridge[index]
            # Where rounds do not do on half of the rows, they will not on all of them.
            ended = _rounds(addresses, part, own, price, start, left, rough, tol, np.inf, cost)
            turning = ended == SOLVED
            if not turning:
                newton(addresses, part, own, price, start, left, rough, tol, work, cost)
            alpha[index] = np.maximum(start, 0.0)
            stride //= 2
        used = np.flatnonzero(alpha)
        if len(used):
            residual[:] = 1.0 - changed(K, sign, used, alpha[used]) - ridge * alpha
    if turning:
        ended = _rounds(addresses, K, sign, ridge, alpha, residual, gap, tol, work, cost)
        if ended != STUCK:
            return ended
    return newton(addresses, K, sign, ridge, alpha, residual, gap, tol, work, cost)
