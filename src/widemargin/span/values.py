"""k(X, Z) for all rows: kept where there is room, computed again where there is not.

Products with the kernel values are all that a span fit asks of the rows. Values of as many rows as
fit into the memory budget are kept when they are first computed; those of the others are computed
anew in every pass, block by block, with the same answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Values
from widemargin.kernels import Kernel
from widemargin.rows import Rows, threads_within
from widemargin.threads import ordered_map, scratch

Answer = TypeVar("Answer")

# Rows of a block at the most: with few vectors, smaller blocks are not worth a thread's while.
MOST_ROWS = 4096
# Bytes of a block for products with many columns; four times as much with fewer.
_BLOCK_BYTES = 8_000_000
# Columns that are many.
_MANY_COLUMNS = 4


def rows_of_block(memory: int, bytes_each: int, columns: int, most_rows: int = MOST_ROWS) -> int:
    """Return the rows of a block whose values take so many bytes each.

    Parameters
    ----------
    memory : int
        Budget in bytes.
    bytes_each : int
        Bytes of the values of a row.
    columns : int
        Columns that values will be multiplied with.
    most_rows : int, default=4096
        Rows at the most.
    """
    # Where little is done with each value, larger blocks save more than the cache would.
    most = _BLOCK_BYTES if columns >= _MANY_COLUMNS else 4 * _BLOCK_BYTES
    return max(16, min(most_rows, min(memory // 16, most) // bytes_each))


@dataclass
class _Panel:
    """Values of the rows with some of the vectors: kept for the first rows, if at all."""

    vectors: NDArray[Any]
    kept: Values
    ready: NDArray[np.bool_]


@dataclass(eq=False)
class KernelValues:
    """The matrix k(X, Z) by blocks of rows.

    Parameters
    ----------
    rows : Rows
        X.
    kernel : Kernel
        k.
    dtype : dtype
        Precision of the values.
    room : int
        Bytes that values may take.
    width : int
        Vectors that are expected at the most; it decides the block size.
    columns : int, default=1
        Columns that values will be multiplied with; so does it.
    most_rows : int, default=4096
        Rows of a block at the most.
    """

    rows: Rows
    kernel: Kernel
    dtype: np.dtype[Any]
    room: int
    width: int
    columns: int = 1
    most_rows: int = MOST_ROWS
    n_kernel: int = 0
    n_passes: int = 0
    # Whether arrays are those of another one, too, and must stay as they are.
    _forked: bool = False

    def __post_init__(self) -> None:
        each = self.dtype.itemsize * max(1, self.width)
        self.step = rows_of_block(self.rows.memory, each, self.columns, self.most_rows)
        self._panels: list[_Panel] = []

    def rows_kept(self, width: int) -> int:
        """Return for how many rows the values of so many vectors can be kept."""
        blocks = self.room // max(1, self.step * self.dtype.itemsize * width)
        return min(self.rows.shape[0], blocks * self.step)

    @property
    def nbytes(self) -> int:
        """Bytes of the values that are kept."""
        return sum(panel.kept.nbytes for panel in self._panels)

    @property
    def kept_rows(self) -> int:
        """Rows whose values are kept."""
        return self.rows_kept(self.size)

    @property
    def size(self) -> int:
        """Number of vectors."""
        return sum(len(panel.vectors) for panel in self._panels)

    def add(self, vectors: NDArray[Any]) -> None:
        """Let vectors join; to make room for their values, those of the last rows may go."""
        if self._panels and not len(vectors):
            # All that were drawn lie in the span of the others.
            return
        kept = self.rows_kept(self.size + len(vectors))
        blocks = -(-kept // self.step)
        for panel in self._panels:
            panel.ready = panel.ready[:blocks]
            if self._forked:
                panel.kept = panel.kept[:kept]
                continue
            # Gives the memory back; the values of a block are looked at only while it is ready.
            panel.kept.resize((kept, len(panel.vectors)), refcheck=False)
        values = np.empty((kept, len(vectors)), dtype=self.dtype)
        self._panels.append(_Panel(vectors, values, np.zeros(blocks, dtype=bool)))

    def scan(
        self,
        visit: Callable[[list[Values], slice], Answer],
        first: int,
        stop: int,
    ) -> Iterator[Answer]:
        """Yield visit(values, where) for every block of the rows from `first` to `stop`.

        `values` are the columns of the block in one or several pieces. Values of blocks that
        `first` and `stop` do not cut are kept.
        """

        def look(where: slice) -> tuple[int, Answer]:
            computed, values = self._block(where)
            return computed, visit(values, where)

        begins = [first, *range(first - first % self.step + self.step, stop, self.step)]
        spans = (slice(*pair) for pair in pairwise([*begins, stop]) if first < stop)
        # Kept values are looked at where they are; others need room for a block in every thread.
        kept = self.kept_rows == self.rows.shape[0]
        each = 0 if kept else self.step * self.size * self.dtype.itemsize
        threads = threads_within(self.rows.memory, each, self.rows.threads)
        for computed, answer in ordered_map(look, spans, threads):
            self.n_kernel += computed
            yield answer
        self.n_passes += stop == self.rows.shape[0] and first == 0

    @property
    def complete(self) -> bool:
        """Whether the values of all rows are kept and computed."""
        all_kept = self.kept_rows == self.rows.shape[0]
        return all_kept and all(panel.ready.all() for panel in self._panels)

    def swap(self, left: IndexArray, right: IndexArray) -> None:
        """Let rows change places, in pairs.

        Where the values of all rows are kept they go along, else they are computed anew.
        """
        order = np.arange(self.rows.shape[0])
        order[left], order[right] = right, left
        rows = self.rows.subset(order)

        def exchange(begin: int) -> None:
            a, b = left[begin : begin + 512], right[begin : begin + 512]
            for panel in self._panels:
                kept = panel.kept[a]
                panel.kept[a] = panel.kept[b]
                panel.kept[b] = kept

        if self._forked:
            self.rows = rows
            for panel in self._panels:
                panel.kept = np.empty_like(panel.kept)
                panel.ready = np.zeros_like(panel.ready)
            return
        if not self.complete:
            self._forget(np.concatenate([left, right]))
            self.rows = rows
            return
        # After an interrupt in the middle, values are computed anew.
        self._mark(ready=False)
        for _ in ordered_map(exchange, range(0, len(left), 512), self.rows.threads):
            pass
        self.rows = rows
        self._mark(ready=True)

    def fork(self) -> KernelValues:
        """Return a copy that shares what was computed, and can be changed without this one."""
        other = copy(self)
        other._panels = [_Panel(p.vectors, p.kept, p.ready.copy()) for p in self._panels]
        other._forked = True
        return other

    def _forget(self, index: IndexArray) -> None:
        """Drop the values of the blocks that rows are in."""
        touched = np.unique(index // self.step)
        for panel in self._panels:
            panel.ready[touched[touched < len(panel.ready)]] = False

    def _mark(self, ready: bool) -> None:
        for panel in self._panels:
            panel.ready[:] = ready

    def take(self, index: IndexArray, out: NDArray[np.float64]) -> None:
        """Put k(x, Z) of a few rows into `out`."""
        column = 0
        for panel in self._panels:
            into = out[:, column : column + len(panel.vectors)]
            column += len(panel.vectors)
            block = index // self.step
            there = block < len(panel.ready)
            there[there] = panel.ready[block[there]]
            if there.all():
                _gather(panel.kept, index, into)
                continue
            into[there] = panel.kept[index[there]]
            missing = np.empty((int((~there).sum()), len(panel.vectors)), dtype=self.dtype)
            self.kernel.block(self.rows.block(index[~there]), panel.vectors, out=missing)
            into[~there] = missing

    def _block(self, where: slice) -> tuple[int, list[Values]]:
        """Return how many values were computed, and those of a block."""
        number, size = where.start // self.step, where.stop - where.start
        uncut = where.stop == min(self.rows.shape[0], (number + 1) * self.step)
        uncut &= where.start == number * self.step
        missing = [p for p in self._panels if number >= len(p.ready) or not p.ready[number]]
        if not missing:
            return 0, [panel.kept[where] for panel in self._panels]
        block = self.rows.block(where)
        spare = sum(len(p.vectors) for p in missing if number >= len(p.ready) or not uncut)
        workspace = scratch((size, spare), self.dtype).ravel()
        pieces = []
        for panel in self._panels:
            room, width = number < len(panel.ready), len(panel.vectors)
            ready = room and panel.ready[number]
            keeps = ready or (room and uncut)
            if keeps:
                into = panel.kept[where]
            else:
                into = workspace[: size * width].reshape(size, width)
                workspace = workspace[size * width :]
            if not ready:
                self.kernel.block(block, panel.vectors, out=into)
            if keeps:
                panel.ready[number] = True
            pieces.append(into)
        return size * sum(len(panel.vectors) for panel in missing), pieces


def _gather(values: Values, index: IndexArray, out: NDArray[np.float64]) -> None:
    """Copy rows a few at a time, so that no second array of the size of `out` is made."""
    for begin in range(0, len(index), 64):
        out[begin : begin + 64] = values[index[begin : begin + 64]]


def product(values: list[Values], beta: Values) -> Values:
    """Return the product of kernel values, in one or several pieces, with coefficients."""
    ends = np.cumsum([piece.shape[1] for piece in values])[:-1]
    parts = zip(values, np.split(beta, ends), strict=True)
    return np.asarray(sum(piece @ part for piece, part in parts))


@dataclass(frozen=True)
class Product:
    """Visitor: scores of coefficients whose last row is the bias."""

    beta: Values
    out: Values

    def __call__(self, values: list[Values], where: slice) -> None:
        """Write the products of a block."""
        np.add(product(values, self.beta[:-1]), self.beta[-1], out=self.out[where])


@dataclass(frozen=True)
class Moments:
    """Visitor: Σ_i s_i k_z(x_i) f(x_i) of a block, for functions without a bias."""

    beta: NDArray[np.float64]
    weight: NDArray[np.float64]

    def __call__(self, values: list[Values], where: slice) -> Any:
        """Return the sums over a block."""
        # In float64, for a sum over all rows is what others must be orthogonal to.
        weighted = product(values, self.beta) * self.weight[where, None]
        return np.concatenate([piece.T @ weighted for piece in values])
