"""The engine of cells on a device: cut the rows there, and solve hundreds of machines at a time.

The machines are those of ``cell_engine``. Every problem in every cell has its best constant first,
which is the answer where all rows are on one side or time does not last; the others are solved
batch by batch. A cell that is too large for a matrix, or has more vectors than it may, gets a
machine in a span, on the device too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.cells.cell_by_cell import FittedCells, vector_budgets
from widemargin.cells.cell_engine import CellOptions, cell_size
from widemargin.cells.cell_machine import constant_machine, large_machine
from widemargin.cells.device_batches import Batches, Entries, Solved, in_batches
from widemargin.cells.device_partition import MembersThere, partition_there
from widemargin.cells.partition import given_partition
from widemargin.certificate import Certificate
from widemargin.device import Array, to_numpy
from widemargin.device.in_place import written
from widemargin.expansion import Fitted
from widemargin.loop import Ended, Limits, Stop, bounds, relative_gap, run
from widemargin.problem import Problem
from widemargin.span import fit_span


def fit_cells_there(problem: Problem, options: CellOptions) -> FittedCells:
    """Fit a machine in each cell of a partition, on the device of the rows.

    Parameters
    ----------
    problem : Problem
        Problems of one C, each of all classes or of two.
    options : CellOptions
        How; there is one kernel, and the squared hinge.
    """
    solver = DeviceCellsFit(problem, cut_there(problem, options), options)
    limits = Limits(options.max_iter, options.deadline, patience=options.max_iter)
    result = run(solver, limits, options.report)
    return solver.fitted(result.state, result.certificate, result.stop)


def cut_there(problem: Problem, options: CellOptions) -> MembersThere:
    """Return the rows in cells of a size, or with given centres."""
    rows = problem.rows
    if np.iterable(options.cells):
        partition, number = given_partition(options.cells, rows.shape[1])
        return MembersThere.of(problem, partition, options.overlap, number)
    size = cell_size(problem.n, problem.n_problems, options)
    partition = partition_there(rows, size, options.deadline)
    return MembersThere.of(problem, partition, options.overlap, None)


@dataclass(frozen=True)
class Constants:
    """The best constants of all problems in all cells, arrays of shape (n_cells, n_problems).

    Attributes
    ----------
    intercept : ndarray
        The constants.
    primal, dual : ndarray
        Objectives, and lower bounds on the optima: zero where rows are on both sides.
    mixed : ndarray of bool
        Where they are.
    """

    intercept: Matrix
    primal: Matrix
    dual: Matrix
    mixed: NDArray[np.bool_]

    @classmethod
    def of(cls, problem: Problem, batches: Batches, begins: IndexArray, memory: int) -> Constants:
        """Return the constants of rows in cells; see ``cell_machine`` for the formulas."""
        C, table = problem.C, problem.table
        weight = problem.weight[to_numpy(batches.members.row)]
        sums = np.concatenate([[0.0], np.cumsum(weight)])[begins]
        # Of each class, in each cell; the difference of sums is not exact.
        heavy, many = np.diff(sums, axis=1), np.diff(begins, axis=1)
        heavy[many == 0] = 0.0
        plus, minus = (table > 0).astype(float), (table < 0).astype(float)
        above, below = heavy @ plus, heavy @ minus
        total = above + below
        b = 2.0 * C * (above - below) / (1.0 + 2.0 * C * total)
        loss = above * np.maximum(0.0, 1.0 - b) ** 2 + below * np.maximum(0.0, 1.0 + b) ** 2
        both = (many @ plus > 0) & (many @ minus > 0)
        dual, single = np.zeros(b.shape), ~both & (total > 0)
        entries = Entries.of(problem, begins, single)
        if len(entries.cell):
            # Problems that see the same rows share their sum.
            longer = np.argmax(entries.length, axis=1)[:, None]
            start, length = (
                np.take_along_axis(each, longer, axis=1) for each in (entries.start, entries.length)
            )
            _, first, same = np.unique(start[:, 0], return_index=True, return_inverse=True)
            square = batches.square_sums(entries.subset(first), memory)[same.ravel()]
            S = total[entries.cell, entries.problem]
            ridge = 0.5 * S / C[entries.problem]
            dual[entries.cell, entries.problem] = 0.5 * S * S / (square + S * S + ridge)
            assert (length > 0).all()
        return cls(b, 0.5 * b**2 + C * loss, dual, both)


@dataclass(frozen=True)
class DeviceCellsState:
    """Batches that are solved, and cells that have a machine of another kind."""

    parts: tuple[Solved, ...] = ()
    others: Mapping[int, Fitted] = field(default_factory=dict)


class DeviceCellsFit:
    """Solver of all cells on a device, for ``loop.run``; a step is a batch, or a large cell.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    members : MembersThere
        Which rows train in which cell.
    options : CellOptions
        How.
    """

    def __init__(self, problem: Problem, members: MembersThere, options: CellOptions) -> None:
        self.problem, self.members, self.options = problem, members, options
        self.batches = Batches(problem, members, options.tol)
        sizes = members.sizes
        self.budgets = vector_budgets(sizes.tolist(), problem.n_problems, options.max_vectors)
        large = sizes > options.matrix_rows
        # The sums of large cells would be those of large matrices.
        begins = np.where(large[:, None], members.begins[:, :1], members.begins)
        self.constants = Constants.of(problem, self.batches, begins, options.memory)
        self.large = np.flatnonzero(large)
        entries = Entries.of(problem, members.begins, self.constants.mixed)
        early = options.deadline.max_time is not None
        groups = in_batches(entries.sizes, options.memory, smallest_first=early)
        self.queue = [entries.subset(group) for group in groups]

    # The methods of a solver.

    def start(self) -> DeviceCellsState:
        """Begin with constants."""
        return DeviceCellsState()

    def step(self, state: DeviceCellsState) -> DeviceCellsState:
        """Solve a batch, or fit a cell that is too large for one."""
        if len(state.parts) < len(self.queue):
            solved = self.batches.solve(self.queue[len(state.parts)])
            return replace(state, parts=(*state.parts, solved))
        cell = int(self.large[len(state.others)])
        return replace(state, others={**state.others, cell: self._otherwise(cell)})

    def stopped(self, state: DeviceCellsState) -> Stop | None:
        """Return what all cells came to, the worst one by its number."""
        if not self._done(state):
            return None
        gaps = np.zeros(len(self.members.sizes))
        for part in state.parts:
            np.maximum.at(gaps, part.entries.cell, part.gap)
        for cell, fit in state.others.items():
            gaps[cell] = fit.certificate.gap
        worst = int(np.argmax(gaps))
        reason = (
            f"{len(gaps):,} cells of up to {int(self.members.sizes.max()):,} rows, the largest "
            f"gap {gaps[worst]:.1e} in cell {worst}"
        )
        unsolved = [fit.stop.kind for fit in state.others.values() if not fit.stop.converged]
        if any((part.gap > 2.0 * self.options.tol).any() for part in state.parts):
            unsolved.append(Ended.PRECISION)
        return Stop(unsolved[0] if unsolved else Ended.SOLVED, reason)

    def finish(self, state: DeviceCellsState) -> DeviceCellsState:
        """Give other machines to cells with more vectors than they may have."""
        if self.budgets is None:
            missing = {int(c): self._constant(int(c)) for c in self.large if c not in state.others}
            return replace(state, others={**state.others, **missing})
        _, cell, _ = self._vectors(state)
        count = np.bincount(cell, minlength=len(self.budgets))
        others = dict(state.others)
        for over in np.flatnonzero((count > self.budgets) | (np.array(self.budgets) == 0)):
            none = self.budgets[over] == 0
            others[int(over)] = self._constant(int(over)) if none else self._otherwise(int(over))
        missing = {int(c): self._constant(int(c)) for c in self.large if c not in others}
        return replace(state, others=others | missing)

    def certificate(self, state: DeviceCellsState) -> Certificate:
        """Return the sums over the cells; where some are missing, nothing is proved."""
        primal, dual = self.constants.primal.copy(), self.constants.dual.copy()
        for part in state.parts:
            where = part.entries.cell, part.entries.problem
            primal[where], dual[where] = part.primal, part.dual
        others = [fit.certificate for fit in state.others.values()]
        for cell in state.others:
            primal[cell], dual[cell] = 0.0, 0.0
        high = float(primal.sum()) + sum(each.primal for each in others)
        low = float(dual.sum())
        full = low + sum(each.dual if each.full_dual is None else each.full_dual for each in others)
        low += sum(each.dual for each in others)
        spans = any(each.full_dual is not None for each in others)
        return bounds(
            high,
            low,
            gap=relative_gap(high, low) if self._done(state) else 1.0,
            scope="cells",
            n_vectors=sum(int(part.count.sum()) for part in state.parts),
            n_passes=2,
            n_kernel=int((self.members.sizes.astype(float) ** 2).sum()),
            full_dual=full if spans else None,
        )

    def _done(self, state: DeviceCellsState) -> bool:
        fitted = all(int(cell) in state.others for cell in self.large)
        return len(state.parts) == len(self.queue) and fitted

    # Cells one by one.

    def _index(self, cell: int) -> IndexArray:
        """Return the rows of a cell."""
        begins = self.members.begins[cell]
        own = to_numpy(self.members.row[int(begins[0]) : int(begins[-1])])
        return np.sort(own).astype(np.intp)

    def _otherwise(self, cell: int) -> Fitted:
        """Return the machine of a cell in a span."""
        limit = None if self.budgets is None else self.budgets[cell]
        inner = replace(self.options, max_vectors=limit, earlier=None, report=None)
        return large_machine(self.problem, self._index(cell), lambda part: fit_span(part, inner))

    def _constant(self, cell: int) -> Fitted:
        """Return a machine at no cost, for a cell that the fit did not get to."""
        index = self._index(cell)
        return constant_machine(self.problem, index, self.problem.rows.take(index[:1]))

    # The answer.

    def _vectors(self, state: DeviceCellsState) -> tuple[IndexArray, IndexArray, Matrix]:
        """Return rows that are vectors in the batches, their cells, and coefficients."""
        device, xp = self.batches.device, self.batches.device.xp
        n_members, P = self.members.row.shape[0], self.problem.n_problems
        flat: Array = device.zeros(((n_members + 1) * P,), np.float64)
        for part in state.parts:
            number = device.index(part.entries.problem)[:, None]
            where = xp.reshape(part.place * P + number, (-1,))
            flat = written(device, flat, where, xp.reshape(part.beta, (-1,)))
        coef = xp.reshape(flat, (n_members + 1, P))[:n_members, :]
        used = xp.nonzero(xp.any(coef != 0, axis=1))[0]
        ends = device.index(self.members.begins[:, -1])
        cell = xp.searchsorted(ends, used, side="right")
        row = xp.take(self.members.row, used)
        # In a cell, in the order of the rows, whatever their classes.
        order = xp.argsort(cell * self.problem.n + row)
        used = xp.take(used, order)
        answers = xp.take(row, order), xp.take(cell, order), xp.take(coef, used, axis=0)
        row_here, cell_here, coef_here = (to_numpy(each) for each in answers)
        return row_here.astype(np.intp), cell_here.astype(np.intp), coef_here

    def fitted(self, state: DeviceCellsState, certificate: Certificate, stop: Stop) -> FittedCells:
        """Return the machines of all cells."""
        index, cell, coef = self._vectors(state)
        intercept = self.constants.intercept.copy()
        for part in state.parts:
            intercept[part.entries.cell, part.entries.problem] = part.bias
        rows = self.problem.rows
        known: IndexArray | None = index
        replaced = np.isin(cell, list(state.others))
        if replaced.any():
            index, cell, coef = index[~replaced], cell[~replaced], coef[~replaced]
        vectors: Any = rows.take(index) if rows.sparse else rows.block(index)
        if state.others:
            fits = list(state.others.values())
            for number, fit in state.others.items():
                intercept[number] = fit.intercept
            cell = np.concatenate(
                [cell, *(np.full(len(f.vectors), c) for c, f in state.others.items())]
            )
            order = np.argsort(cell, kind="stable")
            cell = cell[order]
            vectors = np.concatenate([vectors, *(fit.vectors for fit in fits)])[order]
            coef = np.concatenate([coef, *(fit.coef for fit in fits)])[order]
            theirs = [fit.index for fit in fits if fit.index is not None]
            whole = len(theirs) == len(fits)
            known = np.concatenate([index, *theirs])[order] if whole else None
        count = np.bincount(cell, minlength=len(intercept))
        return FittedCells(
            vectors,
            known,
            coef,
            intercept,
            replace(certificate, n_vectors=len(vectors)),
            stop,
            self.members.partition.centers,
            np.concatenate([[0], np.cumsum(count)]).astype(np.intp),
            self.members.chosen,
        )
