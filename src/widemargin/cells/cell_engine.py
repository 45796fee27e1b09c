"""The engine of cells: cut the rows, fit a machine in each cell, and join what each proves."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.balls.ball import Precision, largest_norm2
from widemargin.cells.cell_machine import (
    constant_machine,
    constant_of_targets,
    exact_machines,
    hinge_machine,
    large_machine,
    target_machine,
)
from widemargin.cells.members import Members
from widemargin.cells.nearest_centers import Groups
from widemargin.cells.paged_array import paged_array
from widemargin.cells.partition import (
    ONE_LEVEL,
    Partition,
    given_partition,
    partition_by_kmeans,
)
from widemargin.cells.uncut import UncutOptions, fit_uncut
from widemargin.certificate import Certificate
from widemargin.expansion import Fitted
from widemargin.kernels import Kernel
from widemargin.loop import Deadline, Ended, Limits, Stop, bounds, relative_gap, run
from widemargin.problem import Problem
from widemargin.threads import ordered_map

# Cells of a step: threads wait for each other at its end, and a user sees a line for it.
_AT_A_TIME = 1024
# Rows of the cells that are a task of a thread: so many are some milliseconds.
_RUN = 2000
# Vectors of each problem in a cell, at the least, where there is a budget.
_VECTORS_OF_A_CELL = 2
# Share of the memory budget for the matrices of cells that are fitted beside each other.
_MATRICES_SHARE = 0.6
# Matrices of a cell: its kernel values, and those of its support.
_MATRICES = 2


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


@dataclass(frozen=True)
class FittedCells(Fitted):
    """The machines of all cells, one after another; `intercept` has a line for each.

    Attributes
    ----------
    centers : ndarray of shape (n_cells, n_features)
        Centres of the cells.
    offsets : ndarray of int of shape (n_cells + 1,)
        Where the vectors of each cell begin.
    chosen : ndarray of int of shape (n_cells,)
        Which of the centres in the options each of them is, where these were given.
    groups : Groups or None
        Groups of the centres, where there are two levels.
    """

    centers: Matrix
    offsets: IndexArray
    chosen: IndexArray
    groups: Groups | None = None


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


def cut(problem: Problem, options: CellOptions) -> Members:
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


def joined(
    partition: Partition,
    chosen: IndexArray,
    machines: dict[int, Fitted],
    certificate: Certificate,
    stop: Stop,
) -> FittedCells:
    """Return the machines of all cells, one after another.

    `machines` has none in the end: what was copied goes, so that there is little of it twice.
    """
    order = [machines[cell] for cell in range(partition.n_cells)]
    offsets = np.concatenate([[0], np.cumsum([len(machine.vectors) for machine in order])])
    intercept = np.stack([machine.intercept for machine in order])
    known = all(machine.index is not None for machine in order)
    dtype = np.result_type(*{machine.vectors.dtype for machine in order})
    vectors = paged_array((offsets[-1], partition.centers.shape[1]), dtype)
    kind = np.result_type(*{machine.coef.dtype for machine in order})
    coef = np.empty((offsets[-1], intercept.shape[1]), dtype=kind)
    index = np.empty(offsets[-1], dtype=np.intp) if known else None
    del order
    while machines:
        cell, machine = machines.popitem()
        where = slice(offsets[cell], offsets[cell + 1])
        vectors[where], coef[where] = machine.vectors, machine.coef
        if index is not None:
            index[where] = machine.index
    return FittedCells(
        vectors,
        index,
        coef,
        intercept,
        certificate,
        stop,
        partition.centers,
        offsets.astype(np.intp),
        chosen,
        partition.groups,
    )


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


def vector_budgets(sizes: Sequence[int], n_problems: int, most: int | None) -> list[int] | None:
    """Return the vectors that cells of some sizes may have, all together no more than `most`."""
    if most is None:
        return None
    least = n_problems * len(sizes)
    if most < least and len(sizes) > 1:
        raise ValueError(
            f"max_vectors={most} is less than one for each problem in each of "
            f"{len(sizes):,} cells; give {least:,} or more, or larger cells."
        )
    share = most * np.array(sizes) / sum(sizes)
    budgets = np.floor(share).astype(int)
    # What rounding has left goes to those that lost most by it.
    for cell in np.argsort(budgets - share, kind="stable")[: most - int(budgets.sum())]:
        budgets[cell] += 1
    return [int(each) for each in budgets]


def fitting_order(sizes: Sequence[int], deadline: Deadline) -> list[int]:
    """Return the cells in the order in which they are fitted.

    Largest first: the last of them shall not be waited for by all other threads. Smallest first
    where time is limited: more rows get a machine in the same time.
    """
    sign = -1 if deadline.max_time is None else 1
    return sorted(range(len(sizes)), key=lambda c: (sign * sizes[c], c))


@dataclass(frozen=True)
class CellsState:
    """The machines of the cells until now, in the order in which they are fitted."""

    fits: tuple[Fitted, ...]


class CellsFit:
    """Solver of all cells, for ``loop.run``; a step is some of them.

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

    def __init__(
        self,
        problem: Problem,
        members: Members,
        options: CellOptions,
        everywhere: AllCells | None = None,
    ) -> None:
        self.problem = problem
        self.members = members
        self.options = options
        self.sizes = [len(index) for index in members.train]
        if everywhere is None:
            everywhere = AllCells.of(problem, self.sizes, options)
        self.everywhere, self.budgets = everywhere, everywhere.budgets
        self.order = fitting_order(self.sizes, options.deadline)

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
        if self.everywhere.n_cells > 1 and len(index) <= options.matrix_rows and self._beside(cell):
            if options.deadline.passed:
                return None
            if self.problem.regression is not None and self.budgets is None:
                return target_machine(self._problem_of(cell), index, options)
            if options.loss == "hinge":
                return hinge_machine(self._problem_of(cell), index, options)
            if self.problem.regression is None:
                return self._exact([cell])[0]
        return self._fit_otherwise(cell)

    def _fit_run(self, cells: Sequence[int]) -> list[Fitted]:
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

    def _runs(self, cells: Sequence[int]) -> list[list[int]]:
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
            small = size <= min(_RUN, options.matrix_rows) and self._beside(cell) > 0
            if rows > _RUN or not (together and small):
                runs.append([])
                rows = size if together and small else math.inf
            runs[-1].append(cell)
        return runs

    def _beside(self, cell: int) -> int:
        """Return how many cells of this size have room for their matrices at a time."""
        each = _MATRICES * 8 * self.sizes[cell] ** 2
        return int(_MATRICES_SHARE * self.options.memory / each)

    def constant(self, cell: int) -> Fitted:
        """Return a machine at no cost, for a cell that the fit did not get to."""
        problem, index = self._problem_of(cell), self.members.train[cell]
        if problem.regression is not None:
            return constant_of_targets(problem.subset(index))
        return constant_machine(problem, index, problem.rows.take(index[:1]))

    # The methods of a solver.

    def start(self) -> CellsState:
        """Begin with no cell."""
        return CellsState(())

    def step(self, state: CellsState) -> CellsState:
        """Fit the machines of some more cells; an interrupt leaves those that are done."""
        first, deadline = len(state.fits), self.options.deadline
        done: list[Fitted] = []
        with deadline.ends_on_interrupt():
            cells = self.order[first : first + _AT_A_TIME]
            room = min(self._beside(cell) for cell in cells)
            threads = min(self.options.threads, max(1, room))
            runs = self._runs(cells)
            for run_of_cells, fits in zip(
                runs, ordered_map(self._fit_run, runs, threads), strict=False
            ):
                done.extend(fits)
                if len(fits) < len(run_of_cells) or deadline.passed:
                    break
        return CellsState((*state.fits, *done))

    def finish(self, state: CellsState) -> CellsState:
        """Put a constant into the cells that were not reached."""
        rest = self.order[len(state.fits) :]
        return CellsState(state.fits + tuple(self.constant(cell) for cell in rest))

    def machines(self, state: CellsState) -> list[Fitted]:
        """Return the machines in the order of the cells."""
        place = np.argsort(self.order)
        return [state.fits[k] for k in place]

    def certificate(self, state: CellsState) -> Certificate:
        """Return the sums over the cells; those that are missing count as nothing proved."""
        return summed(state.fits, len(self.sizes), n_passes=2)

    def stopped(self, state: CellsState) -> Stop | None:
        """Return what all cells came to, the worst one by name."""
        if len(state.fits) < len(self.sizes):
            return None
        return outcome(state.fits, self.order, max(self.sizes), self.options.deadline)


def summed(fits: Sequence[Fitted], n_cells: int, n_passes: int) -> Certificate:
    """Return the sums over cells; where some are missing, nothing is proved."""
    proved = [fit.certificate for fit in fits]
    primal = sum(each.primal for each in proved)
    dual = sum(each.dual for each in proved)
    spans = any(each.full_dual is not None for each in proved)
    full = (each.dual if each.full_dual is None else each.full_dual for each in proved)
    done = len(proved) == n_cells
    return bounds(
        primal,
        dual,
        gap=relative_gap(primal, dual) if done else 1.0,
        scope="cells",
        n_vectors=sum(len(fit.vectors) for fit in fits),
        n_passes=n_passes,
        n_kernel=sum(each.n_kernel for each in proved),
        full_dual=sum(full) if spans else None,
    )


def outcome(fits: Sequence[Fitted], numbers: Sequence[int], most: int, deadline: Deadline) -> Stop:
    """Return what all cells came to, the worst one by its number; `most` are a cell's rows."""
    gaps = [fit.certificate.gap for fit in fits]
    worst = int(np.argmax(gaps))
    reason = (
        f"{len(gaps):,} cells of up to {most:,} rows, the largest "
        f"gap {gaps[worst]:.1e} in cell {numbers[worst]}"
    )
    unsolved = [fit.stop for fit in fits if not fit.stop.converged]
    if not unsolved:
        return Stop(Ended.SOLVED, reason)
    if deadline.passed:
        return Stop(deadline.stop.kind, f"{deadline.stop.reason}, {reason}")
    return Stop(unsolved[0].kind, reason)
