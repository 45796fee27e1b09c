"""Distances in the 1-norm, the one thing here that no matrix product gives.

`scaled_l1_distances` is the only door to the Numba loops, which are imported when first used; where
Numba is missing or the arrays are another library's, the same sums are made feature by feature.
Neither makes an n × m × d temporary.
"""

from __future__ import annotations

import functools
from types import ModuleType

import numpy as np
from scipy import sparse

from widemargin.kernels.operands import (
    Array,
    Namespace,
    cast,
    common_point,
    row_slices,
    wide_rows,
)

# A dense copy of a few sparse rows, for the gradient.
DENSE_ROWS_BYTES = 1 << 24


@functools.cache
def compiled_loops() -> ModuleType | None:
    """Return the module of Numba loops, or None where Numba cannot be imported."""
    try:
        from widemargin.kernels import l1_loops
    except ImportError:
        return None
    return l1_loops


def scaled_l1_distances(xp: Namespace, X: Array, Z: Array, scale: float, out: Array) -> None:
    """Write scale·‖x_i − z_j‖₁ into `out`, for X dense or CSR."""
    loops = compiled_loops() if xp is np else None
    if sparse.issparse(X):
        _sparse(loops, X, np.asarray(Z, dtype=np.float64), scale, out)
        return
    # Centred, so that float64 rows far from the origin may be summed in float32.
    centre = common_point(xp, X, Z)
    rows = wide_rows(xp, "subtract", X, centre, out.dtype, spare=0)
    vectors = wide_rows(xp, "subtract", Z, centre, out.dtype, spare=0)
    if loops is not None:
        loops.dense(rows, np.ascontiguousarray(vectors.T), out.dtype.type(scale), out)
        return
    out[...] = 0.0
    for part in row_slices(rows.shape[0], vectors.shape[0] * 8):
        for feature in range(rows.shape[1]):
            out[part, :] += xp.abs(rows[part, feature, None] - vectors[None, :, feature])
    out *= scale


def _sparse(loops: ModuleType | None, X: Array, Z: Array, scale: float, out: Array) -> None:
    """Use the non-zeros only: ‖x − z‖₁ = ‖z‖₁ + Σ_{x_k ≠ 0} (|x_k − z_k| − |z_k|).

    In float64, because ‖z‖₁ may be far larger than the distance.
    """
    X = cast(np, X, np.float64)
    norms = np.abs(Z).sum(axis=1)
    if loops is not None:
        indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
        loops.sparse(X.data, indices, indptr, np.ascontiguousarray(Z.T), norms, scale, out)
        return
    for row in range(X.shape[0]):
        entries = slice(X.indptr[row], X.indptr[row + 1])
        vectors = Z[:, X.indices[entries]]
        change = np.abs(X.data[entries] - vectors) - np.abs(vectors)
        out[row] = scale * np.maximum(norms + change.sum(axis=1), 0.0)


def l1_gradient(xp: Namespace, X: Array, Z: Array, weight: Array) -> Array:
    """Return Σ_i weight_ij sign(x_i − z_j) in float64, for X dense or CSR."""
    total = xp.zeros_like(Z)
    budget = DENSE_ROWS_BYTES if sparse.issparse(X) else 1 << 18
    width = max(Z.shape[0], X.shape[1] if sparse.issparse(X) else 0)
    for part in row_slices(X.shape[0], width * 8, budget):
        rows = X[part].toarray() if sparse.issparse(X) else X[part, :]
        for feature in range(Z.shape[1]):
            side = xp.sign(rows[:, feature, None] - Z[None, :, feature])
            side *= weight[part, :]
            total[:, feature] += xp.sum(side, axis=0)
    return total
