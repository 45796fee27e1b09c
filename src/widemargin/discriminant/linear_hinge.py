"""Max-margin directions for the linear kernel with the hinge loss and a free bias: (1) of MMDA.

    min  ½‖w‖² + C Σ s max(0, 1 − y (wᵀx + b)),     Uᵀw = 0.

*Deflation* takes the earlier directions U out of the rows, x' = x − U(Uᵀx), (2), and hands them to
scikit-learn's `SVC`, whose answer is refined in float64. *Direct* leaves the rows as they are, with
γ beside α, (7). Both work on the rows themselves: a kernel value is a product of two rows, made
when it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from widemargin.balls import Points
from widemargin.deadline import Deadline
from widemargin.discriminant.deflation import rough_alpha, rough_is_enough
from widemargin.discriminant.directions import Direction, error_of, varies
from widemargin.discriminant.linear import normals
from widemargin.qp.hinge import HingeDual, polished, solve_hinge_dual

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


class LinearHinge:
    """Directions in the input space, with the hinge loss.

    Parameters
    ----------
    points : Points
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
        self, points: Points, *, method: str, constraint: str, tol: float, memory: int
    ) -> None:
        n, d = points.rows.shape
        if 2 * 8 * n * d > memory:
            raise ValueError(
                f"loss='hinge' keeps {n:,} × {d:,} values twice, which takes "
                f"{16 * n * d / 1e9:.1f} GB; raise memory, or use loss='squared_hinge', which "
                "reads rows block by block."
            )
        self.points = points
        self.method = method
        self.constraint = constraint
        self.tol = tol
        self.X: Matrix = points.rows.take(np.arange(n)).astype(np.float64)

    def find(
        self, problems: Sequence[int], earlier: list[list[Vector]], deadline: Deadline
    ) -> list[Direction[Vector]]:
        """Return the best direction of each problem."""
        with rough_is_enough():
            return [
                self._find(p, normals(self.points, some, self.constraint))
                for p, some in zip(problems, earlier, strict=True)
            ]

    def _find(self, problem: int, units: Matrix) -> Direction[Vector]:
        points, sign = self.points, self.points.sign(problem, slice(None))
        upper = points.C * points.weight
        projection = self.X @ units
        solve = self._deflated if self.method == "deflation" else self._direct
        solved = solve(sign, upper, projection, units)
        w = self.X.T @ (sign * solved.alpha)
        # Once more for the last digits.
        for _ in range(2):
            w = w - units @ (units.T @ w)
        norm = float(np.linalg.norm(w))
        scale = 1.0 / norm if norm > 0 else 0.0
        converged = solved.gap <= 2 * max(self.tol, 1e-9)
        return Direction(
            problem,
            w * scale,
            norm,
            solved.intercept * scale,
            error_of(points, problem, self.X @ w + solved.intercept),
            solved.primal,
            solved.dual,
            n_vectors=1,
            varies=varies(self.X @ w),
            converged=converged,
            stopped="solved" if converged else "no more digits in the quadratic program",
        )

    def _deflated(
        self, sign: Vector, upper: Vector, projection: Matrix, units: Matrix
    ) -> HingeDual:
        rows = self.X - projection @ units.T
        alpha = rough_alpha("linear", rows, sign, self.points)
        return polished(rows, sign, upper, alpha, factored=True)

    def _direct(self, sign: Vector, upper: Vector, projection: Matrix, units: Matrix) -> HingeDual:
        tol = max(1e-12, 0.01 * self.tol)
        return solve_hinge_dual(self.X, sign, upper, projection=projection, tol=tol, factored=True)
