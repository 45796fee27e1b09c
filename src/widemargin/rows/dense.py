"""Rows in an array: in memory, or mapped from a file."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.rows.base import BlockRows, IndexArray


class ArrayRows(BlockRows):
    """Rows of a two-dimensional NumPy array of any real type and order.

    A memory-mapped file is read block by block: it is never copied or converted whole.
    """

    def _read(self, index: IndexArray | slice) -> NDArray[Any]:
        return np.asarray(self.X[index], dtype=self.dtype, order="C")

    def _row_bytes(self) -> int:
        return int(self.dtype.itemsize * self.X.shape[1])

    def _dense(self, block: Any) -> NDArray[Any]:
        return np.array(block)
