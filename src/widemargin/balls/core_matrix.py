"""Kernel values among the core rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.arrays import IndexArray
from widemargin.kernel_between import kernel_values
from widemargin.problem import Problem
from widemargin.threads import Compiled

loops = Compiled("widemargin.qp.margin_loops")
copies = Compiled("widemargin.kernels.mirror_loops")


class CoreMatrix:
    """Kernel values among the core rows, a matrix that grows in place.

    The whole capacity is reserved at once, but the system hands out its pages only when they are
    first used; copies to larger and larger matrices would cost more.
    """

    def __init__(self, problem: Problem, capacity: int, dtype: DTypeLike) -> None:
        self.problem = problem
        self.capacity = capacity
        self._values = np.empty((capacity, capacity), dtype=dtype)

    def extend(self, core: IndexArray, n_old: int) -> int:
        """Compute the values of the rows core[n_old:]; return how many were computed."""
        problem, new = self.problem, core[n_old:]
        into = self._values[n_old : len(core), : len(core)]
        kernel_values(problem.kernel, problem.rows, problem.rows.take(core), into, new)
        if n_old:
            copies.mirror(self._values, n_old, len(core))
        return len(new) * len(core)

    def keep(self, index: IndexArray) -> None:
        """Keep only the values among the core rows at `index`, which ascends."""
        if len(index) and index[-1] != len(index) - 1:
            loops.compress(self._values, index)

    def values(self, size: int) -> NDArray[Any]:
        """Return the values among the first `size` core rows, the first columns of a wider array.

        Whole rows are contiguous, which compiled loops over them need to be fast.
        """
        return self._values[:size]
