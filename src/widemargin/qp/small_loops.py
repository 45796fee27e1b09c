"""The small machine, compiled by Numba when first used and kept on disk for the next process.

Import this module through ``threads.Compiled``. Nothing in here holds Python's lock, so calls of
several threads run beside each other. See ``margin_dual`` for the problem and the method.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from widemargin.qp.margin_loops import ascend, gather
from widemargin.qp.newton_loops import (
    NOT_POSITIVE as NOT_POSITIVE,
)
from widemargin.qp.newton_loops import (
    PRODUCT_COST,
    SOLVED,
    changed,
    is_solved,
    newton,
)
from widemargin.qp.newton_loops import (
    UNFINISHED as UNFINISHED,
)

# What a multiplication of an update costs, relative to one inside a factorisation.
_UPDATE_COST = 16.0
# Newton steps whose cost coordinate ascent may take before they take over.
_TURNS = 1.0
# Updates between two looks at the gap, at the least.
_LEAST_SPELL = 32
# Rows of the smallest part that is solved before the rest.
_LEAST_LEVEL = 300
# The gap to which parts are solved.
LEVEL_GAP = 1e-2


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
        if is_solved(alpha, residual, ridge, gap, tol):
            return True
        # Rows inside the margin, of which there are many as long as the support is not found.
        active = float(((alpha > 0.0) | (residual > 0.0)).sum())
        newton = active**3 / 3.0 + PRODUCT_COST * active * n
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
            values = changed(part, sign[index], np.flatnonzero(start), start[start > 0.0])
            left = 1.0 - values - ridge[index] * start
            rough = max(gap, LEVEL_GAP)
            if ascending:
                ascending = _ascent(part, sign[index], ridge[index], start, left, rough, tol)
            if not ascending:
                newton(addresses, part, sign[index], ridge[index], start, left, rough, tol, work)
            alpha[index] = np.maximum(start, 0.0)
            stride //= 2
        used = np.flatnonzero(alpha)
        if len(used):
            residual[:] = 1.0 - changed(K, sign, used, alpha[used]) - ridge * alpha
    if ascending and _ascent(K, sign, ridge, alpha, residual, gap, tol):
        return SOLVED
    return newton(addresses, K, sign, ridge, alpha, residual, gap, tol, work)
