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

from widemargin.kernels.base import Kernel
from widemargin.kernels.operands import Array, cast, empty, namespace, working_dtype

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
        xp = namespace(X, Z)
        dtype = working_dtype(xp, X, out)
        columns = cast(xp, Z[:, 0], xp.int64)
        if sparse.issparse(X):
            values = X[:, columns].toarray()
        else:
            values = xp.take(np.asarray(X) if xp is np else X, columns, axis=1)
        if out is None:
            return cast(xp, values, dtype)
        out[...] = cast(xp, values, dtype)
        return out

    def diagonal(self, X: Array, index: Array | None = None) -> Array:  # noqa: D102
        if index is None:
            raise ValueError(
                "index=None: the diagonal of a precomputed kernel needs the positions of the rows "
                "in the training set."
            )
        xp = namespace(X)
        if xp is np:
            # A csr_matrix answers with a matrix of one row.
            values = X[np.arange(X.shape[0]), np.asarray(index)]
            return np.asarray(values, dtype=np.float64).reshape(-1)
        return cast(xp, xp.take_along_axis(X, index[:, None], axis=1)[:, 0], xp.float64)


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
        xp = namespace(X, Z)
        values = self.function(X, Z, **self.params)
        if sparse.issparse(values):
            values = values.toarray()
        values = xp.asarray(values, dtype=working_dtype(xp, X, out))
        expected = (X.shape[0], Z.shape[0])
        if tuple(values.shape) != expected:
            raise ValueError(
                f"kernel={self.function!r} returned an array of shape {tuple(values.shape)} for "
                f"{expected[0]} rows and {expected[1]} vectors; it must be {expected}."
            )
        if out is None:
            return values
        out[...] = values
        return out

    def diagonal(self, X: Array, index: Array | None = None) -> Array:  # noqa: D102
        xp = namespace(X)
        result = empty(xp, (X.shape[0],), xp.float64, X)
        for start in range(0, X.shape[0], DIAGONAL_ROWS):
            part = X[start : start + DIAGONAL_ROWS]
            vectors = part.toarray() if sparse.issparse(part) else part
            values = xp.linalg.diagonal(self.block(part, vectors))
            result[start : start + DIAGONAL_ROWS] = cast(xp, values, xp.float64)
        return result
