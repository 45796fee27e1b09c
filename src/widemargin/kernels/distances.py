"""Kernels of the distance.

===========================  ========================  =========================
name                         k(x, z)                   −∂k/∂z is (z − x) times
===========================  ========================  =========================
rbf                          exp(−γ‖x − z‖²)           2γ k
inverse_squared_distance     1 / (γ‖x − z‖² + 1)       2γ k²
inverse_distance             1 / (√γ‖x − z‖ + 1)       γ k³ / (1 − k), 0 at x = z
laplacian                    exp(−γ‖x − z‖₁)           (γ k sign(z − x), 0 at x = z)
===========================  ========================  =========================

Squared distances come from one matrix product with two more columns,

    s‖x − z‖² + t  =  (x, ‖x‖², 1) · (−2s z, s, s‖z‖² + t),

so that norms, scale and offset cost no pass over the block. Its rounding error is a few units of
ε·s(‖x‖² + ‖z‖²), which for data far from the origin ruins float32: rows and vectors are first
centred by a common point. Sparse rows cannot be centred, and are multiplied in float64 instead.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import sparse

from widemargin.kernels.base import Kernel, ProductKernel, finite
from widemargin.kernels.l1 import l1_gradient, scaled_l1_distances
from widemargin.kernels.operands import (
    Array,
    Namespace,
    apply,
    cast,
    clip,
    common_point,
    dense_if_cheap,
    empty,
    namespace,
    row_slices,
    square_norms,
    weighted_rows,
    wide_rows,
    with_columns,
    working_dtype,
)

# The sparse 1-norm loop is no slower an entry than the dense one, so it wins up to here.
L1_DENSE_SHARE = 0.5


class _Radial(Kernel):
    """A function of x − z with k(x, x) = 1."""

    @property
    def constant_diagonal(self) -> float | None:
        """1."""
        return 1.0

    def diagonal(self, X: Array, index: Array | None = None) -> Array:
        xp = namespace(X)
        ones = empty(xp, (X.shape[0],), xp.float64, X)
        ones[...] = 1.0
        return ones


class _SquaredDistance(_Radial, ProductKernel):
    """A function of s‖x − z‖² + t."""

    def roundoff(self, spread: float) -> float:
        return 1.0 + 2.0 * abs(self._line[0]) * spread

    @property
    @abstractmethod
    def _line(self) -> tuple[float, float]:
        """Return s and t."""

    @abstractmethod
    def _pull(self, values: Array) -> Array:
        """Return the factor of (x − z) in ∂k/∂z, from the values of k."""

    def _operands(self, xp: Namespace, X: Array, Z: Array, dtype: object) -> tuple[Array, Array]:
        features = X.shape[1]
        scale, offset = self._line
        if sparse.issparse(X):
            # Not centred, so float64 whatever the type asked for: sparse float32 rows with large
            # entries, such as counts, would lose what the norms cancel.
            dtype = xp.float64
            rows = cast(xp, X, dtype)
            norms = square_norms(xp, rows, dtype)
            left = with_columns(rows, norms, np.ones_like(norms))
            centre: Array = 0.0
        else:
            centre = common_point(xp, X, Z)
            left = wide_rows(xp, "subtract", X, centre, dtype, spare=2)
            left[:, features] = square_norms(xp, left[:, :features], dtype)
            left[:, features + 1] = 1.0
        right = wide_rows(xp, "subtract", Z, centre, dtype, spare=2)
        right[:, features + 1] = scale * square_norms(xp, right[:, :features], dtype) + offset
        right[:, features] = scale
        right[:, :features] *= -2.0 * scale
        return left, right

    def gradient(self, X: Array, Z: Array, weight: Array) -> Array:
        xp = namespace(X, Z)
        X = cast(xp, dense_if_cheap(X), xp.float64)
        Z = cast(xp, Z, xp.float64)
        pull = self._pull(self._block64(xp, X, Z)) * weight
        # Σ_i pull_ij (x_i − z_j), centred for the same reason as the distances.
        if not sparse.issparse(X):
            centre = common_point(xp, X, Z)
            X, Z = X - centre, Z - centre
        return weighted_rows(xp, pull, X) - xp.sum(pull, axis=0)[:, None] * Z


@dataclass(frozen=True)
class RBF(_SquaredDistance):
    """The Gaussian kernel k(x, z) = exp(−γ‖x − z‖²).

    Parameters
    ----------
    gamma : float, default=1.0
        γ, not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import RBF
    >>> RBF(gamma=0.5).block(np.array([[0.0], [2.0]]), np.array([[0.0]])).round(4)
    array([[1.    ],
           [0.1353]])
    """

    gamma: float = 1.0
    name: ClassVar[str] = "rbf"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", finite(self.name, "gamma", self.gamma, least=0))

    @property
    def _line(self) -> tuple[float, float]:
        return -self.gamma, 0.0

    def _finish(self, xp: Namespace, values: Array, left: Array, right: Array) -> Array:
        return apply(xp, "exp", clip(xp, values, -math.inf, 0.0))

    def _pull(self, values: Array) -> Array:
        return 2.0 * self.gamma * values


@dataclass(frozen=True)
class InverseSquaredDistance(_SquaredDistance):
    """The inverse squared distance kernel k(x, z) = 1 / (γ‖x − z‖² + 1).

    Parameters
    ----------
    gamma : float, default=1.0
        γ, not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import InverseSquaredDistance
    >>> InverseSquaredDistance().block(np.array([[0.0], [2.0]]), np.array([[0.0]]))
    array([[1. ],
           [0.2]])
    """

    gamma: float = 1.0
    name: ClassVar[str] = "inverse_squared_distance"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", finite(self.name, "gamma", self.gamma, least=0))

    @property
    def _line(self) -> tuple[float, float]:
        return self.gamma, 1.0

    def _finish(self, xp: Namespace, values: Array, left: Array, right: Array) -> Array:
        return apply(xp, "reciprocal", clip(xp, values, 1.0, math.inf))

    def _pull(self, values: Array) -> Array:
        return 2.0 * self.gamma * values * values


@dataclass(frozen=True)
class InverseDistance(_SquaredDistance):
    """The inverse distance kernel k(x, z) = 1 / (√γ‖x − z‖ + 1).

    Parameters
    ----------
    gamma : float, default=1.0
        γ, not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import InverseDistance
    >>> InverseDistance(gamma=4.0).block(np.array([[0.0], [2.0]]), np.array([[0.0]]))
    array([[1. ],
           [0.2]])
    """

    gamma: float = 1.0
    name: ClassVar[str] = "inverse_distance"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", finite(self.name, "gamma", self.gamma, least=0))

    @property
    def _line(self) -> tuple[float, float]:
        # Unscaled, so that z is −½ of the right operand exactly: `_measure_near_pairs` takes it
        # from there.
        return 1.0, 0.0

    def _finish(self, xp: Namespace, values: Array, left: Array, right: Array) -> Array:
        _measure_near_pairs(xp, values, left, right)
        values = apply(xp, "sqrt", clip(xp, values, 0.0, math.inf))
        values *= math.sqrt(self.gamma)
        values += 1.0
        return apply(xp, "reciprocal", values)

    def _pull(self, values: Array) -> Array:
        apart = 1.0 - values
        touching = apart <= 0
        apart[touching] = 1.0
        pull = self.gamma * values**3 / apart
        pull[touching] = 0.0
        return pull


def _measure_near_pairs(xp: Namespace, squares: Array, left: Array, right: Array) -> None:
    """Replace squared distances that are small beside the norms by sums of squared differences.

    The root turns a rounding error of 1e-7 in the square, harmless elsewhere, into one of 3e-4 in
    the distance. Where ‖x − z‖² < τ(‖x‖² + ‖z‖²) both norms are nearly the same, so one bound for
    each row finds all such pairs.
    """
    features = right.shape[1] - 2
    # With these the error of ‖x − z‖ beyond the bound is below 1e-5 (float32) and 1e-12 (float64)
    # of the norm.
    bound = 3e-4 if squares.dtype == xp.float32 else 3e-8
    norms = left[:, [features]].toarray()[:, 0] if sparse.issparse(left) else left[:, features]
    # Few rows have such a pair, and a row's minimum is ten times cheaper than a list of pairs.
    (rows,) = xp.nonzero(xp.min(squares, axis=1) <= bound * norms)
    among, column = xp.nonzero(squares[rows] <= bound * norms[rows][:, None])
    row = rows[among]
    itemsize = 8
    for pairs in row_slices(row.shape[0], features * itemsize):
        near, vector = row[pairs], column[pairs]
        x = left[near].toarray() if sparse.issparse(left) else left[near]
        difference = x[:, :features] + 0.5 * right[vector][:, :features]
        squares[near, vector] = xp.sum(difference * difference, axis=1)


@dataclass(frozen=True)
class Laplacian(_Radial):
    """The Laplacian kernel k(x, z) = exp(−γ‖x − z‖₁).

    Parameters
    ----------
    gamma : float, default=1.0
        γ, not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import Laplacian
    >>> Laplacian().block(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0, 1.0]])).round(4)
    array([[1.    ],
           [0.1353]])
    """

    gamma: float = 1.0
    name: ClassVar[str] = "laplacian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", finite(self.name, "gamma", self.gamma, least=0))

    def block(self, X: Array, Z: Array, out: Array | None = None) -> Array:  # noqa: D102
        xp = namespace(X, Z)
        dtype = working_dtype(xp, X, out)
        if out is None:
            out = empty(xp, (X.shape[0], Z.shape[0]), dtype, Z)
        scaled_l1_distances(xp, dense_if_cheap(X, L1_DENSE_SHARE), Z, -self.gamma, out)
        values = apply(xp, "exp", out)
        if values is not out:
            out[...] = values
        return out

    def gradient(self, X: Array, Z: Array, weight: Array) -> Array:  # noqa: D102
        xp = namespace(X, Z)
        X = cast(xp, dense_if_cheap(X), xp.float64)
        Z = cast(xp, Z, xp.float64)
        return l1_gradient(xp, X, Z, self.gamma * self.block(X, Z) * weight)
