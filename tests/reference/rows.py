"""Rows in every form that they are stored in."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from widemargin.rows import as_rows

SMALL = 1000  # a budget whose blocks hold sixteen rows, the fewest there are


def dense_data(seed=0, n=101, d=7, dtype="float64"):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, d)) * 3) * (rng.random((n, d)) < 0.6)
    return np.abs(X).astype(dtype) if dtype in ("uint8", "bool") else X.astype(dtype)


def stored(kind, X, tmp_path):
    if kind == "F":
        return np.asfortranarray(X)
    if kind == "strided":
        wide = np.zeros((2 * len(X), 2 * X.shape[1]), dtype=X.dtype)
        wide[::2, 1::2] = X
        return wide[::2, 1::2]
    if kind == "memmap":
        np.save(tmp_path / "X.npy", X)
        return np.load(tmp_path / "X.npy", mmap_mode="r")
    if kind == "read-only":
        X = X.copy()
        X.flags.writeable = False
        return X
    if kind.startswith("csr"):
        made = sparse.csr_matrix(X) if kind == "csr_matrix" else sparse.csr_array(X)
        index = np.int64 if kind == "csr64" else np.int32
        made.indices, made.indptr = made.indices.astype(index), made.indptr.astype(index)
        return made
    return X.copy()


def rows_of(X, memory=SMALL, threads=1):
    return as_rows(X, memory=memory, threads=threads)
