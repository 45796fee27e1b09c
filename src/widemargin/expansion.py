"""Functions in the span of a few vectors, and their values at rows.

Every fitted machine, feature and map of this library is a sum over vectors. Here, and nowhere
else, kernel values of rows are multiplied with coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.certificate import Certificate
from widemargin.device import Array, Device, blocks_on_device, kernel_with, to_numpy
from widemargin.kernels import Kernel
from widemargin.kernels.kernel import check_finite
from widemargin.loop import Resources, Stop
from widemargin.rows import Rows
from widemargin.threads import scratch


@dataclass(frozen=True)
class Expansion:
    """Functions f_p(x) = Σ_j coef[j, p] k(x, v_j) + intercept_p.

    Attributes
    ----------
    kernel : Kernel
        k.
    vectors : ndarray of shape (n_vectors, n_features)
        v_j.
    coef : ndarray of shape (n_vectors, n_functions)
        Their coefficients.
    intercept : ndarray of shape (n_functions,) or float
        What is added to the sums.
    dtype : dtype
        Precision of the kernel values.
    groups : sequence of (slice, ndarray of int) or None
        Parts of the vectors, in order, and the functions in which they have coefficients; None
        where every vector may have one in every function.
    """

    kernel: Kernel
    vectors: NDArray[Any]
    coef: Matrix
    intercept: NDArray[np.float64] | float = 0.0
    # float64 by default: coefficients of both signs enlarge the rounding of kernel values.
    dtype: DTypeLike = np.float64
    groups: Sequence[tuple[slice, IndexArray]] | None = None

    @property
    def width(self) -> int:
        """How many functions there are."""
        return int(self.coef.shape[1])

    def values(
        self, rows: Rows, index: IndexArray | None = None, dtype: DTypeLike = np.float64
    ) -> NDArray[Any]:
        """Return the values at rows (all if index is None), a column for each function."""
        at_a_time = rows.vectors_at_a_time
        visit = partial(self._at_block, at_a_time=at_a_time)
        width = min(at_a_time, len(self.vectors)) + self.width
        return rows.gather(visit, index, width=width, dtype=dtype)

    def values_there(self, rows: Rows) -> Array:
        """Return the values at all rows, in float64 on the rows' device.

        Vectors stay there until those of NumPy's, from which they were copied, are gone.
        """
        device, visit = rows.device, self.there(rows.device)
        total = device.empty((rows.shape[0], self.width), np.float64)
        for block, where in blocks_on_device(rows, sum(self.vectors.shape) + 2):
            total[where, :] = visit(block)
        check_finite(self.kernel, to_numpy(device.xp.sum(total, axis=0)))
        return total

    def there(self, device: Device) -> Callable[[Array], Array]:
        """Return what gives the values at a block of rows on a device, in float64."""
        kernel, vectors = kernel_with(self.kernel, device, self.vectors)
        coef = device.array(self.coef, np.float64)
        bias = device.array(np.broadcast_to(self.intercept, self.coef.shape[1:]), np.float64)

        def values(block: Array) -> Array:
            return device.xp.matmul(kernel.values(kernel.rows(block), vectors), coef) + bias

        return values

    def _at_block(self, block: Any, where: slice, at_a_time: int) -> Matrix:
        return self(block, at_a_time)

    def __call__(self, block: Any, at_a_time: int = Rows.vectors_at_a_time) -> Matrix:
        """Return the values at a block of rows, setting it against some vectors at a time."""
        total = np.empty((block.shape[0], self.width))
        total[...] = self.intercept
        everything = ((slice(0, len(self.vectors)), None),)
        with np.errstate(over="ignore", invalid="ignore"):
            for where, functions in everything if self.groups is None else self.groups:
                for first in range(where.start, where.stop, at_a_time):
                    part = slice(first, min(where.stop, first + at_a_time))
                    coef = self.coef[part] if functions is None else self.coef[part][:, functions]
                    values = scratch((block.shape[0], len(coef)), self.dtype)
                    self.kernel.block(block, self.vectors[part], out=values)
                    product = values @ coef.astype(self.dtype, copy=False)
                    if functions is None:
                        total += product
                    else:
                        total[:, functions] += product
            check_finite(self.kernel, total)
        return total


@dataclass(frozen=True)
class Fitted:
    """The machines of all problems as an engine returns them.

    Attributes
    ----------
    vectors : ndarray of shape (n_vectors, n_features)
        Their vectors.
    index : ndarray of int of shape (n_vectors,) or None
        The rows of the problem that they are, if they are rows.
    coef : ndarray of shape (n_vectors, n_problems)
        Their coefficients.
    intercept : ndarray of shape (n_problems,)
        Biases.
    certificate : Certificate
        What was proved, and what it cost.
    stop : Stop
        How the engine ended.
    of_pairs : bool
        Whether problems are pairs of classes, and a vector has coefficients in the pairs of its
        own class only.
    """

    vectors: NDArray[Any]
    index: IndexArray | None
    coef: Matrix
    intercept: NDArray[np.float64]
    certificate: Certificate
    stop: Stop
    of_pairs: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class Earlier:
    """What an earlier fit to the same rows and classes found, to start from.

    Attributes
    ----------
    index : ndarray of int of shape (n_vectors,)
        Rows of the problem that are its vectors.
    coef : ndarray of shape (n_vectors, n_problems)
        Their coefficients.
    intercept : ndarray of shape (n_problems,)
        Biases.
    """

    index: IndexArray
    coef: Matrix
    intercept: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class MachineOptions(Resources):
    """What every engine is told beside the problem; engines add what only they need.

    Attributes
    ----------
    tol : float
        Relative duality gap to stop at.
    max_iter : int
        Steps at the most.
    max_vectors : int or None
        Vectors at the most; None leaves it to the engine.
    earlier : Earlier or None
        A solution to start from.
    loss : {"squared_hinge", "hinge"}
        The squared hinge with the bias regularised, or the hinge with a free bias.
    """

    tol: float = 1e-3
    max_iter: int = 10_000
    max_vectors: int | None = None
    earlier: Earlier | None = None
    loss: str = "squared_hinge"
