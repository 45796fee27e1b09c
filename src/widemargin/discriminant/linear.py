"""Max-margin directions for the linear kernel: Newton's method in the input space.

    min  ½‖w‖² + ½b² + C Σ s max(0, 1 − y (wᵀx + b))²,     Uᵀw = 0.

Here w has as many numbers as a row, so no kernel matrix is needed, and rows of any number are
looked at block by block, dense or CSR. Newton's matrix H = I + 2C Σ s (x, 1)(x, 1)ᵀ over the rows
inside the margin is exact and formed where features are few; where they are many, conjugate
gradients solve the same system with two products a step. The line search is exact, so the method
ends with the exact solution after a few steps.

The two methods of MMDA differ in where the earlier directions U (orthonormal) enter. *Deflation*
(section 3.1) takes them out of the rows, x' = x − U(Uᵀx), (2), and solves without a constraint.
*Direct* (section 3.2) leaves the rows as they are and adds multipliers γ to Newton's system,

    [H U; Uᵀ 0] (d, γ) = (−g, 0).

Proposition 3: the answer is the same. `hinge` has the machines of MMDA's (1), with a free bias.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from widemargin.balls import Points
from widemargin.deadline import Deadline
from widemargin.discriminant.directions import Direction, error_of, varies
from widemargin.rows.base import IndexArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Features up to which Newton's matrix is formed.
_FEW_FEATURES = 1000
# Steps of Newton's method at the most, tries for a step's length, and steps of conjugate gradients.
_MOST_STEPS, _TRIES, _MOST_CG = 200, 50, 500


@dataclass(frozen=True)
class _Point:
    """A machine (w, b), with what follows from a pass over the rows.

    Attributes
    ----------
    w : ndarray of shape (d + 1,)
        Weights, and the bias behind them.
    scores : ndarray of shape (n,)
        wᵀx + b.
    gradient : ndarray of shape (d + 1,)
        Derivative of the objective, without its part along U.
    primal, dual : float
        Objective, and the best bound that its slacks give.
    """

    w: Vector
    scores: Vector
    gradient: Vector
    primal: float
    dual: float

    def gap(self) -> float:
        """Return the relative duality gap."""
        return (self.primal - self.dual) / self.primal if self.primal > 0 else 0.0


class Linear:
    """Directions in the input space.

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
    """

    scope = "full"

    def __init__(self, points: Points, *, method: str, constraint: str, tol: float) -> None:
        self.points = points
        self.method = method
        self.constraint = constraint
        self.tol = tol

    def find(
        self, problems: Sequence[int], earlier: list[list[Vector]], deadline: Deadline
    ) -> list[Direction[Vector]]:
        """Return the best direction of each problem."""
        return [
            self._find(p, normals(self.points, some, self.constraint))
            for p, some in zip(problems, earlier, strict=True)
        ]

    def _find(self, problem: int, normals: Matrix) -> Direction[Vector]:
        newton = _Newton(self.points, problem, normals, self.method)
        with np.errstate(over="ignore", invalid="ignore"):
            return self._solved(newton, problem)

    def _solved(self, newton: _Newton, problem: int) -> Direction[Vector]:
        point = newton.at(np.zeros(self.points.rows.shape[1] + 1), np.zeros(self.points.n))
        steps, progress = 0, True
        while point.gap() > self.tol and progress and steps < _MOST_STEPS:
            after = newton.step(point)
            progress, steps = after.primal < point.primal, steps + 1
            point = after if progress else point
        w, bias = point.w[:-1], float(point.w[-1])
        norm = float(np.linalg.norm(w))
        scale = 1.0 / norm if norm > 0 else 0.0
        converged = point.gap() <= self.tol
        return Direction(
            problem,
            w * scale,
            norm,
            bias * scale,
            error_of(self.points, problem, point.scores),
            point.primal,
            point.dual,
            n_vectors=1,
            varies=varies(point.scores),
            n_passes=newton.n_passes,
            converged=converged,
            stopped="solved" if converged else "no more digits in the linear system",
        )


def normals(points: Points, earlier: list[Vector], constraint: str) -> Matrix:
    """Return an orthonormal basis of what w must be orthogonal to, as columns.

    Parameters
    ----------
    points : Points
        The rows.
    earlier : list of ndarray of shape (d,)
        Earlier directions.
    constraint : {"orthogonal", "uncorrelated"}
        The directions u themselves, or Σ s x (xᵀu) over the rows.
    """
    directions = np.array(earlier).reshape(len(earlier), points.rows.shape[1]).T
    if not directions.size:
        return directions
    if constraint == "uncorrelated":
        directions = np.sum(list(points.rows.scan(_Moments(directions, points.weight))), axis=0)
    basis, sizes, _ = np.linalg.svd(directions, full_matrices=False)
    independent: Matrix = basis[:, sizes > 1e-10 * sizes.max()]
    return independent


class _Newton:
    """Newton's method for one problem."""

    def __init__(self, points: Points, problem: int, normals: Matrix, method: str) -> None:
        self.points = points
        self.sign = points.sign(problem, slice(None))
        self.normals = normals
        self.deflated = method == "deflation"
        self.n_passes = 0

    def at(self, w: Vector, scores: Vector) -> _Point:
        """Return the point w, whose scores are known."""
        points, sign = self.points, self.sign
        alpha = 2.0 * points.C * points.weight * np.maximum(0.0, 1.0 - sign * scores)
        active = np.flatnonzero(alpha)
        pull = self._without_directions(self._pull(active, (sign * alpha)[active]))
        loss = float((alpha * alpha * points.ridge).sum()) / 2.0
        primal = 0.5 * float(w @ w) + loss
        # α is feasible for the dual, and so is every multiple: the best is the root of a parabola.
        total = float(alpha.sum())
        square = float(pull @ pull) + 2.0 * loss
        if not np.isfinite(square):
            raise _too_large()
        dual = 0.5 * total * total / square if square > 0 else 0.0
        return _Point(w, scores, w - pull, primal, dual)

    def step(self, point: _Point) -> _Point:
        """Return the point after Newton's step and an exact line search."""
        active = np.flatnonzero(self.sign * point.scores < 1.0)
        direction = self._direction(point.gradient, active)
        moved = self._scores(direction)
        length = self._length(point, direction, moved)
        return self.at(point.w + length * direction, point.scores + length * moved)

    def _length(self, point: _Point, direction: Vector, moved: Vector) -> float:
        """Return the root of the objective's slope along a direction, which rises piecewise."""
        points, sign = self.points, self.sign
        slope0, curve0 = float(point.w @ direction), float(direction @ direction)
        length, low, high = 1.0, 0.0, np.inf
        for _ in range(_TRIES):
            slack = 1.0 - sign * (point.scores + length * moved)
            inside = slack > 0
            weight, along = points.weight[inside], moved[inside]
            slope = slope0 + length * curve0
            slope -= 2.0 * points.C * float((weight * slack[inside] * sign[inside]) @ along)
            curve = curve0 + 2.0 * points.C * float(weight @ (along * along))
            low, high = (length, high) if slope < 0 else (low, min(high, length))
            better = length - slope / max(curve, np.finfo(float).tiny)
            if not low < better < high:
                better = 0.5 * (low + high) if np.isfinite(high) else 2.0 * length
            if abs(better - length) <= 1e-12 * length:
                return better
            length = better
        return length

    def _direction(self, gradient: Vector, active: IndexArray) -> Vector:
        few = len(gradient) <= _FEW_FEATURES + 1
        direction = self._formed(gradient, active) if few else self._iterated(gradient, active)
        # Rounding must not lead out of the subspace.
        return self._without_directions(direction)

    def _formed(self, gradient: Vector, active: IndexArray) -> Vector:
        """Return Newton's direction from the matrix itself."""
        weight = 2.0 * self.points.C * self.points.weight[active]
        removed = self.normals if self.deflated else self.normals[:, :0]
        visit = _Curvature(weight, removed)
        matrix = np.eye(len(gradient))
        for part in self.points.rows.scan(visit, active, width=len(gradient)):
            matrix += part
        self.n_passes += 1
        solve = _inverse(matrix)
        direction = -solve(gradient)
        if not self.deflated and self.normals.size:
            border = np.vstack([self.normals, np.zeros((1, self.normals.shape[1]))])
            tilted = solve(border)
            gamma = np.linalg.solve(border.T @ tilted, border.T @ direction)
            direction -= tilted @ gamma
        return direction

    def _iterated(self, gradient: Vector, active: IndexArray) -> Vector:
        """Return Newton's direction by conjugate gradients in the subspace."""
        weight = 2.0 * self.points.C * self.points.weight[active]

        def product(v: Vector) -> Vector:
            v = self._without_directions(v.ravel())
            along = self._scores(v, active)
            return v + self._without_directions(self._pull(active, weight * along))

        size = len(gradient)
        operator = LinearOperator((size, size), matvec=product, dtype=np.float64)
        accuracy = min(0.1, float(np.linalg.norm(gradient)) ** 0.5 / size**0.5)
        direction, _ = cg(operator, -gradient, rtol=max(1e-8, accuracy), maxiter=_MOST_CG)
        return np.asarray(direction)

    def _without_directions(self, v: Vector) -> Vector:
        if not self.normals.size:
            return v
        left = v.copy()
        left[:-1] -= self.normals @ (self.normals.T @ v[:-1])
        return left

    def _scores(self, w: Vector, index: IndexArray | None = None) -> Vector:
        """Return wᵀx + b of rows."""
        self.n_passes += 1
        return np.concatenate(list(self.points.rows.scan(_Scores(w), index)))

    def _pull(self, index: IndexArray, coef: Vector) -> Vector:
        """Return Σ coef (x, 1) over rows."""
        self.n_passes += 1
        total = np.zeros(self.points.rows.shape[1] + 1)
        for part in self.points.rows.scan(_Pull(coef), index):
            total += part
        return total


def _inverse(matrix: Matrix) -> Callable[[Matrix], Matrix]:
    """Return how to divide by I plus a positive semidefinite matrix."""
    if not np.isfinite(matrix).all():
        raise _too_large()
    try:
        factor = cho_factor(matrix, check_finite=False)
    except LinAlgError:
        # Rounding of huge values hides the identity: no eigenvalue is below 1.
        values, vectors = np.linalg.eigh(matrix)
        values = np.maximum(values, 1.0)
        return lambda right: (vectors / values) @ (vectors.T @ right)
    return lambda right: np.asarray(cho_solve(factor, right, check_finite=False))


def _too_large() -> ValueError:
    return ValueError(
        "X has values too large for the linear kernel: their squares overflow; scale X."
    )


def _exact(block: Any) -> Any:
    """Return a block in float64, dense or CSR."""
    return block.astype(np.float64, copy=False)


@dataclass(frozen=True)
class _Scores:
    """Visitor: wᵀx + b."""

    w: Vector

    def __call__(self, block: Any, where: slice) -> Vector:
        scores: Vector = _exact(block) @ self.w[:-1] + self.w[-1]
        return scores


@dataclass(frozen=True)
class _Pull:
    """Visitor: Σ coef (x, 1)."""

    coef: Vector

    def __call__(self, block: Any, where: slice) -> Vector:
        coef = self.coef[where]
        return np.append(_exact(block).T @ coef, coef.sum())


@dataclass(frozen=True)
class _Curvature:
    """Visitor: Σ weight (x', 1)(x', 1)ᵀ, x' being x without its part along some directions."""

    weight: Vector
    removed: Matrix

    def __call__(self, block: Any, where: slice) -> Matrix:
        dense = block.toarray() if sparse.issparse(block) else block
        features = np.empty((block.shape[0], block.shape[1] + 1))
        features[:, :-1] = dense
        features[:, -1] = 1.0
        if self.removed.size:
            features[:, :-1] -= (features[:, :-1] @ self.removed) @ self.removed.T
        features *= np.sqrt(self.weight[where])[:, None]
        curvature: Matrix = features.T @ features
        return curvature


@dataclass(frozen=True)
class _Moments:
    """Visitor: Σ s x (xᵀu) for the columns u."""

    directions: Matrix
    weight: Vector

    def __call__(self, block: Any, where: slice) -> Matrix:
        exact = _exact(block)
        moments: Matrix = exact.T @ (self.weight[where, None] * (exact @ self.directions))
        return moments
