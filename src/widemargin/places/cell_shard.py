"""What a shard does for a fit in cells: sort its rows, say where they belong, and hand them out.

All are functions of rows that were loaded and of what another of them has made of these rows, so
that they can be tasks of a cluster, or be asked of one partition after another. What is kept of a
row beside itself are its place in the order of keys, its two nearest cells and how far it is from
the edge between them: 20 bytes, and 8 more if a shard holds equal rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Codes, IndexArray, Matrix, Vector
from widemargin.balls.ball import largest_norm2
from widemargin.cells.partition import Partition, grouped
from widemargin.kernels import Kernel
from widemargin.places.loading import Loaded, bytes_of, stacked
from widemargin.problem import Problem, check_prices, codes_among
from widemargin.rows import Distinct, Rows, as_rows, distinct_rows
from widemargin.threads import single_threaded_blas

# Depths that a shard tells of the rows outside each cell: they bound how many rows are sent for
# nothing, one in so many.
N_DEPTHS = 8
# Keys that a shard tells at the most: they show how many rows it has in common with others.
_KEYS = 4096


@dataclass(frozen=True)
class RowsPlan:
    """What a shard must know of all rows to sort its own.

    Attributes
    ----------
    kernel : Kernel
        k.
    classes : ndarray
        Labels of all rows.
    factor : ndarray of shape (n_classes,)
        Factors on the weights of the classes' rows.
    C : float
        C.
    first : int
        Number of the shard's first row among all rows.
    memory, threads : int
        Bytes beside the rows, and threads.
    kind : ndarray of int or None
        A number for each of its rows: equal rows with other numbers stay apart.
    """

    kernel: Kernel
    classes: NDArray[Any]
    factor: Vector
    C: float
    first: int
    memory: int
    threads: int
    kind: NDArray[Any] | None = None

    def apart(self, code: Codes, index: Any = slice(None)) -> Codes:
        """Return numbers that tell equal rows apart, from the classes of some rows."""
        if self.kind is None:
            return code
        return np.asarray(code + len(self.classes) * self.kind[index].astype(np.intp))

    def rows(self, loaded: Loaded) -> Rows:
        """Return loaded rows."""
        return as_rows(loaded.X, memory=self.memory, threads=self.threads)


@dataclass(frozen=True)
class SortedRows:
    """The different rows of a shard in the order of their keys.

    Attributes
    ----------
    index : ndarray of int of shape (n,)
        Where they are among the loaded ones.
    weight : ndarray of shape (n,) or None
        The summed weights of equal rows; None where all rows are different.
    """

    index: NDArray[Any]
    weight: Vector | None

    def __sizeof__(self) -> int:
        """Return the bytes that it takes, for Dask."""
        return bytes_of(self.index) + (0 if self.weight is None else bytes_of(self.weight))

    def weights(self, loaded: Loaded, chosen: Any = slice(None)) -> Vector:
        """Return the weights of some of them, without the factors of classes."""
        merged = self.weight
        weights: Vector = loaded.weight[self.index[chosen]] if merged is None else merged[chosen]
        return weights


@dataclass(frozen=True)
class RowCounts:
    """What is to be known of the different rows of a shard.

    Attributes
    ----------
    n : int
        How many there are.
    norm2 : float
        The largest k(x, x) + 1 + ridge of one of them; 0 where there is none.
    keys : ndarray of uint64
        The least of their keys.
    """

    n: int
    norm2: float
    keys: NDArray[np.uint64]


def sort_rows(loaded: Loaded, plan: RowsPlan) -> tuple[SortedRows, RowCounts]:
    """Return the different rows of a shard, and what is to be known of them."""
    code = codes_among(plan.classes, loaded.y, loaded.weight, "which is no class of the others.")
    if not (loaded.weight > 0).any():
        nothing = RowCounts(0, 0.0, np.empty(0, dtype=np.uint64))
        return SortedRows(np.empty(0, dtype=np.int32), None), nothing
    distinct = distinct_rows(plan.rows(loaded), plan.apart(code), loaded.weight)
    problem = _problem_of(replace(distinct, code=code[distinct.index]), plan)
    small = len(loaded.y) <= np.iinfo(np.int32).max
    index = distinct.index.astype(np.int32) if small else distinct.index
    merged = len(index) < np.count_nonzero(loaded.weight > 0)
    counts = RowCounts(problem.n, largest_norm2(problem), distinct.rows.keys[:_KEYS].copy())
    return SortedRows(index, distinct.weight if merged else None), counts


def distinct_share(counts: Sequence[RowCounts]) -> float:
    """Return how many of the shards' different rows are different among all shards, as a share.

    Rows with the least keys of all tell it.
    """
    keys = np.concatenate([each.keys for each in counts])
    # Beyond the last key that a shard has told there may be more of its rows.
    last = [each.keys[-1] for each in counts if len(each.keys) < each.n]
    if last:
        keys = keys[keys <= min(last)]
    return len(np.unique(keys)) / max(1, len(keys))


def _problem_of(distinct: Distinct, plan: RowsPlan) -> Problem:
    """Return a problem with the weights of rows, and no meaning beside."""
    table = np.ones((len(plan.classes), 1))
    weight = distinct.weight * plan.factor[distinct.code]
    check_prices(plan.C, weight)
    return Problem.of(distinct.rows, plan.kernel, distinct.code, table, weight, plan.C)


@dataclass(frozen=True)
class Piece:
    """Rows of a shard that are brought to others.

    Attributes
    ----------
    X : ndarray or CSR matrix
        Rows, in the order of their keys.
    code : ndarray of int of shape (m,)
        Their classes.
    apart : ndarray of int of shape (m,)
        Numbers that tell equal rows apart: classes, or classes and kinds.
    weight : ndarray of shape (m,)
        Their weights, without the factors of classes.
    number : ndarray of int of shape (m,)
        Their numbers among all rows.
    cell, second : ndarray of int32 of shape (m,)
        The cells in which they train, as rows inside and from outside; −1 for none.
    depth : ndarray of shape (m,)
        How far inside their own cell they are.
    """

    X: Any
    code: Codes
    apart: Codes
    weight: Vector
    number: IndexArray
    cell: NDArray[np.int32]
    second: NDArray[np.int32]
    depth: Vector

    def __sizeof__(self) -> int:
        """Return the bytes that it takes, for Dask."""
        return sum(bytes_of(value) for value in vars(self).values())

    @classmethod
    def of(cls, parts: Sequence[Piece]) -> Piece:
        """Return the rows of several pieces as one."""
        return cls(
            stacked([part.X for part in parts]),
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in ("code", "apart", "weight", "number", "cell", "second", "depth")
            ),
        )

    def distinct(self, memory: int, threads: int) -> Distinct:
        """Return the rows in the order of their keys; those that several shards have, once."""
        rows = as_rows(self.X, memory=memory, threads=threads)
        found = distinct_rows(rows, self.apart, self.weight)
        return replace(found, code=self.code[found.index])


def _piece(
    loaded: Loaded,
    rows: SortedRows,
    plan: RowsPlan,
    chosen: Any,
    cell: NDArray[np.int32],
    second: NDArray[np.int32],
    depth: Vector,
) -> Piece:
    index = rows.index[chosen]
    weight = rows.weights(loaded, chosen)
    code = codes_among(plan.classes, loaded.y[index], weight, "which is no class of the others.")
    number = plan.first + index.astype(np.intp)
    # Copies, all of them: a piece may outlive the rows that it is of.
    apart = plan.apart(code, index)
    return Piece(loaded.X[index], code, apart, np.array(weight), number, cell, second, depth)


def first_rows(loaded: Loaded, rows: SortedRows, plan: RowsPlan, count: int) -> Piece:
    """Return the rows of a shard with the least keys: they are a sample."""
    count = min(count, len(rows.index))
    none = np.full(count, -1, dtype=np.int32)
    return _piece(loaded, rows, plan, np.arange(count), none, none, np.zeros(count))


@dataclass(frozen=True)
class Assigned:
    """Where the sorted rows of a shard belong.

    Attributes
    ----------
    cell, second : ndarray of int32 of shape (n,)
        The nearest and the second nearest cell; −1 if there is none.
    depth : ndarray of shape (n,)
        How much farther the second is.
    """

    cell: NDArray[np.int32]
    second: NDArray[np.int32]
    depth: Vector

    def __sizeof__(self) -> int:
        """Return the bytes that it takes, for Dask."""
        return sum(bytes_of(value) for value in vars(self).values())


@dataclass(frozen=True)
class Census:
    """How many rows of a shard belong to each cell.

    Attributes
    ----------
    inside, outside : ndarray of int of shape (n_cells,)
        Rows for which it is the nearest, and the second nearest.
    depths : ndarray of float32 of shape (n_cells, N_DEPTHS)
        Of the rows outside, in the order of their depths, that of the last in each of so many
        equal parts, rounded up.
    weight : ndarray of shape (n_cells, n_classes)
        Weight of the rows inside by class, with the factors of classes.
    """

    inside: IndexArray
    outside: IndexArray
    depths: NDArray[np.float32]
    weight: Matrix


def assign_rows(
    loaded: Loaded, rows: SortedRows, plan: RowsPlan, partition: Partition, overlap: bool
) -> tuple[Assigned, Census]:
    """Return the nearest cells of the rows of a shard, and how many there are of each."""
    n, n_cells = len(rows.index), partition.n_cells
    cell = np.empty(n, dtype=np.int32)
    second, depth = np.full(n, -1, dtype=np.int32), np.zeros(n)
    if n:
        with single_threaded_blas():
            near = partition.nearest(plan.rows(loaded).subset(rows.index), 2 if overlap else 1)
        cell[:] = near.cell[:, 0]
        if near.cell.shape[1] > 1:
            second[:], depth = near.cell[:, 1], near.depth
    code = codes_among(
        plan.classes, loaded.y[rows.index], rows.weights(loaded), "which is no class of the others."
    )
    weight = rows.weights(loaded) * plan.factor[code]
    flat = cell.astype(np.intp) * len(plan.classes) + code
    sums: Vector = np.bincount(flat, weight, n_cells * len(plan.classes)).astype(np.float64)
    outside, depths = _depths(second, depth, n_cells)
    inside = np.bincount(cell, minlength=n_cells)
    return Assigned(cell, second, depth), Census(inside, outside, depths, sums.reshape(n_cells, -1))


def _depths(
    second: NDArray[np.int32], depth: Vector, n_cells: int
) -> tuple[IndexArray, NDArray[np.float32]]:
    """Return how many rows are outside of each cell, and what a census says of their depths."""
    there = np.flatnonzero(second >= 0)
    order = there[np.lexsort((depth[there], second[there]))]
    outside = np.bincount(second[there], minlength=n_cells)
    ends = np.cumsum(outside)
    last = ends[:, None] - outside[:, None] + parts_of(outside) - 1
    found = np.full((n_cells, N_DEPTHS), np.inf)
    filled = outside > 0
    found[filled] = depth[order[np.maximum(last[filled], 0)]]
    return outside, np.nextafter(found.astype(np.float32), np.float32(np.inf))


def parts_of(count: IndexArray) -> IndexArray:
    """Return how many of so many rows are in the first, in the first two, ... of N_DEPTHS parts."""
    share = np.arange(1, N_DEPTHS + 1)
    parts: IndexArray = -(-count[:, None] * share // N_DEPTHS)
    return parts


@dataclass(frozen=True)
class Buckets:
    """Which cells are brought together.

    Attributes
    ----------
    bucket : ndarray of int32 of shape (n_cells,)
        Number of the bucket of each cell; −1 for those that are not wanted.
    n : int
        Buckets.
    depth : ndarray of shape (n_cells,)
        Rows outside a cell are wanted up to this depth.
    """

    bucket: NDArray[np.int32]
    n: int
    depth: Vector


def hand_out(
    loaded: Loaded, rows: SortedRows, assigned: Assigned, plan: RowsPlan, wanted: Buckets
) -> list[Piece]:
    """Return the rows of a shard that train in each bucket."""
    cell, second, depth = assigned.cell, assigned.second, assigned.depth
    own = wanted.bucket[cell]
    other = np.where((second >= 0) & (depth <= wanted.depth[second]), wanted.bucket[second], -1)
    inside, outside = np.flatnonzero(own >= 0), np.flatnonzero((other >= 0) & (other != own))
    row = np.concatenate([inside, outside])
    bucket = np.concatenate([own[inside], other[outside]])
    order, first = grouped(bucket, wanted.n)
    pieces = []
    for b in range(wanted.n):
        chosen = np.sort(row[order[first[b] : first[b + 1]]])
        inner, outer = (
            np.where(kind[chosen] == b, number[chosen], -1).astype(np.int32)
            for kind, number in ((own, cell), (other, second))
        )
        pieces.append(_piece(loaded, rows, plan, chosen, inner, outer, depth[chosen]))
    return pieces
