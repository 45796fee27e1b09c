"""The machines of several cells in one call, compiled by Numba when first used.

Import this module through ``threads.Compiled``. A cell takes a millisecond: if each were a dozen
calls, many threads would wait for Python's lock more than they compute. Nothing in here holds it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from widemargin.kernels.l1_loops import dense as l1_distances
from widemargin.kernels.radial_loops import LAPLACIAN, centre, exponentials, of_products
from widemargin.qp.set_loops import solve_all


@njit(nogil=True, cache=True)
def _middle(rows: Any) -> Any:
    """Return the mean of rows, in their type."""
    n, d = rows.shape
    total = np.zeros(d)
    for i in range(n):
        for k in range(d):
            total[k] += rows[i, k]
    middle = np.empty(d, dtype=rows.dtype)
    for k in range(d):
        middle[k] = total[k] / n
    return middle


@njit(nogil=True, cache=True)
def solve_cells(
    addresses: Any,
    X: Any,
    begins: Any,
    unit: float,
    near: Any,
    kind: int,
    signs: Any,
    weight: Any,
    C: Any,
    gap: float,
    tol: float,
    beta: Any,
    intercept: Any,
    proved: Any,
    norms: Any,
) -> None:
    """Solve all problems of several cells, each on the kernel values of its rows.

    Parameters
    ----------
    addresses : ndarray of uint64 of shape (4,)
        Of LAPACK, as in ``small_loops.solve``.
    X : ndarray of shape (n, d)
        The rows of the cells, one after another.
    begins : ndarray of int of shape (n_cells + 1,)
        Where cells begin, and n.
    unit, near, kind
        The kernel, as in ``radial_loops``.
    signs, weight, C, gap, tol
        The problems, as in ``set_loops.solve_all``.
    beta : ndarray of shape (n, n_problems)
        Where coefficients are written.
    intercept : ndarray of shape (n_cells, n_problems)
        Where biases are written.
    proved : ndarray of shape (n_cells, n_problems, 4)
        Where objectives are written.
    norms : ndarray of float32 of shape (n,)
        Where the norms of rows about the middle of their cell are written.
    """
    most = 0
    for c in range(len(begins) - 1):
        most = max(most, begins[c + 1] - begins[c])
    # Once for all cells: some systems give such arrays back at once, which takes its time.
    room = np.empty(most * most, dtype=np.float32)
    all_points = np.empty((most, X.shape[1]), dtype=np.float32)
    for c in range(len(begins) - 1):
        first, last = begins[c], begins[c + 1]
        m = last - first
        rows, lengths = X[first:last], norms[first:last]
        points, K = all_points[:m], room[: m * m].reshape((m, m))
        centre(rows, _middle(rows), unit, kind == LAPLACIAN, points, lengths)
        if kind == LAPLACIAN:
            l1_distances(points, np.ascontiguousarray(points.T), np.float32(-1.0), K)  # type: ignore[arg-type]
            exponentials(K)
        else:
            np.dot(points, points.T, K)
            of_products(K, points, points, lengths, lengths, near, kind)
        part = slice(first, last)
        solve_all(
            addresses,
            K,
            signs[part],
            weight[part],
            C,
            gap,
            tol,
            beta[part],
            intercept[c],
            proved[c],
        )
