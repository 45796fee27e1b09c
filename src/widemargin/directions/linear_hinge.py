"""Max-margin directions for the linear kernel with the hinge loss and a free bias: (1) of MMDA.

    min  ½‖w‖² + C Σ s max(0, 1 − y (wᵀx + b)),     Uᵀw = 0.

*Deflation* takes the earlier directions U out of the rows, x' = x − U(Uᵀx), (2). *Direct* leaves
the rows as they are, with γ beside α, (7). Both work on the rows themselves: a kernel value is a
product of two rows, made when it is needed (``qp.hinge_dual``).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.directions.linear import TOO_LARGE, normals
from widemargin.directions.rounds import Direction, hinge_machine, how_it_ended, unit_direction
from widemargin.loop import Deadline
from widemargin.problem import Problem
from widemargin.threads import ordered_map

# The largest squared length of a row that leaves room for products of it.
_MOST_SQUARED = 1e290


class LinearHingeFinder:
    """Directions in the input space, with the hinge loss.

    Parameters
    ----------
    problem : Problem
        The rows; their kernel is the linear one.
    method : {"direct", "deflation"}
        How earlier directions are kept out.
    constraint : {"orthogonal", "uncorrelated"}
        What directions have to do with each other.
    tol : float
        Relative duality gap.
    memory : int
        Budget in bytes; the rows must fit into it twice, dense.
    """

    scope = "full"

    def __init__(
        self, problem: Problem, method: str, constraint: str, tol: float, memory: int
    ) -> None:
        n, d = problem.rows.shape
        if 2 * 8 * n * d > memory:
            raise ValueError(
                f"loss='hinge' keeps {n:,} × {d:,} values twice, which takes "
                f"{16 * n * d / 1e9:.1f} GB; raise memory, or use loss='squared_hinge', which "
                "reads rows block by block."
            )
        self.problem = problem
        self.method = method
        self.constraint = constraint
        self.tol = tol
        self.X: Matrix = problem.rows.take(np.arange(n)).astype(np.float64)
        with np.errstate(over="ignore"):
            longest = float(np.einsum("ij,ij->i", self.X, self.X).max())
        if not longest <= _MOST_SQUARED:
            raise ValueError(TOO_LARGE)

    def find(
        self, problems: Sequence[int], earlier: list[list[Vector]], deadline: Deadline
    ) -> list[Direction[Vector]]:
        """Return the best direction of each problem."""

        def find_one(i: int) -> Direction[Vector]:
            units = normals(self.problem, earlier[i], self.constraint)
            return self._find(problems[i], units, deadline)

        every, threads = range(len(problems)), self.problem.threads
        return list(ordered_map(find_one, every, threads, deadline.interrupt))

    def _find(self, p: int, units: Matrix, deadline: Deadline) -> Direction[Vector]:
        sign, upper = self.problem.sign(p), self.problem.C[p] * self.problem.weight
        projection = self.X @ units
        rows, ways = self.X, {"factored": True, "projection": projection}
        if self.method == "deflation":
            rows, ways = self.X - projection @ units.T, {"factored": True}
        solved = hinge_machine(rows, sign, upper, self.tol, deadline, first=not units.size, **ways)
        w = self.X.T @ (sign * solved.alpha)
        # Once more for the last digits.
        for _ in range(2):
            w = w - units @ (units.T @ w)
        bias, norm = solved.intercept, float(np.linalg.norm(w))
        objectives = (solved.primal, solved.dual)
        stop = how_it_ended(solved.gap, 2 * max(self.tol, 1e-9), deadline)
        return unit_direction(
            self.problem, p, w, norm, bias, self.X @ w + bias, objectives, stop=stop
        )
