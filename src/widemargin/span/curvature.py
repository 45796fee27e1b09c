"""Newton matrices of squared-hinge problems in a span.

    M = [K_z 0; 0 1] + 2C Σ_{i ∈ A} s_i (k_z(x_i), 1)(k_z(x_i), 1)ᵀ,      A: the rows inside the
    margin.

A few times r rows determine an r × r matrix well enough to precondition with, so where A is larger
its first ones stand for all. The sum is taken in float64: kernel values rounded to float32 are
still *some* features, and the exact matrix of those is positive definite; a sum in float32 is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.arrays import IndexArray, Matrix
from widemargin.problem import Problem
from widemargin.rows import threads_within
from widemargin.span.basis import Basis
from widemargin.span.shard import GramPlan
from widemargin.span.shards import Shards
from widemargin.threads import ordered_map

# Rows, in multiples of the vectors, that stand for all rows inside the margin in the first matrix
# after a change of rows or vectors; twice as many in each that follows. Far from the optimum a
# rough matrix does as well, and near it, or at a large C, one that lacks rare rows is of no use.
_ROWS_OF_ONE_SUM = 8
_ROWS_OF_MANY_SUMS = 2
# They are all that there are after so many doublings.
_DOUBLINGS = 30
# At least this many,
_LEAST_ROWS = 2048
# and where values are computed again in each pass, as many as this share of a pass's cost allows,
# up to a multiple of the vectors: passes are saved by a better matrix.
_SHARE_OF_PASS = 0.5
_MOST_MULTIPLE = 64
# Rows whose products are added at a time, at the most.
_CHUNK = 2048
# Folds that are told apart at the most.
_MOST_FOLDS = 16
# On a GPU, the steps that a matrix may cost: passes wait for launches there, and a matrix of more
# rows saves them.
_STEPS_OF_MATRIX = 4.0


@dataclass(frozen=True)
class Costs:
    """What the parts of a step take, in seconds; only the ratios matter.

    Attributes
    ----------
    step : float
        A step, whatever its rows and vectors.
    read : float
        A value that is read from memory for one or two products.
    product : float
        A multiplication of a product with a few columns.
    compute : float
        A kernel value that is computed again, beside the product of its rows.
    sum : float
        The sum of a Newton matrix, whatever its rows.
    matrix : float
        A multiplication of a matrix product or a factorisation in float64.
    """

    step: float
    read: float
    product: float
    compute: float
    sum: float
    matrix: float


PROCESSOR = Costs(0.0, 0.4e-9, 0.02e-9, 0.6e-9, 0.0, 0.02e-9)
GPU = Costs(6e-3, 2e-12, 0.03e-12, 4e-12, 2e-3, 0.1e-12)


class Curvature:
    """Factors of the Newton matrices, formed when they pay.

    Problems with the same labels, and C within a factor of ten, share the sums in their matrices:
    their active rows are much the same. There is a sum for each fold, so that a problem can leave
    some out. Where the factors of all problems would not fit into `room`, they are kept in
    float32, or problems share more: first a factor with those of other folds, then with those of
    other C, then with those of other labels.

    Parameters
    ----------
    problem : Problem
        The problems.
    shards : Shards
        Their rows.
    dtype : dtype
        Precision of the kernel values.
    room : int
        Bytes that factors may take.
    """

    def __init__(self, problem: Problem, shards: Shards, dtype: np.dtype[Any], room: int) -> None:
        self.problem = problem
        self.shards = shards
        self.dtype = dtype
        self.room = room
        device = shards.device
        self._costs = GPU if device is not None and device.is_cuda else PROCESSOR
        self.forget()

    def forget(self) -> None:
        """Drop the factors: rows or vectors have changed."""
        self._factors: dict[int, NDArray[Any]] = {}
        # The span that they belong to.
        self._basis = Basis.empty()
        self._cost = 0.0
        self._spent = 0.0
        self._formed = 0
        # Whether the factors are those of another fit.
        self.adopted = False

    def adopt(self, other: Curvature) -> None:
        """Step by the factors of another fit on the same rows and vectors, until they are stale."""
        same = np.array_equal(other.problem.labelling, self.problem.labelling)
        if same and np.array_equal(other.problem.C, self.problem.C):
            self._factors, self._cost = dict(other._factors), other._cost
            self._basis = other._basis
            self._formed, self.adopted = other._formed, True

    def knows(self, live: IndexArray) -> NDArray[np.bool_]:
        """Return for which problems there is a factor."""
        return np.array([int(p) in self._factors for p in live], dtype=bool)

    def stale(self) -> bool:
        """Return whether steps with these factors have cost more than new ones would."""
        return self._spent > self._cost

    def used(self, columns: int, n_rows: int, size: int) -> None:
        """Take note of a step in a span of some size."""
        self._spent += self._pass(columns, n_rows, size)

    def _pass(self, columns: int, n_rows: int, size: int) -> float:
        """Return what a step costs that looks at rows."""
        costs = self._costs
        read = 2 * max(costs.read, 2 * columns * costs.product)
        again = max(0, n_rows - self.shards.rows_kept(size)) / max(1, n_rows)
        compute = costs.compute + self.problem.rows.values_per_row * costs.product
        return costs.step + n_rows * size * (read + again * compute)

    def form(self, basis: Basis, n_rows: int, live: IndexArray, moved: bool) -> None:
        """Form and factorise the matrices of the live problems, at the scores of the first rows.

        At zero (not `moved`) every row is inside every margin, and one sum serves all labels; with
        the squared loss of regression that is always so.
        """
        moved = moved and not self.problem.feels_all
        plan = self._plan(live, (basis.size + 1) ** 2, moved)
        self._factors, self._basis, self.adopted = {}, basis, False
        self._spent, self._cost = 0.0, 0.0
        multiple = _ROWS_OF_ONE_SUM if len(plan.groups) == 1 else _ROWS_OF_MANY_SUMS
        wanted = (multiple << min(self._formed, _DOUBLINGS)) * (basis.size + 1)
        most_rows = min(n_rows, max(_LEAST_ROWS, wanted))
        affordable = self._pass(len(live), n_rows, basis.size)
        affordable /= self._costs.matrix * len(plan.groups) * max(1, basis.size) ** 2
        if self._costs.step:
            most_rows = max(most_rows, int(_STEPS_OF_MATRIX * affordable))
        elif self.shards.rows_kept(basis.size) < n_rows:
            affordable *= _SHARE_OF_PASS
            most_rows = max(most_rows, min(int(affordable), _MOST_MULTIPLE * (basis.size + 1)))
        self._formed += 1
        # Shards that are elsewhere work on a sum together, those that are here on several.
        one_by_one = len(plan.groups) == 1 or self.shards.many or self.shards.device is not None

        def work(group: IndexArray) -> tuple[int, dict[int, NDArray[Any]]]:
            judges = self._judges(group) if plan.labels else ()
            alone = len(plan.groups) == 1
            wanted = GramPlan(judges, n_rows, most_rows, None, plan.folds, alone, one_by_one)
            found = self.shards.gram(wanted)
            scale = 2.0 * found.weight / max(found.used_weight, float(np.finfo(float).tiny))
            sums = [scale * each for each in found.sums]
            return found.count, self._factorise(basis, group, sums, plan, of_factors)

        # A chunk of rows, its product, the sum and a factor.
        most = 4 * 8 * (basis.size + 1) * max(basis.size + 1, _CHUNK // 4)
        memory = self.problem.rows.memory
        threads = 1 if one_by_one else threads_within(memory, most, self.problem.threads)
        # Those that do not work on several sums work on one factor.
        of_factors = self.problem.threads if one_by_one else 1
        found = ordered_map(work, plan.groups, threads)
        for group, (count, factors) in zip(plan.groups, found, strict=True):
            self._factors |= factors
            rows = min(count, most_rows) + len(group) * basis.size / 3
            self._cost += self._costs.sum + self._costs.matrix * rows * basis.size**2

    def _plan(self, live: IndexArray, size: int, moved: bool) -> _Plan:
        """Return which problems share what, so that factors of `size` values fit.

        Many factors are read from memory in every step: float32 halves that. It is enough to step
        by, unless kernel values are precise for a reason.
        """
        problem, groups = self.problem, self._groups(live, labels=moved)
        folds = 1 < len(problem.counts) <= _MOST_FOLDS
        # Problems that differ in their folds only are one kind.
        alike = () if problem.feels_all else (problem.labelling,)
        kinds = np.vstack([*alike, problem.C[None]])[:, live]
        n_kinds = len(np.unique(kinds, axis=1).T)
        n_factors = len(live) if folds else n_kinds
        # In the order of preference, each with the bytes of a value and the number of factors.
        plans = [
            (8, n_factors, _Plan(groups, moved, folds, True, np.float64)),
            (4, n_factors, _Plan(groups, moved, folds, True, np.float32)),
            (4, n_kinds, _Plan(groups, moved, False, True, np.float32)),
            (4, len(groups), _Plan(groups, moved, False, False, np.float32)),
        ]
        rough = n_factors > 1 and self.dtype == np.float32
        for each, count, plan in plans[rough:]:
            if each * count * size <= self.room:
                return plan
        return _Plan(self._groups(live, labels=False), False, False, False, np.float32)

    def _groups(self, live: IndexArray, labels: bool) -> list[IndexArray]:
        """Return the problems that share sums: the same power of ten of C, and labels if asked."""
        kinds = np.floor(np.log10(self.problem.C[live]))[None]
        if labels:
            kinds = np.vstack([kinds, self.problem.labelling[:, live]])
        _, group = np.unique(kinds, axis=1, return_inverse=True)
        return [live[group.ravel() == g] for g in range(group.max() + 1)]

    def _judges(self, group: IndexArray) -> tuple[int, ...]:
        """Return the problems of a group, with its middle C, that judge which rows are inside.

        A row is judged by a problem that counts it, if there is one.
        """
        C = self.problem.C[group]
        middle = group[np.sort(C)[len(C) // 2] == C]
        return tuple(int(p) for p in middle[:2])

    def _factorise(
        self, basis: Basis, group: IndexArray, sums: list[Matrix], plan: _Plan, threads: int
    ) -> dict[int, NDArray[Any]]:
        """Return the factors of a group's problems from the sums of the folds."""
        C, counts = self.problem.C, self.problem.counts
        wanted: dict[tuple[float, ...], list[int]] = {}
        for p in group:
            value = float(C[p]) if plan.each_C else float(np.median(C[group]))
            share = tuple(counts[:, p]) if plan.folds else (1.0,)
            wanted.setdefault(tuple(np.multiply(value, share).tolist()), []).append(int(p))
        totals = (_weighted(weights, sums) for weights in wanted)
        factors = basis.factorised_each(totals, plan.dtype, threads)
        return {
            p: factor
            for problems, factor in zip(wanted.values(), factors, strict=True)
            for p in problems
        }

    def solve(self, right: Matrix, live: IndexArray) -> Matrix:
        """Return M⁻¹ of each column, by the factor of its problem."""
        # Scaled, for a gradient may leave the range of float32.
        scale = np.abs(right).max(axis=0)
        scale[scale == 0.0] = 1.0
        factors = [self._factors[int(p)] for p in live]
        found = self._basis.solved_each(factors, right / scale, self.problem.threads)
        return np.asarray(found * scale)


@dataclass(frozen=True)
class _Plan:
    """What problems share in their Newton matrices.

    Attributes
    ----------
    groups : list of ndarray of int
        Problems that share sums.
    labels : bool
        Whether sums are over the rows inside the margin of a group's labels, or over all rows.
    folds : bool
        Whether each problem leaves out its own folds.
    each_C : bool
        Whether each C has its own factor.
    dtype : dtype
        Precision of the factors.
    """

    groups: list[IndexArray]
    labels: bool
    folds: bool
    each_C: bool
    dtype: DTypeLike


def _weighted(weights: tuple[float, ...], matrices: list[Matrix]) -> Matrix:
    """Return a weighted sum of matrices, with no other matrix than that."""
    first, *others = weights
    total: Matrix = first * matrices[0]
    for weight, matrix in zip(others, matrices[1:], strict=True):
        if weight:
            total += weight * matrix
    return total
