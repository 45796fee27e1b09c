"""The marginal function of losses in linear pieces, with a free bias.

SLMC (28)–(30) for the hinge, and the same method for the machines that the paper names as future
work, ε-insensitive and quantile regression and the ν-one-class machine: all are problems on
intervals (``intervals``), several of them at once,

    W(Z)  =  Σ_p min over β, b of  ½ βᵀK_zβ + g b + Σ_i max(0, q_i (l_i − f_i), p_i (f_i − h_i)),

f_i = ψ_z(x_i)ᵀβ + b. The dual, (37)–(39) for the hinge, is one with the kernel (40), the linear
kernel of the whitened features F of (41):

    max over −p ≤ α ≤ q, Σα = g of  Σ (l α⁺ − h α⁻) − ½‖Fᵀα‖².

With its solution α, (45) is β = T (Fᵀα), and the gradient is (46), with r = α. α is kept: it starts
the next solution.

How: rows are many and the span has few dimensions, so the dual is solved from the primal side. A
proximal step on the dual from α', which takes ½ δ Σ (α_i − α'_i)² / c_i from it, c being the larger
slope of a row, has as its own dual a smooth problem in v and b, the loss with corners rounded over
a width δ. Newton's method (``qp.newton``) solves it exactly: its matrix has only the rows near the
corners. The steps end at the optimum itself, not near it, the sooner the smaller δ is; from a
solution nearby a few steps do. Where rounding ends them too early, the solver of
``qp.interval_dual`` takes over.

W is differentiable where the dual has one solution (Corollary 2 for the hinge), but its gradient
bends where a row reaches a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.intervals import IntervalProblem
from widemargin.loop import Deadline, signed_gap
from widemargin.qp.interval_dual import best_bias, solve_interval_dual
from widemargin.qp.newton import Features, Newton, Piecewise
from widemargin.span.smoothed import Smoothed, column
from widemargin.sparse.marginal import Marginal, VectorSpan
from widemargin.threads import ordered_map

# The width δ of the corners at the first step, without a start, in units of the targets.
_COLD = 2.0
# And with one.
_WARM = 1.0
# How much smaller it gets from step to step.
_SHRINK = 0.3
# How small: below, rounding of the scores would show in α.
_LEAST = 1e-7
# Proximal steps at the most.
_MOST_STEPS = 40
# How exactly rows on a corner must be there.
_TOL = 1e-11
# How exactly they can be.
_ROUNDING = 1e-14
# Features below this, of vectors far away from all rows, have squares that are no numbers.
_LEAST_FEATURE = 1e-100
# The gap above which the other solver is asked: a gradient of W is as good as the root of the gap.
_GAP = 1e-10
# Optima of this size are zero: vectors are where no row has a kernel value.
_NOTHING = 1e-100
# Numbers in the features below which a problem is not worth a thread.
_WORTH_A_THREAD = 50_000


class Intervals(VectorSpan):
    """W(Z) and ∇W(Z) of losses in linear pieces for several problems.

    Parameters
    ----------
    problem : IntervalProblem
        Rows with intervals and slopes, and a kernel with a gradient.
    deadline : Deadline, default=None
        When to leave it at the steps that are done.
    """

    def __init__(self, problem: IntervalProblem, deadline: Deadline | None = None) -> None:
        super().__init__(problem.rows, problem.kernel)
        self.problem = problem
        self.deadline = Deadline() if deadline is None else deadline

    def __call__(self, Z: Matrix, start: Marginal | None = None) -> Marginal:
        """Return W and ∇W at Z; dual variables belong to rows, and serve vectors elsewhere too."""
        problem = self.problem
        space = self.whitened(Z, with_one=True)
        # Problems run beside each other, each in one thread.
        features = space.features.single_threaded()

        def solve(p: int) -> _Solution:
            machine = _Machine.of(problem, p, features, self.deadline)
            if start is None or start.alpha is None:
                return machine.solved(None, 0.0)
            return machine.solved(start.alpha[:, p], float(start.intercept[p]))

        n, size = features.shape
        threads = problem.threads if n * size >= _WORTH_A_THREAD else 1
        interrupt = self.deadline.interrupt
        solved = list(ordered_map(solve, range(problem.n_problems), threads, interrupt))
        alpha = np.stack([each.alpha for each in solved], axis=1)
        found = np.stack([each.x for each in solved], axis=1)
        beta = space.root @ found[:-1]
        return Marginal(
            value=sum(each.primal for each in solved),
            gradient=self.gradient(Z, beta, alpha, space=space),
            beta=beta,
            intercept=found[-1],
            dual=sum(each.dual for each in solved),
            alpha=alpha,
        )

    def losses(self, scores: Matrix) -> Vector:
        """Return what rows pay."""
        problem = self.problem
        under = np.maximum(0.0, np.where(problem.below > 0, problem.low - scores, 0.0))
        over = np.maximum(0.0, np.where(problem.above > 0, scores - problem.high, 0.0))
        losses: Vector = (problem.below * under + problem.above * over).sum(axis=1)
        return losses


class _Solution(NamedTuple):
    """A solution of one problem: α, v with the bias behind it, and primal and dual."""

    alpha: Vector
    x: Vector
    primal: float
    dual: float


@dataclass(frozen=True)
class _Machine:
    """The machine of one problem on features with a 1 behind them.

    Attributes
    ----------
    features : Features
        The rows.
    loss : Smoothed
        Ends and slopes of the rows, and g; its corners are not rounded here.
    target : ndarray of shape (n,)
        The middles of the intervals.
    width : ndarray of shape (n,) or None
        Half their widths; None where all are points.
    deadline : Deadline
        When to leave it at the steps that are done.
    """

    features: Features
    loss: Smoothed
    target: Vector
    width: Vector | None
    deadline: Deadline

    @classmethod
    def of(
        cls, problem: IntervalProblem, p: int, features: Features, deadline: Deadline
    ) -> _Machine:
        """Return one of the problems."""
        ends = (problem.low, problem.high, problem.below, problem.above)
        loss = column(*ends, float(problem.pull[p]), 1.0, p)
        width = 0.5 * (loss.high - loss.low)
        target = 0.5 * (loss.low + loss.high)
        return cls(features, loss, target, width if width.any() else None, deadline)

    @property
    def lower(self) -> Vector:
        """Lower bounds of α."""
        return -self.loss.above

    @property
    def upper(self) -> Vector:
        """Upper bounds of α."""
        return self.loss.below

    @property
    def pull(self) -> float:
        """What α adds up to."""
        return self.loss.pull

    def solved(self, alpha: Vector | None, bias: float) -> _Solution:
        """Return the solution, from dual variables and a bias to start with if there are any."""
        found = self._proximal(alpha, bias)
        if signed_gap(found.primal, found.dual) <= _GAP or self._is_nothing(found):
            return found
        if self.deadline.passed:
            return found
        whole = self.features.whole()
        if whole is None:
            # There is no room for the other solver.
            return found
        F = np.ascontiguousarray(whole[:, :-1])
        if 0.0 < float(np.abs(F).max(initial=0.0)) < _LEAST_FEATURE:
            return found
        other = solve_interval_dual(
            F,
            self.loss.low,
            self.loss.high,
            self.loss.below,
            self.loss.above,
            pull=self.pull,
            start=found.alpha,
            tol=1e-12,
            factored=True,
            deadline=self.deadline,
        )
        if signed_gap(other.primal, other.dual) >= signed_gap(found.primal, found.dual):
            return found
        x = np.append(other.beta @ F, other.intercept)
        return _Solution(other.beta, x, other.primal, other.dual)

    def _is_nothing(self, found: _Solution) -> bool:
        """Return whether the optimum is zero but for rounding: what a guess is worth tells."""
        guess = self._sums(self._guess())[:-1]
        worth = max(abs(found.primal), abs(found.dual), 0.5 * float(guess @ guess))
        return found.primal - found.dual <= _GAP * worth or worth <= _NOTHING

    def _proximal(self, start: Vector | None, bias: float) -> _Solution:
        """Take proximal steps until the rows on a corner are exactly there."""
        alpha = self._guess() if start is None else np.clip(start, self.lower, self.upper)
        x = self._sums(alpha)
        x[-1] = 0.0
        if start is None and self.pull:
            bias = self._best_bias(self._scores(x))
        x[-1] = bias
        scores = self._scores(x)
        unit, size = self._units(scores)
        width, least = unit * (_COLD if start is None else _WARM), _LEAST * size
        diagonal, linear = np.ones(len(x)), np.zeros(len(x))
        diagonal[-1], linear[-1] = 0.0, -self.pull
        slope = np.maximum(-self.lower, self.upper)
        apart = np.inf
        for _ in range(_MOST_STEPS):
            bounds = (self.lower, self.upper, diagonal, linear)
            problem = Piecewise(self.target, slope / width, alpha, *bounds, self.width)
            (point,) = Newton(self.features, [problem], [(x, scores)]).run(self.deadline)
            x, scores = point.x, point.scores
            alpha = problem.pull(scores)
            free = self._free(alpha)
            before, apart = apart, self._apart(alpha, scores, free)
            # Below the first number only rounding is left, and perhaps already above it.
            if apart <= _ROUNDING * size or (apart <= _TOL * size and apart > 0.5 * before):
                break
            if self.deadline.passed:
                break
            exact = self._on_corners(alpha, free, _TOL * size)
            if exact is not None:
                alpha, x = exact
                break
            width = max(_SHRINK * width, least)
        return self._valued(alpha, x)

    def _guess(self) -> Vector:
        """Return a point whose sum is right, the same share of each slope."""
        side = self.upper if self.pull > 0 else self.lower
        total = float(side.sum())
        guess: Vector = side * (self.pull / total if total else 0.0)
        return guess

    def _units(self, scores: Vector) -> tuple[float, float]:
        """Return the distances that matter, and the size of numbers, which tells their rounding."""
        size = float(np.abs(self.target).max(initial=0.0))
        if size > 0.0:
            return size, size
        # All want the same: what matters is how far rows are from each other.
        size = float(np.abs(scores).max(initial=0.0))
        return float(np.ptp(scores)) or size or 1.0, size or 1.0

    def _free(self, alpha: Vector) -> IndexArray:
        """Return the rows whose α is between bounds: they are on a corner of their loss."""
        between = (alpha > self.lower) & (alpha < self.upper)
        return np.flatnonzero(between if self.width is None else between & (alpha != 0.0))

    def _corner(self, alpha: Vector, free: IndexArray) -> Vector:
        """Return where the scores of these rows should be."""
        if self.width is None:
            return self.target[free]
        corner: Vector = self.target[free] - np.sign(alpha[free]) * self.width[free]
        return corner

    def _apart(self, alpha: Vector, scores: Vector, free: IndexArray) -> float:
        """Return how far rows are from their corners at the most."""
        return float(np.abs(self._corner(alpha, free) - scores[free]).max(initial=0.0))

    def _on_corners(
        self, near: Vector, free: IndexArray, tol: float
    ) -> tuple[Vector, Vector] | None:
        """Return the optimum, α and (v, b), if the rows between bounds at `near` are so there too.

        These rows are then exactly on their corners and the others are where they are, which is a
        linear system for the former's α and the bias.
        """
        size = len(free)
        if not 0 < size <= self.features.shape[1]:
            return None
        alpha = near.copy()
        alpha[free] = 0.0
        x = self._sums(alpha)
        rows = self.features.here(free)[:, :-1]
        matrix = np.ones((size + 1, size + 1))
        matrix[:size, :size] = rows @ rows.T
        matrix[size, size] = 0.0
        right = np.append(self._corner(near, free) - rows @ x[:-1], self.pull - x[-1])
        try:
            solution = np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:
            return None
        alpha[free] = solution[:size]
        inside = (alpha >= self.lower) & (alpha <= self.upper)
        same_side = self.width is None or (alpha[free] * near[free] >= 0.0).all()
        if not (inside.all() and same_side):
            return None
        x[:-1] += solution[:size] @ rows
        x[-1] = solution[size]
        return (alpha, x) if self._is_best(alpha, free, x, tol) else None

    def _is_best(self, alpha: Vector, free: IndexArray, x: Vector, tol: float) -> bool:
        """Return whether the rows that are not free want to be where they are."""
        apart = self.target - self._scores(x)
        width = 0.0 if self.width is None else self.width
        good = np.abs(apart) <= width + tol
        good |= (alpha >= self.upper) & (apart >= width - tol)
        good |= (alpha <= self.lower) & (apart <= tol - width)
        good |= self.lower == self.upper
        good[free] = True
        return bool(good.all())

    def _valued(self, alpha: Vector, x: Vector) -> _Solution:
        """Return a solution with the values of both problems."""
        scores = self._scores(x)
        if not len(self._free(alpha)):
            # No row says where the bias is: those of an interval are as good as each other.
            bias = self._best_bias(scores - x[-1])
            scores, x = scores + (bias - x[-1]), np.append(x[:-1], bias)
        primal = 0.5 * float(x[:-1] @ x[:-1]) + self.pull * float(x[-1]) + self.loss.loss(scores)
        # Where steps were cut short, the sum is not right, and the point no bound.
        feasible = self.loss.feasible(alpha)
        w = self._sums(feasible)
        # What is left of it is rounding, which the bias turns into a loss.
        missing = abs(float(x[-1]) * (float(w[-1]) - self.pull))
        dual = self.loss.earned(feasible) - 0.5 * float(w[:-1] @ w[:-1]) - missing
        return _Solution(alpha, x, primal, dual)

    def _best_bias(self, scores: Vector) -> float:
        """Return the bias of least loss for scores without one."""
        loss = self.loss
        return best_bias(scores, loss.low, loss.high, loss.below, loss.above, self.pull)

    def _scores(self, x: Vector) -> Vector:
        scores: Vector = self.features.products(x[None])[0]
        return scores

    def _sums(self, alpha: Vector) -> Vector:
        sums: Vector = self.features.sums(alpha[None])[0]
        return sums
