"""Cells on a device: k-means of a sample, nearest centres, and which rows train where.

The same cells as in ``partition``. Products of rows and centres are float32, by blocks, and tell
which few centres may be the nearest; distances from these are float64, and decide. Rows are put
into the order of their cells by sorting, and no loop goes through cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray
from widemargin.cells.nearest_centers import PROBED, Groups
from widemargin.cells.partition import Partition, partition_of_sample, sample_size
from widemargin.device import Array, Device, DeviceRows, block_on_device, to_numpy
from widemargin.device.in_place import largest_places
from widemargin.loop import Deadline
from widemargin.problem import Problem
from widemargin.rows import Rows

# Bytes of a block of products, at the most.
_BYTES = 1 << 29
# Share of the memory budget for it.
_SHARE = 0.125
# Centres beyond those that are wanted which are looked at in float64.
_MORE = 2
# Rows farther out than this many units count as being there: float32 ends.
_FAR = 1e15


@dataclass(frozen=True)
class StoredRows:
    """Rows by their numbers, if these are on a device.

    Attributes
    ----------
    rows : Rows
        The rows, of the device or of this machine.
    device : Device
        The device.
    order : array of int of shape (n,) or None
        Where the rows of a device are stored; None where they are this machine's.
    """

    rows: Rows
    device: Device
    order: Array | None

    @classmethod
    def of(cls, rows: Rows) -> StoredRows:
        """Return the rows of a problem on a device."""
        if not isinstance(rows, DeviceRows):
            return cls(rows, rows.device, None)
        stored = rows.stored_at(np.arange(rows.shape[0]))
        return cls(rows, rows.device, rows.device.index(stored))

    def take(self, index: Array) -> Array:
        """Return rows in float64; the index may have any shape."""
        xp, d = self.device.xp, self.rows.shape[1]
        flat = xp.reshape(index, (-1,))
        if self.order is None:
            found = block_on_device(self.rows, self.device, to_numpy(flat))
        else:
            found = xp.take(self.rows.X, xp.take(self.order, flat), axis=0)
        return xp.astype(xp.reshape(found, (*index.shape, d)), xp.float64, copy=False)


class CentersThere:
    """Centres on a device, made ready to be compared with many rows.

    Parameters
    ----------
    device : Device
        Where.
    centers : array of float64 of shape (n_cells, n_features)
        Centres, on the device.
    """

    def __init__(self, device: Device, centers: Array) -> None:
        xp = device.xp
        self.device, self.centers = device, centers
        self.origin = xp.mean(centers, axis=0)
        apart = centers - self.origin
        unit = xp.max(xp.abs(apart))
        self.unit = xp.where(unit > 0, unit, xp.ones_like(unit))
        apart = apart / self.unit
        self.right = xp.astype(apart, xp.float32)
        self.half = xp.astype(0.5 * xp.sum(apart * apart, axis=1), xp.float32)

    def nearer(self, X: Array) -> Array:
        """Return numbers that are the larger the nearer a centre is to each row, in float32."""
        xp = self.device.xp
        rows = (xp.astype(X, xp.float64, copy=False) - self.origin) / self.unit
        rows = xp.astype(xp.clip(rows, -_FAR, _FAR), xp.float32)
        return xp.matmul(rows, self.right.mT) - self.half

    def nearest(self, X: Array, count: int, allowed: Array | None = None) -> tuple[Array, Array]:
        """Return the nearest centres of rows, the nearest first, and the distances from them.

        `allowed` says which of the centres each row may have, where these are not all.
        """
        xp, n_cells = self.device.xp, self.centers.shape[0]
        tried, nearer = min(n_cells, count + _MORE), self.nearer(X)
        if allowed is not None:
            nearer = xp.where(allowed, nearer, xp.full_like(nearer, -float("inf")))
        # In their order, so that of equally near ones the first is taken.
        cell = xp.sort(largest_places(self.device, nearer, tried), axis=1)
        rows = xp.astype(X, xp.float64, copy=False)
        squares = []
        for k in range(tried):
            apart = rows - xp.take(self.centers, cell[:, k], axis=0)
            square = xp.sum(apart * apart, axis=1)
            if allowed is not None:
                # There may be fewer than are tried.
                there = xp.take_along_axis(allowed, cell[:, k : k + 1], axis=1)[:, 0]
                square = xp.where(there, square, xp.full_like(square, float("inf")))
            squares.append(square)
        distance = xp.sqrt(xp.stack(squares, axis=1))
        order = xp.argsort(distance, axis=1, stable=True)[:, :count]
        return (
            xp.take_along_axis(cell, order, axis=1),
            xp.take_along_axis(distance, order, axis=1),
        )


def rows_at_a_time(n_cells: int, n_features: int, memory: int) -> int:
    """Return how many rows are compared with all centres at a time."""
    each = 8 * n_cells + 64 * n_features
    return max(256, int(min(_BYTES, _SHARE * memory)) // each)


def nearest_there(
    rows: Rows, centers: Array, count: int, groups: Groups | None = None
) -> tuple[Array, Array]:
    """Return the nearest centres of all rows and the distances, fewer where there are fewer.

    Parameters
    ----------
    rows : Rows
        Rows that are worked on on a device.
    centers : array of float64 of shape (n_cells, n_features)
        Centres, on the device.
    count : int
        How many are wanted.
    groups : Groups, default=None
        Groups of the centres, where there are two levels.
    """
    device, (n, n_features) = rows.device, rows.shape
    count, ready = min(count, centers.shape[0]), CentersThere(device, centers)
    looked_at = None if groups is None else _LookedAt.of(device, groups)
    step = rows_at_a_time(centers.shape[0], n_features, rows.memory)
    parts = []
    for begin in range(0, n, step):
        block = block_on_device(rows, device, slice(begin, min(n, begin + step)))
        allowed = None if looked_at is None else looked_at(block)
        parts.append(ready.nearest(block, count, allowed))
    cell, distance = (device.xp.concat(list(each), axis=0) for each in zip(*parts, strict=True))
    return cell, distance


@dataclass(frozen=True)
class _LookedAt:
    """Which centres rows are compared with, where these are in groups."""

    device: Device
    middles: CentersThere
    group: Array

    @classmethod
    def of(cls, device: Device, groups: Groups) -> _LookedAt:
        """Bring groups to a device."""
        group = np.repeat(np.arange(len(groups.middles)), np.diff(groups.offsets))
        return cls(
            device,
            CentersThere(device, device.array(groups.middles, np.float64)),
            device.index(group),
        )

    def __call__(self, X: Array) -> Array:
        """Return a line for each row, a truth value for each centre."""
        xp, n_groups = self.device.xp, self.middles.centers.shape[0]
        near, _ = self.middles.nearest(X, min(PROBED, n_groups))
        numbers = xp.arange(n_groups, dtype=near.dtype, device=self.device.where)
        found = near[:, :1] == numbers[None, :]
        for k in range(1, near.shape[1]):
            found = found | (near[:, k : k + 1] == numbers[None, :])
        return xp.take(found, self.group, axis=1)


@dataclass(frozen=True)
class _Mover:
    """A step of Lloyd's on a device, of points that lie there."""

    device: Device
    points: Array
    memory: int

    def __call__(self, centers: Any) -> tuple[Array, Array, Array]:
        device, xp = self.device, self.device.xp
        if isinstance(centers, np.ndarray):
            centers = device.array(centers, np.float64)
        n, n_cells = self.points.shape[0], centers.shape[0]
        ready, numbers = CentersThere(device, centers), xp.arange(n_cells, device=device.where)
        sums, count = xp.zeros_like(centers), xp.zeros_like(centers[:, 0])
        nearest = []
        step = rows_at_a_time(2 * n_cells, self.points.shape[1], self.memory)
        for begin in range(0, n, step):
            part = self.points[begin : min(n, begin + step), :]
            own = xp.argmax(ready.nearer(part), axis=1)
            # A product, whose sums have the same order every time.
            member = xp.astype(own[None, :] == numbers[:, None], xp.float64)
            sums = sums + xp.matmul(member, part)
            count = count + xp.sum(member, axis=1)
            nearest.append(own)
        filled = (count > 0)[:, None]
        moved = xp.where(filled, sums / xp.clip(count, 1.0, None)[:, None], centers)
        return moved, xp.concat(nearest), xp.astype(count, xp.int64)


def partition_there(rows: Rows, size: int, deadline: Deadline) -> Partition:
    """Cut rows into cells of about `size` rows, as ``partition_by_kmeans`` does here."""
    n, device = rows.shape[0], rows.device
    sample = rows.take(np.arange(min(n, sample_size(n, size))))

    def mover(points: NDArray[np.float64]) -> _Mover:
        return _Mover(device, device.array(points), rows.memory)

    return partition_of_sample(sample, n, size, rows.threads, deadline, mover)


@dataclass(frozen=True)
class MembersThere:
    """Which rows train in which cell: in the order of cells, classes and rows.

    Attributes
    ----------
    partition : Partition
        Cells that all have rows.
    chosen : ndarray of int of shape (n_cells,)
        Which of the cells that there were at first each of them is.
    row : array of int64 of shape (n_members,)
        Rows, on the device.
    begins : ndarray of int of shape (n_cells, n_classes + 1)
        Where the rows of each class in each cell begin, and where those of a cell end.
    """

    partition: Partition
    chosen: IndexArray
    row: Array
    begins: IndexArray

    @property
    def sizes(self) -> IndexArray:
        """Rows of each cell."""
        sizes: IndexArray = self.begins[:, -1] - self.begins[:, 0]
        return sizes

    @classmethod
    def of(
        cls, problem: Problem, partition: Partition, overlap: float, chosen: IndexArray | None
    ) -> MembersThere:
        """Give the rows to the cells; cells without rows go."""
        rows, device, xp = problem.rows, problem.rows.device, problem.rows.device.xp
        number = np.arange(partition.n_cells) if chosen is None else chosen
        while True:
            centers = device.array(partition.centers)
            cell, distance = nearest_there(rows, centers, 2 if overlap > 0 else 1)
            inside = _counts(device, xp.sort(cell[:, 0]), partition.n_cells)
            filled = np.flatnonzero(inside)
            if len(filled) == partition.n_cells:
                break
            # Once more: a cell without rows may have been the second nearest of some.
            partition, number = partition.subset(filled), number[filled]
        n, n_classes = problem.n, len(problem.table)
        row = xp.arange(n, dtype=xp.int64, device=device.where)
        own = cell[:, 0]
        if overlap > 0 and partition.n_cells > 1:
            outside, theirs = _just_outside(device, cell[:, 1], distance, inside, overlap)
            row, own = xp.concat([row, outside]), xp.concat([own, theirs])
        code = xp.take(device.index(problem.code), row)
        # One number for cell, class and row, and one sort.
        key = xp.sort((own * n_classes + code) * n + row)
        count = _counts(device, key // n, partition.n_cells * n_classes)
        ends = np.cumsum(count).reshape(partition.n_cells, n_classes)
        first = np.concatenate([[0], ends[:-1, -1]])
        begins = np.column_stack([first, ends])
        return cls(partition, number, key % n, begins)


def _counts(device: Device, number: Array, n_groups: int) -> IndexArray:
    """Return how often each of the first numbers occurs among sorted ones."""
    groups = device.xp.arange(n_groups + 1, dtype=number.dtype, device=device.where)
    return np.diff(to_numpy(device.xp.searchsorted(number, groups))).astype(np.intp)


def _just_outside(
    device: Device, second: Array, distance: Array, inside: IndexArray, overlap: float
) -> tuple[Array, Array]:
    """Return the rows nearest to each cell from outside it, and their cells."""
    xp, n = device.xp, second.shape[0]
    by_depth = xp.argsort(distance[:, 1] - distance[:, 0], stable=True)
    order = xp.take(by_depth, xp.argsort(xp.take(second, by_depth), stable=True))
    cell = xp.take(second, order)
    count = _counts(device, cell, len(inside))
    # As Python rounds: to the even one of two.
    wanted = np.minimum(count, np.rint(overlap * inside).astype(np.intp))
    begins = np.cumsum(count) - count
    end = xp.take(device.index(begins + wanted), cell)
    taken = xp.arange(n, dtype=xp.int64, device=device.where) < end
    return order[taken], cell[taken]
