"""The exact machines of all pairs of classes.

A pair is a problem on the rows of two classes, and a call of the small machine (``qp.margin_dual``)
on their kernel values. Those inside a class are made once and serve all of its pairs, as far as
memory lasts; so all pairs together need each kernel value once. Threads work on pairs beside each
other.

Values are float32 where that is enough for the gap, which only the solution tells: where its
coefficients are large, the pair is solved again in float64, from there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.balls.ball import Precision, certificate_of, largest_norm2
from widemargin.certificate import Certificate
from widemargin.expansion import Fitted, MachineOptions
from widemargin.loop import Ended, Limits, Stop, relative_gap, run
from widemargin.problem import Problem
from widemargin.qp.margin_dual import MarginDual, loops, next_round
from widemargin.threads import ordered_map, scratch

# Pairs between two looks of the loop at the clock, for each thread.
_AT_A_TIME = 16
# Share of the memory budget for kernel values inside classes.
_CLASSES_SHARE = 0.3
# Share of it for the pairs that threads work on at a time.
_PAIRS_SHARE = 0.6
# Matrices of a pair: its kernel values, and factors of a part of them.
_MATRICES = 2
# Problems are solved to this share of the gap that is asked for, so that rounding fits beside it.
_SHARE_OF_GAP = 0.5
# KKT residual that is rounding.
_KKT = 1e-10


@dataclass(frozen=True)
class PairMachine:
    """The machine of one pair.

    Attributes
    ----------
    index : ndarray of int of shape (n_vectors,)
        Rows of the problem that support it.
    coef : ndarray of shape (n_vectors,)
        Their coefficients, y α.
    primal, dual, gap : float
        What is proved.
    n_kernel : int
        Kernel values that were made.
    solved : bool
        Whether the gap that was asked for is reached.
    """

    index: IndexArray
    coef: Vector
    primal: float
    dual: float
    gap: float
    n_kernel: int
    solved: bool


def fits(problem: Problem, options: MachineOptions) -> bool:
    """Return whether the kernel values of the largest pair fit into memory."""
    size = np.sort(np.bincount(problem.code))[-2:].sum()
    return bool(_MATRICES * 8 * size**2 <= _PAIRS_SHARE * options.memory)


def fit_exact_pairs(problem: Problem, options: MachineOptions) -> Fitted:
    """Fit the SVM itself to every pair of classes.

    Parameters
    ----------
    problem : Problem
        Pairs of classes, of one C.
    options : MachineOptions
        How exactly.
    """
    solver = ExactPairs(problem, options)
    # Each pair is a success of its own: there is no stall.
    limits = Limits(options.max_iter, options.deadline, patience=options.max_iter)
    result = run(solver, limits, options.report)
    machines = result.state
    index = np.unique(np.concatenate([machine.index for machine in machines]))
    coef = np.zeros((len(index), problem.n_problems))
    for p, machine in enumerate(machines):
        coef[np.searchsorted(index, machine.index), p] = machine.coef
    return Fitted(
        problem.rows.take(index),
        index,
        coef,
        coef.sum(axis=0),
        result.certificate,
        result.stop,
        of_pairs=True,
    )


class ExactPairs:
    """Solver of all pairs, for ``loop.run``; a step is some of them.

    Parameters
    ----------
    problem : Problem
        Pairs of classes, of one C.
    options : MachineOptions
        How exactly.
    """

    def __init__(self, problem: Problem, options: MachineOptions) -> None:
        self.problem = problem
        self.options = options
        eta = largest_norm2(problem)
        self.precisions = [Precision.in_type(np.float64, problem, eta)]
        if problem.kernel.constant_diagonal is not None and options.tol > 0:
            self.precisions.insert(0, Precision.in_type(np.float32, problem, eta))
        n_classes = len(problem.table)
        order = np.argsort(problem.code, kind="stable")
        ends = np.cumsum(np.bincount(problem.code, minlength=n_classes))
        self.rows_of = np.split(order, ends[:-1])
        self.inside: list[NDArray[Any] | None] = [None] * n_classes

    def start(self) -> tuple[PairMachine, ...]:
        """Compute the kernel values inside the classes, as far as memory lasts."""
        dtype = self.precisions[0].dtype
        room = _CLASSES_SHARE * self.options.memory
        kept = []
        for number, rows in enumerate(self.rows_of):
            room -= np.dtype(dtype).itemsize * len(rows) ** 2
            if room >= 0:
                kept.append(number)

        def values(number: int) -> NDArray[Any]:
            rows = self.rows_of[number]
            return self._values(rows, rows, np.empty((len(rows), len(rows)), dtype=dtype))

        for number, found in zip(
            kept, ordered_map(values, kept, self._beside(max(map(len, self.rows_of)))), strict=True
        ):
            self.inside[number] = found
        return ()

    def step(self, state: tuple[PairMachine, ...]) -> tuple[PairMachine, ...]:
        """Solve some more pairs; an interrupt leaves those that are done."""
        begin = len(state)
        count = _AT_A_TIME * self.options.threads
        pairs = range(begin, min(self.problem.n_problems, begin + count))
        most = max(len(self._members(pair)[0]) for pair in pairs)
        done: list[PairMachine] = []
        deadline = self.options.deadline
        with deadline.ends_on_interrupt():
            threads = self._beside(most)
            for machine in ordered_map(self._solved, pairs, threads, deadline.interrupt):
                done.append(machine)
        return (*state, *done)

    def certificate(self, state: tuple[PairMachine, ...]) -> Certificate:
        """Return the sums over the pairs; those that are missing count as nothing proved."""
        inside = sum(values.size for values in self.inside if values is not None)
        known = {"n_passes": 1, "n_kernel": inside + sum(each.n_kernel for each in state)}
        if not state:
            return Certificate(float("inf"), 0.0, gap=1.0, n_vectors=0, **known)
        used = np.unique(np.concatenate([each.index for each in state]))
        found = certificate_of(
            [(each.primal, each.dual) for each in state],
            [each.gap for each in state],
            n_vectors=len(used),
            **known,
        )
        return found if len(state) == self.problem.n_problems else replace(found, gap=1.0)

    def stopped(self, state: tuple[PairMachine, ...]) -> Stop | None:
        """Return what all pairs came to."""
        if len(state) < self.problem.n_problems:
            return None
        if self.options.deadline.passed and not all(each.solved for each in state):
            return self.options.deadline.stop
        if all(each.solved for each in state):
            return Stop(Ended.SOLVED, f"gap within {self.options.tol:g} in {len(state):,} pairs")
        return Stop(Ended.PRECISION, "nothing left to refine at this precision")

    def finish(self, state: tuple[PairMachine, ...]) -> tuple[PairMachine, ...]:
        """Put machines without vectors in the place of pairs that were not reached."""
        nothing = np.zeros(0, dtype=np.intp), np.zeros(0)
        rest = range(len(state), self.problem.n_problems)
        loss = [float((0.5 / self.problem.ridge(p, self._members(p)[0])).sum()) for p in rest]
        return state + tuple(PairMachine(*nothing, each, 0.0, 1.0, 0, False) for each in loss)

    # One pair.

    def _members(self, pair: int) -> tuple[IndexArray, int, int]:
        """Return the rows of a pair, and its two classes."""
        signs = self.problem.table[:, pair]
        first, second = int(np.argmax(signs)), int(np.argmin(signs))
        return np.concatenate([self.rows_of[first], self.rows_of[second]]), first, second

    def _beside(self, n_rows: int) -> int:
        """Return how many threads may hold matrices of so many rows at a time."""
        each = _MATRICES * 8 * n_rows**2
        room = int(_PAIRS_SHARE * self.options.memory / each)
        return max(1, min(self.options.threads, room))

    def _solved(self, pair: int) -> PairMachine:
        """Return the machine of a pair, or as much of it as there is time for."""
        index, first, second = self._members(pair)
        problem, tol, deadline = self.problem, self.options.tol, self.options.deadline
        sign = np.where(np.arange(len(index)) < len(self.rows_of[first]), 1.0, -1.0)
        ridge = problem.ridge(pair, index)
        alpha = self._earlier(pair, index, sign)
        gap, n_kernel, solved = 1.0, 0, False
        for precision in self.precisions:
            K, made = self._matrix(first, second, precision.dtype)
            point, n_kernel = MarginDual.at(K, sign, ridge, alpha), n_kernel + made
            finished = False
            while not (finished or deadline.passed):
                point, finished = next_round(point, _SHARE_OF_GAP * tol, _KKT)
            hidden = precision.rounding * float(np.linalg.norm(point.alpha))
            gap, alpha = point.gap() + hidden, point.alpha
            solved = gap <= tol
            if solved or deadline.passed:
                break
        used = np.flatnonzero(point.alpha)
        primal, dual = point.objectives()
        gap = min(1.0, max(gap, relative_gap(primal, dual)))
        return PairMachine(
            index[used], (sign * point.alpha)[used], primal, dual, gap, n_kernel, solved
        )

    def _earlier(self, pair: int, index: IndexArray, sign: Vector) -> Vector | None:
        """Return the dual variables of an earlier solution, if there is one."""
        earlier = self.options.earlier
        if earlier is None:
            return None
        known = np.zeros(self.problem.n)
        known[earlier.index] = earlier.coef[:, pair]
        return np.maximum(0.0, sign * known[index])

    def _matrix(self, first: int, second: int, dtype: Any) -> tuple[NDArray[Any], int]:
        """Return the kernel matrix of a pair in this thread's memory, and how much was made."""
        sizes = len(self.rows_of[first]), len(self.rows_of[second])
        n, made = sum(sizes), sizes[0] * sizes[1]
        K = scratch((n, n), dtype, "of a pair")
        for number, where in ((first, slice(0, sizes[0])), (second, slice(sizes[0], n))):
            inside = self.inside[number]
            if inside is not None and inside.dtype == dtype:
                K[where, where] = inside
            else:
                self._values(self.rows_of[number], self.rows_of[number], K[where, where])
                made += len(self.rows_of[number]) ** 2
        self._values(self.rows_of[second], self.rows_of[first], K[sizes[0] :, : sizes[0]])
        loops.mirror(K, sizes[0], n)
        return K, made

    def _values(self, rows: IndexArray, vectors: IndexArray, out: NDArray[Any]) -> NDArray[Any]:
        """Write kernel values of rows and rows into `out`, in this thread."""
        problem, step = self.problem, self.problem.rows.vectors_at_a_time
        for begin in range(0, len(vectors), step):
            part = problem.rows.take(vectors[begin : begin + step])
            columns = out[:, begin : begin + step]
            for first in range(0, len(rows), step):
                block = problem.rows.block(rows[first : first + step])
                problem.kernel.checked_block(block, part, columns[first : first + step])
        return out
