"""Rows of one place: their kernel values, scores and dual points, and sums over them.

Everything that a span fit keeps for each row lies in a shard: in this process, on a worker of a
cluster, or on a device. What it is told and what it answers is as large as the span, never as the
rows: coefficients in, sums out. The fit adds up what shards answer, in their order (``shards``).

Rows of a shard stand in the order of their keys (``rows.distinct``), so that the first ones are a
sample; near the end of a fit the rows that can still matter change places with the first ones.
"""

from __future__ import annotations

from copy import copy
from dataclasses import InitVar, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Values, Vector
from widemargin.problem import Problem
from widemargin.rows import rows_per_block, threads_within
from widemargin.span.draws import earliest
from widemargin.span.losses import (
    Slopes,
    advance,
    along,
    blend,
    columns_of,
    felt,
    inside_margin,
    nearest_margin,
    rounding_errors,
)
from widemargin.span.values import MOST_ROWS, KernelValues, Moments, Product
from widemargin.threads import ordered_map, scratch

# Rows whose products are added at a time, at the most.
_CHUNK = 2048


@dataclass(frozen=True)
class GramPlan:
    """Which rows the sum of a Newton matrix is over.

    Attributes
    ----------
    judges : tuple of int
        Rows inside the margin of one of these problems count; all rows if there are none.
    n_rows : int
        Rows that are looked at.
    most : int
        Rows that stand for all, at the most: those with the least keys.
    threshold : int or None
        Their largest key, where other shards have a say in it.
    by_fold : bool
        A sum for each group of rows.
    alone : bool
        It is the only sum, from which the next one may start.
    threaded : bool
        No other sum is made at the same time: threads may work on it.
    """

    judges: tuple[int, ...]
    n_rows: int
    most: int
    threshold: int | None
    by_fold: bool
    alone: bool
    threaded: bool


@dataclass(frozen=True)
class Gram:
    """Sums of s (k_z, 1)(k_z, 1)ᵀ, and the rows behind them.

    Attributes
    ----------
    sums : list of ndarray of shape (r + 1, r + 1)
        One, or one for each group of rows.
    count : int
        Rows inside the margin.
    weight, used_weight : float
        Their weight, and that of the rows that stand for them.
    """

    sums: list[Matrix]
    count: int
    weight: float
    used_weight: float


@dataclass(frozen=True)
class Outcome:
    """How the scores of rows agree with their labels.

    Attributes
    ----------
    wrong : ndarray of shape (n_problems,)
        Weight of the rows on the wrong side.
    weight : float
        Weight of all.
    least, largest : ndarray of shape (n_problems,)
        The scores go from here to there.
    """

    wrong: Vector
    weight: float
    least: Values
    largest: Values


def outcome_of(problem: Problem, scores: Values) -> Outcome:
    """Return how the scores of all rows, in the order of a problem's, agree with their labels."""
    code, weight, table = problem.code, problem.weight, problem.table
    wrong = [weight[table[code, p] * scores[:, p] <= 0].sum() for p in range(table.shape[1])]
    # Of no rows, a zero.
    kept = scores if len(scores) else np.zeros((1, len(wrong)), dtype=scores.dtype)
    return Outcome(np.array(wrong), float(weight.sum()), kept.min(axis=0), kept.max(axis=0))


@dataclass(eq=False)
class Shard:
    """What is kept of rows in one place, and the sums over them.

    Parameters
    ----------
    problem : Problem
        The rows, and what is to be fitted.
    dtype : dtype
        Precision of kernel values and scores.
    room : int
        Bytes for kernel values.
    width : int
        Vectors that are expected at the most.
    most_rows : int
        Rows of a block at the most.
    shared : Shard or None
        Another one, whose vectors, kernel values and order of the rows are used.
    """

    problem: Problem
    dtype: np.dtype[Any]
    room: int
    width: int
    most_rows: int = MOST_ROWS
    shared: InitVar[Shard | None] = None

    def __post_init__(self, shared: Shard | None) -> None:
        # Keys go along when rows change places.
        problem = replace(self.problem, rows=self.problem.rows.keyed())
        # The row that is in each place.
        self.order: IndexArray = np.arange(problem.n) if shared is None else shared.order.copy()
        self.problem = problem if shared is None else problem.subset(self.order)
        self._swapped: bool = shared is not None and shared._swapped
        # Rows that were not drawn as vectors yet, in their first order.
        self._left = np.ones(problem.n, dtype=bool)
        self._values: KernelValues | None = None if shared is None else shared._values
        self.restart(self.dtype)

    def restart(self, dtype: np.dtype[Any]) -> None:
        """Begin anew, with kernel values of this precision unless they are shared."""
        shared = self._values is not None and self._values.dtype == dtype
        problem, self.dtype = self.problem, dtype
        if not shared or self._values is None:
            self._values = KernelValues(
                problem.rows,
                problem.kernel,
                dtype,
                self.room,
                self.width,
                problem.n_problems,
                self.most_rows,
            )
        self.values = self._values
        shape = (problem.n, problem.n_problems)
        self.scores: Values = np.zeros(shape, dtype=dtype)
        self._mixture: Values | None = None
        self._moved: Values = np.empty((0, 0), dtype=dtype)
        self._last: tuple[IndexArray, Matrix] = np.empty(0, dtype=np.intp), np.empty((0, 0))

    def restate(self, table: Matrix, C: Vector, counts: Matrix) -> None:
        """Begin anew with other problems of these rows, on the kernel values that are there."""
        self.problem = replace(self.problem, table=table, C=C, counts=counts)
        self.restart(self.dtype)

    def fork(self) -> Shard:
        """Return a copy that can be changed without changing this one."""
        other = copy(self)
        other.order, other._left = self.order.copy(), self._left.copy()
        other.scores = self.scores.copy()
        other._mixture = None if self._mixture is None else self._mixture.copy()
        other._values = other.values = self.values.fork()
        return other

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.problem.n

    def __sizeof__(self) -> int:
        """Return the bytes of rows and values: Dask moves to another worker what is small."""
        rows = self.problem.rows
        stored = int(rows.shape[0] * rows.values_per_row * rows.dtype.itemsize)
        return stored + self.values.nbytes + 2 * self.scores.nbytes

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
        self._last = np.empty(0, dtype=np.intp), np.empty((0, 0))

    def candidates(self, count: int, seed: int, n_rows: int | None) -> tuple[Vector, IndexArray]:
        """Return when rows are drawn, of those that are drawn first, and their numbers.

        With `n_rows` they are drawn in proportion to how much the machine feels them, and only
        among the first rows; else in proportion to their weights.
        """
        weight = self.weight() if n_rows is None else self.felt(n_rows)
        key = self._first_order(self.problem.rows.keys)
        return earliest(weight * self._left, count, key, seed)

    def taken(self, index: IndexArray) -> tuple[NDArray[Any], ...]:
        """Return rows, with class, weight, number and group; they are drawn no more."""
        self._left[index] = False
        place = np.argsort(self.order)[index]
        problem = self.problem
        return (
            problem.rows.take(place),
            problem.code[place],
            problem.weight[place],
            problem.number[place],
            problem.fold[place],
        )

    def felt(self, n_rows: int) -> Vector:
        """Return how much each row is felt by the problems, in the rows' first order."""
        return felt(self.problem, self.scores, self.order, n_rows)

    def weight(self) -> Vector:
        """Return the weights of the rows in their first order."""
        return self._first_order(self.problem.weight)

    def _first_order(self, values: NDArray[Any]) -> NDArray[Any]:
        first = np.empty_like(values)
        first[self.order] = values
        return first

    def scores_in_order(self) -> Values:
        """Return the scores of all rows, in their first order."""
        return self._first_order(self.scores)

    def scores_at(self, index: IndexArray, columns: IndexArray) -> Values:
        """Return the scores of some rows, by their first order, in some problems."""
        place: Values = self.scores[np.argsort(self.order)[index]]
        return place[:, columns]

    def outcome(self) -> Outcome:
        """Return how the scores of all rows agree with their labels."""
        first = replace(
            self.problem, code=self._first_order(self.problem.code), weight=self.weight()
        )
        return outcome_of(first, self.scores_in_order())

    # Sums over the rows.

    def below(self, thresholds: NDArray[np.uint64]) -> IndexArray:
        """Return how many rows, which stand in their first order, have keys up to each of these."""
        return np.searchsorted(self.problem.rows.keys, thresholds, side="right")

    def score(self, beta: Matrix, first: int, stop: int) -> None:
        """Compute the scores of some rows from the coefficients."""
        self._multiply(beta, self.scores, first, stop)

    def _multiply(self, beta: Matrix, out: Values, first: int, stop: int) -> None:
        for _ in self.values.scan(Product(beta.astype(self.dtype), out), first, stop):
            pass

    def pull(
        self, n_rows: int, live: IndexArray, mixed: bool, change: Matrix | None
    ) -> tuple[Matrix, Matrix]:
        """Return Σ_i A_i k_z(x_i), and the sums of `slopes`.

        If coefficients are to change, scores are brought up to date in the same pass.
        """
        mixture = self._mixed() if mixed else None
        moving = None if change is None else change.astype(self.dtype)
        slopes = Slopes(self.problem, self.scores, live, mixture, moving)
        pull = np.zeros((self.values.size, len(live)))
        sums = np.zeros((4, len(live)))
        for partial, partial_sums in self.values.scan(slopes, 0, n_rows):
            pull += partial
            sums += partial_sums
        # Without a bias nothing pulls at it.
        sums[1] *= self.problem.bias
        return pull, sums

    def moments(self, beta: Matrix) -> Matrix:
        """Return Σ_i s_i k_z(x_i) f(x_i) over all rows for functions f = Σ β k(z, ·)."""
        visit = Moments(beta, self.problem.weight)
        return np.asarray(sum(self.values.scan(visit, 0, self.n)))

    def _mixed(self) -> Values:
        if self._mixture is None:
            self._mixture = np.zeros_like(self.scores)
        return self._mixture

    def forget_mixture(self) -> None:
        """Begin the mixture of dual points anew."""
        self._mixture = None

    def blend(self, n_rows: int, live: IndexArray, share: Vector) -> None:
        """Move the mixture towards the dual points of the scores."""
        blend(self.problem, self.scores[:n_rows], live, share, self._mixed()[:n_rows])

    # A step.

    def look_along(
        self, direction: Matrix, live: IndexArray, n_rows: int, judges: int, lengths: Matrix
    ) -> tuple[NDArray[np.float64], float, float]:
        """Compute the scores of directions on the first rows, which judge how far to go.

        Return slopes and curvatures of the losses after steps of some lengths, and the weights of
        the rows that are looked at and of the judges.
        """
        self._moved = np.empty((judges, len(live)), dtype=self.dtype)
        self._multiply(direction, self._moved, 0, judges)
        weight = self.problem.weight
        found = self.along(live, lengths)
        return found, float(weight[:n_rows].sum()), float(weight[:judges].sum())

    def along(self, live: IndexArray, lengths: Matrix) -> NDArray[np.float64]:
        """Return slopes and curvatures of the losses after steps of some lengths.

        `lengths` is of shape (n_lengths, len(live)), the answer of shape (n_lengths, 2, len(live)).
        """
        scores = columns_of(self.problem, self.scores[: len(self._moved)], live)
        return along(self.problem, scores, self._moved, live, lengths)

    def advance(self, live: IndexArray, length: Vector) -> None:
        """Take the step."""
        advance(self.problem, self.scores[: len(self._moved)], self._moved, live, length)
        self._moved = self._moved[:0]

    # Newton matrices.

    def inside(self, plan: GramPlan) -> tuple[int, NDArray[np.uint64]]:
        """Return how many rows are inside the margin, and the least of their keys in order."""
        index = self._inside(plan)
        keys = self.problem.rows.keys[index]
        if len(keys) > plan.most:
            keys = np.partition(keys, plan.most)[: plan.most]
        return len(index), np.sort(keys)

    def gram(self, plan: GramPlan) -> Gram:
        """Return Σ s (k_z, 1)(k_z, 1)ᵀ over the rows inside the margin that stand for all."""
        weight, fold = self.problem.weight, self.problem.fold
        index = self._inside(plan)
        used = self._with_least_keys(index, plan)
        threads = self.problem.threads if plan.threaded else 1
        if plan.by_fold:
            folds = range(len(self.problem.counts))
            sums = [self._products(used[fold[used] == f], threads) for f in folds]
        elif plan.alone:
            sums = [self._changed(used, threads)]
        else:
            sums = [self._products(used, threads)]
        return Gram(sums, len(index), float(weight[index].sum()), float(weight[used].sum()))

    def _with_least_keys(self, index: IndexArray, plan: GramPlan) -> IndexArray:
        """Return the rows that stand for those at `index`, which is in ascending order."""
        if plan.threshold is not None:
            return index[self.problem.rows.keys[index] <= np.uint64(plan.threshold)]
        if len(index) <= plan.most or not self._swapped:
            return index[: plan.most]
        keys = self.problem.rows.keys[index]
        return np.sort(index[np.argpartition(keys, plan.most)[: plan.most]])

    def _inside(self, plan: GramPlan) -> IndexArray:
        """Return the rows inside the margin of a problem that counts them, if there is one."""
        scores = self.scores[: plan.n_rows]
        if not plan.judges:
            return np.arange(plan.n_rows)
        rows = [inside_margin(self.problem, scores, p) for p in plan.judges]
        return rows[0] if len(rows) == 1 else np.union1d(rows[0], rows[1])

    def _changed(self, used: IndexArray, threads: int) -> Matrix:
        """Return the sum over rows, from the one before if most of them are the same."""
        rows, total = self._last
        new, old = np.setdiff1d(used, rows), np.setdiff1d(rows, used)
        if len(new) + len(old) < 0.7 * len(used):
            total = total + self._products(new, threads) - self._products(old, threads)
        else:
            total = self._products(used, threads)
        self._last = used, total
        return total

    def _products(self, rows: IndexArray, threads: int) -> Matrix:
        """Return Σ s (k_z, 1)(k_z, 1)ᵀ over rows."""
        size, memory = self.values.size + 1, self.problem.rows.memory
        chunk = rows_per_block(memory, 8 * size, _CHUNK, most_bytes=memory)

        def part(begin: int) -> Matrix:
            index = rows[begin : begin + chunk]
            features = scratch((len(index), size), np.float64)
            self.values.take(index, features[:, :-1])
            features[:, -1] = self.problem.bias
            features *= np.sqrt(self.problem.weight[index])[:, None]
            # NumPy sees a matrix and its own transpose, and does half the work.
            product: Matrix = features.T @ features
            return product

        total = np.zeros((size, size))
        threads = threads_within(memory, 8 * size * (chunk + size), threads)
        for product in ordered_map(part, range(0, len(rows), chunk), threads):
            total += product
        return total

    # Rows that can matter.

    def near(self, limit: float) -> int:
        """Return how many rows, in whole blocks, hold those with a margin below a limit."""
        count = int((nearest_margin(self.problem, self.scores) < limit).sum())
        return min(self.n, -(-count // self.values.step) * self.values.step)

    def bring_near(self, limit: float) -> None:
        """Let rows with a margin below a limit change places with the first ones."""
        near = nearest_margin(self.problem, self.scores) < limit
        n_rows = self.near(limit)
        back = n_rows + np.flatnonzero(near[n_rows:])
        front = np.flatnonzero(~near[:n_rows])[: len(back)]
        order = np.arange(self.n)
        order[front], order[back] = back, front
        problem = self.problem.subset(order)
        self.scores[front], self.scores[back] = self.scores[back], self.scores[front]
        self.values.swap(front, back)
        self.problem = problem
        self.order[front], self.order[back] = self.order[back], self.order[front]
        self._mixture, self._swapped = None, True
        self._last = np.empty(0, dtype=np.intp), np.empty((0, 0))

    def rounding(self, vectors: NDArray[Any], beta: Matrix, size: int) -> Matrix:
        """Return sums of what rounding does to the losses, measured on some rows."""
        return rounding_errors(self.problem, vectors, beta, self.scores, size)
