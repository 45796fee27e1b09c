"""What the machines of enclosing balls share: the core set, and warm starts."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.balls import CoreSet, Points, rounding
from widemargin.balls.core import BallMethod
from widemargin.classifier import KernelClassifier
from widemargin.loop import Limits, Result, run
from widemargin.parameters import check_choice, check_count, check_positive
from widemargin.progress import Report
from widemargin.rows import parse_memory
from widemargin.rows.base import IndexArray

# Share of the memory budget that the matrix of kernel values may take; blocks of rows and the
# values of working sets need the rest.
_MATRIX_SHARE = 0.7


@dataclass(frozen=True)
class _Start:
    """Rows and dual variables of an earlier fit."""

    rows: IndexArray
    alpha: NDArray[np.float64]


class BallClassifier(KernelClassifier):
    """Base of the classifiers that find a ball: a subclass says which one."""

    stopping: str
    epsilon: float
    max_vectors: Any

    @abstractmethod
    def _ball(self) -> BallMethod[Any]:
        """Return how a ball is found on the core rows."""

    def _growth(self) -> tuple[str, int | None]:
        """Return how the core set grows, and from how large a sample."""
        return "batch", None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("stopping", self.stopping, ("gap", "ball"))
        check_positive("epsilon", self.epsilon)
        self._check_max_vectors()

    def _check_max_vectors(self) -> None:
        check_count("max_vectors", self.max_vectors, none=True, least=2)

    def _fit_points(self, points: Points, threads: int, report: Report) -> Result[Any]:
        limits = Limits(self.max_iter, self.max_time)
        return self._fit_ball(points, threads, report, self.max_vectors, limits)

    def _fit_ball(
        self,
        points: Points,
        threads: int,
        report: Report,
        max_vectors: int | None,
        limits: Limits,
    ) -> Result[Any]:
        """Find the ball by a core set, and copy the machine out."""
        solver = self._solver(points, self._warm_start(points), threads, max_vectors)
        result = run(solver, limits, report)
        machines, core, beta = solver.machines(result.state)
        self._keep_machine(points, machines.vectors, core, beta, machines.intercept)
        return result

    def _solver(
        self, points: Points, start: _Start | None, threads: int, max_vectors: int | None
    ) -> CoreSet[Any]:
        growth, sample_size = self._growth()
        dtype = self._value_dtype(points)
        budget = _MATRIX_SHARE * parse_memory(self.memory) / np.dtype(dtype).itemsize
        capacity, name = max(2, int(np.sqrt(budget))), f"memory={self.memory!r}"
        if max_vectors is not None and max_vectors < capacity:
            capacity, name = max_vectors, f"max_vectors={max_vectors}"
        least = len(self.classes_)
        if capacity < least:
            raise ValueError(
                f"{name} leaves room for {capacity} vectors, but {least} classes need one each; "
                "raise it."
            )
        return CoreSet(
            points,
            self._ball(),
            growth=growth,
            sample_size=sample_size,
            tol=self.tol if self.stopping == "gap" else None,
            capacity=capacity,
            capacity_name=name,
            dtype=dtype,
            rng=self._rng(),
            threads=threads,
            first=None if start is None else start.rows,
            first_alpha=None if start is None else start.alpha,
        )

    def _value_dtype(self, points: Points) -> DTypeLike:
        """Return float32 if its rounding cannot disturb a gap of `tol`, else float64.

        With α = 0 the primal is C Σs, which bounds the dual optimum and with it
        ‖α‖ ≤ 2C √(max s · Σs), and so what rounding can do to the objectives (`balls.rounding`).
        """
        if self.stopping != "gap" or points.kernel.constant_diagonal is None:
            return np.float64
        norm = 2.0 * self.C * float(np.sqrt(points.weight.max() * points.weight.sum()))
        return np.float32 if rounding(np.float32, points, norm) <= self.tol / 4 else np.float64

    def _warm_start(self, points: Points) -> _Start | None:
        """Return the earlier solution if it belongs to these rows and classes."""
        place = self._earlier_rows(points)
        if place is None:
            return None
        alpha = self.dual_coef_ * points.table[points.code[place]].T
        return _Start(place, np.maximum(alpha, 0.0))
