"""Decision functions of several problems over one set of vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.kernels import Kernel
from widemargin.kernels.finite import check_finite
from widemargin.threads import scratch


@dataclass(frozen=True)
class Machines:
    """Decision functions f_p(x) = Σ_j coef[j, p] k(x, v_j) + intercept_p, one a problem.

    Attributes
    ----------
    kernel : Kernel
        k.
    vectors : ndarray of shape (n_vectors, n_features)
        v_j.
    coef : ndarray of shape (n_vectors, n_problems)
        Their coefficients.
    intercept : ndarray of shape (n_problems,)
        Biases.
    dtype : dtype
        Precision of the kernel values.
    at_a_time : int
        Vectors to set against a block of rows at a time.
    """

    kernel: Kernel
    vectors: NDArray[Any]
    coef: NDArray[np.float64]
    intercept: NDArray[np.float64]
    dtype: DTypeLike
    at_a_time: int

    @property
    def width(self) -> int:
        """Numbers that a row needs while it is visited."""
        return min(self.at_a_time, len(self.vectors))

    def __call__(self, block: Any, where: slice) -> NDArray[np.float64]:
        """Return f of a block of rows, of shape (rows, problems)."""
        decision = np.tile(self.intercept, (block.shape[0], 1))
        with np.errstate(over="ignore", invalid="ignore"):
            self._add_values(block, decision)
            check_finite(self.kernel, decision)
        return decision

    def _add_values(self, block: Any, decision: NDArray[np.float64]) -> None:
        for first in range(0, len(self.vectors), self.at_a_time):
            vectors = self.vectors[first : first + self.at_a_time]
            coef = self.coef[first : first + self.at_a_time]
            values = scratch((block.shape[0], len(vectors)), self.dtype)
            self.kernel.block(block, vectors, out=values)
            decision += values @ coef.astype(self.dtype, copy=False)
