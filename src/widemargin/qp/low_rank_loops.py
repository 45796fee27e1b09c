"""Machines on a kernel matrix of low rank, compiled by Numba when first used.

Import this module through ``threads.Compiled``. K ≈ LᵀL, L of shape (r, n), by a Cholesky
factorisation that takes the row with the largest remainder first and stops when all remainders are
small. The SVM is then a linear one in r dimensions and the bias,

    min ½‖w‖² + ½b² + ½ Σ max(0, 1 − y (L_iᵀw + b))² / ridge,

which Newton's method solves with matrices of that size.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from widemargin.qp.lapack_loops import divide, factorise
from widemargin.qp.newton_loops import step_length

# Parts of the largest rank at which it is asked whether remainders fall fast enough.
_LOOKS = 16
# Newton steps at the most.
_MOST_STEPS = 60


@njit(nogil=True, cache=True)
def pivoted_factor(K: Any, tol: float, most: int) -> Any:
    """Return L with K ≈ LᵀL, of no rows where that would take more than `most`.

    Remainders on the diagonal are to fall to `tol` times the largest value of it. On a log scale
    their sum falls ever more slowly: where it would not get there even at the rate of the last
    rows, this ends early.
    """
    n = K.shape[0]
    rest = np.empty(n)
    for i in range(n):
        rest[i] = K[i, i]
    largest = rest.max()
    total = rest.sum()
    L = np.empty((most, n))
    look = max(1, most // _LOOKS)
    before = 0.0
    for r in range(most):
        pivot = rest.argmax()
        if rest[pivot] <= tol * largest:
            return L[:r].copy()
        if r and r % look == 0:
            now = np.log(max(np.maximum(rest, 0.0).sum() / total, 1e-300))
            rate = (before - now) / look
            before = now
            if now - np.log(tol) > rate * (most - r):
                break
        scale = 1.0 / np.sqrt(rest[pivot])
        row = L[r]
        values = K[pivot]
        for j in range(n):
            row[j] = values[j]
        for q in range(r):
            above = L[q]
            factor = above[pivot]
            for j in range(n):
                row[j] -= factor * above[j]
        for j in range(n):
            row[j] *= scale
            rest[j] -= row[j] * row[j]
        rest[pivot] = 0.0
    return L[:0].copy()


@njit(nogil=True, cache=True)
def solve_linear(addresses: Any, F: Any, sign: Any, ridge: Any, w: Any, gap: float) -> None:
    """Solve the linear SVM on features, the bias being one of them, from w on, in place.

    Parameters
    ----------
    addresses : ndarray of uint64 of shape (4,)
        Of LAPACK's spotrf, spotrs, dpotrf and dpotrs.
    F : ndarray of shape (n, r)
        Features.
    sign, ridge : ndarray of shape (n,)
        Labels ±1, and 1 / (2 C s).
    w : ndarray of shape (r,)
        Where to start, and the answer.
    gap : float
        Relative gap.
    """
    size = F.shape[1]
    margin = sign * np.dot(F, w)
    for _ in range(_MOST_STEPS):
        slack = np.maximum(0.0, 1.0 - margin)
        alpha = slack / ridge
        loss = 0.5 * (slack * alpha).sum()
        primal = 0.5 * np.dot(w, w) + loss
        pull = np.dot(sign * alpha, F)
        square = np.dot(pull, pull) + 2.0 * loss
        total = alpha.sum()
        dual = 0.5 * total * (total / square) if square > 0.0 else 0.0
        if primal - dual <= gap * primal:
            return
        active = np.flatnonzero(margin < 1.0)
        part = np.empty((len(active), size))
        for i in range(len(active)):
            part[i] = F[active[i]] / np.sqrt(ridge[active[i]])
        H = np.dot(part.T, part)
        for i in range(size):
            H[i, i] += 1.0
        if not factorise(addresses[2], H):
            return
        target = np.dot((sign[active] / ridge[active]), F[active])
        divide(addresses[3], H, target)
        direction = target - w
        moved = sign * np.dot(F, direction)
        t = step_length(margin, moved, ridge, np.dot(direction, w), np.dot(direction, direction))
        w += t * direction
        margin += t * moved


@njit(nogil=True, cache=True)
def linear_path(
    addresses: Any, F: Any, train: Any, sign: Any, weight: Any, Cs: Any, gap: float, w: Any
) -> None:
    """Solve one problem for every C, ascending, on some rows of the features.

    The columns of `w`, of shape (r, n_Cs), are the answers.
    """
    part = F[train]
    now = np.zeros(F.shape[1])
    for c in range(len(Cs)):
        solve_linear(addresses, part, sign, 1.0 / (2.0 * Cs[c] * weight), now, gap)
        w[:, c] = now
