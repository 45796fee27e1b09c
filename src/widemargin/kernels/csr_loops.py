"""A CSR matrix times another, compiled; import it where it is used: Numba is slow to import.

SciPy's own product does the same work one number at a time, which is several times slower.
"""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(nogil=True, fastmath={"contract", "reassoc", "nsz"}, cache=True)
def multiply(indptr: Any, indices: Any, data: Any, columns: Any, out: Any) -> None:
    """Write the product of a CSR matrix and the C-contiguous `columns` into `out`."""
    n_columns = columns.shape[1]
    for i in range(len(indptr) - 1):
        total = out[i]
        for j in range(n_columns):
            total[j] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            value = data[k]
            row = columns[indices[k]]
            for j in range(n_columns):
                total[j] += value * row[j]


@njit(nogil=True, cache=True)
def multiply_sparse(
    indptr: Any, indices: Any, data: Any, starts: Any, columns: Any, values: Any, out: Any
) -> None:
    """Write the product of two CSR matrices, of which the second has `starts`, into `out`."""
    for i in range(len(indptr) - 1):
        total = out[i]
        for j in range(len(total)):
            total[j] = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            value, feature = data[k], indices[k]
            for entry in range(starts[feature], starts[feature + 1]):
                total[columns[entry]] += value * values[entry]
