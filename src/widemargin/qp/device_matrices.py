"""Kernel matrices of several machines on a device: one that they share, or one for each.

A machine is asked for two things: K + 1 times its coefficients, at all of its rows, and K + 1 among
a few of them, those inside the margin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.arrays import IndexArray
from widemargin.device import Array, Device
from widemargin.device.in_place import square_of, squares_of, written

# Coefficients of fewer rows than this part of all are brought together before they are multiplied.
_FEW = 0.5


@dataclass(frozen=True)
class OneMatrix:
    """Machines that share one matrix.

    Attributes
    ----------
    device : Device
        Where it is.
    values : array of shape (n, n)
        Kernel values.
    places : array of int64 of shape (b, m)
        Which of the rows each row of a machine is; n where it has none.
    """

    device: Device
    values: Array
    places: Array

    @classmethod
    def of_all(cls, device: Device, values: Array, count: int = 1) -> OneMatrix:
        """Return the matrix of machines that have all of its rows."""
        n = values.shape[0]
        row = device.xp.arange(n, dtype=device.xp.int64, device=device.where)[None, :]
        return cls(device, values, device.xp.broadcast_to(row, (count, n)))

    @property
    def shape(self) -> tuple[int, int]:
        """How many machines, and rows of the largest."""
        b, m = self.places.shape
        return int(b), int(m)

    @property
    def dtype(self) -> Any:
        """Type of the kernel values."""
        return self.values.dtype

    def times(self, columns: Array) -> Array:
        """Return K + 1 times a column of each machine, in float64."""
        device, xp, K = self.device, self.device.xp, self.values
        n, b = K.shape[0], self.shape[0]
        machine = xp.arange(b, dtype=xp.int64, device=device.where)[:, None] * (n + 1)
        where = xp.reshape(machine + self.places, (-1,))
        wide = xp.zeros((b * (n + 1),), dtype=K.dtype, device=device.where)
        short = xp.astype(columns, K.dtype, copy=False)
        wide = written(device, wide, where, xp.reshape(short, (-1,)))
        wide = xp.reshape(wide, (b, n + 1))[:, :n]
        used = xp.nonzero(xp.any(wide != 0, axis=0))[0]
        if used.shape[0] < _FEW * n:
            products = xp.matmul(xp.take(wide, used, axis=1), xp.take(K, used, axis=0))
        else:
            products = xp.matmul(wide, K)
        own = xp.clip(self.places, None, n - 1)
        found = xp.take_along_axis(products, own, axis=1)
        return xp.astype(found, xp.float64) + xp.sum(columns, axis=1, keepdims=True)

    def among(self, own: Array, index: IndexArray | None = None) -> Array:
        """Return K + 1 among rows of machines (all if index is None), from the rows' numbers."""
        xp, n = self.device.xp, self.values.shape[0]
        everything = self.places if index is None else self.machines(index).places
        places = xp.clip(xp.take_along_axis(everything, own, axis=1), None, n - 1)
        square = square_of(self.device, self.values, places)
        square += 1.0
        return square

    def machines(self, index: IndexArray) -> OneMatrix:
        """Return those of some of the machines."""
        chosen = self.device.index(index)
        return replace(self, places=self.device.xp.take(self.places, chosen, axis=0))

    def part(self, one_in: int) -> OneMatrix:
        """Return those of one row in so many, of each machine."""
        return replace(self, places=self.places[:, ::one_in])


@dataclass(frozen=True)
class ManyMatrices:
    """Machines that have a matrix each.

    Attributes
    ----------
    device : Device
        Where they are.
    values : array of shape (c, m, m)
        Kernel values.
    number : ndarray of int of shape (b,)
        The matrix of each machine.
    """

    device: Device
    values: Array
    number: IndexArray

    @classmethod
    def of_all(cls, device: Device, values: Array) -> ManyMatrices:
        """Return matrices of as many machines."""
        return cls(device, values, np.arange(values.shape[0]))

    @property
    def shape(self) -> tuple[int, int]:
        """How many machines, and rows of the largest."""
        return len(self.number), int(self.values.shape[1])

    @property
    def dtype(self) -> Any:
        """Type of the kernel values."""
        return self.values.dtype

    def times(self, columns: Array) -> Array:
        """Return K + 1 times a column of each machine, in float64."""
        xp, K = self.device.xp, self.values
        if len(self.number) < K.shape[0]:
            K = xp.take(K, self.device.index(self.number), axis=0)
        short = xp.astype(columns, K.dtype, copy=False)
        found = xp.matmul(K, short[:, :, None])[:, :, 0]
        return xp.astype(found, xp.float64) + xp.sum(columns, axis=1, keepdims=True)

    def among(self, own: Array, index: IndexArray | None = None) -> Array:
        """Return K + 1 among rows of machines (all if index is None), from the rows' numbers."""
        number = self.number if index is None else self.number[index]
        square = squares_of(self.device, self.values, self.device.index(number), own)
        square += 1.0
        return square

    def machines(self, index: IndexArray) -> ManyMatrices:
        """Return those of some of the machines."""
        number = self.number[index]
        if 2 * len(number) > self.values.shape[0]:
            return replace(self, number=number)
        values = self.device.xp.take(self.values, self.device.index(number), axis=0)
        return ManyMatrices.of_all(self.device, values)

    def part(self, one_in: int) -> ManyMatrices:
        """Return those of one row in so many, of each machine."""
        own = np.arange(0, self.values.shape[1], one_in)
        rows = np.broadcast_to(own, (len(self.number), len(own)))
        number = self.device.index(self.number)
        few = squares_of(self.device, self.values, number, self.device.index(rows))
        return ManyMatrices.of_all(self.device, few)


Matrices = OneMatrix | ManyMatrices
"""Kernel values among the rows of b machines, of at most m rows each."""
