"""An interior-point method for a quadratic program with a box and a fixed sum.

Mehrotra's predictor and corrector for the problem of ``box_newton``. It takes a few dozen
factorisations whatever the bounds are, where sequential minimal optimisation may take millions of
updates, but it is not exact: its answer is a start for the other two. A matrix that comes as a
factor with few columns is inverted through them (Ferris and Munson 2002, "Interior-point methods
for massive support vector machines"), so that a round is linear in the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from widemargin.arrays import Matrix, Vector
from widemargin.loop import Deadline
from widemargin.qp.box_newton import BoxProblem

# Rows, at the most, of a matrix that is factorised whole: two more copies are made of it.
_MOST_ROWS = 5000


def cost_of_round(problem: BoxProblem) -> float:
    """Return the operations of one round, infinite where it would need too much memory."""
    n, width = float(len(problem.linear)), float(problem.K.shape[1])
    if problem.factored and 2 * width < n:
        return n * width * width
    return n**3 / 3 if n <= _MOST_ROWS else float("inf")


def solve_interior(
    problem: BoxProblem,
    *,
    gap: float = 1e-10,
    max_rounds: int = 80,
    deadline: Deadline | None = None,
) -> Vector:
    """Minimise ½ βᵀQβ − aᵀβ + Σ width |β| in the box with a fixed Σβ, to a small gap.

    Parameters
    ----------
    problem : BoxProblem
        The problem, with Q positive semidefinite.
    gap : float, default=1e-10
        Stop when complementarity is at most this, relative to the objective.
    max_rounds : int, default=80
        Factorisations at the most.
    deadline : Deadline, default=None
        When to leave it at the rounds that are done.

    Returns
    -------
    ndarray of shape (n,)
        A point in the box. What belongs at a bound is there; the sum is right but for that.
    """
    rows = np.flatnonzero(problem.upper > problem.lower)
    level = max(float(problem.own()[rows].mean()), 1e-100)
    part = problem.part[:, rows]
    Q: _Whole | _LowRank
    if problem.factored and 2 * problem.K.shape[1] < len(rows):
        Q = _LowRank(_deflated_factor(problem.K[rows].astype(np.float64), part))
    else:
        Q = _Whole(problem.among(rows) - part.T @ part)
    linear, lower, upper = problem.linear[rows], problem.lower[rows], problem.upper[rows]
    if problem.width.any():
        # A variable with a kink at zero is the sum of two, one for each side of it.
        width, zero = problem.width[rows], np.zeros(len(rows))
        linear = np.concatenate([linear - width, linear + width])
        # Strictly inside: a side that is shut is given room that does not show.
        hair = 1e-13 * np.maximum(upper - lower, 1e-300)
        lower, upper = np.append(-hair, lower - hair), np.append(upper + hair, zero + hair)
        state = _State(_OfTwo(Q), linear, lower, upper, problem.total)
    else:
        state = _State(Q, linear, lower, upper, problem.total)
    for _ in range(max_rounds):
        if deadline is not None and deadline.passed:
            break
        if state.mu() * 2 * len(state.x) <= gap * abs(state.objective()):
            break
        try:
            # The ridge is rounding of K; it bends the way and not the goal.
            if not state.advance(1e-15 * len(rows) * level):
                break
        except LinAlgError:
            break
    # One of each pair of slack and multiplier vanishes: compared in the units of the error.
    x = np.where(level * (state.x - state.lower) < state.z_lower, state.lower, state.x)
    x = np.where(level * (state.upper - state.x) < state.z_upper, state.upper, x)
    beta = np.zeros(len(problem.linear))
    beta[rows] = x if len(x) == len(rows) else x[: len(rows)] + x[len(rows) :]
    return np.minimum(np.maximum(beta, problem.lower), problem.upper)


class _Symmetric(Protocol):
    """What the method asks of Q."""

    def times(self, x: Vector) -> Vector:
        """Return Qx."""

    def inverse(self, diagonal: Vector) -> Callable[[Vector], Vector]:
        """Return the function x ↦ (Q + diagonal)⁻¹ x."""


class _Whole:
    """Q with all of its values."""

    def __init__(self, values: Matrix) -> None:
        self.values = values

    def times(self, x: Vector) -> Vector:
        return self.values @ x

    def inverse(self, diagonal: Vector) -> Callable[[Vector], Vector]:
        H = self.values.copy()
        H[np.diag_indices(len(H))] += diagonal
        factor = cho_factor(H, lower=True, overwrite_a=True, check_finite=False)
        return lambda x: np.asarray(cho_solve(factor, x, check_finite=False))


class _LowRank:
    """Q = F Fᵀ for F with few columns."""

    def __init__(self, F: Matrix) -> None:
        self.F = F

    def times(self, x: Vector) -> Vector:
        return self.F @ (self.F.T @ x)

    def inverse(self, diagonal: Vector) -> Callable[[Vector], Vector]:
        scaled = self.F / diagonal[:, None]
        core = self.F.T @ scaled
        core[np.diag_indices(len(core))] += 1.0
        factor = cho_factor(core, lower=True, overwrite_a=True, check_finite=False)

        def apply(x: Vector) -> Vector:
            inner = cho_solve(factor, scaled.T @ x, check_finite=False)
            value: Vector = x / diagonal - scaled @ inner
            return value

        return apply


class _OfTwo:
    """Q of the sums of two variables each: [[Q, Q], [Q, Q]]."""

    def __init__(self, Q: _Symmetric) -> None:
        self.Q = Q

    def times(self, x: Vector) -> Vector:
        half = len(x) // 2
        return np.tile(self.Q.times(x[:half] + x[half:]), 2)

    def inverse(self, diagonal: Vector) -> Callable[[Vector], Vector]:
        half = len(diagonal) // 2
        first, second = diagonal[:half], diagonal[half:]
        both = first * second / (first + second)
        inner = self.Q.inverse(both)

        def apply(x: Vector) -> Vector:
            target = both * (x[:half] / first + x[half:] / second)
            total = inner(target)
            # What Q makes of the sums, from the system that they solve.
            product = target - both * total
            return (x - np.tile(product, 2)) / diagonal

        return apply


def _deflated_factor(F: Matrix, part: Matrix) -> Matrix:
    """Return a factor of F Fᵀ − partᵀpart, where the rows of `part` are projections F w."""
    if not len(part):
        return F
    w = np.linalg.lstsq(F, part.T, rcond=None)[0]
    values, vectors = np.linalg.eigh(np.eye(F.shape[1]) - w @ w.T)
    deflated: Matrix = (F @ vectors) * np.sqrt(np.maximum(values, 0.0))
    return deflated


class _State:
    """A point between the bounds with multipliers, and the step from it."""

    def __init__(
        self, Q: _Symmetric, linear: Vector, lower: Vector, upper: Vector, total: float
    ) -> None:
        self.Q, self.linear, self.lower, self.upper, self.total = Q, linear, lower, upper, total
        # Between the bounds, as far up as the sum asks for.
        share = (total - float(lower.sum())) / float((upper - lower).sum())
        self.x = lower + min(max(share, 0.05), 0.95) * (upper - lower)
        self.error = linear - Q.times(self.x)
        self.bias = float(np.median(self.error))
        rest = self.error - self.bias
        margin = max(float(np.abs(rest).mean()), 1e-8)
        # Stationary from the start: z_upper − z_lower is what is left of the error.
        self.z_lower = np.maximum(-rest, 0.0) + margin
        self.z_upper = np.maximum(rest, 0.0) + margin

    def mu(self) -> float:
        """Return the mean product of slack and multiplier."""
        pairs = (self.x - self.lower) @ self.z_lower + (self.upper - self.x) @ self.z_upper
        return float(pairs) / (2 * len(self.x))

    def objective(self) -> float:
        """Return ½ xᵀQx − aᵀx."""
        return -0.5 * float(self.x @ (self.linear + self.error))

    def advance(self, ridge: float) -> bool:
        """Take a step; return whether it had any length."""
        below, above = self.x - self.lower, self.upper - self.x
        solve = self.Q.inverse(self.z_lower / below + self.z_upper / above + ridge)
        ones = solve(np.ones(len(below)))

        def direction(low: Vector | float, high: Vector | float) -> tuple[Vector, ...]:
            """Return the way to where slack times multiplier is `low` and `high`."""
            dx = solve(self.error - self.bias + low / below - high / above)
            d_bias = (dx.sum() + self.x.sum() - self.total) / ones.sum()
            dx -= d_bias * ones
            dz_lower = (low - self.z_lower * dx) / below - self.z_lower
            dz_upper = (high + self.z_upper * dx) / above - self.z_upper
            return dx, dz_lower, dz_upper, d_bias

        def longest(dx: Vector, dz_lower: Vector, dz_upper: Vector) -> float:
            """Return the longest step that keeps slacks and multipliers positive, at most 1."""
            values = np.concatenate((below, above, self.z_lower, self.z_upper))
            shrink = -np.concatenate((dx, -dx, dz_lower, dz_upper)) / values
            return 1.0 / max(1.0, float(shrink.max()))

        dx, dz_lower, dz_upper, _ = direction(0.0, 0.0)
        step, mu = longest(dx, dz_lower, dz_upper), self.mu()
        ahead = (below + step * dx) @ (self.z_lower + step * dz_lower)
        ahead += (above - step * dx) @ (self.z_upper + step * dz_upper)
        centre = (max(float(ahead), 0.0) / (2 * len(dx)) / mu) ** 3 * mu
        dx, dz_lower, dz_upper, d_bias = direction(centre - dx * dz_lower, centre + dx * dz_upper)
        step = 0.995 * longest(dx, dz_lower, dz_upper)
        if not step > 1e-10:
            return False
        x = self.x + step * dx
        if not ((x > self.lower) & (x < self.upper)).all():
            # Closer to a bound than rounding.
            return False
        self.x = x
        self.z_lower = self.z_lower + step * dz_lower
        self.z_upper = self.z_upper + step * dz_upper
        self.bias += step * float(d_bias)
        self.error = self.linear - self.Q.times(x)
        return True
