"""What a stream of rows leaves behind: their scatter, and a sample of them that can be held out.

The sample consists of the rows with the smallest keys, a key being a hash of a row and its label.
So it does not depend on the order in which the rows come, and copies of a row are one row of
their summed weight. A row that is pushed out of the sample joins the scatter of the rest: the rest
and the sample are all rows, at any time, and each fold of the sample can be held out of all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.discriminant.projection import LabelledRows
from widemargin.discriminant.scatter import ClassScatter, VisitFeatures, scatter_of
from widemargin.rows import row_keys

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Codes = NDArray[np.intp]


@dataclass
class Sample:
    """Rows with their classes and weights, in the order of their keys."""

    key: NDArray[np.uint64]
    rows: Matrix
    code: Codes
    weight: Vector

    @classmethod
    def empty(cls, width: int) -> Sample:
        """Return a sample of no rows."""
        return cls(np.zeros(0, np.uint64), np.zeros((0, width)), np.zeros(0, np.intp), np.zeros(0))

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.key)

    def at(self, index: NDArray[np.intp] | NDArray[np.bool_] | slice) -> Sample:
        """Return some of the rows."""
        return Sample(self.key[index], self.rows[index], self.code[index], self.weight[index])

    def joined(self, other: Sample) -> Sample:
        """Return the rows of both, in the order of their keys, copies merged."""
        if not len(other):
            return self
        key = np.concatenate([self.key, other.key])
        key, first, place = np.unique(key, return_index=True, return_inverse=True)
        weight: Vector = np.zeros(len(key))
        np.add.at(weight, place, np.concatenate([self.weight, other.weight]))
        # Without a copy of all rows in between: they are what the memory is spent on.
        rows = np.empty((len(key), self.rows.shape[1]))
        old = first < len(self)
        rows[old] = self.rows[first[old]]
        rows[~old] = other.rows[first[~old] - len(self)]
        return Sample(key, rows, np.concatenate([self.code, other.code])[first], weight)


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
            chosen = np.flatnonzero(key <= self.sample.key[-1]) if full else rest
            # No more than can stay: a large block would be copied for nothing.
            if len(chosen) > self.capacity:
                distinct = np.unique(key[chosen])
                limit = distinct[min(self.capacity, len(distinct)) - 1]
                chosen = chosen[key[chosen] <= limit]
            rest = np.setdiff1d(rest, chosen, assume_unique=True)
            new = Sample(
                key[chosen],
                _features(data, chosen, features),
                data.code[chosen],
                data.weight[chosen],
            )
            both = self.sample.joined(new)
            out = both.at(slice(self.capacity, None))
            self.sample = both.at(slice(self.capacity))
            self.rest.add(out.rows, out.code, out.weight)
        if len(rest):
            rows = data.rows if len(rest) == len(data.code) else data.rows.subset(rest)
            n_classes = len(self.rest.weight)
            self.rest.merge(
                scatter_of(rows, data.code[rest], data.weight[rest], n_classes, features)
            )

    def scatter(self, without: NDArray[np.bool_] | None = None) -> ClassScatter:
        """Return the scatter of all rows, or of all but some of the sample."""
        n_classes, width = self.rest.offset.shape
        total = ClassScatter.empty(n_classes, width)
        total.merge(self.rest)
        kept = self.sample if without is None else self.sample.at(~without)
        total.add(kept.rows, kept.code, kept.weight)
        return total

    def folds(self, n_folds: int) -> Iterator[Fold]:
        """Yield the parts of the sample, the rows of each class dealt out in turn."""
        order = np.argsort(self.sample.code, kind="stable")
        counts = np.bincount(self.sample.code, minlength=1)
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        number = np.empty(len(order), dtype=np.intp)
        number[order] = np.arange(len(order)) - np.repeat(first, counts)
        # Classes of few rows would all have theirs in the first folds.
        number += self.sample.code
        for k in range(n_folds):
            held_out = number % n_folds == k
            if held_out.any():
                yield Fold(self.scatter(held_out), self.sample.at(held_out))


def _features(data: LabelledRows, index: Codes, features: VisitFeatures) -> Matrix:
    """Return the features of some rows."""
    out = np.empty((len(index), features.width))
    for where, part in data.rows.scan(_Visit(features), index, width=features.width):
        out[where] = part
    return out


@dataclass(frozen=True)
class _Visit:
    """Visitor: the features of a block, and where they belong."""

    features: VisitFeatures

    def __call__(self, block: object, where: slice) -> tuple[slice, Matrix]:
        return where, self.features(block)
