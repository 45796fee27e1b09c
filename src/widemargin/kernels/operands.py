"""What a kernel asks of a block of rows, whatever the block is made of.

Every kernel here but the Laplacian is an elementwise function of *one* matrix product A Bᵀ, where A
is made of the rows X and B of the vectors Z. The functions below build A and B and multiply them
for the three kinds of block there are:

* a NumPy array, where we write in place, because a pass over the block costs as much as the product
  with several features;
* an array of another library (torch, CuPy), through its own namespace: it stays on its device;
* a SciPy CSR matrix, whose product with a dense array is dense.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

Array: TypeAlias = Any
"""A dense array of any library, or where a docstring says so a CSR matrix."""

Namespace: TypeAlias = Any

# From this share of non-zeros on a dense product is faster than SciPy's sparse one, conversion
# included. Measured for 1024 rows, 784 and 5000 features, 200 to 4000 vectors, one thread: the two
# meet between 3 and 8 % for distances in float32 and between 8 and 16 % otherwise.
DENSE_SHARE = 0.1

# A dense copy of a CSR block must not surprise anybody's memory budget.
DENSE_BYTES = 1 << 26

# Temporaries of this size stay in a second-level cache.
CACHE_BYTES = 1 << 18


def namespace(*arrays: Array) -> Namespace:
    """Return the namespace of the dense ones among `arrays`: NumPy's own for NumPy and SciPy."""
    if all(isinstance(array, np.ndarray) or sparse.issparse(array) for array in arrays):
        return np
    from array_api_compat import array_namespace

    return array_namespace(*(array for array in arrays if not sparse.issparse(array)))


def working_dtype(xp: Namespace, X: Array, out: Array | None) -> Any:
    """Return the precision of computation: that of `out` where it is given, else that of `X`."""
    source = X if out is None else out
    return xp.float32 if source.dtype == xp.float32 else xp.float64


def empty(xp: Namespace, shape: tuple[int, ...], dtype: Any, like: Array) -> Array:
    """Return an uninitialised array on the device of `like`."""
    if xp is np:
        return np.empty(shape, dtype=dtype)
    from array_api_compat import device

    return xp.empty(shape, dtype=dtype, device=device(like))


def row_slices(rows: int, row_bytes: int, budget: int = CACHE_BYTES) -> Iterator[slice]:
    """Cut `rows` rows into slices of at most `budget` bytes, of at least one row."""
    step = max(1, budget // max(1, row_bytes))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def canonical(X: Array) -> Array:
    """Return a CSR matrix in which every entry is in one piece, as squares and moduli need it."""
    if not X.has_canonical_format:
        X = X.copy()  # never the caller's own
        X.sum_duplicates()
    return X


def dense_if_cheap(X: Array, share: float = DENSE_SHARE) -> Array:
    """Return a CSR block as a dense array where its products are then faster; others as they are.

    That is from a `share` of non-zeros on. What stays CSR is in canonical form.
    """
    if not sparse.issparse(X):
        return X
    cells = X.shape[0] * X.shape[1]
    if X.nnz >= share * cells and cells * X.dtype.itemsize <= DENSE_BYTES:
        return X.toarray()
    return canonical(X)


def cast(xp: Namespace, X: Array, dtype: Any) -> Array:
    """Return `X`, dense or CSR, in `dtype`; without a copy where it has that type already."""
    if sparse.issparse(X):
        return X.astype(dtype, copy=False)
    if xp is np:
        return np.asarray(X, dtype=dtype)  # asarray also drops the memmap subclass
    return X if X.dtype == dtype else xp.astype(X, dtype)


def square_norms(xp: Namespace, X: Array, dtype: Any) -> Array:
    """Return ‖x_i‖² for every row, dense or CSR, summed in `dtype`."""
    if sparse.issparse(X):
        X = canonical(X)
        row = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        squares = np.square(X.data, dtype=np.float64)
        return np.bincount(row, weights=squares, minlength=X.shape[0]).astype(dtype, copy=False)
    if xp is np:
        return np.einsum("ij,ij->i", X, X, dtype=dtype, casting="same_kind")
    X = cast(xp, X, dtype)
    return xp.sum(X * X, axis=1)


def common_point(xp: Namespace, X: Array, Z: Array) -> Array:
    """Return a point amid the vectors that may be subtracted from X and Z with little rounding.

    It has the coarser of the two types: subtracting nearby numbers of one type is exact.
    """
    dtype = xp.float32 if xp.float32 in (X.dtype, Z.dtype) else xp.float64
    return cast(xp, xp.mean(cast(xp, Z, xp.float64), axis=0), dtype)


def wide_rows(xp: Namespace, op: str, X: Array, operand: Array, dtype: Any, spare: int) -> Array:
    """Return `op(X, operand)` in `dtype` with `spare` more columns, whose values the caller sets.

    The operation is done in the widest of the types and rounded once, so float64 rows are centred
    in float64 even where the product is to be in float32.
    """
    rows, features = X.shape
    wide = empty(xp, (rows, features + spare), dtype, X)
    if xp is np:
        widest = np.result_type(X, operand, dtype)
        getattr(np, op)(X, operand, out=wide[:, :features], dtype=widest, casting="same_kind")
    else:
        X = cast(xp, X, dtype) if dtype == xp.float64 else X
        wide[:, :features] = cast(xp, getattr(xp, op)(X, operand), dtype)
    return wide


def with_columns(X: Array, *columns: Array) -> Array:
    """Return the CSR matrix `X` with dense columns appended, in the type of `X`."""
    extra = [sparse.csr_array(column[:, None].astype(X.dtype, copy=False)) for column in columns]
    return sparse.hstack([sparse.csr_array(X), *extra], format="csr")


def with_scaled_rows(X: Array, factor: Array) -> Array:
    """Return the CSR matrix diag(factor) X, sharing the indices of `X`."""
    data = X.data * np.repeat(factor, np.diff(X.indptr))
    return sparse.csr_array((data, X.indices, X.indptr), shape=X.shape, copy=False)


def multiply(xp: Namespace, left: Array, right: Array, out: Array | None = None) -> Array:
    """Return left rightᵀ of two dense arrays, in `out` where NumPy can."""
    if xp is np:
        return np.matmul(left, right.T, out=out)
    return xp.matmul(left, right.T)


def multiply_sparse(left: Array, columns: Array) -> Array:
    """Return the product of a CSR matrix and a C-contiguous array, in the type of the array."""
    from widemargin.kernels import csr_loops

    product = np.empty((left.shape[0], columns.shape[1]), dtype=columns.dtype)
    csr_loops.multiply(left.indptr, left.indices, left.data, columns, product)
    return product


def weighted_rows(xp: Namespace, weight: Array, X: Array) -> Array:
    """Return weightᵀ X in float64, for X dense or CSR."""
    if sparse.issparse(X):
        return np.ascontiguousarray((X.T @ weight).T)
    return xp.matmul(weight.T, cast(xp, X, xp.float64))


def apply(xp: Namespace, function: str, values: Array) -> Array:
    """Apply an elementwise function by name, in place where NumPy can."""
    if xp is np:
        return getattr(np, function)(values, out=values)
    return getattr(xp, function)(values)


def clip(xp: Namespace, values: Array, low: float, high: float) -> Array:
    """Clip in place where NumPy can.

    Give both bounds: NumPy's minimum with a number, or a clip with None, is three times slower.
    """
    if xp is np:
        return np.clip(values, low, high, out=values)
    return xp.clip(values, low, high)


def power(xp: Namespace, values: Array, exponent: float) -> Array:
    """Raise to a power, in place where NumPy can; to a whole one by repeated squaring in cache."""
    if exponent == 1:
        return values
    if exponent == 2:
        values *= values
        return values
    if exponent < 0 or exponent != int(exponent):
        return np.power(values, exponent, out=values) if xp is np else xp.pow(values, exponent)
    if xp is not np:
        return _whole_power(values, int(exponent))
    for rows in row_slices(values.shape[0], values.shape[1] * values.itemsize):
        values[rows] = _whole_power(values[rows], int(exponent))
    return values


def _whole_power(base: Array, exponent: int) -> Array:
    result = base * 0 + 1 if exponent == 0 else None
    while exponent:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return result
