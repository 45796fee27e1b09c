"""The decision function of cells on a device: rows in the order of their cells, many cells at once.

A task is a cell with some of the rows that it answers. Tasks of about as many rows and vectors are
filled up to the largest of them, and answered by one batch of kernel values and products.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from widemargin.arrays import IndexArray
from widemargin.cells.cell_decision import CellMachines, blend_weights
from widemargin.cells.device_partition import StoredRows, nearest_there
from widemargin.device import Array, kernel_with, to_numpy
from widemargin.device.in_place import written
from widemargin.kernels import Kernel
from widemargin.kernels.kernel import check_finite
from widemargin.rows import Rows

# Rows of a task, at the most: a power of two.
_MOST_ROWS = 512
# Bytes of a batch, at the most,
_BYTES = 1 << 28
# and as a share of the memory budget.
_SHARE = 0.0625
# Tasks of a batch, at the most.
_TASKS = 4096


@dataclass(frozen=True)
class _Tasks:
    """Tasks: where their rows begin and how many there are, and their cells."""

    cell: IndexArray
    begin: IndexArray
    count: IndexArray

    @classmethod
    def of(cls, begins: IndexArray) -> _Tasks:
        """Return tasks for cells whose rows begin at places."""
        count = np.diff(begins)
        parts = -(-count // _MOST_ROWS)
        cell = np.repeat(np.arange(len(count)), parts)
        before = np.repeat(np.cumsum(parts) - parts, parts)
        begin = begins[cell] + _MOST_ROWS * (np.arange(len(cell)) - before)
        return cls(cell, begin, np.minimum(_MOST_ROWS, begins[cell + 1] - begin))

    def batches(self, n_vectors: IndexArray, width: int, most: int) -> list[_Tasks]:
        """Return them in groups of about as many rows and vectors."""
        if not len(self.cell):
            return []
        tall = np.frexp(self.count - 0.5)[1]
        vectors = n_vectors[self.cell]
        order = np.lexsort((-vectors, -tall))
        groups, begin = [], 0
        edges = np.append(np.flatnonzero(np.diff(tall[order])) + 1, len(order))
        while begin < len(order):
            first = order[begin]
            m, v = int(2 ** tall[first]), int(vectors[first])
            count = max(1, min(_TASKS, most // (8 * (m * (v + width) + v * width + 1))))
            end = min(begin + count, int(edges[np.searchsorted(edges, begin, side="right")]))
            some = order[begin:end]
            groups.append(_Tasks(self.cell[some], self.begin[some], self.count[some]))
            begin = end
        return groups


def values_there(machines: CellMachines, rows: Rows) -> Array:
    """Return f of all rows, of shape (n, n_problems), in float64 on the rows' device.

    Parameters
    ----------
    machines : CellMachines
        The machines, of one kernel.
    rows : Rows
        Rows that are worked on on a device.
    """
    assert isinstance(machines.kernel, Kernel)
    device, xp, n = rows.device, rows.device.xp, rows.shape[0]
    n_cells, P = machines.intercept.shape
    kernel, vectors = kernel_with(machines.kernel, device, machines.vectors)
    centers = device.array(machines.partition.centers)
    wanted, groups = 3 if machines.blend > 0 else 1, machines.partition.groups
    cell, distance = nearest_there(rows, centers, wanted, groups)
    weight = blend_weights(distance, machines.blend, xp)
    each = weight.shape[1]
    # A number for each answer, those that are not asked for behind all cells.
    asked = xp.reshape(xp.where(weight > 0, cell[:, :each], n_cells), (-1,))
    key = xp.sort(asked * (n * each) + xp.arange(n * each, dtype=xp.int64, device=device.where))
    edges = xp.arange(n_cells + 1, dtype=xp.int64, device=device.where) * (n * each)
    begins = to_numpy(xp.searchsorted(key, edges)).astype(np.intp)
    answer = key % (n * each)
    share = xp.reshape(weight, (-1,))
    coef = device.array(machines.coef, np.float64)
    bias = device.array(machines.intercept, np.float64)
    stored = StoredRows.of(rows)
    # The last line is for what only fills a batch up.
    values = device.zeros((n * each + 1, P), np.float64)
    count = np.diff(machines.offsets)
    width = vectors.shape[1] if vectors.ndim > 1 else 1
    most = int(min(_BYTES, _SHARE * rows.memory))
    for task in _Tasks.of(begins).batches(count, width + P, most):
        b, own = len(task.cell), device.index(task.cell)
        j = xp.arange(int(task.count.max()), dtype=xp.int64, device=device.where)[None, :]
        there = j < device.index(task.count)[:, None]
        place = xp.where(there, device.index(task.begin)[:, None] + j, 0)
        which = xp.take(answer, xp.reshape(place, (-1,)))
        found = xp.take(bias, own, axis=0)[:, None, :]
        n_vectors = int(count[task.cell].max())
        if n_vectors:
            left = kernel.rows(stored.take(which // each))
            k = xp.arange(n_vectors, dtype=xp.int64, device=device.where)[None, :]
            mine = k < device.index(count[task.cell])[:, None]
            vector = xp.where(mine, device.index(machines.offsets[task.cell])[:, None] + k, 0)
            flat = xp.reshape(vector, (-1,))
            right = xp.reshape(xp.take(vectors, flat, axis=0), (b, n_vectors, -1))
            theirs = xp.reshape(xp.take(coef, flat, axis=0), (b, n_vectors, P))
            theirs = xp.where(mine[:, :, None], theirs, xp.zeros_like(theirs))
            block = kernel.values(xp.reshape(left, (b, j.shape[1], -1)), right)
            found = found + xp.matmul(block, theirs)
        weights = xp.reshape(xp.take(share, which), (*there.shape, 1))
        found = xp.reshape(weights * found, (-1, P))
        where = xp.where(there, xp.reshape(which, there.shape), n * each)
        values = written(device, values, xp.reshape(where, (-1,)), found)
    total = xp.sum(xp.reshape(values[: n * each, :], (n, each, P)), axis=1)
    check_finite(machines.kernel, to_numpy(xp.sum(total, axis=0)))
    return total
