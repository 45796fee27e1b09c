"""The exact machines of all problems on a device: two classes, classes against the rest, pairs.

Problems are solved side by side (``qp.margin_batch``): all of them where the kernel values of all
rows fit into the device's memory, else those of few rows in batches, and those of many one by one.
Kernel values are float32 where that is enough for the gap, which only the solution tells: where its
coefficients are large, a problem goes on in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.balls.ball import Precision, certificate_of, largest_norm2
from widemargin.balls.device_squares import DeviceSquares
from widemargin.balls.pair_machines import PairMachines, fitted_machines
from widemargin.certificate import Certificate
from widemargin.device import Device, moments, to_numpy
from widemargin.expansion import Fitted, MachineOptions
from widemargin.loop import Ended, Limits, Stop, run
from widemargin.problem import Problem
from widemargin.qp.margin_batch import solve_margin_batch

# Share of the memory budget for kernel values and factors.
_SHARE = 0.9
# Matrices of a problem at the most beside its kernel values: that of the rows inside the margin,
# and its factor.
_BESIDE = 2
# Rows of a problem up to which it is solved in a batch where problems do not share a matrix,
_SMALL = 1536
# and matrices of that size: so many kernel values are in a batch.
_BATCH_VALUES = 1 << 26
# Bytes of the numbers that are kept for each row of a problem that is solved beside others,
_BYTES_OF_A_ROW = 256
# as a share of the memory for kernel values and factors.
_SHARE_OF_ROWS = 0.125


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
        item, largest = int(np.dtype(self.precisions[0].dtype).itemsize), int(self.n_rows.max())
        # Whether the kernel values of all rows are there at once.
        self.shared = item * (problem.n**2 + _BESIDE * largest**2) <= self.room
        self.groups = self._groups()

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
        """Return the problems of every step, of about as many rows."""
        item = int(np.dtype(self.precisions[0].dtype).itemsize)
        groups: list[list[int]] = []
        for p in np.argsort(-self.n_rows, kind="stable").tolist():
            # Of those that are there, and one more.
            largest = int(self.n_rows[groups[-1][0]]) if groups else 0
            many = (len(groups[-1]) + 1) * largest if groups else 0
            full = _BYTES_OF_A_ROW * many > _SHARE_OF_ROWS * self.room
            if not self.shared:
                values = min(_BATCH_VALUES, self.room / (2 * item * (1 + _BESIDE)))
                full = full or largest > _SMALL or many * largest > values
            if not groups or full:
                groups.append([])
            groups[-1].append(p)
        return groups

    def start(self) -> State:
        """Begin with no problem; compute all kernel values where they fit into memory."""
        squares = DeviceSquares(self.problem, self.order, self.precisions[0])
        if self.shared:
            squares.make_whole()
            self.held = float(squares.itemsize * self.problem.n**2)
        else:
            alone = squares.itemsize * int(self.n_rows.max()) ** 2
            self.held = (self.room - (1 + _BESIDE) * alone) / 2
            squares.keep_inside(self.held)
        self.squares = squares
        return (None,) * self.problem.n_problems

    def step(self, state: State) -> State:
        """Solve some more problems; an interrupt leaves those that are done."""
        group = next(group for group in self.groups if any(state[p] is None for p in group))
        after, deadline = list(state), self.options.deadline
        if deadline.passed:
            return self.finish(state)
        with deadline.ends_on_interrupt():
            columns = [self._column(p) for p in group]
            machines = self._solved(group, columns, self.squares, self._earlier(group, columns))
            for p, machine in zip(group, machines, strict=True):
                after[p] = machine
            for p, column, machine in zip(group, columns, machines, strict=True):
                after[p] = self._refined(p, column, machine)
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

    def _earlier(self, group: list[int], columns: list[_Column]) -> Matrix | None:
        """Return the coefficients of an earlier solution, if there is one."""
        earlier = self.options.earlier
        if earlier is None:
            return None
        start = np.zeros((len(group), max(column.n for column in columns)))
        known = np.zeros(self.problem.n)
        for b, (p, column) in enumerate(zip(group, columns, strict=True)):
            known[earlier.index] = earlier.coef[:, p]
            start[b, : column.n] = known[self.order[column.places]]
        return start

    def _solved(
        self,
        group: list[int],
        columns: list[_Column],
        squares: DeviceSquares,
        start: Matrix | None,
    ) -> list[PairMachines]:
        """Return the machines of problems on kernel values of one precision."""
        device, before = self.device, squares.n_kernel
        shape = (len(group), max(column.n for column in columns))
        sign, ridge = np.zeros(shape), np.ones(shape)
        for b, column in enumerate(columns):
            sign[b, : column.n], ridge[b, : column.n] = column.sign, column.ridge
        matrices = squares.of_machines([column.parts for column in columns])
        room = max(0.0, self.room - self.held) / (squares.itemsize * _BESIDE)
        found = solve_margin_batch(
            matrices,
            device.array(sign),
            device.array(ridge),
            tol=self.options.tol,
            rounding=squares.precision.rounding,
            deadline=self.options.deadline,
            start=None if start is None else device.array(start),
            most_numbers=int(room),
        )
        # Values of other precisions are counted where they are made.
        made = squares.n_kernel - before if squares is not self.squares else 0
        beta = to_numpy(found.beta)
        proved = np.column_stack([found.primal, found.dual, found.gap])
        return [
            self._machine(column, beta[b, : column.n], proved[b], made if b == 0 else 0)
            for b, column in enumerate(columns)
        ]

    def _refined(self, p: int, column: _Column, machine: PairMachines) -> PairMachines:
        """Return a machine that has gone on in float64, if that is needed and there is room."""
        good = float(machine.proved[0, 2]) <= self.options.tol
        if good or self.options.deadline.passed or len(self.precisions) == 1:
            return machine
        if 8 * (1 + _BESIDE) * column.n**2 > self.room - self.held:
            return machine
        squares = DeviceSquares(self.problem, self.order, self.precisions[-1])
        known = np.zeros(self.problem.n)
        known[machine.index] = machine.coef
        start = known[self.order[column.places]][None, :]
        return self._solved([p], [column], squares, start)[0]
