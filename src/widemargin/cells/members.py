"""Which rows train in which cell: its own, and those just outside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray
from widemargin.cells.partition import Partition, grouped
from widemargin.rows import Rows


@dataclass(frozen=True)
class Members:
    """Rows cut into cells.

    Attributes
    ----------
    partition : Partition
        Cells that all have rows.
    inside : list of ndarray of int
        Rows of each cell.
    train : list of ndarray of int
        Rows that train in each: its own, and those just outside it that `overlap` asks for.
    chosen : ndarray of int of shape (n_cells,)
        Which of the cells that there were at first each of them is.
    """

    partition: Partition
    inside: list[IndexArray]
    train: list[IndexArray]
    chosen: IndexArray

    @classmethod
    def of(
        cls,
        rows: Rows,
        partition: Partition,
        overlap: float,
        chosen: IndexArray | None = None,
    ) -> Members:
        """Give the rows to the cells; cells without rows go.

        Parameters
        ----------
        rows : Rows
            All rows.
        partition : Partition
            Cells.
        overlap : float
            Rows from just outside a cell, as a share of its own.
        chosen : ndarray of int of shape (n_cells,), default=None
            Numbers of the cells; None for 0, 1, ...
        """
        numbers = np.arange(partition.n_cells) if chosen is None else chosen
        near = partition.nearest(rows, 2 if overlap > 0 else 1)
        nearest = near.cell[:, 0]
        order, first = grouped(nearest, partition.n_cells)
        filled = np.flatnonzero(np.diff(first))
        inside = [order[first[c] : first[c + 1]] for c in filled]
        if len(filled) < partition.n_cells:
            # Once more: a cell without rows may have been the second nearest of some.
            return cls.of(rows, partition.subset(filled), overlap, numbers[filled])
        train = inside
        if overlap > 0 and len(filled) > 1:
            train = with_neighbours(near.cell[:, 1], near.depth, inside, overlap)
        return cls(partition, inside, train, numbers)


def with_neighbours(
    second: IndexArray, depth: NDArray[np.float64], inside: list[IndexArray], overlap: float
) -> list[IndexArray]:
    """Return the rows of each cell with the rows nearest to it from outside.

    Parameters
    ----------
    second : ndarray of int of shape (n,)
        The second nearest cell of each row; the number of cells for a row that has none.
    depth : ndarray of shape (n,)
        How far inside its own cell it is, as in `Near`.
    inside : list of ndarray of int
        Rows of each cell.
    overlap : float
        Rows from outside, as a share of a cell's own.
    """
    order, first = grouped(second, len(inside) + 1)
    depth = depth[order]
    wider = []
    for c, rows in enumerate(inside):
        outside = slice(first[c], first[c + 1])
        by_depth = np.argsort(depth[outside], kind="stable")[: round(overlap * len(rows))]
        wider.append(np.sort(np.concatenate([rows, order[outside][by_depth]])))
    return wider
