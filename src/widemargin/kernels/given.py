"""Kernels that the user gives: a matrix computed beforehand, or a function.

The precomputed kernel is a substitution, not a special case elsewhere: a "row" is a row of the
kernel matrix, K(x_i, ·) over the training set, and a "vector" is one number, the column of a
training row. Then

    block:     k(x_i, z_j) = X[i, Z[j, 0]],        diagonal:  X[i, index[i]].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from widemargin.kernels.kernel import Array, Kernel, room_for

# Rows in one call for the diagonal: 32 values computed for each one used, but few calls.
DIAGONAL_ROWS = 32


@dataclass(frozen=True)
class Precomputed(Kernel):
    """A kernel matrix computed beforehand.

    Rows are rows of that matrix; vectors are an array of shape (m, 1) of column numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import Precomputed
    >>> K = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]])
    >>> Precomputed().block(K[:2], np.array([[2.0], [0.0]]))
    array([[0.2, 1. ],
           [0.3, 0.5]])
    >>> Precomputed().diagonal(K[1:], index=np.array([1, 2]))
    array([1., 1.])
    """

    name: ClassVar[str] = "precomputed"
    differentiable: ClassVar[bool] = False

    def block(self, X: Array, Z: Array, out: Array | None = None) -> Array:  # noqa: D102
        out = room_for(X, Z, out)
        columns = Z[:, 0].astype(np.intp)
        out[...] = X[:, columns].toarray() if sparse.issparse(X) else np.take(X, columns, axis=1)
        return out

    def diagonal(self, X: Array, index: Array | None = None) -> Array:  # noqa: D102
        if index is None:
            raise ValueError(
                "index=None: the diagonal of a precomputed kernel needs the positions of the rows "
                "in the training set."
            )
        # A csr_matrix answers with a matrix of one row.
        values = X[np.arange(X.shape[0]), np.asarray(index)]
        return np.asarray(values, dtype=np.float64).reshape(-1)


@dataclass(frozen=True)
class CallableKernel(Kernel):
    """A kernel given as a function of two arrays.

    Parameters
    ----------
    function : callable
        ``function(X, Z, **params)`` returns the matrix of values, of shape (rows of X, rows of Z).
        It gets X as it is, CSR if the data are; Z is always dense.
    params : mapping, optional
        Keyword arguments for it.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import CallableKernel
    >>> kernel = CallableKernel(lambda X, Z, shift: X @ Z.T + shift, {"shift": 1.0})
    >>> kernel.block(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[12.]])
    """

    function: Callable[..., Array]
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)

    name: ClassVar[str] = "callable"
    differentiable: ClassVar[bool] = False

    def block(self, X: Array, Z: Array, out: Array | None = None) -> Array:  # noqa: D102
        values = self.function(X, Z, **self.params)
        values = np.asarray(values.toarray() if sparse.issparse(values) else values)
        if values.dtype.kind not in "fiub":
            raise TypeError(
                f"kernel={self.function!r} returned values of type {values.dtype}; a kernel's "
                "values must be real numbers."
            )
        expected = (X.shape[0], Z.shape[0])
        if values.shape != expected:
            raise ValueError(
                f"kernel={self.function!r} returned an array of shape {values.shape} for "
                f"{expected[0]} rows and {expected[1]} vectors; it must be {expected}."
            )
        out = room_for(X, Z, out)
        out[...] = values
        return out

    def diagonal(self, X: Array, index: Array | None = None) -> Array:  # noqa: D102
        result = np.empty(X.shape[0])
        for start in range(0, X.shape[0], DIAGONAL_ROWS):
            part = X[start : start + DIAGONAL_ROWS]
            vectors = part.toarray() if sparse.issparse(part) else part
            result[start : start + DIAGONAL_ROWS] = np.diagonal(self.block(part, vectors))
        return result
