"""The machine of one cell: exact on its kernel matrix, a constant where there is one class.

A cell has hundreds of rows. Its kernel matrix costs next to nothing, all classes share it, and the
dual of each (``qp.margin_dual``) is solved on it directly. In a problem for which all rows of the
cell are on one side, the answer is a constant, the best bias:

    min over b of ½b² + C S (1 − b)²,     S = Σ s,     b = 2CS / (1 + 2CS),

with the lower bound  ½ S² / (sᵀKs + S² + S/(2C)),  that of α ∝ s. (A narrow kernel cannot do better
than the bias; a wide one could, with a machine that tells nothing apart.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.balls.ball import largest_norm2
from widemargin.expansion import Fitted
from widemargin.loop import Deadline, Ended, Stop, bounds, relative_gap
from widemargin.problem import Problem
from widemargin.qp.margin_dual import solve_margin_dual

_SOLVED = Stop(Ended.SOLVED, "solved")
_UNSOLVED = Stop(Ended.PRECISION, "no more digits in the quadratic program")


def exact_machine(
    problem: Problem,
    index: IndexArray,
    tol: float,
    dtype: DTypeLike,
    deadline: Deadline,
) -> Fitted | None:
    """Return the exact machines of a cell, or None if there was no time for all of them.

    Parameters
    ----------
    problem : Problem
        All rows.
    index : ndarray of int of shape (m,)
        Rows of the cell.
    tol : float
        Relative gap.
    dtype : dtype
        Precision of the kernel values.
    deadline : Deadline
        Looked at between the problems.
    """
    X = problem.rows.take(index)
    signs = problem.signs(index)
    K = problem.kernel.checked_block(X, X, np.empty((len(index), len(index)), dtype=dtype))
    mixed = _mixed(signs)
    one_sided = constant_machine(problem.columns(np.flatnonzero(~mixed)), index, X, K)
    beta = np.zeros(signs.shape)
    primal, dual = one_sided.certificate.primal, one_sided.certificate.dual
    intercept = np.zeros(problem.n_problems)
    intercept[~mixed] = one_sided.intercept
    worst = 0.0
    for p in np.flatnonzero(mixed):
        if deadline.passed:
            return None
        sign = np.ascontiguousarray(signs[:, p])
        solved = solve_margin_dual(K, sign, problem.ridge(int(p), index), gap=tol)
        beta[:, p] = sign * solved.alpha
        intercept[p] = beta[:, p].sum()
        upper, lower = solved.objectives()
        primal, dual = primal + upper, dual + lower
        worst = max(worst, relative_gap(upper, lower))
    used = np.flatnonzero(beta.any(axis=1))
    certificate = bounds(primal, dual, gap=worst, n_vectors=len(used), n_kernel=K.size)
    stop = _SOLVED if worst <= 2.0 * tol else _UNSOLVED
    return Fitted(X[used], index[used], beta[used], intercept, certificate, stop)


def constant_machine(
    problem: Problem, index: IndexArray, X: NDArray[Any], K: NDArray[Any] | None = None
) -> Fitted:
    """Return the best constants of a cell; X tells how vectors look, and K what they could do."""
    signs, weight, C = problem.signs(index), problem.weight[index], problem.C
    total = float(weight.sum())
    # ±Σ s where all rows are on one side, and between for cells that the fit did not get to.
    lean = weight @ signs
    intercept = 2.0 * C * lean / (1.0 + 2.0 * C * total)
    slack = np.maximum(0.0, 1.0 - signs * intercept)
    primal = 0.5 * float((intercept**2).sum()) + float((C * (weight @ slack**2)).sum())
    one_sided = ~_mixed(signs)
    dual = 0.0
    if one_sided.any():
        # sᵀKs + S²; η is the largest k(x, x) + 1 + ridge, and no k(x, x') is larger than k(x, x).
        square = total * total
        square *= 1.0 if K is not None else largest_norm2(problem.subset(index))
        square += 0.0 if K is None else float(weight @ (K @ weight))
        dual = float((0.5 * total * total / (square + 0.5 * total / C[one_sided])).sum())
    n_kernel = 0 if K is None else K.size
    certificate = bounds(primal, dual, gap=0.0, n_kernel=n_kernel)
    nothing = np.zeros((0, problem.n_problems))
    return Fitted(X[:0], index[:0], nothing, intercept, certificate, _SOLVED)


def large_machine(problem: Problem, index: IndexArray, fit: Callable[[Problem], Fitted]) -> Fitted:
    """Return the machine of a cell by another engine; constants where there is one class only.

    Parameters
    ----------
    problem : Problem
        All rows.
    index : ndarray of int
        Rows of the cell.
    fit : callable
        Returns the machine of any problem.
    """
    mixed = _mixed(problem.signs(index))
    first = problem.rows.take(index[:1])
    if not mixed.any():
        return constant_machine(problem, index, first)
    found = fit(problem.columns(np.flatnonzero(mixed)).subset(index))
    rest = constant_machine(problem.columns(np.flatnonzero(~mixed)), index, first)
    coef = np.zeros((len(found.vectors), problem.n_problems))
    coef[:, mixed] = found.coef
    intercept = np.zeros(problem.n_problems)
    intercept[mixed], intercept[~mixed] = found.intercept, rest.intercept
    proved, other = found.certificate, rest.certificate
    full = None if proved.full_dual is None else proved.full_dual + other.dual
    return replace(
        found,
        index=None if found.index is None else index[found.index],
        coef=coef,
        intercept=intercept,
        certificate=replace(
            proved,
            primal=proved.primal + other.primal,
            dual=proved.dual + other.dual,
            full_dual=full,
        ),
    )


def _mixed(signs: Matrix) -> NDArray[np.bool_]:
    """Return which problems have rows on both sides."""
    mixed: NDArray[np.bool_] = np.abs(signs.sum(axis=0)) < len(signs)
    return mixed
