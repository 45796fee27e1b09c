"""Core vector regression: the squared ε-insensitive loss by centre-constrained balls.

Tsang, Kwok and Lai, "Core vector regression for very large regression problems" (ICML 2005), and
Tsang, Kwok and Zurada, "Generalized core vector machines" (2006); Section III-B of MMDA-CVM. The
dual of

    min ½‖w‖² + ½b² + C Σ s r²,   r = max(0, |t − f| − ε)

has two variables for each row, λ ≥ 0 of the signs ±1 with the linear terms l = ±t − ε:

    max lᵀλ − ½ λᵀQλ,   Q_ij = ±(k(x_i, x_j) + 1) + δ_ij ridge_i.

With P = 1ᵀλ it is (18) of MMDA-CVM, the centre-constrained ball (16) of the points of Q whose extra
coordinates are Δ = η − diag(Q) + 2 l / P, with η so large that Δ ≥ 0. Its centre is
c = Σ λ φ̃ / P, and

    distance² = η + ‖c‖² + 2 (l − Qλ) / P,   R² ≥ η + (2 lᵀλ − λᵀQλ) / P²,

the second for every ball around these points. In the papers P is the price of an ε that is found;
here ε is given and P is found, so that each core set has Δ of its own. A point outside is a row
beyond ε from its target: the core set grows as ``core_set`` says, the ball is found by Newton's
method (``qp.interval_newton``) with α = λ⁺ − λ⁻, of which one is zero.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from widemargin.arrays import Vector
from widemargin.balls.ball import Ball, CoreProblem, padded
from widemargin.balls.core_set import fit_core
from widemargin.balls.core_state import CoreOptions
from widemargin.expansion import Fitted
from widemargin.problem import Problem
from widemargin.qp.interval_newton import IntervalPoint, IntervalProgram

# Newton steps for a ball at the most, and the share of the objective that a step must gain.
_MOST_STEPS = 200
_DIGITS = 1e-14
# The relative gap on the core rows, as a share of what the fit aims for, and at the least.
_SHARE_OF_GAP = 0.1
_FINE = 1e-12


def fit_core_regression(problem: Problem, options: CoreOptions, eps: float | None = None) -> Fitted:
    """Fit a machine of regression on a core set.

    Parameters
    ----------
    problem : Problem
        One problem with targets.
    options : CoreOptions
        How the core set grows.
    eps : float, default=None
        Stop when all points lie within (1 + eps) of the radius, and not by the gap.
    """
    targets = problem.regression
    assert targets is not None and problem.n_problems == 1
    epsilon = float(targets.epsilon[0])
    reach = float(np.abs(targets.values).max()) + epsilon
    method = IntervalBall(options.tol, eps, epsilon, problem.bias, reach)
    sizes = replace(options.sizes, whole=False)
    return fit_core(problem, method, replace(options, by_ball=eps is not None, sizes=sizes))


@dataclass(frozen=True)
class RegressionBall(Ball):
    """A centre, as coefficients α of the core rows with their signs.

    Attributes
    ----------
    linear, quadratic : float
        lᵀλ and λᵀQλ.
    reach : float
        The largest |t| + ε of all rows, which decides η.
    """

    linear: float
    quadratic: float
    reach: float

    @property
    def price(self) -> float:
        """P = 1ᵀλ."""
        return float(np.abs(self.alpha).sum())

    def rounding_factor(self) -> float:
        """Return what a rounding of kernel values is multiplied by in the relative gap."""
        if self.dual <= 0.0:
            return 0.0
        return float(np.linalg.norm(self.alpha)) * self.price / (2.0 * self.dual)

    def center_norm2(self) -> float:
        """Return ‖c‖²; 0 if there is no centre."""
        price = self.price
        return self.quadratic / price / price if price > 0.0 else 0.0

    def lifted(self, eta: float) -> float:
        """Return the η of this price, with which no Δ is negative."""
        return eta + 2.0 * self.reach / self.price

    def radius2(self, eta: float) -> float:
        """Return what the squared radius of no ball around these points can fall below."""
        price = self.price
        return self.lifted(eta) + (2.0 * self.linear - self.quadratic) / price / price

    def eps(self, eta: float, worst: float) -> float:
        """Return ε such that all points lie within (1 + ε) of the smallest radius."""
        price = self.price
        if price == 0.0:
            # No row costs anything, or there is no ball yet.
            return 0.0 if worst <= 0.0 else float("inf")
        furthest2 = self.lifted(eta) + self.center_norm2() + 2.0 * worst / price
        radius2 = self.radius2(eta)
        if radius2 <= 1e-14 * self.lifted(eta):
            return float("inf")
        return max(0.0, float(np.sqrt(max(furthest2, 0.0) / radius2)) - 1.0)


@dataclass(frozen=True)
class IntervalBall:
    """Centre-constrained balls of regression, by Newton's method: a ``BallMethod``.

    Attributes
    ----------
    gap : float
        The relative duality gap that the whole fit aims for.
    eps : float or None
        Aim for a (1 + eps)-ball instead.
    epsilon : float
        Half the width of the intervals.
    bias : float
        1, or 0 for a machine without a bias.
    reach : float
        The largest |t| + ε of all rows.
    """

    gap: float
    eps: float | None
    epsilon: float
    bias: float
    reach: float
    # Kernel values, those of the rows beyond ε, and their factor.
    matrices: ClassVar[int] = 3

    def begin(self, problem: CoreProblem, alpha: Vector | None) -> RegressionBall:
        """Return the ball of a first core."""
        start = np.zeros(len(problem.sign)) if alpha is None else alpha
        return self._solved(problem, start, self._accuracy)

    def solve(
        self, problem: CoreProblem, ball: RegressionBall, gap: float, worst: float
    ) -> RegressionBall:
        """Return the ball of the core rows, started from `ball`."""
        return self._solved(problem, padded(ball.alpha, len(problem.sign)), self._accuracy)

    def finished(self, ball: RegressionBall) -> bool:
        """Return whether the core rows themselves lie within (1 + eps) of the radius."""
        return ball.worst <= ball.threshold

    def refine(self, problem: CoreProblem, ball: RegressionBall) -> RegressionBall | None:
        """Solve as accurately as can be; None if that gains nothing."""
        found = self._solved(problem, ball.alpha, 0.0)
        gained = found.core_gap() < 0.5 * ball.core_gap() or found.worst < 0.5 * ball.worst
        return found if gained else None

    @property
    def _accuracy(self) -> float:
        aim = self.gap if self.eps is None else self.eps * self.eps
        return max(_FINE, min(_SHARE_OF_GAP * aim, 1e-6))

    def _solved(self, problem: CoreProblem, start: Vector, accuracy: float) -> RegressionBall:
        assert problem.target is not None
        program = IntervalProgram(
            np.asarray(problem.K[:, : len(start)]),
            problem.target[:, None],
            np.array([self.epsilon]),
            problem.ridge,
            self.bias,
        )
        point, last = program.at(start[:, None]), np.inf
        for _ in range(_MOST_STEPS):
            if program.gap(point) <= accuracy or problem.deadline.passed:
                break
            after = program.step(point)
            primal = float(program.objectives(after)[0].sum())
            gain = last - primal
            if not (gain >= -_DIGITS * primal and after.solvable):
                break
            point = after
            if gain <= _DIGITS * primal:
                break
            last = primal
        return self._ball(program, point, problem.eta)

    def _ball(self, program: IntervalProgram, point: IntervalPoint, eta: float) -> RegressionBall:
        alpha, scores = point.alpha[:, 0], point.scores[:, 0]
        primal, dual = (float(each[0]) for each in program.objectives(point))
        norm2, target, ridge = float(alpha @ scores), program.target[:, 0], program.ridge
        # l − Qλ of both points of each row.
        above = target - scores - ridge * np.maximum(alpha, 0.0)
        below = scores - target - ridge * np.maximum(-alpha, 0.0)
        ball = RegressionBall(
            alpha=alpha,
            norm2=norm2,
            dual=dual,
            loss=primal - 0.5 * norm2,
            worst=float(np.maximum(above, below).max()) - self.epsilon,
            threshold=0.0,
            linear=float(alpha @ target - self.epsilon * np.abs(alpha).sum()),
            quadratic=norm2 + float(ridge @ (alpha * alpha)),
            reach=self.reach,
        )
        if self.eps is None or ball.price == 0.0:
            return ball
        # distance ≤ (1 + eps) R  ⟺  l − Qλ ≤ P/2 ((1 + eps)² R² − η − ‖c‖²).
        limit = (1.0 + self.eps) ** 2 * ball.radius2(eta) - ball.lifted(eta) - ball.center_norm2()
        return replace(ball, threshold=0.5 * ball.price * limit)
