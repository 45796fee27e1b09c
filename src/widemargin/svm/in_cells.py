"""The machines of all cells: which rows train in which, and which machine each gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.balls import Points
from widemargin.cells import CellsFit, Partition, partition_by_kmeans
from widemargin.cells.partition import Near
from widemargin.deadline import NEVER, Deadline
from widemargin.rows.base import IndexArray
from widemargin.svm.cell_machine import CellMachine, constant_machine, exact_machine

# Rows of a cell up to which its kernel matrix is made; beyond, another engine takes over.
MATRIX_ROWS = 5000

Whole = Callable[[Points, int | None], CellMachine]
"""Returns the machine of any number of points, with so many vectors at the most."""


def given_partition(cells: Any, n_features: int) -> Partition:
    """Return the cells of a user's centres, or say what is wrong with them."""
    try:
        centers = np.array(cells, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"cells={cells!r} must be 'auto', a size, or a table of centres."
        ) from error
    if centers.ndim != 2 or not len(centers) or centers.shape[1] != n_features:
        raise ValueError(
            f"cells must be 'auto', the size of a cell, or centres of {n_features} features, but "
            f"has shape {centers.shape}."
        )
    if not np.isfinite(centers).all():
        raise ValueError("cells holds values that are not finite; give other centres.")
    return Partition(np.unique(centers, axis=0))


@dataclass(frozen=True)
class InCells:
    """Points cut into cells.

    Attributes
    ----------
    points : Points
        All rows, and the problems.
    partition : Partition
        Cells that all have rows.
    members : list of ndarray of int
        Rows that train in each: its own, and those just outside it that `overlap` asks for.
    rows_of_cells : list of ndarray of int or None
        Its own only, where there are others.
    """

    points: Points
    partition: Partition
    members: list[IndexArray]
    rows_of_cells: list[IndexArray] | None = None

    @classmethod
    def cut(cls, points: Points, partition: Partition, overlap: float) -> InCells:
        """Give the rows to the cells; cells without rows go.

        Parameters
        ----------
        points : Points
            All rows.
        partition : Partition
            Cells.
        overlap : float
            Rows from just outside a cell, as a share of its own.
        """
        near = partition.nearest(points.rows, 2 if overlap > 0 else 1)
        own = near.cell[:, 0]
        order = np.argsort(own, kind="stable")
        first = np.searchsorted(own[order], np.arange(partition.n_cells + 1))
        filled = np.flatnonzero(np.diff(first))
        members = [order[first[c] : first[c + 1]] for c in filled]
        if len(filled) < partition.n_cells:
            # Once more: a cell without rows may have been the second nearest of some.
            return cls.cut(points, Partition(partition.centers[filled]), overlap)
        if overlap > 0 and len(filled) > 1:
            wider = _with_neighbours(near, filled, members, overlap)
            return cls(points, partition, wider, members)
        return cls(points, partition, members)

    def own(self) -> list[IndexArray]:
        """Return the rows of each cell without those from outside."""
        return self.rows_of_cells if self.rows_of_cells is not None else self.members

    def solver(
        self,
        tol: float,
        dtype: DTypeLike,
        max_vectors: int | None,
        whole: Whole,
        threads: int,
        own_points: list[Points] | None = None,
        deadline: Deadline = NEVER,
    ) -> CellsFit:
        """Return what fits the machines of all cells.

        Parameters
        ----------
        tol : float
            Relative gap.
        dtype : dtype
            Precision of kernel values.
        max_vectors : int or None
            Vectors of all cells together, at the most.
        whole : callable
            The machine of a cell that is too large for a matrix, or has to have fewer vectors.
        threads : int
            Threads.
        own_points : list of Points, default=None
            The same points for each cell, with a kernel and a C of its own.
        deadline : Deadline, default=NEVER
            When no more cells are begun.
        """
        everywhere = self.points
        total = sum(len(index) for index in self.members)
        least = everywhere.n_problems * len(self.members)
        if max_vectors is not None and max_vectors < least and len(self.members) > 1:
            raise ValueError(
                f"max_vectors={max_vectors} is less than one for each problem in each of "
                f"{len(self.members):,} cells; give {least:,} or more, or larger cells."
            )

        def points_of(cell: int) -> Points:
            return everywhere if own_points is None else own_points[cell]

        def fit(cell: int) -> CellMachine | None:
            points, index = points_of(cell), self.members[cell]
            limit = None
            if max_vectors is not None:
                limit = max(points.n_problems, int(max_vectors * len(index) / total))
            # The only cell is no cell: it gets what would be there without.
            if len(self.members) > 1 and len(index) <= MATRIX_ROWS:
                X = points.rows.take(index)
                exact = exact_machine(points, index, X, tol, dtype, deadline)
                if exact is None or limit is None or exact.n_vectors <= limit:
                    return exact
            machine = whole_machine(points, index, limit, whole)
            if machine.interrupted and len(self.members) > 1:
                # The inner loop has it from the user, who means all cells.
                raise KeyboardInterrupt
            return machine

        def constant(cell: int) -> CellMachine:
            points, index = points_of(cell), self.members[cell]
            return constant_machine(points, index, points.rows.take(index[:1]))

        sizes = [len(index) for index in self.members]
        return CellsFit(sizes, fit, constant, threads, deadline)


def whole_machine(
    points: Points, index: IndexArray, limit: int | None, whole: Whole
) -> CellMachine:
    """Return the machine of a cell by another engine; constants where there is one class only."""
    signs = points.table[points.code[index]]
    mixed = np.abs(signs.sum(axis=0)) < len(index)
    machine = constant_machine(points, index, points.rows.take(index[:1]))
    if not mixed.any():
        return machine
    part = replace(
        points,
        rows=points.rows.subset(index),
        code=points.code[index],
        table=points.table[:, mixed],
        weight=points.weight[index],
        number=points.number[index],
        place=None,
    )
    found = whole(part, limit)
    coef = np.zeros((found.n_vectors, len(mixed)))
    coef[:, mixed] = found.coef
    intercept = machine.intercept.copy()
    intercept[mixed] = found.intercept
    rest = constant_machine(replace(points, table=points.table[:, ~mixed]), index, found.vectors)
    own = None if found.index is None else index[found.index]
    return replace(
        found,
        index=own,
        coef=coef,
        intercept=intercept,
        primal=found.primal + rest.primal,
        dual=found.dual + rest.dual,
        full_dual=None if found.full_dual is None else found.full_dual + rest.dual,
    )


def cut_by_size(
    points: Points, size: int, overlap: float, threads: int, deadline: Deadline = NEVER
) -> InCells:
    """Return the points in cells of about `size` rows, or larger ones where time is short."""
    partition = partition_by_kmeans(points.rows, size, threads, deadline)
    return InCells.cut(points, partition, overlap)


def _with_neighbours(
    near: Near, filled: IndexArray, members: list[IndexArray], overlap: float
) -> list[IndexArray]:
    """Return the rows of each cell with the rows nearest to it from outside."""
    second = near.cell[:, 1]
    # 0 at the edge, and the larger the farther inside another cell.
    inside = near.distance[:, 1] - near.distance[:, 0]
    order = np.lexsort((inside, second))
    first = np.searchsorted(second[order], np.append(filled, filled[-1] + 1))
    last = np.searchsorted(second[order], filled, side="right")
    wider = []
    for c, own in enumerate(members):
        room = min(round(overlap * len(own)), int(last[c] - first[c]))
        guests: NDArray[Any] = order[first[c] : first[c] + room]
        wider.append(np.sort(np.concatenate([own, guests])))
    return wider
