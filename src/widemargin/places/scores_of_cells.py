"""The scores of a grid in cells of rows in shards: every width, C and fold of a bucket at once.

Rows of a cell are brought together as for a fit (``cells_of_shards``), equal ones of different
folds apart. A bucket then goes through all widths, so that rows travel, or partitions are read,
once for the whole grid. What comes back are weights of rows that were answered right where they
were held out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.cells.cell_by_cell import fitting_order
from widemargin.cells.cell_engine import AllCells, CellOptions
from widemargin.cells.held_out import HeldOutOptions, batches, held_out_values
from widemargin.cells.members import Members
from widemargin.folds import Folds
from widemargin.kernels import Kernel
from widemargin.loop import Deadline
from widemargin.places.bucket import Bucket, rows_of_bucket
from widemargin.places.cell_buckets import place_of
from widemargin.places.cell_shard import Piece
from widemargin.places.cells_of_shards import CutShards, options_of_buckets
from widemargin.places.sorted_shards import SortedShards
from widemargin.places.span_of_shards import Statement
from widemargin.problem import Problem, class_scores, winners


@dataclass(frozen=True)
class GridOfCells:
    """What is to be scored in cells.

    Attributes
    ----------
    stated : Statement
        The problems; kernel and C are others for each machine.
    kernels : tuple of Kernel
        Of all widths.
    Cs : ndarray
        Values of C, ascending.
    counts, held : ndarray of shape (n_kinds, n_folds)
        How often a fold trains on rows of a kind, and holds them out.
    """

    stated: Statement
    kernels: tuple[Kernel, ...]
    Cs: Vector
    counts: Matrix
    held: Matrix


@dataclass(frozen=True)
class CellScores:
    """Weights of rows that are held out.

    Attributes
    ----------
    right, total : ndarray of shape (n_widths, n_Cs, n_folds)
        Of those that are answered right, and of all that were answered.
    cell_right, cell_total : ndarray of shape (n_widths, n_Cs, n_cells)
        The same for each cell, in all folds.
    """

    right: NDArray[np.float64]
    total: NDArray[np.float64]
    cell_right: NDArray[np.float64]
    cell_total: NDArray[np.float64]

    @classmethod
    def nothing(cls, grid: GridOfCells, n_cells: int) -> CellScores:
        """Return zeros."""
        shape = (len(grid.kernels), len(grid.Cs))
        folds, cells = (*shape, grid.held.shape[1]), (*shape, n_cells)
        return cls(*(np.zeros(each) for each in (folds, folds, cells, cells)))

    def add(self, cells: IndexArray, other: CellScores) -> None:
        """Add what is known of some of the cells."""
        for name in ("right", "total"):
            getattr(self, name)[:] += getattr(other, name)
            getattr(self, f"cell_{name}")[:, :, cells] += getattr(other, f"cell_{name}")


def score_bucket(
    pieces: Sequence[Piece], bucket: Bucket, grid: GridOfCells, deadline: Deadline
) -> CellScores:
    """Return the weights of the rows of a bucket.

    Parameters
    ----------
    pieces : sequence of Piece
        What the shards have handed out, in their order.
    bucket : Bucket
        The cells.
    grid : GridOfCells
        What is to be scored.
    deadline : Deadline
        When to end.
    """
    rows = Piece.of(pieces)
    problem, members, index = rows_of_bucket(rows, bucket, grid.stated)
    kind = (rows.apart[index] - rows.code[index]) // len(grid.stated.table)
    cell = np.full(problem.n, -1, dtype=np.intp)
    for c, inside in enumerate(members.inside):
        cell[inside] = c
    everything = np.arange(problem.n)
    problem = replace(problem, number=everything, place=everything)
    folds = Folds.of_kinds(kind, grid.counts, grid.held, cell >= 0)
    found = CellScores.nothing(grid, len(bucket.cells))
    for w, kernel in enumerate(grid.kernels):
        until = deadline.part(1.0 / (len(grid.kernels) - w))
        options = replace(bucket.options, deadline=until)
        own = replace(problem, kernel=kernel)
        for k, c, known, right in _answered(own, members, folds, grid.Cs, options):
            weight = problem.weight[known] / grid.stated.factor[problem.code[known]]
            weight = weight * grid.held[kind[known], k]
            found.right[w, c, k] += weight @ right
            found.total[w, c, k] += weight.sum()
            np.add.at(found.cell_right[w, c], cell[known], weight * right)
            np.add.at(found.cell_total[w, c], cell[known], weight)
        if deadline.interrupted:
            break
    return found


def _answered(
    problem: Problem, members: Members, folds: Folds, Cs: Vector, options: CellOptions
) -> Iterator[tuple[int, int, IndexArray, NDArray[np.bool_]]]:
    """Yield fold, C, rows that were answered while they were held out, and which of them right."""
    n_classes = len(problem.table)
    parts = list(batches(problem, len(Cs), folds, options.memory))
    for b, (chosen_folds, chosen_Cs) in enumerate(parts):
        there = [k for k in chosen_folds if len(folds.test[k])]
        inner = HeldOutOptions(
            options.tol,
            options.memory,
            options.threads,
            options.deadline.part(1.0 / (len(parts) - b)),
            options.matrix_rows,
        )
        for held in held_out_values(problem, members, Cs[chosen_Cs], folds, there, inner):
            for c, number in enumerate(chosen_Cs):
                values: Any = held.values[:, c]
                # There may have been no time for some cells.
                known = np.isfinite(values).all(axis=1)
                values = values[known]
                if problem.partial:
                    values = class_scores(values, n_classes)
                values = values[:, 0] if values.shape[1] == 1 else values
                rows = held.rows[known]
                answer = winners(np.arange(n_classes), values)
                yield held.fold, number, rows, answer == problem.code[rows]


def scores_of_cells(
    shards: SortedShards, cells: CutShards, grid: GridOfCells, options: CellOptions
) -> Iterator[tuple[float, IndexArray, CellScores]]:
    """Yield the share of the rows, the cells and the weights of each bucket, until time is over.

    Parameters
    ----------
    shards : SortedShards
        The rows, equal ones of different folds apart.
    cells : CutShards
        In cells.
    grid : GridOfCells
        What is to be scored.
    options : CellOptions
        How.
    """
    place = place_of(shards, cells.assigned, cells.depth, grid, score_bucket)
    n_cells = cells.partition.n_cells
    everywhere = AllCells(n_cells, None, [])
    inner = replace(options_of_buckets(options), **place.limits(options))
    order = fitting_order(cells.sizes.tolist(), options.deadline)
    buckets = [
        Bucket(np.sort(part), cells.partition.centers[np.sort(part)], everywhere, inner)
        for part in place.parts(order, cells.sizes)
    ]
    place.begin(buckets, n_cells)
    waiting = list(range(len(buckets)))
    try:
        while waiting:
            before = len(waiting)
            for number, found in place.fitted(tuple(waiting), options.deadline):
                waiting.remove(number)
                own = buckets[number].cells
                yield float(cells.sizes[own].sum() / cells.sizes.sum()), own, found
            if options.deadline.passed or len(waiting) == before:
                return
    finally:
        place.end()
