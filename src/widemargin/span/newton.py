"""The squared-hinge fit of all rows inside a span, for several problems at once.

SLMC, section 3.2, with the squared hinge: w = Σ β_j φ(z_j) is sought in the span of the vectors Z,

    min_β,b  ½ βᵀK_zβ + ½b² + C Σ_i s_i max(0, 1 − y_i (ψ_z(x_i)ᵀβ + b))².

How: Newton's method, inexactly. The matrix K_z + 2C Σ_A s k_z k_zᵀ over the rows A inside the
margin is formed from at most a few r of them (all, where there are no more), in float64 from
values of any precision: it is then the exact second derivative of what is minimised, positive
definite with no jitter, and needs no whitened rows. It preconditions conjugate gradients, whose
every step is one exact gradient over all rows and one exact line search, and it is formed anew
when steps with the old one have cost as much. All problems share each product with the kernel
values.

Start small: first few vectors and a sample of the rows (rows come in the order of a hash, so the
first ones are a sample), then all rows, then twice as many vectors, and so on, each from the
solution before. Rows far outside every margin change nothing: at the end, where they are many, the
rest changes places with them and the last steps see only the rows in front; then all are looked at
again.

The certificate: α = 2 C s ξ ≥ 0 is feasible for the dual (37) with the kernel (40), and so is every
mixture of the α of earlier steps. The best mixture with the latest, times its best factor, is kept:
its value is a lower bound on the optimum, and costs no pass over the kernel values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.certificate import Certificate, relative_gap
from widemargin.kernels import Kernel
from widemargin.loop import Stop
from widemargin.qp import solve_margin_dual
from widemargin.rows.base import BlockRows, IndexArray
from widemargin.span.basis import Basis, Vectors, kernel_matrix
from widemargin.span.choice import Choice
from widemargin.span.curvature import Curvature
from widemargin.span.lower_bound import LowerBound
from widemargin.span.problems import Problems, Scores
from widemargin.span.values import KernelValues, Values
from widemargin.threads import ordered_map

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

# Vectors to start with; and rows, in multiples of the vectors, that the first fit looks at.
FIRST_VECTORS = 256
_FIRST_ROWS = 8
# A sample of the rows is left when the objective is within this share of its optimum, a number of
# vectors when it is within that share: the next sample or the next vectors will change it more.
_SAMPLE_TOL, _VECTORS_TOL = 2e-2, 2e-3
# Steps after which a level is left in any case.
_MOST_STEPS = 30
# More vectors pay as long as a doubling lowers the objective by this share.
WORTH_DOUBLING = 1e-2
# A vector joins if it lies this far outside the span of the others (squared, relative): below it,
# values rounded to float32 say nothing.
TOLERANCE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-10}
# Rows with a margin below the first number stay in front at the end, if they are no more than this
# share of all rows.
_NEAR, _FEW = 1.1, 0.6
# Relative accuracy of a step's length.
_LENGTH_TOL = 1e-2
# An objective that falls by less than this for some steps in a row is at the end of its digits.
_DIGITS, _TIRED = {np.dtype(np.float32): 1e-8, np.dtype(np.float64): 1e-14}, 5


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
    rounding : float
        What the precision of the kernel values may hide of primal − dual; known at the end.
    full_dual : float or None
        Lower bound on the optimum of the full problem; known at the end.
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
    rounding: float = 0.0
    full_dual: float | None = None

    def decrement(self) -> float:
        """Return Newton's estimate of how far the objectives are from their optimum, summed."""
        if self.newton is None:
            return float("inf")
        return 0.5 * float((self.gradient * self.newton).sum())


@dataclass(frozen=True)
class Earlier:
    """The solution of a similar problem, to start from.

    Attributes
    ----------
    index : ndarray of int of shape (m,)
        Rows that are its vectors.
    beta : ndarray of shape (m + 1, n_problems)
        Their coefficients, and the biases below them.
    """

    index: IndexArray
    beta: Matrix


class SpanFit:
    """Fit problems in the span of vectors: a solver for ``loop.run``.

    Parameters
    ----------
    rows : BlockRows
        The rows, in random order.
    kernel : Kernel
        Their kernel.
    problems : Problems
        What is to be fitted.
    choice : Choice
        Where vectors come from.
    tol : float
        Stop at this relative duality gap.
    max_vectors : int
        Vectors at the most.
    grow : bool
        Stop adding vectors when a doubling gains too little; else add as many as allowed.
    dtype : dtype
        Precision of kernel values and scores.
    memory : int
        Bytes for kernel values and matrices.
    directions : ndarray of shape (n_problems, n_directions, max_vectors), default=None
        Coefficients of unit vectors in the span that each w must be orthogonal to. They refer to
        the vectors that `choice` gives, which must be linearly independent.
    earlier : Earlier, default=None
        Where to start.
    """

    def __init__(
        self,
        rows: BlockRows,
        kernel: Kernel,
        problems: Problems,
        choice: Choice,
        *,
        tol: float,
        max_vectors: int,
        grow: bool,
        dtype: DTypeLike,
        memory: int,
        directions: NDArray[np.float64] | None = None,
        earlier: Earlier | None = None,
    ) -> None:
        self.rows = rows
        self.kernel = kernel
        self.problems = problems
        # Where the rows that have changed places were at first.
        self.order: IndexArray = np.arange(rows.shape[0])
        self.choice = choice
        self.tol = tol
        self.max_vectors = min(max_vectors, rows.shape[0]) if choice.of_rows else max_vectors
        self.grow = grow
        self.dtype = np.dtype(dtype)
        self.memory = memory
        self.directions = directions
        self.earlier = earlier
        n, n_problems = problems.n, problems.n_problems
        self.scores: Scores = np.zeros((n, n_problems), dtype=self.dtype)
        self._scores_of: Matrix | None = None
        kinds = np.vstack([problems.C, problems.held])
        _, machine = np.unique(kinds, axis=1, return_inverse=True)
        self._machines = [np.flatnonzero(machine.ravel() == m) for m in range(machine.max() + 1)]
        self._values()
        self._level_primal = float("inf")

    # The methods of a solver.

    def start(self) -> SpanState:
        """Return the zero function on the first vectors and rows, or an earlier solution."""
        if self.earlier is not None and self.choice.adopt(self.earlier.index):
            return self._from_earlier(self.earlier)
        whole = not self.choice.nested or self.directions is not None
        first = self.max_vectors if whole else min(self.max_vectors, FIRST_VECTORS)
        self._begin(self.choice.draw(first, None))
        beta = np.zeros((self.basis.size + 1, self.problems.n_problems))
        self._scores_of = beta
        return self._look(beta, self._rows_after(0), None)

    def _begin(self, vectors: Vectors) -> None:
        self.basis = Basis.of(self.kernel, vectors, TOLERANCE[self.dtype], self.rows)
        self.values.add(self.basis.vectors.values)

    def _from_earlier(self, earlier: Earlier) -> SpanState:
        self._begin(Vectors(self.rows.take(earlier.index), earlier.index))
        assert self.basis.vectors.index is not None
        order = np.argsort(earlier.index)
        kept = order[np.searchsorted(earlier.index, self.basis.vectors.index, sorter=order)]
        beta = earlier.beta[np.append(kept, -1)]
        self._score(beta, 0, self.problems.n)
        return self._look(beta, self.problems.n, None)

    def step(self, state: SpanState) -> SpanState:
        """Take a step, or go on to other rows or more vectors."""
        if self._settled(state):
            if state.n_rows < self.problems.n:
                return self._with_more_rows(state)
            if self._worth_growing(state):
                return self._with_more_vectors(state)
            return self._on_near_rows(replace(state, final=True))
        if state.tired >= _TIRED and self.dtype == np.float32:
            return self._with_more_digits(state)
        return self._descend(state)

    def certificate(self, state: SpanState) -> Certificate:
        """Return primal and dual of all problems together."""
        primal, dual = float(state.primal.sum()), float(state.dual.sum())
        whole = state.n_rows == self.problems.n
        return Certificate(
            primal=primal,
            dual=dual,
            gap=min(1.0, relative_gap(primal, dual - state.rounding)),
            eps=None,
            scope="span" if whole else "sample",
            n_vectors=self.basis.size,
            n_iter=0,
            n_passes=self.values.n_passes,
            n_kernel=self.values.n_kernel,
            seconds=0.0,
            stopped="",
            full_dual=state.full_dual,
        )

    def stopped(self, state: SpanState) -> Stop | None:
        """Return whether the gap is met and nothing more is to be added."""
        if not state.final or state.n_rows < self.problems.n:
            return None
        if not len(self._live(state)):
            return Stop(f"gap within {self.tol:g}", converged=True)
        if state.tired >= _TIRED and self.dtype == np.float64:
            return Stop("nothing left to gain at this precision", converged=False)
        return None

    def finish(self, state: SpanState) -> SpanState:
        """Return the state with a certificate over all rows."""
        if state.n_rows < self.problems.n:
            state = self._with_more_rows(state, self.problems.n)
        rounding = self._rounding(state)
        return replace(state, rounding=rounding, full_dual=self._full_dual())

    # Levels.

    def _values(self) -> None:
        self.values = KernelValues(
            self.rows, self.kernel, self.dtype, self.memory, self.max_vectors
        )
        self.curvature = Curvature(self.problems, self.values, self.memory // 4)
        self.bound = LowerBound(self.problems, self.dtype)
        self._conjugate: tuple[Matrix, Matrix, Matrix] | None = None

    def _rows_after(self, n_rows: int) -> int:
        """Return how many rows to look at next."""
        step, n = self.values.step, self.problems.n
        more = max(8 * n_rows, _FIRST_ROWS * self.basis.size, 1024)
        more = -(-more // step) * step
        # Less than twice as many are better taken at once.
        return n if 2 * more > n else more

    def _settled(self, state: SpanState) -> bool:
        """Return whether this level is as good as it needs to be."""
        if state.final:
            return state.shrunk and (not len(self._live(state)) or state.tired >= _TIRED)
        tol = _SAMPLE_TOL if state.n_rows < self.problems.n else _VECTORS_TOL
        near = state.decrement() <= tol * float(state.primal.sum())
        return near or state.steps >= _MOST_STEPS or not len(self._live(state))

    def _worth_growing(self, state: SpanState) -> bool:
        if self.choice.drawn >= self.max_vectors or self.choice.exhausted:
            return False
        primal = float(state.primal.sum())
        worth = not self.grow or primal < (1.0 - WORTH_DOUBLING) * self._level_primal
        return worth

    def _with_more_rows(self, state: SpanState, stop: int | None = None) -> SpanState:
        if self._scores_of is not state.beta:
            self._score(state.beta, 0, state.n_rows)
        if stop is None:
            stop = self.problems.n if state.shrunk else self._rows_after(state.n_rows)
        self._score(state.beta, state.n_rows, stop)
        if not state.shrunk:
            self.curvature.forget()
        self._forget_steps()
        return replace(self._look(state.beta, stop, None), final=state.final)

    def _on_near_rows(self, state: SpanState) -> SpanState:
        """Return the state on the rows that can matter, brought to the front."""
        if not len(self._live(state)) or not self.values.complete:
            return state
        near = self.problems.nearest(self.scores) < _NEAR
        step = self.values.step
        n_rows = -(-int(near.sum()) // step) * step
        if n_rows > _FEW * self.problems.n:
            return state
        out = np.flatnonzero(~near[:n_rows])
        back = n_rows + np.flatnonzero(near[n_rows:])
        out = out[: len(back)]
        self.values.swap(out, back)
        order = np.arange(self.problems.n)
        order[out], order[back] = back, out
        self.order = self.order[order]
        self.problems = self.problems.in_order(order)
        self.curvature.problems = self.problems
        self.scores[out], self.scores[back] = self.scores[back], self.scores[out]
        self._forget_steps()
        state = self._look(state.beta, n_rows, None)
        return replace(state, final=True, shrunk=True)

    def _with_more_vectors(self, state: SpanState) -> SpanState:
        """Return the same functions in the span of more vectors."""
        self._level_primal = float(state.primal.sum())
        drawn = self.choice.drawn
        count = min(2 * drawn, self.max_vectors) - drawn
        vectors = self.choice.draw(count, self._inside)
        old = self.basis.size
        self.basis = self.basis.extended(self.kernel, vectors, TOLERANCE[self.dtype], self.rows)
        self.values.add(self.basis.vectors.values[old:])
        self.curvature.forget()
        self._forget_steps()
        beta = np.insert(state.beta, old, np.zeros((self.basis.size - old, 1)), axis=0)
        self._scores_of = beta
        return self._look(beta, state.n_rows, None)

    def _with_more_digits(self, state: SpanState) -> SpanState:
        """Go on in float64 where float32 has no more to tell."""
        self.dtype = np.dtype(np.float64)
        self.scores = self.scores.astype(np.float64)
        self._values()
        self.values.add(self.basis.vectors.values)
        self._score(state.beta, 0, state.n_rows)
        return replace(self._look(state.beta, state.n_rows, None), final=state.final)

    def _forget_steps(self) -> None:
        self.bound = LowerBound(self.problems, self.dtype)
        self._conjugate = None

    def _inside(self) -> Vector:
        """Return how much each row is felt by the problems: Σ_p |2 C s ξ|."""
        everything = np.arange(self.problems.n_problems)
        felt = np.zeros(self.problems.n)
        for begin in range(0, self.problems.n, 16384):
            where = slice(begin, min(self.problems.n, begin + 16384))
            A, _ = self.problems.slopes(self.scores, where, everything, self.scores)
            felt[self.order[where]] = np.abs(A).sum(axis=1)
        return felt

    # Steps.

    def _live(self, state: SpanState) -> IndexArray:
        """Return the problems that have to go on.

        The classes of one machine are judged together: if the gap of their sum is met they are
        done, else those go on that have more than half a share in what is allowed.
        """
        slack = state.primal - state.dual
        live = np.zeros(len(slack), dtype=bool)
        for members in self._machines:
            allowed = self.tol * state.primal[members].sum()
            if slack[members].sum() > allowed:
                live[members] = slack[members] > 0.5 * allowed / len(members)
        return np.flatnonzero(live)

    def _descend(self, state: SpanState) -> SpanState:
        """Return the state after a step of conjugate gradients in every live problem."""
        live = self._live(state)
        if self.curvature.stale(self.basis, live, state.n_rows):
            self.curvature.form(
                self.basis, self.scores[: state.n_rows], live, bool(state.beta.any())
            )
            self._conjugate = None
            state = replace(state, newton=self._newton(state.gradient, live))
        assert state.newton is not None
        direction = self._direction(state.gradient, state.newton, live)
        moved = self._products(direction[:, live], state.n_rows)
        length = self._line_search(state, direction[:, live], moved, live)
        self._scores_of = None
        self.problems.advance(self.scores[: state.n_rows], moved, live, length)
        beta = state.beta.copy()
        beta[:, live] += length * direction[:, live]
        self._scores_of = beta
        self.curvature.used(live, state.n_rows)
        after = self._look(beta, state.n_rows, state)
        gained = state.primal.sum() - after.primal.sum()
        idle = gained <= _DIGITS[self.dtype] * state.primal.sum()
        return replace(
            after,
            final=state.final,
            shrunk=state.shrunk,
            steps=state.steps + 1,
            tired=state.tired + 1 if idle else 0,
        )

    def _direction(self, gradient: Matrix, newton: Matrix, live: IndexArray) -> Matrix:
        """Return the conjugate directions (Polak and Ribière), downhill in every problem."""
        direction = np.zeros_like(gradient)
        direction[:, live] = -newton[:, live]
        if self._conjugate is not None:
            last_direction, last_gradient, last_newton = self._conjugate
            change = newton * (gradient - last_gradient)
            before = (last_gradient * last_newton).sum(axis=0)
            share = np.zeros(len(before))
            np.divide(change.sum(axis=0), before, out=share, where=before > 0)
            mixed = direction + np.maximum(0.0, share) * last_direction
            downhill = (mixed * gradient).sum(axis=0) < 0
            kept = live[downhill[live]]
            direction[:, kept] = mixed[:, kept]
        self._conjugate = direction, gradient, newton
        return direction

    def _line_search(
        self, state: SpanState, direction: Matrix, moved: Scores, live: IndexArray
    ) -> Vector:
        """Return the best step of each problem: a root of a rising, piecewise linear function."""
        metric = self._metric(direction)
        slope0 = (metric * state.beta[:, live]).sum(axis=0)
        curve0 = (metric * direction).sum(axis=0)
        length = np.zeros(len(live))
        scores = self.problems.columns(self.scores[: state.n_rows], live)
        low, high = np.zeros(len(live)), np.full(len(live), np.inf)
        for _ in range(20):
            slope, curve = self.problems.along(scores, moved, live, length)
            slope += slope0 + length * curve0
            low = np.where(slope < 0, length, low)
            high = np.where(slope > 0, np.minimum(high, length), high)
            curve = np.maximum(curve + curve0, np.finfo(float).tiny)
            better = length - slope / curve
            # Newton's root of one linear piece; a bisection where it leaves the bracket.
            middle = np.where(np.isfinite(high), 0.5 * (low + high), 2.0 * length)
            better = np.where((better > low) & (better < high), better, middle)
            change = np.abs(better - length)
            length = better
            if (change <= _LENGTH_TOL * np.abs(length)).all():
                break
        return length

    # Passes over the rows.

    def _products(self, direction: Matrix, n_rows: int) -> Scores:
        """Return the scores of directions on the first rows."""
        moved = np.empty((n_rows, direction.shape[1]), dtype=self.dtype)
        product = _Product(direction.astype(self.dtype), moved)
        for _ in self.values.scan(product, 0, n_rows):
            pass
        return moved

    def _score(self, beta: Matrix, first: int, stop: int) -> None:
        """Compute the scores of some rows from the coefficients."""
        product = _Product(beta.astype(self.dtype), self.scores)
        for _ in self.values.scan(product, first, stop):
            pass
        self._scores_of = beta

    def _look(self, beta: Matrix, n_rows: int, before: SpanState | None) -> SpanState:
        """Return the state of `beta`: gradient, objectives and bound, over the first rows."""
        if self._scores_of is not beta:
            self._score(beta, 0, n_rows)
        live = np.arange(self.problems.n_problems) if before is None else self._live(before)
        slopes = _Slopes(self.problems, self.scores, live, self.bound.mixture)
        pull = np.zeros((self.basis.size + 1, len(live)))
        sums = np.zeros((4, len(live)))
        for partial, partial_sums in self.values.scan(slopes, 0, n_rows):
            pull[:-1] += partial
            sums += partial_sums
        pull[-1] = sums[1]
        if not np.isfinite(sums).all():
            raise ValueError(
                f"kernel={self.kernel.name!r} gives infinite or undefined values on this data: "
                "scale X (for example with StandardScaler) or use smaller kernel parameters."
            )
        metric = self._metric(beta[:, live])
        norm2 = (beta[:, live] * metric).sum(axis=0)
        gradient = np.zeros_like(beta) if before is None else before.gradient.copy()
        primal = np.zeros(len(beta.T)) if before is None else before.primal.copy()
        dual = np.zeros(len(beta.T)) if before is None else before.dual.copy()
        gradient[:, live] = metric - pull
        primal[live] = 0.5 * norm2 + sums[0]
        whitened = self._whitened(pull, live)
        dual[live] = self.bound.improved(self.scores[:n_rows], live, whitened, sums)
        newton = None
        if self.curvature.ready:
            newton = self._newton(gradient, live)
        return SpanState(beta, gradient, newton, primal, dual, n_rows)

    # What the certificate says beside the gap.

    def _rounding(self, state: SpanState) -> float:
        """Return how far rounding may move primal and dual, as measured on some rows.

        If scores are off by e, the loss C Σ s ξ² moves by at most 2 (C Σ s ξ²)^½ (C Σ s e²)^½
        and a bit; so does the dual, whose slope is the same. The sum over e is measured in float64.
        """
        if self.dtype == np.float64:
            return 0.0
        n = self.problems.n
        index = np.unique(np.linspace(0, n - 1, min(n, 1024)).astype(np.intp))
        exact = np.empty((len(index), self.basis.size))
        self.kernel.block(self.values.rows.block(index), self.basis.vectors.values, out=exact)
        error = exact @ state.beta[:-1] + state.beta[-1] - self.scores[index]
        weight = self.problems.weight
        square = weight[index] @ (error * error) / weight[index].sum() * weight.sum()
        loss = state.primal - 0.5 * (state.beta * self._metric(state.beta)).sum(axis=0)
        reach = np.sqrt(self.problems.C * square)
        return float((4.0 * np.sqrt(np.maximum(0.0, loss)) * reach + reach**2).sum())

    def _full_dual(self) -> float:
        """Return the best dual value of the full problem on the vectors' rows.

        Dual variables that are zero elsewhere are feasible for the problem without a span.
        """
        index = self.basis.vectors.index
        if index is None:
            index = np.arange(min(self.problems.n, self.basis.size))
            vectors = Vectors(self.rows.take(index), index)
            gram = kernel_matrix(self.kernel, self.rows, vectors, vectors)
        else:
            gram = self.basis.gram
        place = np.argsort(self.order)[index]
        problems = self.problems

        def best(p: int) -> float:
            felt = problems.fold[place] != problems.held[p]
            ridge = 1.0 / (2.0 * problems.C[p] * problems.weight[place][felt])
            values = gram if felt.all() else gram[np.ix_(felt, felt)]
            point = solve_margin_dual(
                np.ascontiguousarray(values),
                problems.sign(p, place[felt]),
                ridge,
                gap=0.02,
                max_rounds=20,
            )
            return point.objectives()[1]

        return float(sum(ordered_map(best, range(problems.n_problems), problems.threads)))

    # Algebra in the span.

    def _metric(self, beta: Matrix) -> Matrix:
        """Return K_z β, and the bias as it is."""
        metric = np.empty_like(beta)
        np.matmul(self.basis.gram, beta[:-1], out=metric[:-1])
        metric[-1] = beta[-1]
        return metric

    def _newton(self, gradient: Matrix, live: IndexArray) -> Matrix:
        """Return the preconditioned gradients of the live problems, zero for the others."""
        newton = np.zeros_like(gradient)
        newton[:, live] = self.curvature.solve(gradient[:, live], live)
        if self.directions is not None:
            for j in live:
                normal = self._normals(j)
                tilted = self.curvature.solve(normal, np.full(normal.shape[1], j))
                inner = normal.T @ tilted
                newton[:, j] -= tilted @ np.linalg.solve(inner, normal.T @ newton[:, j])
        return newton

    def _normals(self, problem: int) -> Matrix:
        """Return K_z v of the directions v that a problem's coefficients must be orthogonal to."""
        assert self.directions is not None
        return self._metric(
            np.vstack([self.directions[problem].T, np.zeros(self.directions.shape[1])])
        )

    def _whitened(self, pull: Matrix, live: IndexArray) -> Matrix:
        """Return Σ α y φ_z(x) in an orthonormal basis, without its part along the directions."""
        whitened = np.empty_like(pull)
        whitened[:-1] = self.basis.whitened(pull[:-1])
        whitened[-1] = pull[-1]
        if self.directions is not None:
            for j, p in enumerate(live):
                unit = self.basis.factor.T @ self.directions[p].T
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
    mixture: Scores

    def __call__(self, values: list[Values], where: slice) -> tuple[Any, Vector]:
        A, sums = self.problems.slopes(self.scores, where, self.live, self.mixture)
        return np.concatenate([piece.T @ A for piece in values]), sums
