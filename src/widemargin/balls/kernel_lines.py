"""Lines of a kernel matrix: all of them at once, or those that are asked for.

Rows stand in the order of their classes where problems are pairs of classes, so that the columns of
a pair are two pieces of a line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.kernel_between import KernelBetween
from widemargin.kernels import Kernel
from widemargin.problem import Problem
from widemargin.rows import as_rows

# Share of the memory budget for kernel values.
_SHARE = 0.7
# Share of it for a dense copy of sparse rows: to bring all of them into shape for a few lines takes
# longer than the lines.
_COPY_SHARE = 0.15


@dataclass(frozen=True)
class ProblemLines:
    """What a problem has of the lines.

    Attributes
    ----------
    pieces : ndarray of int of shape (n_pieces, 2)
        The first column of each piece of a line that it has, and the one behind the last.
    place : ndarray of int of shape (n,)
        The columns of its rows.
    rows : ndarray of int of shape (n,)
        The numbers of its rows.
    sign, ridge, diagonal : ndarray of shape (n,)
        Labels ±1, 1 / (2 C s), and k(x, x) + 1 + 1 / (2 C s).
    """

    pieces: NDArray[np.intp]
    place: IndexArray
    rows: IndexArray
    sign: Vector
    ridge: Vector
    diagonal: Vector


class KernelLines:
    """Kernel values of rows with all others, a line for each row.

    Parameters
    ----------
    problem : Problem
        All rows.
    memory : int
        Budget in bytes.
    dtype : dtype
        Precision of the values.

    Attributes
    ----------
    values : ndarray of shape (n_lines, n)
        Lines, in the order in which they were made.
    line : ndarray of int of shape (n,)
        Where the line of each row is; −1 if it is not there.
    n_lines : int
        Lines that are there.
    n_kernel : int
        Kernel values that were made.
    """

    def __init__(self, problem: Problem, memory: int, dtype: DTypeLike) -> None:
        n = problem.n
        order = np.argsort(problem.code, kind="stable") if problem.partial else np.arange(n)
        self._problem, self._order = problem, order
        whole = self.fits(problem, memory, dtype)
        rows = problem.rows.subset(order)
        if rows.sparse and not whole and 8 * n * rows.shape[1] <= _COPY_SHARE * memory:
            rows = as_rows(rows.take(np.arange(n)), memory=memory, threads=rows.threads)
        self._between = KernelBetween.of(problem.kernel, rows, dtype)
        self._begins = np.searchsorted(problem.code[order], np.arange(len(problem.table) + 1))
        self._threads = problem.rows.threads
        self._known: dict[int, ProblemLines] = {}
        self._own: Vector | None = None
        if whole:
            self.values = self._between.matrix()
            self.line, self.n_lines = np.arange(n), n
        else:
            capacity = int(_SHARE * memory / np.dtype(dtype).itemsize / n)
            self.values = np.empty((max(2, min(capacity, n)), n), dtype=dtype)
            self.line, self.n_lines = np.full(n, -1), 0
        self.n_kernel = self.n_lines * n

    @staticmethod
    def fits(problem: Problem, memory: int, dtype: DTypeLike) -> bool:
        """Return whether there is room for all values."""
        return bool(problem.n**2 * np.dtype(dtype).itemsize <= _SHARE * memory)

    def fill(self, places: IndexArray, soon: IndexArray | None = None) -> bool:
        """Make the lines at some places that are not there; return whether there is room.

        Those of rows that may be wanted `soon` are made too, while there is much room.
        """
        if soon is not None and 2 * self.n_lines < len(self.values):
            places = np.concatenate([places, soon])
        new = np.unique(places[self.line[places] < 0])
        first, last = self.n_lines, self.n_lines + len(new)
        if last > len(self.values):
            return False
        if len(new):
            n = self.values.shape[1]
            self._between.values(new, slice(0, n), self.values[first:last], self._threads)
            self.line[new] = np.arange(first, last)
            self.n_lines = last
            self.n_kernel += len(new) * n
        return True

    def of(self, p: int) -> ProblemLines:
        """Return what a problem has of them."""
        if p not in self._known:
            problem, n = self._problem, self._problem.n
            pieces = np.array([[0, n]])
            if problem.partial:
                classes = np.flatnonzero(problem.table[:, p])
                pieces = np.stack([self._begins[classes], self._begins[classes + 1]], axis=1)
            place = np.concatenate([np.arange(*piece) for piece in pieces])
            rows = self._order[place]
            sign, ridge = problem.sign(p, rows), problem.ridge(p, rows)
            diagonal = self._diagonal()[place] + 1.0 + ridge
            self._known[p] = ProblemLines(pieces, place, rows, sign, ridge, diagonal)
        return self._known[p]

    def _diagonal(self) -> Vector:
        """Return k(x, x) of all rows, in their order here."""
        if self._own is None:
            kernel, number = self._problem.kernel, self._problem.number[self._order]
            constant = kernel.constant_diagonal
            if constant is not None:
                self._own = np.full(len(number), float(constant))
            else:
                visit = _Diagonal(kernel, number)
                self._own = np.concatenate(list(self._between.rows.scan(visit)))
        return self._own


@dataclass(frozen=True)
class _Diagonal:
    """Visitor: k(x, x) of a block."""

    kernel: Kernel
    number: IndexArray

    def __call__(self, block: Any, where: slice) -> Vector:
        diagonal: Vector = self.kernel.diagonal(block, self.number[where])
        return diagonal
