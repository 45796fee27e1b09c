"""A collection whose rows were looked at once, and rows that are drawn from it without a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Vector
from widemargin.loop import Resources
from widemargin.places.loading import Facts, Loaded, joined
from widemargin.places.partitions import partitions_of
from widemargin.places.sources import Source, source_of
from widemargin.rows import as_rows, distinct_rows
from widemargin.span.draws import earliest
from widemargin.span.shards import Each
from widemargin.threads import single_threaded_blas

# Bytes for blocks of rows, which are only read.
_BLOCKS = 200_000_000
# Standard deviations by which a shard may have more of the rows that are drawn than is expected.
_CHANCE = 6.0


@dataclass(frozen=True)
class Opened:
    """A collection, all rows of which were found to be good.

    Attributes
    ----------
    source : Source
        Where its shards are.
    facts : list of Facts
        What is known of each.
    every : Facts
        What is known of all rows.
    """

    source: Source
    facts: list[Facts]
    every: Facts

    @classmethod
    def of(
        cls, X: Any, y: Any, sample_weight: Any, memory: int | str, resources: Resources
    ) -> Opened:
        """Look at all rows of a collection; y may be None."""
        source = source_of(partitions_of(X, y, sample_weight), memory, resources)
        facts = source.facts()
        if not any(each.weight for each in facts):
            raise ValueError("sample_weight is zero for every row; at least one must count.")
        return cls(source, facts, joined(facts))

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return len(self.every.mean)

    @property
    def first(self) -> Each:
        """The number of the first row of each shard among all rows."""
        return Each(int(n) for n in np.cumsum([0, *(each.n for each in self.facts[:-1])]))


class RowDraws:
    """Rows of a collection that can be drawn, whatever their labels.

    Shards say when their rows are drawn, as ``span.draws`` has it, and send those that are expected
    to be among the first of all. That is one pass over the rows, unless there is a shard with far
    more of them than its weight would have.

    Parameters
    ----------
    opened : Opened
        The collection.
    """

    def __init__(self, opened: Opened) -> None:
        self.opened = opened
        self.n = opened.every.n

    def draw(self, count: int, seed: int, n_rows: int | None) -> tuple[NDArray[Any], ...]:
        """Draw rows; return them with their classes (0), weights, numbers and groups."""
        assert n_rows is None
        source, first = self.opened.source, self.opened.first
        share = np.array([each.weight for each in self.opened.facts]) / self.opened.every.weight
        most = np.minimum(count, count * share + _CHANCE * np.sqrt(count * share) + 1).astype(int)
        while True:
            found = source.ask("draw", earliest_rows, Each(most), seed, first, source.threads)
            time = np.concatenate([each.time for each in found])
            sent = np.array([len(each.time) for each in found])
            shard = np.repeat(np.arange(len(found)), sent)
            order = np.argsort(time, kind="stable")[:count]
            taken = np.bincount(shard[order], minlength=len(found))
            # Whoever has sent none but the first ones may have more of them.
            short = (taken == sent) & (sent < np.minimum(count, [each.n for each in found]))
            if not short.any():
                break
            most[short] = np.minimum(count, 4 * most[short])
        self.n = sum(each.n for each in found)
        # The first of each shard, put into the order in which they were drawn.
        place = np.argsort(np.argsort(shard[order], kind="stable"), kind="stable")
        values, weight, number = (
            np.concatenate([getattr(each, name)[:k] for each, k in zip(found, taken, strict=True)])
            for name in ("values", "weight", "number")
        )
        nothing = np.zeros(len(order), dtype=np.intp)
        return values[place], nothing, weight[place], number[place], nothing.astype(np.int32)


@dataclass(frozen=True)
class DrawnRows:
    """The rows of a shard that are drawn first.

    Attributes
    ----------
    n : int
        Different rows of the shard.
    time : ndarray
        When each is drawn, in ascending order.
    values, weight, number : ndarray
        The rows, their weights, and their numbers among all rows.
    """

    n: int
    time: Vector
    values: NDArray[Any]
    weight: Vector
    number: IndexArray


def earliest_rows(loaded: Loaded, most: int, seed: int, first: int, threads: int) -> DrawnRows:
    """Return the rows that are drawn first; the first row of all has the number `first`."""
    with single_threaded_blas():
        rows = as_rows(loaded.X, memory=_BLOCKS, threads=threads)
        distinct = distinct_rows(rows, np.zeros(rows.shape[0], dtype=np.intp), loaded.weight)
        time, chosen = earliest(distinct.weight, most, distinct.rows.keys, seed)
        values = distinct.rows.take(chosen)
    weight, number = distinct.weight[chosen], first + distinct.index[chosen]
    return DrawnRows(len(distinct.weight), time, values, weight, number)
