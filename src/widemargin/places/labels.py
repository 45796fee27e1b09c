"""The labels of all rows of a collection in this process, as small numbers, and folds of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.folds import Folds, splits_of
from widemargin.places.loading import Loaded
from widemargin.places.sources import Source
from widemargin.problem import distinct_labels

# Bytes of each row that folds take while they are made,
_BYTES_OF_ROW = 100
# and of each of its decision values while they are scored.
_BYTES_OF_VALUE = 24


@dataclass(frozen=True)
class Labels:
    """Labels of all rows.

    Attributes
    ----------
    known : ndarray
        The different labels, also those of rows of weight zero.
    code : ndarray of int of shape (n,)
        Number of each row's label among them.
    used : ndarray of bool of shape (n,)
        Whether a row has a weight.
    """

    known: NDArray[Any]
    code: NDArray[Any]
    used: NDArray[np.bool_]

    def folds(self, cv: Any) -> Folds:
        """Return the folds of rows in memory with these labels."""
        # The numbers are as good as the labels to those who only tell them apart.
        y = self.code if cv is None or isinstance(cv, Integral) else self.known[self.code]
        # Splitters ask how many rows there are, not for them.
        rows = np.broadcast_to(np.zeros(1), (len(y), 1))
        return Folds(splits_of(cv, rows, y, classifier=True), self.used)

    def among(self, classes: NDArray[Any]) -> NDArray[Any]:
        """Return each row's number among classes; some number for rows of weight zero."""
        number = np.minimum(np.searchsorted(classes, self.known), len(classes) - 1)
        return np.asarray(number.astype(self.code.dtype)[self.code])


def gathered_labels(source: Source, n: int, memory: int, columns: int = 0) -> Labels:
    """Return the labels of all rows, or raise if what is made of them does not fit into memory.

    Parameters
    ----------
    source : Source
        The rows.
    n : int
        How many there are.
    memory : int
        Budget of this process in bytes.
    columns : int, default=0
        Decision values of each row that will be needed at a time.
    """
    needed = n * (_BYTES_OF_ROW + _BYTES_OF_VALUE * columns)
    if needed > memory:
        raise ValueError(
            f"Folds and labels of {n:,} rows take {needed / 1e6:,.0f} MB in this process, but "
            f"memory allows {memory / 1e6:,.0f} MB; give more memory, or search on a part of "
            "the rows and fit MarginClassifier with what is best there to all."
        )
    return joined_labels(source.ask("labels", labels_of))


def labels_of(loaded: Loaded) -> Labels:
    """Return the labels of some rows."""
    known = distinct_labels(loaded.y)
    code = np.searchsorted(known, loaded.y)
    return Labels(known, code.astype(np.min_scalar_type(len(known))), loaded.weight > 0)


def joined_labels(parts: Sequence[Labels]) -> Labels:
    """Return the labels of all rows."""
    known = distinct_labels(np.concatenate([part.known for part in parts if len(part.known)]))
    kind = np.min_scalar_type(len(known))
    codes = [np.searchsorted(known, part.known).astype(kind)[part.code] for part in parts]
    return Labels(known, np.concatenate(codes), np.concatenate([part.used for part in parts]))
