"""Machines in cells, fitted to rows in shards.

A sample of the rows, those with the least keys, says where the cells are. Every shard then says
which of its rows belong where, and rows of a cell are brought together, with those from just
outside: in buckets of several cells, each of which is fitted where it is (``cell_buckets``). Rows
of a cell come in the order of their keys, so that its machine is the one of the fit in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.balls.ball import Precision
from widemargin.cells.cell_by_cell import (
    FittedCells,
    fitting_order,
    joined,
    outcome,
    summed,
    vector_budgets,
)
from widemargin.cells.cell_engine import AllCells, CellOptions, cell_size
from widemargin.cells.cell_machine import constant_of
from widemargin.cells.partition import (
    Partition,
    given_partition,
    partition_of_sample,
    sample_size,
)
from widemargin.certificate import Certificate
from widemargin.expansion import Fitted
from widemargin.loop import Ended, Limits, PlaceLost, Stop, run
from widemargin.places.bucket import Bucket, FittedBucket
from widemargin.places.cell_buckets import BucketPlace, place_of
from widemargin.places.cell_shard import Census, assign_rows, parts_of
from widemargin.places.sorted_shards import SortedShards
from widemargin.places.span_of_shards import Statement
from widemargin.span.shards import Each

# Cells whose depths are compared at a time.
_AT_A_TIME = 4096


def fit_cells_of_shards(
    shards: SortedShards, stated: Statement, options: CellOptions
) -> FittedCells:
    """Fit a machine in each cell of a partition; the vectors' `index` holds numbers of rows.

    Parameters
    ----------
    shards : SortedShards
        The rows.
    stated : Statement
        What is to be fitted.
    options : CellOptions
        How.
    """
    cells = cut_shards(shards, stated.table.shape[1], options)
    solver = CellsOfShards(shards, cells, stated, options)
    # Each cell is a success of its own: there is no stall.
    limits = Limits(options.max_iter, options.deadline, patience=options.max_iter)
    result = run(solver, limits, options.report)
    return joined(cells.partition, cells.chosen, result.state.fits, result.certificate, result.stop)


@dataclass(frozen=True)
class CutShards:
    """The rows of all shards in cells.

    Attributes
    ----------
    partition : Partition
        Cells that all have rows.
    chosen : ndarray of int of shape (n_cells,)
        Which of the cells that there were at first each of them is.
    assigned : Each
        Where the rows of each shard belong.
    sizes : ndarray of int of shape (n_cells,)
        Rows that train in each cell; those that several shards have count in each.
    depth : ndarray of shape (n_cells,)
        A depth up to which there are as many rows outside a cell as train in it, or a few more.
    weight : ndarray of shape (n_cells, n_classes)
        Weight of the rows inside each cell by class.
    """

    partition: Partition
    chosen: IndexArray
    assigned: Each
    sizes: IndexArray
    depth: Vector
    weight: Matrix


def cut_shards(shards: SortedShards, n_problems: int, options: CellOptions) -> CutShards:
    """Return the rows in cells of a size, or with given centres."""
    if np.iterable(options.cells):
        partition, chosen = given_partition(options.cells, shards.n_features)
    else:
        size = cell_size(shards.n, n_problems, options)
        sample = shards.sample(sample_size(shards.n, size))
        rows = sample.rows.take(np.arange(sample.rows.shape[0]))
        partition = partition_of_sample(
            rows,
            shards.n,
            size,
            options.threads,
            options.deadline,
            one_level=options.one_level,
        )
        chosen = np.arange(partition.n_cells)
    while True:
        assigned, counts = shards.keep("assign", assign_rows, partition, options.overlap > 0)
        inside = sum(each.inside for each in counts)
        filled = np.flatnonzero(inside)
        if len(filled) == partition.n_cells:
            break
        # Once more: a cell without rows may have been the second nearest of some.
        partition, chosen = partition.subset(filled), chosen[filled]
    outside = sum(each.outside for each in counts)
    wanted = np.minimum(np.rint(options.overlap * inside).astype(np.intp), outside)
    # Of rows that several shards have, too few could be left.
    depth = depths_for(counts, wanted) if shards.apart else np.full(len(wanted), np.inf)
    weight = sum(each.weight for each in counts)
    return CutShards(partition, chosen, assigned, inside + wanted, depth, weight)


def depths_for(counts: Sequence[Census], wanted: IndexArray) -> Vector:
    """Return depths up to which at least so many rows are outside each cell, by what is known."""
    found = np.full(len(wanted), -np.inf)
    for first in range(0, len(wanted), _AT_A_TIME):
        part = slice(first, first + _AT_A_TIME)
        depths = np.concatenate([each.depths[part] for each in counts], axis=1)
        rows = np.concatenate(
            [np.diff(parts_of(each.outside[part]), axis=1, prepend=0) for each in counts], axis=1
        )
        order = np.argsort(depths, axis=1, kind="stable")
        sure = np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
        enough = (sure < wanted[part, None]).sum(axis=1)
        last = np.minimum(enough, depths.shape[1] - 1)[:, None]
        depth = np.take_along_axis(np.take_along_axis(depths, order, axis=1), last, axis=1)
        found[part] = np.where(wanted[part] > 0, depth[:, 0], -np.inf)
    return found


def options_of_buckets(options: CellOptions) -> CellOptions:
    """Return options without what a bucket need not know, and what could not travel."""
    plain = CellOptions(**{each.name: getattr(options, each.name) for each in fields(CellOptions)})
    return replace(plain, cells=0, report=None, earlier=None)


@dataclass(frozen=True)
class ShardCellsState:
    """The machines of the cells until now, by the numbers of the cells.

    Attributes
    ----------
    fits : dict
        The machines.
    waiting : tuple of int
        Buckets that were not fitted yet.
    largest : int
        Rows that train in one of the cells, at the most.
    lost : str
        Why rows cannot be reached any more.
    """

    fits: dict[int, Fitted]
    waiting: tuple[int, ...]
    largest: int = 0
    lost: str = ""


class CellsOfShards:
    """Solver of all cells, for ``loop.run``; a step is some buckets of them.

    Parameters
    ----------
    shards : SortedShards
        The rows.
    cells : CutShards
        In cells.
    stated : Statement
        What is to be fitted.
    options : CellOptions
        How.
    """

    def __init__(
        self, shards: SortedShards, cells: CutShards, stated: Statement, options: CellOptions
    ) -> None:
        self.shards, self.cells, self.stated, self.options = shards, cells, stated, options
        sizes = cells.sizes.tolist()
        self.order = fitting_order(sizes, options.deadline)
        self.place: BucketPlace = place_of(shards, cells.assigned, cells.depth, stated)
        precisions = Precision.in_turn_of(stated.kernel, shards.spread, shards.norm2, options.tol)
        budgets = vector_budgets(sizes, stated.table.shape[1], options.max_vectors)
        everywhere = AllCells(len(sizes), budgets, precisions)
        plain, limits = options_of_buckets(options), self.place.limits(options)
        self.buckets = [
            self._bucket(np.sort(part), everywhere, replace(plain, **limits))
            for part in self.place.parts(self.order, cells.sizes)
        ]

    def _bucket(self, cells: IndexArray, everywhere: AllCells, options: CellOptions) -> Bucket:
        """Return a bucket of some cells, with what concerns these."""
        if everywhere.budgets is not None:
            budgets = [everywhere.budgets[cell] for cell in cells]
            everywhere = replace(everywhere, budgets=budgets)
        if options.kernels is not None and options.Cs is not None:
            chosen = self.cells.chosen[cells]
            kernels = [options.kernels[number] for number in chosen]
            options = replace(options, kernels=kernels, Cs=options.Cs[chosen])
        return Bucket(cells, self.cells.partition.centers[cells], everywhere, options)

    # The methods of a solver.

    def start(self) -> ShardCellsState:
        """Begin with no cell."""
        self.place.begin(self.buckets, self.cells.partition.n_cells)
        return ShardCellsState({}, tuple(range(len(self.buckets))))

    def step(self, state: ShardCellsState) -> ShardCellsState:
        """Fit the machines of some more buckets; an interrupt leaves those that are done."""
        found: dict[int, FittedBucket] = {}
        lost = ""
        with self.options.deadline.ends_on_interrupt():
            try:
                for bucket, each in self.place.fitted(state.waiting, self.options.deadline):
                    found[bucket] = each
            except PlaceLost as error:
                lost = str(error)
        fits = dict(state.fits)
        for each in found.values():
            fits |= each.fits
        waiting = tuple(bucket for bucket in state.waiting if bucket not in found)
        largest = max(state.largest, *(each.largest for each in found.values()), 0)
        return ShardCellsState(fits, waiting, largest, lost)

    def finish(self, state: ShardCellsState) -> ShardCellsState:
        """Put a constant into the cells that were not reached."""
        self.place.end()
        n_cells = self.cells.partition.n_cells
        rest = {cell: self.constant(cell) for cell in range(n_cells) if cell not in state.fits}
        return replace(state, fits=state.fits | rest)

    def constant(self, cell: int) -> Fitted:
        """Return a machine at no cost, for a cell that the fit did not get to."""
        weight, Cs = self.cells.weight[cell], self.options.Cs
        C = self.stated.C if Cs is None else Cs[self.cells.chosen[cell]]
        there = weight > 0
        n_problems = self.stated.table.shape[1]
        # The largest norm is that of all rows; another C makes another ridge.
        norm2 = self.shards.norm2 * max(1.0, self.stated.C / C)
        return constant_of(
            weight[there],
            self.stated.table[there],
            np.full(n_problems, float(C)),
            norm2,
            self.shards.no_rows,
        )

    def _fits(self, state: ShardCellsState) -> list[Fitted]:
        """Return the machines until now in the order of the fit in memory."""
        return [state.fits[cell] for cell in self.order if cell in state.fits]

    def certificate(self, state: ShardCellsState) -> Certificate:
        """Return the sums over the cells; those that are missing count as nothing proved."""
        n_passes = self.shards.n_passes + self.place.n_passes
        return summed(self._fits(state), self.cells.partition.n_cells, n_passes)

    def stopped(self, state: ShardCellsState) -> Stop | None:
        """Return what all cells came to, the worst one by name."""
        if state.lost:
            return Stop(Ended.LOST, state.lost)
        if len(state.fits) < self.cells.partition.n_cells:
            return None
        return outcome(self._fits(state), self.order, state.largest, self.options.deadline)
