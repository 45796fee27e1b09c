"""Rows that lie on a device, and rows of this machine that are worked on there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import IndexArray, Vector
from widemargin.device.copies import block_sent
from widemargin.device.device_keys import hashed_rows, sorted_places
from widemargin.device.namespace import Array, Device, to_numpy
from widemargin.rows import Moments, Rows, weighted_moments

# Bytes of rows in float64 that are worked on at a time.
_BLOCK_BYTES = 1 << 28


class DeviceRows(Rows):
    """Rows of a matrix on a device.

    What is asked of a few rows comes to this machine: vectors, and blocks for those who know no
    device. Those who do read `X` itself.
    """

    def __init__(self, X: Array, device: Device, memory: int, threads: int) -> None:
        super().__init__(X, memory, threads)
        self.device = device

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 stays, everything else is worked on as float64."""
        return np.dtype(np.float32 if self.X.dtype == self.device.xp.float32 else np.float64)

    @property
    def sparse(self) -> bool:
        """No."""
        return False

    def _read(self, index: IndexArray | slice) -> NDArray[Any]:
        xp, device = self.device.xp, self.device
        part = self.X[index, :] if isinstance(index, slice) else None
        if part is None:
            part = xp.take(self.X, device.index(np.asarray(index)), axis=0)
        return np.ascontiguousarray(to_numpy(part), dtype=self.dtype)

    def hashed(
        self, constants: NDArray[np.uint64], mix: np.uint64, index: IndexArray | None
    ) -> NDArray[np.uint64] | None:
        """Return hashes of rows, computed where they are if they are torch's."""
        if not self.device.is_torch or not self.whole:
            return None
        return hashed_rows(self.X, self.device, index, constants, mix)

    def sorting(self, keys: NDArray[np.uint64]) -> IndexArray:
        """Return the order of keys, one for each row."""
        return sorted_places(keys, self.device) if self.device.is_cuda else super().sorting(keys)

    def _row_bytes(self) -> int:
        return int(self.dtype.itemsize * self.X.shape[1])

    def dense(self, block: Any) -> NDArray[Any]:  # noqa: D102
        return np.array(block)


def block_on_device(rows: Rows, device: Device, index: IndexArray | slice) -> Array:
    """Return some rows on a device, in their own precision."""
    if isinstance(rows, DeviceRows):
        n = rows.shape[0]
        if isinstance(index, slice) and rows.whole:
            return rows.X[index, :]
        places = rows.stored_at(np.arange(n)[index] if isinstance(index, slice) else index)
        return device.xp.take(rows.X, device.index(places), axis=0)
    block = rows.block(index)
    return block_sent(device, block.toarray() if sparse.issparse(block) else block)


def blocks_on_device(rows: Rows, width: int) -> Iterator[tuple[Array, slice]]:
    """Yield all rows on their device, block by block, and where each block stands.

    Parameters
    ----------
    rows : Rows
        Rows that know their device.
    width : int
        Numbers in float64 that the work on a row takes.
    """
    n = rows.shape[0]
    step = max(16, min(_BLOCK_BYTES, rows.memory // 16) // (8 * max(1, width)))
    for begin in range(0, n, step):
        where = slice(begin, min(n, begin + step))
        yield block_on_device(rows, rows.device, where), where


def rows_at_a_time(n_features: int) -> int:
    """Return how many rows are worked on in float64 at a time."""
    return max(1024, _BLOCK_BYTES // (8 * max(1, n_features)))


def moments(rows: Rows, weight: Vector) -> Moments:
    """Return the weighted moments of the columns, summed where the rows are."""
    if not isinstance(rows, DeviceRows):
        return weighted_moments(rows, weight)
    device, xp = rows.device, rows.device.xp
    n, n_features = rows.shape
    origin = np.asarray(rows.take(np.arange(1))[0], dtype=np.float64)
    about, step = device.array(origin), rows_at_a_time(n_features)
    sums = device.zeros((2, n_features), np.float64)
    for begin in range(0, n, step):
        where = slice(begin, min(n, begin + step))
        centred = xp.astype(block_on_device(rows, device, where), xp.float64) - about
        heavy = device.array(weight[where])[None, :]
        sums[0, :] += xp.matmul(heavy, centred)[0, :]
        sums[1, :] += xp.matmul(heavy, centred * centred)[0, :]
    total = float(weight.sum())
    first, second = to_numpy(sums) / total
    return Moments(total, origin + first, np.maximum(0.0, second - first**2))
