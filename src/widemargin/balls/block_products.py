"""Products with the kernel matrix of many rows, block by block.

The matrix is symmetric: a block above the diagonal serves two parts of a product, so that half of
the values do. The first blocks are kept, as far as there is room; the others are computed again for
every product.
"""

from __future__ import annotations

from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.kernel_between import vectors_for
from widemargin.problem import Problem
from widemargin.rows import threads_within
from widemargin.threads import ordered_map, scratch

# Rows of a block at the most, and at the least.
_MOST_ROWS = 2048
_LEAST_ROWS = 64
# One over the part of the memory budget that the blocks which are not kept may take.
_PARTS = 32

Pair = tuple[int, int]


class BlockProducts:
    """(K + 1) v for the kernel matrix K of some rows.

    Parameters
    ----------
    problem : Problem
        Rows and kernel.
    index : ndarray of int
        The rows.
    dtype : dtype
        Precision of kernel values.
    room : int
        Bytes that values may take.
    """

    def __init__(self, problem: Problem, index: IndexArray, dtype: DTypeLike, room: int) -> None:
        self.problem = problem
        self.index = index
        self.dtype = np.dtype(dtype)
        most = isqrt(problem.rows.memory // (_PARTS * self.dtype.itemsize))
        self.size = max(_LEAST_ROWS, min(_MOST_ROWS, most))
        n_blocks = -(-len(index) // self.size)
        self._pairs = [(i, j) for i in range(n_blocks) for j in range(i, n_blocks)]
        self._bytes = self.dtype.itemsize * self.size**2
        self._kept: dict[Pair, NDArray[Any] | None] = dict.fromkeys(
            self._pairs[: room // self._bytes]
        )
        self.n_kernel = 0

    def __call__(self, coef: Matrix) -> Matrix:
        """Return the products with the columns of `coef`."""
        narrow = coef.astype(self.dtype)
        total = np.zeros(coef.shape)
        total += coef.sum(axis=0)
        threads = threads_within(self.problem.rows.memory, self._bytes, self.problem.threads)

        def visit(pair: Pair) -> tuple[int, Matrix, Matrix | None]:
            n_new, values = self._values(pair)
            left, right = (self._where(each) for each in pair)
            below = None if left == right else values.T @ narrow[left]
            return n_new, values @ narrow[right], below

        answers = ordered_map(visit, self._pairs, threads)
        for (i, j), (n_new, above, below) in zip(self._pairs, answers, strict=True):
            self.n_kernel += n_new
            total[self._where(i)] += above
            if below is not None:
                total[self._where(j)] += below
        return total

    def _where(self, block: int) -> slice:
        return slice(block * self.size, min(len(self.index), (block + 1) * self.size))

    def _values(self, pair: Pair) -> tuple[int, NDArray[Any]]:
        """Return how many values were computed, and those of a block."""
        known = self._kept.get(pair)
        if known is not None:
            return 0, known
        rows, kernel = self.problem.rows, self.problem.kernel
        left, right = (self.index[self._where(each)] for each in pair)
        shape = (len(left), len(right))
        values = np.empty(shape, self.dtype) if pair in self._kept else scratch(shape, self.dtype)
        kernel.checked_block(rows.block(left), vectors_for(kernel, rows, right), values)
        if pair in self._kept:
            self._kept[pair] = values
        return values.size, values
