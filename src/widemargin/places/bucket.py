"""Cells that are fitted together, from the rows that shards have handed out for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.arrays import IndexArray, Matrix
from widemargin.cells.cell_engine import AllCells, CellOptions, CellsFit
from widemargin.cells.members import Members, with_neighbours
from widemargin.cells.paged_array import paged_array
from widemargin.cells.partition import Partition, grouped
from widemargin.expansion import Fitted
from widemargin.loop import Deadline
from widemargin.places.cell_shard import Piece
from widemargin.places.span_of_shards import Statement
from widemargin.problem import Problem
from widemargin.threads import single_threaded_blas


@dataclass(frozen=True)
class Bucket:
    """Cells that are fitted together.

    Attributes
    ----------
    cells : ndarray of int of shape (k,)
        Their numbers, ascending.
    centers : ndarray of shape (k, n_features)
        Their centres.
    everywhere : AllCells
        What all cells have decided.
    options : CellOptions
        How; where cells have kernels and values of C of their own, these are those of the cells
        of the bucket.
    """

    cells: IndexArray
    centers: Matrix
    everywhere: AllCells
    options: CellOptions


Work = Callable[[Sequence[Piece], Bucket, Any, Deadline], Any]
"""What is done with a bucket, from its pieces, and with what is to be known beside them."""


@dataclass(frozen=True)
class FittedBucket:
    """The machines of a bucket.

    Attributes
    ----------
    fits : dict
        Machines by the numbers of their cells, as many as there was time for; their `index` holds
        numbers of rows among all.
    largest : int
        Rows that train in a cell, at the most.
    """

    fits: dict[int, Fitted]
    largest: int


def fit_bucket(
    pieces: Sequence[Piece], bucket: Bucket, stated: Statement, deadline: Deadline
) -> FittedBucket:
    """Return the machines of the cells of a bucket, as many as there is time for.

    Parameters
    ----------
    pieces : sequence of Piece
        What the shards have handed out, in their order.
    bucket : Bucket
        The cells.
    stated : Statement
        What is to be fitted.
    deadline : Deadline
        When to end.
    """
    options = replace(bucket.options, deadline=deadline)
    problem, members, _ = rows_of_bucket(Piece.of(pieces), bucket, stated)
    solver = CellsFit(problem, members, options, bucket.everywhere)
    state = solver.start()
    while len(state.fits) < len(bucket.cells) and not deadline.passed:
        state = solver.step(state)
    found = _in_one_array([_with_numbers(fit, problem) for fit in state.fits])
    fits = {int(bucket.cells[cell]): fit for cell, fit in zip(solver.order, found, strict=False)}
    return FittedBucket(fits, max(solver.sizes))


def _in_one_array(fits: Sequence[Fitted]) -> list[Fitted]:
    """Return machines whose vectors are parts of one array: as a whole, its memory goes back."""
    if len({fit.vectors.dtype for fit in fits}) != 1:
        return list(fits)
    ends = np.cumsum([len(fit.vectors) for fit in fits])
    first = fits[0].vectors
    vectors = paged_array((ends[-1], first.shape[1]), first.dtype)
    np.concatenate([fit.vectors for fit in fits], out=vectors)
    return [
        replace(fit, vectors=vectors[end - len(fit.vectors) : end])
        for fit, end in zip(fits, ends, strict=True)
    ]


def done_there(
    pieces: Sequence[Piece], bucket: Bucket, stated: Any, seconds: float | None, work: Work
) -> Any:
    """Do the work of a bucket on a worker, for so many seconds."""
    with single_threaded_blas():
        return work(pieces, bucket, stated, Deadline.after(seconds))


def rows_of_bucket(
    rows: Piece, bucket: Bucket, stated: Statement
) -> tuple[Problem, Members, IndexArray]:
    """Return the problem of the rows of a bucket, and which of them train in which cell.

    Also, which of the rows that were handed out those of the problem are.
    """
    options, cells = bucket.options, bucket.cells
    distinct = rows.distinct(options.memory, options.threads)
    weight = distinct.weight * stated.factor[distinct.code]
    number = rows.number[distinct.index]
    problem = Problem.of(
        distinct.rows, stated.kernel, distinct.code, stated.table, weight, stated.C, number
    ).with_signs(stated.table)
    # Those that train in no cell come behind all cells.
    cell, second = (
        np.where(each < 0, len(cells), np.searchsorted(cells, each))
        for each in (rows.cell[distinct.index], rows.second[distinct.index])
    )
    order, first = grouped(cell, len(cells) + 1)
    inside = [order[first[c] : first[c + 1]] for c in range(len(cells))]
    train = inside
    if options.overlap > 0 and bucket.everywhere.n_cells > 1:
        train = with_neighbours(second, rows.depth[distinct.index], inside, options.overlap)
    members = Members(Partition(bucket.centers), inside, train, np.arange(len(cells)))
    return problem, members, distinct.index


def _with_numbers(fit: Fitted, problem: Problem) -> Fitted:
    """Return a machine that knows its vectors by their numbers among all rows."""
    return fit if fit.index is None else replace(fit, index=problem.number[fit.index])
