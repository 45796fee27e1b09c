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
from dataclasses import replace
from threading import Lock, Semaphore
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.balls.ball import Precision, certificate_of, largest_norm2
from widemargin.balls.growing_set import GapOf, GrowingSet
from widemargin.balls.pair_machines import PairMachines, fitted_machines
from widemargin.certificate import Certificate
from widemargin.expansion import Fitted, MachineOptions
from widemargin.kernel_between import KernelBetween
from widemargin.loop import Ended, Limits, Stop, relative_gap, run
from widemargin.problem import Problem
from widemargin.qp.margin_dual import MarginDual, next_round, solve_pairs
from widemargin.threads import Compiled, ordered_map, scratch

copies = Compiled("widemargin.kernels.mirror_loops")

# Pairs are solved in runs, each a task of a thread: a run ends with so many kernel values,
_RUN = 250_000
# and a step with so many runs. Threads wait for each other there, and a user sees a line.
_AT_A_TIME = 128
# Share of the memory budget for the kernel values of all rows,
_WHOLE_SHARE = 0.6
# which are made if there are no more rows than this,
_FEW = 2000
# or if no pair has more than this: beyond, the values of a pair stay in the cache, those of all
# rows do not.
_SMALL = 400
# Rows of a pair up to which its machine is one compiled call, in which no clock is looked at.
_LARGE = 4000
# Rows from which a pair is sought on a set of them first: many short calls hold other threads up.
_WORTH_A_SET = 3000
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
    return fitted_machines(problem, result.state, result.certificate, result.stop)


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
        self.order = np.argsort(problem.code, kind="stable")
        ends = np.cumsum(np.bincount(problem.code, minlength=n_classes))
        self.rows_of = np.split(self.order, ends[:-1])
        self.inside: list[NDArray[Any] | None] = [None] * n_classes
        self.made = [Lock() for _ in range(n_classes)]
        room = _CLASSES_SHARE * options.memory / np.dtype(self.precisions[0].dtype).itemsize
        # Where each class begins if rows are put class after class, and the end.
        self.begins = np.concatenate([[0], ends])
        size = np.diff(self.begins)
        self.kept = np.cumsum(size.astype(float) ** 2) <= room
        # The two classes of each pair, the one with the label +1 first, and its rows.
        self.classes = np.stack([problem.table.argmax(axis=0), problem.table.argmin(axis=0)], 1)
        self.n_rows = size[self.classes].sum(axis=1)
        self.matrices = Semaphore()
        # All kernel values, class after class.
        self.whole: NDArray[Any] | None = None

    def start(self) -> PairMachines:
        """Begin with no pair; compute all kernel values where they fit into memory."""
        n, dtype = self.problem.n, np.dtype(self.precisions[0].dtype)
        self.between = self._between(dtype)
        room = _WHOLE_SHARE * self.options.memory
        small = n <= _FEW or self.n_rows.max() <= _SMALL
        if small and dtype.itemsize * n * n <= room:
            self.whole = self.between.matrix()
        return PairMachines.unsolved([])

    def _between(self, dtype: DTypeLike) -> KernelBetween:
        """Return kernel values of the rows, class after class."""
        return KernelBetween.of(self.problem.kernel, self.problem.rows.subset(self.order), dtype)

    def step(self, state: PairMachines) -> PairMachines:
        """Solve some more pairs; an interrupt leaves those that are done."""
        runs = self._runs(len(state))
        largest = int(self.n_rows[runs[0].start : runs[-1].stop].max())
        self.matrices = Semaphore(self._beside(largest))
        solved = self._each_solved if self.whole is None else self._solved_on_whole
        done, deadline = [state], self.options.deadline
        with deadline.ends_on_interrupt():
            done.extend(ordered_map(solved, runs, self.options.threads, deadline.interrupt))
        return PairMachines.joined(done)

    def _runs(self, begin: int) -> list[range]:
        """Return the pairs of the next step, as tasks of threads."""
        work = np.cumsum(self.n_rows[begin:].astype(float) ** 2)
        last = np.flatnonzero(np.diff(np.floor(work / _RUN), append=np.inf))[:_AT_A_TIME]
        ends = (begin + 1 + last).tolist()
        return [range(a, b) for a, b in zip([begin, *ends], ends, strict=False)]

    def certificate(self, state: PairMachines) -> Certificate:
        """Return the sums over the pairs; those that are missing count as nothing proved."""
        known: dict[str, Any] = {
            "n_passes": 1,
            "n_kernel": state.n_kernel + (0 if self.whole is None else self.whole.size),
        }
        if not len(state):
            return Certificate(float("inf"), 0.0, gap=1.0, n_vectors=0, **known)
        known["n_vectors"] = int(np.bincount(state.index, minlength=1).astype(bool).sum())
        found = certificate_of(state.proved[:, :2], state.proved[:, 2], **known)
        return found if len(state) == self.problem.n_problems else replace(found, gap=1.0)

    def stopped(self, state: PairMachines) -> Stop | None:
        """Return what all pairs came to."""
        if len(state) < self.problem.n_problems:
            return None
        if (state.proved[:, 2] <= self.options.tol).all():
            return Stop(Ended.SOLVED, f"gap within {self.options.tol:g} in {len(state):,} pairs")
        if self.options.deadline.passed:
            return self.options.deadline.stop
        return Stop(Ended.PRECISION, "nothing left to refine at this precision")

    def finish(self, state: PairMachines) -> PairMachines:
        """Put machines without vectors in the place of pairs that were not reached."""
        rest = range(len(state), self.problem.n_problems)
        return PairMachines.joined([state, self._unsolved(rest)])

    def _unsolved(self, pairs: range) -> PairMachines:
        """Return the machines that are zero everywhere."""
        loss = [float((0.5 / self.problem.ridge(p, self._members(p))).sum()) for p in pairs]
        return PairMachines.unsolved(loss)

    # One pair, or a run of them.

    def _members(self, pair: int) -> IndexArray:
        """Return the rows of a pair."""
        first, second = self.classes[pair]
        return np.concatenate([self.rows_of[first], self.rows_of[second]])

    def _places(self, pair: int) -> tuple[slice, slice]:
        """Return where the two classes of a pair are, class after class."""
        first, second = self.classes[pair]
        return (
            slice(self.begins[first], self.begins[first + 1]),
            slice(self.begins[second], self.begins[second + 1]),
        )

    def _sign(self, pair: int) -> Vector:
        """Return the labels of the rows of a pair."""
        n_first = len(self.rows_of[self.classes[pair, 0]])
        return np.where(np.arange(self.n_rows[pair]) < n_first, 1.0, -1.0)

    def _beside(self, n_rows: int) -> int:
        """Return how many threads may hold matrices of so many rows at a time."""
        each = _MATRICES * 8 * n_rows**2
        room = int(_PAIRS_SHARE * self.options.memory / each)
        return max(1, min(self.options.threads, room))

    def _most_in_set(self, n_rows: int, itemsize: int) -> int:
        """Return how many rows of a pair may have values with all of them, in every thread."""
        room = _PAIRS_SHARE * self.options.memory / self.options.threads
        copied = 4 * n_rows * self.problem.rows.shape[1]
        return max(0, int((room - copied) / (itemsize * n_rows)))

    def _each_solved(self, run: range) -> PairMachines:
        """Return the machines of a run of pairs, each on values of its own."""
        each = (self._solved(pair, self._earlier(pair), self.precisions) for pair in run)
        return PairMachines.joined(list(each))

    def _solved_on_whole(self, run: range) -> PairMachines:
        """Return the machines of a run of pairs, on the kernel values of all rows."""
        assert self.whole is not None
        if self.options.deadline.passed:
            return self._unsolved(run)
        problem, tol, pairs = self.problem, self.options.tol, slice(run.start, run.stop)
        ends = np.cumsum(self.n_rows[pairs])
        if self.options.earlier is None:
            alpha = np.zeros(ends[-1])
        else:
            alpha = np.concatenate([self._earlier(pair) for pair in run])
        coef, place = np.empty(len(alpha)), np.empty(len(alpha), dtype=np.intp)
        proved = solve_pairs(
            self.whole,
            self.begins,
            self.classes[pairs],
            problem.weight[self.order],
            problem.C[pairs],
            _SHARE_OF_GAP * tol,
            alpha,
            coef,
            place,
        )
        gap = np.array([relative_gap(high, low) for high, low, _ in proved.tolist()])
        norm = np.sqrt(np.add.reduceat(alpha * alpha, np.concatenate([[0], ends[:-1]])))
        proved[:, 2] = np.minimum(1.0, gap + self.precisions[0].rounding * norm)
        used = np.flatnonzero(coef)
        n_terms = np.diff(np.searchsorted(used, ends), prepend=0)
        found = PairMachines(self.order[place[used]], coef[used], n_terms, proved, 0)
        if (proved[:, 2] <= tol).all():
            return found
        apart = np.split(alpha, ends[:-1])
        better = [
            self._solved(pair, apart[i], self.precisions[-1:])
            if proved[i, 2] > tol
            else found.one(i)
            for i, pair in enumerate(run)
        ]
        return PairMachines.joined(better)

    def _solved(self, pair: int, alpha: Vector, precisions: Sequence[Precision]) -> PairMachines:
        """Return the machine of a pair, or as much of it as there is time for."""
        index, sign = self._members(pair), self._sign(pair)
        problem, tol, deadline = self.problem, self.options.tol, self.options.deadline
        ridge = problem.ridge(pair, index)
        n_kernel = 0
        for precision in precisions:
            found = GapOf(alpha, float("inf"), 0.0, 1.0)
            same = precision is self.precisions[0]
            between = self.between if same else self._between(precision.dtype)
            if len(index) >= _WORTH_A_SET:
                places = np.r_[self._places(pair)]
                growing = GrowingSet(
                    between,
                    places,
                    sign,
                    ridge,
                    precision,
                    tol,
                    most=self._most_in_set(len(places), np.dtype(precision.dtype).itemsize),
                    beside=True,
                )
                found = growing.solved(alpha, deadline)
                n_kernel += growing.n_kernel
            if found.gap > tol and not deadline.passed:
                # No more matrices at a time than there is room for.
                with self.matrices:
                    K, made = self._matrix(pair, between)
                    n_kernel += made
                    found = self._on_matrix(pair, K, found.alpha, precision)
            alpha = found.alpha
            if found.gap <= tol or deadline.passed:
                break
        if not np.isfinite(found.primal):
            # Time was over before anything was proved.
            found = GapOf(np.zeros(len(index)), float((0.5 / ridge).sum()), 0.0, 1.0)
        used = np.flatnonzero(found.alpha)
        coef, n_terms = (sign * found.alpha)[used], np.array([len(used)])
        proved = np.array([[found.primal, found.dual, found.gap]])
        return PairMachines(index[used], coef, n_terms, proved, n_kernel)

    def _on_matrix(self, pair: int, K: NDArray[Any], alpha: Vector, precision: Precision) -> GapOf:
        """Return the machine of a pair on its kernel values."""
        index, n = self._members(pair), len(alpha)
        problem, gap = self.problem, _SHARE_OF_GAP * self.options.tol
        if n <= _LARGE:
            found, coef, place = alpha.copy(), np.empty(n), np.empty(n, dtype=np.intp)
            begins = np.array([0, len(self.rows_of[self.classes[pair, 0]]), n])
            weight, C, both = problem.weight[index], problem.C[[pair]], np.array([[0, 1]])
            proved = solve_pairs(K, begins, both, weight, C, gap, found, coef, place)
            return GapOf.of(found, proved[0, 0], proved[0, 1], precision.rounding)
        point = MarginDual.at(K, self._sign(pair), problem.ridge(pair, index), alpha)
        finished = False
        while not (finished or self.options.deadline.passed):
            point, finished = next_round(point, gap, _KKT)
        return GapOf.of(point.alpha, *point.objectives(), precision.rounding)

    def _earlier(self, pair: int) -> Vector:
        """Return the dual variables of an earlier solution, or zeros."""
        earlier = self.options.earlier
        if earlier is None:
            return np.zeros(self.n_rows[pair])
        known = np.zeros(self.problem.n)
        known[earlier.index] = earlier.coef[:, pair]
        return np.maximum(0.0, self._sign(pair) * known[self._members(pair)])

    def _matrix(self, pair: int, between: KernelBetween) -> tuple[NDArray[Any], int]:
        """Return the kernel matrix of a pair, and how much was made."""
        first, second = self._places(pair)
        n_first = first.stop - first.start
        n = n_first + second.stop - second.start
        made = n_first * (n - n_first)
        # What a thread keeps for the next pair must be small.
        large = n > _LARGE
        K = (
            np.empty((n, n), between.dtype)
            if large
            else scratch((n, n), between.dtype, "of a pair")
        )
        for number, rows, where in zip(
            self.classes[pair], (first, second), (slice(0, n_first), slice(n_first, n)), strict=True
        ):
            if self.kept[number] and between is self.between:
                with self.made[number]:
                    if self.inside[number] is None:
                        inside = np.empty(K[where, where].shape, dtype=K.dtype)
                        self.inside[number] = between.values(rows, rows, inside)
                        made += inside.size
                K[where, where] = self.inside[number]
            else:
                between.values(rows, rows, K[where, where])
                made += K[where, where].size
        between.values(second, first, K[n_first:, :n_first])
        copies.mirror(K, n_first, n)
        return K, made
