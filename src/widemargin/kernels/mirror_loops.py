"""Copies inside a symmetric matrix, compiled by Numba when first used.

Import this module through ``threads.Compiled``.
"""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(nogil=True, cache=True)
def mirror(values: Any, n_old: int, n: int) -> None:
    """Copy values[n_old:n, :n_old] to its place above the diagonal, tile by tile for the cache."""
    tile = 32
    for i0 in range(n_old, n, tile):
        for j0 in range(0, n_old, tile):
            for j in range(j0, min(n_old, j0 + tile)):
                for i in range(i0, min(n, i0 + tile)):
                    values[j, i] = values[i, j]
