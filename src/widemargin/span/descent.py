"""Steps of preconditioned conjugate gradients for squared-hinge problems in a span.

Each step is one exact gradient over all rows and one exact line search in every problem that is not
solved yet; problems share each product with the kernel values. The preconditioner is `Curvature`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.kernels import Kernel
from widemargin.kernels.finite import check_finite
from widemargin.rows.base import BlockRows, IndexArray
from widemargin.span.basis import Basis
from widemargin.span.curvature import Curvature
from widemargin.span.lower_bound import LowerBound
from widemargin.span.problems import Problems, Scores
from widemargin.span.state import SpanState
from widemargin.span.values import KernelValues, Values

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

# Relative accuracy of a step's length, and tries for it.
_LENGTH_TOL, _TRIES = 1e-2, 20
# Rows, in multiples of the vectors, that are enough to judge a step's length.
_JUDGES = 8
# An objective that falls by less than this is at the end of its digits.
_DIGITS = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-14}
# A step that multiplies an objective by more than this went astray, and is taken back.
_RISE = 2.0


class Descent:
    """Scores of all rows in all problems, and the steps that lower the objectives.

    Parameters
    ----------
    rows : BlockRows
        The rows.
    kernel : Kernel
        Their kernel.
    problems : Problems
        What is to be fitted.
    dtype : dtype
        Precision of kernel values and scores.
    room : int
        Bytes for kernel values.
    width : int
        Vectors that are expected at the most.
    bounds : bool
        Whether lower bounds on the optima are wanted.
    directions : ndarray of shape (n_problems, n_directions, r), default=None
        Coefficients of unit vectors in the span that each w must be orthogonal to.
    shared : Descent, default=None
        Another one, whose vectors, kernel values and order of the rows are used.
    """

    def __init__(
        self,
        rows: BlockRows,
        kernel: Kernel,
        problems: Problems,
        *,
        dtype: DTypeLike,
        room: int,
        width: int,
        bounds: bool,
        directions: NDArray[np.float64] | None = None,
        shared: Descent | None = None,
    ) -> None:
        self.kernel = kernel
        self.problems = problems
        self.dtype = np.dtype(dtype)
        self.directions = directions
        self.bounds = bounds
        if shared is None:
            self.values = KernelValues(rows, kernel, dtype, room, width, problems.n_problems)
            self.basis = Basis.empty()
        else:
            self.values, self.basis = shared.values, shared.basis
        self.curvature = Curvature(problems, self.values, room // 2)
        if shared is not None:
            self.curvature.adopt(shared.curvature)
        self.scores: Scores = np.zeros((problems.n, problems.n_problems), dtype=dtype)
        # Whose scores they are; None in the middle of a step, which may be interrupted.
        self.scores_of: Matrix | None = None
        self._forget_directions()
        self.forget_steps()

    def extend(self, basis: Basis) -> None:
        """Go on with a basis that begins with the one before."""
        self.values.add(basis.vectors.values[self.basis.size :])
        self.basis = basis
        self.curvature.forget()
        self._forget_directions()
        self.forget_steps()

    def _forget_directions(self) -> None:
        self._kept_normals: dict[int, Matrix] = {}
        self._kept_tilted: dict[int, Matrix] = {}
        self._kept_units: dict[int, Matrix] = {}

    def forget_steps(self) -> None:
        """Begin anew with directions and bounds: what is minimised has changed."""
        self.bound = LowerBound(self.problems, self.dtype) if self.bounds else None
        self._conjugate: tuple[Matrix, Matrix, Matrix] | None = None

    def swap(self, left: IndexArray, right: IndexArray) -> None:
        """Let rows change places, in pairs."""
        order = np.arange(self.problems.n)
        order[left], order[right] = right, left
        problems, whose = self.problems.in_order(order), self.scores_of
        # An interrupt in the middle makes the scores no one's.
        self.scores_of = None
        self.scores[left], self.scores[right] = self.scores[right], self.scores[left]
        self.values.swap(left, right)
        self.problems = problems
        self.curvature.rearranged(problems)
        self.scores_of = whose
        self.forget_steps()

    # Passes over the rows.

    def score(self, beta: Matrix, first: int, stop: int) -> None:
        """Compute the scores of some rows from the coefficients."""
        self.scores_of = None
        self._multiply(beta, self.scores, first, stop)
        self.scores_of = beta

    def _multiply(self, beta: Matrix, out: Scores, first: int, stop: int) -> None:
        for _ in self.values.scan(_Product(beta.astype(self.dtype), out), first, stop):
            pass

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
            live = np.arange(self.problems.n_problems)
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
        metric = self._metric(beta[:, live])
        zero = np.zeros(self.problems.n_problems)
        gradient = np.zeros_like(beta) if before is None else before.gradient.copy()
        primal = zero if before is None else before.primal.copy()
        dual = zero.copy() if before is None else before.dual.copy()
        gradient[:, live] = self._tangential(metric - pull, live)
        primal[live] = 0.5 * (beta[:, live] * metric).sum(axis=0) + sums[0]
        if self.bound is not None:
            whitened = self._whitened(pull, live)
            dual[live] = self.bound.improved(self.scores[:n_rows], live, whitened, sums)
        newton = self._newton(gradient, live)
        return SpanState(beta, gradient, newton, primal, dual, n_rows)

    def _pull(self, n_rows: int, live: IndexArray, change: Matrix | None) -> tuple[Matrix, Vector]:
        """Return Σ_i A_i (k_z(x_i), 1), and the sums of `Problems.slopes`.

        If coefficients are to change, scores are brought up to date in the same pass.
        """
        mixture = None if self.bound is None else self.bound.mixture
        moving = None if change is None else change.astype(self.dtype)
        slopes = _Slopes(self.problems, self.scores, live, mixture, moving)
        pull = np.zeros((self.basis.size + 1, len(live)))
        sums = np.zeros((4, len(live)))
        for partial, partial_sums in self.values.scan(slopes, 0, n_rows):
            pull[:-1] += partial
            sums += partial_sums
        pull[-1] = sums[1]
        # A look at the sums: one at every kernel value would cost a tenth of computing them.
        check_finite(self.kernel, pull)
        return pull, sums

    def moments(self, beta: Matrix) -> Matrix:
        """Return Σ_i s_i k_z(x_i) f(x_i) over all rows for functions f = Σ β k(z, ·)."""
        visit = _Moments(beta, self.problems.weight)
        total = np.zeros_like(beta)
        for partial in self.values.scan(visit, 0, self.problems.n):
            total += partial
        return total

    # A step.

    def descend(self, state: SpanState, live: IndexArray) -> SpanState:
        """Return the state after a step of conjugate gradients in every live problem."""
        scores = self.scores[: state.n_rows]
        # Factors of another fit are not good for the last digits.
        poor = self.curvature.stale() or (state.tired > 0 and self.curvature.adopted)
        if poor or not self.curvature.knows(live).all():
            state = self.estimated(state, live)
        assert state.newton is not None
        direction = self._direction(state.gradient, state.newton, live)[:, live]
        direction = self._feasible(direction, live)
        kept = min(state.n_rows, self.values.kept_rows)
        # Where values must be computed again, a pass is dear: the rows whose values are kept, a
        # random sample, say how far to go.
        judges = kept if kept >= _JUDGES * self.basis.size else state.n_rows
        moved = np.empty((judges, len(live)), dtype=self.dtype)
        self._multiply(direction, moved, 0, judges)
        length = self._line_search(state, direction, moved, live)
        beta = state.beta.copy()
        beta[:, live] += length * direction
        self.scores_of = None
        if judges == state.n_rows:
            self.problems.advance(scores, moved, live, length)
            pull, sums = self._pull(state.n_rows, live, None)
        else:
            pull, sums = self._pull(state.n_rows, live, length * direction)
        self.scores_of = beta
        self.curvature.used(len(live), state.n_rows)
        after = self._state(beta, state.n_rows, live, state, pull, sums)
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
        scores = self.scores[: state.n_rows]
        self.curvature.form(self.basis, scores, live, bool(state.beta.any()))
        self._kept_tilted = {}
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
        self, state: SpanState, direction: Matrix, moved: Scores, live: IndexArray
    ) -> Vector:
        """Return the best step of each problem: a root of a rising, piecewise linear function.

        `moved` are the scores of the directions on the first rows, which stand for all. The slope
        at the start is known exactly, from the gradient; rows only say how it changes from there.
        """
        metric = self._metric(direction)
        curve0 = (metric * direction).sum(axis=0)
        exact = (state.gradient[:, live] * direction).sum(axis=0)
        weight = self.problems.weight
        scale = weight[: state.n_rows].sum() / weight[: len(moved)].sum()
        scores = self.problems.columns(self.scores[: len(moved)], live)
        length = np.zeros(len(live))
        low, high = np.zeros(len(live)), np.full(len(live), np.inf)
        first = np.zeros(len(live))
        for attempt in range(_TRIES):
            loss_slope, curve = self.problems.along(scores, moved, live, length)
            if not attempt:
                first = loss_slope
            slope = exact + scale * (loss_slope - first) + length * curve0
            low = np.where(slope < 0, length, low)
            high = np.where(slope > 0, np.minimum(high, length), high)
            curve = np.maximum(scale * curve + curve0, np.finfo(float).tiny)
            better = length - slope / curve
            # Newton's root of one linear piece; a bisection where it leaves the bracket.
            middle = np.where(np.isfinite(high), 0.5 * (low + high), 2.0 * length)
            better = np.where((better > low) & (better < high), better, middle)
            change, length = np.abs(better - length), better
            if (change <= _LENGTH_TOL * np.abs(length)).all():
                break
        return length

    # Algebra in the span.

    def _metric(self, beta: Matrix) -> Matrix:
        """Return K_z β, and the bias as it is."""
        metric = np.empty_like(beta)
        np.matmul(self.basis.gram, beta[:-1], out=metric[:-1])
        metric[-1] = beta[-1]
        return metric

    def _newton(self, gradient: Matrix, live: IndexArray) -> Matrix | None:
        """Return the preconditioned gradients of the live problems, zero for the others.

        None if there is no matrix yet for any of them.
        """
        live = live[self.curvature.knows(live)]
        if not len(live):
            return None
        newton = np.zeros_like(gradient)
        newton[:, live] = self.curvature.solve(gradient[:, live], live)
        if self.directions is not None:
            for p in live:
                normal, tilted = self._normals(int(p)), self._tilted(int(p))
                newton[:, p] -= tilted @ np.linalg.solve(normal.T @ tilted, normal.T @ newton[:, p])
        return newton

    # Directions that coefficients must be orthogonal to: what follows from them is kept, for it
    # takes matrices as large as the span.

    def _normals(self, problem: int) -> Matrix:
        """Return K_z v of the directions v of a problem."""
        if problem not in self._kept_normals:
            assert self.directions is not None
            coefficients = self.directions[problem].T
            nothing = np.zeros(coefficients.shape[1])
            self._kept_normals[problem] = self._metric(np.vstack([coefficients, nothing]))
        return self._kept_normals[problem]

    def _tilted(self, problem: int) -> Matrix:
        """Return M⁻¹ K_z v, M being the Newton matrix."""
        if problem not in self._kept_tilted:
            normal = self._normals(problem)
            columns = np.full(normal.shape[1], problem)
            self._kept_tilted[problem] = self.curvature.solve(normal, columns)
        return self._kept_tilted[problem]

    def _tangential(self, gradient: Matrix, live: IndexArray) -> Matrix:
        """Return gradients without the parts that no feasible step feels."""
        if self.directions is not None:
            for j, p in enumerate(live):
                normal, v = self._normals(int(p)), self.directions[p].T
                gradient[:, j] -= normal @ (v.T @ gradient[:-1, j])
        return gradient

    def _feasible(self, direction: Matrix, live: IndexArray) -> Matrix:
        """Return steps without what rounding has left along the directions."""
        if self.directions is not None:
            for j, p in enumerate(live):
                normal, v = self._normals(int(p)), self.directions[p].T
                direction[:-1, j] -= v @ (normal.T @ direction[:, j])
        return direction

    def _units(self, problem: int) -> Matrix:
        """Return the directions of a problem in an orthonormal basis."""
        if problem not in self._kept_units:
            self._kept_units[problem] = self.basis.whitened(self._normals(problem)[:-1])
        return self._kept_units[problem]

    def _whitened(self, pull: Matrix, live: IndexArray) -> Matrix:
        """Return Σ α y φ_z(x) in an orthonormal basis, without its part along the directions."""
        whitened = np.empty_like(pull)
        whitened[:-1] = self.basis.whitened(pull[:-1])
        whitened[-1] = pull[-1]
        if self.directions is not None:
            for j, p in enumerate(live):
                unit = self._units(int(p))
                whitened[:-1, j] -= unit @ (unit.T @ whitened[:-1, j])
        return whitened


@dataclass(frozen=True)
class _Product:
    """Visitor: scores of coefficients whose last row is the bias."""

    beta: Values
    out: Scores

    def __call__(self, values: list[Values], where: slice) -> None:
        into = self.out[where]
        into[...] = self.beta[-1]
        column = 0
        for piece in values:
            into += piece @ self.beta[column : column + piece.shape[1]]
            column += piece.shape[1]


@dataclass(frozen=True)
class _Slopes:
    """Visitor: Σ_i A_i k_z(x_i) and the sums of `Problems.slopes`."""

    problems: Problems
    scores: Scores
    live: IndexArray
    mixture: Scores | None
    change: Values | None

    def __call__(self, values: list[Values], where: slice) -> tuple[Any, Vector]:
        if self.change is not None:
            moved = np.empty((where.stop - where.start, len(self.live)), dtype=self.scores.dtype)
            _Product(self.change, moved)(values, slice(0, len(moved)))
            self.scores[where.start : where.stop, self.live] += moved
        A, sums = self.problems.slopes(self.scores, where, self.live, self.mixture)
        return np.concatenate([piece.T @ A for piece in values]), sums


@dataclass(frozen=True)
class _Moments:
    """Visitor: Σ_i s_i k_z(x_i) f(x_i) of a block, for functions without a bias."""

    beta: Matrix
    weight: Vector

    def __call__(self, values: list[Values], where: slice) -> Any:
        # In float64, for a sum over all rows is what others must be orthogonal to.
        weighted = np.zeros((where.stop - where.start, self.beta.shape[1]))
        column = 0
        for piece in values:
            weighted += piece @ self.beta[column : column + piece.shape[1]]
            column += piece.shape[1]
        weighted *= self.weight[where, None]
        return np.concatenate([piece.T @ weighted for piece in values])
