"""Loops over scores that BLAS cannot do, compiled by Numba.

Row i in problem p has the label y = table[code_i, p] and the weight C_p s_i, which is zero where
the problem holds out the row's fold. Columns of scores are problems. Sums are float64 whatever the
type of the scores. There are no branches inside the loops, so that they use the processor's vector
units; with few problems those are better filled along the rows.
"""

from __future__ import annotations

from typing import Any

from numba import njit

_FEW = 8


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

    sums[0] += Σ C s ξ², sums[1] += Σ A, sums[2] += Σ y A, sums[3] += Σ A mixture / (2 C s).
    """
    n, m = F.shape
    for i in range(n):
        for p in range(m):
            y = table[code[i], p]
            slack = max(1 - y * F[i, p], F[i, p] * 0) * counts[fold[i], p]
            a = 2 * C[p] * weight[i] * slack
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
            slack = max(1 - y * F[i, p], F[i, p] * 0) * counts[fold[i], p]
            a = 2 * C[p] * weight[i] * y * slack
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


@njit(cache=True, nogil=True)
def advance(F: Any, D: Any, live: Any, step: Any) -> None:
    """Add step D to the live columns of F."""
    for i in range(F.shape[0]):
        for j in range(live.shape[0]):
            F[i, live[j]] += step[j] * D[i, j]
