"""Rows of a span fit whose kernel values, scores and dual points lie on a device.

The questions of ``shard``, with the same answers. Each is a handful of operations on whole arrays
or large blocks of them, and one small copy back: coefficients go in, sums come out. What the
certificate stands on is added up in float64.
"""

from __future__ import annotations

from copy import copy
from dataclasses import InitVar, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Values, Vector
from widemargin.device import Array, Device, DeviceKernel, to_numpy
from widemargin.device.in_place import swap_rows
from widemargin.problem import Problem
from widemargin.span.device_losses import DeviceLabels, Line, slopes
from widemargin.span.device_values import DeviceValues, times, transposed_times
from widemargin.span.draws import earliest
from widemargin.span.losses import error_sums, rows_measured
from widemargin.span.shard import Gram, GramPlan, Outcome, outcome_of
from widemargin.span.values import MOST_ROWS

# Scores that are looked at at a time where no kernel values are involved.
_SCORES_AT_A_TIME = 1 << 24
# Numbers that are kept of a score: itself, its mixture, a line (four), and three while it changes.
_COLUMNS_OF_A_SCORE = 9
# Bytes of the features whose products are added at a time, at the most.
_CHUNK_BYTES = 1 << 30


@dataclass(eq=False)
class DeviceShard:
    """What is kept of rows on a device, and the sums over them.

    Parameters
    ----------
    problem : Problem
        The rows, and what is to be fitted.
    device : Device
        Where.
    dtype : dtype
        Precision of kernel values and scores.
    room : int
        Bytes for kernel values.
    width : int
        Vectors that are expected at the most.
    most_rows : int
        Rows of a block at the most.
    shared : DeviceShard or None
        Another one, whose vectors, kernel values and order of the rows are used.
    """

    problem: Problem
    device: Device
    dtype: np.dtype[Any]
    room: int
    width: int
    most_rows: int = MOST_ROWS
    # Whether sums are for those who have not the device, or add them to those of others.
    for_others: ClassVar[bool] = False
    shared: InitVar[DeviceShard | None] = None

    def __post_init__(self, shared: DeviceShard | None) -> None:
        # Keys go along when rows change places.
        problem = replace(self.problem, rows=self.problem.rows.keyed())
        # The row that is in each place.
        self.order: IndexArray = np.arange(problem.n) if shared is None else shared.order.copy()
        self.problem = problem if shared is None else problem.subset(self.order)
        self._swapped: bool = shared is not None and shared._swapped
        # Rows that were not drawn as vectors yet, in their first order.
        self._left = np.ones(problem.n, dtype=bool)
        self._values: DeviceValues | None = None if shared is None else shared._values
        self.restart(self.dtype)

    def restart(self, dtype: np.dtype[Any]) -> None:
        """Begin anew, with kernel values of this precision unless they are shared."""
        shared = self._values is not None and self._values.dtype == dtype
        problem, self.dtype = self.problem, dtype
        if not shared or self._values is None:
            # Room for the new ones.
            self._values = None
            self._values = DeviceValues(
                problem.rows,
                problem.kernel,
                self.device,
                dtype,
                max(0, self.room - self._state_bytes()),
                self.width,
                problem.n_problems,
                self.most_rows,
            )
        self.values = self._values
        self.labels = DeviceLabels.of(problem, self.device, dtype)
        self._scores = self.device.zeros((problem.n, problem.n_problems), dtype)
        self._mixture: Array | None = None
        self._line: Line | None = None
        self._live: tuple[bytes, DeviceLabels] = b"", self.labels
        self._weights: dict[int, float] = {}

    def _state_bytes(self) -> int:
        """Return what is kept of rows beside kernel values: their operands, and scores."""
        n, n_features = self.problem.rows.shape
        columns = n_features + 2 + _COLUMNS_OF_A_SCORE * self.problem.n_problems
        return int(n * self.dtype.itemsize * columns)

    def restate(self, table: Matrix, C: Vector, counts: Matrix) -> None:
        """Begin anew with other problems of these rows, on the kernel values that are there."""
        self.problem = replace(self.problem, table=table, C=C, counts=counts)
        self.restart(self.dtype)

    def outcome(self) -> Outcome:
        """Return how the scores of all rows agree with their labels."""
        return outcome_of(self.problem, to_numpy(self._scores))

    def fork(self) -> Self:
        """Return a copy that can be changed without changing this one."""
        other, xp = copy(self), self.device.xp
        other.order, other._left = self.order.copy(), self._left.copy()
        other._scores = xp.asarray(self._scores, copy=True)
        if self._mixture is not None:
            other._mixture = xp.asarray(self._mixture, copy=True)
        other._values = other.values = self.values.fork()
        return other

    def __sizeof__(self) -> int:
        """Return the bytes of rows and values: Dask moves to another worker what is small."""
        return self._state_bytes() + self.room

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.problem.n

    def rows_kept(self, width: int) -> int:
        """Return for how many rows the values of so many vectors can be kept."""
        return self.values.rows_kept(width)

    def complete(self) -> bool:
        """Return whether the values of all rows are kept and computed."""
        return self.values.complete

    # Vectors.

    def add(self, vectors: NDArray[Any]) -> None:
        """Let vectors join."""
        self.values.add(vectors)

    def candidates(self, count: int, seed: int, n_rows: int | None) -> tuple[Vector, IndexArray]:
        """Return when rows are drawn, of those that are drawn first, and their numbers."""
        weight = self.weight() if n_rows is None else self.felt(n_rows)
        key = self._first_order(self.problem.rows.keys)
        return earliest(weight * self._left, count, key, seed)

    def taken(self, index: IndexArray) -> tuple[NDArray[Any], ...]:
        """Return rows, with class, weight, number and group; they are drawn no more."""
        self._left[index] = False
        place = np.argsort(self.order)[index]
        problem = self.problem
        own = (problem.code, problem.weight, problem.number, problem.fold)
        return (problem.rows.take(place), *(each[place] for each in own))

    def felt(self, n_rows: int) -> Vector:
        """Return how much each row is felt by the problems, in the rows' first order."""
        xp, total = self.device.xp, np.zeros(self.n)
        price = self.device.array(1.0 / self.problem.C, self.dtype)
        parts = []
        for where in self._spans(n_rows):
            A, _ = slopes(self.labels, self._scores[where, :], where, None)
            parts.append(xp.sum(xp.abs(A) * price, axis=1, dtype=xp.float64))
        total[self.order[:n_rows]] = to_numpy(xp.concat(parts))
        return total

    def weight(self) -> Vector:
        """Return the weights of the rows in their first order."""
        return self._first_order(self.problem.weight)

    def _first_order(self, values: NDArray[Any]) -> NDArray[Any]:
        first = np.empty_like(values)
        first[self.order] = values
        return first

    def scores_in_order(self) -> Values:
        """Return the scores of all rows, in their first order."""
        return self._first_order(to_numpy(self._scores))

    def scores_at(self, index: IndexArray, columns: IndexArray) -> Values:
        """Return the scores of some rows, by their first order, in some problems."""
        place = self.device.index(np.argsort(self.order)[index])
        rows = self.device.xp.take(self._scores, place, axis=0)
        return to_numpy(self.device.xp.take(rows, self.device.index(columns), axis=1))

    def _spans(self, stop: int, first: int = 0) -> list[slice]:
        step = max(1024, _SCORES_AT_A_TIME // self.problem.n_problems)
        return [slice(a, min(stop, a + step)) for a in range(first, stop, step)]

    # Problems that are looked at.

    def _of(self, live: IndexArray) -> DeviceLabels:
        """Return the labels of some problems, kept until others are asked for."""
        if self._live[0] != live.tobytes():
            self._live = live.tobytes(), self.labels.columns(live)
        return self._live[1]

    def _columns(self, values: Array, live: IndexArray) -> Array:
        if len(live) == self.problem.n_problems:
            return values
        return self.device.xp.take(values, self.device.index(live), axis=1)

    def _spread(self, columns: Array, live: IndexArray, factor: Vector | None) -> Array:
        """Return columns of some problems, times factors, where they belong among all."""
        xp, n_problems = self.device.xp, self.problem.n_problems
        if len(live) == n_problems:
            return columns if factor is None else columns * self._array(factor)
        place = np.zeros((len(live), n_problems))
        place[np.arange(len(live)), live] = 1.0 if factor is None else factor
        return xp.matmul(columns, self._array(place))

    def _array(self, values: NDArray[Any]) -> Array:
        return self.device.array(values, self.dtype)

    # Sums over the rows.

    def below(self, thresholds: NDArray[np.uint64]) -> IndexArray:
        """Return how many rows, which stand in their first order, have keys up to each of these."""
        return np.searchsorted(self.problem.rows.keys, thresholds, side="right")

    def score(self, beta: Matrix, first: int, stop: int) -> None:
        """Compute the scores of some rows from the coefficients."""
        self._multiply(beta, self._scores, first, stop)

    def _multiply(self, beta: Matrix, out: Array, first: int, stop: int) -> None:
        coef, bias = self._array(beta[:-1]), self._array(beta[-1:])
        for values, where in self.values.blocks(first, stop):
            out[where, :] = times(self.device, values, coef) + bias

    def pull(
        self, n_rows: int, live: IndexArray, mixed: bool, change: Matrix | None
    ) -> tuple[Matrix, Matrix]:
        """Return Σ_i A_i k_z(x_i), and the sums of `slopes`.

        If coefficients are to change, scores are brought up to date in the same pass.
        """
        labels, mixture = self._of(live), self._mixed() if mixed else None
        total = self.device.zeros((self.values.size, len(live)), np.float64)
        if change is None:
            A, sums = self._slopes(labels, live, slice(0, n_rows), mixture)
            for values, where in self.values.blocks(0, n_rows):
                total += transposed_times(self.device, values, A[where, :])
        else:
            # Values may be computed again in each pass: both products are made of a block at once.
            coef, bias = self._array(change[:-1]), self._array(change[-1:])
            sums = self.device.zeros((4, len(live)), np.float64)
            for values, where in self.values.blocks(0, n_rows):
                moved = times(self.device, values, coef) + bias
                self._scores[where, :] += self._spread(moved, live, None)
                A, partial = self._slopes(labels, live, where, mixture)
                total += transposed_times(self.device, values, A)
                sums += partial
        both = to_numpy(self.device.xp.concat([total, sums], axis=0))
        return both[:-4], both[-4:]

    def _slopes(
        self, labels: DeviceLabels, live: IndexArray, rows: slice, mixture: Array | None
    ) -> tuple[Array, Array]:
        """Return A of rows that follow each other, and the sums of `slopes`."""
        parts, sums = [], self.device.zeros((4, len(live)), np.float64)
        for where in self._spans(rows.stop, rows.start):
            part = None if mixture is None else self._columns(mixture[where, :], live)
            scores = self._columns(self._scores[where, :], live)
            A, partial = slopes(labels, scores, where, part)
            parts.append(A)
            sums += partial
        if len(parts) == 1:
            return parts[0], sums
        nothing = self.device.zeros((0, len(live)), self.dtype)
        return self.device.xp.concat([nothing, *parts], axis=0), sums

    def moments(self, beta: Matrix) -> Matrix:
        """Return Σ_i s_i k_z(x_i) f(x_i) over all rows for functions f = Σ β k(z, ·)."""
        xp, coef = self.device.xp, self.device.array(beta)
        total = self.device.zeros((self.values.size, beta.shape[1]), np.float64)
        for values, where in self.values.blocks(0, self.n):
            # In float64, for a sum over all rows is what others must be orthogonal to.
            wide = [xp.astype(piece, xp.float64) for piece in values]
            weight = xp.astype(self.labels.weight[where, :], xp.float64)
            total += transposed_times(self.device, wide, times(self.device, wide, coef) * weight)
        return to_numpy(total)

    def _mixed(self) -> Array:
        if self._mixture is None:
            self._mixture = self.device.xp.zeros_like(self._scores)
        return self._mixture

    def forget_mixture(self) -> None:
        """Begin the mixture of dual points anew."""
        self._mixture = None

    def blend(self, n_rows: int, live: IndexArray, share: Vector) -> None:
        """Move the mixture towards the dual points of the scores."""
        shares = np.zeros(self.problem.n_problems)
        shares[live] = share
        part, mixture = self._array(shares), self._mixed()
        for where in self._spans(n_rows):
            A, _ = slopes(self.labels, self._scores[where, :], where, None)
            mixture[where, :] += part * (A - mixture[where, :])

    # A step.

    def look_along(
        self, direction: Matrix, live: IndexArray, n_rows: int, judges: int, lengths: Matrix
    ) -> tuple[NDArray[np.float64], float, float]:
        """Compute the scores of directions on the first rows, which judge how far to go.

        Return slopes and curvatures of the losses after steps of some lengths, and the weights of
        the rows that are looked at and of the judges.
        """
        self._line = None
        moved = self.device.empty((judges, len(live)), self.dtype)
        self._multiply(direction, moved, 0, judges)
        scores = self._columns(self._scores[:judges, :], live)
        self._line = Line.of(self._of(live), scores, moved)
        return self.along(live, lengths), self._weight_of(n_rows), self._weight_of(judges)

    def _weight_of(self, n_rows: int) -> float:
        if n_rows not in self._weights:
            self._weights[n_rows] = float(self.problem.weight[:n_rows].sum())
        return self._weights[n_rows]

    def along(self, live: IndexArray, lengths: Matrix) -> NDArray[np.float64]:
        """Return slopes and curvatures of the losses after steps of some lengths.

        `lengths` is of shape (n_lengths, len(live)), the answer of shape (n_lengths, 2, len(live)).
        """
        line, there = self._line, self._array(lengths)
        assert line is not None
        return to_numpy(line.at(there))

    def advance(self, live: IndexArray, length: Vector) -> None:
        """Take the step."""
        assert self._line is not None
        moved = self._line.moved
        self._scores[: moved.shape[0], :] += self._spread(moved, live, length)
        self._line = None

    # Newton matrices.

    def inside(self, plan: GramPlan) -> tuple[int, NDArray[np.uint64]]:
        """Return how many rows are inside the margin, and the least of their keys in order."""
        index = to_numpy(self._inside(plan))
        keys = self.problem.rows.keys[index]
        if len(keys) > plan.most:
            keys = np.partition(keys, plan.most)[: plan.most]
        return len(index), np.sort(keys)

    def gram(self, plan: GramPlan) -> Gram:
        """Return Σ s (k_z, 1)(k_z, 1)ᵀ over the rows inside the margin that stand for all."""
        xp, index = self.device.xp, self._inside(plan)
        used = self._with_least_keys(index, plan)
        parts = [used]
        if plan.by_fold:
            # Groups that do not differ in their prices were not brought here.
            fold = self.device.index(self.problem.fold)
            of_used = xp.take(fold, used)
            folds = range(len(self.problem.counts))
            parts = [xp.take(used, xp.nonzero(of_used == f)[0]) for f in folds]
        sums = [self._products(part) for part in parts]
        weights = [
            xp.sum(xp.take(self.labels.weight, rows, axis=0), dtype=xp.float64)
            for rows in (index, used)
        ]
        weight, used_weight = to_numpy(xp.stack(weights)).tolist()
        return Gram(sums, int(index.shape[0]), weight, used_weight)

    def _with_least_keys(self, index: Array, plan: GramPlan) -> Array:
        """Return the rows that stand for those at `index`, which is in ascending order."""
        count = int(index.shape[0])
        if plan.threshold is None and (count <= plan.most or not self._swapped):
            return index[: min(count, plan.most)]
        here = to_numpy(index)
        keys = self.problem.rows.keys[here]
        if plan.threshold is not None:
            return self.device.index(here[keys <= np.uint64(plan.threshold)])
        least = np.argpartition(keys, plan.most)[: plan.most]
        return self.device.index(np.sort(here[least]))

    def _inside(self, plan: GramPlan) -> Array:
        """Return the rows inside the margin of a problem that counts them, if there is one."""
        xp, rows = self.device.xp, slice(0, plan.n_rows)
        if not plan.judges:
            return xp.arange(plan.n_rows, device=self.device.where, dtype=xp.int64)
        judges = np.array(plan.judges)
        labels = self.labels.columns(judges)
        scores = self._columns(self._scores[rows, :], judges)
        felt = (labels.sign(rows) * scores < 1.0) & labels.counted(rows)
        return xp.nonzero(xp.any(felt, axis=1))[0]

    def _products(self, rows: Array) -> Array:
        """Return Σ s (k_z, 1)(k_z, 1)ᵀ over rows."""
        xp, size = self.device.xp, self.values.size + 1
        room = min(_CHUNK_BYTES, self.problem.rows.memory // 16)
        chunk = max(256, room // (8 * size))
        total = self.device.zeros((size, size), np.float64)
        count = int(rows.shape[0])
        for begin in range(0, count, chunk):
            index = rows[begin : min(count, begin + chunk)]
            features = self.device.ones((index.shape[0], size), np.float64)
            self.values.take(index, features)
            weight = xp.astype(xp.take(self.labels.weight, index, axis=0), xp.float64)
            features *= xp.sqrt(weight)
            total += xp.matmul(features.mT, features)
        return total

    # Rows that can matter.

    def _near(self, limit: float) -> NDArray[np.bool_]:
        xp, found = self.device.xp, []
        for where in self._spans(self.n):
            near = self.labels.sign(where) * self._scores[where, :] < limit
            found.append(xp.any(near & self.labels.counted(where), axis=1))
        return np.asarray(to_numpy(xp.concat(found)))

    def near(self, limit: float) -> int:
        """Return how many rows, in whole blocks, hold those with a margin below a limit."""
        return self._in_blocks(int(self._near(limit).sum()))

    def _in_blocks(self, count: int) -> int:
        return min(self.n, -(-count // self.values.step) * self.values.step)

    def bring_near(self, limit: float) -> None:
        """Let rows with a margin below a limit change places with the first ones."""
        near = self._near(limit)
        n_rows = self._in_blocks(int(near.sum()))
        back = n_rows + np.flatnonzero(near[n_rows:])
        front = np.flatnonzero(~near[:n_rows])[: len(back)]
        order = np.arange(self.n)
        order[front], order[back] = back, front
        problem = self.problem.subset(order)
        self._scores = swap_rows(self.device, self._scores, front, back)
        self.values.swap(front, back)
        self.problem = problem
        self.labels = DeviceLabels.of(problem, self.device, self.dtype)
        self.order[front], self.order[back] = self.order[back], self.order[front]
        self._mixture, self._swapped = None, True
        self._live, self._weights = (b"", self.labels), {}

    def rounding(self, vectors: NDArray[Any], beta: Matrix, size: int) -> Matrix:
        """Return sums of what rounding does to the losses, measured on some rows."""
        index = rows_measured(self.n, size)
        kernel = DeviceKernel.about(self.problem.kernel, self.device, vectors, np.float64)
        rows = self.device.array(self.problem.rows.take(index))
        exact = self.device.xp.matmul(kernel.block(rows, vectors), self.device.array(beta[:-1]))
        places = self.device.index(index)
        scores = to_numpy(self.device.xp.take(self._scores, places, axis=0))
        return error_sums(self.problem, index, scores, to_numpy(exact) + beta[-1])
