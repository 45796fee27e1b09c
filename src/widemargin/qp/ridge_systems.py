"""Systems (K + bias + ridge) x = y on all rows of a kernel matrix, or on some of them.

A Cholesky factor in single precision takes half of the time and of the memory of one in double
precision. It solves nearly, which is what conjugate gradients in double precision want of a
preconditioner: a few steps are left. Where it does not exist or the steps do not end, a factor in
double precision takes its place.

Where few rows D are left out, the factor of all of them serves too, with M = K + bias + ridge: x is
zero on D if y there is what makes (M⁻¹ y)_D zero, which is a system in the columns of M⁻¹ that
belong to D. They are kept from one call to the next.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.factors import cholesky_in_place, solve_cholesky
from widemargin.threads import ordered_map

Solve: TypeAlias = Callable[[Matrix], Matrix]

# Rows from which a factor is tried in single precision.
_LARGE = 1500
# The part of the rows that may be left out for the factor of all of them to serve the others.
FEW = 1 / 8
# What is added to the diagonal of a matrix without a factor, for each row, over its largest value.
_LEAST_JITTER = 1e-16
_MOST_JITTER = 1e-8
# Columns that a thread solves for at a time.
_COLUMNS = 64
# Steps of conjugate gradients at the most, the residual at which they are done, over the right
# side, and the one that is good enough where they do not get further.
_STEPS = 30
_DONE = 1e-14
_GOOD = 1e-10


class RidgeSystems:
    """Systems on the rows of one kernel matrix.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Kernel values.
    ridge : ndarray of shape (n,)
        What the diagonal has beside them.
    bias : float
        What all values have beside them.
    threads : int
        Threads.
    """

    def __init__(self, K: Matrix, ridge: Vector, bias: float, threads: int) -> None:
        self.K, self.ridge, self.bias, self.threads = K, ridge, bias, threads
        self._whole: _Factor | None = None
        self._inverse = _Columns(len(K))

    def solved(self, index: IndexArray, right: Matrix) -> Matrix | None:
        """Return the solution on some rows, ascending; None if the matrix has no factor."""
        n = len(self.K)
        if n - len(index) > FEW * n:
            # Room for another factor.
            self._whole, self._inverse = None, _Columns(n)
            own: _Factor | None = None
        else:
            own = self._whole
        double = own is not None and own.double
        while True:
            if own is None:
                own = self._factor(index if n - len(index) > FEW * n else np.arange(n), double)
            if own is None:
                return None
            near = own.solve if own.size == len(index) else self._without(own, index)
            found, left = self._refined(index, near, right)
            if own.double or left <= _GOOD:
                return found
            own, double = None, True

    def of_all(self, right: Matrix) -> Matrix | None:
        """Return the solution on all rows."""
        return self.solved(np.arange(len(self.K)), right)

    def _factor(self, index: IndexArray, double: bool) -> _Factor | None:
        """Return the factor of some rows, in single precision if it is good for anything."""
        every = len(index) == len(self.K)
        values = self.K if every else self.K[np.ix_(index, index)]
        found: _Factor | None = None
        if not double and len(index) >= _LARGE:
            with np.errstate(over="ignore", under="ignore"):
                single = values.astype(np.float32) + np.float32(self.bias)
                found = _factorised(single, self.ridge[index].astype(np.float32), self.threads, 0)
        if found is None:
            values = values + self.bias
            found = _factorised(values, self.ridge[index], self.threads, _MOST_JITTER)
        if every:
            self._whole, self._inverse = found, _Columns(len(self.K))
        return found

    def _without(self, factor: _Factor, index: IndexArray) -> Solve:
        """Return what solves nearly on some rows, by the factor of all."""
        n = len(self.K)
        left_out = np.setdiff1d(np.arange(n), index)
        columns = self._inverse.of(left_out, factor.solve)
        corner = columns[left_out]

        def solve(values: Matrix) -> Matrix:
            found = np.zeros((n, values.shape[1]))
            found[index] = values
            found = factor.solve(found)
            found -= columns @ np.linalg.solve(corner, found[left_out])
            return found[index]

        return solve

    def _times(self, index: IndexArray, values: Matrix) -> Matrix:
        """Return the matrix of some rows times columns."""
        spread = values
        if len(index) < len(self.K):
            spread = np.zeros((len(self.K), values.shape[1]))
            spread[index] = values
        product = (self.K @ spread)[index] if len(index) < len(self.K) else self.K @ spread
        found: Matrix = product + self.bias * values.sum(axis=0)
        found += self.ridge[index, None] * values
        return found

    def _refined(self, index: IndexArray, near: Solve, right: Matrix) -> tuple[Matrix, float]:
        """Return the solution by preconditioned conjugate gradients, and its worst residual."""
        size = np.maximum(np.linalg.norm(right, axis=0), np.finfo(float).tiny)
        found = near(right)
        residual = right - self._times(index, found)
        best, least = found, np.linalg.norm(residual, axis=0) / size
        ahead = near(residual)
        along, slope = ahead, (residual * ahead).sum(axis=0)
        for _ in range(_STEPS):
            if least.max(initial=0.0) <= _DONE:
                break
            product = self._times(index, along)
            curve = (along * product).sum(axis=0)
            length = np.where((curve > 0) & (slope > 0), slope / np.where(curve > 0, curve, 1), 0.0)
            found = found + length * along
            residual = residual - length * product
            left = np.linalg.norm(residual, axis=0) / size
            better = left < least
            if not (left < 0.5 * least)[least > _DONE].any():
                # Rounding is all that is left, or the factor is no good.
                break
            best, least = np.where(better, found, best), np.minimum(left, least)
            ahead = near(residual)
            before, slope = slope, (residual * ahead).sum(axis=0)
            along = ahead + np.where(before > 0, slope / np.where(before > 0, before, 1), 0) * along
        return best, float(least.max(initial=0.0))


class _Factor:
    """A Cholesky factor, and how it solves."""

    def __init__(self, factor: NDArray[Any], threads: int) -> None:
        self.factor, self.threads = factor, threads
        self.size, self.double = len(factor), factor.dtype == np.float64

    def solve(self, right: Matrix) -> Matrix:
        """Return the solution for columns, in double precision."""
        parts = [right[:, k : k + _COLUMNS] for k in range(0, right.shape[1], _COLUMNS)]
        each = ordered_map(partial(self._part, self.factor), parts, self.threads)
        return np.hstack([right[:, :0], *each])

    @staticmethod
    def _part(factor: NDArray[Any], right: Matrix) -> Matrix:
        # Residuals may be too small for single precision.
        unit = np.abs(right).max(axis=0, initial=0.0)
        unit[unit == 0.0] = 1.0
        found: Matrix = unit * solve_cholesky(factor, right / unit).astype(np.float64)
        return found


def _factorised(
    matrix: NDArray[Any], ridge: NDArray[Any], threads: int, most_jitter: float
) -> _Factor | None:
    """Return the factor of a matrix plus a ridge, and perhaps a little more; None if none is."""
    diagonal = np.arange(len(matrix))
    matrix[diagonal, diagonal] += ridge
    largest = float(np.abs(matrix[diagonal, diagonal]).max(initial=1.0))
    jitter = 0.0
    while jitter <= most_jitter * len(matrix) * largest:
        # One that is not tried again need not be kept.
        factor = matrix.copy() if most_jitter else matrix
        factor[diagonal, diagonal] += jitter
        if cholesky_in_place(factor, threads):
            return _Factor(factor, threads)
        if not most_jitter:
            return None
        jitter = max(_LEAST_JITTER * len(matrix) * largest, 100.0 * jitter)
    return None


class _Columns:
    """Columns of the inverse of a matrix of n rows; those that were asked for last are kept."""

    def __init__(self, n: int) -> None:
        self.index: IndexArray = np.zeros(0, dtype=np.intp)
        self.columns: Matrix = np.zeros((n, 0))

    def of(self, index: IndexArray, solve: Solve) -> Matrix:
        """Return some columns."""
        kept = np.isin(self.index, index)
        new = np.setdiff1d(index, self.index)
        unit = np.zeros((len(self.columns), len(new)))
        unit[new, np.arange(len(new))] = 1.0
        every = np.concatenate([self.index[kept], new])
        order = np.argsort(every)
        columns = np.hstack([self.columns[:, kept], solve(unit)])
        self.index, self.columns = every[order], columns[:, order]
        return self.columns
