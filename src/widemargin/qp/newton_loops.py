"""Newton's method on the primal of the L2-SVM in kernel space, compiled by Numba.

With the rows A inside the margin, (K_AA + 1 + ridge) β = y is solved by a Cholesky factor, and an
exact line search leads there. See ``margin_dual`` for the problem.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from widemargin.qp.lapack_loops import divide, factorise
from widemargin.qp.margin_loops import combine

# What a multiplication of a product with rows of K costs.
PRODUCT_COST = 16.0
# Share of a residual that a solution must leave at the most, or factors are made in float64.
_REFINED = 0.3
# What is added to the diagonal of a matrix without a factor, for each row, over its largest value.
_LEAST_JITTER = 1e-16
_MOST_JITTER = 1e-8
# Steps without progress before it ends.
_PATIENCE = 3

SOLVED = 0
UNFINISHED = 1
STUCK = 2
NOT_POSITIVE = 3


@njit(nogil=True, cache=True)
def gather_lower(K: Any, index: Any, ridge: Any, factor: Any) -> None:
    """Write (K + 1)[index][:, index] + ridge, the half of it that LAPACK reads."""
    for i in range(len(index)):
        row = K[index[i]]
        line = factor[i]
        for j in range(i, len(index)):
            line[j] = row[index[j]] + 1
        line[i] += ridge[index[i]]


@njit(nogil=True, cache=True)
def objectives(alpha: Any, residual: Any, ridge: Any) -> Any:
    """Return the primal and the dual value of α."""
    norm2 = 0.0
    loss = 0.0
    total = 0.0
    spread = 0.0
    for i in range(len(alpha)):
        slack = residual[i] + ridge[i] * alpha[i]
        norm2 += alpha[i] * (1.0 - slack)
        loss += max(slack, 0.0) * (max(slack, 0.0) / ridge[i])
        total += alpha[i]
        spread += alpha[i] * (alpha[i] * ridge[i])
    return 0.5 * (norm2 + loss), total - 0.5 * (norm2 + spread)


@njit(nogil=True, cache=True)
def primal_of(alpha: Any, margin: Any, ridge: Any) -> float:
    """Return the primal value of any coefficients."""
    value = 0.0
    for i in range(len(alpha)):
        slack = max(0.0, 1.0 - margin[i])
        value += alpha[i] * margin[i] + slack * (slack / ridge[i])
    return 0.5 * value


@njit(nogil=True, cache=True)
def _kkt(alpha: Any, residual: Any) -> float:
    """Return the largest violation of the KKT conditions."""
    worst = 0.0
    for i in range(len(alpha)):
        worst = max(worst, abs(residual[i]) if alpha[i] > 0.0 else residual[i])
    return worst


@njit(nogil=True, cache=True)
def is_solved(alpha: Any, residual: Any, ridge: Any, gap: float, tol: float) -> bool:
    """Return whether the relative gap or the KKT residual is small enough."""
    primal, dual = objectives(alpha, residual, ridge)
    return primal - dual <= gap * primal or _kkt(alpha, residual) <= tol


@njit(nogil=True, cache=True)
def step_length(margin: Any, change: Any, ridge: Any, slope0: float, curve0: float) -> float:
    """Return the step along a direction that minimises the objective.

    Its slope is piecewise linear and rises: Newton's method finds where it vanishes, between
    bounds that close in on it.
    """
    low, high = 0.0, np.inf
    t = 1.0
    for _ in range(60):
        slope = slope0 + t * curve0
        curve = curve0
        for i in range(len(margin)):
            slack = 1.0 - margin[i] - t * change[i]
            if slack > 0.0:
                slope -= slack * change[i] / ridge[i]
                curve += change[i] * change[i] / ridge[i]
        if abs(slope) <= 1e-12 * abs(slope0) or curve <= 0.0:
            break
        if slope > 0.0:
            high = t
        else:
            low = t
        after = t - slope / curve
        if not low < after < high:
            after = 0.5 * (low + high) if high < np.inf else 2.0 * t
        if abs(after - t) <= 1e-9 * t:
            t = after
            break
        t = after
    return t


@njit(nogil=True, cache=True)
def changed(K: Any, sign: Any, index: Any, change: Any) -> Any:
    """Return y (K + 1) y change, of rows at `index`, for all rows."""
    coef = change * sign[index]
    values = combine(K, index, coef)
    total = coef.sum()
    for i in range(len(values)):
        values[i] = sign[i] * (values[i] + total)
    return values


@njit(nogil=True, cache=True)
def _system(addresses: Any, K: Any, index: Any, ridge: Any, right: Any, double: bool) -> Any:
    """Return whether (K + 1)[index][:, index] + ridge has a factor, and its solution."""
    m = len(index)
    if double:
        factor = np.empty((m, m), dtype=np.float64)
        gather_lower(K, index, ridge, factor)
        solution = right.copy()
        good = factorise(addresses[2], factor)
        if good:
            divide(addresses[3], factor, solution)
        return good, solution
    coarse = np.empty((m, m), dtype=np.float32)
    gather_lower(K, index, ridge, coarse)
    rough = right.astype(np.float32)
    good = factorise(addresses[0], coarse)
    if good:
        divide(addresses[1], coarse, rough)
    return good, rough.astype(np.float64)


@njit(nogil=True, cache=True)
def _newton_step(
    addresses: Any, K: Any, sign: Any, ridge: Any, index: Any, right: Any, double: bool
) -> Any:
    """Return Newton's step for the rows inside the margin, and what it does to all margins.

    Also whether the factor was float64: it is where float32 has none, or leaves too much of the
    residual. No factor even then, with a little more on the diagonal, gives no step.
    """
    largest = 1.0
    for i in range(len(ridge)):
        largest = max(largest, abs(K[i, i]))
    jitter = 0.0
    while jitter <= _MOST_JITTER * len(ridge) * largest:
        good, solution = _system(addresses, K, index, ridge + jitter, right * sign[index], double)
        if good:
            step = solution * sign[index]
            change = changed(K, sign, index, step)
            left = right - change[index] - ridge[index] * step
            if double or np.abs(left).max() <= _REFINED * np.abs(right).max():
                return step, change, double
        if double:
            # Rows that depend on each other but for rounding, or not a kernel.
            jitter = max(_LEAST_JITTER * len(ridge) * largest, 100.0 * jitter)
        double = True
    return right[:0], right[:0], double


@njit(nogil=True, cache=True)
def newton(
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
    """Newton's method on the primal, in kernel space; α and its residual are changed in place.

    The arguments are those of the small machine (``small_loops.solve``).
    """
    n = len(alpha)
    margin = 1.0 - residual - ridge * alpha
    point = alpha.copy()
    double = K.itemsize == 8
    best = before = np.inf
    spent = 0.0
    stalled = 0
    while True:
        value = primal_of(point, margin, ridge)
        stalled = 0 if before - value > 1e-3 * gap * value else stalled + 1
        # The point without what lies beyond its margin, or has the wrong sign.
        active = margin < 1.0
        drop = np.flatnonzero((point < 0.0) | ((point > 0.0) & ~active))
        base = point.copy()
        base[drop] = 0.0
        base_margin = margin - changed(K, sign, drop, point[drop])
        base_residual = 1.0 - base_margin - ridge * base
        primal = objectives(base, base_residual, ridge)[0]
        solved = is_solved(base, base_residual, ridge, gap, tol)
        if primal < best or solved:
            # The caller sees the best point whatever happens.
            best = primal
            alpha[:] = base
            residual[:] = base_residual
        if solved:
            return SOLVED
        if primal <= value:
            point[:] = base
            margin[:] = base_margin
        if stalled > _PATIENCE and not double:
            # Steps by factors in float32 lead nowhere.
            double = True
            stalled = 0
        if stalled > _PATIENCE or not active.any() or not value >= 0.0:
            # No progress, or none that rounding leaves visible.
            return STUCK
        if before < np.inf and spent > work and stalled == 0:
            # Where the next call goes on; coefficients of the wrong sign are part of it.
            alpha[:] = point
            residual[:] = 1.0 - margin - ridge * point
            return UNFINISHED
        before = value
        index = np.flatnonzero(active)
        right = base_residual[index]
        step, change, double = _newton_step(addresses, K, sign, ridge, index, right, double)
        if not len(step):
            return NOT_POSITIVE
        taken = float(len(index)) ** 3 / 3.0 + PRODUCT_COST * float(len(index) + len(drop)) * n
        spent += taken
        cost[0] += taken
        base[index] += step
        direction = base - point
        moved = base_margin + change - margin
        slope = (direction * margin).sum()
        t = step_length(margin, moved, ridge, slope, (direction * moved).sum())
        point += t * direction
        margin += t * moved
