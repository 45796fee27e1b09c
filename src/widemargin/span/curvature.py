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
# Seconds for: a value read from memory for one or two products; one multiplication of a product
# with a few columns; one of a matrix product or a factorisation in float64. Only their ratios
# matter.
_READ, _PRODUCT, _MATRIX = 0.4e-9, 0.02e-9, 0.02e-9


class Curvature:
    """Factors of the Newton matrices, formed when they pay.

    Problems that differ only in the fold that they leave out share a matrix, and problems whose C
    are within a factor of ten share the sum in it: their active rows are much the same. Where the
    factors would not fit into `room`, problems share more: first a factor with those of other C,
    then with those of other labels.

    Parameters
    ----------
    problems : Problems
        The problems.
    values : KernelValues
        Kernel values of their rows.
    room : int
        Bytes that factors may take.
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

    def stale(self) -> bool:
        """Return whether steps with these factors have cost more than new ones would."""
        return not self._factors or self._spent > self._cost

    def used(self, columns: int, n_rows: int) -> None:
        """Take note of a step."""
        self._spent += 2 * n_rows * self.values.size * max(_READ, 2 * columns * _PRODUCT)

    def form(self, basis: Basis, scores: Scores, live: IndexArray, moved: bool) -> None:
        """Form and factorise the matrices of the live problems, at the given scores.

        At zero (not `moved`) every row is inside every margin, and one sum serves all labels.
        """
        leaders = np.unique(self.leader[live])
        size = 4 * (basis.size + 1) ** 2
        groups = self._groups(leaders, by_labels=moved)
        alone = len(leaders) * size <= self.room
        if not alone and len(groups) * size > self.room:
            groups, moved = self._groups(leaders, by_labels=False), False
        self._factors = {}
        self._spent, self._cost = 0.0, 0.0
        everything = np.arange(len(scores))
        inside = [self._inside(scores, group) if moved else everything for group in groups]
        one_by_one = len(groups) == 1

        def work(task: tuple[IndexArray, IndexArray]) -> list[NDArray[np.float32]]:
            group, index = task
            total = self._sum(index, in_threads=one_by_one)
            C = self.problems.C[group]
            if alone:
                return [_factorised(basis, value * total) for value in C]
            return [_factorised(basis, float(np.median(C)) * total)] * len(group)

        threads = 1 if one_by_one else self.problems.threads
        tasks = list(zip(groups, inside, strict=True))
        for (group, index), factors in zip(tasks, ordered_map(work, tasks, threads), strict=True):
            self._factors.update(zip(group.tolist(), factors, strict=True))
            rows = min(len(index), _ROWS * basis.size) + len(group) * basis.size / 3
            self._cost += _MATRIX * rows * basis.size**2

    def _groups(self, leaders: IndexArray, by_labels: bool) -> list[IndexArray]:
        """Return the problems that share a sum: the same power of ten of C, and labels if asked."""
        decade = np.floor(np.log10(self.problems.C[leaders]))
        kinds = decade[None]
        if by_labels:
            kinds = np.vstack([decade, self.problems.table[:, leaders]])
        _, group = np.unique(kinds, axis=1, return_inverse=True)
        return [leaders[group.ravel() == g] for g in range(group.max() + 1)]

    def _inside(self, scores: Scores, group: IndexArray) -> IndexArray:
        """Return the rows inside the margin of the group's middle problem."""
        order = np.argsort(self.problems.C[group])
        return self.problems.active(scores, int(group[order[len(group) // 2]]))

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

    def _sum(self, index: IndexArray, in_threads: bool) -> Matrix:
        """Return 2 Σ s (k_z, 1)(k_z, 1)ᵀ over rows, estimated from the first of them."""
        size = self.values.size + 1
        used = index[: _ROWS * size]
        total = np.zeros((size, size))
        if not len(used):
            return total
        weight = self.problems.weight
        factor = 2.0 * weight[index].sum() / weight[used].sum()

        def part(begin: int) -> Matrix:
            some = used[begin : begin + _CHUNK]
            features = scratch((len(some), size), np.float64)
            self.values.take(some, features[:, :-1])
            features[:, -1] = 1.0
            features *= np.sqrt(factor * weight[some])[:, None]
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
