"""k(X, Z) of all rows on a device: kept where there is room, computed again where there is not.

As ``values`` does on this machine. To compute values again takes a device a few times as long as to
read them, so that little is lost where they do not fit.

Operands of the rows lie there in the rows' order; where they are too many for that, too, blocks of
rows travel in every pass, from pinned memory, while the device is busy with the one before.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray
from widemargin.device import Array, Device, DeviceKernel, block_on_device, to_numpy
from widemargin.device.device_rows import rows_at_a_time
from widemargin.device.in_place import swap_rows
from widemargin.kernels import Kernel
from widemargin.rows import Rows
from widemargin.span.values import MOST_ROWS, rows_of_block

# Bytes of the values of a block: enough work for a launch, and little beside a device's memory.
_BLOCK_BYTES = 1 << 30
# Rows of a block at the most: partial sums of float32 values are added in float64, and those of
# twice as many rows cost a fit at a large C half as many steps again.
_MOST_ROWS = 1 << 16
# Share of the memory budget that the operands of all rows may take.
_ROWS_SHARE = 0.5
# Rows whose mean is the point about which all are centred.
_FOR_THE_CENTRE = 1024


@dataclass
class _Panel:
    """Values of the rows with some of the vectors: of the first `ready` rows, so far."""

    vectors: Array
    kept: Array
    ready: int = 0


@dataclass(eq=False)
class DeviceValues:
    """The matrix k(X, Z) by blocks of rows.

    Parameters
    ----------
    rows : Rows
        X.
    kernel : Kernel
        k.
    device : Device
        Where values are.
    dtype : dtype
        Precision of the values.
    room : int
        Bytes that values may take.
    width : int
        Vectors that are expected at the most; it decides the block size.
    columns : int
        Columns that values will be multiplied with; so does it.
    """

    rows: Rows
    kernel: Kernel
    device: Device
    dtype: np.dtype[Any]
    room: int
    width: int
    columns: int
    most_rows: int = MOST_ROWS
    n_kernel: int = 0

    def __post_init__(self) -> None:
        n, n_features = self.rows.shape
        each = self.dtype.itemsize * max(1, self.width)
        # Samples of rows are those of a fit on this machine.
        self.step = rows_of_block(self.rows.memory, each, self.columns, self.most_rows)
        most = min(_BLOCK_BYTES, self.rows.memory // 16) // each
        self._block_rows = self.step * max(1, min(_MOST_ROWS, most) // self.step)
        sample = self.rows.take(np.arange(min(n, _FOR_THE_CENTRE)))
        self.there = DeviceKernel.about(self.kernel, self.device, sample, self.dtype)
        self._panels: list[_Panel] = []
        columns, kind = self.there.columns(n_features), self.there.operand_dtype
        self._points: Array | None = None
        if n * columns * kind.itemsize <= _ROWS_SHARE * self.rows.memory:
            self._points = self.device.empty((n, columns), kind)
            at_a_time = rows_at_a_time(n_features)
            for begin in range(0, n, at_a_time):
                where = slice(begin, min(n, begin + at_a_time))
                self._points[where, :] = self._operand(where)

    def _operand(self, index: IndexArray | slice) -> Array:
        return self.there.rows(block_on_device(self.rows, self.device, index))

    def rows_kept(self, width: int) -> int:
        """Return for how many rows the values of so many vectors can be kept."""
        blocks = self.room // max(1, self.step * self.dtype.itemsize * width)
        return min(self.rows.shape[0], blocks * self.step)

    @property
    def size(self) -> int:
        """Number of vectors."""
        return sum(panel.vectors.shape[0] for panel in self._panels)

    @property
    def complete(self) -> bool:
        """Whether the values of all rows are kept and computed."""
        n = self.rows.shape[0]
        return self.rows_kept(self.size) == n and all(p.ready == n for p in self._panels)

    def add(self, vectors: NDArray[Any]) -> None:
        """Let vectors join; to make room for their values, those of the last rows may go."""
        if self._panels and not len(vectors):
            # All that were drawn lie in the span of the others.
            return
        kept = self.rows_kept(self.size + len(vectors))
        for panel in self._panels:
            if panel.kept.shape[0] > kept:
                # The room of a part of an array is not given back.
                panel.ready, panel.kept = 0, None
                panel.kept = self.device.empty((kept, panel.vectors.shape[0]), self.dtype)
        room = self.device.empty((kept, len(vectors)), self.dtype)
        self._panels.append(_Panel(self.there.vectors(vectors), room))

    def blocks(self, first: int, stop: int) -> Iterator[tuple[list[Array], slice]]:
        """Yield the values of blocks of rows from `first` to `stop`, in pieces, and which rows."""
        step = self._block_rows
        cuts = {first, stop, *range(first - first % step + step, stop, step)}
        # A block is kept whole or not at all.
        cuts |= {p.kept.shape[0] for p in self._panels if first < p.kept.shape[0] < stop}
        for begin, end in pairwise(sorted(cuts) if first < stop else []):
            yield self._block(begin, end), slice(begin, end)

    def _block(self, begin: int, end: int) -> list[Array]:
        operand, pieces = None, []
        for panel in self._panels:
            if end <= panel.ready:
                pieces.append(panel.kept[begin:end, :])
                continue
            if operand is None and self._points is not None:
                operand = self._points[begin:end, :]
            elif operand is None:
                operand = self._operand(slice(begin, end))
            keeps = begin <= panel.ready and end <= panel.kept.shape[0]
            out = panel.kept[begin:end, :] if keeps else None
            pieces.append(self.there.values(operand, panel.vectors, out))
            panel.ready = end if keeps else panel.ready
            self.n_kernel += (end - begin) * panel.vectors.shape[0]
        return pieces

    def fork(self) -> DeviceValues:
        """Return a copy that shares what was computed, and can be changed without this one.

        Blocks that one of the two computes are the same ones of the other.
        """
        other = copy(self)
        other._panels = [copy(panel) for panel in self._panels]
        return other

    def part_from_others(self) -> None:
        """Share nothing any more."""
        xp = self.device.xp
        if self._points is not None:
            self._points = xp.asarray(self._points, copy=True)
        for panel in self._panels:
            panel.kept = xp.asarray(panel.kept, copy=True)

    def take(self, index: Array, out: Array) -> None:
        """Put k(x, Z) of rows, whose numbers are on the device, into the columns of `out`."""
        xp, column, operand = self.device.xp, 0, None
        n = self.rows.shape[0]
        for panel in self._panels:
            into = slice(column, column + panel.vectors.shape[0])
            column = into.stop
            if panel.ready == n:
                out[:, into] = xp.astype(xp.take(panel.kept, index, axis=0), out.dtype)
                continue
            if operand is None:
                operand = self._operands_at(index)
            out[:, into] = xp.astype(self.there.values(operand, panel.vectors), out.dtype)

    def _operands_at(self, index: Array) -> Array:
        if self._points is not None:
            return self.device.xp.take(self._points, index, axis=0)
        return self._operand(to_numpy(index).astype(np.intp))

    def swap(self, left: IndexArray, right: IndexArray) -> None:
        """Let rows change places, in pairs.

        Where the values of all rows are kept they go along, else they are computed anew.
        """
        order = np.arange(self.rows.shape[0])
        order[left], order[right] = right, left
        complete = self.complete
        kept = [panel.ready for panel in self._panels]
        for panel in self._panels:
            # After an interrupt in the middle, values are computed anew.
            panel.ready = 0
        rows, self.rows = self.rows.subset(order), self.rows
        if self._points is not None:
            self._points = swap_rows(self.device, self._points, left, right)
        self.rows = rows
        if complete:
            for panel, ready in zip(self._panels, kept, strict=True):
                panel.kept = swap_rows(self.device, panel.kept, left, right)
                panel.ready = ready


def times(device: Device, values: list[Array], beta: Array) -> Array:
    """Return the product of kernel values, in one or several pieces, with coefficients."""
    total, begin = None, 0
    for piece in values:
        part = device.xp.matmul(piece, beta[begin : begin + piece.shape[1], :])
        begin += piece.shape[1]
        total = part if total is None else total + part
    return total


def transposed_times(device: Device, values: list[Array], columns: Array) -> Array:
    """Return the product of transposed kernel values with columns, in float64."""
    xp = device.xp
    parts = [xp.matmul(piece.mT, columns) for piece in values]
    return xp.astype(xp.concat(parts, axis=0), xp.float64)
