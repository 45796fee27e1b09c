"""Kernel values among the core rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.balls.points import Points
from widemargin.kernels import Kernel
from widemargin.kernels.finite import check_finite
from widemargin.rows.base import IndexArray


class CoreMatrix:
    """Kernel values among the core rows, a matrix that grows in place.

    The whole capacity is reserved at once, but the system hands out its pages only when they are
    first used; copies to larger and larger matrices would cost more.
    """

    def __init__(self, points: Points, capacity: int, dtype: DTypeLike) -> None:
        self.points = points
        self.capacity = capacity
        self._values = np.empty((capacity, capacity), dtype=dtype)

    def extend(self, core: IndexArray, n_old: int) -> int:
        """Compute the values of the rows core[n_old:]; return how many were computed."""
        rows, new = self.points.rows, core[n_old:]
        into = self._values[n_old : len(core)]
        step = rows.vectors_at_a_time
        for begin in range(0, len(core), step):
            end = min(len(core), begin + step)
            visit = _KernelInto(self.points.kernel, rows.take(core[begin:end]), into[:, begin:end])
            for _ in rows.scan(visit, new, width=end - begin):
                pass
        if n_old:
            from widemargin.qp import _compiled

            _compiled.mirror(self._values, n_old, len(core))
        return len(new) * len(core)

    def keep(self, index: IndexArray) -> None:
        """Keep only the values among the core rows at `index`, which ascends."""
        if len(index) and index[-1] != len(index) - 1:
            from widemargin.qp import _compiled

            _compiled.compress(self._values, index)

    def values(self, size: int) -> NDArray[Any]:
        """Return the values among the first `size` core rows, the first columns of a wider array.

        Whole rows are contiguous, which compiled loops over them need to be fast.
        """
        return self._values[:size]


@dataclass(frozen=True)
class _KernelInto:
    """Visitor: k(block, vectors) written where it belongs, for rows in this process."""

    kernel: Kernel
    vectors: NDArray[Any]
    out: NDArray[Any]

    def __call__(self, block: Any, where: slice) -> None:
        values = self.out[where]
        with np.errstate(over="ignore", invalid="ignore"):
            self.kernel.block(block, self.vectors, out=values)
            check_finite(self.kernel, values)
