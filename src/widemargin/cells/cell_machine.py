"""The machine of one cell: exact on its kernel matrix, a constant where there is one class.

A cell has hundreds of rows. Its kernel matrix costs next to nothing, all classes share it, and the
duals of all of them are solved on it in one compiled call (``qp.margin_dual``). In a problem for
which all rows of the cell are on one side, the answer is a constant, the best bias:

    min over b of ½b² + C S (1 − b)²,     S = Σ s,     b = 2CS / (1 + 2CS),

with the lower bound  ½ S² / (sᵀKs + S² + S/(2C)),  that of α ∝ s. (A narrow kernel cannot do better
than the bias; a wide one could, with a machine that tells nothing apart.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.balls.ball import Precision, largest_norm2
from widemargin.balls.exact_hinge import fit_exact_hinge
from widemargin.expansion import Fitted, MachineOptions
from widemargin.loop import Ended, Stop, bounds, relative_gap
from widemargin.problem import Problem
from widemargin.qp.margin_dual import solve_all
from widemargin.threads import scratch

# Problems are solved to this share of the gap that is asked for, so that rounding fits beside it.
_SHARE_OF_GAP = 0.5

_SOLVED = Stop(Ended.SOLVED, "solved")
_UNSOLVED = Stop(Ended.PRECISION, "no more digits in the quadratic program")


def exact_machine(
    problem: Problem, index: IndexArray, tol: float, precisions: Sequence[Precision]
) -> Fitted:
    """Return the exact machines of a cell.

    Parameters
    ----------
    problem : Problem
        All rows.
    index : ndarray of int of shape (m,)
        Rows of the cell.
    tol : float
        Relative gap.
    precisions : sequence of Precision
        Of the kernel values; the next one is tried where one hides too much.
    """
    X = problem.rows.take(index)
    m, signs = len(index), problem.signs(index)
    mixed = _mixed(signs)
    weight = np.ascontiguousarray(problem.weight[index])
    some = np.ascontiguousarray(signs[:, mixed])
    for precision in precisions:
        K = problem.kernel.checked_block(X, X, scratch((m, m), precision.dtype, "of a cell"))
        beta, proved = np.zeros((m, some.shape[1])), np.zeros((some.shape[1], 4))
        solve_all(K, some, weight, problem.C[mixed], _SHARE_OF_GAP * tol, beta, proved)
        gaps = [relative_gap(high, low) for high, low, _, _ in proved]
        worst = float(np.max(gaps + precision.rounding * proved[:, 2], initial=0.0))
        if worst <= tol:
            break
    one_sided = constant_machine(problem.columns(np.flatnonzero(~mixed)), index, X, K)
    coef = np.zeros(signs.shape)
    coef[:, mixed] = beta
    intercept = coef.sum(axis=0)
    intercept[~mixed] = one_sided.intercept
    primal, dual = proved[:, :2].sum(axis=0)
    primal, dual = primal + one_sided.certificate.primal, dual + one_sided.certificate.dual
    used = np.flatnonzero(beta.any(axis=1))
    certificate = bounds(primal, dual, gap=worst, n_vectors=len(used), n_kernel=K.size)
    stop = _SOLVED if worst <= 2.0 * tol else _UNSOLVED
    return Fitted(X[used], index[used], coef[used], intercept, certificate, stop)


def hinge_machine(problem: Problem, index: IndexArray, options: MachineOptions) -> Fitted:
    """Return the machines of a cell with the hinge loss and a free bias.

    Where all rows of the cell are on one side in a problem, the bias is that side, at no loss; it
    is zero where no row takes part.

    Parameters
    ----------
    problem : Problem
        All rows.
    index : ndarray of int of shape (m,)
        Rows of the cell.
    options : MachineOptions
        How exactly.
    """
    signs = problem.signs(index)
    mixed = _mixed(signs)
    intercept = np.sign(signs.sum(axis=0))
    if not mixed.any():
        nothing = np.zeros((0, problem.n_problems))
        certificate = bounds(0.0, 0.0, gap=0.0)
        X = problem.rows.take(index[:0])
        return Fitted(X, index[:0], nothing, intercept, certificate, _SOLVED)
    inner = replace(options, max_vectors=None, earlier=None, report=None, threads=1)
    found = fit_exact_hinge(problem.columns(np.flatnonzero(mixed)).subset(index), inner)
    coef = np.zeros((len(found.vectors), problem.n_problems))
    coef[:, mixed] = found.coef
    intercept[mixed] = found.intercept
    assert found.index is not None
    return replace(found, index=index[found.index], coef=coef, intercept=intercept, of_pairs=False)


def constant_machine(
    problem: Problem, index: IndexArray, X: NDArray[Any], K: NDArray[Any] | None = None
) -> Fitted:
    """Return the best constants of a cell; X tells how vectors look, and K what they could do."""
    signs, C = problem.signs(index), problem.C
    weight = problem.weight[index][:, None] * (signs != 0)
    # Of the rows that take part in each problem.
    total = weight.sum(axis=0)
    # ±Σ s where all rows are on one side, and between for cells that the fit did not get to.
    lean = (weight * signs).sum(axis=0)
    intercept = 2.0 * C * lean / (1.0 + 2.0 * C * total)
    slack = np.maximum(0.0, 1.0 - signs * intercept)
    primal = 0.5 * float((intercept**2).sum()) + float((C * (weight * slack**2).sum(axis=0)).sum())
    one_sided: NDArray[np.bool_] = np.logical_and(~_mixed(signs), total > 0)
    dual = 0.0
    if one_sided.any():
        weight, total = weight[:, one_sided], total[one_sided]
        # sᵀKs + S²; η is the largest k(x, x) + 1 + ridge, and no k(x, x') is larger than k(x, x).
        square = total * total
        square *= 1.0 if K is not None else largest_norm2(problem.subset(index))
        square += 0.0 if K is None else (weight * (K @ weight)).sum(axis=0)
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
    return np.logical_and((signs > 0).any(axis=0), (signs < 0).any(axis=0))
