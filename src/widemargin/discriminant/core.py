"""MMDA by core sets: MMDA-CVM.

Tsang, Kocsor and Kwok, "Large-scale maximum margin discriminant analysis using core vector
machines".

The next direction is the centre of the smallest ball around the rows as points, the centre being
orthogonal to the earlier directions (19). Algorithm 1 grows a core set for it, by the furthest row
of all or of a random sample, until no row lies outside (1 + ε) times the radius; Algorithm 3 finds
the ball of a core set (``balls``). R² is then within (1 + ε)² of the optimum (Theorem 2), and the
direction has few vectors.

The earlier directions enter through p_i = Uᵀφ(x_i), one number a row and direction. They are
computed once, when a direction is found, and kept: a pass over the rows for the next direction
needs kernel values with the vectors of its own core set only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from widemargin.balls import CoreSet, CoreState, MinimumBall, Points, multipliers
from widemargin.balls.minimum import MinimumState
from widemargin.deadline import Deadline
from widemargin.discriminant.directions import Direction
from widemargin.discriminant.kernel_matrix import (
    Machine,
    OnRows,
    as_direction,
    orthonormal,
    shortened,
    stacked,
    unrelated_to,
)
from widemargin.loop import Limits, Result, run
from widemargin.machines import Machines
from widemargin.progress import Report

Matrix = NDArray[np.float64]

# Share of the memory budget for the matrix of kernel values among core rows.
_MATRIX_SHARE = 0.7
# Share of ‖Φβ‖² that must be left without the earlier directions for it to be a direction.
_NOTHING_LEFT = 1e-12


class Core:
    """Directions from core sets.

    Parameters
    ----------
    points : Points
        The rows.
    constraint : {"orthogonal", "uncorrelated"}
        What directions have to do with each other.
    epsilon : float
        ε of the ball.
    growth : {"one", "batch"}
        How a core set grows; see ``balls``.
    sample_size : int or None
        Rows that are drawn to find a far one; None looks at all.
    max_iter : int
        Steps of a core set at the most.
    memory : int
        Budget in bytes.
    rng : numpy.random.Generator
        For samples.
    threads : int
        Problems that are solved at a time.
    report : callable or None
        Told of each step.
    """

    scope = "full"

    def __init__(
        self,
        points: Points,
        *,
        constraint: str,
        epsilon: float,
        growth: str,
        sample_size: int | None,
        max_iter: int,
        memory: int,
        rng: np.random.Generator,
        threads: int,
        report: Report | None,
    ) -> None:
        self.points = points
        self.constraint = constraint
        self.epsilon = epsilon
        self.growth = growth
        self.sample_size = sample_size
        self.max_iter = max_iter
        self.capacity = max(2, int(np.sqrt(_MATRIX_SHARE * memory / 8)))
        self.rng = rng
        self.threads = threads
        self.report = report

    def find(
        self, problems: Sequence[int], earlier: list[list[OnRows]], deadline: Deadline
    ) -> list[Direction[OnRows]]:
        """Return the best direction of each problem."""
        against = [
            orthonormal(unrelated_to(some, self.points.weight, self.constraint, self._applied))
            for some in earlier
        ]
        points = self._constrained(problems, against)
        solver = CoreSet(
            points,
            MinimumBall(self.epsilon, self.epsilon),
            growth=self.growth,
            sample_size=self.sample_size,
            tol=None,
            capacity=self.capacity,
            capacity_name="memory",
            dtype=np.float64,
            rng=self.rng,
            threads=self.threads,
        )
        # The gap is no measure of a ball's progress, so it must not end it.
        limits = Limits(self.max_iter, deadline=deadline, patience=self.max_iter)
        result = run(solver, limits, self.report)
        return self._directions(solver, result, problems, against)

    def _directions(
        self,
        solver: CoreSet[MinimumState],
        result: Result[CoreState[MinimumState]],
        problems: Sequence[int],
        against: list[list[OnRows]],
    ) -> list[Direction[OnRows]]:
        """Return the centres as unit directions."""
        points = solver.points
        _, index, beta = solver.machines(result.state)
        gamma = multipliers(points, index, beta)
        own = self._values(index, beta)
        primal, dual = solver.objectives(result.state)
        found = []
        for i, p in enumerate(problems):
            coef = np.zeros(points.n)
            coef[index] = beta[:, i]
            function = OnRows(coef, own[:, i])
            if gamma is not None and against[i]:
                basis, values = stacked(against[i], points.n)
                function = OnRows(coef + basis @ gamma[i], own[:, i] + values @ gamma[i])
            function = shortened(function, points, self._applied)
            # Once more for the last digits.
            function = function.minus(against[i]).minus(against[i])
            if function.norm2 <= _NOTHING_LEFT * OnRows(coef, own[:, i]).norm2:
                # The earlier directions are all that there is: the rest is rounding.
                function = OnRows(0.0 * coef, 0.0 * coef)
            bias = float(beta[:, i].sum())
            machine = Machine(function, bias, float(primal[i]), float(dual[i]), result.converged)
            n_kernel = result.certificate.n_kernel + points.n * len(index)
            direction = as_direction(self.points, p, machine, 0 if i else n_kernel)
            found.append(
                replace(
                    direction,
                    n_vectors=int(np.count_nonzero(beta[:, i])),
                    n_passes=0 if i else result.certificate.n_passes + 1,
                    stopped=result.certificate.stopped,
                )
            )
        return found

    def _constrained(self, problems: Sequence[int], against: list[list[OnRows]]) -> Points:
        """Return the points of some problems, with what their centres must be orthogonal to."""
        points = replace(self.points, table=self.points.table[:, list(problems)])
        most = max(len(functions) for functions in against)
        if not most:
            return points
        # Where one problem has fewer than another, zeros ask nothing of it.
        projections = np.zeros((len(problems), points.n, most))
        for i, functions in enumerate(against):
            for q, function in enumerate(functions):
                projections[i, :, q] = function.values
        return replace(points, projections=projections)

    def _values(self, index: NDArray[np.intp], coef: Matrix) -> Matrix:
        """Return Σ_j coef_j k(x_j, x) on all rows."""
        rows = self.points.rows
        nothing = np.zeros(coef.shape[1])
        machines = Machines(
            self.points.kernel, rows.take(index), coef, nothing, np.float64, rows.vectors_at_a_time
        )
        return np.concatenate(list(rows.scan(machines, width=machines.width)))

    def _applied(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return K a: kernel values of every row with every row, never kept."""
        index = np.flatnonzero(coef)
        return self._values(index, coef[index, None])[:, 0]
