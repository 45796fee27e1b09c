"""One row joins at a time: the machines as the papers print them, compiled.

Algorithm 1 of BVM (CVM) and its Algorithms 2 to 4 (BVM): each problem by itself, the furthest of a
few random rows joins, and the problem is done when no row lies outside. ``core_set`` does the same
with any ball, rule and budget, around a loop in Python; here a problem is one compiled call
(``one_row_loops``), and threads work on problems beside each other.

What makes it fast: the residuals of all rows are kept up to date, a line of kernel values for each
change of a variable, so that a look at a sample or at all rows costs no kernel values. All kernel
values are made at once where they fit into memory; else lines are made when their row joins, which
in the end are little more than one look at all rows takes. Where there is no room for them,
``core_set`` goes on from there.

A ball vector machine here goes through the scales of Algorithm 3 on all rows, as it is printed, and
not on the core rows first.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray
from widemargin.balls.ball import Ball, Precision, ball_facts, certificate_of, largest_norm2
from widemargin.balls.core_set import fit_core
from widemargin.balls.core_state import CoreOptions
from widemargin.balls.fixed_radius import FixedRadiusBall
from widemargin.balls.kernel_lines import KernelLines
from widemargin.balls.minimum import MinimumBall
from widemargin.balls.one_by_one import fit_one_by_one
from widemargin.balls.one_row_state import OneRowState, OneRowStates
from widemargin.certificate import Certificate
from widemargin.expansion import Earlier, Fitted
from widemargin.loop import Ended, Limits, Stop, relative_gap, run
from widemargin.problem import Problem
from widemargin.qp.margin_dual import MarginDual
from widemargin.threads import Compiled, ordered_map

loops = Compiled("widemargin.balls.one_row_loops")

# The furthest rows whose lines are made with one that is wanted. Those further back seldom join.
_SOON = 64
# Multiplications of all problems together between two looks at the clock.
_WORK = 3e8
# Accuracy of the smallest ball on the core rows, as a share of ε.
_ACCURACY = 0.25
# Share of the last ε at which Algorithm 4 no longer looks for a smaller radius: they come closer
# and closer to the bound of its step 3 without ever passing it.
_CLOSE = 1.01
# How much of ε rounding may take away.
_ROUNDING = 1.0

Method = FixedRadiusBall | MinimumBall


def fit_one_row(problem: Problem, method: Method, options: CoreOptions) -> Fitted:
    """Fit machines by balls that one row joins at a time.

    Parameters
    ----------
    problem : Problem
        Problems of one C; pairs of classes are among them where the problem leaves classes out.
    method : FixedRadiusBall or MinimumBall
        Which ball.
    options : CoreOptions
        How the core sets grow.
    """
    plain = options.by_ball and options.growth == "one" and options.directions is None
    plain &= options.earlier is None and options.max_vectors is None
    precision = _precision(problem, method.epsilon if plain else None)
    whole = KernelLines.fits(problem, options.memory, precision.dtype)
    if problem.partial and not (plain and whole):
        return fit_one_by_one(
            problem, options, lambda part, inner: fit_one_row(part, method, inner)
        )
    if not plain:
        return fit_core(problem, method, options)
    solver = OneRow(problem, method, options, precision)
    # A ball of fixed radius may move for long without a better gap: it has a bound of its own.
    patience = options.patience if isinstance(method, MinimumBall) else options.max_iter
    result = run(solver, Limits(options.max_iter, options.deadline, patience), options.report)
    index, coef = solver.machines(result.state)
    if result.stop.kind is Ended.CAPACITY:
        return fit_core(
            problem, method, replace(options, earlier=Earlier(index, coef, coef.sum(axis=0)))
        )
    return Fitted(
        problem.rows.take(index),
        index,
        coef,
        coef.sum(axis=0),
        result.certificate,
        result.stop,
        of_pairs=problem.partial,
    )


def _precision(problem: Problem, epsilon: float | None) -> Precision:
    """Return float32 if its rounding is small beside ε, which is a share of the radius."""
    eta = largest_norm2(problem)
    coarse = Precision.in_type(np.float32, problem, eta)
    fine = Precision.in_type(np.float64, problem, eta)
    varies = problem.kernel.constant_diagonal is None
    # Of distances², 2 ε r² is what a row may lie outside.
    exact = varies or epsilon is None or coarse.rounding > _ROUNDING * epsilon * eta
    return fine if exact else coarse


class OneRow:
    """Balls of all problems, one row at a time: a solver for ``loop.run``.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    method : FixedRadiusBall or MinimumBall
        Which ball.
    options : CoreOptions
        How the core sets grow.
    precision : Precision
        Of the kernel values.
    """

    def __init__(
        self, problem: Problem, method: Method, options: CoreOptions, precision: Precision
    ) -> None:
        self.problem = problem
        self.method = method
        self.options = options
        self.precision = precision
        self.eta = precision.eta
        self.lines = KernelLines(problem, options.memory, precision.dtype)
        self._sample = options.sample_size or 0

    # The methods of a solver.

    def start(self) -> OneRowStates:
        """Return balls around a first row, or a first row of either sign."""
        rng, first, states = self.options.rng, [], []
        for p in range(self.problem.n_problems):
            sign = self.lines.of(p).sign
            sides = [np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)]
            pair = np.array([rng.choice(side) for side in sides if len(side)])
            if isinstance(self.method, FixedRadiusBall):
                pair = rng.choice(pair, 1)
            seed = rng.integers(1, 2**63, 1).astype(np.uint64)
            first.append(pair)
            states.append(self._empty(len(sign), seed))
        self.lines.fill(
            np.concatenate([self.lines.of(p).place[own] for p, own in enumerate(first)])
        )
        each = tuple(map(self._begun, range(len(first)), states, first))
        return OneRowStates(each, tuple(map(self._ball, range(len(each)), each)))

    def step(self, states: OneRowStates) -> OneRowStates:
        """Let each problem that is not done go on for a while."""
        each = [state if state.done else state.copy() for state in states.each]
        running, full = [p for p, state in enumerate(each) if not state.done], False
        share = _WORK / max(1, len(running))
        limit = {p: max(16, int(share / len(each[p].alpha))) for p in running}
        while running and not full and not self.options.deadline.passed:

            def go_on(p: int) -> tuple[OneRowState, int]:
                return self._gone_on(p, each[p], limit[p])

            answers = list(ordered_map(go_on, running, self.options.threads))
            for p, (state, used) in zip(running, answers, strict=True):
                each[p] = state
                limit[p] -= used
            wanted = [p for p in running if each[p].wanted >= 0]
            full = bool(wanted) and not self._let_know(wanted, each)
            running = [p for p in wanted if limit[p] > 0]
        balls = tuple(
            old if state is before else self._ball(p, state)
            for p, (state, before, old) in enumerate(
                zip(each, states.each, states.balls, strict=True)
            )
        )
        return OneRowStates(tuple(each), balls, full)

    def certificate(self, states: OneRowStates) -> Certificate:
        """Return primal, dual and ball of all problems together."""
        objectives = [(0.5 * ball.norm2 + ball.loss, ball.dual) for ball in states.balls]
        gaps = [
            relative_gap(*values) + self.precision.rounding * float(np.linalg.norm(ball.alpha))
            for values, ball in zip(objectives, states.balls, strict=True)
        ]
        return certificate_of(
            objectives,
            gaps,
            eps=max(ball.eps(self.eta, ball.worst) for ball in states.balls),
            center_error=max(ball.center_error(self.eta, ball.worst) for ball in states.balls),
            scope="full",
            n_vectors=len(self._used(states)),
            n_passes=1,
            n_kernel=self.lines.n_kernel,
        )

    def stopped(self, states: OneRowStates) -> Stop | None:
        """Return whether no row lies outside any ball, or there is no room to go on."""
        if all(state.done for state in states.each):
            if any(state.exhausted for state in states.each):
                return Stop(Ended.PRECISION, "nothing left to refine at this precision")
            return Stop(Ended.SOLVED, "no row lies outside the ball")
        if states.full:
            return Stop(Ended.CAPACITY, f"memory of {self.options.memory:,} bytes reached")
        return None

    def finish(self, states: OneRowStates) -> OneRowStates:
        """Return the states; their balls are those over all rows."""
        return states

    def machines(self, states: OneRowStates) -> tuple[IndexArray, NDArray[np.float64]]:
        """Return the rows that are vectors, and their coefficients in each problem."""
        index = self._used(states)
        coef = np.zeros((self.problem.n, len(states.each)))
        for p, ball in enumerate(states.balls):
            coef[self.lines.of(p).rows, p] = ball.alpha * self.lines.of(p).sign
        return index, coef[index]

    # One problem.

    def _empty(self, n: int, seed: NDArray[np.uint64]) -> OneRowState:
        """Return a problem without a centre."""
        method, radius2 = self.method, self.eta
        center = np.array([_ACCURACY, 0.0, 0.0, 0.0, 0.0])
        if isinstance(method, FixedRadiusBall):
            radius2 = self.eta if method.radius2 is None else method.radius2
            scale = max(0.5, method.epsilon) if method.multiscale else method.epsilon
            center = np.array([0.0, radius2 if method.shrink else 0.0, scale, 0.0, 0.0])
        member = np.zeros(n, dtype=np.bool_)
        return OneRowState(np.zeros(n), np.zeros(n), member, center, seed, radius2)

    def _begun(self, p: int, state: OneRowState, first: IndexArray) -> OneRowState:
        """Return the problem with its first rows, whose kernel values are there."""
        state.member[first] = True
        if isinstance(self.method, MinimumBall):
            return self._solved_first(p, replace(state, product=np.ones(len(state.alpha))))
        row, own = int(first[0]), self.lines.of(p)
        values = self.lines.values[self.lines.line[own.place[row]], own.place]
        state.alpha[row] = 1.0
        state.product[:] = own.sign * own.sign[row] * (values + 1.0)
        state.product[row] += own.ridge[row]
        state.center[0] = state.product[row]
        return state

    def _solved_first(self, p: int, state: OneRowState) -> OneRowState:
        """Return the state with a change of a variable or two: a ball always has a centre."""
        return self._gone_on(p, state, 2)[0]

    def _gone_on(self, p: int, state: OneRowState, limit: int) -> tuple[OneRowState, int]:
        """Return the state after a compiled call, which changes its arrays, and what it used."""
        lines, own, method = self.lines, self.lines.of(p), self.method
        where = (lines.values, lines.line, own.pieces, own.place, own.sign, own.ridge, own.diagonal)
        how = (self._sample, limit, state.wanted)
        if isinstance(method, FixedRadiusBall):
            before = state.center[4]
            ended, row = loops.touch(
                *where,
                state.alpha,
                state.product,
                state.center,
                state.random,
                self.eta,
                state.radius2,
                method.epsilon,
                *how,
            )
            used = state.center[4] - before
        else:
            before, epsilon = state.center[1], method.epsilon
            ended, row = loops.enclose(
                *where,
                state.alpha,
                state.product,
                state.member,
                state.center,
                state.random,
                self.eta,
                epsilon,
                *how,
            )
            used = state.center[1] - before
        if ended == loops.NO_BALL:
            assert isinstance(method, FixedRadiusBall)
            raise method.no_ball(self.eta)
        wanted = int(row) if ended == loops.WANTED else -1
        done, exhausted = ended in (loops.INSIDE, loops.EXHAUSTED), ended == loops.EXHAUSTED
        state = replace(state, wanted=wanted, done=done, exhausted=exhausted)
        if state.done and isinstance(method, FixedRadiusBall):
            state = self._with_smaller_radius(state, method)
        return state, int(used) + 1

    def _with_smaller_radius(self, state: OneRowState, method: FixedRadiusBall) -> OneRowState:
        """Return the state with the next radius of Algorithm 4, if there is one."""
        eps, radius2, augmented2 = method.epsilon, state.radius2, float(state.center[1])
        last = method.max_radii is not None and state.n_radii >= method.max_radii
        if last or not method.shrink or augmented2 <= _CLOSE * (2 * eps + eps * eps) * radius2:
            return state
        smaller = (1 + eps) ** 2 * radius2 - augmented2
        # As in ``fixed_radius``: the centre is kept, and the coordinate is what it would be if the
        # bound on the smallest radius were exact.
        state.center[1] = max(0.0, smaller - (self.eta - state.center[0]))
        state.center[2:4] = max(0.5, eps) if method.multiscale else eps, 0.0
        return replace(state, radius2=smaller, n_radii=state.n_radii + 1, done=False)

    def _let_know(self, wanted: list[int], each: list[OneRowState]) -> bool:
        """Make the lines that problems want; return whether there is room.

        One line costs nearly as much as several: those of the rows that lie furthest outside,
        which are likely to join next, are made with it.
        """
        now, soon = [], []
        for p in wanted:
            state, place = each[p], self.lines.of(p).place
            now.append(int(place[state.wanted]))
            near = state.product if isinstance(self.method, FixedRadiusBall) else -state.product
            most = min(max(1, _SOON // len(wanted)), len(near) - 1)
            soon.append(place[np.argpartition(near, most)[:most]])
        return self.lines.fill(np.array(now), np.concatenate(soon))

    def _ball(self, p: int, state: OneRowState) -> Ball:
        """Return the ball of a problem, over all of its rows."""
        alpha, residual = state.alpha, state.product
        if isinstance(self.method, FixedRadiusBall):
            # The best multiple of the centre in the SVM's dual is 1/‖c‖², (35) of MMDA-CVM.
            norm2 = max(float(state.center[0]), float(np.finfo(float).tiny))
            alpha, residual = alpha / norm2, 1.0 - residual / norm2
        own = self.lines.of(p)
        point = MarginDual(self.lines.values, own.sign, own.ridge, alpha, residual)
        return Ball(threshold=0.0, **ball_facts(point))

    def _used(self, states: OneRowStates) -> IndexArray:
        """Return the rows that are vectors of some problem."""
        used = np.zeros(self.problem.n, dtype=np.bool_)
        for p, ball in enumerate(states.balls):
            used[self.lines.of(p).rows[ball.alpha > 0]] = True
        return np.flatnonzero(used)
