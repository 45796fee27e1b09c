"""Machines of cells one after another: the loop over them, and how what each proves is joined.

What stands in a cell is a matter of the solvers of ``cell_engine`` and ``interval_cells``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from widemargin.arrays import IndexArray, Matrix
from widemargin.cells.members import Members
from widemargin.cells.nearest_centers import Groups
from widemargin.cells.paged_array import paged_array
from widemargin.cells.partition import Partition
from widemargin.certificate import Certificate
from widemargin.expansion import Fitted, MachineOptions
from widemargin.loop import Deadline, Ended, Stop, bounds, relative_gap
from widemargin.threads import ordered_map

# Cells of a step: threads wait for each other at its end, and a user sees a line for it.
_AT_A_TIME = 1024
# Share of the memory budget for the matrices of cells that are fitted beside each other.
_MATRICES_SHARE = 0.6
# Matrices of a cell: its kernel values, and those of its support.
_MATRICES = 2


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


class CellByCell(ABC):
    """Solver of all cells, for ``loop.run``; a step is some of them.

    Parameters
    ----------
    members : Members
        Which rows train in which cell.
    options : MachineOptions
        Threads, memory, and the deadline.
    """

    options: MachineOptions

    def __init__(self, members: Members, options: MachineOptions) -> None:
        self.members = members
        self.options = options
        self.sizes = [len(index) for index in members.train]
        self.order = fitting_order(self.sizes, options.deadline)

    @abstractmethod
    def constant(self, cell: int) -> Fitted:
        """Return a machine at no cost, for a cell that the fit did not get to."""

    @abstractmethod
    def fit_run(self, cells: Sequence[int]) -> list[Fitted]:
        """Return the machines of cells, as many as time lasts for."""

    def runs(self, cells: Sequence[int]) -> list[list[int]]:
        """Return cells as tasks of threads."""
        return [[cell] for cell in cells]

    def beside(self, cell: int) -> int:
        """Return how many cells of this size have room for their matrices at a time."""
        each = _MATRICES * 8 * self.sizes[cell] ** 2
        return int(_MATRICES_SHARE * self.options.memory / each)

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
            room = min(self.beside(cell) for cell in cells)
            threads = min(self.options.threads, max(1, room))
            runs = self.runs(cells)
            for run_of_cells, fits in zip(
                runs, ordered_map(self.fit_run, runs, threads), strict=False
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
