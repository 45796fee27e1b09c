"""Kernel values in any namespace: an elementwise function of one product, or of the 1-norm.

As in ``kernels``: k(x, z) = f(aᵀb) with operands a of the rows and b of the vectors. Operands of
all rows are made once, so that a block of values is one matrix product and a few passes over it.

Squared distances are products of (x, ‖x‖², 1) and (−2s z, s, s‖z‖² + t), with rows about a common
point. Where float32 would not do (a kernel far narrower than the data is wide, and every kernel of
the distance itself, whose root enlarges the rounding of near pairs), operands are float64, and
values are rounded at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.device.in_place import distances_l1, product, replaced
from widemargin.device.namespace import Array, Device
from widemargin.kernels import (
    RBF,
    CosinePower,
    Exponential,
    InverseDistance,
    InverseSquaredDistance,
    Kernel,
    Laplacian,
    Linear,
    NormalizedPolynomial,
    Polynomial,
    Sigmoid,
)
from widemargin.kernels.distances import NOTICEABLE

_FLOAT32 = np.dtype(np.float32)
_EPS = float(np.finfo(np.float32).eps)
_SQUARED = (RBF, InverseSquaredDistance)
_DISTANCE = (InverseDistance, Exponential)
_RADIAL = (*_SQUARED, *_DISTANCE)
_PLAIN = (Linear, Polynomial, Sigmoid)
_NORMALISED = (NormalizedPolynomial, CosinePower)


def check_on_device(kernel: Kernel, device: Device | str) -> None:
    """Raise if a kernel has no values on a device."""
    if not isinstance(kernel, _RADIAL + _PLAIN + _NORMALISED + (Laplacian,)):
        raise ValueError(
            f"kernel={kernel.name!r} is not computed on a device such as {str(device)!r}; use "
            "device='cpu', or a kernel by its name, such as 'rbf'."
        )


def can_be_shifted(kernel: Kernel) -> bool:
    """Return whether a kernel depends on differences of rows only."""
    return isinstance(kernel, (*_RADIAL, Laplacian))


def needs_wide(kernel: Any, largest: float) -> bool:
    """Return whether rows up to a squared norm need operands in float64."""
    if isinstance(kernel, _SQUARED):
        return bool(_EPS * kernel.gamma * largest > NOTICEABLE[_FLOAT32])
    return isinstance(kernel, _DISTANCE)


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel on a device, for rows about a point.

    Attributes
    ----------
    kernel : Kernel
        k.
    device : Device
        Where rows and values are.
    centre : array of float64 of shape (d,)
        The common point, on the device.
    dtype : dtype
        Precision of the values.
    wide : bool
        Whether operands are float64 whatever the values are.
    """

    kernel: Any
    device: Device
    centre: Array
    dtype: np.dtype[Any]
    wide: bool

    @classmethod
    def about(
        cls, kernel: Kernel, device: Device, sample: NDArray[Any], dtype: DTypeLike
    ) -> DeviceKernel:
        """Return a kernel for rows of which some are known."""
        check_on_device(kernel, device)
        rows = np.asarray(sample, dtype=np.float64)
        centre = rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1])
        if not can_be_shifted(kernel):
            centre = np.zeros_like(centre)
        largest = 0.0
        if isinstance(kernel, _SQUARED) and len(rows):
            with np.errstate(over="ignore"):
                largest = float(np.square(rows - centre).sum(axis=1).max())
        wide = needs_wide(kernel, largest)
        return cls(kernel, device, device.array(centre), np.dtype(dtype), wide)

    @classmethod
    def of_differences(
        cls, kernel: Kernel, device: Device, n_features: int, largest: float, dtype: DTypeLike
    ) -> DeviceKernel:
        """Return a kernel for rows that are about their point already.

        Parameters
        ----------
        kernel : Kernel
            k.
        device : Device
            Where rows are.
        n_features : int
            Features.
        largest : float
            The largest squared norm of a row.
        dtype : dtype
            Precision of the values.
        """
        centre = device.zeros((n_features,), np.float64)
        return cls(kernel, device, centre, np.dtype(dtype), needs_wide(kernel, largest))

    @property
    def operand_dtype(self) -> np.dtype[Any]:
        """Precision of the operands."""
        return np.dtype(np.float64) if self.wide else self.dtype

    def columns(self, n_features: int) -> int:
        """Return how many columns operands have."""
        if isinstance(self.kernel, _RADIAL):
            return n_features + 2
        return n_features + isinstance(self.kernel, NormalizedPolynomial)

    def rows(self, X: Array) -> Array:
        """Return the operand of rows that lie on the device."""
        return self._operand(X, vectors=False)

    def rows_as_vectors(self, X: Array) -> Array:
        """Return the operand of rows that lie on the device and are vectors."""
        return self._operand(X, vectors=True)

    def vectors(self, Z: NDArray[Any]) -> Array:
        """Return the operand of vectors, from NumPy."""
        return self._operand(self.device.array(np.asarray(Z, dtype=np.float64)), vectors=True)

    def vectors_there(self, Z: Array) -> Array:
        """Return the operand of vectors that lie on the device."""
        return self._operand(Z, vectors=True)

    def _operand(self, X: Array, vectors: bool) -> Array:
        xp, kernel = self.device.xp, self.kernel
        kind = self.device.dtype(self.operand_dtype)
        # Centred and scaled in float64, and rounded once.
        exact = xp.astype(X, xp.float64) - self.centre
        if isinstance(kernel, Laplacian):
            return xp.astype(exact * kernel.gamma, kind)
        if isinstance(kernel, _PLAIN):
            gamma = getattr(kernel, "gamma", 1.0) if vectors else 1.0
            return xp.astype(exact * gamma, kind)
        if isinstance(kernel, _NORMALISED):
            return xp.astype(self._unit(exact), kind)
        scale, offset = _line(kernel)
        rounded = xp.astype(exact, kind)
        again = xp.astype(rounded, xp.float64)
        norms = xp.sum(again * again, axis=1, keepdims=True)
        ones = xp.ones_like(norms)
        if not vectors:
            return xp.concat([rounded, xp.astype(norms, kind), xp.astype(ones, kind)], axis=1)
        parts = (rounded * (-2.0 * scale), ones * scale, norms * scale + offset)
        return xp.concat([xp.astype(part, kind) for part in parts], axis=1)

    def _unit(self, X: Array) -> Array:
        """Return (√γ x, √c) / √(γ‖x‖² + c), zero for a row without a direction."""
        xp = self.device.xp
        gamma, coef0 = _normalised(self.kernel)
        norms = xp.sqrt(xp.sum(X * X, axis=1, keepdims=True) * gamma + coef0)
        inverse = xp.where(norms > 0, 1.0 / xp.where(norms > 0, norms, xp.ones_like(norms)), 0.0)
        unit = X * (inverse * math.sqrt(gamma))
        if not isinstance(self.kernel, NormalizedPolynomial):
            return unit
        return xp.concat([unit, inverse * math.sqrt(coef0)], axis=1)

    def values(self, rows: Array, vectors: Array, out: Array | None = None) -> Array:
        """Return k from operands, written into `out` if there is one."""
        direct = None if self.wide and self.dtype == _FLOAT32 else out
        if isinstance(self.kernel, Laplacian):
            found = distances_l1(self.device, rows, vectors)
            direct = None
        else:
            found = product(self.device, rows, vectors.mT, direct)
        found = self._finished(found)
        if direct is None or found is not direct:
            found = self.device.xp.astype(found, self.device.dtype(self.dtype), copy=False)
        if out is None or found is out:
            return found
        out[...] = found
        return out

    def block(self, X: Array, Z: NDArray[Any]) -> Array:
        """Return k of rows on the device and vectors of NumPy's."""
        return self.values(self.rows(X), self.vectors(Z))

    def _finished(self, values: Array) -> Array:
        kernel, device = self.kernel, self.device
        if isinstance(kernel, Laplacian):
            return replaced(device, "exp", replaced(device, "negative", values))
        if isinstance(kernel, RBF):
            return replaced(device, "exp", replaced(device, "clip", values, None, 0.0))
        if isinstance(kernel, InverseSquaredDistance):
            return replaced(device, "reciprocal", replaced(device, "clip", values, 1.0, None))
        if isinstance(kernel, _DISTANCE):
            values = replaced(device, "sqrt", replaced(device, "clip", values, 0.0, None))
            values *= math.sqrt(kernel.gamma)
            if isinstance(kernel, Exponential):
                return replaced(device, "exp", replaced(device, "negative", values))
            values += 1.0
            return replaced(device, "reciprocal", values)
        if isinstance(kernel, _NORMALISED):
            return _raised(values, kernel.degree)
        if isinstance(kernel, Linear):
            return values
        if kernel.coef0 != 0.0:
            values += kernel.coef0
        if isinstance(kernel, Sigmoid):
            return replaced(device, "tanh", values)
        return _raised(values, kernel.degree)


def _line(kernel: Any) -> tuple[float, float]:
    """Return s and t of s‖x − z‖² + t."""
    if isinstance(kernel, RBF):
        return -kernel.gamma, 0.0
    if isinstance(kernel, InverseSquaredDistance):
        return kernel.gamma, 1.0
    return 1.0, 0.0


def _normalised(kernel: Any) -> tuple[float, float]:
    """Return γ and c of a power of the cosine."""
    if isinstance(kernel, NormalizedPolynomial):
        return kernel.gamma, kernel.coef0
    return 1.0, 0.0


def _raised(values: Array, exponent: float) -> Array:
    """Return a power, a whole one by repeated squaring."""
    if exponent != int(exponent) or exponent == 0:
        return values**exponent
    left, result = int(exponent), None
    while left:
        if left & 1:
            result = values if result is None else result * values
        left >>= 1
        if left:
            values = values * values
    return result
