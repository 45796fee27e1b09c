"""Vectors that are drawn from the rows of shards.

Rows that were drawn come here, with their classes and weights: they are the rows of a small problem
of their own, on which everything that concerns vectors is computed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from widemargin.problem import Problem
from widemargin.rows import as_rows, row_keys
from widemargin.span.basis import Vectors
from widemargin.span.draws import seed_of_draw
from widemargin.span.landmarks import (
    Choice,
    CoreVectors,
    Felt,
    KMeansVectors,
    LeverageVectors,
    RandomVectors,
    Sampling,
    Strategy,
)


class Draws(Protocol):
    """Rows that can be drawn: the shards of a fit, or those of a source.

    Attributes
    ----------
    n : int
        Different rows, once some were drawn.
    """

    n: int

    def draw(self, count: int, seed: int, n_rows: int | None) -> tuple[NDArray[Any], ...]:
        """Draw rows; return them with their classes, weights, numbers and groups."""


def choice_of(
    strategy: Strategy, shards: Draws, problem: Problem, rng: np.random.Generator
) -> Choice:
    """Return what vectors are drawn from.

    Parameters
    ----------
    strategy : Strategy
        How vectors are chosen.
    shards : Draws
        All rows.
    problem : Problem
        The problems, on no rows.
    rng : Generator
        Source of seeds.
    """
    if isinstance(strategy, CoreVectors | RandomVectors):
        return ShardRows(shards, problem, rng, isinstance(strategy, CoreVectors))
    if isinstance(strategy, KMeansVectors | LeverageVectors):
        return OfSample(shards, problem, rng, strategy)
    # Vectors of the user's own need no rows.
    choice = strategy.begin(problem.rows, problem.kernel, problem.weight, rng)
    choice.problem = problem
    return choice


def with_drawn(problem: Problem, drawn: tuple[NDArray[Any], ...]) -> Problem:
    """Return a problem with rows that were drawn behind its own."""
    values, code, weight, number, fold = drawn
    known = problem.rows.take(np.arange(problem.n)) if problem.n else values[:0]
    rows = as_rows(
        np.concatenate([known, values]), memory=problem.rows.memory, threads=problem.rows.threads
    )
    return replace(
        problem,
        rows=rows,
        code=np.concatenate([problem.code, code]),
        weight=np.concatenate([problem.weight, weight]),
        number=np.concatenate([problem.number, number]),
        fold=np.concatenate([problem.fold, fold]),
    )


class ShardRows(Choice):
    """Rows in a random order, or first those that the machine feels; as in ``landmarks``."""

    nested: ClassVar[bool] = True
    of_rows: ClassVar[bool] = True
    problem: Problem

    def __init__(
        self, shards: Draws, problem: Problem, rng: np.random.Generator, core: bool
    ) -> None:
        self.shards, self.problem, self.rng, self.core = shards, problem, rng, core

    @property
    def exhausted(self) -> bool:
        """Whether there are no more."""
        return self.drawn >= self.shards.n

    def draw(self, count: int, felt: Felt | None) -> Vectors:
        """Return `count` more rows, or as many as there are."""
        before = self.problem.n
        n_rows = felt.n_rows if self.core and felt is not None else None
        self._take(count, n_rows)
        missing = count - (self.problem.n - before)
        if missing and n_rows is not None:
            self._take(missing, None)
        index = np.arange(before, self.problem.n)
        self.drawn += len(index)
        return Vectors(self.problem.rows.take(index), index)

    def _take(self, count: int, n_rows: int | None) -> None:
        drawn = self.shards.draw(count, seed_of_draw(self.rng), n_rows)
        self.problem = with_drawn(self.problem, drawn)


class OfSample(Choice):
    """Vectors that a strategy chooses from a random sample of the rows.

    Parameters
    ----------
    shards : Draws
        All rows.
    problem : Problem
        The problems, on no rows.
    rng : Generator
        Source of seeds.
    strategy : Sampling
        How.
    """

    problem: Problem

    def __init__(
        self, shards: Draws, problem: Problem, rng: np.random.Generator, strategy: Sampling
    ) -> None:
        self.shards, self.problem, self.rng, self.strategy = shards, problem, rng, strategy

    @property
    def exhausted(self) -> bool:
        """Whether there are no more."""
        return self.drawn > 0

    def draw(self, count: int, felt: Felt | None) -> Vectors:
        """Return the vectors, all at once."""
        size = self.strategy.sample_size(min(count, self.shards.n), self.problem.rows.memory)
        drawn = with_drawn(self.problem, self.shards.draw(size, seed_of_draw(self.rng), None))
        # As rows in memory stand.
        sample = drawn.subset(np.argsort(row_keys(drawn.rows, drawn.code), kind="stable"))
        weight = sample.weight if sample.n == self.shards.n else None
        vectors = self.strategy.from_sample(sample.rows, sample.kernel, weight, count, self.rng)
        self.problem, self.drawn = sample, len(vectors)
        return vectors
