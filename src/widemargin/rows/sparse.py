"""Rows of a compressed sparse row matrix."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from widemargin.rows.base import BlockRows, IndexArray


class CSRRows(BlockRows):
    """Rows of a SciPy CSR matrix or array, with 32- or 64-bit indices.

    Blocks stay sparse; only the few rows that are taken as vectors become dense.
    """

    # Vectors are dense and long here, and to bring them into shape costs as much as many rows do:
    # few of them at a time, against tall blocks.
    _most_rows = 16384
    vectors_at_a_time = 256

    def _read(self, index: IndexArray | slice) -> Any:
        return self.X[index].astype(self.dtype, copy=False)

    def _row_bytes(self) -> int:
        return int(16 * self.X.nnz // max(1, self.X.shape[0]))

    def _dense(self, block: Any) -> NDArray[Any]:
        dense: NDArray[Any] = block.toarray()
        return dense
