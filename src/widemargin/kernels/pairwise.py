"""Rows made ready for kernel values with each other: centred once, in float32, with their norms.

A block of values is then one matrix product and one compiled pass over it (``radial_loops``), or
for the Laplacian kernel one over the rows. `Kernel.block` makes its operands anew for each block,
which for many small blocks, or many vectors of many features, costs more than the values.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.kernels.distances import (
    NEAR,
    NOTICEABLE,
    RBF,
    Exponential,
    InverseDistance,
    InverseSquaredDistance,
    Laplacian,
)
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.l1 import NOTICEABLE as NOTICEABLE_L1
from widemargin.threads import Compiled, scratch

loops = Compiled("widemargin.kernels.radial_loops")
l1_loops = Compiled("widemargin.kernels.l1_loops")

_FLOAT32 = np.dtype(np.float32)
_EPS = float(np.finfo(np.float32).eps)
_KINDS: dict[type[Kernel], str] = {
    RBF: "GAUSSIAN",
    InverseSquaredDistance: "INVERSE_SQUARED",
    InverseDistance: "INVERSE",
    Exponential: "EXPONENTIAL",
    Laplacian: "LAPLACIAN",
}


def can_be_centred(kernel: Kernel) -> bool:
    """Return whether a kernel depends on differences of rows in a way that is compiled."""
    return type(kernel) in _KINDS


def compiled_kernel(kernel: Any) -> tuple[float, np.float32, int]:
    """Return what compiled loops are told of a kernel: a unit, what is near, and its number.

    Differences of rows are multiplied by the unit; see ``radial_loops.of_products``.
    """
    unit = kernel.gamma if type(kernel) is Laplacian else math.sqrt(kernel.gamma)
    kind: int = getattr(loops, _KINDS[type(kernel)])
    return unit, np.float32(NEAR[_FLOAT32]), kind


def accurate(kernel: Kernel, largest: float) -> bool:
    """Return whether float32 leaves no noticeable error in values of rows up to a norm."""
    if type(kernel) is Laplacian:
        return _EPS * largest <= NOTICEABLE_L1
    if _KINDS[type(kernel)] in ("GAUSSIAN", "INVERSE_SQUARED"):
        return _EPS * largest <= NOTICEABLE[_FLOAT32]
    return 4.0 * largest < float(np.finfo(np.float32).max)


def spread_of(kernel: Kernel, norms: NDArray[np.float32]) -> float:
    """Return the mean squared distance from the common point, in the units of the rows."""
    unit = compiled_kernel(kernel)[0]
    if type(kernel) is Laplacian or unit == 0.0:
        return 0.0
    return float(norms.mean(dtype=np.float64)) / unit**2


@dataclass(frozen=True)
class CentredRows:
    """Rows about a common point, in units of the kernel's width: its γ is then one.

    Attributes
    ----------
    kernel : Kernel
        A kernel for which `can_be_centred`.
    points : ndarray of float32 of shape (n, d)
        The rows, C-contiguous.
    norms : ndarray of float32 of shape (n,)
        Their squared norms, or for the Laplacian kernel their 1-norms.
    """

    kernel: Any
    points: NDArray[np.float32]
    norms: NDArray[np.float32]

    @classmethod
    def room(cls, kernel: Kernel, n: int, n_features: int) -> CentredRows:
        """Return room for rows, which `put` fills."""
        points = np.empty((n, n_features), dtype=np.float32)
        return cls(kernel, points, np.empty(n, dtype=np.float32))

    def put(self, block: NDArray[Any], middle: NDArray[np.float64], where: slice) -> None:
        """Write a block of rows about a point."""
        one_norm = type(self.kernel) is Laplacian
        points, norms = self.points[where], self.norms[where]
        unit = compiled_kernel(self.kernel)[0]
        loops.centre(block, middle.astype(block.dtype), unit, one_norm, points, norms)

    @property
    def accurate(self) -> bool:
        """Whether float32 leaves no noticeable error in any value."""
        return accurate(self.kernel, float(self.norms.max(initial=0.0)))

    def subset(self, index: NDArray[np.intp], lasting: bool = True) -> CentredRows:
        """Return some of the rows, copied; into memory of this thread if not `lasting`."""
        shape = (len(index), self.points.shape[1])
        points = np.empty(shape, np.float32) if lasting else scratch(shape, np.float32, "centred")
        np.take(self.points, index, axis=0, out=points, mode="clip")
        return CentredRows(self.kernel, points, self.norms[index])

    def values(
        self, left: NDArray[np.intp] | slice, right: NDArray[np.intp] | slice, out: NDArray[Any]
    ) -> None:
        """Write the values k(x_i, x_j) of i in `left` and j in `right` into `out`."""
        x, z = self.points[left], self.points[right]
        if type(self.kernel) is Laplacian:
            l1_loops.dense(x, np.ascontiguousarray(z.T), np.float32(-1.0), out)
            loops.exponentials(out)
            return
        np.matmul(x, z.T, out=out)
        _, near, kind = compiled_kernel(self.kernel)
        loops.of_products(out, x, z, self.norms[left], self.norms[right], near, kind)
