"""Distances in the 1-norm, the one thing here that no matrix product gives.

`scaled_l1_distances` and `signed_sums` are the only doors to the compiled loops.
Nothing here makes an n × m × d temporary.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from widemargin.kernels.kernel import Array, cast, common_point, row_slices, wide_rows
from widemargin.threads import Compiled

loops = Compiled("widemargin.kernels.l1_loops")

# Rounding of γ‖x − z‖₁ from which float64 rows are not turned into float32.
NOTICEABLE = 1e-5
# A dense copy of a few sparse rows, for the gradient.
DENSE_ROWS_BYTES = 1 << 24


def scaled_l1_distances(X: Array, Z: Array, scale: float, out: Array) -> None:
    """Write scale·‖x_i − z_j‖₁ into `out`, for X dense or CSR."""
    if sparse.issparse(X):
        # The non-zeros only: ‖x − z‖₁ = ‖z‖₁ + Σ_{x_k ≠ 0} (|x_k − z_k| − |z_k|), in float64,
        # because ‖z‖₁ may be far larger than the distance.
        X, Z = cast(X, np.float64), np.asarray(Z, dtype=np.float64)
        indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int64)
        norms = np.abs(Z).sum(axis=1)
        loops.sparse(X.data, indices, indptr, np.ascontiguousarray(Z.T), norms, scale, out)
        return
    rows, vectors = _alike(X, Z, scale, out.dtype)
    loops.dense(rows, np.ascontiguousarray(vectors.T), rows.dtype.type(scale), out)


def _alike(X: Array, Z: Array, scale: float, dtype: DTypeLike) -> tuple[Array, Array]:
    """Return dense rows and vectors in one type, float32 for float32 values where that will do."""
    widest = np.result_type(X, Z, dtype)
    if widest == dtype:
        return np.ascontiguousarray(X, dtype=dtype), cast(Z, dtype)
    # Centred, so that float64 rows far from the origin may be summed in float32.
    centre = common_point(X, Z)
    rows = wide_rows(np.subtract, X, centre, dtype, spare=0)
    widths = np.abs(rows).sum(axis=1, dtype=np.float64)
    if abs(scale) * float(widths.max(initial=0.0)) * float(np.finfo(dtype).eps) <= NOTICEABLE:
        return rows, wide_rows(np.subtract, Z, centre, dtype, spare=0)
    return np.ascontiguousarray(X, dtype=widest), cast(Z, widest)


def l1_gradient(X: Array, Z: Array, weight: Array) -> Array:
    """Return Σ_i weight_ij sign(x_i − z_j) in float64, for X dense or CSR."""
    total = np.zeros_like(Z)
    budget = DENSE_ROWS_BYTES if sparse.issparse(X) else 1 << 18
    width = max(Z.shape[0], X.shape[1] if sparse.issparse(X) else 0)
    for part in row_slices(X.shape[0], width * 8, budget):
        rows = X[part].toarray() if sparse.issparse(X) else X[part]
        for feature in range(Z.shape[1]):
            side = np.sign(rows[:, feature, None] - Z[None, :, feature])
            side *= weight[part]
            total[:, feature] += side.sum(axis=0)
    return total


def signed_sums(X: Array, Z: Array, weight: Array) -> Array:
    """Return Σ_j weight_ij sign(x_i − z_j) for dense X, in its type."""
    out = np.zeros(X.shape, dtype=X.dtype)
    rows, vectors = np.ascontiguousarray(X), np.ascontiguousarray(Z, dtype=X.dtype)
    loops.signed_sums(rows, vectors, np.ascontiguousarray(weight, dtype=X.dtype), out)
    return out
