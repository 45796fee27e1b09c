"""Scalar loops of the papers' solvers, compiled by Numba when first used.

Import this module through ``threads.Compiled``. K may be wider than it is high: only its square
part counts, so that a matrix which grows inside a larger array is as fast as one of its own
(C-contiguous rows).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# Rows are looked at in runs of this many: the largest gain of a run is found by vector
# instructions, and only the winning run is searched for its index.
_RUN = 64
# Added to a value so that it is never the largest or the smallest.
_FAR = 1e300


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz"}, cache=True)
def relax(
    H: Any,
    lower: Any,
    upper: Any,
    x: Any,
    residual: Any,
    omega: float,
    greedy: bool,
    tol: float,
    limit: int,
) -> int:
    """Run SOR in place; `residual` is a − Hx and stays so. Return the number of updates."""
    n = len(x)
    updates = 0
    while updates < limit:
        worst = 0.0
        best = -1
        change = 0.0
        for i in range(n):
            r = residual[i]
            if (x[i] <= lower[i] and r < 0.0) or (x[i] >= upper[i] and r > 0.0):
                r = 0.0
            worst = max(worst, abs(r))
            moved = min(max(x[i] + omega * r / H[i, i], lower[i]), upper[i])
            step = moved - x[i]
            if greedy:
                if abs(step) > abs(change):
                    change = step
                    best = i
            elif step != 0.0 and updates < limit:
                x[i] = moved
                row = H[i]
                for j in range(n):
                    residual[j] -= step * row[j]
                updates += 1
        if worst <= tol:
            break
        if greedy:
            if best < 0:
                break
            r = residual[best]
            x[best] = min(max(x[best] + omega * r / H[best, best], lower[best]), upper[best])
            row = H[best]
            for j in range(n):
                residual[j] -= change * row[j]
            updates += 1
    return updates


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz", "nnan", "ninf"}, cache=True)
def pull(
    K: Any,
    sign: Any,
    ridge: Any,
    diagonal: Any,
    weight: Any,
    product: Any,
    center: Any,
    eta: float,
    radius2: float,
    reach2: float,
    limit: int,
) -> int:
    """Move a ball's centre towards points outside its reach, in place; return the updates.

    Algorithm 2 of BVM: while the furthest point i lies outside, c ← φ_i + β (c − φ_i) with β such
    that the new ball just touches it, (5) and (6). `weight` are the coefficients λ of the centre,
    `product` = Qλ, and `center` holds ‖c‖² and the square of the augmented coordinate of
    Algorithm 4. Distances² are eta + ‖c‖² + augmented² − 2 product_i: eta − diagonal_i is the part
    of the distance that the centre cannot change (centre-constrained form).
    """
    n = len(weight)
    n_runs = (n + _RUN - 1) // _RUN
    side = sign.astype(np.float32)
    norm2 = center[0]
    augmented2 = center[1]
    # All coefficients shrink by β at each update: one common factor does it.
    factor = 1.0
    signed = 0.0
    row = K[0]
    updates = 0
    while True:
        for j in range(n):
            product[j] += signed * side[j] * (row[j] + 1.0)
        far = 0
        for run in range(n_runs):
            low = product[run * _RUN]
            for j in range(run * _RUN, min(n, run * _RUN + _RUN)):
                low = product[j] if product[j] < low else low
            if low < product[far]:
                far = run * _RUN
                while product[far] > low:
                    far += 1
        distance2 = eta + norm2 + augmented2 - 2.0 * factor * product[far]
        if distance2 <= reach2 or updates == limit:
            break
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
        product[far] += added * ridge[far]
        signed = added * sign[far]
        row = K[far]
        updates += 1
        if factor < 1e-120:
            for j in range(n):
                product[j] *= factor
                weight[j] *= factor
            signed *= factor
            factor = 1.0
    for j in range(n):
        product[j] *= factor
        weight[j] *= factor
    center[0] = norm2
    center[1] = augmented2
    return updates


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz", "nnan", "ninf"}, cache=True)
def _largest(values: Any) -> int:
    """Return the index of the largest value; their number is a multiple of a run."""
    highest = values[0]
    first = 0
    for start in range(0, len(values), _RUN):
        top = values[start]
        for j in range(start, start + _RUN):
            top = values[j] if values[j] > top else top
        if top > highest:
            highest = top
            first = start
    best = first
    for j in range(first, first + _RUN):
        if values[j] > values[best]:
            best = j
    return best


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz"}, cache=True)
def _deflated_row(K: Any, part: Any, i: int, row: Any, factored: bool) -> None:
    """Write row i of K − partᵀpart, or of KKᵀ − partᵀpart."""
    n = len(row)
    source = K[i]
    if factored:
        for j in range(n):
            total = 0.0
            for k in range(K.shape[1]):
                total += source[k] * K[j, k]
            row[j] = total
    else:
        for j in range(n):
            row[j] = source[j]
    for k in range(len(part)):
        coef = part[k, i]
        direction = part[k]
        for j in range(n):
            row[j] -= coef * direction[j]


@njit(nogil=True, cache=True)
def _to_rise(value: float, upper: float, width: float) -> float:
    """Return what a variable's error lacks if the variable is to rise."""
    if value >= upper:
        return _FAR
    return width if value >= 0.0 else -width


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz", "nnan", "ninf"}, cache=True)
def exchange(
    K: Any,
    part: Any,
    diagonal: Any,
    lower: Any,
    upper: Any,
    width: Any,
    beta: Any,
    error: Any,
    least: float,
    tol: float,
    limit: int,
    factored: bool,
) -> int:
    """Sequential minimal optimisation with a free bias, in place; return the number of updates.

    The problem is min ½ βᵀQβ − yᵀβ + Σ width |β| over lower ≤ β ≤ upper, the sum of β given, for
    Q = K − partᵀpart (KKᵀ − partᵀpart if `factored`) with `diagonal` its diagonal; `error` = y − Qβ
    stays so. Each update moves a pair: the variable i with the largest error that may rise, and
    the j that may fall for which the unbounded step gains most (second-order working set of Fan,
    Chen and Lin 2005). A variable with a width waits at zero, where its error changes by twice the
    width. A curvature below `least` counts as that. It stops when no pair has errors more than
    `tol` apart.
    """
    n = len(beta)
    size = (n + _RUN - 1) // _RUN * _RUN
    rise = np.full(size, -_FAR)
    gain = np.zeros(size)
    no_rise = np.empty(n)
    no_fall = np.empty(n)
    for j in range(n):
        no_rise[j] = _to_rise(beta[j], upper[j], width[j])
        no_fall[j] = _to_rise(-beta[j], -lower[j], width[j])
    row = np.zeros(n)
    other = np.zeros(n)
    step = 0.0
    updates = 0
    while True:
        bottom = _FAR
        for j in range(n):
            r = error[j] - step * (row[j] - other[j])
            error[j] = r
            rise[j] = r - no_rise[j]
            low = r + no_fall[j]
            bottom = low if low < bottom else bottom
        i = _largest(rise)
        if updates == limit or not rise[i] - bottom > tol:
            break
        top = rise[i]
        _deflated_row(K, part, i, row, factored)
        own = diagonal[i]
        for j in range(n):
            distance = top - error[j] - no_fall[j]
            distance = distance if distance > 0.0 else 0.0
            curvature = own + diagonal[j] - 2.0 * row[j]
            curvature = curvature if curvature > least else least
            gain[j] = distance * distance / curvature
        j = _largest(gain)
        _deflated_row(K, part, j, other, factored)
        step = (top - error[j] - no_fall[j]) / max(own + diagonal[j] - 2.0 * row[j], least)
        most = 0.0 if width[i] > 0.0 and beta[i] < 0.0 else upper[i]
        fewest = 0.0 if width[j] > 0.0 and beta[j] > 0.0 else lower[j]
        room_i = most - beta[i]
        room_j = beta[j] - fewest
        step = min(step, room_i, room_j)
        new_i = most if step == room_i else min(beta[i] + step, most)
        new_j = fewest if step == room_j else max(beta[j] - step, fewest)
        if new_i == beta[i] and new_j == beta[j]:
            # The step is below the rounding of both: no pair can do better.
            break
        beta[i] = new_i
        beta[j] = new_j
        no_rise[i] = _to_rise(new_i, upper[i], width[i])
        no_fall[i] = _to_rise(-new_i, -lower[i], width[i])
        no_rise[j] = _to_rise(new_j, upper[j], width[j])
        no_fall[j] = _to_rise(-new_j, -lower[j], width[j])
        updates += 1
    return updates
