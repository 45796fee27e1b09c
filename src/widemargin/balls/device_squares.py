"""Kernel values among rows on a device, class after class: of all rows, or of two classes.

Where those of all rows fit into the device's memory, they are made once, which is less work than
those of every pair of classes. Otherwise the values inside a class are kept as far as memory lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from widemargin.arrays import IndexArray
from widemargin.balls.ball import Precision
from widemargin.device import Array, Device, DeviceKernel, block_on_device, to_numpy
from widemargin.device.device_rows import rows_at_a_time
from widemargin.kernels.kernel import check_finite
from widemargin.problem import Problem
from widemargin.qp.device_matrices import ManyMatrices, Matrices, OneMatrix

# Rows that tell the common point of all.
_FOR_THE_CENTRE = 512
# Bytes of a block of kernel values that is made at a time.
_BLOCK_BYTES = 1 << 30


class DeviceSquares:
    """Kernel values among the rows of classes, of one precision.

    Parameters
    ----------
    problem : Problem
        Rows on a device, or placed there.
    order : ndarray of int of shape (n,)
        Rows, class after class.
    precision : Precision
        Of the kernel values.
    """

    def __init__(self, problem: Problem, order: IndexArray, precision: Precision) -> None:
        self.device: Device = problem.rows.device
        self.problem = problem
        self.rows = problem.rows.subset(order)
        self.precision = precision
        sample = self.rows.take(np.arange(0, problem.n, -(-problem.n // _FOR_THE_CENTRE)))
        self.kernel = DeviceKernel.about(problem.kernel, self.device, sample, precision.dtype)
        self.n_kernel = 0
        self.whole: Array | None = None
        self._inside: dict[int, Array] = {}
        self._room_inside = 0.0

    @property
    def itemsize(self) -> int:
        """Bytes of a kernel value."""
        return int(np.dtype(self.precision.dtype).itemsize)

    def make_whole(self) -> None:
        """Make the values of all rows."""
        everything = slice(0, self.problem.n)
        self.whole = self._made(everything, everything)

    def keep_inside(self, room: float) -> None:
        """Keep the values inside classes, in so many bytes."""
        self._room_inside = room

    def of_machines(self, parts: Sequence[tuple[slice, ...]]) -> Matrices:
        """Return the values of machines, whose rows are in one or two parts each."""
        device = self.device
        sizes = [sum(part.stop - part.start for part in each) for each in parts]
        if self.whole is not None:
            places = np.full((len(parts), max(sizes)), self.problem.n, dtype=np.int64)
            for b, each in enumerate(parts):
                own = [np.arange(part.start, part.stop) for part in each]
                places[b, : sizes[b]] = np.concatenate(own)
            return OneMatrix(device, self.whole, device.index(places))
        if len(parts) == 1:
            return OneMatrix.of_all(device, self._of(parts[0]))
        K = device.zeros((len(parts), max(sizes), max(sizes)), self.precision.dtype)
        for b, (each, n) in enumerate(zip(parts, sizes, strict=True)):
            K[b, :n, :n] = self._of(each)
        return ManyMatrices.of_all(device, K)

    def _of(self, parts: tuple[slice, ...]) -> Array:
        """Return the values of the rows in one or two parts, one after the other."""
        if len(parts) == 1:
            return self._made(parts[0], parts[0])
        first, second = parts
        n_first = first.stop - first.start
        n = n_first + second.stop - second.start
        K = self.device.empty((n, n), self.precision.dtype)
        K[:n_first, :n_first] = self._of_class(first)
        K[n_first:, n_first:] = self._of_class(second)
        K[n_first:, :n_first] = self._made(second, first)
        K[:n_first, n_first:] = K[n_first:, :n_first].mT
        return K

    def _of_class(self, part: slice) -> Array:
        """Return the values inside a class, kept if there is room."""
        kept = self._inside.get(part.start)
        if kept is not None:
            return kept
        values = self._made(part, part)
        size = self.itemsize * values.shape[0] ** 2
        if size <= self._room_inside:
            self._room_inside -= size
            self._inside[part.start] = values
        return values

    def _made(self, rows: slice, vectors: slice) -> Array:
        """Return the values of rows with vectors."""
        xp = self.device.xp
        right = self._operand(vectors, self.kernel.rows_as_vectors)
        n, width = rows.stop - rows.start, vectors.stop - vectors.start
        K = self.device.empty((n, width), self.precision.dtype)
        most = min(_BLOCK_BYTES, self.rows.memory // 16)
        step = max(64, most // (8 * max(1, width)))
        mirrored, sums = rows == vectors, []
        for begin in range(0, n, step):
            end = min(n, begin + step)
            left = self._operand(slice(rows.start + begin, rows.start + end), self.kernel.rows)
            # Of values among the same rows, half are those of the other half.
            stop = end if mirrored else width
            self.kernel.values(left, right[:stop, :], K[begin:end, :stop])
            sums.append(xp.sum(K[begin:end, :stop], dtype=xp.float64))
            if mirrored and begin:
                K[:begin, begin:end] = K[begin:end, :begin].mT
        check_finite(self.problem.kernel, to_numpy(xp.stack(sums)))
        self.n_kernel += n * width
        return K

    def _operand(self, where: slice, of: Callable[[Array], Array]) -> Array:
        """Return the operand of rows, from some of them at a time."""
        step = rows_at_a_time(self.rows.shape[1])
        parts = [
            of(block_on_device(self.rows, self.device, slice(begin, min(where.stop, begin + step))))
            for begin in range(where.start, where.stop, step)
        ]
        return parts[0] if len(parts) == 1 else self.device.xp.concat(parts)
