"""Rows on a device as a few features, for Newton's method.

Products with all rows and sums over them are made there; scores of the rows, which are a number for
each row and problem, come and go.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.device import Array, DeviceKernel, block_on_device, to_numpy
from widemargin.kernels import Kernel
from widemargin.qp.newton import Features
from widemargin.rows import Rows

# Share of the device's memory for the features of all rows; those that do not fit are made again.
_FEATURES_SHARE = 0.5
# Bytes of what is made of a block of rows.
_BLOCK_BYTES = 1 << 29


class DeviceFeatures(Features):
    """The features Tᵀψ_z(x) + c of rows that are worked on on a device.

    Parameters
    ----------
    rows : Rows
        The rows x.
    kernel : Kernel
        k, of ψ_z(x) = (k(z_u, x))_u.
    Z : ndarray of shape (t, d)
        The vectors z.
    root : ndarray of shape (t, size)
        T.
    constant : ndarray of shape (size,)
        c.
    """

    def __init__(
        self, rows: Rows, kernel: Kernel, Z: Matrix, root: Matrix, constant: Vector
    ) -> None:
        self.rows, self.device = rows, rows.device
        self.kernel = DeviceKernel.about(kernel, self.device, Z, np.float64)
        self.vectors = self.kernel.vectors(Z)
        self.root, self.constant = self.device.array(root), self.device.array(constant)
        self.shape = (rows.shape[0], len(constant))
        most = min(_BLOCK_BYTES, rows.memory // 16)
        self.chunk = max(256, most // (8 * (2 * len(Z) + 2 * len(constant) + Z.shape[1])))
        self.kept: Array | None = None
        n, size = self.shape
        if 8 * n * size <= _FEATURES_SHARE * rows.memory:
            kept = self.device.empty(self.shape, np.float64)
            for first in range(0, n, self.chunk):
                where = slice(first, min(n, first + self.chunk))
                kept[where, :] = self.block(where)
            self.kept = kept

    def block(self, where: slice | IndexArray) -> Array:
        """Return the features of some rows."""
        xp = self.device.xp
        if self.kept is not None:
            if isinstance(where, slice):
                return self.kept[where, :]
            return xp.take(self.kept, self.device.index(where), axis=0)
        operand = self.kernel.rows(block_on_device(self.rows, self.device, where))
        return xp.matmul(self.kernel.values(operand, self.vectors), self.root) + self.constant

    def some(self, block: Array, index: IndexArray) -> Array:
        """Return some rows of a block."""
        return self.device.xp.take(block, self.device.index(index), axis=0)

    def here(self, index: IndexArray) -> Matrix:
        """Return the features of some rows, on this machine."""
        return np.array(to_numpy(self.block(index)))

    def whole(self) -> Matrix | None:
        """Return the features of all rows, on this machine; None where they are not kept."""
        return None if self.kept is None else np.array(to_numpy(self.kept))

    def times(self, block: Array, X: Matrix) -> Matrix:
        """Return the products of a block with points, a column for each row of X."""
        return to_numpy(self.device.xp.matmul(block, self.device.array(X).mT))

    def pulled(self, block: Array, weight: Matrix) -> Matrix:
        """Return weighted sums of the rows of a block, a row for each row of weights."""
        return to_numpy(self.device.xp.matmul(self.device.array(weight), block))

    def curved(self, block: Array, weight: Vector) -> Any:
        """Return Σ weight g gᵀ over a block."""
        rows = block * self.device.array(np.sqrt(weight))[:, None]
        return to_numpy(self.device.xp.matmul(rows.mT, rows))
