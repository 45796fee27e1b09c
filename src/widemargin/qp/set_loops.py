"""The small machine on parts of a larger matrix: sets that grow, several problems, paths over C.

Import this module through ``threads.Compiled``. Nothing in here holds Python's lock.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from widemargin.qp.margin_loops import gather, mix
from widemargin.qp.newton_loops import SOLVED, STUCK, UNFINISHED, changed, is_solved, objectives
from widemargin.qp.small_loops import LEVEL_GAP, solve

# Rows of the first set on a larger matrix, at the least, and as a part of all.
_FIRST_LEAST = 96
_FIRST_PART = 16
# Share of the rows up to which a set is worth it.
_MOST_SHARE = 0.4
# Share of the first set that may support its machine: of more rows it will be a smaller one.
_MOST_FIRST = 0.8
# Sets at the most.
_MOST_SETS = 12
# Values of a piece of a row, on the average, from which pieces are summed and not values.
_LEAST_PIECE = 16


@njit(nogil=True, cache=True)
def _mixture(K: Any, rows: Any, index: Any, coef: Any) -> Any:
    """Return Σ coef_i K[rows_i, index] + Σ coef, summed in float64.

    Where the index is a few runs of neighbours, as that of two classes or of a fold is, whole
    pieces are summed.
    """
    m = len(index)
    total = np.full(m, coef.sum())
    ends = np.flatnonzero(np.diff(index) != 1) + 1
    if len(ends) * _LEAST_PIECE > m:
        for i in range(len(rows)):
            row = K[rows[i]]
            c = coef[i]
            for j in range(m):
                total[j] += c * row[index[j]]
        return total
    begin = 0
    for piece in range(len(ends) + 1):
        end = ends[piece] if piece < len(ends) else m
        total[begin:end] += mix(K, rows, coef, index[begin], end - begin)
        begin = end
    return total


@njit(nogil=True, cache=True)
def _grown(
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
    """Solve the dual on a set of rows that grows; return how it ended.

    It is unfinished where most rows would have to join. See `solve_on` for the arguments.
    """
    m = len(index)
    inside = alpha > 0.0
    first = not inside.any()
    rough = gap
    if first:
        step = max(1, m // max(_FIRST_LEAST, m // _FIRST_PART))
        inside[::step] = True
        rough = max(gap, LEVEL_GAP)
    for _ in range(_MOST_SETS):
        members = np.flatnonzero(inside)
        if len(members) > _MOST_SHARE * m:
            return UNFINISHED
        rows = index[members]
        part = gather(K, rows)
        start = alpha[members]
        used = np.flatnonzero(start)
        left = 1.0 - ridge[members] * start
        left -= changed(part, sign[members], used, start[used])
        solve(
            addresses,
            part,
            sign[members],
            ridge[members],
            start,
            left,
            rough,
            tol,
            np.inf,
            first,
            np.zeros(1),
        )
        used = np.flatnonzero(start)
        if first and len(used) > _MOST_FIRST * len(members):
            return UNFINISHED
        alpha[members] = start
        first = False
        values = _mixture(K, rows[used], index, (start * sign[members])[used])
        for i in range(m):
            residual[i] = 1.0 - sign[i] * values[i] - ridge[i] * alpha[i]
        if is_solved(alpha, residual, ridge, gap, tol):
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
        rough = max(gap, min(rough, LEVEL_GAP))
    return UNFINISHED


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
    ended = _grown(addresses, K, index, sign, ridge, alpha, residual, gap, tol)
    if ended != UNFINISHED:
        return ended
    part = K if len(index) == K.shape[0] else gather(K, index)
    used = np.flatnonzero(alpha)
    residual[:] = 1.0 - ridge * alpha - changed(part, sign, used, alpha[used])
    fresh, cost = len(used) == 0, np.zeros(1)
    return solve(addresses, part, sign, ridge, alpha, residual, gap, tol, np.inf, fresh, cost)


@njit(nogil=True, cache=True)
def solve_pairs(
    addresses: Any,
    K: Any,
    begins: Any,
    pairs: Any,
    weight: Any,
    C: Any,
    gap: float,
    tol: float,
    alpha: Any,
    coef: Any,
    place: Any,
    proved: Any,
) -> None:
    """Solve pairs of classes on one matrix whose rows go class after class.

    Parameters
    ----------
    addresses : ndarray of uint64 of shape (4,)
        As in `solve`.
    K : ndarray of shape (n, n)
        Kernel matrix.
    begins : ndarray of int of shape (n_classes + 1,)
        Where classes begin, and n.
    pairs : ndarray of int of shape (n_pairs, 2)
        The classes of each pair, that of the label +1 first.
    weight, C : ndarray of shape (n,) and (n_pairs,)
        Of rows, and of pairs.
    gap, tol : float
        As in `solve`.
    alpha : ndarray of shape (total,)
        Dual variables of the rows of all pairs, one after another.
    coef, place : ndarray of shape (total,)
        Where y α and the places of these rows in K are written.
    proved : ndarray of shape (n_pairs, 3)
        Where primal, dual and how it ended are written.
    """
    at = 0
    for p in range(len(pairs)):
        first, second = pairs[p, 0], pairs[p, 1]
        ahead = np.arange(begins[first], begins[first + 1])
        index = np.concatenate((ahead, np.arange(begins[second], begins[second + 1])))
        sign = np.full(len(index), -1.0)
        sign[: len(ahead)] = 1.0
        ridge = 1.0 / (2.0 * C[p] * weight[index])
        here = slice(at, at + len(index))
        own = alpha[here]
        residual = np.ones(len(index))
        ended = solve_on(addresses, K, index, sign, ridge, own, residual, gap, tol)
        primal, dual = objectives(own, residual, ridge)
        proved[p, 0] = primal
        proved[p, 1] = dual
        proved[p, 2] = ended
        coef[here] = sign * own
        place[here] = index
        at += len(index)


@njit(nogil=True, cache=True)
def _constant(K: Any, index: Any, weight: Any, C: float) -> Any:
    """Return the best bias of rows on one side, its objective, and a lower bound of all.

    min over b of ½b² + C S (1 − b)² with S = Σ s is at b = 2CS / (1 + 2CS), and α ∝ s gives the
    bound ½ S² / (sᵀKs + S² + S/(2C)).
    """
    total = 0.0
    square = 0.0
    for i in range(len(index)):
        row = K[index[i]]
        part = 0.0
        for j in range(len(index)):
            part += row[index[j]] * weight[index[j]]
        square += weight[index[i]] * part
        total += weight[index[i]]
    bias = 2.0 * C * total / (1.0 + 2.0 * C * total)
    slack = 1.0 - bias
    primal = 0.5 * bias * bias + C * (total * slack) * slack
    return bias, primal, 0.5 * total / (square / total + total + 0.5 / C)


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
    intercept: Any,
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
    intercept : ndarray of shape (n_problems,)
        Where biases are written: the best constant where all rows are on one side.
    proved : ndarray of shape (n_problems, 4)
        Where primal, dual, ‖α‖ and how it ended are written.
    """
    n = len(weight)
    for p in range(len(C)):
        index = np.flatnonzero(signs[:, p])
        sign = signs[index, p].copy()
        proved[p, :] = 0.0
        proved[p, 3] = SOLVED
        intercept[p] = 0.0
        if len(index) == 0:
            continue
        if abs(sign.sum()) == len(sign):
            bias, primal, dual = _constant(K, index, weight, C[p])
            intercept[p] = sign[0] * bias
            proved[p, 0] = primal
            proved[p, 1] = dual
            continue
        ridge = 1.0 / (2.0 * C[p] * weight[index])
        part = K if len(index) == n else gather(K, index)
        alpha = np.zeros(len(index))
        residual = np.ones(len(index))
        cost = np.zeros(1)
        ended = solve(addresses, part, sign, ridge, alpha, residual, gap, tol, np.inf, True, cost)
        primal, dual = objectives(alpha, residual, ridge)
        beta[index, p] = sign * alpha
        intercept[p] = (sign * alpha).sum()
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
        Ascending: each starts from the solution of the next larger one.
    gap : float
        As in `solve`.
    beta : ndarray of shape (m, n_Cs)
        Where the coefficients y α are written.
    """
    alpha = np.zeros(len(train))
    residual = np.ones(len(train))
    ridge = 1.0 / (2.0 * Cs[-1] * weight)
    # The kernel values of all rows, from the C on for which most of them matter.
    part = np.empty((0, 0), dtype=K.dtype)
    for c in range(len(Cs) - 1, -1, -1):
        if c < len(Cs) - 1:
            # The multiple of the solution that is best with the new ridge: (Qα)ᵀα with the old one
            # is (1 − residual)ᵀα.
            more = 1.0 / (2.0 * Cs[c] * weight) - ridge
            curve = ((1.0 - residual + more * alpha) * alpha).sum()
            if curve > 0.0:
                alpha *= alpha.sum() / curve
        ridge = 1.0 / (2.0 * Cs[c] * weight)
        ended = UNFINISHED
        if len(part) == 0:
            ended = _grown(addresses, K, train, sign, ridge, alpha, residual, gap, 0.0)
        if ended == UNFINISHED:
            if len(part) == 0:
                part = gather(K, train)
            used = np.flatnonzero(alpha)
            residual[:] = 1.0 - ridge * alpha - changed(part, sign, used, alpha[used])
            fresh = len(used) == 0
            cost = np.zeros(1)
            solve(addresses, part, sign, ridge, alpha, residual, gap, 0.0, np.inf, fresh, cost)
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
