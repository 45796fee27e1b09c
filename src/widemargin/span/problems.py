"""Squared-hinge problems over the same rows, and the loops over their scores.

    min  ½‖w‖² + ½b² + C_p Σ_i s_i max(0, 1 − y_ip f(x_i))²      for each problem p.

Problems share rows and kernel values and nothing else: one-vs-rest classes, values of C, and folds
of a cross-validation (a problem takes no notice of the fold that it holds out) are all columns of
the same matrix products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from widemargin.rows.base import IndexArray
from widemargin.threads import ordered_map

Vector = NDArray[np.float64]
Scores = NDArray[np.floating[Any]]
Answer = TypeVar("Answer")

# Scores that a thread takes at a time where no kernel values are involved.
_VALUES = 1 << 16


@dataclass(frozen=True)
class Problems:
    """Labels, weights and folds of the rows in every problem.

    Attributes
    ----------
    code : ndarray of int of shape (n,)
        Class of each row.
    table : ndarray of shape (n_classes, n_problems)
        Sign of each class in each problem, ±1.
    weight : ndarray of shape (n,)
        Weight s of each row, positive.
    C : ndarray of shape (n_problems,)
        Weight of the errors.
    fold : ndarray of int of shape (n,)
        Fold of each row.
    counts : ndarray of shape (n_folds, n_problems)
        1 where a problem takes the rows of a fold into account, 0 where it leaves them out.
    threads : int
        Threads of the loops.
    """

    code: NDArray[np.intp]
    table: Vector
    weight: Vector
    C: Vector
    fold: NDArray[np.int32]
    counts: Vector
    threads: int

    @classmethod
    def of(
        cls,
        code: NDArray[np.intp],
        table: Vector,
        weight: Vector,
        C: float,
        threads: int = 1,
    ) -> Problems:
        """Return the problems of one C without folds."""
        n_problems = table.shape[1]
        return cls(
            code,
            table,
            weight,
            np.full(n_problems, float(C)),
            np.zeros(len(code), dtype=np.int32),
            np.ones((1, n_problems)),
            threads,
        )

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.code)

    @property
    def n_problems(self) -> int:
        """Number of problems."""
        return len(self.C)

    def sign(self, problem: int, index: IndexArray | slice) -> Vector:
        """Return the labels ±1 of rows in one problem."""
        return np.ascontiguousarray(self.table[self.code[index], problem])

    def in_order(self, order: IndexArray) -> Problems:
        """Return the problems with row order[i] in place i."""
        return replace(
            self, code=self.code[order], weight=self.weight[order], fold=self.fold[order]
        )

    def nearest(self, scores: Scores) -> Vector:
        """Return the smallest margin y f of each row over the problems that feel it."""
        nearest = np.full(self.n, np.inf)
        for p in range(self.n_problems):
            margin = self.table[self.code, p] * scores[:, p]
            margin[self.counts[self.fold, p] == 0] = np.inf
            np.minimum(nearest, margin, out=nearest)
        return nearest

    def active(self, scores: Scores, problem: int) -> IndexArray:
        """Return the rows inside the margin, those that the loss of a problem feels."""
        n = len(scores)
        margin = self.table[self.code[:n], problem] * scores[:, problem]
        return np.flatnonzero((margin < 1.0) & (self.counts[self.fold[:n], problem] > 0))

    def slopes(
        self, scores: Scores, where: slice, live: IndexArray, mixture: Scores | None = None
    ) -> tuple[Scores, Vector]:
        """Return A = 2 C s y ξ of some rows, and sums: the loss, Σ A, Σ y A, Σ A·mixture/(2Cs)."""
        loops = _loops()

        A = np.empty((where.stop - where.start, len(live)), dtype=scores.dtype)
        sums = np.zeros((4, len(live)))
        some = self.columns(scores[where], live)
        # Without a mixture any array does in its place, and its sum means nothing.
        mixed = some if mixture is None else self.columns(mixture[where], live)
        loops.slopes(some, *self._typed(scores, where, live), mixed, A, sums)
        return A, sums

    def blend(self, scores: Scores, live: IndexArray, share: Vector, mixture: Scores) -> None:
        """Move the mixture towards A by a share that each problem has."""
        loops = _loops()

        everything = np.arange(self.n_problems)
        some = share.astype(scores.dtype)

        def move(where: slice) -> None:
            typed = self._typed(scores, where, everything)
            loops.blend(scores[where], *typed, live, some, mixture[where])

        self._in_threads(move, len(scores))

    def along(
        self, scores: Scores, direction: Scores, live: IndexArray, step: Vector
    ) -> tuple[Vector, Vector]:
        """Return slope and curvature of the losses at scores + step · direction.

        `scores` and `direction` have the columns of the live problems only.
        """
        loops = _loops()

        lengths = step.astype(scores.dtype)

        def look(where: slice) -> Vector:
            sums = np.zeros((2, len(live)))
            typed = self._typed(scores, where, live)
            loops.along(scores[where], direction[where], *typed, lengths, sums)
            return sums

        total = np.zeros((2, len(live)))
        for sums in self._in_threads(look, len(scores)):
            total += sums
        return total[0], total[1]

    def advance(self, scores: Scores, direction: Scores, live: IndexArray, step: Vector) -> None:
        """Add step · direction to the scores of the live problems."""
        loops = _loops()

        lengths = step.astype(scores.dtype)

        def move(where: slice) -> None:
            loops.advance(scores[where], direction[where], live, lengths)

        self._in_threads(move, len(scores))

    def columns(self, scores: Scores, live: IndexArray) -> Scores:
        """Return the columns of the live problems, the array itself if they are all."""
        return scores if len(live) == self.n_problems else scores[:, live]

    def _typed(self, scores: Scores, where: slice, live: IndexArray) -> tuple[NDArray[Any], ...]:
        """Return code, weight, fold, table, C and counts as the compiled loops want them."""
        kind = scores.dtype
        return (
            self.code[where],
            self.weight[where].astype(kind),
            self.fold[where],
            self.table[:, live].astype(kind),
            self.C[live].astype(kind),
            self.counts[:, live].astype(kind),
        )

    def _in_threads(self, work: Callable[[slice], Answer], n: int) -> list[Answer]:
        """Return the answers for spans of the first n rows, in their order."""
        size = max(1024, _VALUES // self.n_problems)
        spans = (slice(first, min(n, first + size)) for first in range(0, n, size))
        return list(ordered_map(work, spans, self.threads))


def _loops() -> Any:
    """Return the compiled loops; Numba is imported when they are first needed."""
    from widemargin.span import _compiled

    return _compiled
