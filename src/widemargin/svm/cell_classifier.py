"""What a classifier with cells does: cut, fit a machine in each, copy them out, and answer."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.balls import Points
from widemargin.cells import CellMachines, Partition
from widemargin.deadline import NEVER, Deadline
from widemargin.loop import Limits, Result, run
from widemargin.progress import Report
from widemargin.rows.base import BlockRows
from widemargin.svm.ball import BallClassifier
from widemargin.svm.cell_machine import CellMachine, Joined
from widemargin.svm.in_cells import InCells, cut_by_size, given_partition
from widemargin.threads import n_threads

# Vectors of each problem in a cell, at the least, where there is a budget.
_VECTORS_OF_A_CELL = 2


class CellClassifier(BallClassifier):
    """Base of a classifier that may have cells: a subclass says which machine is in a large one."""

    overlap: float
    blend: float
    engine_: str
    # Widths and values of C of the cells, where `MarginClassifierCV` chose them.
    _cell_params: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    @abstractmethod
    def _whole(
        self,
        points: Points,
        limit: int | None,
        tol: float | None = None,
        deadline: Deadline = NEVER,
        threads: int = 1,
    ) -> CellMachine:
        """Return the machine of points that are not cut further."""

    def _fit_cells(
        self,
        points: Points,
        cells: Any,
        limit: int | None,
        threads: int,
        report: Report,
        deadline: Deadline,
    ) -> Result[Any]:
        """Fit a machine in each cell, and copy them out."""
        cut = self._cut(points, cells, threads, deadline)
        own = None
        if self._cell_params is not None:
            # Chosen by cross-validation for each of the cells, all of which have rows.
            self.cell_gamma_, self.cell_C_ = self._cell_params
            pairs = list(zip(self.cell_gamma_, self.cell_C_, strict=True))
            points_of = {
                (gamma, C): replace(points, kernel=self._kernel(gamma), C=float(C))
                for gamma, C in set(pairs)
            }
            own = [points_of[pair] for pair in pairs]
        # What float32 does to the objectives depends on C, of which there may be several.
        dtype = self._value_dtype(points) if own is None else np.float64
        whole = partial(self._whole, deadline=deadline)
        solver = cut.solver(self.tol, dtype, limit, whole, threads, own, deadline)
        limits = Limits(self.max_iter, deadline=deadline, patience=self.max_iter)
        result = run(solver, limits, report)
        self._keep_cells(points, cut, solver.machines(result.state))
        return result

    def _cut(self, points: Points, cells: Any, threads: int, deadline: Deadline) -> InCells:
        """Return the points in cells of a size, or with given centres."""
        if not np.iterable(cells):
            size = int(cells)
            limit = self._vector_limit()
            if limit is not None:
                # Every cell needs some vectors: a small budget is for few cells.
                few = _VECTORS_OF_A_CELL * points.n_problems * points.n / limit
                size = max(size, int(few))
            return cut_by_size(points, size, self.overlap, threads, deadline)
        return InCells.cut(points, given_partition(cells, points.rows.shape[1]), self.overlap)

    def _vector_limit(self) -> int | None:
        return None if self.max_vectors == "auto" else int(self.max_vectors)

    def _keep_cells(self, points: Points, cut: InCells, machines: list[CellMachine]) -> None:
        """Set the attributes of the decision function, cell after cell."""
        self.cell_centers_ = cut.partition.centers
        found = Joined.of(machines)
        self.cell_offsets_, self.intercept_ = found.offsets, found.intercept
        rows = [machine.index for machine in machines if machine.index is not None]
        self.support_ = None
        if len(rows) == len(machines):
            self.support_ = points.number[np.concatenate(rows)]
        stored = sparse.issparse(points.rows.block(slice(0, 1)))
        self.support_vectors_ = sparse.csr_array(found.vectors) if stored else found.vectors
        self.dual_coef_ = np.ascontiguousarray(found.coef.T)

    def _decision(self, rows: BlockRows) -> NDArray[np.float64]:
        """Return the decision values of rows, a column for each problem."""
        if self.engine_ != "cells":
            return super()._decision(rows)
        widths = getattr(self, "cell_gamma_", None)
        machines = CellMachines(
            Partition(self.cell_centers_),
            self._kernel(self.gamma_) if widths is None else [self._kernel(g) for g in widths],
            self._dense_vectors(),
            np.ascontiguousarray(self.dual_coef_.T),
            self.cell_offsets_,
            self.intercept_,
            float(self.blend),
        )
        return machines.decision(rows, n_threads(self.n_jobs))
