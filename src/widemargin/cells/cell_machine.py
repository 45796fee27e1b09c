"""The machine of one cell: exact on its kernel matrix, a constant where there is one class.

A cell has hundreds of rows. Its kernel matrix costs next to nothing, all classes share it, and the
duals of all of them are solved on it in one compiled call: of several cells if kernel and rows
allow it (``cell_loops``), else on a matrix that is made first (``qp.margin_dual``). In a problem
for which all rows of the cell are on one side, the answer is a constant, the best bias:

    min over b of ½b² + C S (1 − b)²,     S = Σ s,     b = 2CS / (1 + 2CS),

with the lower bound  ½ S² / (sᵀKs + S² + S/(2C)),  that of α ∝ s. (A narrow kernel cannot do better
than the bias; a wide one could, with a machine that tells nothing apart.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.balls.ball import Precision, largest_norm2
from widemargin.balls.exact_hinge import fit_exact_hinge
from widemargin.balls.exact_targets import fit_exact_targets
from widemargin.expansion import Fitted, MachineOptions
from widemargin.kernels.pairwise import accurate, can_be_centred, compiled_kernel, spread_of
from widemargin.loop import Ended, Stop, bounds, relative_gap
from widemargin.problem import Problem
from widemargin.qp.margin_dual import NO_KKT, all_positive, lapack_addresses, solve_all
from widemargin.threads import Compiled, scratch

loops = Compiled("widemargin.cells.cell_loops")

Options = TypeVar("Options", bound=MachineOptions)

# Problems are solved to this share of the gap that is asked for, so that rounding fits beside it.
_SHARE_OF_GAP = 0.5

_SOLVED = Stop(Ended.SOLVED, "solved")
_UNSOLVED = Stop(Ended.PRECISION, "no more digits in the quadratic program")


def exact_machines(
    problem: Problem, cells: Sequence[IndexArray], tol: float, precisions: Sequence[Precision]
) -> list[Fitted]:
    """Return the exact machines of some cells.

    Parameters
    ----------
    problem : Problem
        All rows.
    cells : sequence of ndarray of int
        Rows of each cell.
    tol : float
        Relative gap.
    precisions : sequence of Precision
        Of the kernel values; the next one is tried where one hides too much.
    """
    compiled = can_be_centred(problem.kernel) and not problem.rows.sparse
    if not compiled or precisions[0].dtype != np.float32:
        return [_exact_machine(problem, index, tol, precisions) for index in cells]
    found = _compiled_machines(problem, cells, tol, precisions[0])
    # float32 is enough for most cells: about their middle rows are short.
    rest = precisions[1:] or precisions
    return [
        machine if machine is not None else _exact_machine(problem, index, tol, rest)
        for machine, index in zip(found, cells, strict=True)
    ]


def _compiled_machines(
    problem: Problem, cells: Sequence[IndexArray], tol: float, precision: Precision
) -> list[Fitted | None]:
    """Return the machines of some cells by one compiled call; None where float32 hides too much."""
    index = np.concatenate(cells)
    begins = np.concatenate([[0], np.cumsum([len(each) for each in cells])])
    X, weight, signs = problem.rows.block(index), problem.weight[index], problem.signs(index)
    n_problems = signs.shape[1]
    beta, intercept = np.zeros(signs.shape), np.empty((len(cells), n_problems))
    proved, norms = np.empty((len(cells), n_problems, 4)), np.empty(len(index), dtype=np.float32)
    results = (beta, intercept, proved, norms)
    with np.errstate(over="ignore", invalid="ignore"):
        solve_cells(problem, X, begins, signs, weight, _SHARE_OF_GAP * tol, results)
    found: list[Fitted | None] = []
    for c, own in enumerate(cells):
        part = slice(begins[c], begins[c + 1])
        rounding = precision.among(problem.kernel, spread_of(problem.kernel, norms[part]))
        worst = _worst_gap(proved[c], rounding)
        good = accurate(problem.kernel, float(norms[part].max())) and worst <= tol
        good = good and all_positive(proved[c, :, 3])
        answer = (own, X[part], beta[part], intercept[c], proved[c], worst, tol)
        found.append(_machine(*answer) if good else None)
    return found


def solve_cells(
    problem: Problem,
    X: NDArray[Any],
    begins: IndexArray,
    signs: Matrix,
    weight: Vector,
    gap: float,
    results: tuple[NDArray[Any], ...],
) -> None:
    """Solve all problems of several cells; see ``cell_loops.solve_cells`` for the arguments."""
    unit, near, kind = compiled_kernel(problem.kernel)
    rows = (X, begins, unit, near, kind)
    addresses = lapack_addresses()
    loops.solve_cells(addresses, *rows, signs, weight, problem.C, gap, NO_KKT, *results)


def _worst_gap(proved: Matrix, rounding: float) -> float:
    """Return the largest gap of a problem; constants are as good as constants can be."""
    gaps = [relative_gap(high, low) for high, low, norm, _ in proved.tolist() if norm]
    return max(gaps, default=0.0) + rounding * float(proved[:, 2].max())


def _machine(
    index: IndexArray,
    X: Any,
    beta: Matrix,
    intercept: Vector,
    proved: Matrix,
    worst: float,
    tol: float,
) -> Fitted:
    """Return the machine of a cell from what was found."""
    primal, dual = proved[:, :2].sum(axis=0).tolist()
    used = np.flatnonzero(beta.any(axis=1))
    n_kernel = len(index) ** 2
    certificate = bounds(primal, dual, gap=worst, n_vectors=len(used), n_kernel=n_kernel)
    stop = _SOLVED if worst <= 2.0 * tol else _UNSOLVED
    return Fitted(X[used], index[used], beta[used], intercept, certificate, stop)


def _exact_machine(
    problem: Problem, index: IndexArray, tol: float, precisions: Sequence[Precision]
) -> Fitted:
    """Return the exact machine of a cell, whatever the kernel and the rows."""
    X = problem.rows.take(index)
    weight, signs = problem.weight[index], problem.signs(index)
    m, n_problems = signs.shape
    for precision in precisions:
        K = scratch((m, m), precision.dtype, "of a cell")
        problem.kernel.checked_block(X, X, K)
        beta, intercept = np.zeros((m, n_problems)), np.empty(n_problems)
        proved = np.empty((n_problems, 4))
        solve_all(K, signs, weight, problem.C, _SHARE_OF_GAP * tol, beta, intercept, proved)
        worst = _worst_gap(proved, precision.rounding)
        if worst <= tol:
            break
    return _machine(index, X, beta, intercept, proved, worst, tol)


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


def constant_machine(problem: Problem, index: IndexArray, X: NDArray[Any]) -> Fitted:
    """Return the best constants of a cell; X tells how vectors look."""
    signs = problem.signs(index)
    norm2 = 0.0 if _mixed(signs).all() else largest_norm2(problem.subset(index))
    return constant_of(problem.weight[index], signs, problem.C, norm2, X)


def constant_of(weight: Vector, signs: Matrix, C: Vector, norm2: float, X: NDArray[Any]) -> Fitted:
    """Return the best constants of rows, or of classes of rows, of some weights.

    Parameters
    ----------
    weight : ndarray of shape (m,)
        Weights, positive.
    signs : ndarray of shape (m, n_problems)
        Their signs.
    C : ndarray of shape (n_problems,)
        C.
    norm2 : float
        η, the largest k(x, x) + 1 + ridge of a row, where a problem has rows on one side only.
    X : ndarray of shape (any, n_features)
        How vectors look, of which there will be none.
    """
    s = weight[:, None] * (signs != 0)
    # Of the rows that take part in each problem.
    total = s.sum(axis=0)
    # ±Σ s where all rows are on one side, and between for cells that the fit did not get to.
    lean = (s * signs).sum(axis=0)
    intercept = 2.0 * C * lean / (1.0 + 2.0 * C * total)
    slack = np.maximum(0.0, 1.0 - signs * intercept)
    primal = 0.5 * float((intercept**2).sum()) + float((C * (s * slack**2).sum(axis=0)).sum())
    one_sided = np.flatnonzero(~_mixed(signs) & (total > 0))
    dual = 0.0
    if len(one_sided):
        total = total[one_sided]
        # sᵀKs + S² at the most: no k(x, x') is larger than k(x, x).
        square = total * total * norm2
        dual = float((0.5 * total * total / (square + 0.5 * total / C[one_sided])).sum())
    certificate = bounds(primal, dual, gap=0.0)
    nothing, none = np.zeros((0, signs.shape[1])), np.empty(0, dtype=np.intp)
    return Fitted(X[:0], none, nothing, intercept, certificate, _SOLVED)


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


def target_machine(
    problem: Problem,
    index: IndexArray,
    options: Options,
    fit: Callable[[Problem, Options], Fitted] = fit_exact_targets,
) -> Fitted:
    """Return the machines of regression of a cell.

    Parameters
    ----------
    problem : Problem
        All rows, with targets.
    index : ndarray of int
        Rows of the cell.
    options : MachineOptions
        How exactly.
    fit : callable
        The engine.
    """
    inner = replace(options, earlier=None, report=None, threads=1)
    found = fit(problem.subset(index), inner)
    return replace(found, index=None if found.index is None else index[found.index])


def constant_of_targets(problem: Problem) -> Fitted:
    """Return constants near the targets of rows, at no cost: the best ones of ε = 0."""
    assert problem.regression is not None
    targets, price = problem.regression.of(np.arange(problem.n_problems)), 2.0 * problem.C
    total = problem.weight.sum()
    intercept = problem.bias * price * (problem.weight @ targets) / (1.0 + price * total)
    residual = problem.residuals(np.broadcast_to(intercept, targets.shape))
    loss = 0.5 * price * (problem.weight @ (residual * residual))
    certificate = bounds(float((0.5 * intercept**2 + loss).sum()), 0.0)
    nothing = np.zeros((0, problem.n_problems))
    X, none = problem.rows.take(np.arange(1)), np.empty(0, dtype=np.intp)
    return Fitted(X[:0], none, nothing, intercept, certificate, _SOLVED)


def _mixed(signs: Matrix) -> NDArray[np.bool_]:
    """Return which problems have rows on both sides."""
    mixed: NDArray[np.bool_] = (signs.max(axis=0) > 0) & (signs.min(axis=0) < 0)
    return mixed
