"""Squared distances of rows from centres in feature space, which are means of few vectors.

With a linear kernel and dense rows they are those of the rows themselves, without cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.expansion import Expansion
from widemargin.kernels import Kernel
from widemargin.kernels.kernel import check_diagonal, check_finite


def in_input_space(kernel: Kernel, vectors: Any) -> bool:
    """Return whether distances are those of the rows themselves."""
    return kernel.name == "linear" and not sparse.issparse(vectors)


@dataclass(frozen=True)
class SquaredDistances:
    """Visitor: squared distances of rows from centres, a column for each.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    vectors : ndarray of shape (m, n_features)
        Vectors of all centres.
    alpha : ndarray of shape (m, n_centres)
        Their shares.
    norm2 : ndarray of shape (n_centres,)
        ‖c‖² of each.
    number : ndarray of int
        The rows' numbers in the data (columns of a precomputed kernel).
    at_a_time : int
        Vectors to set against a block at a time.
    """

    kernel: Kernel
    vectors: NDArray[Any]
    alpha: Matrix
    norm2: Vector
    number: IndexArray
    at_a_time: int = 16384

    def __call__(self, block: Any, where: slice) -> Matrix:
        """Return the distances of a block."""
        with np.errstate(over="ignore", invalid="ignore"):
            if in_input_space(self.kernel, block):
                found = self._of_differences(block)
            else:
                values = Expansion(self.kernel, self.vectors, self.alpha)(block, self.at_a_time)
                diagonal = self.kernel.diagonal(block, self.number[where])
                check_diagonal(self.kernel, diagonal)
                norm2 = self.norm2
                if self.kernel.name == "linear":
                    centres = self.alpha.T @ self.vectors
                    norm2 = np.einsum("ij,ij->i", centres, centres)
                found = diagonal[:, None] - 2.0 * values + norm2
            check_finite(self.kernel, found)
        return np.maximum(found, 0.0)

    def _of_differences(self, block: NDArray[Any]) -> Matrix:
        # Without cancellation, however far from the origin the rows lie.
        centres = self.alpha.T @ self.vectors.astype(np.float64)
        columns = []
        for centre in centres:
            apart = block - centre
            columns.append(np.einsum("ij,ij->i", apart, apart))
        return np.column_stack(columns)
