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
solution before; where the kernel values of all rows do not fit into memory, all but the last steps
look only at those that do. Rows far outside every margin change nothing: at the end, where they
are many, the rest changes places with them and the last steps see only the rows in front; then all
are looked at again.

The certificate: α = 2 C s ξ ≥ 0 is feasible for the dual (37) with the kernel (40), and so is every
mixture of the α of earlier steps. The best mixture with the latest, times its best factor, is kept:
its value is a lower bound on the optimum, and costs no pass over the kernel values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Values, Vector
from widemargin.certificate import Certificate
from widemargin.expansion import Earlier
from widemargin.loop import Ended, Solver, Stop, bounds, relative_gap
from widemargin.problem import Problem
from widemargin.span.basis import Basis, Vectors
from widemargin.span.descent import Descent, SpanState
from widemargin.span.landmarks import Choice
from widemargin.span.shards import Shards
from widemargin.span.span_sizes import SpanSizes

# Rows, in multiples of the vectors, that the first fit looks at.
_FIRST_ROWS = 8
# How many times as many the next one looks at.
_MORE_ROWS = 8
# A sample of the rows is left when the objective is within this share of its optimum: the next
# sample will change it more.
_SAMPLE_TOL = 2e-2
# The same for a number of vectors.
_VECTORS_TOL = 2e-3
# Steps after which a level is left in any case.
_MOST_STEPS = 30
# More vectors pay as long as a doubling lowers the objective by this share.
WORTH_DOUBLING = 1e-2
# Share of the room that the factors of Newton matrices may take, if they need no more.
_FACTORS_SHARE = 1 / 3
# A vector joins if it lies this far outside the span of the others (squared, relative): below it,
# values rounded to float32 say nothing.
TOLERANCE = {np.dtype(np.float32): 1e-4, np.dtype(np.float64): 1e-10}
# Rows with a margin below this stay in front at the end.
_NEAR = 1.1
# Times that the rows near a margin are chosen anew where values are not kept: a look at all rows
# costs little beside the steps that it saves.
_MOST_RETURNS = 4
# Steps in a row that gain nothing, after which there is nothing to gain at this precision.
_TIRED = 5

# Kernel values that are not finite make sums that are not, which `Descent` looks at.
_overflow_shows_in_the_sums = np.errstate(over="ignore", invalid="ignore")


@dataclass(eq=False)
class SpanFit(Solver[SpanState]):
    """Fit problems in the span of vectors: a solver for ``loop.run``.

    Parameters
    ----------
    problem : Problem
        What is to be fitted, rows in random order.
    choice : Choice
        Where vectors come from.
    tol : float
        Stop at this relative duality gap; without `bounds`, when Newton's estimate of the distance
        from the optimum is this small in every problem.
    max_vectors : int
        Vectors at the most.
    grow : bool
        Stop adding vectors when a doubling gains too little; else add as many as allowed.
    dtype : dtype
        Precision of kernel values and scores.
    room : int
        Bytes for kernel values and the factors of Newton matrices.
    least_factors : int, default=0
        Bytes of it that are for factors in any case.
    bounds : bool, default=True
        Compute lower bounds on the optima.
    directions : ndarray of shape (n_problems, n_directions, max_vectors), default=None
        Coefficients of unit vectors in the span that each w must be orthogonal to. They refer to
        the basis of the vectors that `choice` gives, in its order.
    earlier : Earlier, default=None
        Where to start.
    shared : SpanFit, default=None
        A finished fit of the same rows, on whose vectors and kernel values this one is to be made.
    elsewhere : Shards, default=None
        The rows, if they are not those of `problem`: it then holds the rows that were drawn.
    sizes : SpanSizes, default=SpanSizes()
        Sizes at which it changes its ways.
    """

    problem: Problem
    choice: Choice
    tol: float
    max_vectors: int
    grow: bool
    dtype: np.dtype[Any]
    room: int
    least_factors: int = 0
    bounds: bool = True
    directions: NDArray[np.float64] | None = None
    earlier: Earlier | None = None
    shared: SpanFit | None = None
    elsewhere: Shards | None = None
    sizes: SpanSizes = field(default_factory=SpanSizes)

    def __post_init__(self) -> None:
        problem, shared = self.problem, self.shared
        if self.choice.of_rows:
            n = problem.n if self.elsewhere is None else self.elsewhere.n
            self.max_vectors = min(self.max_vectors, n)
        self._begin(self.dtype, shared)
        kinds = np.vstack([problem.C, problem.counts])
        _, machine = np.unique(kinds, axis=1, return_inverse=True)
        self._machines = [np.flatnonzero(machine.ravel() == m) for m in range(machine.max() + 1)]
        self._level_primal = np.inf
        self._returns = 0

    def _begin(self, dtype: np.dtype[Any], shared: SpanFit | None) -> None:
        factors = max(int(_FACTORS_SHARE * self.room), self.least_factors)
        if self.elsewhere is None:
            room, others = max(0, self.room - factors), None if shared is None else shared.shards
            self.shards: Shards = Shards.here(self.problem, dtype, room, self.max_vectors, others)
        else:
            self.shards = self.elsewhere
        beside = None if shared is None else shared.descent
        self.descent: Descent = Descent(
            self.problem, self.shards, dtype, factors, self.bounds, self.directions, beside
        )

    @property
    def basis(self) -> Basis:
        """The vectors."""
        return self.descent.basis

    def scores(self) -> Values:
        """Return the scores of all rows, in their first order."""
        return self.shards.scores()

    def scores_at(self, index: IndexArray, columns: IndexArray) -> Values:
        """Return the scores of some rows, by their first order, in some problems."""
        return self.shards.scores_at(index, columns)

    # The methods of a solver.

    @_overflow_shows_in_the_sums
    def start(self) -> SpanState:
        """Return the zero function on the first vectors and rows, or an earlier solution."""
        if self.earlier is not None and self.choice.adopt(self.earlier.index):
            return self._from_earlier(self.earlier)
        if self.shared is None:
            at_once = not self.choice.nested or self.directions is not None
            first = self.max_vectors if at_once else min(self.max_vectors, self.sizes.first_vectors)
            self.descent.extend(self._basis_with(self.choice.draw(first, None)))
        beta = np.zeros((self.basis.size + 1, self.problem.n_problems))
        self.descent.scores_of = beta
        # Where all kernel values are at hand, a sample of the rows is no better a start.
        ready = self.shared is not None and self.shards.complete
        return self.descent.look(beta, self.shards.n if ready else self._rows_after(0))

    @_overflow_shows_in_the_sums
    def step(self, state: SpanState) -> SpanState:
        """Take a step, or go on to other rows or more vectors."""
        if self._settled(state):
            if state.shrunk or state.n_rows < self._enough_rows:
                return self._with_more_rows(state)
            if self._worth_growing(state):
                return self._with_more_vectors(state)
            more = self._more_rows(state.n_rows)
            if more < self.shards.n:
                return self._with_more_rows(state, more)
            state = replace(state, final=True)
            if state.n_rows < self.shards.n:
                state = self._with_more_rows(state)
            return self._on_near_rows(state)
        live = self._live(state)
        if not len(live):
            return self._proved(state)
        if self._dear(state):
            self._returns += 1
            near = self._on_near_rows(state)
            if near.shrunk:
                return near
        if state.tired >= _TIRED and self.descent.dtype == np.float32:
            return self._with_more_digits(state)
        return self.descent.descend(state, live)

    def certificate(self, state: SpanState) -> Certificate:
        """Return primal and dual of all problems together."""
        primal, dual = float(state.primal.sum()), float(state.dual.sum())
        return bounds(
            primal,
            dual,
            gap=relative_gap(primal, dual - (state.rounding or 0.0)),
            scope="span" if state.n_rows == self.shards.n else "sample",
            n_vectors=self.basis.size,
            n_passes=self.shards.n_passes,
            n_kernel=self.shards.n_kernel,
        )

    def stopped(self, state: SpanState) -> Stop | None:
        """Return whether the gap is met and nothing more is to be added."""
        if not state.final or state.n_rows < self.shards.n:
            return None
        exact = self.descent.dtype == np.float64 and self.bounds
        if not len(self._live(state)) and (exact or state.rounding is not None):
            return Stop(Ended.SOLVED, f"gap within {self.tol:g}")
        if state.tired >= _TIRED and self.descent.dtype == np.float64:
            return Stop(Ended.PRECISION, "nothing left to gain at this precision")
        return None

    @_overflow_shows_in_the_sums
    def finish(self, state: SpanState) -> SpanState:
        """Return the state with a certificate over all rows."""
        missing = self.basis.size + 1 - len(state.beta)
        if missing:
            # An interrupt came between new vectors and the first look at them.
            zeros = np.zeros((missing, 1))
            state = replace(state, beta=np.insert(state.beta, len(state.beta) - 1, zeros, axis=0))
        if state.n_rows < self.shards.n or self.descent.scores_of is not state.beta:
            state = self._with_more_rows(state, self.shards.n)
        if self.bounds and state.rounding is None:
            state = replace(state, rounding=self._hidden(state))
        return state

    def _proved(self, state: SpanState) -> SpanState:
        """Return the state with what rounding may hide, or in float64 if that is too much.

        Without bounds there is nothing to prove, but estimates are made again with new matrices.
        """
        if not self.bounds:
            everything = np.arange(self.problem.n_problems)
            return replace(self.descent.estimated(state, everything), rounding=0.0)
        hidden = self._hidden(state)
        if hidden > 0.5 * self.tol * float(state.primal.sum()):
            return self._with_more_digits(state)
        return replace(state, rounding=hidden)

    def _hidden(self, state: SpanState) -> float:
        if self.descent.dtype == np.float64:
            return 0.0
        return self.shards.hidden(self.basis.vectors.values, state.beta)

    # What is done, and what to do next.

    def _live(self, state: SpanState) -> IndexArray:
        """Return the problems that have to go on.

        The classes of one machine are judged together: if the gap of their sum is met they are
        done, else those go on that have more than half a share in what is allowed.
        """
        slack = state.primal - state.dual if self.bounds else state.decrement()
        if state.rounding:
            slack = slack + state.rounding * state.primal / state.primal.sum()
        live = np.zeros(len(slack), dtype=bool)
        for members in self._machines:
            allowed = self.tol * state.primal[members].sum()
            # Written so that what is not a number is not done; nor is what is infinite.
            if not allowed < np.inf:
                live[members] = True
            elif not slack[members].sum() <= allowed:
                live[members] = ~(slack[members] <= 0.5 * allowed / len(members))
        return np.flatnonzero(live)

    def _settled(self, state: SpanState) -> bool:
        """Return whether this level is as good as it needs to be."""
        if state.final:
            return state.shrunk and (not len(self._live(state)) or state.tired >= _TIRED)
        tol = _SAMPLE_TOL if state.n_rows < self._enough_rows else _VECTORS_TOL
        near = (state.decrement() / self.problem.C).sum() <= tol * self._overall(state)
        return bool(near) or state.steps >= _MOST_STEPS or not len(self._live(state))

    def _worth_growing(self, state: SpanState) -> bool:
        if self.choice.drawn >= self.max_vectors or self.choice.exhausted:
            return False
        return not self.grow or self._overall(state) < (1 - WORTH_DOUBLING) * self._level_primal

    def _overall(self, state: SpanState) -> float:
        """Return the objectives in one number to which every C contributes alike."""
        return float((state.primal / self.problem.C).sum())

    @property
    def _enough_rows(self) -> int:
        """Rows to look at until all vectors are there: those whose kernel values can be kept."""
        shards, n = self.shards, self.shards.n
        # Some vectors will turn out redundant: if half the values fit, all may.
        if shards.rows_kept(self.max_vectors // 2) == n:
            return n
        least = _rounded_up(_FIRST_ROWS * self.max_vectors, shards.step)
        return shards.first(min(n, max(shards.rows_kept(self.max_vectors), least)))

    def _rows_after(self, n_rows: int) -> int:
        """Return how many rows to look at next."""
        step, enough = self.shards.step, self._enough_rows
        if n_rows >= enough:
            return self.shards.n
        more = _rounded_up(max(_MORE_ROWS * n_rows, _FIRST_ROWS * self.basis.size, 1024), step)
        # Less than twice as many are better taken at once.
        return enough if 2 * more > enough else self.shards.first(more)

    def _more_rows(self, n_rows: int) -> int:
        """Return how many rows to look at when all vectors are there and values are not kept.

        A pass over all rows is dear then: what a part of them can tell is learned from that part.
        """
        more = _rounded_up(_MORE_ROWS * n_rows, self.shards.step)
        return self.shards.n if 2 * more > self.shards.n else self.shards.first(more)

    # Levels.

    def again(
        self, problem: Problem, directions: NDArray[np.float64] | None, tol: float
    ) -> SpanFit:
        """Return the solver of other problems of these rows, on the vectors of this one.

        Parameters
        ----------
        problem : Problem
            What is to be fitted, rows in their first order.
        directions : ndarray of shape (n_problems, n_directions, r) or None
            Coefficients of unit vectors in the span that each w must be orthogonal to.
        tol : float
            Relative duality gap.

        Returns
        -------
        SpanFit
            A solver for ``loop.run``. This one must not go on beside it: rows may change places.
        """
        if self.elsewhere is not None:
            self.elsewhere.restate(problem)
        return replace(
            self,
            problem=problem,
            tol=tol,
            # No more than are drawn.
            max_vectors=self.choice.drawn,
            grow=False,
            dtype=self.descent.dtype,
            directions=directions,
            earlier=None,
            shared=self,
        )

    def _basis_with(self, vectors: Vectors) -> Basis:
        if self.choice.problem is not None:
            # The rows that were drawn.
            self.problem = self.choice.problem
        tolerance = TOLERANCE[self.descent.dtype]
        return self.basis.extended(self.problem.kernel, vectors, tolerance, self.problem.rows)

    def _from_earlier(self, earlier: Earlier) -> SpanState:
        basis = self._basis_with(Vectors(self.problem.rows.take(earlier.index), earlier.index))
        self.descent.extend(basis)
        assert basis.vectors.index is not None
        order = np.argsort(earlier.index)
        kept = order[np.searchsorted(earlier.index, basis.vectors.index, sorter=order)]
        beta = np.vstack([earlier.coef[kept], earlier.intercept])
        return self.descent.look(beta, self.shards.n)

    def _with_more_rows(self, state: SpanState, stop: int | None = None) -> SpanState:
        descent = self.descent
        first = state.n_rows if descent.scores_of is state.beta else 0
        if stop is None:
            stop = self.shards.n if state.shrunk else self._rows_after(state.n_rows)
        descent.score(state.beta, first, stop)
        if not state.shrunk:
            descent.curvature.forget()
        descent.forget_steps()
        return replace(descent.look(state.beta, stop), final=state.final)

    def _with_more_vectors(self, state: SpanState) -> SpanState:
        """Return the same functions in the span of more vectors."""
        self._level_primal = self._overall(state)
        drawn = self.choice.drawn
        # From few vectors to many at first: the gain of a doubling there is no question.
        few = drawn <= self.sizes.first_vectors and 6 * drawn <= self.max_vectors
        count = min((4 if few else 2) * drawn, self.max_vectors) - drawn
        old = self.basis.size
        felt = RowsFelt(self.shards, state.n_rows)
        self.descent.extend(self._basis_with(self.choice.draw(count, felt)))
        beta = np.insert(state.beta, old, np.zeros((self.basis.size - old, 1)), axis=0)
        if self.descent.scores_of is state.beta:
            self.descent.scores_of = beta
        return self.descent.look(beta, state.n_rows)

    def _dear(self, state: SpanState) -> bool:
        """Return whether a step on all rows computes values again that near ones would spare."""
        whole = state.final and not state.shrunk and state.n_rows == self.shards.n
        return whole and self._returns < _MOST_RETURNS and not self.shards.complete

    def _on_near_rows(self, state: SpanState) -> SpanState:
        """Return the state on the rows that can matter, brought to the front."""
        if not len(self._live(state)):
            return state
        n_rows = self.descent.bring_near(_NEAR, self.sizes.near_share * self.shards.n)
        if n_rows is None:
            return state
        return replace(self.descent.look(state.beta, n_rows), final=True, shrunk=True)

    def _with_more_digits(self, state: SpanState) -> SpanState:
        """Go on in float64 where float32 has no more to tell."""
        basis, dtype = self.basis, np.dtype(np.float64)
        factors = self.descent.factors
        self.shards.restart(dtype)
        self.descent = Descent(
            self.problem, self.shards, dtype, factors, self.bounds, self.directions, None
        )
        self.descent.extend(basis)
        after = self.descent.look(state.beta, state.n_rows)
        return replace(after, final=state.final, shrunk=state.shrunk)


@dataclass(frozen=True)
class RowsFelt:
    """How much the first rows are felt, when it is asked for."""

    shards: Shards
    n_rows: int

    def __call__(self) -> Vector:
        """Return it for the rows that are here, in their first order."""
        return self.shards.felt(self.n_rows)


def _rounded_up(number: int, step: int) -> int:
    """Return the least multiple of a step that is not below a number."""
    return -(-number // step) * step
