"""Machines of cells on a device, many at a time: rows in tables, kernel matrices, one solver.

An entry is a problem in a cell, with the rows that take part in it: all of the cell, or those of
two classes. These follow each other in the members of cells, so that a table of row numbers is a
few operations. Entries of about the same size are filled up to the largest of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.cells.device_partition import MembersThere, StoredRows
from widemargin.device import Array, Device, DeviceKernel, can_be_shifted, to_numpy
from widemargin.device.in_place import written
from widemargin.kernels.kernel import check_finite
from widemargin.problem import Problem
from widemargin.qp.device_matrices import ManyMatrices
from widemargin.qp.margin_batch import solve_margin_batch

# Numbers in the matrices of a batch, about: more are not solved sooner.
_NUMBERS = 1 << 28
# Entries are filled up to the largest of a batch: those below this part of its size, less some
# rows, wait for the next one.
_FILLED = 0.3
_FILLED_ROWS = 16
# Matrices that an entry needs at a time: kernel values, those inside the margin, a factor, and what
# is made on the way.
_MATRICES = 6
# Share of the memory budget for them.
_SHARE = 0.6
# Rounds of the solver in float32, and in float64 for what these have not solved.
_ROUNDS = {"float32": 15, "float64": 60}


@dataclass(frozen=True)
class Entries:
    """Problems in cells, by the rows that take part.

    Attributes
    ----------
    cell, problem : ndarray of int of shape (n_entries,)
        Which.
    start, length : ndarray of int of shape (n_entries, 2)
        Where their rows lie among the members: one after another, in one or two runs.
    """

    cell: IndexArray
    problem: IndexArray
    start: IndexArray
    length: IndexArray

    @property
    def sizes(self) -> IndexArray:
        """Rows of each."""
        sizes: IndexArray = self.length.sum(axis=1)
        return sizes

    def subset(self, index: Any) -> Entries:
        """Return some of them."""
        return Entries(self.cell[index], self.problem[index], self.start[index], self.length[index])

    @classmethod
    def of(cls, problem: Problem, begins: IndexArray, wanted: NDArray[np.bool_]) -> Entries:
        """Return the entries of (cell, problem) that are wanted.

        Parameters
        ----------
        problem : Problem
            Problems of all classes, or of two each.
        begins : ndarray of int of shape (n_cells, n_classes + 1)
            As in `MembersThere`.
        wanted : ndarray of bool of shape (n_cells, n_problems)
            Which.
        """
        cell, number = np.nonzero(wanted)
        if not problem.partial:
            start = np.column_stack([begins[cell, 0], begins[cell, 0]])
            length = np.column_stack([begins[cell, -1] - begins[cell, 0], np.zeros_like(cell)])
            return cls(cell, number, start, length)
        pairs = np.array([np.flatnonzero(signs)[:2] for signs in problem.table.T])
        classes, own = pairs[number], cell[:, None]
        start = begins[own, classes]
        return cls(cell, number, start, begins[own, classes + 1] - start)


def in_batches(sizes: IndexArray, memory: int, smallest_first: bool) -> list[IndexArray]:
    """Return entries in groups of about the same size, none of which takes too much memory."""
    order = np.argsort(-sizes, kind="stable")
    falling = sizes[order]
    groups, begin = [], 0
    while begin < len(order):
        largest = max(1, int(falling[begin]))
        room = min(_NUMBERS, int(_SHARE * memory / (_MATRICES * 8)))
        least = _FILLED * largest - _FILLED_ROWS
        alike = int(np.searchsorted(-falling, -least, side="right"))
        end = min(alike, begin + max(1, room // largest**2))
        groups.append(order[begin:end])
        begin = end
    return groups[::-1] if smallest_first else groups


@dataclass(frozen=True)
class Solved:
    """The machines of some entries.

    Attributes
    ----------
    entries : Entries
        Which.
    place : array of int64 of shape (b, m)
        Places of their rows among the members; the number of members where there is no row.
    beta : array of float64 of shape (b, m)
        Coefficients.
    bias, primal, dual, gap : ndarray of shape (b,)
        Biases, objectives, lower bounds, and gaps with what rounding may hide.
    count : ndarray of shape (b,)
        Coefficients that are not zero.
    """

    entries: Entries
    place: Array
    beta: Array
    bias: Vector
    primal: Vector
    dual: Vector
    gap: Vector
    count: Vector


class Batches:
    """Makes and solves batches of entries.

    Parameters
    ----------
    problem : Problem
        The problems, on rows of a device.
    members : MembersThere
        Which rows train where.
    tol : float
        Relative gap.
    """

    def __init__(self, problem: Problem, members: MembersThere, tol: float) -> None:
        self.problem, self.members, self.tol = problem, members, tol
        self.device: Device = problem.rows.device
        self.stored = StoredRows.of(problem.rows)
        xp, device = self.device.xp, self.device
        self.centers = device.array(members.partition.centers)
        self.code = device.index(problem.code)
        self.weight = device.array(problem.weight, np.float64)
        self.table = xp.reshape(device.array(problem.table, np.float64), (-1,))
        self.C = device.array(problem.C, np.float64)
        constant = problem.kernel.constant_diagonal
        self.types: tuple[str, ...] = ("float64",) if constant is None else ("float32", "float64")
        ridge = 1.0 / (2.0 * float(problem.C.min()) * float(problem.weight.min()))
        self.eta = 0.0 if constant is None else constant + 1.0 + ridge

    def places(self, entries: Entries) -> tuple[Array, Array]:
        """Return the places of the rows of entries among the members, and which are there."""
        xp, device = self.device.xp, self.device
        start, length = device.index(entries.start), device.index(entries.length)
        j = xp.arange(int(entries.sizes.max()), dtype=xp.int64, device=device.where)[None, :]
        first = length[:, :1]
        place = xp.where(j < first, start[:, :1] + j, start[:, 1:] + j - first)
        there = j < first + length[:, 1:]
        return xp.where(there, place, self.members.row.shape[0]), there

    def _rows(self, place: Array) -> Array:
        """Return the numbers of the rows at places, of any where there is none, in one line."""
        xp, row = self.device.xp, self.members.row
        return xp.take(row, xp.reshape(xp.clip(place, None, row.shape[0] - 1), (-1,)))

    def _points(self, entries: Entries, row: Array, there: Array) -> Array:
        """Return rows in float64, about the centres of their cells if the kernel allows it."""
        xp, shape = self.device.xp, there.shape
        X = xp.reshape(self.stored.take(row), (*shape, -1))
        if can_be_shifted(self.problem.kernel):
            X = X - xp.take(self.centers, self.device.index(entries.cell), axis=0)[:, None, :]
        return xp.where(there[:, :, None], X, xp.zeros_like(X))

    def _matrices(self, X: Array, largest: float, dtype: DTypeLike) -> tuple[Array, bool]:
        """Return kernel matrices of points of shape (b, m, d), and whether operands are wide."""
        xp, (b, m, d) = self.device.xp, X.shape
        there = DeviceKernel.of_differences(self.problem.kernel, self.device, d, largest, dtype)
        flat = xp.reshape(X, (b * m, d))
        left, right = there.rows(flat), there.vectors_there(flat)
        K = there.values(xp.reshape(left, (b, m, -1)), xp.reshape(right, (b, m, -1)))
        return K, there.wide

    def solve(self, entries: Entries) -> Solved:
        """Return the machines of entries."""
        xp, device, problem = self.device.xp, self.device, self.problem
        place, there = self.places(entries)
        row = self._rows(place)
        X = self._points(entries, row, there)
        number = device.index(entries.problem)[:, None]
        code = xp.reshape(xp.take(self.code, row), there.shape)
        sign = xp.take(self.table, xp.reshape(code * problem.n_problems + number, (-1,)))
        sign = xp.reshape(sign, there.shape)
        sign = xp.where(there, sign, xp.zeros_like(sign))
        weight = xp.reshape(xp.take(self.weight, row), there.shape)
        ridge = 1.0 / (2.0 * xp.take(self.C, number[:, 0])[:, None] * weight)
        ridge = xp.where(there, ridge, xp.ones_like(ridge))
        square = xp.sum(X * X, axis=2)
        spread = xp.sum(square, axis=1) / xp.sum(xp.astype(there, xp.float64), axis=1)
        reach = to_numpy(xp.stack([xp.max(square, axis=1), spread]))
        beta, proved = self._solved(X, sign, ridge, reach, self.types[0], None)
        hidden = np.flatnonzero(~(proved[3] <= self.tol))
        if len(hidden) and len(self.types) > 1:
            some = device.index(hidden)
            points, signs, ridges, start = (
                xp.take(each, some, axis=0) for each in (X, sign, ridge, beta)
            )
            better, proof = self._solved(
                points, signs, ridges, reach[:, hidden], self.types[1], start
            )
            proved[:, hidden] = proof
            beta = written(device, beta, some, better)
        check_finite(problem.kernel, proved[1])
        return Solved(entries, place, beta, *proved)

    def _solved(
        self,
        X: Array,
        sign: Array,
        ridge: Array,
        reach: NDArray[np.float64],
        dtype: str,
        start: Array | None,
    ) -> tuple[Array, NDArray[np.float64]]:
        """Return coefficients, and bias, primal, dual, gap and count of each machine."""
        xp = self.device.xp
        K, wide = self._matrices(X, float(reach[0].max()), dtype)
        kernel = self.problem.kernel
        rounding = [4.0 * kernel.rounding(0.0 if wide else each, dtype) for each in reach[1]]
        found = solve_margin_batch(
            ManyMatrices.of_all(self.device, K),
            sign,
            ridge,
            tol=self.tol,
            rounding=self.eta * np.array(rounding),
            start=start,
            max_rounds=_ROUNDS[dtype],
        )
        used = xp.astype(found.beta != 0, xp.float64)
        bias, count = to_numpy(xp.stack([xp.sum(each, axis=1) for each in (found.beta, used)]))
        return found.beta, np.stack([bias, found.primal, found.dual, found.gap, count])

    def square_sums(self, entries: Entries, memory: int) -> Vector:
        """Return sᵀKs of the rows of entries."""
        xp, total = self.device.xp, np.zeros(len(entries.cell))
        for group in in_batches(entries.sizes, memory, smallest_first=False):
            some = entries.subset(group)
            place, there = self.places(some)
            row = self._rows(place)
            X = self._points(some, row, there)
            largest = float(xp.max(xp.sum(X * X, axis=2)))
            K, _ = self._matrices(X, largest, self.types[0])
            weight = xp.reshape(xp.take(self.weight, row), there.shape)
            weight = xp.where(there, weight, xp.zeros_like(weight))
            heavy = xp.matmul(K, xp.astype(weight, K.dtype)[:, :, None])[:, :, 0]
            sums = xp.sum(weight * xp.astype(heavy, xp.float64), axis=1)
            total[group] = to_numpy(sums)
        return total
