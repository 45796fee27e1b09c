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
from widemargin.kernels.pairwise import CentredRows, can_be_centred
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
    X = problem.rows.block(index)
    weight, signs = problem.weight[index], problem.signs(index)
    m, n_problems = signs.shape
    for precision in precisions:
        K = scratch((m, m), precision.dtype, "of a cell")
        rounding = _kernel_values(problem, X, precision, K)
        beta, intercept, proved = (
            np.zeros((m, n_problems)),
            np.empty(n_problems),
            np.empty((n_problems, 4)),
        )
        solve_all(K, signs, weight, problem.C, _SHARE_OF_GAP * tol, beta, intercept, proved)
        # Constants are as good as constants can be.
        gaps = [relative_gap(high, low) for high, low, norm, _ in proved.tolist() if norm]
        hidden = rounding * float(proved[:, 2].max())
        worst = max(gaps, default=0.0) + hidden
        if worst <= tol:
            break
    primal, dual = proved[:, :2].sum(axis=0).tolist()
    used = np.flatnonzero(beta.any(axis=1))
    certificate = bounds(primal, dual, gap=worst, n_vectors=len(used), n_kernel=K.size)
    stop = _SOLVED if worst <= 2.0 * tol else _UNSOLVED
    index = index[used]
    vectors = problem.rows.take(index) if problem.rows.sparse else X[used]
    return Fitted(vectors, index, beta[used], intercept, certificate, stop)


def _kernel_values(problem: Problem, X: Any, precision: Precision, K: NDArray[Any]) -> float:
    """Write the kernel values of a cell, and return what rounding hides of a gap for ‖α‖ = 1.

    About the middle of the cell rows are short, and float32 hides little.
    """
    kernel = problem.kernel
    if precision.dtype == np.float32 and can_be_centred(kernel) and not problem.rows.sparse:
        centred = CentredRows.of(kernel, X)
        if centred.accurate:
            everything = slice(0, len(X))
            centred.values(everything, everything, K)
            return precision.among(kernel, centred.spread)
    vectors = problem.rows.dense(X)
    kernel.checked_block(X, vectors, K)
    return precision.rounding


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
    one_sided = np.flatnonzero(~_mixed(signs) & (total > 0))
    dual = 0.0
    if len(one_sided):
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
    mixed: NDArray[np.bool_] = (signs.max(axis=0) > 0) & (signs.min(axis=0) < 0)
    return mixed
