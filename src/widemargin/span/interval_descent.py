"""Losses on intervals for all rows inside a span, by Newton's method on rounded kinks.

    min_β,b  ½ βᵀK_zβ + g b + Σ_i max(0, q_i (l_i − f_i), p_i (f_i − h_i)),   f_i = k_z(x_i)ᵀβ + b.

The kinks are rounded on zones of width δ (``smoothed``), and δ falls as the rounded problem is
solved. Outside the zones the loss has no curvature, so that a Newton matrix is a sum over the rows
in the zones; where they are many, a sample of them stands for all. A step is one pass over the
kernel values for the gradient and one for the direction, an exact line search, and an exact bias:
the slopes then add up to g, so they are feasible for the dual

    max Σ (l_i α_i⁺ − h_i α_i⁻) − ½ ‖Σ α_i φ_z(x_i)‖²,   −p ≤ α ≤ q,   Σα = g,

and every step knows its true gap: that of the losses with their kinks. Problems share each pass.
The best dual point is feasible whatever the precision of kernel values, so one pass in float64 at
the end states primal and dual without their rounding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Matrix, Values, Vector
from widemargin.certificate import Certificate
from widemargin.intervals import IntervalProblem
from widemargin.kernels.kernel import check_finite
from widemargin.loop import Ended, Stop, signed_gap
from widemargin.rows import rows_per_block
from widemargin.span.basis import Basis
from widemargin.span.smoothed import Smoothed, column
from widemargin.span.values import KernelValues, product
from widemargin.threads import scratch

# Rows in multiples of the vectors that stand for all in a Newton matrix, and at the least.
_GRAM_ROWS = 8
_LEAST_GRAM = 4096
# The zones shrink by this when the gradient's part of the gap is this share of the kinks' part.
_SHRINK = 0.3
_SOLVED_SHARE = 1.0
# Steps without a gain after which there is nothing to gain at this precision.
_TIRED = 100


@dataclass(frozen=True)
class IntervalState:
    """Where a fit stands.

    Attributes
    ----------
    coef : ndarray of shape (r, n_problems)
        Coefficients of the vectors.
    bias : ndarray of shape (n_problems,)
        Biases.
    scores : ndarray of shape (n, n_problems)
        Values at the rows, without the biases.
    gradient : ndarray of shape (r, n_problems)
        Derivative of the objectives with rounded kinks by `coef`.
    delta : ndarray of shape (n_problems,)
        Widths of the zones.
    primal, dual : ndarray of shape (n_problems,)
        Objectives, and the best lower bounds so far.
    rounded : ndarray of shape (n_problems,)
        The part of the gap that is due to the rounded kinks.
    steep : ndarray of shape (n_problems,)
        The rest of it, half the squared length of the gradient.
    alpha : ndarray of shape (n, n_problems)
        The points of the dual that have these bounds.
    tired : int
        Steps in a row that gained nothing.
    """

    coef: Matrix
    bias: Vector
    scores: Matrix
    gradient: Matrix
    delta: Vector
    primal: Vector
    dual: Vector
    rounded: Vector
    steep: Vector
    alpha: Matrix
    tired: int = 0


class IntervalFit:
    """Fit problems in the span of vectors: a solver for ``loop.run``.

    Parameters
    ----------
    problem : IntervalProblem
        What is to be fitted.
    basis : Basis
        The vectors.
    values : KernelValues
        Their kernel values.
    tol : float
        Relative gap to stop at, in every problem.
    warm : IntervalState or None
        A solution for other rows, to start from.
    exact : bool
        Whether to state primal and dual in float64 at the end, if the values are not.
    """

    def __init__(
        self,
        problem: IntervalProblem,
        basis: Basis,
        values: KernelValues,
        tol: float,
        warm: IntervalState | None,
        exact: bool = False,
    ) -> None:
        self.problem, self.basis, self.tol, self.warm = problem, basis, tol, warm
        self.values, self.exact = values, exact and values.dtype != np.float64

    # The methods of a solver.

    def start(self) -> IntervalState:
        """Return the mean of the rows as far as biases have a price, or an earlier solution."""
        problem, n_problems = self.problem, self.problem.n_problems
        if self.warm is not None:
            # Vectors that have joined since have no coefficients yet.
            more = np.zeros((self.basis.size - len(self.warm.coef), n_problems))
            coef = np.vstack([self.warm.coef, more])
            # Somewhat wider: the rows or the vectors are others.
            return self._looked(coef, self.warm.bias, self._scores(coef), 4.0 * self.warm.delta)
        sides = np.where(problem.pull >= 0, problem.below, problem.above)
        total = sides.sum(axis=0)
        share = np.divide(np.abs(problem.pull), total, out=np.zeros(n_problems), where=total > 0)
        alpha = np.copysign(sides * share, problem.pull)
        pull = self._pull(alpha)
        coef = self.basis.coefficients(self.basis.whitened(pull))
        scores = self._scores(coef)
        delta = np.ones(n_problems)
        for p in range(n_problems):
            ends = self._column(p, 1.0)
            spread = float(np.std(0.5 * (ends.low + ends.high) - scores[:, p]))
            delta[p] = spread if spread > 0 else 1.0
        return self._looked(coef, np.zeros(n_problems), scores, delta)

    def step(self, state: IntervalState) -> IntervalState:
        """Take a Newton step in every problem that is not solved, or shrink its zones."""
        live = [p for p in range(self.problem.n_problems) if not self._done(state, p)]
        coef, bias, delta = state.coef.copy(), state.bias.copy(), state.delta.copy()
        direction, moving, narrower = np.zeros_like(coef), np.zeros(len(bias)), delta.copy()
        for p in live:
            direction[:, p], moving[p] = self._newton(state, p)
            # Solved but for the rounded kinks: the next step is one with narrower zones.
            if state.steep[p] <= _SOLVED_SHARE * state.rounded[p]:
                narrower[p] *= _SHRINK
        moved = self._scores(direction)
        metric = self.basis.gram @ direction
        for p in live:
            along = moved[:, p] + moving[p]
            slope = float(metric[:, p] @ coef[:, p]) + float(self.problem.pull[p]) * moving[p]
            bend = float(metric[:, p] @ direction[:, p])
            loss = self._column(p, float(delta[p]))
            length = loss.step(state.scores[:, p] + bias[p], along, slope, bend)
            coef[:, p] += length * direction[:, p]
            bias[p] += length * moving[p]
            moved[:, p] *= length
        after = self._looked(coef, bias, state.scores + moved, narrower)
        kept = state.dual > after.dual
        dual = np.where(kept, state.dual, after.dual)
        after.alpha[:, kept] = state.alpha[:, kept]
        # Narrower zones are progress, whose fruits take some steps.
        better = (after.primal - dual).sum() < 0.999 * (state.primal - state.dual).sum()
        better = better or bool((narrower < delta).any())
        return replace(after, dual=dual, tired=0 if better else state.tired + 1)

    def certificate(self, state: IntervalState) -> Certificate:
        """Return primal and dual of all problems together."""
        primal, dual = float(state.primal.sum()), float(state.dual.sum())
        return Certificate(
            primal,
            min(primal, dual),
            gap=signed_gap(primal, dual),
            scope="span",
            n_vectors=self.basis.size,
            n_passes=self.values.n_passes,
            n_kernel=self.values.n_kernel,
        )

    def stopped(self, state: IntervalState) -> Stop | None:
        """Return whether all gaps are met."""
        if self.solved(state):
            return Stop(Ended.SOLVED, f"gap within {self.tol:g}")
        if state.tired >= _TIRED:
            return Stop(Ended.PRECISION, "nothing left to gain at this precision")
        return None

    def finish(self, state: IntervalState) -> IntervalState:
        """Return the state with what its machine and its dual point are worth in float64."""
        if not self.exact:
            return state
        n_problems = self.problem.n_problems
        fine = np.dtype(np.float64)
        values = KernelValues(
            self.problem.rows, self.problem.kernel, fine, 0, self.basis.size, n_problems
        )
        values.add(self.basis.vectors.values)
        scores, pull = np.empty_like(state.scores), np.zeros_like(state.coef)
        for part in values.scan(_Both(state.coef, scores, state.alpha), 0, self.problem.n):
            pull += part
        self.values.n_kernel += values.n_kernel
        self.values.n_passes += values.n_passes
        norm2 = (state.coef * (self.basis.gram @ state.coef)).sum(axis=0)
        primal, dual = np.empty((2, n_problems))
        for p in range(n_problems):
            loss = self._column(p, 1.0)
            lost = loss.loss(scores[:, p] + state.bias[p])
            primal[p] = 0.5 * max(0.0, norm2[p]) + loss.pull * state.bias[p] + lost
            dual[p] = loss.earned(state.alpha[:, p])
        dual -= 0.5 * (self.basis.whitened(pull) ** 2).sum(axis=0)
        return replace(state, scores=scores, primal=primal, dual=dual)

    def solved(self, state: IntervalState) -> bool:
        """Return whether the gap of every problem is met."""
        return all(self._done(state, p) for p in range(self.problem.n_problems))

    # Its parts.

    def _done(self, state: IntervalState, p: int) -> bool:
        return signed_gap(float(state.primal[p]), float(state.dual[p])) <= self.tol

    def _column(self, p: int, delta: float) -> Smoothed:
        all_rows = self.problem
        ends = all_rows.low, all_rows.high, all_rows.below, all_rows.above
        return column(*ends, float(all_rows.pull[p]), delta, p)

    def _scores(self, coef: Matrix) -> Matrix:
        scores = np.empty((self.problem.n, coef.shape[1]))
        visit = _Scores(coef.astype(self.values.dtype), scores)
        for _ in self.values.scan(visit, 0, self.problem.n):
            pass
        return scores

    def _pull(self, alpha: Matrix) -> Matrix:
        visit = _Pull(alpha.astype(self.values.dtype))
        total = np.zeros((self.basis.size, alpha.shape[1]))
        for part in self.values.scan(visit, 0, self.problem.n):
            total += part
        check_finite(self.problem.kernel, total)
        return total

    def _looked(self, coef: Matrix, bias: Vector, scores: Matrix, delta: Vector) -> IntervalState:
        """Return the state of coefficients: best biases, gradients, objectives and bounds."""
        n_problems = self.problem.n_problems
        bias, alpha = bias.copy(), np.empty_like(scores)
        primal, earned, rounded = np.zeros((3, n_problems))
        metric = self.basis.gram @ coef
        for p in range(n_problems):
            loss = self._column(p, float(delta[p]))
            bias[p] = loss.bias(scores[:, p], float(bias[p]))
            values = scores[:, p] + bias[p]
            alpha[:, p] = loss.feasible(loss.beta(values))
            norm2 = max(0.0, float(coef[:, p] @ metric[:, p]))
            lost = loss.loss(values)
            primal[p] = 0.5 * norm2 + loss.pull * bias[p] + lost
            earned[p] = loss.earned(alpha[:, p])
            rounded[p] = max(0.0, lost - earned[p] + float(alpha[:, p] @ values))
        pull = self._pull(alpha)
        dual = earned - 0.5 * (self.basis.whitened(pull) ** 2).sum(axis=0)
        gradient = metric - pull
        steep = 0.5 * (self.basis.whitened(gradient) ** 2).sum(axis=0)
        return IntervalState(
            coef, bias, scores, gradient, delta, primal, dual, rounded, steep, alpha
        )

    def _newton(self, state: IntervalState, p: int) -> tuple[Vector, float]:
        """Return the step of coefficients and bias."""
        loss = self._column(p, float(state.delta[p]))
        weight = loss.curvature(state.scores[:, p] + state.bias[p])
        index = np.flatnonzero(weight)
        most = max(_LEAST_GRAM, _GRAM_ROWS * self.basis.size)
        # Rows are in random order: the first ones are a sample.
        used = index[:most]
        r = self.basis.size
        matrix = np.zeros((r + 1, r + 1))
        if len(used):
            scale = float(weight[index].sum() / weight[used].sum())
            matrix = self._gram(used, scale * weight[used])
        bend = float(matrix[r, r])
        if bend > 0:
            matrix[:r, :r] -= np.outer(matrix[:r, r], matrix[r, :r] / bend)
        across = matrix[:r, r].copy()
        # The bias is gone from it; a 1 in its corner is what the basis adds.
        matrix[r, :] = matrix[:, r] = 0.0
        factor = self.basis.factorised(matrix, np.float64, self.problem.threads)
        right = np.append(-state.gradient[:, p], 0.0)
        direction = self.basis.solved(factor, right[:, None])[:r, 0]
        moving = -float(across @ direction) / bend if bend > 0 else 0.0
        return direction, moving

    def _gram(self, index: NDArray[np.intp], weight: Vector) -> Matrix:
        """Return Σ weight (k_z, 1)(k_z, 1)ᵀ over rows."""
        size, memory = self.basis.size + 1, self.problem.rows.memory
        chunk = rows_per_block(memory, 8 * size, 2048, most_bytes=memory)
        total = np.zeros((size, size))
        for begin in range(0, len(index), chunk):
            part = slice(begin, begin + chunk)
            features = scratch((len(index[part]), size), np.float64)
            self.values.take(index[part], features[:, :-1])
            features[:, -1] = 1.0
            features *= np.sqrt(weight[part])[:, None]
            total += features.T @ features
        return total


@dataclass(frozen=True)
class _Scores:
    """Visitor: values of functions without a bias."""

    coef: Values
    out: Matrix

    def __call__(self, values: list[Values], where: slice) -> None:
        self.out[where] = product(values, self.coef)


@dataclass(frozen=True)
class _Pull:
    """Visitor: Σ α_i k_z(x_i) of a block."""

    alpha: Values

    def __call__(self, values: list[Values], where: slice) -> Any:
        return np.concatenate([piece.T @ self.alpha[where] for piece in values])


@dataclass(frozen=True)
class _Both:
    """Visitor: values of functions without a bias, and Σ α_i k_z(x_i) of a block."""

    coef: Matrix
    out: Matrix
    alpha: Matrix

    def __call__(self, values: list[Values], where: slice) -> Any:
        self.out[where] = product(values, self.coef)
        return np.concatenate([piece.T @ self.alpha[where] for piece in values])
