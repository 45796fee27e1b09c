"""Where the training rows live: in an array, a mapped file, a CSR matrix, or a kernel matrix.

Engines ask three things of the rows: ``take`` a few, draw a ``sample``, or ``scan`` all of them
block by block. What they are stored in makes no difference to an engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from widemargin.arrays import IndexArray
from widemargin.rows.memory import rows_per_block, threads_within
from widemargin.threads import ordered_map

Answer = TypeVar("Answer", covariant=True)

# Rows of a block for visitors that do little with a row: threads hold each other up between blocks.
TALL = 8192
# Bytes of rows and answers that are looked at sooner than a thread has started.
_WORTH_A_THREAD = 2_000_000


class Visit(Protocol[Answer]):
    """What `scan` does with each block: a plain object that could travel to another process."""

    def __call__(self, block: Any, where: slice) -> Answer:
        """Look at `block`, the rows at positions `where` of the scan's index."""


class Rows(ABC):
    """Rows of something that lies in reach and can be indexed by rows.

    Parameters
    ----------
    X : ndarray, memmap, or CSR matrix or array
        What the rows are read from.
    memory : int
        Budget in bytes; it bounds the size of a block.
    threads : int
        How many blocks are visited at a time.

    Attributes
    ----------
    vectors_at_a_time : int
        Vectors to set against a block at a time.
    device : Device or None
        Where what is made of the rows shall be kept: None is this machine.
    row_map : RowMap or None
        The map that made them from stored rows, if there was one.
    """

    _most_rows = 1024
    vectors_at_a_time = 16384
    # None is this machine; a ``device.Device`` otherwise.
    device: Any = None
    row_map: Any = None

    def __init__(self, X: Any, memory: int, threads: int) -> None:
        self.X = X
        self.memory = memory
        self.threads = threads
        self._order: IndexArray | None = None
        self._keys: NDArray[np.uint64] | None = None

    @property
    def keys(self) -> NDArray[np.uint64]:
        """Random numbers that belong to the rows: those of their content where they are known.

        Else they ascend with the rows' places.
        """
        if self._keys is not None:
            return self._keys
        n = self.shape[0]
        return np.arange(n, dtype=np.uint64) * np.uint64((2**64 - 1) // max(1, n))

    def keyed(self, keys: NDArray[np.uint64] | None = None) -> Rows:
        """Return a view whose rows have these keys, or keep those that they have now."""
        view = copy(self)
        view._keys = self.keys if keys is None else keys
        return view

    def hashed(
        self, constants: NDArray[np.uint64], mix: np.uint64, index: IndexArray | None
    ) -> NDArray[np.uint64] | None:
        """Return hashes of rows if they are not to be computed from blocks; see ``distinct``."""
        return None

    def sorting(self, keys: NDArray[np.uint64]) -> IndexArray:
        """Return the order of keys, one for each row."""
        return np.argsort(keys)

    def placed(self, device: Any) -> Rows:
        """Return a view whose kernel values are kept on a device."""
        view = copy(self)
        view.device = device
        return view

    def stored_as(self, X: Any) -> Rows:
        """Return a view of the same rows in another array, in which they have the same places."""
        view = copy(self)
        view.X = X
        return view

    @property
    def whole(self) -> bool:
        """Whether these are all stored rows, in their order."""
        return self._order is None

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 stays, everything else is worked on as float64."""
        return np.dtype(np.float32 if self.X.dtype == np.float32 else np.float64)

    @property
    def sparse(self) -> bool:
        """Whether rows are stored in a CSR matrix."""
        return bool(sparse.issparse(self.X))

    @property
    def values_per_row(self) -> float:
        """How many numbers are stored of a row, on the average."""
        return float(self.X.nnz / max(1, self.X.shape[0]) if self.sparse else self.X.shape[1])

    @abstractmethod
    def _read(self, index: IndexArray | slice) -> Any:
        """Return stored rows as a block, dense or CSR as they are."""

    @abstractmethod
    def _row_bytes(self) -> int: ...

    @abstractmethod
    def dense(self, block: Any) -> NDArray[Any]:
        """Return a block as an array of its own."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        n, d = self.X.shape
        return (n if self._order is None else len(self._order)), d

    def subset(self, order: IndexArray) -> Rows:
        """Return a view whose row i is the stored row order[i]; nothing is copied."""
        view = copy(self)
        view._order = self.stored_at(order)
        view._keys = None if self._keys is None else self._keys[order]
        return view

    def stored_at(self, index: IndexArray) -> IndexArray:
        """Return where rows stand in what they are stored in."""
        return index if self._order is None else self._order[index]

    def block(self, index: IndexArray | slice) -> Any:
        """Return the rows at `index` as they are stored, dense or CSR."""
        return self._read(index if self._order is None else self._order[index])

    def take(self, index: IndexArray) -> NDArray[Any]:
        """Return a few rows, dense and in memory."""
        return self.dense(self.block(index))

    def sample(self, size: int, rng: np.random.Generator) -> IndexArray:
        """Return `size` different row numbers in ascending order."""
        n = self.shape[0]
        if size >= n:
            return np.arange(n)
        return np.sort(rng.choice(n, size, replace=False))

    def scan(
        self,
        visit: Visit[Answer],
        index: IndexArray | None = None,
        *,
        width: int = 1,
        answer_bytes: int = 0,
        most_rows: int = 0,
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
        answer_bytes : int, default=0
            What each answer takes, where that is much: fewer threads work at a time then.
        most_rows : int, default=0
            Rows of a block at the most, for a visitor that does little with each of them; 0 for as
            many as are good for products with vectors.

        Yields
        ------
        object
            What `visit` returned.
        """
        n = self.shape[0] if index is None else len(index)
        each = 8 * width + self._row_bytes()
        step = rows_per_block(self.memory, each, max(most_rows, self._most_rows))

        def visit_at(where: slice) -> Answer:
            return visit(self.block(where if index is None else index[where]), where)

        spans = (slice(first, min(n, first + step)) for first in range(0, n, step))
        # Of each thread, one answer is being made, and two wait to be taken.
        threads = threads_within(self.memory, each * step + 3 * answer_bytes, self.threads)
        return ordered_map(visit_at, spans, threads if n * each > _WORTH_A_THREAD else 1)

    def gather(
        self,
        visit: Visit[NDArray[Any]],
        index: IndexArray | None = None,
        *,
        width: int = 1,
        dtype: DTypeLike | None = None,
        most_rows: int = 0,
    ) -> NDArray[Any]:
        """Return what `visit` says of every row in one array, of the type of its answers if None.

        See `scan` for the other parameters.
        """
        n = self.shape[0] if index is None else len(index)
        out: NDArray[Any] | None = None
        first = 0
        for part in self.scan(visit, index, width=width, most_rows=most_rows):
            if out is None:
                out = np.empty((n, *part.shape[1:]), dtype=dtype or part.dtype)
            out[first : first + len(part)] = part
            first += len(part)
        if out is None:
            raise ValueError("there are no rows to look at.")
        return out


class ArrayRows(Rows):
    """Rows of a two-dimensional NumPy array of any real type and order.

    A memory-mapped file is read block by block: it is never copied or converted whole.
    """

    def _read(self, index: IndexArray | slice) -> NDArray[Any]:
        return np.asarray(self.X[index], dtype=self.dtype, order="C")

    def _row_bytes(self) -> int:
        return int(self.dtype.itemsize * self.X.shape[1])

    def dense(self, block: Any) -> NDArray[Any]:  # noqa: D102
        return np.array(block)


class PrecomputedRows(ArrayRows):
    """Rows of a square kernel matrix that the user computed.

    A row taken as a vector is its column number: the kernel "precomputed" looks values up there.
    """

    def take(self, index: IndexArray) -> NDArray[Any]:
        """Return the column numbers of the rows at `index`, one a row."""
        return np.asarray(self.stored_at(index), dtype=np.float64)[:, None]


class CSRRows(Rows):
    """Rows of a SciPy CSR matrix or array, with 32- or 64-bit indices.

    Blocks stay sparse; only the few rows that are taken as vectors become dense.
    """

    # Vectors are dense and long here, and to bring them into shape costs as much as many rows do:
    # few of them at a time, against tall blocks.
    _most_rows = 16384
    vectors_at_a_time = 256

    def _read(self, index: IndexArray | slice) -> Any:
        return self.X[index].astype(self.dtype, copy=False)

    def _row_bytes(self) -> int:
        return int(16 * self.X.nnz // max(1, self.X.shape[0]))

    def dense(self, block: Any) -> NDArray[Any]:  # noqa: D102
        dense: NDArray[Any] = block.toarray()
        return dense


def as_rows(X: Any, *, memory: int, threads: int, precomputed: bool = False) -> Rows:
    """Return checked input as rows.

    Parameters
    ----------
    X : ndarray, memmap, or CSR matrix or array
        What scikit-learn's input check returned.
    memory : int
        Budget in bytes.
    threads : int
        Threads that visit blocks.
    precomputed : bool, default=False
        X is a kernel matrix.

    Returns
    -------
    Rows
        The rows.
    """
    if precomputed:
        dense = X.toarray() if sparse.issparse(X) else X
        return PrecomputedRows(dense, memory, threads)
    if sparse.issparse(X):
        return CSRRows(X, memory, threads)
    return ArrayRows(np.asarray(X), memory, threads)
