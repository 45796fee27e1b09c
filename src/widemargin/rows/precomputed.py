"""Rows of a kernel matrix that the user computed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.rows.base import IndexArray
from widemargin.rows.dense import ArrayRows


class PrecomputedRows(ArrayRows):
    """Rows of a square kernel matrix.

    A row taken as a vector is its column number: the kernel "precomputed" looks values up there.
    """

    def take(self, index: IndexArray) -> NDArray[Any]:
        """Return the column numbers of the rows at `index`, one a row."""
        column = index if self._order is None else self._order[index]
        return np.asarray(column, dtype=np.float64)[:, None]
