"""The kernel as a block operator.

A kernel k gives three things for a block of rows x_i and a few vectors z_j, and an algorithm never
sees more of it:

* ``block``: the values k(x_i, z_j);
* ``diagonal``: k(x_i, x_i);
* ``gradient``: G_j = Σ_i w_ij ∂k(x_i, z_j)/∂z_j, by which expansion vectors are moved.

`ProductKernel` writes ``block`` once for all kernels that are an elementwise function of one matrix
product, k(x_i, z_j) = f(a_iᵀ b_j): a kernel states how to make the operands a and b, and f.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy import sparse

from widemargin.kernels.operands import (
    Array,
    Namespace,
    cast,
    dense_if_cheap,
    multiply,
    multiply_sparse,
    namespace,
    row_slices,
    working_dtype,
)

# The sparse product is made in slices of this size: the temporary is then small beside the block
# itself.
SLICE_BYTES = 1 << 22


class Kernel(ABC):
    """A kernel: values, diagonal and gradient for a block of rows against a few vectors.

    Rows `X` are a dense float32 or float64 array in any order, or a SciPy CSR matrix; vectors `Z`
    are always dense. Kernels are immutable and hold plain numbers, so that they compare, hash and
    pickle.

    Attributes
    ----------
    name : str
        The name by which `make_kernel` knows it.
    differentiable : bool
        Whether `gradient` is there.
    """

    name: ClassVar[str]
    differentiable: ClassVar[bool] = True

    @property
    def constant_diagonal(self) -> float | None:
        """The value of k(x, x) where it is the same for every x, else None."""
        return None

    def roundoff(self, spread: float) -> float:
        """Return the error of a value in units of the roundoff, for rows of a total variance.

        Above 1 for kernels of ‖x‖² + ‖z‖² − 2xᵀz, which carries the roundoff of its terms however
        near x and z are.
        """
        return 1.0

    @abstractmethod
    def block(self, X: Array, Z: Array, out: Array | None = None) -> Array:
        """Return the values k(x_i, z_j).

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows.
        Z : array of shape (m, d)
            Vectors.
        out : array of shape (n, m), optional
            Where to put the values. Its type is then the precision of computation.

        Returns
        -------
        array of shape (n, m)
            `out` where it is given; else float32 if `X` is float32, and float64 otherwise.
        """

    @abstractmethod
    def diagonal(self, X: Array, index: Array | None = None) -> Array:
        """Return k(x_i, x_i) in float64.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows.
        index : array of shape (n,), optional
            The positions of the rows in the training set. Only the precomputed kernel needs them.

        Returns
        -------
        array of shape (n,)
            The diagonal.
        """

    def gradient(self, X: Array, Z: Array, weight: Array) -> Array:
        """Return G_j = Σ_i weight_ij ∂k(x_i, z_j)/∂z_j in float64.

        Parameters
        ----------
        X : array or CSR matrix of shape (n, d)
            Rows.
        Z : array of shape (m, d)
            Vectors.
        weight : array of shape (n, m)
            The weight of each pair.

        Returns
        -------
        array of shape (m, d)
            One gradient for each vector.
        """
        raise TypeError(
            f"The {self.name} kernel has no gradient: its vectors cannot be moved; "
            "use a kernel by name, such as 'rbf', where vectors are optimised."
        )


class ProductKernel(Kernel):
    """A kernel that is an elementwise function of one matrix product."""

    @abstractmethod
    def _operands(self, xp: Namespace, X: Array, Z: Array, dtype: object) -> tuple[Array, Array]:
        """Return A of the rows (CSR if they are) and B of the vectors; k is a function of A Bᵀ."""

    @abstractmethod
    def _finish(self, xp: Namespace, values: Array, left: Array, right: Array) -> Array:
        """Turn A Bᵀ into kernel values, in place where NumPy can."""

    def block(self, X: Array, Z: Array, out: Array | None = None) -> Array:  # noqa: D102
        xp = namespace(X, Z)
        dtype = working_dtype(xp, X, out)
        X = dense_if_cheap(X)
        left, right = self._operands(xp, X, Z, dtype)
        if not sparse.issparse(left):
            values = self._finish(xp, multiply(xp, left, right, out), left, right)
            if out is None or values is out:
                return values
            out[...] = values
            return out
        if out is None:
            out = np.empty((X.shape[0], Z.shape[0]), dtype=dtype)
        columns = np.ascontiguousarray(right.T)  # the layout SciPy multiplies without a copy
        for rows in row_slices(X.shape[0], columns.shape[1] * columns.itemsize, SLICE_BYTES):
            part = left[rows]
            view = out[rows]
            # Rounded to the type of the result only here, after what may cancel has cancelled.
            view[...] = multiply_sparse(part, columns)
            self._finish(xp, view, part, right)  # in place, for sparse rows are NumPy's
        return out

    def _block64(self, xp: Namespace, X: Array, Z: Array) -> Array:
        """Return the values in float64 whatever the type of the arguments."""
        return self.block(cast(xp, X, xp.float64), cast(xp, Z, xp.float64))


def finite(owner: str, name: str, value: float, *, least: float | None = None) -> float:
    """Return a parameter as a plain float, or say what is wrong with it.

    A NumPy scalar must not stay: float64 ones would turn float32 blocks into float64.
    """
    number = float(value)
    if not math.isfinite(number) or (least is not None and number < least):
        wanted = "finite" if least is None else f"finite and at least {least:g}"
        raise ValueError(f"{name}={value!r} of the {owner} kernel must be {wanted}.")
    return number
