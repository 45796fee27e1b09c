"""Cholesky factors in place, of matrices large and small, in threads that do not change a bit.

SciPy's LAPACK functions keep Python's lock while they run, and NumPy's Cholesky copies its argument
twice. Here LAPACK and BLAS are called through SciPy's C interfaces, which let other threads run and
work in place.

A large matrix is cut into blocks of columns. With the factor of a diagonal block, the blocks below
it are divided and those to the right are updated, each by one call in some thread: what a block
goes through does not depend on how many threads there are.
"""

from __future__ import annotations

import ctypes
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg import cython_blas, cython_lapack

from widemargin.threads import ordered_map

_KIND = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}
# Rows from which a matrix is factorised by blocks, and columns of a block.
_LARGE = 1024
_BLOCK = 256


def cholesky_in_place(matrix: NDArray[Any], threads: int = 1) -> bool:
    """Replace a symmetric matrix by its Cholesky factor, and return whether there is one.

    The factor stands in one triangle of the array, `solve_cholesky` knows which; the other
    triangle is not changed.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        The matrix, contiguous.
    threads : int, default=1
        Threads that work on a large one.
    """
    _size(matrix)
    if len(matrix) < _LARGE:
        return _factorised(matrix, 0, len(matrix))
    return _Blocks(matrix, threads).factorised()


def _factorised(matrix: NDArray[Any], begin: int, end: int) -> bool:
    """Factorise a diagonal block."""
    size, info, n = ctypes.c_int(end - begin), ctypes.c_int(), _size(matrix)
    where = _address(matrix, begin, begin)
    _function("potrf", matrix.dtype)(
        b"L", ctypes.byref(size), where, ctypes.byref(n), ctypes.byref(info)
    )
    return info.value == 0


def _address(matrix: NDArray[Any], row: int, column: int) -> int:
    """Return where a value is, as LAPACK counts: down the columns."""
    address: int = matrix.ctypes.data
    return address + matrix.itemsize * (row + column * len(matrix))


class _Blocks:
    """A large matrix in blocks of columns.

    Parameters
    ----------
    matrix : ndarray of shape (n, n)
        The matrix.
    threads : int
        Threads.
    """

    def __init__(self, matrix: NDArray[Any], threads: int) -> None:
        self.matrix, self.threads = matrix, threads
        n = len(matrix)
        self.begins = list(range(0, n, _BLOCK))
        self.ends = [min(n, begin + _BLOCK) for begin in self.begins]
        kind = ctypes.c_float if matrix.dtype == np.float32 else ctypes.c_double
        self.one, self.minus = kind(1.0), kind(-1.0)

    def factorised(self) -> bool:
        """Factorise all blocks, from the left to the right."""
        every = range(len(self.begins))
        for k in every:
            if not _factorised(self.matrix, self.begins[k], self.ends[k]):
                return False
            below = every[k + 1 :]
            for work in (self._divide, self._update):
                for _ in ordered_map(partial(work, k), below, self.threads):
                    pass
        return True

    def _divide(self, k: int, i: int) -> None:
        """L_ik = A_ik L_kk⁻ᵀ."""
        rows, columns = self._length(i), self._length(k)
        n = _size(self.matrix)
        _function("trsm", self.matrix.dtype)(
            *(b"R", b"L", b"T", b"N", ctypes.byref(rows), ctypes.byref(columns)),
            *(ctypes.byref(self.one), self._at(k, k), ctypes.byref(n)),
            *(self._at(i, k), ctypes.byref(n)),
        )

    def _update(self, k: int, j: int) -> None:
        """A_ij −= L_ik L_jkᵀ, the blocks i ≥ j of a column; of the diagonal one a triangle."""
        columns, inner, n = self._length(j), self._length(k), _size(self.matrix)
        _function("syrk", self.matrix.dtype)(
            *(b"L", b"N", ctypes.byref(columns), ctypes.byref(inner), ctypes.byref(self.minus)),
            *(self._at(j, k), ctypes.byref(n), ctypes.byref(self.one)),
            *(self._at(j, j), ctypes.byref(n)),
        )
        if j + 1 == len(self.begins):
            return
        rows = ctypes.c_int(len(self.matrix) - self.begins[j + 1])
        _function("gemm", self.matrix.dtype)(
            *(b"N", b"T", ctypes.byref(rows), ctypes.byref(columns), ctypes.byref(inner)),
            *(ctypes.byref(self.minus), self._at(j + 1, k), ctypes.byref(n)),
            *(self._at(j, k), ctypes.byref(n), ctypes.byref(self.one)),
            *(self._at(j + 1, j), ctypes.byref(n)),
        )

    def _length(self, block: int) -> ctypes.c_int:
        return ctypes.c_int(self.ends[block] - self.begins[block])

    def _at(self, row: int, column: int) -> int:
        return _address(self.matrix, self.begins[row], self.begins[column])


def solve_cholesky(factor: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return the solution for the columns of `right`, in the factor's precision."""
    n = _size(factor)
    if right.ndim != 2 or len(right) != len(factor):
        raise ValueError(f"right of shape {right.shape} must be a matrix of {len(factor)} rows.")
    solution = np.array(right, dtype=factor.dtype, order="F")
    columns = ctypes.c_int(solution.shape[1])
    info = ctypes.c_int()
    _function("potrs", factor.dtype)(
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


# What a call is told: one letter for each argument, "c" a character, "i" a number, "a" an array.
_OF_LAPACK = {"potrf": "ciaii", "potrs": "ciiaiaii"}
_ARGUMENTS = _OF_LAPACK | {
    "trsm": "cccciiaaiai",
    "syrk": "cciiaaiaai",
    "gemm": "cciiiaaiaiaai",
}


def check_lapack(signature: str, arguments: str) -> None:
    """Raise unless a LAPACK function of SciPy's takes what we pass, numbers of 32 bits above all.

    Parameters
    ----------
    signature : str
        Its C signature, such as "void (char *, int *, double *, int *, int *)".
    arguments : str
        What we pass, one letter for each.
    """
    kinds = [kind.strip() for kind in signature.partition("(")[2].rstrip(") ").split(",")]
    known = {"char *": "c", "int *": "i"}
    found = "".join(known.get(kind, "a") for kind in kinds)
    if found != arguments or not all(kind.endswith("*") for kind in kinds):
        raise ImportError(
            f"SciPy's LAPACK has the signature {signature!r} where {arguments!r} is expected: it "
            "is built with other integers than 32-bit ones, which this version cannot call; "
            "install a SciPy with the usual LAPACK."
        )


@cache
def _function(name: str, dtype: np.dtype[Any]) -> Any:
    """Return a function of SciPy's LAPACK or BLAS; a call of it lets other threads run."""
    library = cython_lapack if name in _OF_LAPACK else cython_blas
    capsule = library.__pyx_capi__[_KIND[dtype] + name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    signature = api.PyCapsule_GetName(capsule)
    check_lapack(signature.decode(), _ARGUMENTS[name])
    kinds: dict[str, Any] = {
        "c": ctypes.c_char_p,
        "i": ctypes.POINTER(ctypes.c_int),
        "a": ctypes.c_void_p,
    }
    address = api.PyCapsule_GetPointer(capsule, signature)
    return ctypes.CFUNCTYPE(None, *(kinds[each] for each in _ARGUMENTS[name]))(address)


def lapack_address(name: str, dtype: DTypeLike) -> int:
    """Return where a function of SciPy's LAPACK is, for loops that Numba compiles."""
    address = ctypes.cast(_function(name, np.dtype(dtype)), ctypes.c_void_p).value
    assert address is not None
    return address


for _name in _ARGUMENTS:
    for _dtype in (np.dtype(np.float32), np.dtype(np.float64)):
        _function(_name, _dtype)
