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
Where that is not enough (a kernel far narrower than the data is wide), pairs that lie close
together are measured again, by the sum of their squared differences.
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
    Kernel,
    ProductKernel,
    cast,
    check_parameter,
    common_point,
    dense_if_cheap,
    room_for,
    row_slices,
    square_norms,
    weighted_rows,
    wide_rows,
    with_columns,
)
from widemargin.kernels.l1 import l1_gradient, scaled_l1_distances

# The sparse 1-norm loop is no slower an entry than the dense one, so it wins up to here.
L1_DENSE_SHARE = 0.5
# Rounding of γ‖x − z‖² from which near pairs are measured again.
NOTICEABLE = 1e-3
# γ‖x − z‖² beyond which exp(−γ‖x − z‖²) is nothing beside 1.
VANISHES = 100.0


class _Radial(Kernel):
    """A function of x − z with k(x, x) = 1."""

    @property
    def constant_diagonal(self) -> float | None:
        """1."""
        return 1.0

    def diagonal(self, X: Array, index: Array | None = None) -> Array:
        return np.ones(X.shape[0])


class _SquaredDistance(_Radial, ProductKernel):
    """A function of s‖x − z‖² + t."""

    def rounding(self, spread: float, dtype: DTypeLike) -> float:
        scale, unit = abs(self._line[0]), float(np.finfo(dtype).eps) / 2
        error = unit * (1.0 + 2.0 * scale * spread)
        # Beyond it near pairs are measured, and rounding of their coordinates is what is left.
        return error if error <= NOTICEABLE else unit * (1.0 + 40.0 * math.sqrt(scale * spread))

    @property
    @abstractmethod
    def _line(self) -> tuple[float, float]:
        """Return s and t."""

    @abstractmethod
    def _pull(self, values: Array) -> Array:
        """Return the factor of (x − z) in ∂k/∂z, from the values of k."""

    def _operands(self, X: Array, Z: Array, dtype: DTypeLike) -> tuple[Array, Array]:
        features = X.shape[1]
        scale, offset = self._line
        if sparse.issparse(X):
            # Not centred, so float64 whatever the type asked for: sparse float32 rows with large
            # entries, such as counts, would lose what the norms cancel.
            dtype = np.float64
            rows = cast(X, dtype)
            norms = square_norms(rows, dtype)
            left = with_columns(rows, norms, np.ones_like(norms))
            centre: Array = 0.0
        else:
            centre = common_point(X, Z)
            left = wide_rows(np.subtract, X, centre, dtype, spare=2)
            left[:, features] = square_norms(left[:, :features], dtype)
            left[:, features + 1] = 1.0
        right = wide_rows(np.subtract, Z, centre, dtype, spare=2)
        right[:, features + 1] = scale * square_norms(right[:, :features], dtype) + offset
        right[:, features] = scale
        right[:, :features] *= -2.0 * scale
        return left, right

    def _measure_again(self, values: Array, left: Array, right: Array, reach: float) -> None:
        """Measure pairs with |s|‖x − z‖² ≤ reach again where rounding shows in s‖x − z‖² + t.

        One bound for each row is enough, for near pairs have nearly the same norms.
        """
        scale, offset = self._line
        norms = _norms(left)
        unit = float(np.finfo(right.dtype).eps)
        shows = unit * abs(scale) * norms > NOTICEABLE
        if shows.any():
            bound = np.where(shows, reach + 4.0 * unit * abs(scale) * norms, -1.0)
            _measure_near_pairs(values, left, right, bound, scale, offset)

    def gradient(self, X: Array, Z: Array, weight: Array) -> Array:
        X = cast(dense_if_cheap(X), np.float64)
        Z = cast(Z, np.float64)
        pull = self._pull(self._block64(X, Z)) * weight
        # Σ_i pull_ij (x_i − z_j), centred for the same reason as the distances.
        if not sparse.issparse(X):
            centre = common_point(X, Z)
            X, Z = X - centre, Z - centre
        return weighted_rows(pull, X) - pull.sum(axis=0)[:, None] * Z


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
        object.__setattr__(self, "gamma", check_parameter(self, "gamma", least=0))

    @property
    def _line(self) -> tuple[float, float]:
        return -self.gamma, 0.0

    def _finish(self, values: Array, left: Array, right: Array) -> None:
        self._measure_again(values, left, right, VANISHES)
        np.clip(values, -math.inf, 0.0, out=values)
        np.exp(values, out=values)

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
        object.__setattr__(self, "gamma", check_parameter(self, "gamma", least=0))

    @property
    def _line(self) -> tuple[float, float]:
        return self.gamma, 1.0

    def _finish(self, values: Array, left: Array, right: Array) -> None:
        self._measure_again(values, left, right, VANISHES)
        np.clip(values, 1.0, math.inf, out=values)
        np.reciprocal(values, out=values)

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
        object.__setattr__(self, "gamma", check_parameter(self, "gamma", least=0))

    @property
    def _line(self) -> tuple[float, float]:
        # Unscaled, so that z is −½ of the right operand exactly: `_measure_near_pairs` takes it
        # from there.
        return 1.0, 0.0

    def _finish(self, values: Array, left: Array, right: Array) -> None:
        # The root turns a rounding error of 1e-7 in the square, harmless elsewhere, into one of
        # 3e-4 in the distance. With these the error of ‖x − z‖ beyond the bound is below 1e-5
        # (float32) and 1e-12 (float64) of the norm.
        share = 3e-4 if values.dtype == np.float32 else 3e-8
        _measure_near_pairs(values, left, right, share * _norms(left), 1.0, 0.0)
        np.clip(values, 0.0, math.inf, out=values)
        np.sqrt(values, out=values)
        values *= math.sqrt(self.gamma)
        values += 1.0
        np.reciprocal(values, out=values)

    def _pull(self, values: Array) -> Array:
        apart = 1.0 - values
        touching = apart <= 0
        apart[touching] = 1.0
        pull = self.gamma * values**3 / apart
        pull[touching] = 0.0
        return pull


def _norms(left: Array) -> Array:
    """Return ‖x‖² from the left operand, which has it in its last column but one."""
    return left[:, [-2]].toarray()[:, 0] if sparse.issparse(left) else left[:, -2]


def _measure_near_pairs(
    values: Array, left: Array, right: Array, bound: Array, scale: float, offset: float
) -> None:
    """Replace s‖x − z‖² + t by sums of squared differences where |s|‖x − z‖² ≤ bound of the row."""
    features = right.shape[1] - 2
    sign = math.copysign(1.0, scale)
    # The least square of a row that may be near; a row's minimum is ten times cheaper than a list
    # of pairs, and few rows have such a pair.
    least = values.min(axis=1) if sign > 0 else -values.max(axis=1)
    rows = np.flatnonzero(least - sign * offset <= bound)
    among, column = np.nonzero(sign * (values[rows] - offset) <= bound[rows][:, None])
    row = rows[among]
    itemsize = 8
    for pairs in row_slices(len(row), features * itemsize):
        near, vector = row[pairs], column[pairs]
        x = left[near].toarray() if sparse.issparse(left) else left[near]
        difference = x[:, :features] + right[vector][:, :features] / (2.0 * scale)
        values[near, vector] = scale * (difference * difference).sum(axis=1) + offset


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
        object.__setattr__(self, "gamma", check_parameter(self, "gamma", least=0))

    def block(self, X: Array, Z: Array, out: Array | None = None) -> Array:  # noqa: D102
        out = room_for(X, Z, out)
        scaled_l1_distances(dense_if_cheap(X, L1_DENSE_SHARE), Z, -self.gamma, out)
        return np.exp(out, out=out)

    def gradient(self, X: Array, Z: Array, weight: Array) -> Array:  # noqa: D102
        X = cast(dense_if_cheap(X), np.float64)
        Z = cast(Z, np.float64)
        return l1_gradient(X, Z, self.gamma * self.block(X, Z) * weight)
