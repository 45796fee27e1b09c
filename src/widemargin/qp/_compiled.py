"""Scalar loops that BLAS cannot do, compiled by Numba when first used.

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
            elif step != 0.0:
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
    `residual` = 1 − Qα stays so. Each update takes the largest gain
    s (residual_i − ½ s Q_ii), s being the clipped step; with a constant diagonal that is the largest
    change, Algorithm 3 of MMDA-CVM with ω = 1. It stops when no gain exceeds that of a variable
    whose KKT residual is `tol`.
    """
    n = len(alpha)
    n_runs = (n + _RUN - 1) // _RUN
    run_gain = np.empty(n_runs)
    step = 0.0
    signed = 0.0
    row = K[0]
    updates = 0
    while True:
        for b in range(n_runs):
            top = 0.0
            for j in range(b * _RUN, min(n, b * _RUN + _RUN)):
                r = residual[j] - signed * sign[j] * (row[j] + 1.0)
                residual[j] = r
                s = max(r / diagonal[j], -alpha[j])
                top = max(top, s * (r - 0.5 * s * diagonal[j]))
            run_gain[b] = top
        best_run = 0
        for b in range(1, n_runs):
            if run_gain[b] > run_gain[best_run]:
                best_run = b
        if updates == limit:
            break
        best = -1
        gain = 0.0
        for j in range(best_run * _RUN, min(n, best_run * _RUN + _RUN)):
            s = max(residual[j] / diagonal[j], -alpha[j])
            g = s * (residual[j] - 0.5 * s * diagonal[j])
            if g > gain:
                gain = g
                best = j
        if best < 0 or gain <= 0.5 * tol * tol / diagonal[best]:
            break
        if residual[best] / diagonal[best] <= -alpha[best]:
            step = -alpha[best]
            alpha[best] = 0.0
        else:
            step = residual[best] / diagonal[best]
            alpha[best] += step
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
    run_low = np.empty(n_runs)
    norm2 = center[0]
    augmented2 = center[1]
    # All coefficients shrink by β at each update: one common factor does it.
    factor = 1.0
    signed = 0.0
    row = K[0]
    updates = 0
    while True:
        for b in range(n_runs):
            low = np.inf
            for j in range(b * _RUN, min(n, b * _RUN + _RUN)):
                p = product[j] + signed * sign[j] * (row[j] + 1.0)
                product[j] = p
                low = min(low, p)
            run_low[b] = low
        best_run = 0
        for b in range(1, n_runs):
            if run_low[b] < run_low[best_run]:
                best_run = b
        far = best_run * _RUN
        for j in range(far, min(n, far + _RUN)):
            if product[j] < product[far]:
                far = j
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
    """Return Σ coef_i K[index_i], four rows at a time, summed in float64."""
    n = K.shape[1]
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
