"""Newton matrices of squared-hinge problems in a span.

    M = [K_z 0; 0 1] + 2C Σ_{i ∈ A} s_i (k_z(x_i), 1)(k_z(x_i), 1)ᵀ,      A: the rows inside the
    margin.

A few times r rows determine an r × r matrix well enough to precondition with, so where A is larger
its first ones stand for all. The sum is taken in float64: kernel values rounded to float32 are
still *some* features, and the exact matrix of those is positive definite; a sum in float32 is not.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin.linalg import cholesky_in_place, solve_cholesky
from widemargin.rows.base import IndexArray
from widemargin.span.basis import Basis
from widemargin.span.problems import Problems, Scores
from widemargin.span.values import KernelValues
from widemargin.threads import ordered_map, scratch

Matrix = NDArray[np.float64]

# Rows, in multiples of the vectors, that stand for all rows inside the margin.
_ROWS = 16
# Rows whose products are added at a time.
_CHUNK = 2048
_GRAM_DTYPE = np.float64
# Seconds for: a value read from memory for one or two products; one multiplication of a product
# with a few columns; one of a matrix product or a factorisation in float64. Only their ratios
# matter.
_READ, _PRODUCT, _MATRIX = 0.15e-9, 0.015e-9, 0.02e-9


class Curvature:
    """Factors of the Newton matrices, formed when they pay.

    Problems that differ only in the fold that they hold out share a matrix.
    """

    def __init__(self, problems: Problems, values: KernelValues, room: int) -> None:
        self.problems = problems
        self.values = values
        self.room = room
        # The first problem with the same labels and the same C stands for all of them.
        kinds = np.vstack([problems.table, problems.C[None]])
        _, first, group = np.unique(kinds, axis=1, return_index=True, return_inverse=True)
        self.leader: IndexArray = first[group.ravel()]
        self.forget()

    def forget(self) -> None:
        """Drop the factors: rows or vectors have changed."""
        self._factors: dict[int, NDArray[np.float32]] = {}
        self._cost = 0.0
        self._spent = 0.0

    @property
    def ready(self) -> bool:
        """Whether there are factors."""
        return bool(self._factors)

    def stale(self, basis: Basis, live: IndexArray, n_rows: int) -> bool:
        """Return whether steps with these factors have cost more than new ones would."""
        return not self._factors or self._spent > self._cost

    def used(self, live: IndexArray, n_rows: int) -> None:
        """Take note of a step."""
        columns = len(live)
        self._spent += 2 * n_rows * self.values.size * max(_READ, 2 * columns * _PRODUCT)

    def form(self, basis: Basis, scores: Scores, live: IndexArray, moved: bool) -> None:
        """Form and factorise the matrices of the live problems, at the given scores."""
        leaders = np.unique(self.leader[live])
        self._spent = 0.0
        if not moved:
            # At zero every row is inside every margin: one sum serves all.
            everything = np.arange(len(scores))
            shared = self._sum(everything, self.problems.weight)
            self._cost = _MATRIX * min(len(scores), _ROWS * basis.size) * basis.size**2
            for C in np.unique(self.problems.C[leaders]):
                factor = _factorised(basis, C * shared)
                for p in leaders[self.problems.C[leaders] == C]:
                    self._factors[int(p)] = factor
            return
        index = [self.problems.active(scores, int(p)) for p in leaders]
        size = sum(min(len(i), _ROWS * basis.size) for i in index)
        self._cost = _MATRIX * basis.size**2 * (size + len(leaders) * basis.size / 3)
        one_at_a_time = 1 if len(leaders) == 1 else self.problems.threads

        def work(task: tuple[int, IndexArray]) -> NDArray[np.float32]:
            p, inside = task
            weight = self.problems.C[p] * self.problems.weight
            return _factorised(basis, self._sum(inside, weight, len(leaders) == 1))

        tasks = [(int(p), inside) for p, inside in zip(leaders, index, strict=True)]
        for (p, _), factor in zip(tasks, ordered_map(work, tasks, one_at_a_time), strict=True):
            self._factors[p] = factor

    def solve(self, right: Matrix, live: IndexArray) -> Matrix:
        """Return M⁻¹ of each column, by the factor of its problem."""
        answer = np.empty_like(right)
        leader = self.leader[live]
        kinds: dict[int, list[int]] = {}
        for j, p in enumerate(leader):
            kinds.setdefault(id(self._factors[int(p)]), []).append(j)

        def work(columns: list[int]) -> None:
            factor = self._factors[int(leader[columns[0]])]
            scale = np.abs(right[:, columns]).max(axis=0)
            scale[scale == 0.0] = 1.0
            # Scaled, for a gradient may leave the range of float32.
            answer[:, columns] = solve_cholesky(factor, right[:, columns] / scale) * scale

        for _ in ordered_map(work, kinds.values(), self.problems.threads):
            pass
        return answer

    def _sum(self, index: IndexArray, weight: Matrix, in_threads: bool = True) -> Matrix:
        """Return 2 Σ weight (k_z, 1)(k_z, 1)ᵀ over rows, estimated from the first of them."""
        size = self.values.size + 1
        used = index[: int(_ROWS * size)]
        total = np.zeros((size, size))
        if not len(used):
            return total
        factor = 2.0 * weight[index].sum() / weight[used].sum()

        def part(begin: int) -> Matrix:
            some = used[begin : begin + _CHUNK]
            features = scratch((len(some), size), _GRAM_DTYPE)
            self.values.take(some, features[:, :-1])
            features[:, -1] = 1.0
            features *= np.sqrt(factor * weight[some]).astype(features.dtype)[:, None]
            # NumPy sees a matrix and its own transpose, and does half the work.
            product: Matrix = features.T @ features
            return product

        threads = self.problems.threads if in_threads else 1
        for product in ordered_map(part, range(0, len(used), _CHUNK), threads):
            total += product
        return total


def _factorised(basis: Basis, matrix: Matrix) -> NDArray[np.float32]:
    """Return the Cholesky factor of K_z plus a matrix, which is overwritten."""
    r = basis.size
    matrix[:r, :r] += basis.gram
    matrix[r, r] += 1.0
    diagonal = np.diagonal(matrix).copy()
    jitter = 0.0
    while not cholesky_in_place(matrix):
        # Rounding, at extreme weights. A preconditioner may be changed at will.
        jitter = max(10.0 * jitter, 1e-14 * float(diagonal.max()))
        upper = np.triu_indices(r + 1, 1)
        matrix[upper] = matrix.T[upper]
        matrix[np.diag_indices(r + 1)] = diagonal + jitter
    return matrix.astype(np.float32)
