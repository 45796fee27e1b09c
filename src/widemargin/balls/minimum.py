"""The minimum enclosing ball of the core rows.

Section IV-C of Tsang, Kocsor and Kwok (MMDA-CVM): the dual (21) of the constrained ball is solved
through the dual (3) of the SVM, which has no equality constraint, and (35) scales one into the
other.

``method="sor"`` is the paper's Algorithm 3 on (α, γ): with directions U the matrix is G of (38). At
its end γ is set to −UᵀΦYα, its optimum for that α, so that the centre is orthogonal to U to
rounding. ``method="exact"`` is ours: γ eliminated from the start (the Schur complement
k − p_iᵀp_j, the same problem), coordinate ascent and active sets on a kernel matrix that all
problems share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from widemargin.arrays import Vector
from widemargin.balls.ball import Ball, CoreProblem, ball_facts, padded
from widemargin.qp.margin_dual import MarginDual, next_round, solve_margin_dual
from widemargin.qp.sor import solve_sor

# Accuracy of a ball on the core rows, as a share of the gap over all rows before.
_ROUGH = 0.002
# The gap that shows the size of α, and a KKT residual that is rounding.
_ROUGH_GAP = 1e-2
_KKT = 1e-10


@dataclass(frozen=True)
class MinimumState(Ball):
    """A minimum ball and the accuracy it was solved to.

    Attributes
    ----------
    accuracy : float
        KKT residual (method "sor", or a ball rule) or relative gap (a gap rule) asked of the
        solver.
    """

    accuracy: float


@dataclass(frozen=True)
class MinimumBall:
    """Minimum enclosing balls by quadratic programming.

    Attributes
    ----------
    gap : float
        The relative duality gap that the whole fit aims for; the core is solved to a part of it.
    epsilon : float or None
        Aim for a (1 + ε)-ball instead.
    method : {"exact", "sor"}
        Ours or the paper's.
    """

    gap: float
    epsilon: float | None = None
    method: str = "exact"
    matrices: ClassVar[int] = 1

    def begin(self, problem: CoreProblem, alpha: Vector | None) -> MinimumState:
        """Return the ball of a first core."""
        start = np.zeros(len(problem.sign)) if alpha is None else alpha
        accuracy = 0.25 * (self.gap if self.epsilon is None else self.epsilon)
        empty = MinimumState(start, 0.0, 0.0, 0.0, 1.0, 0.0, accuracy)
        return self._solve(problem, empty, accuracy)

    def solve(
        self, problem: CoreProblem, ball: MinimumState, gap: float, worst: float
    ) -> MinimumState:
        """Return the minimum ball of the core rows, started from `ball`."""
        # While rows outside the core decide the gap, a rough ball shows them as well.
        accuracy = max(ball.accuracy, _ROUGH * gap) if self.epsilon is None else ball.accuracy
        return self._solve(problem, ball, accuracy)

    def _solve(self, problem: CoreProblem, ball: MinimumState, accuracy: float) -> MinimumState:
        start = padded(ball.alpha, len(problem.sign))
        solve = self._sor if self.method == "sor" else self._exact
        point = solve(problem, start, accuracy)
        facts = ball_facts(point)
        state = MinimumState(threshold=0.0, accuracy=ball.accuracy, **facts)
        if self.epsilon is None:
            return state
        # The core is solved to an accuracy only: where α is too long, the centre is as well, and
        # every row is by so much farther from it.
        too_long = max(0.0, state.center_norm2() * float(state.alpha.sum()) - 1.0)
        scale = self._scale(state, problem.eta)
        return replace(state, threshold=self.epsilon * scale - too_long)

    def finished(self, ball: MinimumState) -> bool:
        """Return whether the core rows themselves lie within (1 + ε) of the radius."""
        return ball.worst <= ball.threshold

    def refine(self, problem: CoreProblem, ball: MinimumState) -> MinimumState | None:
        """Solve ten times more accurately."""
        if ball.accuracy < 1e-14:
            return None
        finer = replace(ball, accuracy=0.1 * ball.accuracy)
        return self._solve(problem, finer, finer.accuracy)

    def _scale(self, ball: Ball, eta: float) -> float:
        # distance ≤ (1+ε) R  ⟺  residual ≤ (ε + ε²/2) R² 1ᵀα + 1 − ‖c‖² 1ᵀα; the ε² only widens it.
        return ball.radius2(eta) * float(ball.alpha.sum())

    def _exact(self, problem: CoreProblem, start: Vector, accuracy: float) -> MarginDual:
        K, sign, ridge, deadline = problem.K, problem.sign, problem.ridge, problem.deadline
        if not start.any():
            # A ball has a centre even where there is no time for more.
            gap = accuracy if self.epsilon is None else _ROUGH_GAP
            begun, _ = next_round(MarginDual.at(K, sign, ridge), gap, _KKT)
            start = np.maximum(begun.alpha, 0.0)
        if self.epsilon is None:
            return solve_margin_dual(K, sign, ridge, start=start, gap=accuracy, deadline=deadline)
        # The KKT residual that an ε asks for depends on 1ᵀα: find its size first.
        point = solve_margin_dual(K, sign, ridge, start=start, gap=_ROUGH_GAP, deadline=deadline)
        rough = MinimumState(threshold=0.0, accuracy=accuracy, **ball_facts(point))
        tol = max(1e-12, accuracy * self._scale(rough, problem.eta))
        return solve_margin_dual(K, sign, ridge, start=point.alpha, tol=tol, deadline=deadline)

    def _sor(self, problem: CoreProblem, start: Vector, accuracy: float) -> MarginDual:
        """Algorithm 3: the largest change first, over α ≥ 0 and γ without bounds."""
        sign, ridge, projection = problem.sign, problem.ridge, problem.projection
        m = len(sign)
        K: Any = np.asarray(problem.K[:, :m], dtype=np.float64)
        n_directions = 0 if projection is None else projection.shape[1]
        G = np.zeros((m + n_directions, m + n_directions))
        G[:m, :m] = (K + 1.0) * np.outer(sign, sign)
        x = padded(start, m + n_directions)
        if projection is not None:
            signed = sign[:, None] * projection
            # K has lost the directions already; G of (38) holds them apart, beside γ.
            G[:m, :m] += signed @ signed.T
            G[:m, m:] = signed
            G[m:, :m] = signed.T
            G[m:, m:] = np.eye(n_directions)
            x[m:] = -signed.T @ start
        G[np.arange(m), np.arange(m)] += ridge
        linear = np.concatenate([np.ones(m), np.zeros(n_directions)])
        lower = np.concatenate([np.zeros(m), np.full(n_directions, -np.inf)])
        tol = min(accuracy, 1e-6)
        if not start.any():
            x = solve_sor(G, linear, lower=lower, start=x, tol=tol, max_updates=m).x
        solved = solve_sor(G, linear, lower=lower, start=x, tol=tol, deadline=problem.deadline)
        return MarginDual.at(K, sign, ridge, solved.x[:m])
