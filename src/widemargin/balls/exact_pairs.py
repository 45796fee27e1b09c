"""The exact machines of all pairs of classes.

A pair is a problem on the rows of two classes. Where the kernel values of all rows fit into memory,
they are made once, and a pair is one compiled call. Otherwise, where few of its rows support its
machine, these are found in a growing set (``growing_set``), and where many do, it is a call of the
small machine (``qp.margin_dual``) on all of its kernel values; those inside a class are made once
and serve all of its pairs, as far as memory lasts. Threads work on pairs beside each other.

Values are float32 where that is enough for the gap, which only the solution tells: where its
coefficients are large, the pair is solved again in float64, from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.balls.ball import Precision, certificate_of, largest_norm2
from widemargin.balls.growing_set import GapOf, GrowingSet
from widemargin.certificate import Certificate
from widemargin.expansion import Fitted, MachineOptions
from widemargin.loop import Ended, Limits, Stop, run
from widemargin.problem import Problem, kernel_matrix_of
from widemargin.qp.margin_dual import MarginDual, next_round, solve_on
from widemargin.threads import Compiled, ordered_map, scratch

copies = Compiled("widemargin.kernels.mirror_loops")

# Pairs of a step: threads wait for each other at its end, and a user sees a line for it.
_AT_A_TIME = 128
# Share of the memory budget for the kernel values of all rows,
_WHOLE_SHARE = 0.6
# which are made if no pair has more rows than this: of a larger one only some are needed.
_LARGE = 4000
# Share of the memory budget for kernel values inside classes.
_CLASSES_SHARE = 0.3
# Share of it for the pairs that threads work on at a time.
_PAIRS_SHARE = 0.6
# Matrices of a pair: its kernel values, and factors of a part of them.
_MATRICES = 2
# Problems are solved to this share of the gap that is asked for, so that rounding fits beside it.
_SHARE_OF_GAP = 0.5
# Problems with fewer rows are solved sooner than a thread has started.
_WORTH_A_THREAD = 400
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
    index = _used(machines, problem.n)
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


def _used(machines: Sequence[PairMachine], n: int) -> IndexArray:
    """Return the rows that support any of the machines."""
    used = np.zeros(n, dtype=bool)
    for machine in machines:
        used[machine.index] = True
    return np.flatnonzero(used)


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
        self.precisions = Precision.in_turn(problem, largest_norm2(problem), options.tol)
        n_classes = len(problem.table)
        order = np.argsort(problem.code, kind="stable")
        ends = np.cumsum(np.bincount(problem.code, minlength=n_classes))
        self.rows_of = np.split(order, ends[:-1])
        self.inside: list[NDArray[Any] | None] = [None] * n_classes
        self.made = [Lock() for _ in range(n_classes)]
        sizes = np.array([float(len(rows)) ** 2 for rows in self.rows_of])
        room = _CLASSES_SHARE * options.memory / np.dtype(self.precisions[0].dtype).itemsize
        self.kept = np.cumsum(sizes) <= room
        # All kernel values, class after class, and where each class begins.
        self.whole: NDArray[Any] | None = None
        self.begins = np.concatenate([[0], ends[:-1]])

    def start(self) -> tuple[PairMachine, ...]:
        """Begin with no pair; compute all kernel values where they fit into memory."""
        problem, n = self.problem, self.problem.n
        dtype = np.dtype(self.precisions[0].dtype)
        largest = max(len(self._members(pair)[0]) for pair in range(problem.n_problems))
        if largest <= _LARGE and dtype.itemsize * n * n <= _WHOLE_SHARE * self.options.memory:
            rows = problem.rows.subset(np.concatenate(self.rows_of))
            self.whole = kernel_matrix_of(problem.kernel, rows, dtype)
        return ()

    def step(self, state: tuple[PairMachine, ...]) -> tuple[PairMachine, ...]:
        """Solve some more pairs; an interrupt leaves those that are done."""
        begin = len(state)
        pairs = range(begin, min(self.problem.n_problems, begin + _AT_A_TIME))
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
        made = sum(each.n_kernel for each in state)
        known: dict[str, Any] = {
            "n_passes": 1,
            "n_kernel": made if self.whole is None else self.whole.size,
        }
        if not state:
            return Certificate(float("inf"), 0.0, gap=1.0, n_vectors=0, **known)
        used = _used(state, self.problem.n)
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
        if self.problem.n < _WORTH_A_THREAD:
            return 1
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
        n_kernel = 0
        if self.whole is not None:
            places = np.concatenate([self._places(first), self._places(second)])
            solved = solve_on(self.whole, places, sign, ridge, _SHARE_OF_GAP * tol, alpha)
            found = GapOf.of(*solved, self.precisions[0].rounding)
            alpha = found.alpha
            if found.gap <= tol:
                return self._machine(index, sign, found, len(index) ** 2)
        for precision in self.precisions[0 if self.whole is None else -1 :]:
            growing = GrowingSet(problem, index, sign, ridge, precision, tol)
            found = growing.solved(alpha, deadline)
            n_kernel += growing.n_kernel
            if found.gap > tol and not deadline.passed:
                K, made = self._matrix(first, second, precision.dtype)
                point, finished = MarginDual.at(K, sign, ridge, found.alpha), False
                while not (finished or deadline.passed):
                    point, finished = next_round(point, _SHARE_OF_GAP * tol, _KKT)
                n_kernel += made
                found = GapOf.of(point.alpha, *point.objectives(), precision.rounding)
            alpha = found.alpha
            if found.gap <= tol or deadline.passed:
                break
        if not np.isfinite(found.primal):
            # Time was over before anything was proved.
            found = GapOf(np.zeros(len(index)), float((0.5 / ridge).sum()), 0.0, 1.0)
        return self._machine(index, sign, found, n_kernel)

    def _places(self, number: int) -> IndexArray:
        """Return where the rows of a class are in the matrix of all."""
        places: IndexArray = self.begins[number] + np.arange(len(self.rows_of[number]))
        return places

    def _machine(self, index: IndexArray, sign: Vector, found: GapOf, n_kernel: int) -> PairMachine:
        used = np.flatnonzero(found.alpha)
        solved = found.gap <= self.options.tol
        coef = (sign * found.alpha)[used]
        return PairMachine(index[used], coef, found.primal, found.dual, found.gap, n_kernel, solved)

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
            rows = self.rows_of[number]
            if self.kept[number] and dtype == self.precisions[0].dtype:
                with self.made[number]:
                    if self.inside[number] is None:
                        own = np.empty((len(rows), len(rows)), dtype=dtype)
                        self.inside[number] = self._values(rows, rows, own)
                        made += own.size
                K[where, where] = self.inside[number]
            else:
                self._values(rows, rows, K[where, where])
                made += len(rows) ** 2
        self._values(self.rows_of[second], self.rows_of[first], K[sizes[0] :, : sizes[0]])
        copies.mirror(K, sizes[0], n)
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
