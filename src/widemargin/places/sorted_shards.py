"""The rows of a collection, each different row of a shard once and in the order of keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.places.cell_shard import (
    Piece,
    RowsPlan,
    distinct_share,
    first_rows,
    sort_rows,
)
from widemargin.places.loading import Facts, joined
from widemargin.places.sources import Source
from widemargin.places.span_of_shards import Statement
from widemargin.problem import Problem
from widemargin.rows import Distinct
from widemargin.span.shards import Each

# Rows that a shard gives beyond its share of a sample, in standard deviations and at the least: so
# that it is not asked twice.
_DEVIATIONS = 5.0
_MORE = 16


class SortedShards:
    """Shards that know the order of their rows.

    Parameters
    ----------
    source : Source
        What shards are made of.
    facts : sequence of Facts
        What is known of the rows of each.
    stated : Statement
        What is to be fitted; signs do not matter.
    memory, threads : int
        Of this process.
    kind : ndarray of int or None
        A number for each of all rows: equal rows with other numbers stay apart.

    Attributes
    ----------
    n : int
        Different rows; about as many, where shards have rows in common.
    apart : bool
        Whether shards have no rows in common, as far as the first ones tell.
    norm2 : float
        The largest k(x, x) + 1 + ridge of a row.
    spread : float
        Total variance of the rows.
    n_passes : int
        How often all rows were looked at.
    """

    def __init__(
        self,
        source: Source,
        facts: Sequence[Facts],
        stated: Statement,
        memory: int,
        threads: int,
        kind: NDArray[Any] | None = None,
    ) -> None:
        every = joined(facts)
        self.source, self.facts, self.stated = source, every, stated
        self.memory, self.threads = memory, threads
        first = np.concatenate([[0], np.cumsum([each.n for each in facts])]).tolist()
        self.plans = Each(
            RowsPlan(
                stated.kernel,
                every.classes,
                stated.factor,
                stated.C,
                begin,
                each.memory,
                source.threads,
                None if kind is None else kind[begin : begin + each.n],
            )
            for begin, each in zip(first, facts, strict=False)
        )
        self.n_passes = 1
        self.rows, counts = source.keep("sort", sort_rows, self.plans)
        self.n_passes += 1
        self.sizes = [each.n for each in counts]
        share = distinct_share(counts)
        self.n, self.apart = round(share * sum(self.sizes)), share == 1.0
        self.norm2 = max(each.norm2 for each in counts)
        self.spread = float(every.variance.sum())
        self._sample: tuple[int, Distinct] | None = None

    @property
    def n_features(self) -> int:
        """Columns."""
        return len(self.facts.mean)

    @property
    def no_rows(self) -> NDArray[Any]:
        """How vectors look, of which there are none."""
        dtype = np.float32 if self.facts.single else np.float64
        return np.empty((0, self.n_features), dtype=dtype)

    @property
    def bytes_per_row(self) -> float:
        """Bytes of a row, on the average."""
        return self.facts.nbytes / max(1, self.facts.n)

    def keep(
        self, name: str, function: Callable[..., Any], *arguments: Any
    ) -> tuple[Each, list[Any]]:
        """Return what a function makes of the sorted rows of each shard, and what it says of them.

        See `Source`.
        """
        self.n_passes += 1
        return self.source.keep(name, function, self.rows, self.plans, *arguments)

    def sample(self, count: int) -> Distinct:
        """Return the rows with the least keys, of all shards: so many, or all if there are fewer.

        They are the first rows of the fit in memory.
        """
        if self._sample is None or self._sample[0] < count:
            self._sample = (count, self._drawn(count))
        found = self._sample[1]
        return self._first(found, min(count, len(found.code)))

    def problem(self, count: int, table: NDArray[Any]) -> Problem:
        """Return the problems of some signs on the rows of a sample."""
        found = self.sample(count)
        weight = found.weight * self.stated.factor[found.code]
        return Problem.of(
            found.rows, self.stated.kernel, found.code, table, weight, self.stated.C, found.index
        ).with_signs(table)

    def _drawn(self, count: int) -> Distinct:
        share = min(1.0, count / max(1, self.n)) * np.array(self.sizes)
        more = share + _DEVIATIONS * np.sqrt(share) + _MORE
        while True:
            wanted = np.minimum(np.ceil(more), self.sizes).astype(int).tolist()
            self.n_passes += 1
            parts: list[Piece] = self.source.ask(
                "sample", first_rows, self.rows, self.plans, Each(wanted)
            )
            rows = Piece.of(parts)
            found = rows.distinct(self.memory, self.threads)
            # Beyond the last row that a shard has given there may be more of its rows.
            whole = [k for k, size in enumerate(self.sizes) if wanted[k] == size]
            ends = np.cumsum(wanted) - 1
            last = [found.place[ends[k]] for k in range(len(wanted)) if k not in whole]
            sure = min(last, default=len(found.code) - 1) + 1
            if sure >= count or len(whole) == len(wanted):
                # Numbers are those among all rows.
                known = Distinct(
                    found.rows, rows.number[found.index], found.code, found.weight, found.place[:0]
                )
                return self._first(known, min(sure, count))
            more = 2.0 * more

    def _first(self, found: Distinct, count: int) -> Distinct:
        few = np.arange(count)
        return Distinct(
            found.rows.subset(few),
            found.index[:count],
            found.code[:count],
            found.weight[:count],
            found.place,
        )
