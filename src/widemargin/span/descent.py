"""Steps of preconditioned conjugate gradients for squared-hinge problems in a span.

Each step is one exact gradient over all rows and one exact line search in every problem that is not
solved yet; problems share each product with the kernel values. The preconditioner is `Curvature`.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.kernels.kernel import check_finite
from widemargin.problem import Problem
from widemargin.qp.bracket_search import FIRST_LENGTHS, search_in_brackets
from widemargin.qp.line_search import line_search
from widemargin.span.basis import Basis
from widemargin.span.constraints import Constraints
from widemargin.span.curvature import Curvature
from widemargin.span.losses import LowerBound
from widemargin.span.shards import Shards

# Relative accuracy of a step's length.
_LENGTH_TOL = 1e-2
# How wide a bracket of it may be, relative to it, in which slopes are taken for straight.
_BRACKET = 0.1
# Tries for it.
_TRIES = 20
# Rows, in multiples of the vectors, that are enough to judge a step's length.
_JUDGES = 8
# Scores that are looked at at a length, where those of all rows would be many times as many: those
# of a sample cost as much as the launches.
_SCORES_OF_JUDGES = 1 << 24
# An objective that falls by less than this is at the end of its digits.
_DIGITS = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-14}
# A step that multiplies an objective by more than this went astray, and is taken back.
_RISE = 2.0


@dataclass(frozen=True)
class SpanState:
    """Where a fit stands.

    Attributes
    ----------
    beta : ndarray of shape (r + 1, n_problems)
        Coefficients of the vectors, and the biases below them.
    gradient : ndarray of shape (r + 1, n_problems)
        Derivative of the objectives by `beta`.
    newton : ndarray of shape (r + 1, n_problems) or None
        The preconditioned gradient, where the matrix is at hand.
    primal, dual : ndarray of shape (n_problems,)
        Objectives and lower bounds, over the first `n_rows` rows.
    n_rows : int
        Rows that were looked at.
    final : bool
        No more vectors will follow.
    shrunk : bool
        The rows that were left out lie far outside every margin.
    steps : int
        Steps on these rows and vectors.
    tired : int
        Steps in a row that gained nothing.
    rounding : float or None
        What the precision of the kernel values may hide of primal − dual, once it is known.
    """

    beta: Matrix
    gradient: Matrix
    newton: Matrix | None
    primal: Vector
    dual: Vector
    n_rows: int
    final: bool = False
    shrunk: bool = False
    steps: int = 0
    tired: int = 0
    rounding: float | None = None

    def decrement(self) -> Vector:
        """Return Newton's estimates of how far the objectives are from their optima.

        An estimate that rounding has made negative says nothing: it is infinite.
        """
        if self.newton is None:
            return np.full(len(self.primal), np.inf)
        decrement: Vector = 0.5 * (self.gradient * self.newton).sum(axis=0)
        return np.where(decrement >= 0.0, decrement, np.inf)


@dataclass(eq=False)
class Descent:
    """The steps that lower the objectives; scores of all rows are with the shards.

    Parameters
    ----------
    problem : Problem
        What is to be fitted; of its rows only signs and prices of problems are asked here.
    shards : Shards
        All rows.
    dtype : dtype
        Precision of kernel values and scores.
    factors : int
        Bytes for the factors of Newton matrices.
    bounds : bool
        Whether lower bounds on the optima are wanted.
    directions : ndarray of shape (n_problems, n_directions, r) or None
        Coefficients of unit vectors in the span that each w must be orthogonal to.
    shared : Descent or None
        Another one, whose vectors, kernel values and order of the rows are used.
    """

    problem: Problem
    shards: Shards
    dtype: np.dtype[Any]
    factors: int
    bounds: bool
    directions: NDArray[np.float64] | None
    shared: InitVar[Descent | None]

    def __post_init__(self, shared: Descent | None) -> None:
        self.basis: Basis = self.shards.no_vectors() if shared is None else shared.basis
        self.curvature = Curvature(self.problem, self.shards, self.dtype, self.factors)
        if shared is not None:
            self.curvature.adopt(shared.curvature)
        # Whose scores they are; None in the middle of a step, which may be interrupted.
        self.scores_of: Matrix | None = None
        self._begin()

    def extend(self, basis: Basis) -> None:
        """Go on with a basis that begins with the one before."""
        self.shards.add(basis.vectors.values[self.basis.size :])
        self.basis = basis
        self.curvature.forget()
        self._begin()

    def _begin(self) -> None:
        # Whether a sample of the rows may say how long a step is.
        self._trusts_sample = True
        self.constraints: Constraints | None = None
        if self.directions is not None and self.basis.size:
            self.constraints = Constraints(self.directions, self.basis, self.curvature)
        self.forget_steps()

    def forget_steps(self) -> None:
        """Begin anew with directions and bounds: what is minimised has changed."""
        self.bound = LowerBound(self.problem.n_problems) if self.bounds else None
        if self.bounds:
            self.shards.forget_mixture()
        self._conjugate: tuple[Matrix, Matrix, Matrix] | None = None

    def bring_near(self, limit: float, most: float) -> int | None:
        """Bring the rows with a margin below a limit to the front; return how many they are.

        None if they are more than `most`, which leaves all rows where they are.
        """
        near = self.shards.near(limit)
        if sum(near) > most:
            return None
        whose = self.scores_of
        # An interrupt in the middle makes the scores no one's.
        self.scores_of = None
        n_rows = self.shards.bring_near(limit, near)
        self.scores_of = whose
        self.forget_steps()
        return n_rows

    # Passes over the rows.

    def score(self, beta: Matrix, first: int, stop: int) -> None:
        """Compute the scores of some rows from the coefficients."""
        self.scores_of = None
        self.shards.score(beta, first, stop)
        self.scores_of = beta

    def look(
        self,
        beta: Matrix,
        n_rows: int,
        live: IndexArray | None = None,
        before: SpanState | None = None,
    ) -> SpanState:
        """Return the state of `beta`: gradient, objectives and bounds, over the first rows.

        Only the `live` problems are looked at (all if None); of the others the state `before` is
        kept.
        """
        if self.scores_of is not beta:
            self.score(beta, 0, n_rows)
        if live is None:
            live = np.arange(self.problem.n_problems)
        pull, sums = self._pull(n_rows, live, None)
        return self._state(beta, n_rows, live, before, pull, sums)

    def _state(
        self,
        beta: Matrix,
        n_rows: int,
        live: IndexArray,
        before: SpanState | None,
        pull: Matrix,
        sums: Vector,
    ) -> SpanState:
        """Return the state that follows from a pass over the rows."""
        if before is None:
            zero = np.zeros(self.problem.n_problems)
            before = SpanState(beta, np.zeros_like(beta), None, zero, zero, n_rows)
        gradient, primal, dual = before.gradient.copy(), before.primal.copy(), before.dual.copy()
        metric = self.basis.metric(beta[:, live])
        tangential = metric - pull
        if self.constraints is not None:
            self.constraints.take_from_gradient(tangential, live)
        gradient[:, live] = tangential
        primal[live] = 0.5 * (beta[:, live] * metric).sum(axis=0) + sums[0]
        if self.bound is not None:
            whitened = self._whitened(pull, live)
            dual[live], share = self.bound.improved(live, whitened, sums)
            self.shards.blend(n_rows, live, share)
        newton = self._newton(gradient, live)
        return SpanState(beta, gradient, newton, primal, dual, n_rows)

    def _pull(self, n_rows: int, live: IndexArray, change: Matrix | None) -> tuple[Matrix, Vector]:
        """Return Σ_i A_i (k_z(x_i), 1), and the sums of `slopes`.

        If coefficients are to change, scores are brought up to date in the same pass.
        """
        products, sums = self.shards.pull(n_rows, live, self.bound is not None, change)
        pull = np.vstack([products, sums[1]])
        # A look at the sums: one at every kernel value would cost a tenth of computing them.
        check_finite(self.problem.kernel, pull)
        return pull, sums

    def moments(self, beta: Matrix) -> Matrix:
        """Return Σ_i s_i k_z(x_i) f(x_i) over all rows for functions f = Σ β k(z, ·)."""
        return self.shards.moments(beta)

    # A step.

    def descend(self, state: SpanState, live: IndexArray) -> SpanState:
        """Return the state after a step of conjugate gradients in every live problem."""
        # Factors of another fit are not good for the last digits.
        poor = self.curvature.stale() or (state.tired > 0 and self.curvature.adopted)
        if poor or not self.curvature.knows(live).all():
            state = self.estimated(state, live)
        assert state.newton is not None
        direction = self._direction(state.gradient, state.newton, live)[:, live]
        if self.constraints is not None:
            self.constraints.make_feasible(direction, live)
        judges = self._judges(state, len(live))
        length = self._line_search(state, direction, judges, live)
        beta = state.beta.copy()
        beta[:, live] += length * direction
        self.scores_of = None
        if judges == state.n_rows:
            self.shards.advance(live, length)
            pull, sums = self._pull(state.n_rows, live, None)
        else:
            pull, sums = self._pull(state.n_rows, live, length * direction)
        self.scores_of = beta
        self.curvature.used(len(live), state.n_rows, self.basis.size)
        after = self._state(beta, state.n_rows, live, state, pull, sums)
        if judges < state.n_rows and (after.primal[live] > state.primal[live]).any():
            self._trusts_sample, self._conjugate = False, None
        risen = live[~(after.primal[live] <= _RISE * state.primal[live])]
        if len(risen):
            after = self._taken_back(state, after, live, risen)
        gained = state.primal.sum() - after.primal.sum()
        idle = gained <= _DIGITS[self.dtype] * state.primal.sum()
        return replace(
            after,
            final=state.final,
            shrunk=state.shrunk,
            steps=state.steps + 1,
            tired=state.tired + 1 if idle else 0,
        )

    def _judges(self, state: SpanState, columns: int) -> int:
        """Return how many of the first rows, a random sample, say how far to go.

        Where values must be computed again, a pass is dear: it is those whose values are kept. On
        a device, whose passes are cheap, a sample is enough where there are scores in many
        problems. When a sample has been wrong, it is all rows from then on.
        """
        kept, least = self.shards.judges(state.n_rows, self.basis.size), _JUDGES * self.basis.size
        if self.shards.device is not None:
            kept = min(kept, max(least, _SCORES_OF_JUDGES // columns))
        return kept if kept >= least and self._trusts_sample else state.n_rows

    def _taken_back(
        self, state: SpanState, after: SpanState, live: IndexArray, risen: IndexArray
    ) -> SpanState:
        """Return the state after a step without the problems whose objective it raised.

        The slope along a direction is then all rounding, as at a C that leaves no digits.
        """
        beta = after.beta.copy()
        beta[:, risen] = state.beta[:, risen]
        self.forget_steps()
        after = self.look(beta, state.n_rows, live, state)
        return replace(after, dual=np.maximum(state.dual, after.dual))

    def estimated(self, state: SpanState, live: IndexArray) -> SpanState:
        """Return the state with Newton matrices formed at it."""
        self.curvature.form(self.basis, state.n_rows, live, bool(state.beta.any()))
        self._conjugate = None
        return replace(state, newton=self._newton(state.gradient, live))

    def _direction(self, gradient: Matrix, newton: Matrix, live: IndexArray) -> Matrix:
        """Return the conjugate directions (Polak and Ribière), downhill in every problem."""
        direction = np.zeros_like(gradient)
        direction[:, live] = -newton[:, live]
        if self._conjugate is not None:
            last_direction, last_gradient, last_newton = self._conjugate
            change = (newton * (gradient - last_gradient)).sum(axis=0)
            before = (last_gradient * last_newton).sum(axis=0)
            share = np.zeros(len(before))
            np.divide(change, before, out=share, where=before > 0)
            mixed = direction + np.maximum(0.0, share) * last_direction
            downhill = (mixed * gradient).sum(axis=0) < 0
            kept = live[downhill[live]]
            direction[:, kept] = mixed[:, kept]
        self._conjugate = direction, gradient, newton
        return direction

    def _line_search(
        self, state: SpanState, direction: Matrix, judges: int, live: IndexArray
    ) -> Vector:
        """Return the best step of each problem: a root of a rising, piecewise linear function.

        The first rows, so many as there are judges, stand for all. The slope at the start is known
        exactly, from the gradient; rows only say how it changes from there.
        """
        metric = self.basis.metric(direction)
        curve0 = (metric * direction).sum(axis=0)
        exact = (state.gradient[:, live] * direction).sum(axis=0)
        # Answers of shards that are elsewhere take their time: more is asked at once. In double
        # precision, steps are to be those of a fit in memory to the last digits.
        at_once = self.shards.answers_late and self.dtype == np.float32
        tried = FIRST_LENGTHS if at_once else FIRST_LENGTHS[:1]
        lengths = np.repeat(tried[:, None], len(live), axis=1)
        first, scale = self.shards.look_along(direction, live, state.n_rows, judges, lengths)

        def slopes(losses: NDArray[np.float64], at: Matrix) -> Matrix:
            return np.asarray(exact + scale * (losses[:, 0] - first[0, 0]) + at * curve0)

        if at_once:
            return search_in_brackets(
                lambda at: slopes(self.shards.along(live, at), at),
                lengths,
                slopes(first, lengths),
                width=_BRACKET,
                max_looks=_TRIES,
            )

        def look(length: Vector) -> tuple[Vector, Vector]:
            losses = self.shards.along(live, length[None]) if length.any() else first
            return slopes(losses, length[None])[0], scale * losses[0, 1] + curve0

        return line_search(look, np.zeros(len(live)), tol=_LENGTH_TOL, max_tries=_TRIES)

    # Algebra in the span.

    def _newton(self, gradient: Matrix, live: IndexArray) -> Matrix | None:
        """Return the preconditioned gradients of the live problems, zero for the others.

        None if there is no matrix yet for any of them.
        """
        live = live[self.curvature.knows(live)]
        if not len(live):
            return None
        newton = np.zeros_like(gradient)
        newton[:, live] = self.curvature.solve(gradient[:, live], live)
        if self.constraints is not None:
            self.constraints.make_newton_feasible(newton, live)
        return newton

    def _whitened(self, pull: Matrix, live: IndexArray) -> Matrix:
        """Return Σ α y φ_z(x) in an orthonormal basis, without its part along the directions."""
        whitened = np.vstack([self.basis.whitened(pull[:-1]), pull[-1]])
        if self.constraints is not None:
            self.constraints.take_from_whitened(whitened, live)
        return whitened
