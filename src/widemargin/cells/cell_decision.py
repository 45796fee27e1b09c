"""The decision function of cells: each row is answered by its own cell, or by two near an edge.

Blending. With the distances d₁ ≤ d₂ ≤ d₃ from the three nearest centres, the two nearest cells
have the weights

    w₁ ∝ 1,     w₂ ∝ max(0, 1 − (d₂ − d₁) / (b d₁)) · (d₃ − d₂) / (d₃ − d₁),

b the width of the blend. At an edge, d₁ = d₂, both are the same, whichever is the first; where the
second and the third change places, and where the blend ends, w₂ is zero. So the decision function
has no jump anywhere but where three cells meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.cells.partition import Near, Partition
from widemargin.device import Array
from widemargin.expansion import Expansion
from widemargin.kernels import Kernel
from widemargin.rows import Rows, rows_per_block
from widemargin.threads import ordered_map

# Rows that a cell answers at a time, at the most.
_AT_A_TIME = 4096


@dataclass(frozen=True)
class CellMachines:
    """The machines of all cells.

    Attributes
    ----------
    partition : Partition
        The cells.
    kernel : Kernel
        The kernel of all machines, or one for each cell.
    vectors : ndarray of shape (n_vectors, n_features)
        Vectors, those of one cell after those of another.
    coef : ndarray of shape (n_vectors, n_problems)
        Their coefficients.
    offsets : ndarray of int of shape (n_cells + 1,)
        Where the vectors of each cell begin.
    intercept : ndarray of shape (n_cells, n_problems)
        Biases.
    blend : float
        b; 0 for none.
    """

    partition: Partition
    kernel: Kernel | list[Kernel]
    vectors: NDArray[Any]
    coef: Matrix
    offsets: IndexArray
    intercept: Matrix
    blend: float = 0.0

    def values(self, rows: Rows, at_a_time: int = _AT_A_TIME) -> Matrix:
        """Return f of all rows, of shape (n, n_problems).

        Parameters
        ----------
        rows : Rows
            The rows.
        at_a_time : int, default=4096
            Rows that a cell answers at a time, at the most.
        """
        near = self.partition.nearest(rows, 3 if self.blend > 0 else 1)
        weight = blend_weights(near.distance, self.blend)
        values = np.zeros((rows.shape[0], self.intercept.shape[1]))

        def answer(part: tuple[int, IndexArray, Matrix]) -> tuple[IndexArray, Matrix]:
            cell, index, share = part
            block = rows.block(index)
            return index, share[:, None] * self.machine(cell)(block, rows.vectors_at_a_time)

        largest = min(int(np.diff(self.offsets).max()), rows.vectors_at_a_time)
        most = rows_per_block(rows.memory, 8 * max(1, largest), at_a_time)
        for index, part in ordered_map(answer, _by_cell(near, weight, most), rows.threads):
            values[index] += part
        return values

    def machine(self, cell: int) -> Expansion:
        """Return the machine of a cell."""
        where = slice(self.offsets[cell], self.offsets[cell + 1])
        kernel = self.kernel[cell] if isinstance(self.kernel, list) else self.kernel
        return Expansion(kernel, self.vectors[where], self.coef[where], self.intercept[cell])


def blend_weights(distance: Array, blend: float, xp: Any = np) -> Any:
    """Return the weights of the nearest and the second nearest cell of each row.

    Parameters
    ----------
    distance : array of shape (n, count)
        Distances from the nearest centres, the nearest first.
    blend : float
        b.
    xp : module, default=numpy
        The namespace of the distances.
    """
    first = distance[:, 0]
    if blend <= 0 or distance.shape[1] < 2:
        return xp.ones_like(first)[:, None]
    second, least = distance[:, 1], float(np.finfo(float).tiny)
    share = xp.clip(blend * first - (second - first), 0.0, None)
    share = share / xp.clip(blend * first, least, None)
    if distance.shape[1] > 2:
        third = distance[:, 2]
        share = share * (third - second) / xp.clip(third - first, least, None)
    return xp.stack([1.0 / (1.0 + share), share / (1.0 + share)], axis=1)


def _by_cell(
    near: Near, weight: Matrix, at_a_time: int
) -> Iterator[tuple[int, IndexArray, Matrix]]:
    """Yield each cell with some of the rows that it answers, and its weights for them."""
    n, count = weight.shape
    row = np.repeat(np.arange(n), count)
    cell, share = near.cell[:, :count].ravel(), weight.ravel()
    asked = share > 0
    row, cell, share = row[asked], cell[asked], share[asked]
    order = np.argsort(cell, kind="stable")
    row, cell, share = row[order], cell[order], share[order]
    # Where another cell begins.
    edges = np.flatnonzero(np.diff(cell, prepend=-1, append=-1))
    for first, last in pairwise(edges):
        for begin in range(first, last, at_a_time):
            part = slice(begin, min(int(last), begin + at_a_time))
            yield int(cell[first]), row[part], share[part]
