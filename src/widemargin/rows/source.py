"""From what a user passes as X to rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from widemargin.rows.base import BlockRows
from widemargin.rows.dense import ArrayRows
from widemargin.rows.precomputed import PrecomputedRows
from widemargin.rows.sparse import CSRRows


def as_rows(X: Any, *, memory: int, threads: int, precomputed: bool = False) -> BlockRows:
    """Return checked input as rows.

    Parameters
    ----------
    X : ndarray, memmap, or CSR matrix or array
        What scikit-learn's input check returned.
    memory : int
        Budget in bytes.
    threads : int
        Threads that visit blocks.
    precomputed : bool, default=False
        X is a kernel matrix.

    Returns
    -------
    BlockRows
        The rows.
    """
    if precomputed:
        dense = X.toarray() if sparse.issparse(X) else X
        return PrecomputedRows(dense, memory, threads)
    if sparse.issparse(X):
        return CSRRows(X, memory, threads)
    return ArrayRows(np.asarray(X), memory, threads)
