"""Max-margin directions for the linear kernel: Newton's method in the input space.

    min  ½‖w‖² + ½b² + C Σ s max(0, 1 − y (wᵀx + b))²,     Uᵀw = 0.

Here w has as many numbers as a row, so no kernel matrix is needed, and rows of any number are
looked at block by block, dense or CSR (``qp.newton``). All problems take their steps together.

The two methods of MMDA differ in where the earlier directions U (orthonormal) enter. *Deflation*
(section 3.1) takes them out of the rows, x' = x − U(Uᵀx), (2), and solves without a constraint.
*Direct* (section 3.2) leaves the rows as they are and adds multipliers γ to Newton's system,

    [H U; Uᵀ 0] (d, γ) = (−g, 0).

Proposition 3: the answer is the same. ``linear_hinge`` has the machines of MMDA's (1), with a free
bias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.directions.rounds import Direction, class_means, how_it_ended, unit_direction
from widemargin.loop import Deadline, relative_gap
from widemargin.problem import Problem
from widemargin.qp.newton import Features, Newton, Piecewise, Point
from widemargin.rows import Rows, rows_per_block

# Rows of a block at the most.
_MOST_ROWS = 4096

TOO_LARGE = "X has values too large for the linear kernel: their squares overflow; scale X."


class RowFeatures(Features):
    """The rows themselves, with a 1 behind each for the bias."""

    def __init__(self, rows: Rows) -> None:
        n, d = rows.shape
        self.rows, self.shape, self.threads = rows, (n, d + 1), rows.threads
        # A dense block, and what its products take.
        self.chunk = rows_per_block(rows.memory, 3 * 8 * (d + 1), _MOST_ROWS)

    def block(self, where: slice | IndexArray) -> Any:
        """Return some of the rows in float64, dense or CSR."""
        return self.rows.block(where).astype(np.float64, copy=False)

    def times(self, block: Any, X: Matrix) -> Matrix:
        """Return the scores wᵀx + b of a block, a column for each row (w, b) of X."""
        scores: Matrix = block @ X[:, :-1].T + X[:, -1]
        return scores

    def pulled(self, block: Any, weight: Matrix) -> Matrix:
        """Return Σ weight (x, 1) over a block."""
        # Transposed, for a sparse matrix must stand on the left.
        sums = (block.T @ weight.T).T
        return _checked(np.column_stack([sums, weight.sum(axis=1)]))

    def curved(self, block: Any, weight: Vector) -> Matrix:
        """Return Σ weight (x, 1)(x, 1)ᵀ over a block."""
        rows = np.empty((block.shape[0], self.shape[1]))
        rows[:, :-1] = block.toarray() if sparse.issparse(block) else block
        rows[:, -1] = 1.0
        return _checked(super().curved(rows, weight))


def _checked(sums: Matrix) -> Matrix:
    """Return sums of rows or of their squares, or raise if they are no numbers."""
    if not np.isfinite(sums).all():
        raise ValueError(TOO_LARGE)
    return sums


@dataclass(frozen=True)
class LinearFinder:
    """Directions in the input space.

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
    max_iter : int, default=10000
        Steps at the most.
    fit_intercept : bool, default=True
        Whether machines have a bias.
    form : bool, default=None
        Whether Newton's matrix is formed, or conjugate gradients do without; None decides by the
        number of features.
    """

    problem: Problem
    method: str
    constraint: str
    tol: float
    max_iter: int = 10_000
    fit_intercept: bool = True
    form: bool | None = None
    scope: ClassVar[str] = "full"

    def find(
        self, problems: Sequence[int], earlier: list[list[Vector]], deadline: Deadline
    ) -> list[Direction[Vector]]:
        """Return the best direction of each problem."""
        features = RowFeatures(self.problem.rows)
        with np.errstate(over="ignore", invalid="ignore"):
            stated = [self._stated(p, found) for p, found in zip(problems, earlier, strict=True)]
            zero = (np.zeros(features.shape[1]), np.zeros(features.shape[0]))
            newton = Newton(features, stated, [zero] * len(stated), form=self.form)
            points, duals = self._solved(newton, stated, deadline, first=not any(earlier))
        found = []
        for p, point, dual in zip(problems, points, duals, strict=True):
            w, bias = point.x[:-1], float(point.x[-1])
            norm, objectives = float(np.linalg.norm(w)), (point.value, dual)
            stop = how_it_ended(relative_gap(*objectives), self.tol, deadline)
            found.append(
                unit_direction(self.problem, p, w, norm, bias, point.scores, objectives, stop=stop)
            )
        return [replace(found[0], n_passes=newton.n_passes), *found[1:]]

    def _solved(
        self, newton: Newton, problems: list[Piecewise], deadline: Deadline, *, first: bool
    ) -> tuple[list[Point], list[float]]:
        """Take steps in all problems; return where they end, and lower bounds."""
        points, duals = newton.points, self._bounds(newton, problems)
        with deadline.ends_on_interrupt():
            for _ in range(1, self.max_iter):
                if newton.done or deadline.passed:
                    break
                newton.step()
                points, duals = newton.points, self._bounds(newton, problems)
        for p, (problem, point) in enumerate(zip(problems, points, strict=True)):
            if first and not point.x.any() and relative_gap(point.value, duals[p]) > self.tol:
                points[p] = _at_class_means(newton.features, problem, point)
        return points, duals

    def _bounds(self, newton: Newton, problems: list[Piecewise]) -> list[float]:
        """Return lower bounds of all problems, and let those rest that are solved."""
        pairs = list(zip(problems, newton.points, strict=True))
        weight = np.array([problem.pull(point.scores) for problem, point in pairs])
        pulls = newton.features.sums(weight)
        newton.n_passes += 1
        duals = []
        for p, ((problem, point), pull) in enumerate(zip(pairs, pulls, strict=True)):
            duals.append(problem.squared_bound(point.scores, problem.tangential(pull)))
            if relative_gap(point.value, duals[p]) <= self.tol:
                newton.finish(p)
        return duals

    def _stated(self, p: int, earlier: list[Vector]) -> Piecewise:
        """Return the problem of one class against the rest, without the earlier directions."""
        problem, size = self.problem, self.problem.rows.shape[1] + 1
        price = problem.C[p] * problem.weight
        stated = Piecewise.squared_hinge(problem.sign(p), price, size)
        units = normals(problem, earlier, self.constraint)
        # The bias is not in it.
        border = np.vstack([units, np.zeros((1, units.shape[1]))])
        if not self.fit_intercept:
            # What w must avoid has the bias for a direction.
            border = np.column_stack([border, np.eye(size)[-1]])
        if not border.shape[1]:
            return stated
        return replace(stated, normals=border, deflated=self.method == "deflation")


def _at_class_means(features: Features, problem: Piecewise, zero: Point) -> Point:
    """Return the best multiple of the difference of the class means."""
    sign = problem.target
    alpha = class_means(sign, sign * problem.pull(zero.scores))
    pull = features.sums((sign * alpha)[None])[0]
    x = pull * (alpha.sum() / (pull @ pull + (alpha * alpha / problem.stiff).sum()))
    scores = features.products(x[None])[0]
    return Point(x, scores, problem.value(x, scores))


def normals(problem: Problem, earlier: list[Vector], constraint: str) -> Matrix:
    """Return an orthonormal basis of what w must be orthogonal to, as columns.

    Parameters
    ----------
    problem : Problem
        The rows.
    earlier : list of ndarray of shape (d,)
        Earlier directions.
    constraint : {"orthogonal", "uncorrelated"}
        The directions u themselves, or Σ s x (xᵀu) over the rows.
    """
    directions = np.array(earlier).reshape(len(earlier), problem.rows.shape[1]).T
    if not directions.size:
        return directions
    if constraint == "uncorrelated":
        features = RowFeatures(problem.rows)
        points = np.column_stack([directions.T, np.zeros(len(earlier))])
        values = features.products(points)
        directions = features.sums(problem.weight * values)[:, :-1].T
    basis, sizes, _ = np.linalg.svd(directions, full_matrices=False)
    return basis[:, sizes > 1e-10 * sizes.max()]
