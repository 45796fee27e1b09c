"""Scalar loops that BLAS cannot do, compiled by Numba when first used.

K may be wider than it is high: only its square part counts, so that a matrix which grows inside a
larger array is as fast as one of its own (C-contiguous rows).

Import this module inside the function that needs it: Numba takes longer to import than most users
of the package ever need it for.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# Rows are looked at in runs of this many: the largest gain of a run is found by vector
# instructions, and only the winning run is searched for its index.
_RUN = 64


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
def ascend(
    K: Any, sign: Any, ridge: Any, diagonal: Any, alpha: Any, residual: Any, tol: float, limit: int
) -> int:
    """Greedy coordinate ascent on the L2-SVM dual, in place; return the number of updates.

    The matrix is Q_ij = sign_i sign_j (K_ij + 1) + δ_ij ridge_i, with `diagonal` its diagonal, and
    `residual` = 1 − Qα stays so. Each update takes the variable with the largest change, Algorithm
    3 of MMDA-CVM with ω = 1 (a change s that a bound has cut from t counts as √(s (2t − s)), what
    it gains). It stops when that is the change of a variable whose KKT residual is `tol`.

    The choice is made in float32, which halves the memory that it reads; the steps are float64.
    """
    n = len(alpha)
    n_runs = (n + _RUN - 1) // _RUN
    side = sign.astype(np.float32)
    inverse = (1.0 / diagonal).astype(np.float32)
    bound = (-alpha).astype(np.float32)
    gain = np.zeros(n_runs * _RUN, dtype=np.float32)
    signed = 0.0
    row = K[0]
    updates = 0
    while True:
        for j in range(n):
            r = residual[j] - signed * side[j] * (row[j] + 1.0)
            residual[j] = r
            t = np.float32(r) * inverse[j]
            s = t if t > bound[j] else bound[j]
            gain[j] = s * (t + t - s)
        if updates == limit:
            break
        highest = np.float32(0.0)
        first = 0
        for run in range(n_runs):
            top = np.float32(0.0)
            for j in range(run * _RUN, run * _RUN + _RUN):
                top = gain[j] if gain[j] > top else top
            if top > highest:
                highest = top
                first = run * _RUN
        best = first
        for j in range(first, first + _RUN):
            if gain[j] > gain[best]:
                best = j
        if best >= n or highest <= (tol / diagonal[best]) ** 2:
            break
        step = residual[best] / diagonal[best]
        if step <= -alpha[best]:
            step = -alpha[best]
            alpha[best] = 0.0
        else:
            alpha[best] += step
        bound[best] = -alpha[best]
        residual[best] -= step * ridge[best]
        signed = step * sign[best]
        row = K[best]
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


@njit(nogil=True, cache=True)
def gather(K: Any, index: Any) -> Any:
    """Return K[index][:, index] without a copy of whole rows."""
    m = len(index)
    values = np.empty((m, m), dtype=K.dtype)
    for i in range(m):
        row = K[index[i]]
        for j in range(m):
            values[i, j] = row[index[j]]
    return values


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz"}, cache=True)
def combine(K: Any, index: Any, coef: Any) -> Any:
    """Return Σ coef_i K[index_i] over its square part, four rows at a time, summed in float64."""
    n = K.shape[0]
    total = np.zeros(n)
    m = len(index)
    whole = m - m % 4
    for i in range(0, whole, 4):
        a, b, c, d = K[index[i]], K[index[i + 1]], K[index[i + 2]], K[index[i + 3]]
        u, v, w, x = coef[i], coef[i + 1], coef[i + 2], coef[i + 3]
        for j in range(n):
            total[j] += u * a[j] + v * b[j] + w * c[j] + x * d[j]
    for i in range(whole, m):
        row = K[index[i]]
        for j in range(n):
            total[j] += coef[i] * row[j]
    return total


@njit(nogil=True, cache=True)
def mirror(values: Any, n_old: int, n: int) -> None:
    """Copy values[n_old:n, :n_old] to its place above the diagonal, tile by tile for the cache."""
    tile = 32
    for i0 in range(n_old, n, tile):
        for j0 in range(0, n_old, tile):
            for j in range(j0, min(n_old, j0 + tile)):
                for i in range(i0, min(n, i0 + tile)):
                    values[j, i] = values[i, j]


@njit(nogil=True, cache=True)
def compress(values: Any, index: Any) -> None:
    """Move the rows and columns at `index`, which ascends, to the front, in place."""
    for i in range(len(index)):
        source = values[index[i]]
        target = values[i]
        for j in range(len(index)):
            target[j] = source[index[j]]


# Added to a value so that it is never the largest or the smallest.
_FAR = 1e300


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


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz", "nnan", "ninf"}, cache=True)
def exchange(
    K: Any,
    part: Any,
    diagonal: Any,
    lower: Any,
    upper: Any,
    beta: Any,
    error: Any,
    least: float,
    tol: float,
    limit: int,
    factored: bool,
) -> int:
    """Sequential minimal optimisation with a free bias, in place; return the number of updates.

    The problem is min ½ βᵀQβ − yᵀβ over lower ≤ β ≤ upper, the sum of β given, for
    Q = K − partᵀpart (KKᵀ − partᵀpart if `factored`) with `diagonal` its diagonal; `error` = y − Qβ
    stays so. Each update moves a pair: the variable i with the largest error that may rise, and
    the j that may fall for which the unbounded step gains most (second-order working set of Fan,
    Chen and Lin 2005). A curvature below `least` counts as that. It stops when no pair has errors
    more than `tol` apart.
    """
    n = len(beta)
    size = (n + _RUN - 1) // _RUN * _RUN
    rise = np.full(size, -_FAR)
    gain = np.zeros(size)
    no_rise = np.empty(n)
    no_fall = np.empty(n)
    for j in range(n):
        no_rise[j] = 0.0 if beta[j] < upper[j] else _FAR
        no_fall[j] = 0.0 if beta[j] > lower[j] else _FAR
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
        top = error[i]
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
        step = (top - error[j]) / max(own + diagonal[j] - 2.0 * row[j], least)
        room_i = upper[i] - beta[i]
        room_j = beta[j] - lower[j]
        step = min(step, room_i, room_j)
        new_i = upper[i] if step == room_i else min(beta[i] + step, upper[i])
        new_j = lower[j] if step == room_j else max(beta[j] - step, lower[j])
        if new_i == beta[i] and new_j == beta[j]:
            # The step is below the rounding of both: no pair can do better.
            break
        beta[i] = new_i
        beta[j] = new_j
        no_rise[i] = 0.0 if new_i < upper[i] else _FAR
        no_fall[i] = 0.0 if new_i > lower[i] else _FAR
        no_rise[j] = 0.0 if new_j < upper[j] else _FAR
        no_fall[j] = 0.0 if new_j > lower[j] else _FAR
        updates += 1
    return updates
