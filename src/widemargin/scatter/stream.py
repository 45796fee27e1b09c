"""What a stream of rows leaves behind: their scatter, and a sample of them that can be held out.

The sample consists of the rows with the smallest keys, a key being a hash of a row and its label.
So it does not depend on the order in which the rows come, and copies of a row are one row of
their summed weight. A row that is pushed out of the sample joins the scatter of the rest: the rest
and the sample are all rows, at any time, and each fold of the sample can be held out of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Codes, Matrix, Vector
from widemargin.rows import row_keys
from widemargin.scatter.class_scatter import (
    ClassScatter,
    LabelledRows,
    VisitFeatures,
)
from widemargin.scatter.device_scatter import features_at, scatter_anywhere

# Rows of the sample that join a scatter at a time.
_AT_A_TIME = 4000


@dataclass(frozen=True)
class Sample:
    """Different rows with their classes and weights, in the order of their keys."""

    key: NDArray[np.uint64]
    rows: Matrix
    code: Codes
    weight: Vector

    @classmethod
    def empty(cls, width: int) -> Sample:
        """Return a sample of no rows."""
        none = np.zeros(0)
        return cls(none.astype(np.uint64), np.zeros((0, width)), none.astype(np.intp), none)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.key)

    def at(self, index: NDArray[Any] | slice) -> Sample:
        """Return some of the rows."""
        return Sample(self.key[index], self.rows[index], self.code[index], self.weight[index])

    def merged(self, new: Sample) -> Sample:
        """Return these rows and others; copies are one row of their summed weight."""
        key = np.append(self.key, new.key)
        key, first, number = np.unique(key, return_index=True, return_inverse=True)
        weight = np.bincount(number, np.append(self.weight, new.weight)).astype(np.float64)
        rows, code = np.vstack([self.rows, new.rows]), np.append(self.code, new.code)
        return Sample(key, rows[first], code[first], weight)


@dataclass(frozen=True)
class Fold:
    """A part of the sample, and the scatter of all rows but these."""

    scatter: ClassScatter
    held_out: Sample


@dataclass
class Stream:
    """All rows until now.

    Attributes
    ----------
    rest : ClassScatter
        Of the rows that are not in the sample.
    sample : Sample
        Rows that can be held out.
    capacity : int
        Rows of the sample at the most.
    """

    rest: ClassScatter
    sample: Sample
    capacity: int

    @classmethod
    def empty(cls, n_classes: int, width: int, capacity: int) -> Stream:
        """Return the stream of no rows."""
        return cls(ClassScatter.empty(n_classes, width), Sample.empty(width), capacity)

    def state(self) -> dict[str, Any]:
        """Return everything as plain arrays and numbers."""
        known = {f"rest_{name}": value for name, value in self.rest.state().items()}
        known |= {f"sample_{name}": value for name, value in vars(self.sample).items()}
        return known | {"capacity": self.capacity}

    @classmethod
    def of_state(cls, state: dict[str, Any]) -> Stream:
        """Return the stream that `state` was taken of, which goes on with the same arrays."""

        def part(prefix: str) -> dict[str, Any]:
            first = len(prefix)
            return {name[first:]: value for name, value in state.items() if name[:first] == prefix}

        rest, sample = ClassScatter(**part("rest_")), Sample(**part("sample_"))
        return cls(rest, sample, int(state["capacity"]))

    def add(self, data: LabelledRows, features: VisitFeatures) -> None:
        """Take rows in.

        Parameters
        ----------
        data : LabelledRows
            Rows with classes and weights.
        features : callable
            Turns a block of rows into features.
        """
        rest = np.arange(len(data.code))
        most = self.capacity
        if most:
            key = row_keys(data.rows, data.code)
            full = len(self.sample) >= most
            joins = key <= self.sample.key[-1] if full else np.ones(len(key), dtype=bool)
            # No more than can stay: a large block would be copied for nothing.
            if joins.sum() > most:
                distinct = np.unique(key[joins])
                joins &= key <= distinct[min(most, len(distinct)) - 1]
            chosen, rest = np.flatnonzero(joins), np.flatnonzero(~joins)
            if len(chosen):
                rows = features_at(data.rows, chosen, features)
                new = Sample(key[chosen], rows, data.code[chosen], data.weight[chosen])
                both = self.sample.merged(new)
                self.sample, out = (
                    both.at(slice(self.capacity)),
                    both.at(slice(self.capacity, None)),
                )
                self.rest.add(out.rows, out.code, out.weight)
        code, weight, n_classes = data.code[rest], data.weight[rest], len(self.rest.weight)
        others = data.rows.subset(rest)
        self.rest.merge(scatter_anywhere(others, code, weight, n_classes, features))

    def merge(self, other: Stream) -> None:
        """Take in the rows of another stream, of the same classes and capacity."""
        self.rest.merge(other.rest)
        both = self.sample.merged(other.sample)
        self.sample, out = both.at(slice(self.capacity)), both.at(slice(self.capacity, None))
        self.rest.add(out.rows, out.code, out.weight)

    def without_rows(self) -> Stream:
        """Return a stream that goes on with the scatter alone, and an empty sample."""
        return Stream(self.scatter(), Sample.empty(self.rest.n_features), self.capacity)

    def scatter(self, without: NDArray[np.bool_] | None = None) -> ClassScatter:
        """Return the scatter of all rows, or of all but some of the sample."""
        total = ClassScatter.empty(*self.rest.offset.shape)
        total.merge(self.rest)
        there = np.arange(len(self.sample))
        if without is not None:
            there = there[~without]
        # In parts: all at once would be there several times.
        for first in range(0, len(there), _AT_A_TIME):
            part = self.sample.at(there[first : first + _AT_A_TIME])
            total.add(part.rows, part.code, part.weight)
        return total

    def folds(self, n_folds: int) -> Iterator[Fold]:
        """Yield the parts of the sample, the rows of each class dealt out in turn."""
        order = np.argsort(self.sample.code, kind="stable")
        code = self.sample.code[order]
        number = np.empty(len(order), dtype=np.intp)
        number[order] = np.arange(len(order)) - np.searchsorted(code, code)
        # Classes of few rows would all have theirs in the first folds.
        number += self.sample.code
        for k in range(n_folds):
            held_out = number % n_folds == k
            if held_out.any():
                yield Fold(self.scatter(held_out), self.sample.at(held_out))
