"""From inner products to the values of radial kernels, compiled by Numba when first used.

Import this module through ``threads.Compiled``. One pass over a block of float32 products that is
still in the cache, in place; the exponential has no branches, so that the processor's vector units
are used. Nothing here holds Python's lock.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

# The kernels by number: functions of a squared distance, and that of the 1-norm.
GAUSSIAN = 0
INVERSE_SQUARED = 1
INVERSE = 2
EXPONENTIAL = 3
LAPLACIAN = 4

_LOG2_E = np.float32(1.442695040888963)
# ln 2 in two parts: n times the first is exact for the n that occur here.
_LN2_HIGH = np.float32(0.693359375)
_LN2_LOW = np.float32(-2.12194440e-4)
# exp(−87) is the least power of e that is not denormal.
_LEAST = np.float32(-87.0)


@intrinsic
def _float_of_bits(typing: Any, bits: Any) -> Any:
    """Return the float32 with these bits."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.FloatType())

    return types.float32(types.int32), generate


@intrinsic
def _pointer(typing: Any, address: Any) -> Any:
    """Return a pointer to float32 numbers at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.FloatType().as_pointer())

    return types.CPointer(types.float32)(types.uintp), generate  # type: ignore[no-untyped-call]


@njit(nogil=True, cache=True, inline="always")
def _line(values: Any, i: int) -> Any:
    """Return row i of a matrix that may be a part of a wider one, known to be contiguous.

    Of a row of any stride the compiler cannot make vector instructions.
    """
    address = values.ctypes.data + i * values.strides[0]
    return carray(_pointer(address), values.shape[1])  # type: ignore[call-arg]


@njit(nogil=True, cache=True, inline="always", fastmath={"contract"})
def _exp(x: Any) -> Any:
    """Return e^x of a float32 number that is not positive, to about one unit of its last place.

    x = n ln 2 + r with |r| ≤ ½ ln 2, and e^r is a polynomial.
    """
    x = x if x > _LEAST else _LEAST
    n = np.floor(x * _LOG2_E + np.float32(0.5))
    r = (x - n * _LN2_HIGH) - n * _LN2_LOW
    p = np.float32(1.9875691500e-4)
    p = p * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * r * r + r + np.float32(1.0)
    shifted = (np.int32(n) + np.int32(127)) << np.int32(23)
    return p * _float_of_bits(shifted)  # type: ignore[call-arg]


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def exponentials(values: Any) -> None:
    """Replace values that are not positive by their exponentials."""
    for i in range(values.shape[0]):
        line = _line(values, i)
        for j in range(len(line)):
            line[j] = _exp(line[j])


@njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})
def of_products(
    values: Any, left: Any, right: Any, lefts: Any, rights: Any, near: Any, kind: int
) -> None:
    """Replace x·z by k(x, z) of a width of one, in place.

    Parameters
    ----------
    values : ndarray of float32 of shape (n, m)
        Inner products; kernel values afterwards.
    left, right : ndarray of float32 of shape (n, d) and (m, d)
        The rows themselves.
    lefts, rights : ndarray of float32 of shape (n,) and (m,)
        Their squared norms.
    near : float32
        ‖x − z‖² / ‖x‖² up to which the distance is summed anew, for kernels of ‖x − z‖: the root
        enlarges what the products have lost of small ones.
    kind : int
        Which kernel.
    """
    zero, one, two = np.float32(0.0), np.float32(1.0), np.float32(2.0)
    for i in range(values.shape[0]):
        line = _line(values, i)
        square = lefts[i]
        if kind == GAUSSIAN:
            for j in range(len(line)):
                apart = square + rights[j] - two * line[j]
                line[j] = _exp(-(apart if apart > zero else zero))
            continue
        if kind == INVERSE_SQUARED:
            for j in range(len(line)):
                apart = square + rights[j] - two * line[j]
                line[j] = one / ((apart if apart > zero else zero) + one)
            continue
        bound = near * square
        least = bound + one
        for j in range(len(line)):
            apart = square + rights[j] - two * line[j]
            line[j] = apart
            least = apart if apart < least else least
        if least <= bound:
            for j in range(len(line)):
                if line[j] <= bound:
                    total = 0.0
                    for k in range(left.shape[1]):
                        difference = np.float64(left[i, k]) - np.float64(right[j, k])
                        total += difference * difference
                    line[j] = total
        if kind == INVERSE:
            for j in range(len(line)):
                line[j] = one / (np.sqrt(line[j] if line[j] > zero else zero) + one)
        else:
            for j in range(len(line)):
                line[j] = _exp(-np.sqrt(line[j] if line[j] > zero else zero))


@njit(nogil=True, cache=True)
def centre(rows: Any, middle: Any, unit: float, one_norm: bool, points: Any, norms: Any) -> None:
    """Write rows about a point in a unit, and their squared norms or their 1-norms.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Rows, float32 or float64.
    middle : ndarray of shape (d,)
        The point, of the same type: the difference of near numbers of one type is exact.
    unit : float
        What differences are multiplied by.
    one_norm : bool
        Which norm.
    points, norms : ndarray of float32 of shape (n, d) and (n,)
        Where to write.
    """
    n, d = rows.shape
    for i in range(n):
        total = np.float32(0.0)
        for k in range(d):
            value = np.float32((rows[i, k] - middle[k]) * unit)
            points[i, k] = value
            total += abs(value) if one_norm else value * value
        norms[i] = total
