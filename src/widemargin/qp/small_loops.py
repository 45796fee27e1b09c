"""The small machine, compiled by Numba when first used and kept on disk for the next process.

Import this module through ``threads.Compiled``. Nothing in here holds Python's lock, so calls of
several threads run beside each other; LAPACK and its addresses come from SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from widemargin.qp.margin_loops import ascend, combine, gather

# What a multiplication of an update costs, relative to one inside a factorisation.
_UPDATE_COST = 16.0
# What a multiplication of a product with rows of K costs.
_PRODUCT_COST = 16.0
# Newton steps whose cost coordinate ascent may take before they take over.
_TURNS = 1.0
# Share of a residual that a solution must leave at the most, or factors are made in float64.
_REFINED = 0.3
# What is added to the diagonal of a matrix without a factor, for each row, over its largest value.
_LEAST_JITTER = 1e-16
_MOST_JITTER = 1e-8
# Updates between two looks at the gap, at the least.
_LEAST_SPELL = 32

# Rows of the first set on a larger matrix, at the least, and as a part of all.
_FIRST_LEAST = 96
_FIRST_PART = 16
# Share of the rows up to which a set is worth it.
_MOST_SHARE = 0.4
# Sets at the most.
_MOST_SETS = 12
# Rows of the smallest part that is solved before the rest.
_LEAST_LEVEL = 300
# The gap to which parts are solved.
_LEVEL_GAP = 1e-2

SOLVED, UNFINISHED, STUCK, NOT_POSITIVE = 0, 1, 2, 3


@intrinsic
def _call5(typing: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    """Call a function of five pointers at an address."""
    return _pointer_call(5)


@intrinsic
def _call8(
    typing: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any
) -> Any:
    """Call a function of eight pointers at an address."""
    return _pointer_call(8)


def _pointer_call(count: int) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        function = ir.FunctionType(ir.VoidType(), [pointer] * count)
        called = builder.inttoptr(arguments[0], function.as_pointer())
        builder.call(called, [builder.inttoptr(each, pointer) for each in arguments[1:]])
        return context.get_dummy_value()

    return types.void(*[types.uintp] * (count + 1)), generate


@njit(nogil=True, cache=True)
def factorise(potrf: int, matrix: Any) -> bool:
    """Replace a symmetric matrix by its Cholesky factor; return whether there is one."""
    numbers = np.array([matrix.shape[0], 0], dtype=np.int32)
    letter = np.array([76], dtype=np.uint8)
    size = numbers.ctypes.data
    _call5(  # type: ignore[call-arg]
        potrf, letter.ctypes.data, size, matrix.ctypes.data, size, size + 4
    )
    return numbers[1] == 0


@njit(nogil=True, cache=True)
def divide(potrs: int, factor: Any, right: Any) -> None:
    """Solve with a factor, in place."""
    numbers = np.array([factor.shape[0], 1, 0], dtype=np.int32)
    letter = np.array([76], dtype=np.uint8)
    size = numbers.ctypes.data
    _call8(  # type: ignore[call-arg]
        potrs,
        letter.ctypes.data,
        size,
        size + 4,
        factor.ctypes.data,
        size,
        right.ctypes.data,
        size,
        size + 8,
    )


@njit(nogil=True, cache=True)
def _gather_lower(K: Any, index: Any, ridge: Any, factor: Any) -> None:
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
def _primal(alpha: Any, margin: Any, ridge: Any) -> float:
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
def _solved(alpha: Any, residual: Any, ridge: Any, gap: float, tol: float) -> bool:
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
def _changed(K: Any, sign: Any, index: Any, change: Any) -> Any:
    """Return y (K + 1) y change, of rows at `index`, for all rows."""
    coef = change * sign[index]
    values = combine(K, index, coef)
    total = coef.sum()
    for i in range(len(values)):
        values[i] = sign[i] * (values[i] + total)
    return values


@njit(nogil=True, cache=True)
def _solution(potrf: int, potrs: int, factor: Any, right: Any) -> Any:
    """Return the solution with a factor, in float64."""
    solution = right.astype(factor.dtype)
    divide(potrs, factor, solution)
    return solution.astype(np.float64)


@njit(nogil=True, cache=True)
def _newton(
    addresses: Any,
    K: Any,
    sign: Any,
    ridge: Any,
    alpha: Any,
    residual: Any,
    gap: float,
    tol: float,
    work: float,
) -> int:
    """Newton's method on the primal, in kernel space; α and its residual are changed in place."""
    n = len(alpha)
    margin = 1.0 - residual - ridge * alpha
    spent = 0.0
    double = K.itemsize == 8
    jitter = 0.0
    largest = 1.0
    for i in range(n):
        largest = max(largest, abs(K[i, i]))
    single_factor = np.empty((0, 0), dtype=np.float32)
    double_factor = np.empty((0, 0), dtype=np.float64)
    factored = np.zeros(n, dtype=np.bool_)
    point = alpha.copy()
    best = np.inf
    before = np.inf
    stalled = 0
    while True:
        value = _primal(point, margin, ridge)
        stalled = 0 if before - value > 1e-3 * gap * value else stalled + 1
        # The point without what lies beyond its margin, or has the wrong sign.
        active = margin < 1.0
        drop = np.flatnonzero((point < 0.0) | ((point > 0.0) & ~active))
        base = point.copy()
        base_margin = margin.copy()
        if len(drop):
            base[drop] = 0.0
            base_margin -= _changed(K, sign, drop, point[drop])
            spent += _PRODUCT_COST * len(drop) * n
        base_residual = 1.0 - base_margin - ridge * base
        primal = objectives(base, base_residual, ridge)[0]
        if primal < best:
            # The caller sees the best point whatever happens.
            best = primal
            alpha[:] = base
            residual[:] = base_residual
        if primal <= value:
            point[:] = base
            margin[:] = base_margin
        if _solved(base, base_residual, ridge, gap, tol):
            alpha[:] = base
            residual[:] = base_residual
            return SOLVED
        if stalled > 3 and not double:
            # Steps by factors in float32 lead nowhere.
            double = True
            stalled = 0
            factored[:] = False
            single_factor = np.empty((0, 0), dtype=np.float32)
        if stalled > 3 or not active.any() or not value >= 0.0:
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
        step = right
        change = base_margin
        while True:
            m = len(index)
            ready = single_factor.shape[0] == m or double_factor.shape[0] == m
            if not ready or (factored != active).any():
                shift = ridge + jitter
                if double:
                    single_factor = np.empty((0, 0), dtype=np.float32)
                    double_factor = np.empty((m, m), dtype=np.float64)
                    _gather_lower(K, index, shift, double_factor)
                    good = factorise(addresses[2], double_factor)
                else:
                    single_factor = np.empty((m, m), dtype=np.float32)
                    _gather_lower(K, index, shift, single_factor)
                    good = factorise(addresses[0], single_factor)
                spent += float(m) ** 3 / 3.0
                if not good:
                    factored[:] = False
                    single_factor = np.empty((0, 0), dtype=np.float32)
                    double_factor = np.empty((0, 0), dtype=np.float64)
                    if double:
                        # Rows that depend on each other but for rounding, or not a kernel.
                        jitter = max(_LEAST_JITTER * n * largest, 100.0 * jitter)
                        if jitter > _MOST_JITTER * n * largest:
                            return NOT_POSITIVE
                    double = True
                    continue
                factored[:] = active
            coef = right * sign[index]
            if double:
                step = _solution(addresses[2], addresses[3], double_factor, coef) * sign[index]
            else:
                step = _solution(addresses[0], addresses[1], single_factor, coef) * sign[index]
            change = _changed(K, sign, index, step)
            spent += _PRODUCT_COST * float(m) * n + float(m) ** 2
            left = right - change[index] - ridge[index] * step
            if double or np.abs(left).max() <= _REFINED * np.abs(right).max():
                break
            double = True
            single_factor = np.empty((0, 0), dtype=np.float32)
        target = base.copy()
        target[index] += step
        moved = base_margin + change - margin
        direction = target - point
        slope0 = (direction * margin).sum()
        curve0 = (direction * moved).sum()
        t = step_length(margin, moved, ridge, slope0, curve0)
        point += t * direction
        margin += t * moved


@njit(nogil=True, cache=True)
def _ascent(
    K: Any, sign: Any, ridge: Any, alpha: Any, residual: Any, gap: float, tol: float
) -> bool:
    """Coordinate ascent for as long as it is worth its time; return whether the gap is reached."""
    n = len(alpha)
    diagonal = np.empty(n)
    for i in range(n):
        diagonal[i] = K[i, i] + 1.0 + ridge[i]
    spell = max(_LEAST_SPELL, n // 16)
    spent = 0.0
    while True:
        updates = ascend(K, sign, ridge, diagonal, alpha, residual, tol, spell)
        spent += _UPDATE_COST * updates * n
        if _solved(alpha, residual, ridge, gap, tol):
            return True
        # Rows inside the margin, of which there are many as long as the support is not found.
        active = float(((alpha > 0.0) | (residual > 0.0)).sum())
        newton = active**3 / 3.0 + _PRODUCT_COST * active * n
        if updates < spell or spent > _TURNS * newton:
            return False


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
    """
    n = len(alpha)
    # Where ascent did not do on a part of the rows, it will not on more of them.
    ascending = (alpha >= 0.0).all()
    if fresh:
        stride = 1
        while n // (2 * stride) >= _LEAST_LEVEL:
            stride *= 2
        while stride > 1:
            index = np.arange(0, n, stride)
            part = gather(K, index)
            start = alpha[index]
            values = _changed(part, sign[index], np.flatnonzero(start), start[start > 0.0])
            left = 1.0 - values - ridge[index] * start
            rough = max(gap, _LEVEL_GAP)
            if ascending:
                ascending = _ascent(part, sign[index], ridge[index], start, left, rough, tol)
            if not ascending:
                _newton(addresses, part, sign[index], ridge[index], start, left, rough, tol, work)
            alpha[index] = np.maximum(start, 0.0)
            stride //= 2
        used = np.flatnonzero(alpha)
        if len(used):
            residual[:] = 1.0 - _changed(K, sign, used, alpha[used]) - ridge * alpha
    if ascending and _ascent(K, sign, ridge, alpha, residual, gap, tol):
        return SOLVED
    return _newton(addresses, K, sign, ridge, alpha, residual, gap, tol, work)


@njit(nogil=True, cache=True)
def _mixture(K: Any, rows: Any, index: Any, coef: Any) -> Any:
    """Return Σ coef_i K[rows_i, index] + Σ coef, summed in float64."""
    total = np.full(len(index), coef.sum())
    for i in range(len(rows)):
        row = K[rows[i]]
        c = coef[i]
        for j in range(len(index)):
            total[j] += c * row[index[j]]
    return total


@njit(nogil=True, cache=True)
def solve_on(
    addresses: Any,
    K: Any,
    index: Any,
    sign: Any,
    ridge: Any,
    alpha: Any,
    residual: Any,
    gap: float,
    tol: float,
) -> int:
    """Solve the dual on some rows of a larger matrix, in place; return how it ended.

    The problem is solved on a set of rows that grows by those which turn out to be inside their
    margin, as long as it stays small; on all of them otherwise.

    Parameters
    ----------
    addresses : ndarray of uint64 of shape (4,)
        As in `solve`.
    K : ndarray of shape (n, n)
        Kernel matrix.
    index : ndarray of int of shape (m,)
        The rows.
    sign, ridge : ndarray of shape (m,)
        Their labels ±1, and 1 / (2 C s).
    alpha, residual : ndarray of shape (m,)
        Where to start, not negative, and 1 − Qα at the end.
    gap, tol : float
        The relative gap or the KKT residual to be reached.
    """
    m = len(index)
    inside = alpha > 0.0
    first = not inside.any()
    rough = gap
    if first:
        step = max(1, m // max(_FIRST_LEAST, m // _FIRST_PART))
        inside[::step] = True
        rough = max(gap, _LEVEL_GAP)
    for _ in range(_MOST_SETS):
        members = np.flatnonzero(inside)
        if len(members) > _MOST_SHARE * m:
            break
        rows = index[members]
        part = gather(K, rows)
        start = alpha[members]
        used = np.flatnonzero(start)
        left = 1.0 - ridge[members] * start
        left -= _changed(part, sign[members], used, start[used])
        solve(
            addresses, part, sign[members], ridge[members], start, left, rough, tol, np.inf, first
        )
        alpha[members] = start
        used = np.flatnonzero(start)
        if first and len(used) > _MOST_SHARE * len(members):
            break
        first = False
        values = _mixture(K, rows[used], index, (start * sign[members])[used])
        for i in range(m):
            residual[i] = 1.0 - sign[i] * values[i] - ridge[i] * alpha[i]
        if _solved(alpha, residual, ridge, gap, tol):
            return SOLVED
        outside = (residual > 0.0) & ~inside
        if not outside.any():
            rough = 0.1 * rough
            if rough < 1e-15:
                return STUCK
        count = outside.sum()
        most = max(_FIRST_LEAST, len(members))
        if count > most:
            worst = np.sort(residual[outside])[count - most]
            outside &= residual >= worst
        inside |= outside
        rough = max(gap, min(rough, _LEVEL_GAP))
    part = gather(K, index)
    used = np.flatnonzero(alpha)
    residual[:] = 1.0 - ridge * alpha - _changed(part, sign, used, alpha[used])
    return solve(addresses, part, sign, ridge, alpha, residual, gap, tol, np.inf, len(used) == 0)


@njit(nogil=True, cache=True)
def solve_all(
    addresses: Any,
    K: Any,
    signs: Any,
    weight: Any,
    C: Any,
    gap: float,
    tol: float,
    beta: Any,
    proved: Any,
) -> None:
    """Solve several problems on one matrix.

    Parameters
    ----------
    addresses : ndarray of uint64 of shape (4,)
        As in `solve`.
    K : ndarray of shape (n, n)
        Kernel matrix.
    signs : ndarray of shape (n, n_problems)
        Labels ±1, and 0 for rows that take no part.
    weight, C : ndarray of shape (n,) and (n_problems,)
        Of rows, and of problems.
    gap, tol : float
        As in `solve`.
    beta : ndarray of shape (n, n_problems)
        Where y α is written; zero where all rows of a problem are on one side.
    proved : ndarray of shape (n_problems, 4)
        Where primal, dual, ‖α‖ and how it ended are written.
    """
    n = len(weight)
    for p in range(len(C)):
        index = np.flatnonzero(signs[:, p])
        sign = signs[index, p].copy()
        proved[p, :] = 0.0
        if abs(sign.sum()) == len(sign):
            continue
        ridge = 1.0 / (2.0 * C[p] * weight[index])
        part = K if len(index) == n else gather(K, index)
        alpha = np.zeros(len(index))
        residual = np.ones(len(index))
        ended = solve(addresses, part, sign, ridge, alpha, residual, gap, tol, np.inf, True)
        primal, dual = objectives(alpha, residual, ridge)
        beta[index, p] = sign * alpha
        proved[p, 0] = primal
        proved[p, 1] = dual
        proved[p, 2] = np.sqrt((alpha * alpha).sum())
        proved[p, 3] = ended


@njit(nogil=True, cache=True)
def solve_path(
    addresses: Any,
    K: Any,
    train: Any,
    sign: Any,
    weight: Any,
    Cs: Any,
    gap: float,
    beta: Any,
) -> None:
    """Solve one problem for every C on some rows of a matrix.

    Parameters
    ----------
    addresses : ndarray of uint64 of shape (4,)
        As in `solve`.
    K : ndarray of shape (n, n)
        Kernel matrix.
    train : ndarray of int of shape (m,)
        The rows.
    sign, weight : ndarray of shape (m,)
        Their labels, of both signs, and weights.
    Cs : ndarray of shape (n_Cs,)
        Ascending: each starts from the solution of the one before.
    gap : float
        As in `solve`.
    beta : ndarray of shape (m, n_Cs)
        Where the coefficients y α are written.
    """
    alpha = np.zeros(len(train))
    residual = np.ones(len(train))
    for c in range(len(Cs)):
        ridge = 1.0 / (2.0 * Cs[c] * weight)
        solve_on(addresses, K, train, sign, ridge, alpha, residual, gap, 0.0)
        beta[:, c] = sign * alpha


@njit(nogil=True, cache=True)
def corner(K: Any, rows: Any, columns: Any) -> Any:
    """Return K[rows][:, columns]."""
    values = np.empty((len(rows), len(columns)), dtype=K.dtype)
    for i in range(len(rows)):
        row = K[rows[i]]
        for j in range(len(columns)):
            values[i, j] = row[columns[j]]
    return values
