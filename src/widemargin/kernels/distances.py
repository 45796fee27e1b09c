"""Kernels of the distance.

===========================  ========================  =========================
name                         k(x, z)                   −∂k/∂z is (z − x) times
===========================  ========================  =========================
rbf                          exp(−γ‖x − z‖²)           2γ k
inverse_squared_distance     1 / (γ‖x − z‖² + 1)       2γ k²
inverse_distance             1 / (√γ‖x − z‖ + 1)       γ k³ / (1 − k), 0 at x = z
exponential                  exp(−√γ‖x − z‖)           −γ k / ln k, 0 at x = z
laplacian                    exp(−γ‖x − z‖₁)           (γ k sign(z − x), 0 at x = z)
===========================  ========================  =========================

Squared distances come from one matrix product with two more columns,

    s‖x − z‖² + t  =  (x, ‖x‖², 1) · (−2s z, s, s‖z‖² + t),

so that norms, scale and offset cost no pass over the block. Its rounding error is a few units of
ε·s(‖x‖² + ‖z‖²), which for data far from the origin ruins float32: rows and vectors are first
centred by a common point. Sparse rows cannot be centred, and are multiplied in float64 instead.
Where that is not enough (a kernel far narrower than the data is wide), pairs that lie close
together are measured again, by the sum of the squared differences of the rows themselves.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from widemargin.kernels.kernel import (
    Array,
    Kernel,
    ProductKernel,
    cast,
    centred,
    check_parameter,
    common_point,
    dense_if_cheap,
    one_over,
    room_for,
    row_slices,
    square_norms,
    weighted_rows,
    wide_rows,
    with_columns,
)
from widemargin.kernels.l1 import l1_gradient, scaled_l1_distances, signed_sums

# The sparse 1-norm loop is no slower an entry than the dense one, so it wins up to here.
L1_DENSE_SHARE = 0.5
# Rounding of γ‖x − z‖² from which near pairs are measured again, by the type of the values. In
# float32 less would be worth little, and would make many pairs near.
NOTICEABLE = {np.dtype(np.float32): 1e-3, np.dtype(np.float64): 1e-9}
# γ‖x − z‖² beyond which exp(−γ‖x − z‖²) is nothing beside 1.
VANISHES = 100.0
# ‖x − z‖² / ‖x‖² up to which pairs are measured again for the distance itself: the root turns a
# rounding error of 1e-7 in the square, harmless elsewhere, into one of 3e-4. With these the error
# of ‖x − z‖ is below 1e-5 (float32) and 1e-12 (float64) of the norm.
NEAR = {np.dtype(np.float32): 3e-4, np.dtype(np.float64): 3e-8}


@dataclass(frozen=True)
class _Radial(Kernel):
    """A function of x − z and of a width γ, with k(x, x) = 1."""

    gamma: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "gamma", check_parameter(self, "gamma", least=0))

    @property
    def constant_diagonal(self) -> float | None:
        """1."""
        return 1.0

    def diagonal(self, X: Array, index: Array | None = None) -> Array:
        return np.ones(X.shape[0])


class _SquaredDistance(_Radial, ProductKernel):
    """A function of s‖x − z‖² + t."""

    def rounding(self, spread: float, dtype: DTypeLike) -> float:
        unit = float(np.finfo(dtype).eps) / 2
        return unit + min(2.0 * unit * abs(self._line[0]) * spread, NOTICEABLE[np.dtype(dtype)])

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
        if sparse.issparse(Z):
            norms = scale * square_norms(Z, dtype) + offset
            scaled = cast(Z, dtype) * (-2.0 * scale)
            return left, with_columns(scaled, np.full_like(norms, scale), norms)
        right = wide_rows(np.subtract, Z, centre, dtype, spare=2)
        right[:, features + 1] = scale * square_norms(right[:, :features], dtype) + offset
        right[:, features] = scale
        right[:, :features] *= -2.0 * scale
        return left, right

    def _near(self, error: Array, noticeable: float) -> Array:
        """Return the |s|‖x − z‖² below which its rounding `error` shows in k, for each row."""
        return np.full(len(error), VANISHES)

    def _correct(self, product: Array, left: Array, X: Array, Z: Array) -> None:
        # One bound for each row is enough, for near pairs have nearly the same norms.
        scale, offset = self._line
        noticeable = NOTICEABLE[product.dtype]
        error = float(np.finfo(left.dtype).eps) * abs(scale) * _norms(left)
        rows = np.flatnonzero(error > noticeable)
        if len(rows):
            bound = self._near(error[rows], noticeable) + 4.0 * error[rows]
            _measure_near_pairs(product, X, Z, rows, bound, scale, offset)

    def gradient(self, X: Array, Z: Array, weight: Array, values: Array | None = None) -> Array:
        """Return Σ_i weight_ij ∂k(x_i, z_j)/∂z_j; `values` are those of k where they are known."""
        X = cast(dense_if_cheap(X), np.float64)
        Z = cast(Z, np.float64)
        pull = self._pull(self._block64(X, Z) if values is None else values) * weight
        # Σ_i pull_ij (x_i − z_j), centred for the same reason as the distances.
        if not sparse.issparse(X):
            centre = common_point(X, Z)
            X, Z = X - centre, Z - centre
        return weighted_rows(pull, X) - pull.sum(axis=0)[:, None] * Z

    def slopes(self, X: Array, Z: Array, coef: Array) -> Iterator[Array]:
        """Yield Σ_j coef_jp pull_ij (z_j − x_i), of one matrix of kernel values for all p."""
        rows, vectors, unit = centred(X, Z)
        # In units of the largest value, whose square would be no number in float32.
        kernel = replace(self, gamma=self.gamma * unit * unit)
        pull = cast(kernel._pull(kernel.block(rows, vectors)), rows.dtype)
        for column in cast(coef, rows.dtype).T:
            used = np.flatnonzero(column)
            # Most machines use all vectors, of which no copy is needed.
            whole = len(used) == len(column)
            weight = pull * column if whole else pull[:, used] * column[used]
            drawn = weight @ (vectors if whole else vectors[used])
            yield (drawn - weight.sum(axis=1)[:, None] * rows) * (1.0 / unit)


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

    name: ClassVar[str] = "rbf"

    @property
    def _line(self) -> tuple[float, float]:
        return -self.gamma, 0.0

    def _finish(self, values: Array) -> None:
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

    name: ClassVar[str] = "inverse_squared_distance"

    @property
    def _line(self) -> tuple[float, float]:
        return self.gamma, 1.0

    def _near(self, error: Array, noticeable: float) -> Array:
        # An error of 1/k is k² times that in k.
        return np.sqrt(error / noticeable)

    def _finish(self, values: Array) -> None:
        np.clip(values, 1.0, math.inf, out=values)
        np.reciprocal(values, out=values)

    def _pull(self, values: Array) -> Array:
        return 2.0 * self.gamma * values * values


class _Distance(_SquaredDistance):
    """A function of √γ‖x − z‖.

    Attributes
    ----------
    steepest : float
        The largest t |f'(t)| of k = f(t), t = √γ‖x − z‖.
    """

    steepest: ClassVar[float]

    @property
    def _line(self) -> tuple[float, float]:
        return 1.0, 0.0

    def rounding(self, spread: float, dtype: DTypeLike) -> float:
        # At the least distance that is not measured again, an error of u‖x‖² in the square is one
        # of u‖x‖/2√share in the distance; however wide the rows, k falls with it.
        share, unit = NEAR[np.dtype(dtype)], float(np.finfo(dtype).eps) / 2
        wide = 0.5 * math.sqrt(self.gamma * spread / share)
        return unit * (1.0 + min(wide, 0.5 * self.steepest / share))

    def _correct(self, product: Array, left: Array, X: Array, Z: Array) -> None:
        bound = NEAR[product.dtype] * _norms(left)
        _measure_near_pairs(product, X, Z, np.arange(len(bound)), bound, 1.0, 0.0)

    def _finish(self, values: Array) -> None:
        np.clip(values, 0.0, math.inf, out=values)
        np.sqrt(values, out=values)
        values *= math.sqrt(self.gamma)
        self._of_distance(values)

    @abstractmethod
    def _of_distance(self, values: Array) -> None:
        """Turn √γ‖x − z‖ into kernel values, in place."""

    def _pull(self, values: Array) -> Array:
        slope, distance = self._slope(values)
        touching = distance <= 0
        distance[touching] = 1.0
        pull = self.gamma * slope / distance
        pull[touching] = 0.0
        return pull

    @abstractmethod
    def _slope(self, values: Array) -> tuple[Array, Array]:
        """Return −f' and √γ‖x − z‖ of kernel values, or both times the same."""


@dataclass(frozen=True)
class InverseDistance(_Distance):
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

    name: ClassVar[str] = "inverse_distance"
    steepest: ClassVar[float] = 0.25

    def _of_distance(self, values: Array) -> None:
        values += 1.0
        np.reciprocal(values, out=values)

    def _slope(self, values: Array) -> tuple[Array, Array]:
        return values**3, 1.0 - values


@dataclass(frozen=True)
class Exponential(_Distance):
    """The exponential kernel k(x, z) = exp(−√γ‖x − z‖), the Laplacian one of Euclidean distance.

    Its functions have corners where the Gaussian's are smooth, and values come from one matrix
    product, which those of the Laplacian kernel do not.

    Parameters
    ----------
    gamma : float, default=1.0
        γ, not negative.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin.kernels import Exponential
    >>> Exponential(gamma=0.25).block(np.array([[0.0], [2.0]]), np.array([[0.0]])).round(4)
    array([[1.    ],
           [0.3679]])
    """

    name: ClassVar[str] = "exponential"
    steepest: ClassVar[float] = 1.0 / math.e

    def _of_distance(self, values: Array) -> None:
        np.negative(values, out=values)
        np.exp(values, out=values)

    def _slope(self, values: Array) -> tuple[Array, Array]:
        return values, -np.log(np.maximum(values, np.finfo(np.float64).tiny))


def _norms(left: Array) -> Array:
    """Return ‖x‖² from the left operand, which has it in its last column but one."""
    return left[:, [-2]].toarray()[:, 0] if sparse.issparse(left) else left[:, -2]


def _measure_near_pairs(
    values: Array, X: Array, Z: Array, rows: Array, bound: Array, scale: float, offset: float
) -> None:
    """Replace s‖x − z‖² + t by sums of squared differences where |s|‖x − z‖² ≤ bound.

    Only some rows are looked at, and each has a bound of its own.
    """
    sign = math.copysign(1.0, scale)
    some = values if len(rows) == len(values) else values[rows]
    # The least square of a row that may be near; a row's minimum is ten times cheaper than a list
    # of pairs, and few rows have such a pair.
    least = sign * (some.min(axis=1) if sign > 0 else some.max(axis=1)) - sign * offset
    near_rows = np.flatnonzero(least <= bound)
    among, column = np.nonzero(sign * (some[near_rows] - offset) <= bound[near_rows][:, None])
    row = rows[near_rows[among]]
    for pairs in row_slices(len(row), X.shape[1] * 8):
        near, vector = row[pairs], column[pairs]
        x, z = (
            each[of].toarray() if sparse.issparse(each) else each[of]
            for each, of in ((X, near), (Z, vector))
        )
        # Nearby numbers of one type have an exact difference.
        difference = np.subtract(x, z, dtype=np.float64)
        squares = np.einsum("ij,ij->i", difference, difference)
        values[near, vector] = scale * squares + offset


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

    name: ClassVar[str] = "laplacian"

    @classmethod
    def usual_gamma(cls, variance: NDArray[np.float64]) -> float:  # noqa: D102
        return one_over(float(np.sqrt(variance).sum()))

    def block(self, X: Array, Z: Array, out: Array | None = None) -> Array:  # noqa: D102
        out = room_for(X, Z, out)
        scaled_l1_distances(dense_if_cheap(X, L1_DENSE_SHARE), Z, -self.gamma, out)
        return np.exp(out, out=out)

    def gradient(self, X: Array, Z: Array, weight: Array) -> Array:  # noqa: D102
        X = cast(dense_if_cheap(X), np.float64)
        Z = cast(Z, np.float64)
        return l1_gradient(X, Z, self.gamma * self.block(X, Z) * weight)

    def slopes(self, X: Array, Z: Array, coef: Array) -> Iterator[Array]:
        """Yield −γ Σ_j coef_jp k_ij sign(x_i − z_j), of one matrix of kernel values for all p."""
        rows, vectors, unit = centred(X, Z)
        values = replace(self, gamma=self.gamma * unit).block(rows, vectors)
        for column in cast(-self.gamma * coef, rows.dtype).T:
            used = np.flatnonzero(column)
            yield signed_sums(rows, vectors[used], values[:, used] * column[used])
