"""The marginal function of the L1-SVM: the paper's, with hinge loss and a free bias.

SLMC (28)–(30), for all columns of a table of labels at once:

    W(Z)  =  Σ_p min over β, b of  ½ βᵀK_zβ + C Σ_i s_i max(0, 1 − y_ip (ψ_z(x_i)ᵀβ + b)).

Its dual (37)–(39) is that of an SVM with the kernel (40), the linear kernel of the whitened
features F of (41). With its solution α, (45) is

    β  =  K_z⁻¹ K_zx Y α  =  T (Fᵀ Y α),

and the gradient is (46), with r = Yα. α is kept: it starts the next solution.

How: rows are many and the span has few dimensions, so the dual is solved from the primal side. A
proximal step on the dual from α',

    max over 0 ≤ α ≤ Cs, yᵀα = 0 of  Σα − ½‖FᵀYα‖² − ½ δ Σ (α_i − α'_i)² / (C s_i),

has as its own dual a smooth problem in v and b, the hinge with a rounded corner of width δ, which
Newton's method (``qp.newton``) solves exactly: its matrix has only the rows near the margin. The
steps end at the optimum itself, not near it, the sooner the smaller δ is; from a solution nearby a
few steps do. Where rounding ends them too early, the solver of ``qp.hinge_dual`` takes over.

W is differentiable (Corollary 2), but its gradient bends where a row reaches a bound of (39).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.loop import Deadline, relative_gap
from widemargin.problem import Problem
from widemargin.qp.hinge_dual import solve_hinge_dual
from widemargin.qp.newton import DenseFeatures, Features, Newton, Piecewise
from widemargin.sparse.marginal import Marginal, VectorSpan
from widemargin.threads import ordered_map

# The width δ of the corner at the first step, without a start.
_COLD = 2.0
# And with one.
_WARM = 1.0
# How much smaller it gets from step to step.
_SHRINK = 0.3
# How small: below, rounding of the scores would show in α.
_LEAST = 1e-7
# Proximal steps at the most.
_MOST_STEPS = 40
# How exactly rows on the margin must be there.
_TOL = 1e-11
# How exactly they can be.
_ROUNDING = 1e-14
# The gap above which the other solver is asked: a gradient of W is as good as the root of the gap.
_GAP = 1e-10
# Numbers in the features below which a problem is not worth a thread.
_WORTH_A_THREAD = 50_000


class Hinge(VectorSpan):
    """W(Z) and ∇W(Z) of the L1-SVM for several problems.

    Parameters
    ----------
    problem : Problem
        Rows with labels and weights, and a kernel with a gradient. In every problem both labels
        must occur.
    deadline : Deadline, default=None
        When to leave it at the steps that are done.
    """

    def __init__(self, problem: Problem, deadline: Deadline | None = None) -> None:
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
            upper = problem.C[p] * problem.weight
            machine = _Machine(features, problem.sign(p), upper, self.deadline)
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
            gradient=self.gradient(Z, beta, problem.signs() * alpha, space=space),
            beta=beta,
            intercept=found[-1],
            dual=sum(each.dual for each in solved),
            alpha=alpha,
        )


class _Solution(NamedTuple):
    """A solution of one problem: α, v with the bias behind it, and primal and dual."""

    alpha: Vector
    x: Vector
    primal: float
    dual: float


@dataclass(frozen=True)
class _Machine:
    """The machine of one problem on features with a 1 behind them."""

    features: Features
    sign: Vector
    upper: Vector
    deadline: Deadline

    def solved(self, alpha: Vector | None, bias: float) -> _Solution:
        """Return the solution, from dual variables and a bias to start with if there are any."""
        found = self._proximal(alpha, bias)
        if relative_gap(found.primal, found.dual) <= _GAP or self.deadline.passed:
            return found
        if not isinstance(self.features, DenseFeatures):
            # There is no room for the other solver.
            return found
        F = np.ascontiguousarray(self.features.G[:, :-1])
        other = solve_hinge_dual(
            F,
            self.sign,
            self.upper,
            start=found.alpha,
            tol=1e-12,
            factored=True,
            deadline=self.deadline,
        )
        x = np.append((self.sign * other.alpha) @ F, other.intercept)
        return _Solution(other.alpha, x, other.primal, other.dual)

    def _proximal(self, start: Vector | None, bias: float) -> _Solution:
        """Take proximal steps until the rows on the margin are exactly there."""
        upper, size = self.upper, self.features.shape[1]
        width = _COLD if start is None else _WARM
        alpha = np.zeros(len(upper)) if start is None else np.clip(start, 0.0, upper)
        x = self._sums(alpha)
        x[-1] = bias
        scores = self._scores(x)
        diagonal, linear = np.append(np.ones(size - 1), 0.0), np.zeros(size)
        apart = np.inf
        for _ in range(_MOST_STEPS):
            problem = Piecewise(self.sign, upper / width, alpha, upper, diagonal, linear)
            (point,) = Newton(self.features, [problem], [(x, scores)]).run(self.deadline)
            x, scores = point.x, point.scores
            alpha = problem.alpha(scores)
            between = (alpha > 0) & (alpha < upper)
            slack = 1.0 - (self.sign * scores)[between]
            before, apart = apart, float(np.abs(slack).max(initial=0.0))
            # Below the first number only rounding is left, and perhaps already above it.
            if apart <= _ROUNDING or (apart <= _TOL and apart > 0.5 * before):
                break
            if self.deadline.passed:
                break
            exact = self._on_margin(alpha)
            if exact is not None:
                alpha, x = exact
                break
            width = max(_SHRINK * width, _LEAST)
        return self._valued(alpha, x)

    def _on_margin(self, near: Vector) -> tuple[Vector, Vector] | None:
        """Return the optimum, α and (v, b), if the rows between bounds at `near` are so there too.

        These rows are then exactly on the margin and the others are where they are, which is a
        linear system for the former's α and the bias.
        """
        sign, upper = self.sign, self.upper
        free = np.flatnonzero((near > 0) & (near < upper))
        size = len(free)
        if not 0 < size <= self.features.shape[1]:
            return None
        alpha = np.where(near < upper, 0.0, upper)
        x = self._sums(alpha)
        rows = self.features.block(free)[:, :-1]
        matrix = np.ones((size + 1, size + 1))
        matrix[:size, :size] = rows @ rows.T
        matrix[size, size] = 0.0
        try:
            solution = np.linalg.solve(matrix, np.append(sign[free] - rows @ x[:-1], -x[-1]))
        except np.linalg.LinAlgError:
            return None
        alpha[free] = sign[free] * solution[:size]
        if not ((alpha >= 0.0) & (alpha <= upper)).all():
            return None
        x[:-1] += solution[:size] @ rows
        x[-1] = solution[size]
        slack = 1.0 - sign * self._scores(x)
        slack[free] = 0.0
        inside = alpha >= upper
        right = np.where(inside, slack >= -_TOL, slack <= _TOL) | (upper == 0.0)
        return (alpha, x) if right.all() else None

    def _valued(self, alpha: Vector, x: Vector) -> _Solution:
        """Return a solution with the values of both problems."""
        slack = np.maximum(0.0, 1.0 - self.sign * self._scores(x))
        primal = 0.5 * float(x[:-1] @ x[:-1]) + float(self.upper @ slack)
        w = self._sums(alpha)
        # The last number is yᵀα, zero but for rounding, which the bias turns into a loss.
        dual = float(alpha.sum()) - 0.5 * float(w[:-1] @ w[:-1]) - abs(float(x[-1] * w[-1]))
        return _Solution(alpha, x, primal, dual)

    def _scores(self, x: Vector) -> Vector:
        scores: Vector = self.features.products(x[None])[0]
        return scores

    def _sums(self, alpha: Vector) -> Vector:
        sums: Vector = self.features.sums((self.sign * alpha)[None])[0]
        return sums
