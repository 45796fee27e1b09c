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

The points whose ball is the SVM: row i with label y_i = ±1 and weight s_i is
φ̃(z_i) = (y_i φ(x_i), y_i, e_i √ridge_i), (3) and (4) of BVM and (7) of MMDA-CVM, so that

    Q_ij = y_i y_j (k(x_i, x_j) + 1 − p_iᵀp_j) + δ_ij ridge_i,   ridge_i = 1 / (2 C s_i),

p_i = Uᵀφ(x_i) for unit directions U that the centre must be orthogonal to. Distances are those of
the centre-constrained ball, (16) and (19) of MMDA-CVM: every point carries an extra coordinate
that makes its squared norm η, the largest of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.balls.ball import BallMethod, CoreProblem, Precision, State, largest_norm2, padded
from widemargin.balls.core_matrix import CoreMatrix
from widemargin.balls.core_state import CoreOptions, CoreState
from widemargin.balls.joining import Growth, InBatches, OneByOne
from widemargin.balls.look import BallMachines, Look, all_inside, look_at
from widemargin.certificate import Certificate
from widemargin.expansion import Expansion, Fitted
from widemargin.loop import Ended, Limits, Stop, bounds, relative_gap, run
from widemargin.problem import Problem
from widemargin.threads import ordered_map

Answer = TypeVar("Answer")

# Problems with fewer core rows are solved sooner than a thread has started.
_WORTH_A_THREAD = 800
# A relative gap at which a machine is the best that can be written down.
_OPTIMAL = 1e-9
# Share of the memory budget that the matrix of kernel values may take; blocks of rows and the
# values of working sets need the rest.
_MATRIX_SHARE = 0.7


def fit_core(problem: Problem, method: BallMethod[Any], options: CoreOptions) -> Fitted:
    """Fit machines by balls on a core set.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    method : BallMethod
        How a ball is found on the core rows.
    options : CoreOptions
        How the core set grows.
    """
    solver = CoreSet(problem, method, options)
    limits = Limits(options.max_iter, options.deadline, options.patience)
    result = run(solver, limits, options.report)
    machines = solver.machines(result.state)
    found = machines.expansion
    return Fitted(
        found.vectors,
        machines.index,
        found.coef,
        np.asarray(found.intercept),
        result.certificate,
        result.stop,
    )


class CoreSet(Generic[State]):
    """Grow a core set until its balls hold all rows: a solver for ``loop.run``.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    method : BallMethod
        How a ball is found on the core rows.
    options : CoreOptions
        How the core set grows.
    precision : Precision, default=None
        Of the kernel values; None decides by what is asked for.
    """

    def __init__(
        self,
        problem: Problem,
        method: BallMethod[State],
        options: CoreOptions,
        precision: Precision | None = None,
    ) -> None:
        self.problem = problem
        self.method = method
        self.options = options
        self.tol = None if options.by_ball else options.tol
        self.eta = largest_norm2(problem)
        chosen = Precision.of(problem, self.eta, self.tol) if precision is None else precision
        self.dtype, self._rounding = chosen.dtype, chosen.rounding
        self.capacity, self.capacity_name = self._capacity()
        self.rng = options.rng
        self.growth: Growth = InBatches(problem, self.capacity, self.rng, options.sizes)
        if options.growth == "one":
            self.growth = OneByOne(problem, self.capacity, self.rng, options.sample_size)
        self.first = np.empty(0, dtype=np.intp)
        self.first_alpha = np.empty((problem.n_problems, 0))
        earlier = options.earlier
        # With less room than before, the earlier solution is of no use.
        room = np.inf if self.capacity == problem.n else self.capacity - len(problem.table)
        if earlier is not None and len(earlier.index) <= room:
            self.first = earlier.index
            self.first_alpha = np.maximum(earlier.coef.T * problem.signs(self.first).T, 0.0)
        self.matrix = CoreMatrix(problem, self.capacity, self.dtype)
        # Samples that showed no row outside where there was one.
        self._misses = 0

    def _capacity(self) -> tuple[int, str]:
        """Return how many rows a core may have, and what a user would change to raise it."""
        options, n = self.options, self.problem.n
        each = self.method.matrices * np.dtype(self.dtype).itemsize
        budget = _MATRIX_SHARE * options.memory / each
        capacity, name = max(2, int(np.sqrt(budget))), f"memory of {options.memory:,} bytes"
        if options.max_vectors is not None and options.max_vectors < capacity:
            capacity, name = options.max_vectors, f"max_vectors={options.max_vectors}"
        least = len(self.problem.table)
        if capacity < least:
            raise ValueError(
                f"{name} leaves room for {capacity} vectors, but {least} classes need one each; "
                "raise it."
            )
        return min(capacity, n), name

    # The methods of a solver.

    def start(self) -> CoreState[State]:
        """Return the balls of a first core."""
        core, member = self.growth.first(self.first, self.first_alpha)
        n_kernel = self.matrix.extend(core, 0)
        alpha = None
        if len(self.first):
            alpha = np.zeros((self.problem.n_problems, len(core)))
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
        seen = [
            (ball, max(float(worst), ball.worst))
            for ball, worst in zip(state.balls, state.look.worst, strict=True)
        ]
        return bounds(
            float(primal.sum()),
            float(dual.sum()),
            gap=min(1.0, gap),
            eps=max(ball.eps(self.eta, worst) for ball, worst in seen),
            center_error=max(ball.center_error(self.eta, worst) for ball, worst in seen),
            scope="full" if state.look.full else "sample",
            n_vectors=int((state.alpha() != 0).any(axis=0).sum()),
            n_passes=state.n_passes,
            n_kernel=state.n_kernel,
        )

    def stopped(self, state: CoreState[State]) -> Stop | None:
        """Return whether all problems are solved, or the core may not grow."""
        if state.look.full and self._done(state).all():
            rule = (
                "no row lies outside the ball" if self.tol is None else f"gap within {self.tol:g}"
            )
            return Stop(Ended.SOLVED, rule)
        if state.exhausted:
            nothing = "nothing left to refine at this precision"
            # A ball's rule may ask for more digits than there are, of a machine that is the best.
            best = state.look.full and bool((self._gaps(state) <= _OPTIMAL).all())
            return Stop(Ended.SOLVED if best else Ended.PRECISION, nothing)
        full = self.growth.is_full(state) and state.outside().any()
        if full and self._solved_on_core(state):
            return Stop(Ended.CAPACITY, f"{self.capacity_name} reached")
        return None

    def finish(self, state: CoreState[State]) -> CoreState[State]:
        """Return the state with a full pass behind its certificate."""
        return state if state.look.full else self._seen_in_full(state)

    def machines(self, state: CoreState[State]) -> BallMachines:
        """Return the decision functions."""
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
        n = self.problem.n
        if len(core) == n and member.all():
            look = all_inside(np.array([ball.loss for ball in balls]))
            return CoreState(core, member, balls, look, max(1, n_passes), n_kernel)
        size = self.growth.look_size(len(core), self._misses)
        if size < n:
            index = self.problem.rows.sample(size, self.rng)
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
        threshold = np.array([ball.threshold for ball in balls])
        machines = self._machines(core, member, balls)
        directions = self.options.directions
        return look_at(self.problem, directions, machines, core, member, threshold, index)

    # Problems, machines, and what is known of them.

    def _problem(self, p: int, core: IndexArray, member: NDArray[np.bool_]) -> CoreProblem:
        """Return one problem on its core rows."""
        own = member[p]
        K = self.matrix.values(len(core))
        values: NDArray[Any] = K if own.all() else K[np.ix_(own, own)]
        index = core[own]
        projection = None
        if self.options.directions is not None:
            projection = self.options.directions.projections[p, index]
            values = values[:, : len(values)] - projection @ projection.T
        sign, ridge = self.problem.sign(p, index), self.problem.ridge(p, index)
        targets = self.problem.regression
        target = None if targets is None else targets.of(np.array([p]), index)[:, 0]
        deadline = self.options.deadline
        return CoreProblem(values, sign, ridge, self.eta, projection, deadline, target)

    def _each(self, work: Callable[[int], Answer], member: NDArray[np.bool_]) -> list[Answer]:
        """Return work(p) of every problem, in threads where it is worth their while."""
        small = int(member.sum(axis=1).max()) < _WORTH_A_THREAD
        threads = 1 if small else self.options.threads
        return list(ordered_map(work, range(self.problem.n_problems), threads))

    def _machines(
        self, core: IndexArray, member: NDArray[np.bool_], balls: tuple[State, ...]
    ) -> BallMachines:
        alpha = np.zeros(member.shape)
        for p, ball in enumerate(balls):
            alpha[p, member[p]] = ball.alpha
        used = np.flatnonzero((alpha != 0).any(axis=0))
        index = core[used]
        beta = alpha[:, used].T * self.problem.signs(index)
        kernel, vectors = self.problem.kernel, self.problem.rows.take(index)
        bias = self.problem.bias * beta.sum(axis=0)
        expansion = Expansion(kernel, vectors, beta, bias, self.dtype)
        directions = self.options.directions
        gamma = None if directions is None else directions.multipliers(index, beta)
        return BallMachines(expansion, index, gamma)

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
                relative_gap(float(high), float(low)) + self._rounding * ball.rounding_factor()
                for high, low, ball in zip(primal, dual, state.balls, strict=True)
            ]
        )
