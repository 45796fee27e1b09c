"""The protocol of training rows, and the block loop that every kind of rows shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from widemargin.rows.budget import rows_per_block
from widemargin.threads import ordered_map

Answer = TypeVar("Answer", covariant=True)
IndexArray = NDArray[np.intp]


class Visit(Protocol[Answer]):
    """What `scan` does with each block: a plain object that could travel to another process."""

    def __call__(self, block: Any, where: slice) -> Answer:
        """Look at `block`, the rows at positions `where` of the scan's index."""


class Rows(Protocol):
    """All that an engine may ask of the training data."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64: the precision in which blocks arrive."""

    def take(self, index: IndexArray) -> NDArray[Any]:
        """Return a few rows, dense and in memory."""

    def sample(self, size: int, rng: np.random.Generator) -> IndexArray:
        """Return `size` different row numbers in ascending order."""

    def scan(
        self, visit: Visit[Answer], index: IndexArray | None = None, *, width: int = 1
    ) -> Iterator[Answer]:
        """Yield visit(block, where) for every block, in block order."""


class BlockRows(ABC):
    """Rows of something that lies in reach and can be indexed by rows.

    Parameters
    ----------
    X : ndarray, memmap, or CSR matrix or array
        What the rows are read from.
    memory : int
        Budget in bytes; it bounds the size of a block.
    threads : int
        How many blocks are visited at a time.
    """

    # Rows that a block holds at the most, and vectors to set against a block at a time.
    _most_rows = 1024
    vectors_at_a_time = 16384

    def __init__(self, X: Any, memory: int, threads: int) -> None:
        self.X = X
        self.memory = memory
        self.threads = threads
        self._order: IndexArray | None = None

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 stays, everything else is worked on as float64."""
        return np.dtype(np.float32 if self.X.dtype == np.float32 else np.float64)

    @abstractmethod
    def _read(self, index: IndexArray | slice) -> Any:
        """Return stored rows as a block, dense or CSR as they are."""

    @abstractmethod
    def _row_bytes(self) -> int: ...

    @abstractmethod
    def _dense(self, block: Any) -> NDArray[Any]: ...

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        n, d = self.X.shape
        return (n if self._order is None else len(self._order)), d

    def subset(self, order: IndexArray) -> BlockRows:
        """Return a view whose row i is the stored row order[i]; nothing is copied."""
        view = copy(self)
        view._order = order if self._order is None else self._order[order]
        return view

    def block(self, index: IndexArray | slice) -> Any:
        """Return the rows at `index` as they are stored, dense or CSR."""
        return self._read(index if self._order is None else self._order[index])

    def take(self, index: IndexArray) -> NDArray[Any]:
        """Return a few rows, dense and in memory."""
        return self._dense(self.block(index))

    def sample(self, size: int, rng: np.random.Generator) -> IndexArray:
        """Return `size` different row numbers in ascending order."""
        n = self.shape[0]
        if size >= n:
            return np.arange(n)
        return np.sort(rng.choice(n, size, replace=False))

    def scan(
        self, visit: Visit[Answer], index: IndexArray | None = None, *, width: int = 1
    ) -> Iterator[Answer]:
        """Yield visit(block, where) for every block, in block order.

        Parameters
        ----------
        visit : callable
            Called with a block of rows and the slice of positions that it covers.
        index : array, default=None
            Row numbers to visit, in this order; None means all rows.
        width : int, default=1
            How many numbers the visitor needs for each row; with the row itself it decides the
            block size.

        Yields
        ------
        object
            What `visit` returned.
        """
        n = self.shape[0] if index is None else len(index)
        step = rows_per_block(self.memory, 8 * width + self._row_bytes(), self._most_rows)

        def visit_at(where: slice) -> Answer:
            return visit(self.block(where if index is None else index[where]), where)

        spans = (slice(first, min(n, first + step)) for first in range(0, n, step))
        return ordered_map(visit_at, spans, self.threads)
