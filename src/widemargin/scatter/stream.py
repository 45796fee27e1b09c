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
    scatter_of,
)

# Rows of the sample that join a scatter at a time.
_AT_A_TIME = 4000


@dataclass(frozen=True)
class Sample:
    """Rows with their classes and weights, each with its key."""

    key: NDArray[np.uint64]
    rows: Matrix
    code: Codes
    weight: Vector

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.key)

    def at(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> Sample:
        """Return some of the rows."""
        return Sample(self.key[index], self.rows[index], self.code[index], self.weight[index])


@dataclass
class Reservoir:
    """The rows with the smallest keys, in the order of their keys.

    A row stays at its place in the storage while others come and go, so that a small block costs
    little whatever the capacity.

    Attributes
    ----------
    key, code, weight : ndarray
        Of each row.
    place : ndarray of int
        Where the row stands in the storage.
    storage : ndarray of shape (n_places, width)
        Rows, and places that are free.
    """

    key: NDArray[np.uint64]
    code: Codes
    weight: Vector
    place: Codes
    storage: Matrix

    @classmethod
    def empty(cls, width: int) -> Reservoir:
        """Return a reservoir of no rows."""
        none = np.zeros(0, np.intp)
        return cls(np.zeros(0, np.uint64), none, np.zeros(0), none, np.zeros((0, width)))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.key)

    @property
    def rows(self) -> Matrix:
        """A copy of the rows."""
        return self.storage[self.place]

    def at(self, index: NDArray[np.intp] | NDArray[np.bool_]) -> Sample:
        """Return a copy of some of the rows."""
        rows = self.storage[self.place[index]]
        return Sample(self.key[index], rows, self.code[index], self.weight[index])

    def take(self, new: Sample, capacity: int) -> Sample:
        """Take rows in, copies merged, and return those that do not fit any more."""
        size = len(self.storage)
        key = np.append(self.key, new.key)
        key, first, number = np.unique(key, return_index=True, return_inverse=True)
        weight = np.bincount(number, np.append(self.weight, new.weight)).astype(np.float64)
        code = np.append(self.code, new.code)[first]
        # Where rows are: at a place of the storage, or behind all of them in the block.
        place = np.append(self.place, size + np.arange(len(new)))[first]
        out = place[capacity:]
        rows = np.empty((len(out), self.storage.shape[1]))
        rows[out < size] = self.storage[out[out < size]]
        rows[out >= size] = new.rows[out[out >= size] - size]
        pushed_out = Sample(key[capacity:], rows, code[capacity:], weight[capacity:])
        self.key, self.code, self.weight = key[:capacity], code[:capacity], weight[:capacity]
        self.place = place[:capacity]
        coming = np.flatnonzero(self.place >= size)
        block_rows = self.place[coming] - size
        self.place[coming] = free = self._free(np.delete(self.place, coming), len(coming), capacity)
        self.storage[free] = new.rows[block_rows]
        return pushed_out

    def _free(self, used: Codes, count: int, capacity: int) -> Codes:
        """Return places of the storage for so many rows, which grows where it must."""
        size, needed = len(self.storage), len(used) + count
        if needed > size:
            grown = min(capacity, max(2 * size, needed))
            self.storage = np.pad(self.storage, ((0, grown - size), (0, 0)))
        return np.setdiff1d(np.arange(len(self.storage)), used)[:count]


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
    sample : Reservoir
        Rows that can be held out.
    capacity : int
        Rows of the sample at the most.
    """

    rest: ClassScatter
    sample: Reservoir
    capacity: int

    @classmethod
    def empty(cls, n_classes: int, width: int, capacity: int) -> Stream:
        """Return the stream of no rows."""
        return cls(ClassScatter.empty(n_classes, width), Reservoir.empty(width), capacity)

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

        rest, sample = ClassScatter(**part("rest_")), Reservoir(**part("sample_"))
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
        if self.capacity:
            key = row_keys(data.rows, data.code)
            full = len(self.sample) >= self.capacity
            joins = key <= self.sample.key[-1] if full else np.ones(len(key), dtype=bool)
            # No more than can stay: a large block would be copied for nothing.
            if joins.sum() > self.capacity:
                distinct = np.unique(key[joins])
                joins &= key <= distinct[min(self.capacity, len(distinct)) - 1]
            chosen, rest = np.flatnonzero(joins), np.flatnonzero(~joins)
            if len(chosen):
                rows = data.rows.gather(VisitBlock(features), chosen, width=features.width)
                new = Sample(key[chosen], rows, data.code[chosen], data.weight[chosen])
                out = self.sample.take(new, self.capacity)
                self.rest.add(out.rows, out.code, out.weight)
        code, weight, n_classes = data.code[rest], data.weight[rest], len(self.rest.weight)
        self.rest.merge(scatter_of(data.rows.subset(rest), code, weight, n_classes, features))

    def without_rows(self) -> Stream:
        """Return a stream that goes on with the scatter alone, and an empty sample."""
        return Stream(self.scatter(), Reservoir.empty(self.rest.n_features), self.capacity)

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


@dataclass(frozen=True)
class VisitBlock:
    """Visitor: the features of a block."""

    features: VisitFeatures

    def __call__(self, block: object, where: slice) -> Matrix:
        """Return the features of the rows of a block."""
        return self.features(block)
