"""Core sets: the few rows that hold the ball.

Algorithm 1 of MMDA-CVM (and of BVM) for all label columns at once. A core set starts small, the
ball of its rows is found, and rows outside that ball join until none is left outside.

``growth="one"`` is the paper's: each ball has a core set of its own, and the furthest row joins, or
the furthest of a random sample (59 rows: with probability 0.95 one of the furthest 5 %). With the
furthest row at most 2/ε rows join, and R² is within (1 + ε)² (Theorems 1 and 2).

``growth="batch"`` is ours: kernel values carry no labels, so all balls share one core, one matrix
of values and one pass over the rows; the core doubles with the violators of every problem, and
while it is small a sample of the rows stands for all of them. Where the matrix of all rows fits
into memory, the core is all rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Generic

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.balls.core import BallMethod, CoreProblem, State, Vector, padded
from widemargin.balls.points import BlockMargins, CoreMatrix, Machines, MarginScan, Points
from widemargin.certificate import Certificate, relative_gap
from widemargin.loop import Stop
from widemargin.rows.base import IndexArray
from widemargin.threads import ordered_map

# Rows of the first core, and how many join at the least.
_FIRST, _LEAST = 1000, 256
# Rows that a sampled look takes at the least; below twice that many rows a look takes them all.
_SAMPLE = 16384
# Core rows that are no vector of any problem leave when fewer than this share are.
_USEFUL = 0.9
# Candidates that one block of rows may name.
_KEEP = 256


@dataclass(frozen=True)
class Look:
    """What a pass over the rows, or a sample of them, showed of the current balls.

    Attributes
    ----------
    full : bool
        All rows were looked at.
    loss, worst : ndarray of shape (n_problems,)
        Σ C s ξ² over all rows (estimated from a sample if not `full`), and the largest residual of
        a row outside the core.
    furthest : ndarray of int of shape (n_problems,)
        The row with that residual; −1 if there is none.
    candidate : ndarray of int, residual : ndarray of shape (n_candidates, n_problems)
        Rows outside some ball, with their residuals.
    """

    full: bool
    loss: Vector
    worst: Vector
    furthest: IndexArray
    candidate: IndexArray
    residual: NDArray[np.float64]


@dataclass(frozen=True)
class CoreState(Generic[State]):
    """A core set with its balls.

    Attributes
    ----------
    core : ndarray of int
        Core rows of all problems.
    member : ndarray of bool of shape (n_problems, n_core)
        Which of them belong to which problem.
    balls : tuple of Ball
        One ball a problem, on its members.
    look : Look
        The rows as these balls see them.
    n_passes, n_kernel : int
        Passes over all rows and kernel evaluations so far.
    exhausted : bool
        Nothing can be refined any more.
    """

    core: IndexArray
    member: NDArray[np.bool_]
    balls: tuple[State, ...]
    look: Look
    n_passes: int
    n_kernel: int
    exhausted: bool = False

    def alpha(self) -> NDArray[np.float64]:
        """Return the dual variables of all problems on all core rows."""
        full = np.zeros(self.member.shape)
        for p, ball in enumerate(self.balls):
            full[p, self.member[p]] = ball.alpha
        return full


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
        self.growth = growth
        self.sample_size = sample_size
        self.tol = tol
        self.capacity = min(capacity, points.n)
        self.capacity_name = capacity_name
        self.dtype = dtype
        self.rng = rng
        self.threads = threads
        # With less room than before, the earlier solution is of no use.
        usable = first is not None and len(first) + len(points.table) <= self.capacity
        self.first = first if usable and first is not None else np.empty(0, dtype=np.intp)
        empty = np.empty((points.n_problems, 0))
        self.first_alpha = first_alpha if usable and first_alpha is not None else empty
        self.matrix = CoreMatrix(points, self.capacity, dtype)

    # The four methods of a solver.

    def start(self) -> CoreState[State]:
        """Return the balls of a first core."""
        core, member = self._first_core()
        n_kernel = self.matrix.extend(core, 0)
        alpha = None
        if len(self.first):
            alpha = np.zeros((self.points.n_problems, len(core)))
            place = np.argsort(core)[np.searchsorted(np.sort(core), self.first)]
            alpha[:, place] = self.first_alpha
        problems = self._problems(core, member)

        def begin(p: int) -> State:
            return self.method.begin(problems[p], None if alpha is None else alpha[p, member[p]])

        balls = tuple(ordered_map(begin, range(len(problems)), self.threads))
        return self._seen(core, member, balls, 0, n_kernel)

    def step(self, state: CoreState[State]) -> CoreState[State]:
        """Let rows outside the balls join, or refine the balls if there are none."""
        joined = self._join(state)
        if joined is None:
            return self._refined(state)
        kept, core, member = joined
        self.matrix.keep(kept)
        n_kernel = state.n_kernel + self.matrix.extend(core, len(kept))
        problems = self._problems(core, member)
        done, gaps = self._done(state), self._gaps(state)

        def solve(p: int) -> State:
            ball = state.balls[p]
            if self.growth == "one" and (done[p] or state.member[p].sum() == member[p].sum()):
                return ball
            worst = max(ball.worst, float(state.look.worst[p]))
            return self.method.solve(
                problems[p], self._carried(state, p, kept, member), float(gaps[p]), worst
            )

        balls = tuple(ordered_map(solve, range(len(problems)), self.threads))
        return self._seen(core, member, balls, state.n_passes, n_kernel)

    def certificate(self, state: CoreState[State]) -> Certificate:
        """Return primal, dual and ball of all problems together."""
        primal, dual = self._objectives(state)
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
        if self._full(state) and self._outside(state).any() and self._solved_on_core(state):
            return Stop(f"{self.capacity_name} reached", converged=False)
        return None

    def finish(self, state: CoreState[State]) -> CoreState[State]:
        """Return the state with a full pass behind its certificate."""
        return state if state.look.full else self._seen_in_full(state)

    def machines(self, state: CoreState[State]) -> tuple[Machines, IndexArray, Vector]:
        """Return the decision functions, the rows that are their vectors, and dual coefficients."""
        return self._machines(state.core, state.member, state.balls)

    # Growth.

    def _first_core(self) -> tuple[IndexArray, NDArray[np.bool_]]:
        """Return the first core rows and whose they are."""
        if self.growth == "one":
            return self._first_pairs()
        n = self.points.n
        size = n
        if self.capacity < n:
            # A small core at first: the rest of its room is for rows that matter.
            size = min(_FIRST, max(2 * len(self.points.table), self.capacity // 4))
        one_each = np.unique(self.points.code, return_index=True)[1]
        given = np.union1d(one_each, self.first)
        sampled = np.setdiff1d(self.points.rows.sample(size, self.rng), given)
        core = np.concatenate([given, sampled])[: max(len(given), self.capacity)]
        return core, np.ones((self.points.n_problems, len(core)), dtype=bool)

    def _first_pairs(self) -> tuple[IndexArray, NDArray[np.bool_]]:
        """Return, for each problem, one row of either sign and the rows given to start from."""
        chosen: list[IndexArray] = []
        for p in range(self.points.n_problems):
            sign = self.points.sign(p, slice(None))
            sides = [np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)]
            pair = [int(self.rng.choice(side)) for side in sides if len(side)]
            chosen.append(np.union1d(pair, self.first[self.first_alpha[p] > 0]))
        core = np.unique(np.concatenate(chosen))
        return core, np.array([np.isin(core, own) for own in chosen])

    def _join(
        self, state: CoreState[State]
    ) -> tuple[IndexArray, IndexArray, NDArray[np.bool_]] | None:
        """Return which core rows stay, the new core behind them, and its members.

        None if no row lies outside or none may join.
        """
        if self.growth == "one":
            joined = self._join_furthest(state)
            return None if joined is None else (np.arange(len(state.core)), *joined)
        kept = self._worth_keeping(state)
        room = self.capacity - len(kept)
        if room <= 0 or not self._outside(state).any():
            return None
        new = self._share_of_every_problem(state, min(room, max(_LEAST, len(kept))))
        core = np.concatenate([state.core[kept], new])
        return kept, core, np.ones((self.points.n_problems, len(core)), dtype=bool)

    def _worth_keeping(self, state: CoreState[State]) -> IndexArray:
        """Return the core rows to keep: all, or only the vectors if many others are in the way."""
        vectors = np.flatnonzero((state.alpha() > 0).any(axis=0))
        few = len(vectors) >= _USEFUL * len(state.core)
        return np.arange(len(state.core)) if few else vectors

    def _full(self, state: CoreState[State]) -> bool:
        """Return whether there is no room for rows that could make a difference."""
        if self.capacity >= self.points.n:
            return False
        kept = len(state.core) if self.growth == "one" else len(self._worth_keeping(state))
        return len(state.core) >= self.capacity and kept > _USEFUL * self.capacity

    def _share_of_every_problem(self, state: CoreState[State], size: int) -> IndexArray:
        """Return up to `size` candidates, drawn at random, as many for each unfinished problem."""
        look = state.look
        if len(look.candidate) <= size:
            return look.candidate
        outside = look.residual > np.array([ball.threshold for ball in state.balls])
        outside &= ~self._done(state)
        shuffled = self.rng.permutation(len(look.candidate))
        # The place of each candidate in the queue of each problem; the best place decides.
        queue = np.where(outside[shuffled], np.cumsum(outside[shuffled], axis=0), np.inf)
        first = np.argsort(queue.min(axis=1), kind="stable")[:size]
        return np.sort(look.candidate[shuffled[first]])

    def _carried(
        self, state: CoreState[State], p: int, kept: IndexArray, member: NDArray[np.bool_]
    ) -> State:
        """Return a ball with its variables placed among the members of a new core."""
        before = np.zeros(len(state.core))
        before[state.member[p]] = state.balls[p].alpha
        after = padded(before[kept], member.shape[1])
        moved: State = replace(state.balls[p], alpha=after[member[p]])
        return moved

    def _join_furthest(
        self, state: CoreState[State]
    ) -> tuple[IndexArray, NDArray[np.bool_]] | None:
        done = self._done(state)
        core, member = state.core, state.member
        room = self.capacity - len(core)
        grew = False
        for p, ball in enumerate(state.balls):
            row = state.look.furthest[p]
            if done[p] or row < 0 or state.look.worst[p] <= ball.threshold:
                continue
            known = np.flatnonzero(core == row)
            if not len(known):
                if room <= 0:
                    continue
                room -= 1
                core = np.append(core, row)
                member = np.pad(member, ((0, 0), (0, 1)))
                known = np.array([len(core) - 1])
            member = member.copy()
            member[p, known] = True
            grew = True
        return (core, member) if grew else None

    def _refined(self, state: CoreState[State]) -> CoreState[State]:
        """Return the state with the unfinished balls refined, on the same core."""
        problems = self._problems(state.core, state.member)
        done = self._done(state)

        def refine(p: int) -> State | None:
            return None if done[p] else self.method.refine(problems[p], state.balls[p])

        refined = list(ordered_map(refine, range(len(problems)), self.threads))
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
        n, n_problems = self.points.n, self.points.n_problems
        if len(core) == n and member.all():
            nobody = np.empty(0, dtype=np.intp)
            loss = np.array([ball.loss for ball in balls])
            look = Look(
                True,
                loss,
                np.full(n_problems, -np.inf),
                np.full(n_problems, -1),
                nobody,
                np.empty((0, n_problems)),
            )
            return CoreState(core, member, balls, look, max(1, n_passes), n_kernel)
        if self.growth == "one":
            size = n if self.sample_size is None else self.sample_size
        else:
            size = max(_SAMPLE, 4 * len(core))
        full = 2 * size >= n if self.growth == "batch" else size >= n
        state: CoreState[State] | None = None
        if not full:
            index = self.points.rows.sample(size, self.rng)
            look, computed = self._look(core, member, balls, index)
            n_kernel += computed
            state = CoreState(core, member, balls, look, n_passes, n_kernel)
            full = bool(self._done(state).all()) or not self._outside(state).any()
        if full or state is None:
            look, computed = self._look(core, member, balls, None)
            return CoreState(core, member, balls, look, n_passes + 1, n_kernel + computed)
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
        """Scan rows (all if index is None) with the machines of `balls`."""
        machines, _, _ = self._machines(core, member, balls)
        threshold = np.array([ball.threshold for ball in balls])
        visit = MarginScan(machines, self.points, index, core, member, threshold, _KEEP)
        blocks = list(self.points.rows.scan(visit, index, width=machines.width))
        n_rows = self.points.n if index is None else len(index)
        share = self.points.n / n_rows
        return _collected(blocks, index is None, share), n_rows * len(machines.vectors)

    # Problems, machines, and what is known of them.

    def _problems(self, core: IndexArray, member: NDArray[np.bool_]) -> list[CoreProblem]:
        K = self.matrix.values(len(core))
        ridge = self.points.ridge[core]
        projections = self.points.projections(core)
        problems = []
        for p in range(self.points.n_problems):
            sign = self.points.sign(p, core)
            own = member[p]
            values: NDArray[Any] = K if own.all() else K[np.ix_(own, own)]
            projection = None
            if projections is not None:
                projection = projections[p][own]
                values = values[:, : len(values)] - projection @ projection.T
            problems.append(CoreProblem(values, sign[own], ridge[own], self.points.eta, projection))
        return problems

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
        coef = beta
        projections = self.points.projections(core[used])
        if projections is not None and self.points.directions is not None:
            # w = Σ β φ + Σ γ u with γ = −Σ β_i p_i: the directions' vectors join the machine's.
            gamma = -np.einsum("ip,piq->pq", beta, projections)
            extra = np.einsum("pq,pqj->jp", gamma, self.points.directions.coef)
            coef = np.concatenate([beta, extra])
            vectors = np.concatenate([vectors, self.points.directions.vectors])
        at_a_time = self.points.rows.vectors_at_a_time
        machines = Machines(self.points.kernel, vectors, coef, intercept, self.dtype, at_a_time)
        return machines, core[used], beta

    def _objectives(self, state: CoreState[State]) -> tuple[Vector, Vector]:
        norm2 = np.array([ball.norm2 for ball in state.balls])
        dual = np.array([ball.dual for ball in state.balls])
        return 0.5 * norm2 + state.look.loss, dual

    def _outside(self, state: CoreState[State]) -> NDArray[np.bool_]:
        """Return in which problems the look found a row outside the ball."""
        return np.array(
            [
                worst > ball.threshold
                for ball, worst in zip(state.balls, state.look.worst, strict=True)
            ]
        )

    def _done(self, state: CoreState[State]) -> NDArray[np.bool_]:
        """Return which problems meet the stopping rule, as far as the look showed."""
        if self.tol is None:
            done = ~self._outside(state)
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
        primal, dual = self._objectives(state)
        return np.array(
            [
                relative_gap(float(high), float(low))
                + rounding(self.dtype, self.points, float(np.linalg.norm(ball.alpha)))
                for high, low, ball in zip(primal, dual, state.balls, strict=True)
            ]
        )


def rounding(dtype: DTypeLike, points: Points, norm: float) -> float:
    """Return by how much rounded kernel values may change a relative gap.

    A value is off by the unit roundoff u times its size, at most η; errors are independent, so f is
    off by about u η ‖α‖, the objectives by Σα times that, and Σα is twice the objective.
    """
    unit = float(np.finfo(dtype).eps) / 2
    return 4.0 * unit * points.roundoff * points.eta * norm


def _collected(blocks: list[BlockMargins], full: bool, share: float) -> Look:
    worst = np.array([block.worst for block in blocks])
    furthest = np.array([block.furthest for block in blocks])
    top = worst.argmax(axis=0)
    column = np.arange(worst.shape[1])
    return Look(
        full,
        share * np.sum([block.loss for block in blocks], axis=0),
        worst[top, column],
        furthest[top, column],
        np.concatenate([block.candidate for block in blocks]),
        np.concatenate([block.residual for block in blocks]),
    )
