"""Dask arrays, data frames and mapped files as partitions of rows, labels and weights."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.rows import parse_memory

# Bytes of a partition of a mapped file, at the most.
_PIECE = 16_000_000
# Share of the memory that the rows of a mapped file take where they are looked at in parts.
_LARGE_SHARE = 0.25


def is_collection(X: Any) -> bool:
    """Return whether X is a Dask array or data frame; Dask is not imported for that."""
    return hasattr(X, "__dask_graph__")


def is_large_map(X: Any, memory: int | str) -> bool:
    """Return whether X is a mapped file whose rows would take much of the memory for a fit."""
    if not isinstance(X, np.memmap) or X.ndim != 2:
        return False
    return bool(X.nbytes > _LARGE_SHARE * parse_memory(memory))


@dataclass(frozen=True)
class Partitions:
    """Rows, labels and weights, a delayed object for each partition.

    Attributes
    ----------
    rows : list
        Delayed blocks, or arrays: parts of a mapped file.
    labels : list or None
        Delayed labels or arrays, or None where there are none.
    weights : list or None
        Delayed weights or arrays, or None where all are 1.
    n_features : int
        Columns.
    names : ndarray of str or None
        Names of the columns of a data frame.
    """

    rows: list[Any]
    labels: list[Any] | None
    weights: list[Any] | None
    n_features: int
    names: NDArray[Any] | None

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.rows)

    def computed(self, wanted: Any) -> Any:
        """Return blocks of partitions, in whatever they stand, as arrays in this process."""
        if not is_collection(self.rows[0]) and not self._delayed_beside():
            return wanted
        import dask

        (found,) = dask.compute(wanted, scheduler="threads")
        return found

    def _delayed_beside(self) -> bool:
        return any(
            is_collection(each[0]) for each in (self.labels or [None], self.weights or [None])
        )

    def forget_pages(self) -> None:
        """Let the system take back the pages of a mapped file that was read."""
        file = getattr(self.rows[0], "_mmap", None)
        # What was written into a copy of pages would be lost.
        if file is not None and self.rows[0].mode == "r" and hasattr(mmap, "MADV_DONTNEED"):
            file.madvise(mmap.MADV_DONTNEED)

    def groups(self, count: int) -> list[range]:
        """Return neighbouring partitions in so many groups at the most, of about equal length."""
        ends = np.linspace(0, len(self), min(count, len(self)) + 1).round().astype(int)
        return [range(a, b) for a, b in pairwise(ends.tolist())]


def partitions_of(X: Any, y: Any, sample_weight: Any = None) -> Partitions:
    """Take collections apart, or raise if they do not belong together.

    Parameters
    ----------
    X : Dask array or data frame, or memmap
        Rows; a chunk holds all columns of its rows. A mapped file is cut here.
    y : Dask array or series, array-like, or None
        Labels, cut as the rows are; an array is cut here, if the rows' chunks are known.
    sample_weight : like y, default=None
        Weights.
    """
    rows, sizes = _pieces(X) if isinstance(X, np.memmap) else _blocks(X, "X", 2)
    names = None
    if hasattr(X, "columns"):
        names = np.asarray(X.columns, dtype=object)
    n_features = len(names) if names is not None else int(X.shape[1])
    labels = None if y is None else _beside(y, "y", len(rows), sizes)
    weights = None
    if sample_weight is not None:
        weights = _beside(sample_weight, "sample_weight", len(rows), sizes)
    return Partitions(rows, labels, weights, n_features, names)


def _pieces(X: Any) -> tuple[list[Any], list[float]]:
    """Return parts of a mapped file, and their numbers of rows."""
    step = max(1, _PIECE // max(1, X.itemsize * X.shape[1]))
    rows = [X[first : first + step] for first in range(0, len(X), step)]
    return rows, [float(len(each)) for each in rows]


def _blocks(collection: Any, name: str, ndim: int) -> tuple[list[Any], list[float] | None]:
    """Return the delayed blocks of a collection, and their numbers of rows if they are known."""
    if hasattr(collection, "to_delayed") and hasattr(collection, "chunks"):
        if collection.ndim != ndim:
            raise ValueError(f"{name} must have {ndim} dimensions, but has {collection.ndim}.")
        if ndim == 2 and len(collection.chunks[1]) > 1:
            raise ValueError(
                f"{name} has {len(collection.chunks[1])} chunks along its columns, but a chunk "
                f"must hold all columns of its rows; use {name}.rechunk({{1: -1}})."
            )
        sizes = [float(size) for size in collection.chunks[0]]
        known = None if np.isnan(sizes).any() else sizes
        return list(collection.to_delayed().ravel()), known
    if hasattr(collection, "to_delayed"):
        return _frame_blocks(collection), None
    raise TypeError(
        f"{name} is a {type(collection).__name__}, which is no Dask array or data frame; pass one "
        "of these, or an array."
    )


def _frame_blocks(frame: Any) -> list[Any]:
    """Return the delayed partitions of a data frame or series, cut as the user sees it.

    Optimised, a column of a Parquet file would have fewer partitions than the whole of it; without
    any change of the expression, all columns would be read for its sake.
    """
    return list(frame.simplify().to_delayed(optimize_graph=False))


def _beside(values: Any, name: str, count: int, sizes: Sequence[float] | None) -> list[Any]:
    """Return labels or weights in as many blocks as there are of rows."""
    if not is_collection(values):
        if sizes is None:
            raise ValueError(
                f"{name} is no Dask collection, and the chunks of X have unknown sizes, so that it "
                f"cannot be cut; pass {name} as a Dask array or series cut as X is, or call "
                "X.compute_chunk_sizes() first."
            )
        array = np.asarray(values)
        if len(array) != sum(sizes):
            raise ValueError(f"X has {int(sum(sizes)):,} rows, but {name} has {len(array):,}.")
        return list(np.split(array, np.cumsum(sizes)[:-1].astype(int)))
    chunks = getattr(values, "chunks", None)
    if chunks is not None and sizes is not None and not np.isnan(chunks[0]).any():
        if sum(chunks[0]) != sum(sizes):
            raise ValueError(
                f"X has {int(sum(sizes)):,} rows, but {name} has {int(sum(chunks[0])):,}."
            )
        values = values.rechunk((tuple(int(size) for size in sizes),))
    blocks, _ = _blocks(values, name, 1)
    if len(blocks) != count:
        raise ValueError(
            f"X has {count} partitions, but {name} has {len(blocks)}: it must be cut as X is. "
            "Columns of one data frame are, if they are passed as they are and not as arrays."
        )
    return blocks


def mapped(function: Any, X: Any, meta: NDArray[Any]) -> Any:
    """Return a lazy Dask array of what a function says of every block of rows.

    Parameters
    ----------
    function : callable
        Takes a block of rows, and returns an array with a row for each.
    X : Dask array or data frame
        Rows.
    meta : ndarray
        An empty array of the type and dimensions of the answers.
    """
    import dask.array as da

    if hasattr(X, "columns"):
        blocks = _frame_blocks(X)
        sizes: tuple[Any, ...] = (np.nan,) * len(blocks)
    else:
        blocks, _ = _blocks(X, "X", 2)
        sizes = X.chunks[0]
    from dask import delayed

    call = delayed(partial(_of_block, function, meta), pure=False)
    parts = [
        da.from_delayed(call(block), (size, *meta.shape[1:]), meta=meta)
        for block, size in zip(blocks, sizes, strict=True)
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _of_block(function: Any, meta: NDArray[Any], block: Any) -> Any:
    """Return what a function says of a block of rows, which may be empty."""
    return function(block) if block.shape[0] else meta
