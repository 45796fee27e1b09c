"""Division by K + 1 + R in the span of some rows, the landmarks Z.

By Woodbury's formula, with Q = K_AZ + 1 and W = K_ZZ + 1,

    (Q W⁻¹ Qᵀ + R)⁻¹ = R⁻¹ − R⁻¹ Q (W + Qᵀ R⁻¹ Q)⁻¹ Qᵀ R⁻¹.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.factors import cholesky_in_place, solve_cholesky
from widemargin.kernel_between import kernel_values
from widemargin.problem import Problem
from widemargin.rows import rows_per_block, threads_within
from widemargin.threads import ordered_map

# Rows that are set against the landmarks at a time, at the most.
_CHUNK = 2048
# Columns of a matrix that a thread works on.
_COLUMNS = 256
# What rounding may make negative, as a share of the mean diagonal.
_JITTER = 1e-10


class Preconditioner:
    """Divide by the systems of several problems.

    Parameters
    ----------
    problem : Problem
        Rows and kernel.
    active : ndarray of int of shape (m,)
        The rows A.
    mask : ndarray of bool of shape (m, n_problems)
        Which of them take part in which problem.
    ridge : ndarray of shape (m, 1)
        The diagonal of R.
    landmarks : ndarray of shape (t, n_features)
        The vectors Z: the first t of all rows.
    dtype : dtype
        Precision of kernel values that are kept.
    room : int
        Bytes that they may take; where that is too little, they are computed for every division.
    """

    def __init__(
        self,
        problem: Problem,
        active: IndexArray,
        mask: NDArray[np.bool_],
        ridge: Matrix,
        landmarks: NDArray[np.float64],
        dtype: DTypeLike,
        room: int,
    ) -> None:
        self.problem = problem
        self.active = active
        self.mask = mask
        self.ridge = ridge
        self.landmarks = landmarks
        self.dtype = np.dtype(dtype)
        self.n_kernel = 0
        size, memory = len(landmarks), problem.rows.memory
        self.chunk = rows_per_block(memory, 8 * size, _CHUNK, most_bytes=memory)
        self.threads = threads_within(memory, 8 * size * self.chunk, problem.threads)
        keeps = self.dtype.itemsize * len(active) * size <= room
        self._kept: dict[int, NDArray[Any]] | None = {} if keeps else None
        self._factors = self._factorised()

    def __call__(self, residual: Matrix) -> Matrix:
        """Return the quotients of columns, one for each problem."""
        scaled = residual / self.ridge
        if self._factors is None:
            return scaled
        begins = range(0, len(self.active), self.chunk)

        def pull(begin: int) -> tuple[int, NDArray[Any]]:
            n_new, values = self._values(begin)
            return n_new, values.T @ scaled[begin : begin + self.chunk].astype(values.dtype)

        pulled = np.zeros((len(self.landmarks), residual.shape[1]))
        for n_new, part in ordered_map(pull, begins, self.threads):
            self.n_kernel += n_new
            pulled += part
        columns = zip(self._factors, pulled.T, strict=True)
        coef = np.stack([solve_cholesky(each, b[:, None])[:, 0] for each, b in columns], axis=1)
        quotient = np.empty_like(scaled)

        def push(begin: int) -> int:
            where = slice(begin, begin + self.chunk)
            n_new, values = self._values(begin)
            back = np.where(self.mask[where], values @ coef.astype(values.dtype), 0.0)
            quotient[where] = scaled[where] - back / self.ridge[where]
            return n_new

        self.n_kernel += sum(ordered_map(push, begins, self.threads))
        return quotient

    def _values(self, begin: int) -> tuple[int, NDArray[Any]]:
        """Return how many values were computed, and K + 1 of some rows and the landmarks."""
        if self._kept is not None and begin in self._kept:
            return 0, self._kept[begin]
        index = self.active[begin : begin + self.chunk]
        values = np.empty((len(index), len(self.landmarks)), dtype=self.dtype)
        rows, step = self.problem.rows, self.problem.rows.vectors_at_a_time
        block = rows.block(index)
        for first in range(0, len(self.landmarks), step):
            some = slice(first, first + step)
            self.problem.kernel.checked_block(block, self.landmarks[some], values[:, some])
        values += 1.0
        if self._kept is not None:
            self._kept[begin] = values
        return values.size, values

    def _factorised(self) -> list[Matrix] | None:
        """Return the factors of W + Qᵀ R⁻¹ Q for all problems, or None if they are not definite."""
        sums = self._sums()
        for matrix in sums:
            matrix[np.diag_indices(len(matrix))] += _JITTER * np.trace(matrix) / len(matrix)
            if not cholesky_in_place(matrix, self.problem.threads):
                return None
        return sums

    def _sums(self) -> list[Matrix]:
        problem, size = self.problem, len(self.landmarks)
        gram = np.empty((size, size))
        kernel_values(problem.kernel, problem.rows, self.landmarks, gram, np.arange(size))
        sums = [gram + 1.0 for _ in range(self.mask.shape[1])]
        blocks = [slice(each, each + _COLUMNS) for each in range(0, size, _COLUMNS)]
        for p, rows in self._weighted_rows():

            def add(some: slice, p: int = p, rows: Matrix = rows) -> None:
                sums[p][some.start :, some] += rows[:, some.start :].T @ rows[:, some]

            for _ in ordered_map(add, blocks, self.problem.threads):
                pass
        for matrix in sums:
            for some in blocks:
                matrix[some, some.stop :] = matrix[some.stop :, some].T
        return sums

    def _weighted_rows(self) -> Iterator[tuple[int, Matrix]]:
        """Yield R^{-1/2} Q of the rows of each problem, chunk by chunk, in float64."""
        for begin in range(0, len(self.active), self.chunk):
            where = slice(begin, begin + self.chunk)
            n_new, values = self._values(begin)
            self.n_kernel += n_new
            for p, mask in enumerate(self.mask[where].T):
                weight = np.where(mask, self.ridge[where, 0] ** -0.5, 0.0)
                yield p, values * weight[:, None]
