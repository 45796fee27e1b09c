"""Kernels of the inner product.

==================  =======================================  =====================================
name                k(x, z)                                    remarks
==================  =======================================  =====================================
linear              xᵀz
poly                (γ xᵀz + c)^p                              p = ``degree``, c = ``coef0``
normalized_poly     k(x,z) / √(k(x,x) k(z,z)) of ``poly``
cosine_power        (xᵀz / ‖x‖‖z‖)^p                           ``normalized_poly`` with γ = 1, c = 0
sigmoid             tanh(γ xᵀz + c)                            not positive semidefinite
==================  =======================================  =====================================

The normalised ones are u^p with u = (γxᵀz + c)/√(a_x a_z), a_x = γ‖x‖² + c.
Gradients in z are f'(t) γx with t = γxᵀz + c for the plain ones, and for the normalised ones
p u^{p-1} (γx/√(a_x a_z) − u γz/a_z).

Inner products do not suffer from cancellation as distances do, so float32 rows are multiplied in
float32, sparse ones too.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from widemargin.kernels.kernel import (
    Array,
    ProductKernel,
    cast,
    check_parameter,
    dense_if_cheap,
    row_slices,
    square_norms,
    weighted_rows,
    wide_rows,
    with_columns,
)


class _Plain(ProductKernel):
    """A function f of t = γ xᵀz + c."""

    @property
    @abstractmethod
    def _line(self) -> tuple[float, float]:
        """γ and c."""

    @abstractmethod
    def _function(self, t: Array) -> Array:
        """f(t), in place."""

    @abstractmethod
    def _slope(self, t: Array) -> Array:
        """f'(t), in place."""

    def _operands(self, X: Array, Z: Array, dtype: DTypeLike) -> tuple[Array, Array]:
        gamma, _ = self._line
        right = cast(Z, dtype)
        # γ goes into the few vectors, not into the block.
        return cast(X, dtype), right if gamma == 1 else right * gamma

    def _argument(self, values: Array) -> Array:
        _, coef0 = self._line
        if coef0 != 0:
            values += coef0
        return values

    def _finish(self, values: Array) -> None:
        self._function(self._argument(values))

    def diagonal(self, X: Array, index: Array | None = None) -> Array:
        gamma, _ = self._line
        return self._function(self._argument(gamma * square_norms(X, np.float64)[:, None]))[:, 0]

    def gradient(self, X: Array, Z: Array, weight: Array) -> Array:
        X = cast(dense_if_cheap(X), np.float64)
        left, right = self._operands(X, Z, np.float64)
        slope = self._slope(self._argument(left @ right.T))
        slope *= weight
        return self._line[0] * weighted_rows(slope, X)


@dataclass(frozen=True)
class Linear(_Plain):
    """The linear kernel k(x, z) = xᵀz.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import Linear
    >>> Linear().block(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[11.]])
    """

    name: ClassVar[str] = "linear"

    @property
    def _line(self) -> tuple[float, float]:
        return 1.0, 0.0

    def _function(self, t: Array) -> Array:
        return t

    def _slope(self, t: Array) -> Array:
        return _raise_to(t, 0)


@dataclass(frozen=True)
class Polynomial(_Plain):
    """The polynomial kernel k(x, z) = (γ xᵀz + c)^p.

    Parameters
    ----------
    gamma : float, default=1.0
        γ.
    degree : float, default=3
        p, not negative. With a fraction the values are NaN where γ xᵀz + c is negative.
    coef0 : float, default=0.0
        c.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import Polynomial
    >>> Polynomial(degree=2, coef0=1.0).block(np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]))
    array([[144.]])
    """

    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0
    name: ClassVar[str] = "poly"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_parameter(self, "gamma"))
        object.__setattr__(self, "degree", check_parameter(self, "degree", least=0))
        object.__setattr__(self, "coef0", check_parameter(self, "coef0"))

    @property
    def _line(self) -> tuple[float, float]:
        return self.gamma, self.coef0

    def _function(self, t: Array) -> Array:
        return _raise_to(t, self.degree)

    def _slope(self, t: Array) -> Array:
        return _power_slope(t, self.degree)


@dataclass(frozen=True)
class Sigmoid(_Plain):
    """The sigmoid kernel k(x, z) = tanh(γ xᵀz + c), which is not positive semidefinite.

    Parameters
    ----------
    gamma : float, default=1.0
        γ.
    coef0 : float, default=0.0
        c.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import Sigmoid
    >>> Sigmoid(coef0=-1.0).block(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0]]))
    array([[0.]])
    """

    gamma: float = 1.0
    coef0: float = 0.0
    name: ClassVar[str] = "sigmoid"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_parameter(self, "gamma"))
        object.__setattr__(self, "coef0", check_parameter(self, "coef0"))

    @property
    def _line(self) -> tuple[float, float]:
        return self.gamma, self.coef0

    def _function(self, t: Array) -> Array:
        return np.tanh(t, out=t)

    def _slope(self, t: Array) -> Array:
        values = np.tanh(t, out=t)
        return 1.0 - values * values


class _Normalised(ProductKernel):
    """A power of the cosine between rows (√γ x, √c): a product of unit vectors cannot overflow.

    A row with γ‖x‖² + c = 0 has no direction: its values, diagonal and gradient are 0.
    """

    @property
    @abstractmethod
    def _parameters(self) -> tuple[float, float, float]:
        """γ, c and p."""

    def _inverse_norms(self, X: Array) -> Array:
        gamma, coef0, _ = self._parameters
        # In float64, because float32 squares overflow from 1e19 on and vanish below 1e-23.
        norms = np.sqrt(gamma * square_norms(X, np.float64) + coef0)
        return np.where(norms > 0, 1.0 / np.where(norms > 0, norms, 1.0), 0.0)

    def _unit(self, X: Array, dtype: DTypeLike) -> Array:
        gamma, coef0, _ = self._parameters
        inverse = self._inverse_norms(X)
        factor = cast(math.sqrt(gamma) * inverse, dtype)
        last = cast(math.sqrt(coef0) * inverse, dtype)
        if sparse.issparse(X):
            rows = cast(X, dtype)
            data = rows.data * np.repeat(factor, np.diff(rows.indptr))
            rows = sparse.csr_array((data, rows.indices, rows.indptr), shape=X.shape, copy=False)
            return with_columns(rows, last) if coef0 > 0 else rows
        unit = wide_rows(np.multiply, X, factor[:, None], dtype, spare=int(coef0 > 0))
        if coef0 > 0:
            unit[:, -1] = last
        return unit

    def _operands(self, X: Array, Z: Array, dtype: DTypeLike) -> tuple[Array, Array]:
        return self._unit(X, dtype), self._unit(Z, dtype)

    def _finish(self, values: Array) -> None:
        _raise_to(values, self._parameters[2])

    def diagonal(self, X: Array, index: Array | None = None) -> Array:
        return cast(self._inverse_norms(X) > 0, np.float64)

    def gradient(self, X: Array, Z: Array, weight: Array) -> Array:
        gamma, _, degree = self._parameters
        X = cast(dense_if_cheap(X), np.float64)
        Z = cast(Z, np.float64)
        left, right = self._operands(X, Z, np.float64)
        cosine = left @ right.T
        slope = _power_slope(cosine * 1.0, degree)  # a copy: the cosine is needed once more
        slope *= weight
        scale = math.sqrt(gamma) * self._inverse_norms(Z)[:, None]
        along = np.sum(slope * cosine, axis=0)[:, None]
        features = Z.shape[1]
        pulled = weighted_rows(slope, left)[:, :features]  # left = √γ x/√a_x
        return scale * pulled - (along * scale * scale) * Z


@dataclass(frozen=True)
class NormalizedPolynomial(_Normalised):
    """The polynomial kernel with unit diagonal, ((γ xᵀz + c) / √((γ‖x‖² + c)(γ‖z‖² + c)))^p.

    Parameters
    ----------
    gamma : float, default=1.0
        γ, not negative.
    degree : float, default=3
        p, at least 1. With a fraction the values are NaN where γ xᵀz + c is negative.
    coef0 : float, default=0.0
        c, not negative. With c = 0 a zero row has no direction, and its values are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import NormalizedPolynomial
    >>> X = np.array([[1.0, 0.0], [0.0, 2.0]])
    >>> NormalizedPolynomial(degree=2, coef0=1.0).block(X, X).round(3)
    array([[1. , 0.1],
           [0.1, 1. ]])
    """

    gamma: float = 1.0
    degree: float = 3
    coef0: float = 0.0
    name: ClassVar[str] = "normalized_poly"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_parameter(self, "gamma", least=0))
        object.__setattr__(self, "degree", check_parameter(self, "degree", least=1))
        object.__setattr__(self, "coef0", check_parameter(self, "coef0", least=0))

    @property
    def constant_diagonal(self) -> float | None:
        """1 where c > 0; with c = 0 a zero row has 0."""
        return 1.0 if self.coef0 > 0 else None

    @property
    def _parameters(self) -> tuple[float, float, float]:
        return self.gamma, self.coef0, self.degree


@dataclass(frozen=True)
class CosinePower(_Normalised):
    """A power of the cosine, k(x, z) = (xᵀz / ‖x‖‖z‖)^p; a zero row has value 0 with every row.

    Parameters
    ----------
    degree : float, default=3
        p, at least 1. With a fraction the values are NaN where the cosine is negative.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import CosinePower
    >>> CosinePower(degree=2).block(np.array([[1.0, 1.0], [0.0, 0.0]]), np.array([[3.0, 0.0]]))
    array([[0.5],
           [0. ]])
    """

    degree: float = 3
    name: ClassVar[str] = "cosine_power"

    def __post_init__(self) -> None:
        object.__setattr__(self, "degree", check_parameter(self, "degree", least=1))

    @property
    def _parameters(self) -> tuple[float, float, float]:
        return 1.0, 0.0, self.degree


def _power_slope(base: Array, exponent: float) -> Array:
    """Return p t^{p-1}."""
    if exponent == 0:
        return base * 0.0
    slope = _raise_to(base, exponent - 1)
    slope *= exponent
    return slope


def _raise_to(values: Array, exponent: float) -> Array:
    """Raise to a power in place, to a whole one by repeated squaring in cache."""
    if exponent == 1:
        return values
    if exponent == 2:
        values *= values
        return values
    if exponent < 0 or exponent != int(exponent):
        return np.power(values, exponent, out=values)
    for rows in row_slices(values.shape[0], values.shape[1] * values.itemsize):
        values[rows] = _whole_power(values[rows], int(exponent))
    return values


def _whole_power(base: Array, exponent: int) -> Array:
    result = base * 0 + 1 if exponent == 0 else None
    while exponent:
        if exponent & 1:
            result = base if result is None else result * base
        exponent >>= 1
        if exponent:
            base = base * base
    return result
