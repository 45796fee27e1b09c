"""Numba loops for distances in the 1-norm; import this module only through `widemargin.kernels.l1`.

Vectors come transposed, features first, so that the inner loop runs along the vectors and is
vectorised without reordering any sum: the result does not depend on the machine.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from widemargin.kernels.kernel import Array

# A strip of this many sums stays in registers and the first-level cache while the features pass by.
STRIP = 256


@njit(nogil=True, cache=True, error_model="numpy")
def dense(rows: Array, vectors: Array, scale: float, out: Array) -> None:
    """Write scale·‖x_i − z_j‖₁; `vectors` of shape (d, m)."""
    features, count = vectors.shape
    fours = features - features % 4
    sums = np.empty(STRIP, dtype=rows.dtype)
    for start in range(0, count, STRIP):
        width = min(STRIP, count - start)
        for i in range(rows.shape[0]):
            sums[:] = 0
            # Four features at a time: the sums are then loaded and stored a quarter as often.
            for k in range(0, fours, 4):
                x0, x1, x2, x3 = rows[i, k], rows[i, k + 1], rows[i, k + 2], rows[i, k + 3]
                z0 = vectors[k, start : start + width]
                z1 = vectors[k + 1, start : start + width]
                z2 = vectors[k + 2, start : start + width]
                z3 = vectors[k + 3, start : start + width]
                for j in range(width):
                    sums[j] += (abs(x0 - z0[j]) + abs(x1 - z1[j])) + (
                        abs(x2 - z2[j]) + abs(x3 - z3[j])
                    )
            for k in range(fours, features):
                x0 = rows[i, k]
                z0 = vectors[k, start : start + width]
                for j in range(width):
                    sums[j] += abs(x0 - z0[j])
            for j in range(width):
                out[i, start + j] = scale * sums[j]


@njit(nogil=True, cache=True, error_model="numpy")
def sparse(
    data: Array,
    indices: Array,
    indptr: Array,
    vectors: Array,
    norms: Array,
    scale: float,
    out: Array,
) -> None:
    """Write scale·‖x_i − z_j‖₁ for CSR rows; `norms` are ‖z_j‖₁."""
    count = vectors.shape[1]
    sums = np.empty(count, dtype=np.float64)
    for i in range(indptr.shape[0] - 1):
        for j in range(count):
            sums[j] = norms[j]
        for entry in range(indptr[i], indptr[i + 1]):
            x = data[entry]
            strip = vectors[indices[entry]]
            for j in range(count):
                sums[j] += abs(x - strip[j]) - abs(strip[j])
        for j in range(count):
            out[i, j] = scale * max(sums[j], 0.0)


@njit(nogil=True, cache=True, error_model="numpy")
def signed_sums(rows: Array, vectors: Array, weight: Array, out: Array) -> None:
    """Add Σ_j weight_ij sign(x_i − z_j) to `out`; vectors of shape (m, d)."""
    features = rows.shape[1]
    for i in range(rows.shape[0]):
        for j in range(vectors.shape[0]):
            w = weight[i, j]
            for k in range(features):
                x, z = rows[i, k], vectors[j, k]
                # Two comparisons and no branch, so that the loop is vectorised.
                out[i, k] += w * (np.float32(x > z) - np.float32(x < z))
