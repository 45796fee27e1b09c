"""A quadratic program with a box and a fixed sum, and a Newton step for it.

    min ½ βᵀQβ − aᵀβ + Σ width |β|,   Σβ = total,   lower ≤ β ≤ upper,   Q = K − PᵀP.

Q is never formed: K may be shared with other problems, and P has few rows. The Newton step solves
one linear system for the variables between their bounds, which sequential minimal optimisation
(``pair_loops.exchange``) approaches slowly where Q is badly conditioned. It checks what it gains,
so a singular Q does no harm: where the system has no solution, there is a direction along which
the objective falls for ever, and the step goes that way until a bound stops it. Variables with a
width, the duals of a loss that is zero on an interval, have a kink at zero: a step does not cross
it (`BoxProblem.segment`), and pairs take them over.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from widemargin.arrays import Vector
from widemargin.loop import Deadline
from widemargin.threads import Compiled

loops = Compiled("widemargin.qp.margin_loops")
_EPS = float(np.finfo(np.float64).eps)
# Newton steps in a row that may be cut short at an edge of the box.
_CUTS = 30
# Times that all variables which leave the box are put on its edge before the step is cut instead.
_GUESSES = 8
# Times that a ridge grows a hundredfold, from rounding to more than any kernel matrix needs.
_RIDGES = 9


@dataclass(frozen=True)
class BoxProblem:
    """The problem; see the module.

    Attributes
    ----------
    K : ndarray of shape (n, n) or wider
        Symmetric, C-contiguous; columns beyond the square are not looked at. If `factored`, F of
        shape (n, d), and F Fᵀ is meant, which is never formed.
    part : ndarray of shape (s, n)
        P, C-contiguous.
    linear : ndarray of shape (n,)
        a.
    lower, upper : ndarray of shape (n,)
        Bounds, with zero between them.
    factored : bool
        Whether K is given by a factor.
    total : float
        What the variables add up to.
    width : ndarray of shape (n,)
        What the modulus of each variable costs, not negative; all zero by default.
    """

    K: NDArray[Any]
    part: Vector
    linear: Vector
    lower: Vector
    upper: Vector
    factored: bool = False
    total: float = 0.0
    width: Vector = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not len(self.width):
            object.__setattr__(self, "width", np.zeros(len(self.linear)))

    def segment(self, beta: Vector) -> BoxProblem:
        """Return the problem on the side of zero where each variable with a width is.

        There the objective is a quadratic; what is at zero stays.
        """
        side, kinked = np.sign(beta), self.width > 0
        return replace(
            self,
            linear=self.linear - side * self.width,
            lower=np.where(kinked & (side >= 0), 0.0, self.lower),
            upper=np.where(kinked & (side <= 0), 0.0, self.upper),
            width=np.zeros(len(beta)),
        )

    def value(self, beta: Vector, error: Vector) -> float:
        """Return the negative of the objective, given a − Qβ."""
        return 0.5 * float(beta @ (self.linear + error)) - float(self.width @ np.abs(beta))

    def own(self) -> Vector:
        """Return the diagonal of K."""
        if self.factored:
            squares: Vector = np.einsum("ij,ij->i", self.K, self.K, dtype=np.float64)
            return squares
        return np.diagonal(self.K).astype(np.float64)

    def among(self, index: NDArray[np.intp]) -> Vector:
        """Return the values of K among some rows."""
        if self.factored:
            some = self.K[index].astype(np.float64, copy=False)
            values: Vector = some @ some.T
            return values
        return np.asarray(loops.gather(self.K, index), dtype=np.float64)

    def too_many(self, n_free: int) -> bool:
        """Return whether a system of the free rows would be large and say next to nothing.

        A factor of few columns gives it hardly any rank.
        """
        return self.factored and n_free > 4 * self.K.shape[1] + 64

    def free(self, beta: Vector) -> NDArray[np.intp]:
        """Return the indices of the variables between their bounds, and not at a kink."""
        smooth = (self.width == 0) | (beta != 0)
        return np.flatnonzero((beta > self.lower) & (beta < self.upper) & smooth)

    def product(self, beta: Vector) -> Vector:
        """Return Qβ."""
        support = np.flatnonzero(beta)
        value: Vector
        if self.factored:
            value = self.K @ (self.K[support].T @ beta[support])
        else:
            value = loops.combine(self.K, support, beta[support])
        return value - (self.part @ beta) @ self.part

    def error(self, beta: Vector) -> Vector:
        """Return a − Qβ, the direction of steepest descent."""
        return self.linear - self.product(beta)

    def balanced(self, beta: Vector) -> Vector:
        """Return β, which is within its bounds, with the sum that it should have.

        Variables between the bounds make up for the rest, of the heavier side and then of the
        lighter; those at a bound are there for a reason, and only more than rounding moves them.
        """
        beta = beta.copy()
        rounding = len(beta) * _EPS * (float(np.abs(beta).sum()) + abs(self.total))
        side = np.sign(beta.sum() - self.total)
        toward = -side * np.where(beta * side > 0, np.abs(beta), 0.0)
        away = np.where(side > 0, self.lower, self.upper) - beta
        free = (beta > self.lower) & (beta < self.upper)
        for way, some, excess in (
            (toward, free, 0.0),
            (away, free & (beta * side < 0), 0.0),
            (toward, ~free, rounding),
        ):
            surplus, room = float(beta.sum()) - self.total, float(way[some].sum())
            # Both differ in sign, or earlier ways have made up for everything.
            if surplus * room < 0 and abs(surplus) > excess:
                beta[some] += min(1.0, -surplus / room) * way[some]
        surplus = float(beta.sum()) - self.total
        # A total that is not zero may ask for more: all go towards their bounds.
        rest = (self.lower if surplus > 0 else self.upper) - beta
        if abs(surplus) > rounding and surplus * float(rest.sum()) < 0:
            beta += min(1.0, -surplus / float(rest.sum())) * rest
        return beta

    def rounding(self, beta: Vector) -> float:
        """Return what `error` may be wrong by; sums of n terms err less than each of them could."""
        size = float(np.abs(self.own()).max() * np.sqrt(beta @ beta))
        most = float((np.abs(self.linear) + self.width).max())
        return _EPS * (4.0 * most + size)

    def between(self, beta: Vector, error: Vector) -> tuple[float, float]:
        """Return the largest error of what may rise, and the least of what may fall.

        The KKT conditions hold where the first is not above the second.
        """
        rise = error - np.where(beta >= 0, self.width, -self.width)
        fall = error - np.where(beta > 0, self.width, -self.width)
        top = float(rise[beta < self.upper].max(initial=-np.inf))
        bottom = float(fall[beta > self.lower].min(initial=np.inf))
        return top, bottom


def newton(problem: BoxProblem, beta: Vector, error: Vector, deadline: Deadline) -> int:
    """Minimise over the variables between their bounds, in place, as far as the box allows.

    Parameters
    ----------
    problem : BoxProblem
        The problem.
    beta : ndarray of shape (n,)
        A feasible point; it is moved, never uphill.
    error : ndarray of shape (n,)
        a − Qβ; it stays so.
    deadline : Deadline
        When to leave it at the steps that are done.

    Returns
    -------
    int
        How many linear systems were solved.
    """
    lower, upper = problem.lower, problem.upper
    n_systems = 0
    for _ in range(_CUTS):
        free = problem.free(beta)
        if len(free) < 2 or deadline.passed or problem.too_many(len(free)):
            break
        direct = _direction(problem, error, free, np.zeros(len(beta)))
        move, guesses = _bent(problem, beta, error, free, direct)
        n_systems += 1 + guesses
        step, product = _step(problem, beta, error, move)
        if step <= 0.0 and move is not direct:
            move = direct
            step, product = _step(problem, beta, error, move)
        if step <= 0.0:
            break
        target = beta + step * move
        stopped = ((target >= upper) & (move > 0)) | ((target <= lower) & (move < 0))
        # What the step was cut for must end on the edge, whatever the rounding.
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(move > 0, upper - beta, beta - lower) / np.abs(move)
        stopped |= (move != 0) & (room <= step * (1.0 + 4.0 * _EPS))
        beta[:] = np.where(stopped, np.where(move > 0, upper, lower), target)
        error -= step * product
        if not stopped.any():
            break
    return n_systems


def _direction(problem: BoxProblem, error: Vector, free: NDArray[np.intp], move: Vector) -> Vector:
    """Return `move` with its free part set to the best, for a total of zero.

    The free part d solves Q d + (Q move) + δ1 = error and 1ᵀd = −1ᵀmove on the free rows, δ being
    the change of the bias. Q + c11ᵀ has the same solutions and is definite more often; a ridge
    does the rest, and as each pass solves for what the last has left, it hardly shows.
    """
    H = problem.among(free)
    level = max(float(np.diagonal(H).mean()), 1e-100)
    some = problem.part[:, free]
    H -= some.T @ some
    H += level
    corner = np.diag_indices(len(free))
    # Of the size of K's rounding, which does not get smaller by what is taken from K.
    ridge = 1e-14 * level * len(free)
    H[corner] += ridge
    for _ in range(_RIDGES):
        try:
            factor = cho_factor(H, lower=True, check_finite=False)
            break
        except LinAlgError:
            H[corner] += 99.0 * ridge
            ridge *= 100.0
    else:
        return np.zeros(len(error))
    ones = cho_solve(factor, np.ones(len(free)), check_finite=False)
    move = move.copy()
    for _ in range(3):
        rest = (error - problem.product(move))[free]
        # The mean is the bias's part; without it less is lost to rounding.
        change = cho_solve(factor, rest - rest.mean(), check_finite=False)
        change -= (change.sum() + move.sum()) / ones.sum() * ones
        move[free] += change
    move[free] -= move.sum() / len(free)
    return move


def _bent(
    problem: BoxProblem, beta: Vector, error: Vector, free: NDArray[np.intp], direct: Vector
) -> tuple[Vector, int]:
    """Return a move that ends inside the box, and the systems solved for it.

    What leaves the box goes to its edge, and the rest adapts. It is a guess, made to save a step
    for each variable that leaves; `direct` comes back where most would leave or no guess holds.
    """
    move, inside = direct, free
    fixed = np.zeros(len(beta))
    for n_guesses in range(_GUESSES):
        target = beta[inside] + move[inside]
        high, low = target > problem.upper[inside], target < problem.lower[inside]
        out = high | low
        if not out.any():
            return move, n_guesses
        gone = inside[out]
        inside = inside[~out]
        if 2 * len(inside) < len(free) or len(inside) < 2:
            break
        edge = np.where(high[out], problem.upper[gone], problem.lower[gone])
        fixed[gone] = edge - beta[gone]
        move = _direction(problem, error, inside, fixed)
    return direct, n_guesses


def _step(problem: BoxProblem, beta: Vector, error: Vector, move: Vector) -> tuple[float, Vector]:
    """Return how far to go along `move` within the box, 0 if it gains nothing, and Q move."""
    product = problem.product(move)
    moving = np.flatnonzero(move)
    if not len(moving):
        return 0.0, product
    # The move has a sum of zero: a level of the errors would add nothing but rounding.
    slope = float((error[moving] - error[moving].mean()) @ move[moving])
    curvature = float(move @ product)
    if not slope > 0.0:
        return 0.0, product
    ahead = np.where(move > 0, problem.upper - beta, beta - problem.lower)[moving]
    room = float((ahead / np.abs(move[moving])).min())
    best = slope / curvature if curvature > 0.0 else np.inf
    inside = moving[ahead > np.abs(move[moving])]
    if len(inside) and np.ptp((error - product)[inside]) <= 0.5 * np.ptp(error[inside]):
        # It solves the system, so no step is better than 1; a singular system blows up the
        # rounding that says otherwise.
        best = min(best, 1.0)
    return min(best, room), product
