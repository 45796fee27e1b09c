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

from scipy import sparse

from widemargin.kernels.base import ProductKernel, finite
from widemargin.kernels.operands import (
    Array,
    Namespace,
    apply,
    cast,
    dense_if_cheap,
    namespace,
    power,
    square_norms,
    weighted_rows,
    wide_rows,
    with_columns,
    with_scaled_rows,
)


class _Plain(ProductKernel):
    """A function f of t = γ xᵀz + c."""

    @property
    @abstractmethod
    def _line(self) -> tuple[float, float]:
        """γ and c."""

    @abstractmethod
    def _function(self, xp: Namespace, t: Array) -> Array:
        """f(t), in place where NumPy can."""

    @abstractmethod
    def _slope(self, xp: Namespace, t: Array) -> Array:
        """f'(t), in place where NumPy can."""

    def _operands(self, xp: Namespace, X: Array, Z: Array, dtype: object) -> tuple[Array, Array]:
        gamma, _ = self._line
        right = cast(xp, Z, dtype)
        # γ goes into the few vectors, not into the block.
        return cast(xp, X, dtype), right if gamma == 1 else right * gamma

    def _argument(self, values: Array) -> Array:
        _, coef0 = self._line
        if coef0 != 0:
            values += coef0
        return values

    def _finish(self, xp: Namespace, values: Array, left: Array, right: Array) -> Array:
        return self._function(xp, self._argument(values))

    def diagonal(self, X: Array, index: Array | None = None) -> Array:
        xp = namespace(X)
        gamma, _ = self._line
        return self._function(xp, self._argument(gamma * square_norms(xp, X, xp.float64)[:, None]))[
            :, 0
        ]

    def gradient(self, X: Array, Z: Array, weight: Array) -> Array:
        xp = namespace(X, Z)
        X = cast(xp, dense_if_cheap(X), xp.float64)
        left, right = self._operands(xp, X, Z, xp.float64)
        slope = self._slope(xp, self._argument(left @ right.T))
        slope *= weight
        return self._line[0] * weighted_rows(xp, slope, X)


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

    def _function(self, xp: Namespace, t: Array) -> Array:
        return t

    def _slope(self, xp: Namespace, t: Array) -> Array:
        return power(xp, t, 0)


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
        object.__setattr__(self, "gamma", finite(self.name, "gamma", self.gamma))
        object.__setattr__(self, "degree", finite(self.name, "degree", self.degree, least=0))
        object.__setattr__(self, "coef0", finite(self.name, "coef0", self.coef0))

    @property
    def _line(self) -> tuple[float, float]:
        return self.gamma, self.coef0

    def _function(self, xp: Namespace, t: Array) -> Array:
        return power(xp, t, self.degree)

    def _slope(self, xp: Namespace, t: Array) -> Array:
        return _power_slope(xp, t, self.degree)


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
        object.__setattr__(self, "gamma", finite(self.name, "gamma", self.gamma))
        object.__setattr__(self, "coef0", finite(self.name, "coef0", self.coef0))

    @property
    def _line(self) -> tuple[float, float]:
        return self.gamma, self.coef0

    def _function(self, xp: Namespace, t: Array) -> Array:
        return apply(xp, "tanh", t)

    def _slope(self, xp: Namespace, t: Array) -> Array:
        values = apply(xp, "tanh", t)
        return 1.0 - values * values


class _Normalised(ProductKernel):
    """A power of the cosine between rows (√γ x, √c): a product of unit vectors cannot overflow.

    A row with γ‖x‖² + c = 0 has no direction: its values, diagonal and gradient are 0.
    """

    @property
    @abstractmethod
    def _parameters(self) -> tuple[float, float, float]:
        """γ, c and p."""

    def _inverse_norms(self, xp: Namespace, X: Array) -> Array:
        gamma, coef0, _ = self._parameters
        # In float64, because float32 squares overflow from 1e19 on and vanish below 1e-23.
        norms = xp.sqrt(gamma * square_norms(xp, X, xp.float64) + coef0)
        return xp.where(norms > 0, 1.0 / xp.where(norms > 0, norms, 1.0), 0.0)

    def _unit(self, xp: Namespace, X: Array, dtype: object) -> Array:
        gamma, coef0, _ = self._parameters
        inverse = self._inverse_norms(xp, X)
        factor = cast(xp, math.sqrt(gamma) * inverse, dtype)
        last = cast(xp, math.sqrt(coef0) * inverse, dtype)
        if sparse.issparse(X):
            rows = with_scaled_rows(cast(xp, X, dtype), factor)
            return with_columns(rows, last) if coef0 > 0 else rows
        unit = wide_rows(xp, "multiply", X, factor[:, None], dtype, spare=int(coef0 > 0))
        if coef0 > 0:
            unit[:, -1] = last
        return unit

    def _operands(self, xp: Namespace, X: Array, Z: Array, dtype: object) -> tuple[Array, Array]:
        return self._unit(xp, X, dtype), self._unit(xp, Z, dtype)

    def _finish(self, xp: Namespace, values: Array, left: Array, right: Array) -> Array:
        return power(xp, values, self._parameters[2])

    def diagonal(self, X: Array, index: Array | None = None) -> Array:
        xp = namespace(X)
        return cast(xp, self._inverse_norms(xp, X) > 0, xp.float64)

    def gradient(self, X: Array, Z: Array, weight: Array) -> Array:
        xp = namespace(X, Z)
        gamma, _, degree = self._parameters
        X = cast(xp, dense_if_cheap(X), xp.float64)
        Z = cast(xp, Z, xp.float64)
        left, right = self._operands(xp, X, Z, xp.float64)
        cosine = left @ right.T
        slope = _power_slope(xp, cosine * 1.0, degree)  # a copy: the cosine is needed once more
        slope *= weight
        scale = math.sqrt(gamma) * self._inverse_norms(xp, Z)[:, None]
        along = xp.sum(slope * cosine, axis=0)[:, None]
        features = Z.shape[1]
        pulled = weighted_rows(xp, slope, left)[:, :features]  # left = √γ x/√a_x
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
        object.__setattr__(self, "gamma", finite(self.name, "gamma", self.gamma, least=0))
        object.__setattr__(self, "degree", finite(self.name, "degree", self.degree, least=1))
        object.__setattr__(self, "coef0", finite(self.name, "coef0", self.coef0, least=0))

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
        object.__setattr__(self, "degree", finite(self.name, "degree", self.degree, least=1))

    @property
    def _parameters(self) -> tuple[float, float, float]:
        return 1.0, 0.0, self.degree


def _power_slope(xp: Namespace, base: Array, exponent: float) -> Array:
    """Return p t^{p-1}."""
    if exponent == 0:
        return base * 0.0
    slope = power(xp, base, exponent - 1)
    slope *= exponent
    return slope
