"""Enclosing balls of fixed radius: no solver, only moves of the centre.

Tsang, Kocsor and Kwok, "Simpler core vector machines with enclosing balls" (BVM).

Algorithm 2: while a point lies outside (1 + ε) r, move the centre towards it until the ball of
radius r touches it, (5) and (6); at most 1/ε² moves (Proposition 1).
Algorithm 3: the same with ε = ½, ¼, … down to the one asked for, each from the last centre.
Algorithm 4: give the centre one more coordinate that the points do not have. It shrinks with every
move, and what is left of it, c_T, shows a smaller ball, r'² = (1 + ε)² r² − c_T²; repeat with r'
until c_T² ≤ (2ε + ε²) r².

The first radius is √η with η = κ + 1 + 1/(2C) for a kernel with k(x, x) = κ (Section 3.4, where the
1 is missing), never below the smallest radius (Lemma 1).

Two things are ours. The paper starts each radius anew, from one point and with the coordinate r; we
keep the centre c, and the coordinate becomes √(r'² − (η − ‖c‖²)), what it would be if the bound
η − ‖c‖² on the smallest radius² were exact: a coordinate of r would undo the centre with its first
moves. And all scales and radii are first gone through on the core rows; rows that are then found
outside join, with the radius set back to what holds them all.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.balls.ball import Ball, CoreProblem, ball_facts, padded
from widemargin.qp.margin_dual import MarginDual
from widemargin.threads import Compiled

margin_loops = Compiled("widemargin.qp.margin_loops")
pair_loops = Compiled("widemargin.qp.pair_loops")

# What a look at all core rows costs in multiplications: rounding may make it find rows outside
# again and again that a single update brings inside.
_ROUND = 10**5
# A core is solved to this share of the gap over all rows.
_SHARE = 0.1
# Rows outside that join a working set at the least.
_LEAST = 128
_NO_BALL = (
    "No ball holds the rows: the kernel is not positive semidefinite on this data. Use another "
    "kernel or other kernel parameters, a smaller C, or MarginClassifier(engine='span')."
)


@dataclass(frozen=True)
class FixedRadiusState(Ball):
    """A ball of fixed radius on its way down.

    Attributes
    ----------
    augmented2 : float
        Square of the extra coordinate of Algorithm 4 (0 in Algorithms 2 and 3).
    fixed_radius2 : float
        r².
    current_eps : float
        The current ε.
    n_updates : int
        Moves of the centre so far.
    settled : bool
        All core rows lie within (1 + ε) r.
    n_radii : int
        Radii that Algorithm 4 has gone through.
    """

    augmented2: float
    fixed_radius2: float
    current_eps: float
    n_updates: int
    settled: bool
    n_radii: int = 1


@dataclass(frozen=True)
class FixedRadiusBall:
    """Balls of fixed radius.

    Attributes
    ----------
    epsilon : float
        The ε to reach; 0 goes on halving for as long as the loop wants more.
    multiscale : bool
        Algorithm 3 (True) or 2.
    shrink : bool
        Algorithm 4: look for smaller balls.
    radius2 : float or None
        r²; None takes η.
    max_radii : int or None
        Radii of Algorithm 4 at the most; 1 is what the paper's own program does (its footnote 4).
    effort : int
        Multiplications that one call may spend before the outer loop gets a chance to look up.
    """

    epsilon: float
    multiscale: bool = True
    shrink: bool = True
    radius2: float | None = None
    max_radii: int | None = None
    effort: int = 3 * 10**8
    matrices: ClassVar[int] = 1

    def begin(self, problem: CoreProblem, alpha: Vector | None) -> FixedRadiusState:
        """Return the ball around the first core row, moved until it reaches the others."""
        radius2 = problem.eta if self.radius2 is None else self.radius2
        if alpha is None or not alpha.any():
            alpha = np.zeros(len(problem.sign))
            alpha[0] = 1.0
        eps = max(0.5, self.epsilon) if self.multiscale else self.epsilon
        state = FixedRadiusState(
            alpha, 0.0, 0.0, 0.0, 1.0, 0.0, radius2 if self.shrink else 0.0, radius2, eps, 0, False
        )
        return self._descend(problem, self._settle(problem, state), 1.0)

    def solve(
        self, problem: CoreProblem, ball: FixedRadiusState, gap: float, worst: float
    ) -> FixedRadiusState:
        """Return the ball of a larger core, from the centre and the scale of `ball`."""
        if self.shrink and self.max_radii != 1:
            # The radius that holds all rows seen, around the centre as it is.
            norm2 = ball.center_norm2()
            radius2 = min(problem.eta, problem.eta + (2.0 * worst - 1.0) * norm2)
            ball = self._with_radius(ball, max(radius2, ball.fixed_radius2), problem.eta)
        return self._descend(problem, self._settle(problem, ball), gap)

    def refine(self, problem: CoreProblem, ball: FixedRadiusState) -> FixedRadiusState | None:
        """Go on to smaller radii and scales on the same core."""
        finer = self._finer(problem, ball)
        return None if finer is None else self._descend(problem, finer, finer.core_gap())

    def _descend(
        self, problem: CoreProblem, ball: FixedRadiusState, gap: float
    ) -> FixedRadiusState:
        """Go through radii and scales until the core rows are no longer what is wrong."""
        most = ball.n_updates + self.effort // len(problem.sign)
        while ball.settled and ball.n_updates < most and not problem.deadline.passed:
            enough = self.finished(ball) if self.epsilon else ball.core_gap() <= _SHARE * gap
            finer = None if enough else self._finer(problem, ball)
            if finer is None:
                break
            ball = finer
        return ball

    def _finer(self, problem: CoreProblem, ball: FixedRadiusState) -> FixedRadiusState | None:
        """Take the smaller radius of Algorithm 4 if there is one, else halve ε, else stop."""
        eps, radius2 = ball.current_eps, ball.fixed_radius2
        if not ball.settled:
            return self._settle(problem, ball)
        if self._shrinks(ball):
            smaller = (1 + eps) ** 2 * radius2 - ball.augmented2
            return self._settle(problem, self._with_radius(ball, smaller, problem.eta))
        if eps <= self.epsilon or eps < 1e-15:
            return None
        return self._settle(problem, replace(ball, current_eps=max(self.epsilon, 0.5 * eps)))

    def _with_radius(self, ball: FixedRadiusState, radius2: float, eta: float) -> FixedRadiusState:
        augmented2 = max(0.0, radius2 - ball.radius2(eta))
        n_radii = ball.n_radii + 1
        return replace(ball, fixed_radius2=radius2, augmented2=augmented2, n_radii=n_radii)

    def _settle(self, problem: CoreProblem, ball: FixedRadiusState) -> FixedRadiusState:
        """Run Algorithm 2 on the core rows at the current radius and ε."""
        m = len(problem.sign)
        weight = padded(ball.alpha, m)
        weight /= weight.sum()
        reach2 = (1.0 + ball.current_eps) ** 2 * ball.fixed_radius2
        augmented2, updates, effort, settled = ball.augmented2, 0, self.effort, False
        while True:
            point = MarginDual.at(problem.K, problem.sign, problem.ridge, weight)
            product = 1.0 - point.residual
            norm2 = float(weight @ product)
            # distance² = η + ‖c‖² + augmented² − 2 (Qλ)_i
            lowest = 0.5 * (problem.eta + norm2 + augmented2 - reach2)
            settled = not bool((product < lowest).any())
            if settled or effort <= 0 or (updates and problem.deadline.passed):
                break
            if norm2 <= 0:
                raise self.no_ball(problem.eta)
            index = _working_set(weight, product, lowest)
            center = np.array([norm2, augmented2])
            limit = max(1000, self.effort // len(index))
            moved = _pull(problem, index, weight, product, center, ball, limit)
            augmented2 = float(center[1])
            updates += moved
            effort -= (moved + 1) * len(index) + _ROUND
        # By Proposition 1 each move lowers the squared distance from the centre that is sought by
        # ε²r² at the least, and that distance is below 2r.
        if effort <= 0 and not settled and updates > 4.0 / ball.current_eps**2:
            raise self.no_ball(problem.eta)
        # The best multiple of the centre in the SVM's dual is 1/‖c‖², (35) of MMDA-CVM.
        point.move_to(weight / norm2)
        return FixedRadiusState(
            threshold=1.0 - lowest / norm2,
            augmented2=augmented2,
            fixed_radius2=ball.fixed_radius2,
            current_eps=ball.current_eps,
            n_updates=ball.n_updates + updates,
            settled=settled,
            n_radii=ball.n_radii,
            **ball_facts(point),
        )

    def no_ball(self, eta: float) -> ValueError:
        """Return what to raise where no ball of the radius holds the rows."""
        if self.radius2 is None or self.radius2 >= eta:
            return ValueError(_NO_BALL)
        return ValueError(
            f"radius={np.sqrt(self.radius2):g} is smaller than that of any ball around the rows; "
            f"give a larger one, or None for {np.sqrt(eta):g}, which always is enough."
        )

    def finished(self, ball: FixedRadiusState) -> bool:
        """Return whether ε is reached and Algorithm 4 finds no smaller ball."""
        return ball.settled and ball.current_eps <= self.epsilon and not self._shrinks(ball)

    def _shrinks(self, ball: FixedRadiusState) -> bool:
        # Step 3 of Algorithm 4. The radii come closer and closer to its bound without ever passing
        # it, so the last percent is left to the next ε.
        eps, radius2 = ball.current_eps, ball.fixed_radius2
        if self.max_radii is not None and ball.n_radii >= self.max_radii:
            return False
        return self.shrink and ball.augmented2 > 1.01 * (2 * eps + eps * eps) * radius2


def _working_set(weight: Vector, product: Vector, lowest: float) -> NDArray[np.intp]:
    """Return the rows in the centre and as many of the furthest that lie outside, in order."""
    inside = np.flatnonzero(weight)
    outside = np.flatnonzero((weight <= 0) & (product < lowest))
    room = max(_LEAST, len(inside))
    if len(outside) > room:
        outside = outside[np.argpartition(product[outside], room - 1)[:room]]
    index = np.union1d(inside, outside)
    # A matrix of their own would not be much smaller than K.
    return index if 2 * len(index) <= len(weight) else np.arange(len(weight))


def _pull(
    problem: CoreProblem,
    index: NDArray[np.intp],
    weight: Vector,
    product: Vector,
    center: Vector,
    ball: FixedRadiusState,
    limit: int,
) -> int:
    """Run Algorithm 2 on some rows; return the updates, `limit` at the most.

    It changes `weight`, and `center`: ‖c‖² and the square of the extra coordinate.
    """
    whole = len(index) == len(weight)
    K = problem.K if whole else margin_loops.gather(problem.K, index)
    ridge = problem.ridge[index]
    some = weight[index]
    updates = pair_loops.pull(
        K,
        problem.sign[index],
        ridge,
        np.diagonal(K).astype(np.float64) + 1.0 + ridge,
        some,
        product[index],
        center,
        problem.eta,
        ball.fixed_radius2,
        (1.0 + ball.current_eps) ** 2 * ball.fixed_radius2,
        limit,
    )
    weight[:] = 0.0
    weight[index] = some
    weight /= weight.sum()
    return int(updates)
