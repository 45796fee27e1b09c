"""Scalar loops of the squared hinge, compiled by Numba when first used.

Import this module through ``threads.Compiled``.

The dual: K may be wider than it is high: only its square part counts, so that a matrix which grows
inside a larger array is as fast as one of its own (C-contiguous rows).

The primal: row i in problem p has the label y = table[code_i, p] and the weight C_p s_i, times how
often the problem counts the row's fold. Columns of scores are problems. Sums are float64 whatever
the type of the scores. There are no branches inside these loops, so that they use the processor's
vector units; with few problems those are better filled along the rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# Rows are looked at in runs of this many: the largest gain of a run is found by vector
# instructions, and only the winning run is searched for its index.
_RUN = 64
# Values of a piece of a row, on the average, from which pieces are copied and not values.
_LEAST_PIECE = 16
# Problems below which loops run along the rows.
_FEW = 8


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


@njit(nogil=True, cache=True)
def gather(K: Any, index: Any) -> Any:
    """Return K[index][:, index] without a copy of whole rows.

    Where the index is a few runs of neighbours, as that of two classes or of a fold is, whole
    pieces are copied.
    """
    m = len(index)
    values = np.empty((m, m), dtype=K.dtype)
    ends = np.flatnonzero(np.diff(index) != 1) + 1
    if len(ends) * _LEAST_PIECE > m:
        for i in range(m):
            row = K[index[i]]
            for j in range(m):
                values[i, j] = row[index[j]]
        return values
    for i in range(m):
        row = K[index[i]]
        line = values[i]
        begin = 0
        for piece in range(len(ends) + 1):
            end = ends[piece] if piece < len(ends) else m
            first = index[begin]
            line[begin:end] = row[first : first + end - begin]
            begin = end
    return values


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz"}, cache=True)
def mix(K: Any, index: Any, coef: Any, first: int, n: int) -> Any:
    """Return Σ coef_i K[index_i, first : first + n], four rows at a time, summed in float64."""
    total = np.zeros(n)
    m = len(index)
    whole = m - m % 4
    for i in range(0, whole, 4):
        a, b = K[index[i]][first : first + n], K[index[i + 1]][first : first + n]
        c, d = K[index[i + 2]][first : first + n], K[index[i + 3]][first : first + n]
        u, v, w, x = coef[i], coef[i + 1], coef[i + 2], coef[i + 3]
        for j in range(n):
            total[j] += u * a[j] + v * b[j] + w * c[j] + x * d[j]
    for i in range(whole, m):
        row = K[index[i]][first : first + n]
        for j in range(n):
            total[j] += coef[i] * row[j]
    return total


@njit(nogil=True, cache=True)
def combine(K: Any, index: Any, coef: Any) -> Any:
    """Return Σ coef_i K[index_i] over its square part."""
    return mix(K, index, coef, 0, K.shape[0])


@njit(nogil=True, cache=True)
def compress(values: Any, index: Any) -> None:
    """Move the rows and columns at `index`, which ascends, to the front, in place."""
    for i in range(len(index)):
        source = values[index[i]]
        target = values[i]
        for j in range(len(index)):
            target[j] = source[index[j]]


@njit(cache=True, nogil=True, fastmath=True)
def slopes(
    F: Any,
    code: Any,
    weight: Any,
    fold: Any,
    table: Any,
    C: Any,
    counts: Any,
    mixture: Any,
    A: Any,
    sums: Any,
) -> None:
    """Set A = 2 C s y ξ for ξ = max(0, 1 − y F), and add up what the objectives need.

    sums[0] += Σ C s ξ², sums[1] += Σ A, sums[2] += Σ y A, sums[3] += Σ A mixture / (2 C s), with
    s times how often a row is counted.
    """
    n, m = F.shape
    for i in range(n):
        for p in range(m):
            y = table[code[i], p]
            count = counts[fold[i], p]
            slack = max(1 - y * F[i, p], F[i, p] * 0) * (count > 0)
            a = 2 * C[p] * weight[i] * count * slack
            A[i, p] = a * y
            sums[0, p] += a * slack / 2
            sums[1, p] += a * y
            sums[2, p] += a
            # A / (2 C s) = y ξ: no division, and right for rows of no weight too.
            sums[3, p] += y * slack * mixture[i, p]


@njit(cache=True, nogil=True, fastmath=True)
def blend(
    F: Any,
    code: Any,
    weight: Any,
    fold: Any,
    table: Any,
    C: Any,
    counts: Any,
    live: Any,
    share: Any,
    mixture: Any,
) -> None:
    """Move the mixture of the live problems towards A by a share: (1 − share) mixture + share A."""
    for i in range(F.shape[0]):
        for j in range(live.shape[0]):
            p = live[j]
            y = table[code[i], p]
            slack = max(1 - y * F[i, p], F[i, p] * 0)
            a = 2 * C[p] * weight[i] * counts[fold[i], p] * y * slack
            mixture[i, p] += share[j] * (a - mixture[i, p])


@njit(cache=True, nogil=True, fastmath=True)
def along(
    F: Any,
    D: Any,
    code: Any,
    weight: Any,
    fold: Any,
    table: Any,
    C: Any,
    counts: Any,
    step: Any,
    sums: Any,
) -> None:
    """Add up the slope and the curvature of the loss at F + step D, along D."""
    n, m = F.shape
    if m < _FEW:
        for p in range(m):
            slope = 0.0
            curve = 0.0
            for i in range(n):
                y = table[code[i], p]
                d = y * D[i, p]
                slack = 1 - y * F[i, p] - step[p] * d
                c = 2 * C[p] * weight[i] * (slack > 0) * counts[fold[i], p]
                slope -= c * slack * d
                curve += c * d * d
            sums[0, p] += slope
            sums[1, p] += curve
        return
    for i in range(n):
        for p in range(m):
            y = table[code[i], p]
            d = y * D[i, p]
            slack = 1 - y * F[i, p] - step[p] * d
            c = 2 * C[p] * weight[i] * (slack > 0) * counts[fold[i], p]
            sums[0, p] -= c * slack * d
            sums[1, p] += c * d * d


@njit(cache=True, nogil=True, fastmath=True)
def along_several(
    F: Any,
    D: Any,
    code: Any,
    weight: Any,
    fold: Any,
    table: Any,
    C: Any,
    counts: Any,
    steps: Any,
    sums: Any,
) -> None:
    """Add up the same at several steps, of shape (n_steps, n_problems), in one look at the rows."""
    n, m = F.shape
    n_steps = steps.shape[0]
    slope = np.empty(n_steps)
    curve = np.empty(n_steps)
    for p in range(m):
        slope[:] = 0.0
        curve[:] = 0.0
        lengths = steps[:, p].copy()
        for i in range(n):
            y = table[code[i], p]
            d = y * D[i, p]
            first = 1 - y * F[i, p]
            c = 2 * C[p] * weight[i] * counts[fold[i], p]
            for k in range(n_steps):
                slack = first - lengths[k] * d
                felt = c * (slack > 0)
                slope[k] -= felt * slack * d
                curve[k] += felt * d * d
        for k in range(n_steps):
            sums[k, 0, p] += slope[k]
            sums[k, 1, p] += curve[k]


@njit(cache=True, nogil=True)
def advance(F: Any, D: Any, live: Any, step: Any) -> None:
    """Add step D to the live columns of F."""
    for i in range(F.shape[0]):
        for j in range(live.shape[0]):
            F[i, live[j]] += step[j] * D[i, j]
