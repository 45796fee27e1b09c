"""The average gradient outer product: Σ over rows and problems of s_i ∇f_p(x_i) ∇f_p(x_i)ᵀ.

A. Radhakrishnan, D. Beaglehole, P. Pandit, M. Belkin, "Mechanism for feature learning in neural
networks and backpropagation-free machine learning models", Science 2024 (arXiv 2212.13881): the
matrix of (3) there. Its large eigenvalues belong to directions along which decision values change,
its diagonal says how much each feature matters, and one over the root of an eigenvalue is how far a
row must move in that direction to be seen as another.

For a sum f(x) = Σ_j c_j k(x, z_j) the gradients of a block of rows are one matrix product with the
vectors (`Kernel.slopes`), so that n rows, t vectors and d features take O(n t d + n d²) for each
problem and nothing larger than a block of kernel values. A problem of two classes counts at the
rows of those two. In cells, a row has the gradient of the machine of its own cell.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.cells import CellMachines
from widemargin.expansion import Expansion
from widemargin.problem import Problem
from widemargin.rows import Rows

# Numbers for each vector that a block's gradients need: values, pulls, and those of one problem.
_FOR_EACH_VECTOR = 3


def gradient_products(
    problem: Problem,
    machine: Expansion | CellMachines,
    *,
    diagonal: bool = False,
    most_rows: int | None = None,
) -> NDArray[np.float64]:
    """Return Σ s ∇f ∇fᵀ over rows and problems, or its diagonal.

    Parameters
    ----------
    problem : Problem
        Rows, their classes and weights, and which problems feel which classes.
    machine : Expansion or CellMachines
        The functions f_p of all problems.
    diagonal : bool, default=False
        Whether the diagonal is all that is wanted.
    most_rows : int, default=None
        Rows to sum over at the most: the first, which are a sample.

    Returns
    -------
    ndarray of shape (n_features, n_features) or (n_features,)
        The sums, in float64; products are made in float32.
    """
    n, d = problem.n, problem.rows.shape[1]
    chosen = np.arange(n if most_rows is None else min(n, most_rows))
    total = np.zeros(d if diagonal else (d, d))
    parts: list[tuple[Expansion, IndexArray]] = [(machine, chosen)]  # type: ignore[list-item]
    if isinstance(machine, CellMachines):
        cell = machine.partition.nearest(problem.rows.subset(chosen), 1).cell[:, 0]
        parts = [(machine.machine(c), chosen[cell == c]) for c in np.unique(cell).tolist()]
    for each, index in parts:
        for functions, members in _by_class(problem, index):
            of_these = replace(each, coef=each.coef[:, functions], intercept=0.0, groups=None)
            total += _products(problem.rows, members, problem.weight, of_these, diagonal)
    return total


def _by_class(problem: Problem, index: IndexArray) -> list[tuple[IndexArray, IndexArray]]:
    """Return problems with the rows that they feel: all, or class by class where they are pairs."""
    if not problem.partial:
        return [(np.arange(problem.n_problems), index)]
    code = problem.code[index]
    return [
        (np.flatnonzero(signs), index[code == number])
        for number, signs in enumerate(problem.table)
        if (code == number).any()
    ]


def _products(
    rows: Rows, index: IndexArray, weight: Vector, machine: Expansion, diagonal: bool
) -> NDArray[np.float64]:
    d = rows.shape[1]
    total = np.zeros(d if diagonal else (d, d))
    used = machine.coef.any(axis=1)
    if not used.any() or not len(index):
        return total
    visit = _Products(
        replace(machine, vectors=machine.vectors[used], coef=machine.coef[used]),
        weight[index],
        diagonal,
    )
    width = _FOR_EACH_VECTOR * int(used.sum()) + 2 * d
    for part in rows.scan(visit, index, width=width, answer_bytes=total.nbytes):
        total += part
    return total


@dataclass(frozen=True)
class _Products:
    """Visitor: the sums of a block of rows."""

    machine: Expansion
    weight: Vector
    diagonal: bool

    def __call__(self, block: Any, where: slice) -> NDArray[np.float64]:
        root = np.sqrt(self.weight[where]).astype(np.float32)[:, None]
        machine, d = self.machine, block.shape[1]
        total = np.zeros(d if self.diagonal else (d, d))
        for slope in machine.kernel.slopes(block, machine.vectors, machine.coef):
            # Relative to the largest, for squares that float32 can hold.
            unit = float(np.abs(slope).max(initial=0.0)) or 1.0
            weighted = np.asarray(slope * (1.0 / unit), dtype=np.float32) * root
            total += unit**2 * (
                np.einsum("ij,ij->j", weighted, weighted, dtype=np.float64)
                if self.diagonal
                else (weighted.T @ weighted).astype(np.float64)
            )
        return total
