"""Core sets: the few rows that hold the ball.

Algorithm 1 of MMDA-CVM (and of BVM) for all label columns at once. A core set starts small, the
ball of its rows is found, and rows outside that ball join until none is left outside.

Which rows join is said in ``joining``. ``growth="one"`` is the paper's: each ball has a core set of
its own, and the furthest row joins, or the furthest of a random sample (59 rows: with probability
0.95 one of the furthest 5 %). With the furthest row at most 2/ε rows join, and R² is within
(1 + ε)² (Theorems 1 and 2).

``growth="batch"`` is ours: kernel values carry no labels, so all balls share one core, one matrix
of values and one pass over the rows; the core doubles with rows outside the balls of every problem,
and while it is small a sample of the rows stands for all of them. Where the matrix of all rows fits
into memory, the core is all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.balls.core import BallMethod, CoreProblem, State, Vector, padded
from widemargin.balls.joining import Growth, InBatches, OneByOne
from widemargin.balls.look import Look, all_inside, look_at
from widemargin.balls.matrix import CoreMatrix
from widemargin.balls.points import Points
from widemargin.balls.state import CoreState
from widemargin.certificate import Certificate, relative_gap
from widemargin.loop import Stop
from widemargin.machines import Machines
from widemargin.rows.base import IndexArray
from widemargin.threads import ordered_map

Answer = TypeVar("Answer")

# Problems with fewer core rows are solved sooner than a thread has started.
_WORTH_A_THREAD = 800


class CoreSet(Generic[State]):
    """Grow a core set until its balls hold all rows: a solver for ``loop.run``.

    Parameters
    ----------
    points : Points
        The rows as points.
    method : BallMethod
        How a ball is found on the core rows.
    growth : {"batch", "one"}
        See above.
    sample_size : int or None
        Rows that ``growth="one"`` draws to find a far one; None looks at all.
    tol : float or None
        Stop at this relative duality gap in every problem; None stops when no row lies outside any
        ball.
    capacity : int
        Core rows at the most.
    capacity_name : str
        What a user would change to raise it.
    dtype : dtype
        Precision of the kernel values.
    rng : numpy.random.Generator
        For samples.
    threads : int
        Problems that are solved at a time.
    first : ndarray of int, default=None
        Rows to start from, with their dual variables `first_alpha` of shape
        (n_problems, len(first)).
    """

    def __init__(
        self,
        points: Points,
        method: BallMethod[State],
        *,
        growth: str,
        sample_size: int | None,
        tol: float | None,
        capacity: int,
        capacity_name: str,
        dtype: DTypeLike,
        rng: np.random.Generator,
        threads: int,
        first: IndexArray | None = None,
        first_alpha: NDArray[np.float64] | None = None,
    ) -> None:
        self.points = points
        self.method = method
        self.tol = tol
        self.capacity = min(capacity, points.n)
        self.capacity_name = capacity_name
        self.dtype = dtype
        self.rng = rng
        self.threads = threads
        self.growth: Growth = InBatches(points, self.capacity, rng)
        if growth == "one":
            self.growth = OneByOne(points, self.capacity, rng, sample_size)
        # With less room than before, the earlier solution is of no use.
        usable = first is not None and len(first) + len(points.table) <= self.capacity
        self.first = first if usable and first is not None else np.empty(0, dtype=np.intp)
        empty = np.empty((points.n_problems, 0))
        self.first_alpha = first_alpha if usable and first_alpha is not None else empty
        self.matrix = CoreMatrix(points, self.capacity, dtype)
        # Samples that showed no row outside where there was one.
        self._misses = 0

    # The four methods of a solver.

    def start(self) -> CoreState[State]:
        """Return the balls of a first core."""
        core, member = self.growth.first(self.first, self.first_alpha)
        n_kernel = self.matrix.extend(core, 0)
        alpha = None
        if len(self.first):
            alpha = np.zeros((self.points.n_problems, len(core)))
            place = np.argsort(core)[np.searchsorted(np.sort(core), self.first)]
            alpha[:, place] = self.first_alpha

        def begin(p: int) -> State:
            problem = self._problem(p, core, member)
            return self.method.begin(problem, None if alpha is None else alpha[p, member[p]])

        balls = tuple(self._each(begin, member))
        return self._seen(core, member, balls, 0, n_kernel)

    def step(self, state: CoreState[State]) -> CoreState[State]:
        """Let rows outside the balls join, or refine the balls if there are none."""
        done, gaps = self._done(state), self._gaps(state)
        joined = self.growth.join(state, done)
        if joined is None:
            return self._refined(state)
        kept, core, member = joined
        self.matrix.keep(kept)
        n_kernel = state.n_kernel + self.matrix.extend(core, len(kept))
        # With one row at a time, most core sets stay as they are, and so do their balls.
        same_core = member[:, : len(kept)].sum(axis=1) == member.sum(axis=1)

        def solve(p: int) -> State:
            ball = state.balls[p]
            if same_core[p] and len(ball.alpha) == member[p].sum():
                return ball
            worst = max(ball.worst, float(state.look.worst[p]))
            problem = self._problem(p, core, member)
            carried = self._carried(state, p, kept, member)
            return self.method.solve(problem, carried, float(gaps[p]), worst)

        balls = tuple(self._each(solve, member))
        return self._seen(core, member, balls, state.n_passes, n_kernel)

    def certificate(self, state: CoreState[State]) -> Certificate:
        """Return primal, dual and ball of all problems together."""
        primal, dual = self.objectives(state)
        # The sums' gap, and the rounding of the problems in the shares that they have in it.
        gap = float((self._gaps(state) * primal).sum() / max(primal.sum(), np.finfo(float).tiny))
        eps = [
            ball.eps(self.points.eta, max(float(worst), ball.worst))
            for ball, worst in zip(state.balls, state.look.worst, strict=True)
        ]
        return Certificate(
            primal=float(primal.sum()),
            dual=float(dual.sum()),
            gap=min(1.0, gap),
            eps=max(eps),
            scope="full" if state.look.full else "sample",
            n_vectors=int((state.alpha() > 0).any(axis=0).sum()),
            n_iter=0,
            n_passes=state.n_passes,
            n_kernel=state.n_kernel,
            seconds=0.0,
            stopped="",
        )

    def stopped(self, state: CoreState[State]) -> Stop | None:
        """Return whether all problems are solved, or the core may not grow."""
        if state.look.full and self._done(state).all():
            rule = (
                "no row lies outside the ball" if self.tol is None else f"gap within {self.tol:g}"
            )
            return Stop(rule, converged=True)
        if state.exhausted:
            return Stop("nothing left to refine at this precision", converged=False)
        full = self.growth.is_full(state) and state.outside().any()
        if full and self._solved_on_core(state):
            return Stop(f"{self.capacity_name} reached", converged=False)
        return None

    def finish(self, state: CoreState[State]) -> CoreState[State]:
        """Return the state with a full pass behind its certificate."""
        return state if state.look.full else self._seen_in_full(state)

    def machines(self, state: CoreState[State]) -> tuple[Machines, IndexArray, Vector]:
        """Return the decision functions, the rows that are their vectors, and dual coefficients.

        Where there are directions U, their part Uγ of w is not in them: see `multipliers`.
        """
        return self._machines(state.core, state.member, state.balls)

    def _carried(
        self, state: CoreState[State], p: int, kept: IndexArray, member: NDArray[np.bool_]
    ) -> State:
        """Return a ball with its variables placed among the members of a new core."""
        before = np.zeros(len(state.core))
        before[state.member[p]] = state.balls[p].alpha
        after = padded(before[kept], member.shape[1])
        moved: State = replace(state.balls[p], alpha=after[member[p]])
        return moved

    def _refined(self, state: CoreState[State]) -> CoreState[State]:
        """Return the state with the unfinished balls refined, on the same core."""
        done = self._done(state)

        def refine(p: int) -> State | None:
            if done[p]:
                return None
            problem = self._problem(p, state.core, state.member)
            return self.method.refine(problem, state.balls[p])

        refined = self._each(refine, state.member)
        if all(ball is None for ball in refined):
            return replace(state, exhausted=True)
        balls = tuple(
            old if new is None else new for old, new in zip(state.balls, refined, strict=True)
        )
        return self._seen(state.core, state.member, balls, state.n_passes, state.n_kernel)

    # Looks at the rows.

    def _seen(
        self,
        core: IndexArray,
        member: NDArray[np.bool_],
        balls: tuple[State, ...],
        n_passes: int,
        n_kernel: int,
    ) -> CoreState[State]:
        """Return the state after a look at the rows, a sampled one while that tells enough."""
        n = self.points.n
        if len(core) == n and member.all():
            look = all_inside(np.array([ball.loss for ball in balls]))
            return CoreState(core, member, balls, look, max(1, n_passes), n_kernel)
        size = self.growth.look_size(len(core), self._misses)
        if size < n:
            index = self.points.rows.sample(size, self.rng)
            look, computed = self._look(core, member, balls, index)
            n_kernel += computed
            state = CoreState(core, member, balls, look, n_passes, n_kernel)
            if state.outside().any() and not self._done(state).all():
                return state
        look, computed = self._look(core, member, balls, None)
        state = CoreState(core, member, balls, look, n_passes + 1, n_kernel + computed)
        self._misses += size < n and bool(state.outside().any())
        return state

    def _seen_in_full(self, state: CoreState[State]) -> CoreState[State]:
        look, computed = self._look(state.core, state.member, state.balls, None)
        return replace(
            state, look=look, n_passes=state.n_passes + 1, n_kernel=state.n_kernel + computed
        )

    def _look(
        self,
        core: IndexArray,
        member: NDArray[np.bool_],
        balls: tuple[State, ...],
        index: IndexArray | None,
    ) -> tuple[Look, int]:
        """Look at rows (all if index is None) with the machines of `balls`."""
        machines, used, beta = self._machines(core, member, balls)
        gamma = multipliers(self.points, used, beta)
        threshold = np.array([ball.threshold for ball in balls])
        return look_at(self.points, machines, gamma, core, member, threshold, index)

    # Problems, machines, and what is known of them.

    def _problem(self, p: int, core: IndexArray, member: NDArray[np.bool_]) -> CoreProblem:
        """Return one problem on its core rows."""
        own = member[p]
        K = self.matrix.values(len(core))
        values: NDArray[Any] = K if own.all() else K[np.ix_(own, own)]
        index = core[own]
        projection = None
        if self.points.projections is not None:
            projection = self.points.projections[p, index]
            values = values[:, : len(values)] - projection @ projection.T
        sign, ridge = self.points.sign(p, index), self.points.ridge[index]
        return CoreProblem(values, sign, ridge, self.points.eta, projection)

    def _each(self, work: Callable[[int], Answer], member: NDArray[np.bool_]) -> list[Answer]:
        """Return work(p) of every problem, in threads where it is worth their while."""
        small = int(member.sum(axis=1).max()) < _WORTH_A_THREAD
        threads = 1 if small else self.threads
        return list(ordered_map(work, range(self.points.n_problems), threads))

    def _machines(
        self, core: IndexArray, member: NDArray[np.bool_], balls: tuple[State, ...]
    ) -> tuple[Machines, IndexArray, Vector]:
        alpha = np.zeros(member.shape)
        for p, ball in enumerate(balls):
            alpha[p, member[p]] = ball.alpha
        used = np.flatnonzero((alpha > 0).any(axis=0))
        signs = self.points.table[self.points.code[core[used]]]
        beta = alpha[:, used].T * signs
        intercept = beta.sum(axis=0)
        vectors = self.points.rows.take(core[used])
        at_a_time = self.points.rows.vectors_at_a_time
        machines = Machines(self.points.kernel, vectors, beta, intercept, self.dtype, at_a_time)
        return machines, core[used], beta

    def objectives(self, state: CoreState[State]) -> tuple[Vector, Vector]:
        """Return the primal, as far as the look showed, and the dual value of each problem."""
        norm2 = np.array([ball.norm2 for ball in state.balls])
        dual = np.array([ball.dual for ball in state.balls])
        return 0.5 * norm2 + state.look.loss, dual

    def _done(self, state: CoreState[State]) -> NDArray[np.bool_]:
        """Return which problems meet the stopping rule, as far as the look showed."""
        if self.tol is None:
            done = ~state.outside()
            for p, ball in enumerate(state.balls):
                done[p] &= self.method.finished(ball)
            return done
        return self._gaps(state) <= self.tol

    def _solved_on_core(self, state: CoreState[State]) -> bool:
        """Return whether the balls are as good as the stopping rule asks, for the core rows."""
        if self.tol is None:
            return all(self.method.finished(ball) for ball in state.balls)
        gaps = [ball.core_gap() for ball in state.balls]
        # Of rows that are not enough anyway, a hundredth is enough.
        return max(gaps) <= max(self.tol, 1e-2)

    def _gaps(self, state: CoreState[State]) -> Vector:
        """Return the relative gap of each problem, with what rounding may hide of it."""
        primal, dual = self.objectives(state)
        return np.array(
            [
                relative_gap(float(high), float(low))
                + rounding(self.dtype, self.points, float(np.linalg.norm(ball.alpha)))
                for high, low, ball in zip(primal, dual, state.balls, strict=True)
            ]
        )


def multipliers(points: Points, index: IndexArray, beta: Vector) -> NDArray[np.float64] | None:
    """Return γ = −UᵀΦβ of each problem, (8) of MMDA-CVM: w = Φβ + Uγ is orthogonal to U.

    Parameters
    ----------
    points : Points
        The rows, and their projections onto U.
    index : ndarray of int of shape (m,)
        Rows of an expansion.
    beta : ndarray of shape (m, n_problems)
        Their coefficients, with labels.

    Returns
    -------
    ndarray of shape (n_problems, n_directions) or None
        γ, or None if there are no directions.
    """
    if points.projections is None:
        return None
    gamma: NDArray[np.float64] = -np.einsum("ip,piq->pq", beta, points.projections[:, index])
    return gamma


def rounding(dtype: DTypeLike, points: Points, norm: float) -> float:
    """Return by how much rounded kernel values may change a relative gap.

    A value is off by the unit roundoff u times its size, at most η; errors are independent, so f is
    off by about u η ‖α‖, the objectives by Σα times that, and Σα is twice the objective.
    """
    unit = float(np.finfo(dtype).eps) / 2
    return 4.0 * unit * points.roundoff * points.eta * norm
