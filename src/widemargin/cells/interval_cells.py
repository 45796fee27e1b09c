"""Losses in linear pieces in cells: an exact machine of intervals for each cell.

A cell has the machines of ``SVR`` or of quantiles for its own rows, with a bias of its own
(``balls.exact_intervals``), so that primal and dual of all cells add up. A cell that is too large
for its matrix, or has more vectors than its part of the budget, is fitted in a span
(``span.interval_fit``). The one-class machine, whose cells share their offset, is in
``one_class_cells``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from widemargin.balls.exact_intervals import fit_exact_intervals
from widemargin.cells.cell_by_cell import CellByCell, FittedCells, joined, vector_budgets
from widemargin.cells.cell_decision import CellMachines
from widemargin.cells.cell_engine import CellOptions, cut
from widemargin.cells.members import Members
from widemargin.cells.partition import Partition
from widemargin.expansion import Fitted
from widemargin.intervals import IntervalProblem
from widemargin.loop import Ended, Limits, Stop, bounds, run
from widemargin.qp.interval_dual import best_bias
from widemargin.span.interval_fit import IntervalSpanOptions, fit_interval_span

# The loss of a larger size of cells is to be lower by this share,
_SIZE_GAIN = 0.01
# on a sample that has at least so many cells,
_PARTS = 3
# whose machines are fitted to this gap.
_TRIAL_TOL = 1e-2

_UNTRAINED = Stop(Ended.SOLVED, "the best constant")


def fit_interval_cells(problem: IntervalProblem, options: CellOptions) -> FittedCells:
    """Fit machines in each cell of a partition.

    Parameters
    ----------
    problem : IntervalProblem
        What is to be fitted, with biases at no price.
    options : CellOptions
        How.
    """
    members = cut(problem, options)
    solver = IntervalCells(problem, members, options)
    # Each cell is a success of its own: there is no stall.
    limits = Limits(options.max_iter, options.deadline, patience=options.max_iter)
    result = run(solver, limits, options.report)
    machines = dict(enumerate(solver.machines(result.state)))
    return joined(members.partition, members.chosen, machines, result.certificate, result.stop)


class IntervalCells(CellByCell):
    """Solver of losses in linear pieces in all cells.

    Parameters
    ----------
    problem : IntervalProblem
        All rows.
    members : Members
        Which rows train in which cell.
    options : CellOptions
        How.
    """

    options: CellOptions

    def __init__(self, problem: IntervalProblem, members: Members, options: CellOptions) -> None:
        super().__init__(members, options)
        self.problem = problem
        self.budgets = vector_budgets(self.sizes, problem.n_problems, options.max_vectors)

    def fit_run(self, cells: Sequence[int]) -> list[Fitted]:
        """Return the machine of a cell, if time lasts."""
        if self.options.deadline.passed:
            return []
        return [self._fit(cell) for cell in cells]

    def _fit(self, cell: int) -> Fitted:
        options, index = self.options, self.members.train[cell]
        budget = None if self.budgets is None else self.budgets[cell]
        if budget == 0:
            return self.constant(cell)
        part = self.problem.part(index)
        alone = len(self.sizes) == 1
        inner = replace(
            options,
            max_vectors=None,
            earlier=None,
            report=options.report if alone else None,
            # Cells are fitted beside each other.
            threads=options.threads if alone else 1,
        )
        exact = len(index) <= options.matrix_rows and self.beside(cell)
        found = fit_exact_intervals(part, inner) if exact else None
        if found is None or (budget is not None and len(found.vectors) > budget):
            told = IntervalSpanOptions.of(replace(inner, max_vectors=budget))
            found = fit_interval_span(part, told)
        return replace(found, index=None if found.index is None else index[found.index])

    def constant(self, cell: int) -> Fitted:
        """Return the best constants of a cell."""
        index, problem = self.members.train[cell], self.problem.part(self.members.train[cell])
        zero = np.zeros(len(index))
        low, high, below, above = problem.low, problem.high, problem.below, problem.above
        bias = np.array(
            [
                best_bias(zero, low[:, p], high[:, p], below[:, p], above[:, p], 0.0)
                for p in range(problem.n_problems)
            ]
        )
        loss = problem.loss(np.broadcast_to(bias, problem.low.shape))
        nothing, none = np.zeros((0, problem.n_problems)), np.empty(0, dtype=np.intp)
        first = problem.rows.take(np.arange(1))
        return Fitted(first[:0], none, nothing, bias, bounds(loss, 0.0), _UNTRAINED)


def size_of_interval_cells(
    problem: IntervalProblem, options: CellOptions, sizes: Sequence[int], learn: int, blend: float
) -> int:
    """Choose the rows of a cell by the loss on held-out rows: the least that no larger one beats.

    Parameters
    ----------
    problem : IntervalProblem
        All rows, in random order.
    options : CellOptions
        How machines are fitted.
    sizes : sequence of int
        Sizes to choose from, rising.
    learn : int
        Rows to learn from, at the most; as many tell.
    blend : float
        As in `CellMachines`.
    """
    learn = min(learn, problem.n // 2)
    if learn < _PARTS * sizes[1]:
        return sizes[0]
    sample = problem.part(np.arange(learn))
    judge = problem.part(np.arange(learn, min(2 * learn, problem.n)))
    deadline = options.deadline.part(0.25)
    trial = replace(options, tol=_TRIAL_TOL, max_vectors=None, report=None, deadline=deadline)
    best, least = sizes[0], np.inf
    for size in sizes:
        if size * _PARTS > learn:
            break
        found = fit_interval_cells(sample, replace(trial, cells=size))
        if deadline.interrupted:
            # There is no model yet.
            raise KeyboardInterrupt
        if deadline.passed:
            break
        loss = judge.loss(machines_of(found, problem, blend).values(judge.rows))
        if loss > (1.0 - _SIZE_GAIN) * least:
            break
        best, least = size, loss
    return best


def machines_of(fitted: FittedCells, problem: IntervalProblem, blend: float) -> CellMachines:
    """Return what answers rows by fitted cells."""
    return CellMachines(
        Partition(fitted.centers, fitted.groups),
        problem.kernel,
        fitted.vectors,
        fitted.coef,
        fitted.offsets,
        fitted.intercept,
        blend,
    )
