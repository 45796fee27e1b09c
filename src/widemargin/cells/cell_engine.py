"""The engine of cells: cut the rows, fit a machine in each cell, and join what each proves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.balls.ball import Precision, largest_norm2
from widemargin.cells.cell_by_cell import CellByCell, FittedCells, joined, vector_budgets
from widemargin.cells.cell_machine import (
    constant_machine,
    constant_of_targets,
    exact_machines,
    hinge_machine,
    large_machine,
    target_machine,
)
from widemargin.cells.members import Members
from widemargin.cells.partition import (
    ONE_LEVEL,
    given_partition,
    partition_by_kmeans,
)
from widemargin.cells.uncut import UncutOptions, fit_uncut
from widemargin.expansion import Fitted
from widemargin.intervals import IntervalProblem
from widemargin.kernels import Kernel
from widemargin.loop import Limits, run
from widemargin.problem import Problem

# Rows of the cells that are a task of a thread: so many are some milliseconds.
_RUN = 2000
# Vectors of each problem in a cell, at the least, where there is a budget.
_VECTORS_OF_A_CELL = 2


@dataclass(frozen=True, kw_only=True)
class CellOptions(UncutOptions):
    """How rows are cut, and how the machines of cells are fitted.

    Attributes
    ----------
    cells : int or array of shape (n_cells, n_features)
        About how many rows a cell has, or the centres of the cells.
    overlap : float
        Rows from just outside a cell that train its machine too, as a share of its own.
    kernels : sequence of Kernel or None
        A kernel for each of the centres, where these were chosen.
    Cs : ndarray of shape (n_cells,) or None
        And a C for each.
    matrix_rows : int
        Rows of a cell up to which its kernel matrix is made; beyond, another engine takes over.
    one_level : int
        Cells up to which every row is compared with all centres; beyond, with those of some groups.
    """

    cells: Any = 300
    overlap: float = 0.3
    kernels: Sequence[Kernel] | None = None
    Cs: NDArray[np.float64] | None = None
    matrix_rows: int = 5000
    one_level: int = ONE_LEVEL


def fit_cells(problem: Problem, options: CellOptions) -> FittedCells:
    """Fit a machine in each cell of a partition.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    options : CellOptions
        How.
    """
    members = cut(problem, options)
    solver = CellsFit(problem, members, options)
    # Each cell is a success of its own: there is no stall.
    limits = Limits(options.max_iter, options.deadline, patience=options.max_iter)
    result = run(solver, limits, options.report)
    machines = dict(enumerate(solver.machines(result.state)))
    return joined(members.partition, members.chosen, machines, result.certificate, result.stop)


def cut(problem: Problem | IntervalProblem, options: CellOptions) -> Members:
    """Return the rows in cells of a size, or with given centres."""
    rows = problem.rows
    if np.iterable(options.cells):
        partition, number = given_partition(options.cells, rows.shape[1])
        return Members.of(rows, partition, options.overlap, number)
    size = cell_size(problem.n, problem.n_problems, options)
    limits = options.threads, options.deadline
    partition = partition_by_kmeans(rows, size, *limits, options.one_level)
    return Members.of(rows, partition, options.overlap)


def cell_size(n: int, n_problems: int, options: CellOptions) -> int:
    """Return about how many of n rows a cell shall have, where no centres are given."""
    size = int(options.cells)
    if options.max_vectors is None:
        return size
    # Every cell needs some vectors: a small budget is for few cells.
    return max(size, int(_VECTORS_OF_A_CELL * n_problems * n / options.max_vectors))


@dataclass(frozen=True)
class AllCells:
    """What all cells decide together, for a solver of some of them.

    Attributes
    ----------
    n_cells : int
        How many there are.
    budgets : list of int or None
        Vectors that each cell of the solver may have.
    precisions : list of Precision
        Of kernel values, those to be tried one after another.
    """

    n_cells: int
    budgets: list[int] | None
    precisions: list[Precision]

    @classmethod
    def of(cls, problem: Problem, sizes: Sequence[int], options: CellOptions) -> AllCells:
        """Return it for cells of these sizes, which are all."""
        budgets = vector_budgets(sizes, problem.n_problems, options.max_vectors)
        precisions = Precision.in_turn(problem, largest_norm2(problem), options.tol)
        return cls(len(sizes), budgets, precisions)


class CellsFit(CellByCell):
    """Solver of the problems of classes and of squared losses in all cells.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    members : Members
        Which rows train in which cell.
    options : CellOptions
        How.
    everywhere : AllCells, default=None
        What is decided by all cells, where these are some of them.
    """

    options: CellOptions

    def __init__(
        self,
        problem: Problem,
        members: Members,
        options: CellOptions,
        everywhere: AllCells | None = None,
    ) -> None:
        super().__init__(members, options)
        self.problem = problem
        if everywhere is None:
            everywhere = AllCells.of(problem, self.sizes, options)
        self.everywhere, self.budgets = everywhere, everywhere.budgets

    def _problem_of(self, cell: int) -> Problem:
        kernels, Cs = self.options.kernels, self.options.Cs
        if kernels is None or Cs is None:
            return self.problem
        number = self.members.chosen[cell]
        return replace(self.problem.with_C(Cs[number]), kernel=kernels[number])

    def fit(self, cell: int) -> Fitted | None:
        """Return the machine of a cell; None where time did not last."""
        options, index = self.options, self.members.train[cell]
        if self.budgets is not None and self.budgets[cell] == 0:
            return self.constant(cell)
        # The only cell is no cell: it gets what would be there without.
        if self.everywhere.n_cells > 1 and len(index) <= options.matrix_rows and self.beside(cell):
            if options.deadline.passed:
                return None
            if self.problem.regression is not None and self.budgets is None:
                return target_machine(self._problem_of(cell), index, options)
            if options.loss == "hinge":
                return hinge_machine(self._problem_of(cell), index, options)
            if self.problem.regression is None:
                return self._exact([cell])[0]
        return self._fit_otherwise(cell)

    def fit_run(self, cells: Sequence[int]) -> list[Fitted]:
        """Return the machines of cells, as many as time lasts for."""
        if len(cells) > 1:
            return self._exact(cells)
        found = self.fit(cells[0])
        return [] if found is None else [found]

    def _exact(self, cells: Sequence[int]) -> list[Fitted]:
        """Return exact machines, or others where these have too many vectors."""
        problem, index = self._problem_of(cells[0]), [self.members.train[c] for c in cells]
        found = exact_machines(problem, index, self.options.tol, self.everywhere.precisions)
        if self.budgets is None:
            return found
        return [
            fit if len(fit.vectors) <= self.budgets[cell] else self._fit_otherwise(cell)
            for cell, fit in zip(cells, found, strict=True)
        ]

    def _fit_otherwise(self, cell: int) -> Fitted:
        """Return the machine of a cell that is too large, or has too many vectors, for a matrix."""
        limit = None if self.budgets is None else self.budgets[cell]
        inner = replace(self.options, max_vectors=limit, earlier=None, report=None)
        if self.everywhere.n_cells > 1:
            # Cells are fitted beside each other.
            inner = replace(inner, threads=1)
        problem, index = self._problem_of(cell), self.members.train[cell]
        if problem.regression is not None:
            return target_machine(problem, index, inner, fit_uncut)
        return large_machine(problem, index, lambda part: fit_uncut(part, inner))

    def runs(self, cells: Sequence[int]) -> list[list[int]]:
        """Return cells as tasks of threads: a few together, where they get exact machines."""
        options = self.options
        plain = options.kernels is None and self.budgets is None and options.loss != "hinge"
        plain = plain and self.problem.regression is None
        together = plain and options.deadline.max_time is None and self.everywhere.n_cells > 1
        runs: list[list[int]] = []
        rows = math.inf
        for cell in cells:
            size = self.sizes[cell]
            rows += size
            small = size <= min(_RUN, options.matrix_rows) and self.beside(cell) > 0
            if rows > _RUN or not (together and small):
                runs.append([])
                rows = size if together and small else math.inf
            runs[-1].append(cell)
        return runs

    def constant(self, cell: int) -> Fitted:
        """Return a machine at no cost, for a cell that the fit did not get to."""
        problem, index = self._problem_of(cell), self.members.train[cell]
        if problem.regression is not None:
            return constant_of_targets(problem.subset(index))
        return constant_machine(problem, index, problem.rows.take(index[:1]))
