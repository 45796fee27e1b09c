"""The way to the solution of a quadratic program with a box and a fixed sum.

The problem of ``box_newton``, of which the duals of the hinge (``hinge_dual``) and of losses on
intervals (``interval_dual``) are cases. In turns:

* sequential minimal optimisation, a pair of variables at a time (``pair_loops.exchange``);
* Newton steps for all variables between their bounds and the bias together (``box_newton``), which
  are exact where the former is slow: large bounds, nearly dependent rows;
* once, when these have cost too much, an interior-point method for a better start
  (``interior_point``).

None worsens the objective.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext

import numpy as np

from widemargin.arrays import Vector
from widemargin.loop import Deadline
from widemargin.qp.box_newton import BoxProblem, newton
from widemargin.qp.interior_point import cost_of_round, solve_interior
from widemargin.threads import Compiled

loops = Compiled("widemargin.qp.pair_loops")

Enough = Callable[[Vector, Vector], bool]
"""Returns whether a point, with its error, is good enough."""

_EPS = float(np.finfo(np.float64).eps)
# Updates of the first spell of pairs.
_FIRST_SPELL = 1000
# Updates of any spell, at the least.
_LEAST_SPELL = 32
# What a floating-point operation inside a factorisation costs, relative to one of an update.
_BLAS_ADVANTAGE = 30.0
# Rounds of the interior-point method that pairs and Newton steps may cost before it is tried.
INTERIOR_ROUNDS = 10.0
# Rounds without a gain above rounding before we stop.
_PATIENCE = 3
# Operations of a spell of pairs at the most: a look at the clock must not have to wait for long.
_MOST_OF_A_SPELL = 1e9


class BoxAscent:
    """A solution on its way: spells of pair updates and Newton steps in turns.

    Parameters
    ----------
    box : BoxProblem
        The problem.
    beta : ndarray of shape (n,)
        A feasible point.
    tol : float
        The KKT conditions are to hold to this, relative to `margin`, to the range of Qβ, and to
        what makes the gap this small; or to rounding.
    limit : int
        Pairs to move at the most.
    interior_after : float, default=10
        Rounds of the interior-point method that the others may cost before it is tried.
    margin : float, default=1.0
        A size that errors are compared with.
    enough : callable, default=None
        Told of each point and its error; a true answer ends the ascent.
    newton_first : bool, default=False
        Begin with Newton steps.
    """

    def __init__(
        self,
        box: BoxProblem,
        beta: Vector,
        tol: float,
        limit: int,
        interior_after: float = INTERIOR_ROUNDS,
        *,
        margin: float = 1.0,
        enough: Enough | None = None,
        newton_first: bool = False,
    ) -> None:
        self.box, self.beta, self.tol, self.limit = box, beta, tol, limit
        self.margin, self.enough = margin, enough
        own = box.own()
        self.diagonal = np.maximum(own - (box.part**2).sum(axis=0), 0.0)
        # Curvatures below this are rounding of K.
        self.least = max(1e-12 * float(own.max()), 1e-100)
        self.bounds = float((box.upper - box.lower).sum())
        self.n_updates, self.spell, self.patience = 0, max(_FIRST_SPELL, len(beta)), _PATIENCE
        # Operations: of pairs since the last Newton step, of that step, and all until now.
        self.pairs = self.system = self.spent = 0.0
        self.value, self.highest, self.closest, self.before = 0.0, -np.inf, np.inf, 0.0
        self.best, self.goal, self.error = beta, 0.0, box.linear
        self.turn_of_newton = newton_first
        # What the others may cost before the interior-point method is tried.
        self.allowed = interior_after * cost_of_round(box) / _BLAS_ADVANTAGE

    def run(self, deadline: Deadline | None) -> list[Vector]:
        """Return the last point, and the one with the smallest violation."""
        until = Deadline() if deadline is None else deadline
        while not until.passed:
            with until.ends_on_interrupt() if deadline is not None else nullcontext():
                if self._done():
                    break
                self._advance(until)
        return [self.beta, self.best]

    def _done(self) -> bool:
        """Look at the point, and return whether nothing more is to be gained."""
        box, beta = self.box, self.beta
        self.error = error = box.error(beta)
        top, bottom = box.between(beta, error)
        self.value = value = box.value(beta, error)
        # The gap is at most the violation times all bounds, and the dual the least it is to be
        # compared with; a direction is as good as the violation is small beside its values.
        size = abs(value) if box.total else max(value, 0.0)
        scale = min(self.margin, float(np.ptp(box.linear - error)), size / self.bounds)
        self.goal = max(self.tol * scale, box.rounding(beta))
        # A round must raise the dual or lower the violation; else what is left is rounding.
        raised = value - self.highest > 4.0 * _EPS * abs(value)
        better = raised or top - bottom < 0.9 * self.closest
        self.patience = _PATIENCE if better else self.patience - 1
        self.highest = max(value, self.highest)
        if top - bottom < self.closest:
            self.closest, self.best = top - bottom, beta.copy()
        met = not top - bottom > self.goal
        if not met and self.enough is not None:
            met = self.enough(beta, error)
        return met or self.patience == 0 or self.n_updates >= self.limit

    def _advance(self, deadline: Deadline) -> None:
        """Take a turn; an interrupt in its middle leaves the point where it was."""
        box = self.box
        if self.spent > self.allowed:
            self.allowed = np.inf  # once is enough
            inside = box.balanced(solve_interior(box, deadline=deadline))
            after = box.value(inside, box.error(inside))
            if after > self.value:
                self.beta, self.turn_of_newton, self.before = inside, True, after
                return
        beta, error = self.beta.copy(), self.error.copy()
        if self.turn_of_newton:
            self._newton_steps(beta, error, deadline)
        else:
            self._pair_updates(beta, error)
        self.beta = box.balanced(beta)

    def _newton_steps(self, beta: Vector, error: Vector, deadline: Deadline) -> None:
        n_free = len(self.box.free(beta))
        segment = self.box.segment(beta)
        bent = self.box.linear - segment.linear
        error -= bent
        systems = max(newton(segment, beta, error, deadline), 1)
        error += bent
        self.system = systems * n_free**3 / 3 / _BLAS_ADVANTAGE
        self.spent += self.system
        self.turn_of_newton, self.pairs = False, 0.0
        after = self.box.value(beta, error)
        # Where Newton gains more, pairs need only show it the next violators.
        gains_more = after - self.value > self.value - self.before
        self.spell = max(self.spell // 2, _LEAST_SPELL) if gains_more else 2 * self.spell
        self.before = after

    def _pair_updates(self, beta: Vector, error: Vector) -> None:
        box = self.box
        row = float(len(beta)) * (2 + len(box.part) + 2 * box.factored * box.K.shape[1])
        allowed = min(self.spell, self.limit - self.n_updates, max(1, int(_MOST_OF_A_SPELL / row)))
        done = loops.exchange(
            box.K,
            box.part,
            self.diagonal,
            box.lower,
            box.upper,
            box.width,
            beta,
            error,
            self.least,
            self.goal,
            allowed,
            box.factored,
        )
        self.n_updates += done
        self.pairs += done * row
        self.spent += done * row
        self.turn_of_newton = done < allowed or self.pairs > self.system
