"""Kernel values of rows with each other: blocks of them, or the whole matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.arrays import IndexArray
from widemargin.kernels import Kernel
from widemargin.kernels.kernel import DENSE_SHARE, ProductKernel
from widemargin.kernels.pairwise import CentredRows, can_be_centred
from widemargin.rows import Rows
from widemargin.threads import Compiled, ordered_map

loops = Compiled("widemargin.kernels.mirror_loops")

# Rows of a kernel matrix that a thread computes at a time.
_MATRIX_BLOCK = 1024
# The same where all values are computed, and the features up to which they are.
_FULL_BLOCK = 512
_FEW_FEATURES = 48
# Share of the memory budget that a centred copy of the rows may take.
_COPY_SHARE = 0.15
# Rows whose mean is the point about which all are centred.
_FOR_THE_CENTRE = 1024
# Multiplications of a piece of a block, the work of one thread; columns of it at the least; and
# pieces at the most. They do not depend on the number of threads, for the bits do on the pieces.
_PIECE = 1e8
_LEAST_COLUMNS = 1024
_MOST_PIECES = 64


@dataclass(frozen=True)
class KernelBetween:
    """Kernel values of rows with each other.

    Attributes
    ----------
    kernel : Kernel
        The kernel.
    rows : Rows
        The rows.
    dtype : dtype
        Precision of the values.
    centred : CentredRows or None
        The rows made ready, where kernel, memory and precision allow it.
    """

    kernel: Kernel
    rows: Rows
    dtype: DTypeLike
    centred: CentredRows | None

    @classmethod
    def of(cls, kernel: Kernel, rows: Rows, dtype: DTypeLike) -> KernelBetween:
        """Make rows ready for values of a type."""
        n, n_features = rows.shape
        small = 4 * n * n_features <= _COPY_SHARE * rows.memory
        wanted = can_be_centred(kernel) and np.dtype(dtype) == np.float32
        if not (wanted and small) or rows.sparse:
            return cls(kernel, rows, dtype, None)
        centred = CentredRows.room(kernel, n, n_features)
        sample = rows.take(np.arange(min(n, _FOR_THE_CENTRE)))
        with np.errstate(over="ignore", invalid="ignore"):
            visit = _Centre(centred, sample.mean(axis=0, dtype=np.float64))
            for _ in rows.scan(visit, width=n_features):
                pass
            return cls(kernel, rows, dtype, centred if centred.accurate else None)

    def subset(self, index: IndexArray, lasting: bool = True) -> KernelBetween:
        """Return what there is of some of the rows.

        Where it is needed no longer than until this thread asks for the next, as one that is not
        `lasting`, memory is used again.
        """
        centred = None if self.centred is None else self.centred.subset(index, lasting)
        return KernelBetween(self.kernel, self.rows.subset(index), self.dtype, centred)

    def values(
        self,
        left: IndexArray | slice,
        right: IndexArray | slice,
        out: NDArray[Any],
        threads: int = 1,
    ) -> NDArray[Any]:
        """Write k(x_i, x_j) of rows i in `left` and j in `right` into `out`.

        Parameters
        ----------
        left, right : ndarray of int or slice
            Rows.
        out : ndarray of shape (n_left, n_right)
            Where to write.
        threads : int, default=1
            Threads that may share the work.
        """
        n_left, n_right = out.shape
        work = float(n_left) * n_right * (self.rows.shape[1] + 16)
        pieces = min(int(work / _PIECE), n_right // _LEAST_COLUMNS, _MOST_PIECES)
        if pieces <= 1:
            return self._values(left, right, out)
        cuts = np.linspace(0, n_right, pieces + 1).astype(int).tolist()

        def fill(where: slice) -> None:
            self._values(left, _part(right, where), out[:, where])

        for _ in ordered_map(fill, map(slice, cuts[:-1], cuts[1:]), threads):
            pass
        return out

    def _values(
        self, left: IndexArray | slice, right: IndexArray | slice, out: NDArray[Any]
    ) -> NDArray[Any]:
        if self.centred is not None:
            self.centred.values(left, right, out)
            return out
        rows, everything = self.rows, np.arange(self.rows.shape[0])
        block, vectors = rows.block(everything[left]), everything[right]
        if rows.sparse and self.kernel.sparse_vectors:
            others = rows.block(vectors)
            if is_thin(others):
                self.kernel.checked_block(block, others, out)
                return out
        # Dense vectors take room: a few at a time.
        step = rows.vectors_at_a_time
        for begin in range(0, len(vectors), step):
            part = rows.take(vectors[begin : begin + step])
            self.kernel.checked_block(block, part, out[:, begin : begin + step])
        return out

    def matrix(self) -> NDArray[Any]:
        """Return the values of all pairs of rows, in threads.

        Half of it is computed and mirrored, unless a value takes less time than a copy of it.
        """
        n, n_features = self.rows.shape
        K = np.empty((n, n), dtype=self.dtype)
        product = isinstance(self.kernel, ProductKernel) and not self.rows.sparse
        cheap = product and n_features <= _FEW_FEATURES
        size = max(1, min(_FULL_BLOCK if cheap else _MATRIX_BLOCK, self.rows.vectors_at_a_time))

        def fill(first: int) -> None:
            last = min(n, first + size)
            width = n if cheap else last
            self._values(slice(first, last), slice(0, width), K[first:last, :width])
            if not cheap:
                loops.mirror(K, first, last)

        # The longest first: the last of them shall not be waited for by all other threads.
        for _ in ordered_map(fill, range(0, n, size)[::-1], self.rows.threads):
            pass
        return K


def _part(index: IndexArray | slice, where: slice) -> IndexArray | slice:
    """Return a part of an index; a slice must have no step."""
    if isinstance(index, slice):
        first = index.start or 0
        return slice(first + where.start, first + where.stop)
    return index[where]


@dataclass(frozen=True)
class _Centre:
    """Visitor: rows about a point, written where they belong."""

    centred: CentredRows
    middle: NDArray[np.float64]

    def __call__(self, block: Any, where: slice) -> None:
        self.centred.put(block, self.middle, where)


def is_thin(block: Any) -> bool:
    """Return whether a CSR matrix has so few entries that it is better left as one."""
    return bool(block.nnz < DENSE_SHARE * block.shape[0] * block.shape[1])


def vectors_for(kernel: Kernel, rows: Rows, index: IndexArray) -> Any:
    """Return rows as vectors for many kernel values: sparse ones stay so where that is faster."""
    block = rows.block(index) if rows.sparse and kernel.sparse_vectors else None
    return rows.take(index) if block is None or not is_thin(block) else block


def kernel_values(
    kernel: Kernel,
    rows: Rows,
    vectors: NDArray[Any],
    out: NDArray[Any],
    index: IndexArray | None = None,
) -> NDArray[Any]:
    """Write k(x, v) of rows (all if index is None) and vectors into `out`, in threads."""
    step = rows.vectors_at_a_time
    for begin in range(0, len(vectors), step):
        part = vectors[begin : begin + step]
        visit = _KernelInto(kernel, part, out[:, begin : begin + step])
        for _ in rows.scan(visit, index, width=len(part)):
            pass
    return out


@dataclass(frozen=True)
class _KernelInto:
    """Visitor: k(block, vectors) written where it belongs, for rows in this process."""

    kernel: Kernel
    vectors: NDArray[Any]
    out: NDArray[Any]

    def __call__(self, block: Any, where: slice) -> None:
        self.kernel.checked_block(block, self.vectors, self.out[where])
