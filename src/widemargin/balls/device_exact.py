"""The exact machines of all problems on a device: two classes, classes against the rest, pairs.

Problems of few rows are solved in batches (``qp.margin_batch``), on matrices that are filled up to
one size. Those of many are solved one by one (``qp.device_newton``), a few beside each other on a
GPU, which would else wait for the machine that gives the orders. Kernel values are float32 where
that is enough for the gap, which only the solution tells: where its coefficients are large, a
problem goes on in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from widemargin.arrays import IndexArray, Vector
from widemargin.balls.ball import Precision, certificate_of, largest_norm2
from widemargin.balls.device_squares import DeviceSquares
from widemargin.balls.pair_machines import PairMachines, fitted_machines
from widemargin.certificate import Certificate
from widemargin.device import Array, Device, moments, own_stream, to_numpy
from widemargin.device.in_place import cholesky, square_of
from widemargin.expansion import Fitted, MachineOptions
from widemargin.loop import Ended, Limits, Stop, relative_gap, run
from widemargin.problem import Problem
from widemargin.qp.device_newton import solve_margin_there
from widemargin.qp.margin_batch import solve_margin_batch
from widemargin.threads import ordered_map

# Share of the memory budget for kernel values and factors.
_SHARE = 0.9
# Matrices of a problem at the most beside its kernel values: that of the rows inside the margin,
# and its factor.
_BESIDE = 2
# Rows of a problem up to which it is solved in a batch,
_SMALL = 1536
# and matrices of that size: so many kernel values are in a batch, of so many problems.
_BATCH_VALUES = 1 << 26
_BATCH = 1024
# Matrices of a batch: kernel values, those of the rows inside, factors, and what they are made of.
_BATCH_MATRICES = 5
# Problems of many rows that are solved beside each other on a GPU, and in a step.
_STREAMS = 2
_AT_A_TIME = 16
# Batches are solved to this share of the gap that is asked for, so that rounding fits beside it.
_SHARE_OF_GAP = 0.5


def exact_fits_there(problem: Problem, memory: int) -> bool:
    """Return whether a device has room for the kernel values of the largest problem."""
    counts = np.bincount(problem.code, minlength=len(problem.table))
    largest = int((counts @ (problem.table != 0)).max())
    return bool(8 * (1 + _BESIDE) * largest**2 <= _SHARE * memory)


def fit_exact_there(problem: Problem, options: MachineOptions) -> Fitted:
    """Fit the SVM itself to all rows, on their device.

    Parameters
    ----------
    problem : Problem
        Problems of one C, of rows on a device.
    options : MachineOptions
        How exactly.
    """
    # Each problem is a success of its own: there is no stall.
    limits = Limits(options.max_iter, options.deadline, patience=options.max_iter)
    result = run(DeviceExact(problem, options), limits, options.report)
    joined = PairMachines.joined([each for each in result.state if each is not None])
    return fitted_machines(problem, joined, result.certificate, result.stop)


@dataclass(frozen=True)
class _Column:
    """One problem: where its rows stand, class after class, their labels, and 1 / (2 C s)."""

    parts: tuple[slice, ...]
    places: IndexArray
    sign: Vector
    ridge: Vector

    @property
    def n(self) -> int:
        """How many rows it has."""
        return len(self.sign)


State = tuple[PairMachines | None, ...]


class DeviceExact:
    """Solver of all problems, for ``loop.run``; a step is some of them.

    Parameters
    ----------
    problem : Problem
        Problems of one C, of rows on a device.
    options : MachineOptions
        How exactly.
    """

    def __init__(self, problem: Problem, options: MachineOptions) -> None:
        self.problem, self.options = problem, options
        self.device: Device = problem.rows.device
        spread = float(moments(problem.rows, problem.weight).variance.sum())
        eta = largest_norm2(problem)
        self.precisions = Precision.in_turn_of(problem.kernel, spread, eta, options.tol)
        self.order = np.argsort(problem.code, kind="stable")
        ends = np.cumsum(np.bincount(problem.code, minlength=len(problem.table)))
        self.begins = np.concatenate([[0], ends])
        used = problem.table != 0
        self.n_rows = np.array([int(np.diff(self.begins)[each].sum()) for each in used.T])
        self.room = self._room()
        self.groups = self._groups()
        self.fine = Lock()

    def _room(self) -> float:
        """Return what may be taken on the device, or raise if a problem needs more."""
        room, largest = _SHARE * self.options.memory, int(self.n_rows.max())
        each = int(np.dtype(self.precisions[0].dtype).itemsize)
        need = each * (1 + _BESIDE) * largest**2
        if need > room:
            raise ValueError(
                f"engine='exact' needs {need / _SHARE / 1e9:,.2f} GB for the kernel values of "
                f"{largest:,} rows and their factors on the device {str(self.device)!r}, but "
                f"memory is {self.options.memory / 1e9:,.2f} GB; use engine='span', or raise "
                "memory."
            )
        return room

    def _groups(self) -> list[list[int]]:
        """Return the problems of every step: batches of alike ones first, then the large ones."""
        order = np.argsort(-self.n_rows, kind="stable")
        groups: list[list[int]] = []
        item = int(np.dtype(self.precisions[0].dtype).itemsize)
        for p in order[self.n_rows[order] <= _SMALL].tolist():
            size = int(self.n_rows[groups[-1][0]]) ** 2 if groups else 0
            many = (len(groups[-1]) + 1) * size if groups else 0
            full = many > _BATCH_VALUES or _BATCH_MATRICES * item * many > self.room / 2
            if not groups or full or len(groups[-1]) == _BATCH:
                groups.append([])
            groups[-1].append(p)
        large = np.flatnonzero(self.n_rows > _SMALL).tolist()
        groups.extend(large[i : i + _AT_A_TIME] for i in range(0, len(large), _AT_A_TIME))
        return groups

    def start(self) -> State:
        """Begin with no problem; compute all kernel values where they fit into memory."""
        squares = DeviceSquares(self.problem, self.order, self.precisions[0])
        largest, n = int(self.n_rows.max()), self.problem.n
        whole, alone = squares.itemsize * n**2, squares.itemsize * largest**2
        self.held = 0.0
        if whole + _BESIDE * alone <= self.room:
            squares.make_whole()
            self.held = whole
        else:
            self.held = (self.room - (1 + _BESIDE) * alone) / 2
            squares.keep_inside(self.held)
        self.squares = squares
        return (None,) * self.problem.n_problems

    def step(self, state: State) -> State:
        """Solve some more problems; an interrupt leaves those that are done."""
        group = next(group for group in self.groups if any(state[p] is None for p in group))
        after, deadline = list(state), self.options.deadline
        with deadline.ends_on_interrupt():
            if self.n_rows[group[0]] <= _SMALL:
                for p, found in zip(group, self._batch(group), strict=True):
                    after[p] = found
            else:
                threads = self._beside(group)
                if threads > 1:
                    # Solvers are loaded when they are first used, and not by several at once.
                    cholesky(self.device, self.device.ones((1, 1), np.float32))
                found_ones = ordered_map(self._alone, group, threads, deadline.interrupt)
                for p, found in zip(group, found_ones, strict=False):
                    after[p] = found
        return tuple(after)

    def certificate(self, state: State) -> Certificate:
        """Return the sums over the problems; those that are missing count as nothing proved."""
        known: dict[str, Any] = {"n_passes": 1, "n_kernel": self.squares.n_kernel}
        done = [each for each in state if each is not None]
        if not done:
            return Certificate(float("inf"), 0.0, gap=1.0, n_vectors=0, **known)
        found = PairMachines.joined(done)
        known["n_kernel"] += found.n_kernel
        known["n_vectors"] = int(np.bincount(found.index, minlength=1).astype(bool).sum())
        certificate = certificate_of(found.proved[:, :2], found.proved[:, 2], **known)
        return certificate if len(done) == len(state) else replace(certificate, gap=1.0)

    def stopped(self, state: State) -> Stop | None:
        """Return what all problems came to."""
        gaps = [each.proved[0, 2] for each in state if each is not None]
        if len(gaps) < len(state):
            return None
        if max(gaps) <= self.options.tol:
            pairs = f" in {len(gaps):,} pairs" if self.problem.partial else ""
            return Stop(Ended.SOLVED, f"gap within {self.options.tol:g}{pairs}")
        if self.options.deadline.passed:
            return self.options.deadline.stop
        return Stop(Ended.PRECISION, "nothing left to refine at this precision")

    def finish(self, state: State) -> State:
        """Put machines without vectors in the place of problems that were not reached."""
        return tuple(self._unsolved(p) if found is None else found for p, found in enumerate(state))

    def _unsolved(self, p: int) -> PairMachines:
        """Return the machine that is zero everywhere."""
        return PairMachines.unsolved([float((0.5 / self._column(p).ridge).sum())])

    def _column(self, p: int) -> _Column:
        """Return one problem."""
        parts: list[slice] = []
        for number in np.flatnonzero(self.problem.table[:, p]).tolist():
            own = slice(int(self.begins[number]), int(self.begins[number + 1]))
            if parts and parts[-1].stop == own.start:
                own = slice(parts.pop().start, own.stop)
            parts.append(own)
        places = np.concatenate([np.arange(each.start, each.stop) for each in parts])
        index = self.order[places]
        problem = self.problem
        return _Column(tuple(parts), places, problem.sign(p, index), problem.ridge(p, index))

    def _machine(self, column: _Column, beta: Vector, proved: Any, made: int = 0) -> PairMachines:
        """Return a machine from its coefficients."""
        used = np.flatnonzero(beta)
        index = self.order[column.places[used]]
        return PairMachines(index, beta[used], np.array([len(used)]), np.array([proved]), made)

    def _earlier(self, p: int, column: _Column) -> Vector | None:
        """Return the coefficients of an earlier solution, if there is one."""
        earlier = self.options.earlier
        if earlier is None:
            return None
        known = np.zeros(self.problem.n)
        known[earlier.index] = earlier.coef[:, p]
        return known[self.order[column.places]]

    # Problems of many rows.

    def _beside(self, group: list[int]) -> int:
        """Return how many problems are worked on at a time."""
        if not self.device.is_cuda:
            return 1
        matrices = _BESIDE if self.squares.whole is not None else 1 + _BESIDE
        each = self.squares.itemsize * matrices * int(self.n_rows[group].max()) ** 2
        return max(1, min(_STREAMS, int((self.room - self.held) / each)))

    def _alone(self, p: int) -> PairMachines:
        """Return the machine of one problem, or as much of it as there is time for."""
        column = self._column(p)
        if self.options.deadline.passed:
            return self._unsolved(p)
        with own_stream(self.device):
            earlier = self._earlier(p, column)
            start = None if earlier is None else self.device.array(earlier)
            found = self._solved(column, self.squares, start)
            return self._refined(column, found)

    def _refined(self, column: _Column, machine: PairMachines) -> PairMachines:
        """Return a machine that has gone on in float64, if that is needed and there is room."""
        good = float(machine.proved[0, 2]) <= self.options.tol
        if good or self.options.deadline.passed or len(self.precisions) == 1:
            return machine
        if 8 * (1 + _BESIDE) * column.n**2 > self.room - self.held:
            return machine
        # One at a time, for there may be room for no more.
        with self.fine:
            squares = DeviceSquares(self.problem, self.order, self.precisions[-1])
            known = np.zeros(self.problem.n)
            known[machine.index] = machine.coef
            start = self.device.array(known[self.order[column.places]])
            return self._solved(column, squares, start)

    def _solved(self, column: _Column, squares: DeviceSquares, start: Array | None) -> PairMachines:
        """Return the machine of a problem on kernel values of one precision."""
        found = solve_margin_there(
            squares.of(column.parts),
            column.sign,
            column.ridge,
            tol=self.options.tol,
            rounding=squares.precision.rounding,
            deadline=self.options.deadline,
            start=start,
        )
        made = 0 if squares is self.squares else squares.n_kernel
        proved = (found.primal, found.dual, found.gap)
        return self._machine(column, to_numpy(found.beta), proved, made)

    # Problems of few rows.

    def _batch(self, group: list[int]) -> list[PairMachines]:
        """Return the machines of problems of about one size."""
        device, tol, precision = self.device, self.options.tol, self.precisions[0]
        columns = [self._column(p) for p in group]
        m = max(column.n for column in columns)
        shape = (len(group), m)
        sign, ridge, start = np.zeros(shape), np.ones(shape), np.zeros(shape)
        for b, (p, column) in enumerate(zip(group, columns, strict=True)):
            sign[b, : column.n], ridge[b, : column.n] = column.sign, column.ridge
            earlier = self._earlier(p, column)
            if earlier is not None:
                start[b, : column.n] = earlier
        found = solve_margin_batch(
            device,
            self._squares_of(columns, m),
            device.array(sign),
            device.array(ridge),
            gap=_SHARE_OF_GAP * tol,
            start=None if self.options.earlier is None else device.array(start),
        )
        beta, scores = to_numpy(found.beta), to_numpy(found.scores)
        machines = []
        for b, column in enumerate(columns):
            own, n = beta[b], column.n
            alpha = np.maximum(0.0, 1.0 - sign[b, :n] * scores[b, :n]) / ridge[b, :n]
            hidden = precision.rounding * float(np.linalg.norm(alpha))
            primal, dual = float(found.primal[b]), float(found.dual[b])
            gap = min(1.0, relative_gap(primal, dual) + hidden)
            machine = self._machine(column, own[:n], (primal, dual, gap))
            # What is left to do is more than this precision can, or than rounds allow.
            if gap > tol and not self.options.deadline.passed and len(self.precisions) == 1:
                machine = self._solved(column, self.squares, device.array(own[:n]))
            machine = self._refined(column, machine)
            machines.append(machine)
        return machines

    def _squares_of(self, columns: list[_Column], m: int) -> Array:
        """Return the kernel values of problems, filled up to one size."""
        device, whole = self.device, self.squares.whole
        if whole is not None:
            places = np.zeros((len(columns), m), dtype=np.int64)
            for b, column in enumerate(columns):
                places[b, : column.n] = column.places
            return square_of(device, whole, device.index(places))
        K = device.zeros((len(columns), m, m), self.precisions[0].dtype)
        for b, column in enumerate(columns):
            K[b, : column.n, : column.n] = self.squares.of(column.parts).values
        return K
