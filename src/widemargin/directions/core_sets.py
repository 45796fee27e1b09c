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
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Matrix
from widemargin.balls import CoreOptions, CoreSet, CoreState, Directions, MinimumBall
from widemargin.balls.minimum import MinimumState
from widemargin.directions.on_rows import (
    Machine,
    OnRows,
    orthonormal,
    shortened,
    stacked,
    unrelated_to,
)
from widemargin.directions.rounds import Direction
from widemargin.expansion import Expansion
from widemargin.loop import Deadline, Limits, Result, run
from widemargin.problem import Problem

# Share of ‖Φβ‖² that must be left without the earlier directions for it to be a direction.
_NOTHING_LEFT = 1e-12
# What rounding may make of a squared norm, over the sizes of coefficients and values.
_ROUNDING = 32 * float(np.finfo(np.float64).eps)


@dataclass
class CoreSetFinder:
    """Directions from core sets.

    Attributes
    ----------
    problem : Problem
        The rows.
    constraint : {"orthogonal", "uncorrelated"}
        What directions have to do with each other.
    epsilon : float
        ε of the ball.
    options : CoreOptions
        How core sets grow.
    inner : {"exact", "sor"}
        How the ball of a core set is found.
    """

    problem: Problem
    constraint: str
    epsilon: float
    options: CoreOptions
    inner: str = "exact"
    scope: ClassVar[str] = "full"
    _n_rounds: int = 0

    def find(
        self, problems: Sequence[int], earlier: list[list[OnRows]], deadline: Deadline
    ) -> list[Direction[OnRows]]:
        """Return the best direction of each problem."""
        weight = self.problem.weight
        against = [
            orthonormal(unrelated_to(found, weight, self.constraint, self._applied))
            for found in earlier
        ]
        options = replace(
            self.options,
            deadline=deadline,
            directions=self._centres_avoid(against),
            # Other samples for every round.
            seed=self.options.seed + self._n_rounds,
        )
        self._n_rounds += 1
        method = MinimumBall(self.epsilon, self.epsilon, self.inner)
        solver = CoreSet(self.problem.columns(list(problems)), method, options)
        limits = Limits(options.max_iter, deadline, options.patience)
        result = run(solver, limits, options.report)
        return self._directions(solver, result, problems, against)

    def _directions(
        self,
        solver: CoreSet[MinimumState],
        result: Result[CoreState[MinimumState]],
        problems: Sequence[int],
        against: list[list[OnRows]],
    ) -> list[Direction[OnRows]]:
        """Return the centres as unit directions."""
        machines, n = solver.machines(result.state), self.problem.n
        index, beta = machines.index, machines.expansion.coef
        sums = self._values(index, beta)
        primal, dual = solver.objectives(result.state)
        found = []
        for i, p in enumerate(problems):
            coef = np.zeros(n)
            coef[index] = beta[:, i]
            alone = OnRows(coef, sums[:, i])
            function = shortened(alone.minus(against[i]), self.problem, self._applied)
            length = float(np.abs(coef).sum() + np.abs(function.coef - coef).sum())
            # Once more for the last digits.
            function = function.minus(against[i]).minus(against[i])
            lost = _ROUNDING * length * float(np.abs(alone.values).max(initial=0.0))
            if function.norm2 <= max(_NOTHING_LEFT * alone.norm2, lost):
                # The earlier directions are all that there is: the rest is rounding.
                function = function * 0.0
            bias = float(beta[:, i].sum())
            objectives = (float(primal[i]), float(dual[i]))
            direction = Machine(function, bias, objectives, result.stop).direction(self.problem, p)
            found.append(replace(direction, n_vectors=int(np.count_nonzero(beta[:, i]))))
        n_kernel = result.certificate.n_kernel + n * len(index)
        n_passes = result.certificate.n_passes + 1
        return [replace(found[0], n_kernel=n_kernel, n_passes=n_passes), *found[1:]]

    def _centres_avoid(self, against: list[list[OnRows]]) -> Directions | None:
        """Return what the centres must be orthogonal to."""
        most = max(len(functions) for functions in against)
        if not most:
            return None
        # Where one problem has fewer than another, zeros ask nothing of it.
        projections = np.zeros((len(against), self.problem.n, most))
        for i, functions in enumerate(against):
            projections[i, :, : len(functions)] = stacked(functions, self.problem.n)[1]
        return Directions(projections)

    def _values(self, index: NDArray[np.intp], coef: Matrix) -> Matrix:
        """Return Σ_j coef_j k(x_j, x) on all rows."""
        rows = self.problem.rows
        return Expansion(self.problem.kernel, rows.take(index), coef).values(rows)

    def _applied(self, coef: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return K a: kernel values of every row with every row, never kept."""
        index = np.flatnonzero(coef)
        return self._values(index, coef[index, None])[:, 0]
