"""All folds of a cross-validation in the span of the same vectors, on rows in shards.

Equal rows of different folds stay apart, as in memory, and every shard knows to which kind of rows
each of its own belongs: those that the same folds train on and hold out. What a machine of a fold
answers for rows that were held out stays with them; their weight crosses, or, where a score needs
them, decision values of one C and one fold at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Matrix, Values, Vector
from widemargin.folds import Folds
from widemargin.kernels import Kernel
from widemargin.loop import Stop
from widemargin.places.collection import Collection
from widemargin.places.loading import (
    Facts,
    Loaded,
    ShardPlan,
    joined,
    most_rows_of_block,
    problem_of,
)
from widemargin.places.sources import Source
from widemargin.places.span_of_shards import (
    Statement,
    on_no_rows,
    plans_of,
    solve_in_span_of_shards,
)
from widemargin.problem import Problem, check_prices, class_scores, winners
from widemargin.rows import Rows
from widemargin.span import SpanOptions
from widemargin.span.shard import Shard
from widemargin.span.shards import Place
from widemargin.span.span_engine import SpanSize

# Share of a shard's memory for the scores of all problems.
_SCORES_SHARE = 0.25
# Scores before and after a step, and its change.
_ARRAYS_OF_SCORES = 3
# Bytes that are kept of a row for all widths: class, weight, number, key, kind and folds.
_ROW_BYTES = 60
# Rows whose answers are looked at together.
_AT_A_TIME = 65_536
# What is said of a span where there is none yet.
_NO_SPAN = SpanSize(0, np.dtype(np.float64), 0, 0)


@dataclass(frozen=True)
class FoldRows:
    """The different rows of a shard, equal ones of different kinds apart.

    Attributes
    ----------
    problem : Problem
        The problems of one C without folds; its `place` is None unless it is asked for.
    kind : ndarray of int of shape (n,)
        Kind of each row.
    """

    problem: Problem
    kind: NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class FoldPlan(ShardPlan):
    """What is to be known beside the rows of a shard to tell folds apart.

    Attributes
    ----------
    most_C : float
        The largest C; `C` is the smallest.
    decisions : bool
        Whether decision values of single rows will be asked for.
    """

    most_C: float
    decisions: bool


def fold_rows(loaded: Loaded, plan: FoldPlan, rows: Rows | None) -> FoldRows:
    """Return the rows of a shard."""
    problem = problem_of(loaded, plan, rows)
    if problem.n:
        check_prices(plan.most_C, problem.weight)
    assert plan.kind is not None
    kind = plan.kind[problem.number - plan.first]
    return FoldRows(problem if plan.decisions else replace(problem, place=None), kind)


@dataclass(frozen=True)
class BatchPlan:
    """What a shard must know of the machines of some values of C.

    Attributes
    ----------
    kernel : Kernel
        k.
    Cs : ndarray
        Values of C.
    counts, held : ndarray of shape (n_kinds, n_folds)
        How often a fold trains on rows of a kind, and holds them out.
    factor : ndarray of shape (n_classes,)
        Factors on the weights of the classes' rows.
    dtype : dtype
        Precision of kernel values.
    room : int
        Bytes for kernel values.
    width : int
        Vectors at the most.
    """

    kernel: Kernel
    Cs: Vector
    counts: Matrix
    held: Matrix
    factor: Vector
    dtype: np.dtype[Any]
    room: int
    width: int


@dataclass(eq=False, kw_only=True)
class FoldShard(Shard):
    """A shard that knows which of its rows each fold holds out.

    Parameters
    ----------
    held : ndarray of shape (n_kinds, n_folds)
        How often a fold holds out rows of a kind.
    factor : ndarray of shape (n_classes,)
        Factors on the weights of the classes' rows.
    n_Cs : int
        Values of C.
    place : ndarray of int or None
        Which of the rows each row of the partitions is; −1 for rows that are left out.
    """

    held: Matrix
    factor: Vector
    n_Cs: int
    place: NDArray[Any] | None

    def right(self) -> tuple[Matrix, Vector]:
        """Return the weight of rows that are answered right where they are held out.

        For each C and each fold; and of all rows that a fold holds out.
        """
        problem, n_folds = self.problem, self.held.shape[1]
        values = self._by_fold()
        right, total = np.zeros((self.n_Cs, n_folds)), np.zeros(n_folds)
        for begin in range(0, self.n, _AT_A_TIME):
            where = slice(begin, begin + _AT_A_TIME)
            code = problem.code[where]
            held = self.held[self._kind(problem.fold[where])]
            weight = held * (problem.weight[where] / self.factor[code])[:, None]
            total += weight.sum(axis=0)
            for k in range(n_folds):
                rows = np.flatnonzero(held[:, k])
                for c in range(self.n_Cs):
                    found = self._answers(values[begin + rows, c, k])
                    right[c, k] += weight[rows, k] @ (found == code[rows])
        return right, total

    def _answers(self, values: Values) -> NDArray[Any]:
        """Return the classes that values of all problems speak for."""
        n_classes = len(self.problem.table)
        if self.problem.partial:
            values = class_scores(values, n_classes)
        return winners(np.arange(n_classes), values[:, 0] if values.shape[1] == 1 else values)

    def decisions(self, c: int, k: int) -> Values:
        """Return the values, at one C, of the rows that a fold holds out, in the user's order."""
        assert self.place is not None
        values = self._first_order(self._by_fold()[:, c, k])
        kind = self._kind(self._first_order(self.problem.fold))
        held = self.held[kind, k] > 0
        place = self.place[self.place >= 0]
        return np.asarray(values[place[held[place]]])

    def _by_fold(self) -> Values:
        """Return the scores in the shape (n, n_Cs, n_folds, n_problems)."""
        n_folds = self.held.shape[1]
        each = self.scores.shape[1] // (self.n_Cs * n_folds)
        return self.scores.reshape(self.n, self.n_Cs, n_folds, each)

    def _kind(self, fold: NDArray[Any]) -> NDArray[Any]:
        """Return the kinds of rows from their groups."""
        return fold // (len(self.problem.counts) // len(self.held))


def fold_shard(rows: FoldRows, plan: BatchPlan) -> FoldShard:
    """Return the shard of some rows, with the machines of some values of C in all folds."""
    stated = replace(rows.problem, kernel=plan.kernel, place=None)
    problem = stated.in_kinds(rows.kind, plan.counts, plan.Cs)
    return FoldShard(
        problem,
        plan.dtype,
        plan.room,
        plan.width,
        most_rows_of_block(problem.n),
        held=plan.held,
        factor=plan.factor,
        n_Cs=len(plan.Cs),
        place=rows.problem.place,
    )


@dataclass(frozen=True)
class HeldOutAnswers:
    """What machines of some values of C answer for the rows that each fold holds out.

    Attributes
    ----------
    place : Place
        Where the rows are.
    stop : Stop
        How the fit of the machines ended.
    """

    place: Place
    stop: Stop

    def accuracy(self) -> Matrix:
        """Return the share of the held-out weight that is answered right, for each C and fold."""
        answers = self.place.ask("right")
        right, total = (sum(each[i] for each in answers) for i in (0, 1))
        return np.asarray(right / total)

    def decisions(self, c: int, k: int) -> Values:
        """Return the values, at one C, of the rows of weight that a fold holds out, in order."""
        return np.concatenate(self.place.ask("decisions", c, k))


@dataclass(frozen=True)
class FoldsOfShards:
    """Rows in shards, equal ones of different folds apart.

    Attributes
    ----------
    source : Source
        Where they come from.
    facts : sequence of Facts
        What is known of the rows of each.
    stated : Statement
        What is to be fitted; kernel and C are others for each machine.
    folds : Folds
        The folds.
    rows : list
        What the source has made of the rows of each shard.
    """

    source: Source
    facts: Sequence[Facts]
    stated: Statement
    folds: Folds
    rows: list[Any]

    @classmethod
    def of(
        cls,
        collection: Collection,
        stated: Statement,
        folds: Folds,
        *,
        most_C: float,
        decisions: bool,
    ) -> FoldsOfShards:
        """Bring equal rows of each shard together, unless folds tell them apart.

        Parameters
        ----------
        collection : Collection
            The rows.
        stated, folds
            The attributes.
        most_C : float
            The largest C; that of `stated` is the smallest.
        decisions : bool
            Whether decision values of single rows will be asked for.
        """
        source, facts = collection.source, collection.facts
        kind = folds.small_kind
        plans = plans_of(source, facts, stated, _NO_SPAN, [0] * len(facts))
        in_folds = [
            FoldPlan(
                **vars(plan) | {"kind": kind[plan.first : plan.first + each.n]},
                most_C=most_C,
                decisions=decisions,
            )
            for plan, each in zip(plans, facts, strict=True)
        ]
        return cls(source, facts, stated, folds, source.made("rows", fold_rows, in_folds))

    def batches(self, n_Cs: int) -> list[list[int]]:
        """Return places of values of C whose scores fit into the memory of every shard together."""
        each = 8 * _ARRAYS_OF_SCORES * self.stated.table.shape[1] * self.folds.n
        fits = min(memory / (each * max(1, n)) for memory, n in self.source.budgets())
        size = max(1, int(_SCORES_SHARE * fits))
        return [list(range(a, min(n_Cs, a + size))) for a in range(0, n_Cs, size)]

    def solve(self, kernel: Kernel, Cs: Vector, options: SpanOptions) -> HeldOutAnswers:
        """Fit the machines of values of C in all folds, in the span of the same vectors."""
        folds, every = self.folds, joined(self.facts)
        nothing = on_no_rows(every, replace(self.stated, kernel=kernel), options)
        problem = nothing.in_folds(folds, Cs)

        def placed(size: SpanSize) -> Place:
            # Beside what a fit keeps of a row: what is there for all widths, and a third array of
            # scores.
            more = _ROW_BYTES + size.dtype.itemsize * problem.n_problems
            rooms = self.source.rooms(size, problem.n_problems)
            plans = [
                BatchPlan(
                    kernel,
                    Cs,
                    folds.counts,
                    folds.held,
                    self.stated.factor,
                    size.dtype,
                    max(0, room - more * each.n),
                    size.vectors,
                )
                for room, each in zip(rooms, self.facts, strict=True)
            ]
            return self.source.placed(fold_shard, self.rows, plans)

        solver, result = solve_in_span_of_shards(problem, every.n, placed, options)
        return HeldOutAnswers(solver.shards.place, result.stop)
