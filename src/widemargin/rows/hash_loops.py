"""Hashes of rows, compiled by Numba when first used.

Import this module through ``threads.Compiled``. Nothing here holds Python's lock.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def row_hashes(bits: Any, constants: Any, factor: Any, out: Any) -> None:
    """Write the sum of constant times mixed bits over each row.

    Parameters
    ----------
    bits : ndarray of uint64 of shape (n, d)
        The bits of float64 numbers.
    constants : ndarray of uint64 of shape (d,)
        One for each column.
    factor : uint64
        The factor of the mixture, as in ``distinct``.
    out : ndarray of uint64 of shape (n,)
        Where to write.
    """
    sign = np.uint64(1) << np.uint64(63)
    zero, high, low = np.uint64(0), np.uint64(32), np.uint64(29)
    for i in range(bits.shape[0]):
        total = zero
        for k in range(bits.shape[1]):
            # −0.0 is the same number as 0.0 to every kernel.
            value = bits[i, k] if bits[i, k] != sign else zero
            value = (value ^ (value >> high)) * factor
            total += (value ^ (value >> low)) * constants[k]
        out[i] = total
