"""A pivoted Cholesky factor on a device, as LAPACK's ``dpstrf`` makes it.

The row with the largest remainder comes next. A panel of rows is factorised with the rows of that
panel only, and then taken from the whole matrix by one product. Which row is next is known on the
device only, so that nothing waits for it until a panel is done.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin.arrays import IndexArray
from widemargin.device.namespace import Array, Device, to_numpy

# Rows of a panel.
_PANEL = 128


def pivoted_cholesky(
    device: Device, matrix: Array, least: float, panel: int = _PANEL
) -> tuple[IndexArray, Array]:
    """Return the rows that are pivots, in their order, and the factor.

    Parameters
    ----------
    device : Device
        Where the matrix is.
    matrix : array of float64 of shape (n, n)
        Symmetric; it is overwritten.
    least : float
        The factor ends before the first pivot that is not larger than this.
    panel : int, default=128
        Rows of a panel.

    Returns
    -------
    pivots : ndarray of int of shape (rank,)
        The rows.
    upper : array of shape (rank, n)
        R with RᵀR ≈ the matrix, columns in the matrix's order.
    """
    xp, n = device.xp, matrix.shape[0]
    numbers = xp.arange(n, device=device.where)
    left = xp.linalg.diagonal(matrix) * 1.0
    upper = device.zeros((n, n), np.float64)
    pivots: list[Array] = []
    peaks: list[Array] = []
    for begin in range(0, n, panel):
        end = min(n, begin + panel)
        for j in range(begin, end):
            pivot = xp.argmax(left, keepdims=True)
            peak = xp.take(left, pivot)
            pivots.append(pivot)
            peaks.append(peak)
            line = xp.take(matrix, pivot, axis=0)
            if j > begin:
                before = upper[begin:j, :]
                line = line - xp.matmul(xp.take(before, pivot, axis=1).mT, before)
            # Beyond the rank there is nothing but rounding, which is cut off below.
            root = xp.sqrt(xp.clip(peak, max(least, 1e-300), None))
            line = line[0, :] / root
            # Rows that were pivots have no remainder, and are no pivots again.
            line = xp.where(left > -np.inf, line, xp.zeros_like(line))
            upper[j, :] = line
            left = xp.where(numbers == pivot, -np.inf, left - line * line)
        latest = to_numpy(xp.concat(peaks[begin:end]))
        if not latest[-1] > least:
            break
        if end < n:
            taken = upper[begin:end, :]
            matrix = _less(device, matrix, taken)
    sizes = to_numpy(xp.concat(peaks)) if peaks else np.empty(0)
    small = np.flatnonzero(~(sizes > least))
    rank = int(small[0]) if len(small) else len(sizes)
    chosen: Any = to_numpy(xp.concat(pivots)) if pivots else np.empty(0)
    return chosen[:rank].astype(np.intp), upper[:rank, :]


def _less(device: Device, matrix: Array, rows: Array) -> Array:
    """Return a matrix minus the product of rows with themselves."""
    if device.is_torch:
        return matrix.addmm_(rows.mT, rows, alpha=-1.0)
    matrix -= device.xp.matmul(rows.mT, rows)
    return matrix
