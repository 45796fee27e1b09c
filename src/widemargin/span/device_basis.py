"""The span of a few vectors whose matrices lie on a device.

The algebra of ``basis``, with the same answers: kernel values, factors and products of matrices as
large as the span are made there, and only columns of coefficients come and go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import lapack

from widemargin.arrays import IndexArray, Matrix
from widemargin.device import Array, Device, DeviceKernel, to_numpy
from widemargin.device.in_place import cholesky, choleskys, solve_lower, solve_upper
from widemargin.kernels import Kernel
from widemargin.kernels.kernel import check_diagonal, check_finite
from widemargin.rows import Rows
from widemargin.span.basis import Basis, Vectors, joined

# New vectors of a GPU whose pivots are found together, on this machine: there, every pivot would
# wait for several launches.
_AT_A_TIME = 512
# Bytes of matrices that are factorised, or solved with, at a time.
_STACK_BYTES = 1 << 31


@dataclass(frozen=True)
class _Matrices:
    """K_z and its factor on a device."""

    device: Device
    gram: Array
    factor: Array


@dataclass(frozen=True)
class DeviceBasis(Basis):
    """Vectors whose images are linearly independent, and their matrices on a device.

    Attributes
    ----------
    there : _Matrices
        K_z and L on the device.
    at_a_time : int
        New vectors that join together where some lie in the span of others.
    """

    there: _Matrices
    at_a_time: int

    @classmethod
    def on(cls, device: Device, at_a_time: int | None = None) -> DeviceBasis:
        """Return the basis of no vectors."""
        nothing = device.zeros((0, 0), np.float64)
        if at_a_time is None:
            at_a_time = _AT_A_TIME if device.is_cuda else 1 << 62
        vectors = Vectors(np.empty((0, 0)), np.empty(0, dtype=np.intp))
        unknown = np.empty((0, 0))
        there = _Matrices(device, nothing, nothing)
        return cls(vectors, unknown, unknown, there, at_a_time)

    @property
    def size(self) -> int:
        """Number of vectors, the dimension of the span."""
        return int(self.there.factor.shape[0])

    @cached_property
    def gram_here(self) -> Matrix:
        """K_z, copied to this machine."""
        return to_numpy(self.there.gram)

    def extended(self, kernel: Kernel, new: Vectors, tolerance: float, rows: Rows) -> DeviceBasis:
        """Return the basis with those of `new` that lie outside its span; see `Basis`."""
        device, xp, old = self.there.device, self.there.device.xp, self.size
        if not len(new):
            return self
        values = DeviceKernel.about(kernel, device, new.values, np.float64)
        operand = values.rows(device.array(np.asarray(new.values, dtype=np.float64)))
        square = values.values(operand, values.vectors(new.values))
        if kernel.constant_diagonal is not None:
            # Exactly, or rounding would decide which of equal ones is the first pivot.
            square = _with_diagonal(device, square, kernel.constant_diagonal)
        diagonal = to_numpy(xp.linalg.diagonal(square))
        check_finite(kernel, to_numpy(xp.sum(square, axis=0)))
        check_diagonal(kernel, diagonal)
        largest = float(diagonal.max(initial=0.0))
        remainder = square
        cross = device.zeros((len(new), 0), np.float64)
        below = cross
        if old:
            largest = max(largest, float(xp.max(xp.linalg.diagonal(self.there.gram))))
            cross = values.values(operand, values.vectors(self.vectors.values))
            below = solve_lower(device, self.there.factor, cross.mT).mT
            remainder = square - xp.matmul(below, below.mT)
        else:
            remainder = square * 1.0
        # What rounding leaves of a vector in the span is no vector.
        least = largest * max(tolerance, (old + len(new)) * float(np.finfo(float).eps))
        pivots = self._pivots(remainder, least)
        if pivots is None:
            basis = self
            for begin in range(0, len(new), self.at_a_time):
                part = new[np.arange(begin, min(begin + self.at_a_time, len(new)))]
                basis = basis.extended(kernel, part, tolerance, rows)
            return basis
        chosen, corner = pivots
        index = device.index(chosen)
        below, cross = xp.take(below, index, axis=0), xp.take(cross, index, axis=0)
        square = xp.take(xp.take(square, index, axis=0), index, axis=1)
        empty = device.zeros((old, len(chosen)), np.float64)
        factor = _blocks(xp, self.there.factor, empty, below, corner)
        gram = _blocks(xp, self.there.gram, cross.mT, cross, square)
        vectors = joined(self.vectors, new[chosen])
        return replace(self, vectors=vectors, there=_Matrices(device, gram, factor))

    def _pivots(self, matrix: Array, least: float) -> tuple[IndexArray, Array] | None:
        """Return the pivots of a matrix, and the factor of their rows; None if it is too large."""
        device, xp = self.there.device, self.there.device.xp
        if matrix.shape[0] > self.at_a_time:
            # Where no row lies in the span of those before it, there is nothing to choose.
            factor = cholesky(device, matrix * 1.0)
            if factor is not None and float(xp.min(xp.linalg.diagonal(factor))) ** 2 > least:
                return np.arange(matrix.shape[0]), factor
            return None
        packed, pivots, rank, _ = lapack.dpstrf(to_numpy(matrix), lower=1, tol=least, overwrite_a=0)
        if rank and not packed[0, 0] ** 2 > least:
            rank = 0
        chosen = np.asarray(pivots[:rank] - 1, dtype=np.intp)
        return chosen, device.array(np.tril(packed[:rank, :rank]))

    # Columns of this machine.

    def metric(self, beta: Matrix) -> Matrix:
        """Return K_z β of coefficients whose last row, the bias, stays as it is."""
        device = self.there.device
        product = device.xp.matmul(self.there.gram, device.array(beta[:-1]))
        return np.vstack([to_numpy(product), beta[-1]])

    def whitened(self, products: Matrix) -> Matrix:
        """Return L⁻¹ b for the columns b."""
        device = self.there.device
        return to_numpy(solve_lower(device, self.there.factor, device.array(products)))

    def coefficients(self, coordinates: Matrix) -> Matrix:
        """Return L⁻ᵀ w for the columns w."""
        device = self.there.device
        return to_numpy(solve_upper(device, self.there.factor, device.array(coordinates)))

    # Newton matrices.

    def factorised(self, matrix: Array, dtype: DTypeLike, threads: int = 1) -> Array:
        """Return the Cholesky factor of K_z plus a matrix, which is overwritten."""
        device, r = self.there.device, self.size
        matrix[:r, :r] += self.there.gram
        matrix[r, r] += 1.0
        return self._factor_of(matrix, cholesky(device, matrix), dtype)

    def _factor_of(self, matrix: Array, factor: Array | None, dtype: DTypeLike) -> Array:
        """Return the factor of a matrix, or of one near it that has a factor."""
        device, xp, r = self.there.device, self.there.device.xp, self.size
        if factor is not None:
            return xp.astype(factor, device.dtype(dtype), copy=False)
        largest, jitter = float(xp.max(xp.linalg.diagonal(matrix))), 0.0
        while factor is None and jitter < largest:
            # Rounding, at extreme weights. A preconditioner may be changed at will.
            jitter = max(10.0 * jitter, 1e-14 * largest)
            eye = xp.eye(r + 1, dtype=xp.float64, device=device.where)
            factor = cholesky(device, matrix + jitter * eye)
        if factor is None:
            factor = xp.eye(r + 1, dtype=xp.float64, device=device.where)
        return xp.astype(factor, device.dtype(dtype), copy=False)

    def factorised_each(
        self, matrices: Iterable[Matrix], dtype: DTypeLike, threads: int = 1
    ) -> list[Any]:
        """Return the Cholesky factors of K_z plus matrices, many at a time."""
        device, xp, r = self.there.device, self.there.device.xp, self.size
        factors: list[Array] = []
        for some in _at_a_time(matrices, 8 * (r + 1) ** 2):
            if len(some) == 1:
                factors.append(self.factorised(some[0], dtype))
                continue
            stack = xp.stack(some)
            stack[:, :r, :r] += self.there.gram
            stack[:, r, r] += 1.0
            found = choleskys(device, stack)
            factors += [
                self._factor_of(stack[j, :, :], factor, dtype) for j, factor in enumerate(found)
            ]
        return factors

    def solved_each(self, factors: list[Any], right: Matrix, threads: int) -> Matrix:
        """Return the solution for each column of `right` by its own factor; they may be shared.

        Columns go there and come back together.
        """
        device, xp = self.there.device, self.there.device.xp
        columns = device.array(right)
        alike: dict[int, list[int]] = {}
        for column, factor in enumerate(factors):
            alike.setdefault(id(factor), []).append(column)
        parts, order = [], []
        for some in _at_a_time(alike.values(), 8 * right.shape[0] ** 2):
            # As many columns of each factor as any has: zeros fill up the others.
            width = max(len(each) for each in some)
            padded = np.zeros((len(some), width), dtype=np.intp)
            for each, chosen in zip(padded, some, strict=True):
                each[: len(chosen)] = chosen
            stack = xp.stack([factors[each[0]] for each in some])
            taken = xp.take(columns, device.index(padded.ravel()), axis=1)
            taken = xp.reshape(taken, (right.shape[0], *padded.shape))
            sides = xp.astype(xp.permute_dims(taken, (1, 0, 2)), stack.dtype, copy=False)
            found = solve_upper(device, stack, solve_lower(device, stack, sides))
            wanted = [j * width + k for j, each in enumerate(some) for k in range(len(each))]
            flat = xp.reshape(xp.permute_dims(found, (1, 0, 2)), (right.shape[0], -1))
            parts.append(xp.take(flat, device.index(np.array(wanted)), axis=1))
            order += [column for each in some for column in each]
        answer = np.empty_like(right)
        answer[:, order] = to_numpy(xp.concat(parts, axis=1))
        return answer

    def solved(self, factor: Array, right: Matrix) -> Matrix:
        """Return the solution for the columns of `right`, in the factor's precision."""
        device = self.there.device
        columns = device.xp.astype(device.array(right), factor.dtype, copy=False)
        found = solve_upper(device, factor, solve_lower(device, factor, columns))
        return to_numpy(found)


def no_vectors(device: Device | None) -> Basis:
    """Return the basis of no vectors, here or on a device."""
    return Basis.empty() if device is None else DeviceBasis.on(device)


def _at_a_time(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield lists of items whose matrices, of some bytes each, are stacked at a time."""
    return _batched(items, max(1, _STACK_BYTES // size))


def _batched(items: Iterable[Any], count: int) -> Iterator[list[Any]]:
    remaining = iter(items)
    while some := list(islice(remaining, count)):
        yield some


def _with_diagonal(device: Device, matrix: Array, value: float) -> Array:
    xp, n = device.xp, matrix.shape[0]
    numbers = xp.arange(n, device=device.where)
    return xp.where(numbers[:, None] == numbers[None, :], value, matrix)


def _blocks(xp: Any, first: Array, right: Array, below: Array, corner: Array) -> Array:
    """Return a matrix from its four parts."""
    upper, lower = xp.concat([first, right], axis=1), xp.concat([below, corner], axis=1)
    return xp.concat([upper, lower], axis=0)
