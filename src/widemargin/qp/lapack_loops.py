"""LAPACK inside compiled loops, at addresses that come from SciPy (``factors.lapack_address``).

An address is an argument like any other, so that Numba can keep what it compiled on disk. Nothing
here holds Python's lock.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic


@intrinsic
def _call5(typing: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
    """Call a function of five pointers at an address."""
    return _pointer_call(5)


@intrinsic
def _call8(
    typing: Any, address: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any
) -> Any:
    """Call a function of eight pointers at an address."""
    return _pointer_call(8)


def _pointer_call(count: int) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = ir.IntType(8).as_pointer()
        function = ir.FunctionType(ir.VoidType(), [pointer] * count)
        called = builder.inttoptr(arguments[0], function.as_pointer())
        builder.call(called, [builder.inttoptr(each, pointer) for each in arguments[1:]])
        return context.get_dummy_value()

    return types.void(*[types.uintp] * (count + 1)), generate


@njit(nogil=True, cache=True)
def factorise(potrf: int, matrix: Any) -> bool:
    """Replace a symmetric matrix by its Cholesky factor; return whether there is one."""
    numbers = np.array([matrix.shape[0], 0], dtype=np.int32)
    letter = np.array([76], dtype=np.uint8)
    size = numbers.ctypes.data
    _call5(  # type: ignore[call-arg]
        potrf, letter.ctypes.data, size, matrix.ctypes.data, size, size + 4
    )
    return numbers[1] == 0


@njit(nogil=True, cache=True)
def divide(potrs: int, factor: Any, right: Any) -> None:
    """Solve with a factor for one right side, or for each row of a matrix, in place."""
    m = factor.shape[0]
    numbers = np.array([m, right.size // m, 0], dtype=np.int32)
    letter = np.array([76], dtype=np.uint8)
    size = numbers.ctypes.data
    _call8(  # type: ignore[call-arg]
        potrs,
        letter.ctypes.data,
        size,
        size + 4,
        factor.ctypes.data,
        size,
        right.ctypes.data,
        size,
        size + 8,
    )
