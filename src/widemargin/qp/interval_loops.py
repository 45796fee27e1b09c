"""Scalar loops of squared losses of intervals, compiled by Numba when first used.

Import this module through ``threads.Compiled``. Row i in problem p wants its score within ε_p of
target T[i, p], and weighs C_p s_i times how often the problem counts the row's fold. The functions
are those of ``margin_loops``, with targets in the place of classes; sums are float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, fastmath=True)
def slopes(
    F: Any,
    T: Any,
    weight: Any,
    fold: Any,
    epsilon: Any,
    C: Any,
    counts: Any,
    mixture: Any,
    A: Any,
    sums: Any,
) -> None:
    """Set A = 2 C s r for the signed distance r from the interval, and add up what is needed.

    sums[0] += Σ C s r², sums[1] += Σ A, sums[2] += Σ (A T − ε |A|), sums[3] += Σ r mixture.
    """
    n, m = F.shape
    for i in range(n):
        for p in range(m):
            count = counts[fold[i], p]
            distance = T[i, p] - F[i, p]
            above = max(distance - epsilon[p], F[i, p] * 0)
            below = max(-distance - epsilon[p], F[i, p] * 0)
            r = (above - below) * (count > 0)
            a = 2 * C[p] * weight[i] * count * r
            A[i, p] = a
            sums[0, p] += a * r / 2
            sums[1, p] += a
            sums[2, p] += a * T[i, p] - epsilon[p] * abs(a)
            sums[3, p] += r * mixture[i, p]


@njit(cache=True, nogil=True, fastmath=True)
def blend(
    F: Any,
    T: Any,
    weight: Any,
    fold: Any,
    epsilon: Any,
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
            distance = T[i, p] - F[i, p]
            above = max(distance - epsilon[p], F[i, p] * 0)
            below = max(-distance - epsilon[p], F[i, p] * 0)
            a = 2 * C[p] * weight[i] * counts[fold[i], p] * (above - below)
            mixture[i, p] += share[j] * (a - mixture[i, p])


@njit(cache=True, nogil=True, fastmath=True)
def along(
    F: Any,
    D: Any,
    T: Any,
    weight: Any,
    fold: Any,
    epsilon: Any,
    C: Any,
    counts: Any,
    step: Any,
    sums: Any,
) -> None:
    """Add up the slope and the curvature of the loss at F + step D, along D."""
    along_several(
        F, D, T, weight, fold, epsilon, C, counts, step.reshape(1, -1), sums.reshape(1, 2, -1)
    )


@njit(cache=True, nogil=True, fastmath=True)
def along_several(
    F: Any,
    D: Any,
    T: Any,
    weight: Any,
    fold: Any,
    epsilon: Any,
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
            d = D[i, p]
            first = T[i, p] - F[i, p]
            c = 2 * C[p] * weight[i] * counts[fold[i], p]
            for k in range(n_steps):
                distance = first - lengths[k] * d
                above = max(distance - epsilon[p], d * 0)
                below = max(-distance - epsilon[p], d * 0)
                slope[k] -= c * (above - below) * d
                curve[k] += c * ((distance >= epsilon[p]) | (distance <= -epsilon[p])) * d * d
        for k in range(n_steps):
            sums[k, 0, p] += slope[k]
            sums[k, 1, p] += curve[k]
