"""How a core set begins and which rows join it.

``OneByOne`` is the papers': each ball has a core set of its own, which begins with a row of either
sign and is joined by the furthest row, of all or of a small random sample.

``InBatches`` is ours: all balls share one core set, which begins with a random sample and doubles.
Rows are drawn at random among those outside: the furthest ones would be a poor choice, for where
classes overlap they are the outliers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray
from widemargin.balls.core_state import BatchSizes, CoreState
from widemargin.problem import Problem

# Core rows that are no vector of any problem leave when fewer than this share are.
_USEFUL = 0.9

Members = NDArray[np.bool_]


class Growth(Protocol):
    """What a core set asks of the way it grows."""

    def first(self, given: IndexArray, alpha: NDArray[np.float64]) -> tuple[IndexArray, Members]:
        """Return the first core rows, which include `given`, and whose they are."""

    def join(
        self, state: CoreState[Any], done: NDArray[np.bool_]
    ) -> tuple[IndexArray, IndexArray, Members] | None:
        """Return which core rows stay, the new core behind them, and its members.

        None if no row lies outside or none may join.
        """

    def is_full(self, state: CoreState[Any]) -> bool:
        """Return whether there is no room for rows that could make a difference."""

    def look_size(self, n_core: int, misses: int) -> int:
        """Return how many rows to look at; all of them if that is the number of rows.

        `misses` says how often a sample showed no row outside where there was one.
        """


@dataclass(frozen=True)
class InBatches:
    """One core set for all balls, joined by many rows at a time.

    Attributes
    ----------
    problem : Problem
        All rows.
    capacity : int
        Core rows at the most.
    rng : numpy.random.Generator
        For samples.
    sizes : BatchSizes
        Sizes of batches and samples.
    """

    problem: Problem
    capacity: int
    rng: np.random.Generator
    sizes: BatchSizes = field(default_factory=BatchSizes)

    def first(self, given: IndexArray, alpha: NDArray[np.float64]) -> tuple[IndexArray, Members]:
        """Return a sample with every class in it, or all rows if there is room for them."""
        n = self.problem.n
        size = n
        if self.capacity < n or not self.sizes.whole:
            # A small core at first: the rest of its room is for rows that matter.
            size = min(self.sizes.first, max(2 * len(self.problem.table), self.capacity // 4))
        one_each = np.unique(self.problem.code, return_index=True)[1]
        given = np.union1d(one_each, given)
        sampled = np.setdiff1d(self.problem.rows.sample(size, self.rng), given)
        core = np.concatenate([given, sampled])[: max(len(given), self.capacity)]
        return core, self._everyone(core)

    def join(
        self, state: CoreState[Any], done: NDArray[np.bool_]
    ) -> tuple[IndexArray, IndexArray, Members] | None:
        """Double the core with rows outside; rows that are in the way leave."""
        kept = self._worth_keeping(state)
        room = self.capacity - len(kept)
        if room <= 0 or not state.outside().any():
            return None
        new = self._share_of_every_problem(state, done, min(room, max(self.sizes.least, len(kept))))
        core = np.concatenate([state.core[kept], new])
        return kept, core, self._everyone(core)

    def is_full(self, state: CoreState[Any]) -> bool:
        """Return whether the core is at its limit and nearly all of it are vectors."""
        at_limit = len(state.core) >= self.capacity < self.problem.n
        return at_limit and len(self._worth_keeping(state)) > _USEFUL * self.capacity

    def look_size(self, n_core: int, misses: int) -> int:
        """Return a few times the core, or all rows if that is not many more."""
        size = max(self.sizes.sample, 4 * n_core)
        return self.problem.n if 2 * size >= self.problem.n else size

    def _everyone(self, core: IndexArray) -> Members:
        return np.ones((self.problem.n_problems, len(core)), dtype=bool)

    def _worth_keeping(self, state: CoreState[Any]) -> IndexArray:
        """Return the core rows to keep: all, or only the vectors if many others are in the way."""
        vectors = np.flatnonzero((state.alpha() != 0).any(axis=0))
        few = len(vectors) >= _USEFUL * len(state.core)
        return np.arange(len(state.core)) if few else vectors

    def _share_of_every_problem(
        self, state: CoreState[Any], done: NDArray[np.bool_], size: int
    ) -> IndexArray:
        """Return up to `size` candidates, drawn at random, as many for each unfinished problem."""
        look = state.look
        if len(look.candidate) <= size:
            return look.candidate
        outside = (look.residual > state.thresholds()) & ~done
        shuffled = self.rng.permutation(len(look.candidate))
        # The place of each candidate in the queue of each problem; the best place decides.
        queue = np.where(outside[shuffled], np.cumsum(outside[shuffled], axis=0), np.inf)
        first = np.argsort(queue.min(axis=1), kind="stable")[:size]
        return np.sort(look.candidate[shuffled[first]])


@dataclass(frozen=True)
class OneByOne:
    """A core set for each ball, joined by one row at a time.

    Attributes
    ----------
    problem : Problem
        All rows.
    capacity : int
        Core rows of all balls together at the most.
    rng : numpy.random.Generator
        For samples.
    sample_size : int or None
        The furthest of this many random rows joins; None takes the furthest of all.
    """

    problem: Problem
    capacity: int
    rng: np.random.Generator
    sample_size: int | None

    def first(self, given: IndexArray, alpha: NDArray[np.float64]) -> tuple[IndexArray, Members]:
        """Return, for each problem, one row of either sign and the rows given to start from."""
        chosen: list[IndexArray] = []
        for p in range(self.problem.n_problems):
            sign = self.problem.sign(p)
            sides = [np.flatnonzero(sign > 0), np.flatnonzero(sign < 0)]
            pair = [int(self.rng.choice(side)) for side in sides if len(side)]
            chosen.append(np.union1d(pair, given[alpha[p] > 0]))
        core = np.unique(np.concatenate(chosen))
        return core, np.array([np.isin(core, own) for own in chosen])

    def join(
        self, state: CoreState[Any], done: NDArray[np.bool_]
    ) -> tuple[IndexArray, IndexArray, Members] | None:
        """Let the furthest row of each unfinished problem join its core set."""
        core, member = state.core, state.member.copy()
        room = self.capacity - len(core)
        joining = np.flatnonzero(~done & state.outside() & (state.look.furthest >= 0))
        grew = False
        for p in joining:
            row = state.look.furthest[p]
            place = np.flatnonzero(core == row)
            if not len(place):
                if room <= 0:
                    continue
                room -= 1
                core = np.append(core, row)
                member = np.pad(member, ((0, 0), (0, 1)))
                place = np.array([len(core) - 1])
            member[p, place] = True
            grew = True
        return (np.arange(len(state.core)), core, member) if grew else None

    def is_full(self, state: CoreState[Any]) -> bool:
        """Return whether the core sets together are at their limit."""
        return len(state.core) >= self.capacity < self.problem.n

    def look_size(self, n_core: int, misses: int) -> int:
        """Return the size of the sample, twice as large after each miss, or all rows.

        Towards the end few rows lie outside, and a pass over all of them is dear.
        """
        n = self.problem.n
        return n if self.sample_size is None else min(n, self.sample_size << min(misses, 40))
