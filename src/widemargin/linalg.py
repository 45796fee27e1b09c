"""Cholesky factors in threads.

SciPy's LAPACK functions keep Python's lock while they run, and NumPy's Cholesky copies its argument
twice. Here LAPACK is called through SciPy's C interface, which lets other threads run and works in
place.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack

_INT = ctypes.POINTER(ctypes.c_int)
_KIND = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


def cholesky_in_place(matrix: NDArray[Any]) -> bool:
    """Replace a symmetric matrix by its Cholesky factor, and return whether there is one.

    The factor stands in one triangle of the array, `solve_cholesky` knows which; the other
    triangle is not changed.
    """
    n = _size(matrix)
    info = ctypes.c_int()
    _lapack("potrf", matrix.dtype)(
        b"L", ctypes.byref(n), matrix.ctypes.data, ctypes.byref(n), ctypes.byref(info)
    )
    return info.value == 0


def solve_cholesky(factor: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the solution for the columns of `right`, in the factor's precision."""
    n = _size(factor)
    if right.ndim != 2 or len(right) != len(factor):
        raise ValueError(f"right of shape {right.shape} must be a matrix of {len(factor)} rows.")
    solution = np.array(right, dtype=factor.dtype, order="F")
    columns = ctypes.c_int(solution.shape[1])
    info = ctypes.c_int()
    _lapack("potrs", factor.dtype)(
        b"L",
        ctypes.byref(n),
        ctypes.byref(columns),
        factor.ctypes.data,
        ctypes.byref(n),
        solution.ctypes.data,
        ctypes.byref(n),
        ctypes.byref(info),
    )
    return solution


def _size(matrix: NDArray[Any]) -> ctypes.c_int:
    """Return the order of a matrix, of which LAPACK sees nothing but an address."""
    contiguous = matrix.flags.c_contiguous or matrix.flags.f_contiguous
    if not contiguous or matrix.shape != (len(matrix), len(matrix)):
        raise ValueError(f"A matrix of shape {matrix.shape} must be square and contiguous.")
    return ctypes.c_int(len(matrix))


@cache
def _lapack(name: str, dtype: np.dtype[Any]) -> Any:
    """Return a function of SciPy's LAPACK; a call of it lets other threads run."""
    capsule = cython_lapack.__pyx_capi__[_KIND[dtype] + name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    address = api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule))
    arguments: dict[str, list[Any]] = {
        "potrf": [ctypes.c_char_p, _INT, ctypes.c_void_p, _INT, _INT],
        "potrs": [
            ctypes.c_char_p,
            _INT,
            _INT,
            ctypes.c_void_p,
            _INT,
            ctypes.c_void_p,
            _INT,
            _INT,
        ],
    }
    return ctypes.CFUNCTYPE(None, *arguments[name])(address)
