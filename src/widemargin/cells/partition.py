"""Cells of about the same size, nearest centres found by k-means on a sample.

Rows come in the order of a hash of their content, so that the first ones are a sample, and as many
of these are random centres to start from: the partition depends on the rows alone. After Lloyd's
iterations, several centres take the place of those of cells that are too large on the sample, and
centres of tiny cells go; the iterations then settle what has changed. One pass assigns all rows.
``nearest_centers`` compares rows and centres.

Beyond so many cells (`ONE_LEVEL`) there are two levels: k-means of the first rows of the sample
finds middles, about the root of the number of cells, and every step of Lloyd's puts the centres
into the groups of their nearest middles, so that a row is compared with those of a few groups.

Where time is limited, the iterations end after a part of it, and there are no more centres than one
pass over all rows has time for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import IndexArray
from widemargin.cells.nearest_centers import (
    Cells,
    Groups,
    Matrix,
    OneLevel,
    TwoLevels,
    made_ready,
    n_groups_for,
)
from widemargin.device import to_numpy
from widemargin.loop import Deadline
from widemargin.rows import TALL, Rows
from widemargin.threads import ordered_map

# A step of Lloyd's: centres, and cells and their sizes before it, on any device.
Move = Callable[[Any], tuple[Any, Any, Any]]

# Rows of the sample for each cell.
_SAMPLE_PER_CELL = 20
# Iterations of Lloyd's method.
_ITERATIONS = 3
# Rounds of them after cells were split or went.
_ROUNDS = 5
# A cell is too large at this many times the size that is wanted.
_TOO_LARGE = 2.0
# And tiny at this many.
_TINY = 0.125
# Rows of the sample that are looked at together: fixed, so that threads do not change the sums.
_CHUNK = 512
# Part of the time that is left, where it is limited, for the iterations.
_TIME_TO_MOVE = 0.25
# And for the pass that assigns all rows.
_TIME_TO_ASSIGN = 0.25
# What a row costs in the pass, relative to a row of the sample: two centres, and distances.
_PASS = 2.0
# Cells up to which every row is compared with every centre.
ONE_LEVEL = 2048
# Cells that there are in any case: few centres are soon compared.
_LEAST_CELLS = 16


@dataclass(frozen=True)
class Near:
    """The nearest centres of rows.

    Attributes
    ----------
    cell : ndarray of int of shape (n, count)
        Their numbers, the nearest first.
    distance : ndarray of shape (n, count)
        Distances from them.
    """

    cell: Cells
    distance: NDArray[np.float64]

    @property
    def depth(self) -> NDArray[np.float64]:
        """0 where the two nearest are equally near, the larger the farther inside its own cell."""
        depth: NDArray[np.float64] = self.distance[:, 1] - self.distance[:, 0]
        return depth


@dataclass(frozen=True)
class Partition:
    """The cells of centres: each holds what is nearer to its centre than to any other.

    Where centres are in groups, to any other of the groups that a row looks at (see
    ``nearest_centers``).

    Attributes
    ----------
    centers : ndarray of shape (n_cells, n_features)
        Centres, all different.
    groups : Groups or None
        Groups of them, which follow each other; None where all are looked at.
    """

    centers: NDArray[np.float64]
    groups: Groups | None = None

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.centers)

    def nearest(self, rows: Rows, count: int = 1) -> Near:
        """Return the nearest centres of all rows, fewer than `count` where there are fewer."""
        count = min(count, self.n_cells)
        # The answer, and a row that is made dense.
        width = 2 * count + rows.shape[1]
        parts = list(rows.scan(_Nearest(self._ready, count), width=width, most_rows=TALL))
        cell = np.concatenate([cell for cell, _ in parts])
        return Near(cell, np.concatenate([distance for _, distance in parts]))

    def subset(self, chosen: IndexArray) -> Partition:
        """Return the partition of some of the centres, whose numbers ascend."""
        groups = None if self.groups is None else self.groups.subset(chosen)
        return Partition(self.centers[chosen], groups)

    @cached_property
    def _ready(self) -> OneLevel | TwoLevels:
        return made_ready(self.centers, self.groups)


def given_partition(cells: Any, n_features: int) -> tuple[Partition, IndexArray]:
    """Return the cells of a user's centres and which of those they are, or say what is wrong."""
    try:
        centers = np.array(cells, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"cells={cells!r} must be 'auto', a size, or a table of centres."
        ) from error
    if centers.ndim != 2 or not len(centers) or centers.shape[1] != n_features:
        raise ValueError(
            f"cells must be 'auto', the size of a cell, or centres of {n_features} features, but "
            f"has shape {centers.shape}."
        )
    if not np.isfinite(centers).all():
        raise ValueError("cells holds values that are not finite; give other centres.")
    different, number = np.unique(centers, axis=0, return_index=True)
    return Partition(different), number


def grouped(number: IndexArray, n_groups: int) -> tuple[IndexArray, IndexArray]:
    """Return rows in the order of their groups, and where each group begins, and the end.

    Parameters
    ----------
    number : ndarray of int of shape (n,)
        The group of each row.
    n_groups : int
        Groups.
    """
    # Small numbers are sorted without being compared.
    small = number.astype(np.uint16) if n_groups <= 2**16 else number
    order: IndexArray = np.argsort(small, kind="stable")
    begins = np.concatenate([[0], np.cumsum(np.bincount(number, minlength=n_groups))])
    return order, begins


def partition_by_kmeans(
    rows: Rows, size: int, threads: int, deadline: Deadline, one_level: int = ONE_LEVEL
) -> Partition:
    """Cut rows into cells of about `size` rows.

    Parameters
    ----------
    rows : Rows
        Distinct rows, in a random order.
    size : int
        Rows of a cell.
    threads : int
        Threads; the answer does not depend on it.
    deadline : Deadline
        When all is to be done, the pass that assigns the rows included: where it is near, cells are
        less well balanced, or larger.
    one_level : int, default=2048
        Cells up to which every row is compared with every centre.
    """
    n = rows.shape[0]
    sample = rows.take(np.arange(min(n, sample_size(n, size))))
    return partition_of_sample(sample, n, size, threads, deadline, one_level=one_level)


def sample_size(n: int, size: int) -> int:
    """Return how many rows tell where the centres of cells of about `size` of n rows lie."""
    return _SAMPLE_PER_CELL * max(1, round(n / size))


def partition_of_sample(
    rows: Matrix,
    n: int,
    size: int,
    threads: int,
    deadline: Deadline,
    mover: Callable[[Matrix], Move] | None = None,
    one_level: int = ONE_LEVEL,
) -> Partition:
    """Cut n rows, of which the first are given, into cells of about `size` rows.

    Parameters
    ----------
    rows : ndarray of shape (sample_size(n, size), n_features)
        Distinct rows in a random order; fewer only if there are no more.
    n, size, threads, deadline
        As in `partition_by_kmeans`.
    mover : callable, default=None
        Makes of points what takes a step of Lloyd's elsewhere, as `_moved` does here; there is one
        level then.
    one_level : int, default=2048
        As in `partition_by_kmeans`.
    """
    n_cells = max(1, round(n / size))
    sample = np.asarray(rows, dtype=np.float64)
    if n_cells == 1:
        return Partition(sample.mean(axis=0)[None])
    origin = sample.mean(axis=0)
    # One number for all columns: distances keep their meaning.
    unit = float(np.abs(sample - origin).max()) or 1.0
    points = (sample - origin) / unit
    if deadline.max_time is not None and mover is None:
        n_cells = _cells_in_time(points, n_cells, n, threads, deadline, one_level)
    until = deadline.part(_TIME_TO_MOVE)
    middles = None
    if mover is None and n_cells > one_level:
        middles = _middles(points, n_cells, threads, until)

    def moved_here(centers: Any) -> tuple[Any, Any, Any]:
        return _moved(points, centers, threads, middles)

    move = moved_here if mover is None else mover(points)
    centers = np.unique(points[:n_cells], axis=0)
    wanted = len(points) / n_cells
    centers = _settled(points, centers, wanted, move, until)
    found = np.unique(origin + unit * centers, axis=0)
    if middles is None:
        return Partition(found)
    return Partition(*Groups.of(found, np.unique(origin + unit * middles, axis=0)))


def _middles(points: Matrix, n_cells: int, threads: int, deadline: Deadline) -> Matrix:
    """Return the middles of groups of so many cells."""
    count = n_groups_for(n_cells)
    few = points[: _SAMPLE_PER_CELL * count]

    def move(centers: Any) -> tuple[Any, Any, Any]:
        return _moved(few, centers, threads)

    return _settled(few, np.unique(few[:count], axis=0), len(few) / count, move, deadline)


def _cells_in_time(
    points: Matrix, n_cells: int, n: int, threads: int, deadline: Deadline, one_level: int
) -> int:
    """Return to how many centres, of those wanted, all rows can be compared before a deadline."""
    some, centers, groups = points[:_CHUNK], points[:n_cells], None
    if n_cells > one_level:
        centers, groups = Groups.of(centers, centers[: n_groups_for(n_cells)])
    # The first call compiles, or loads what was compiled.
    ready = made_ready(centers, groups)
    ready.nearest(some[:1], 1)
    begun = perf_counter()
    ready.nearest(some, 1)
    seconds = _PASS * (perf_counter() - begun) * n / (len(some) * threads)
    allowed = _TIME_TO_ASSIGN * (deadline.left() or 0.0)
    if seconds <= allowed:
        return n_cells
    fewer = max(min(n_cells, _LEAST_CELLS), int(n_cells * allowed / seconds))
    if fewer <= one_level < n_cells:
        # A single level costs more for each centre.
        return _cells_in_time(points, max(1, one_level), n, threads, deadline, one_level)
    return fewer


def _settled(
    points: Matrix, centers: Matrix, wanted: float, move: Move, deadline: Deadline
) -> Matrix:
    """Return the centres of cells of about the wanted size on the sample."""
    for last in range(_ROUNDS, -1, -1):
        # A single one in the end: more of them would let cells grow again.
        for _ in range(_ITERATIONS if last > 0 else 1):
            if deadline.passed:
                return to_numpy(centers)
            centers, nearest, count = move(centers)
        if last == 0:
            break
        found = to_numpy(centers), to_numpy(nearest), to_numpy(count)
        balanced = _balanced(points, *found, wanted)
        if balanced is None:
            break
        centers = balanced
    return to_numpy(centers)


def _moved(
    points: Matrix, centers: Matrix, threads: int, middles: Matrix | None = None
) -> tuple[Matrix, Cells, Cells]:
    """Take a step of Lloyd's; return centres, and cells and their sizes before it.

    With middles, centres come back in the order of their groups.
    """
    groups = None
    if middles is not None:
        centers, groups = Groups.of(centers, middles)
    ready = made_ready(centers, groups)

    def nearest_of(first: int) -> Cells:
        return ready.nearest(points[first : first + _CHUNK], 1)[0][:, 0]

    nearest = np.concatenate(list(ordered_map(nearest_of, range(0, len(points), _CHUNK), threads)))
    count = np.bincount(nearest, minlength=len(centers))
    ones = np.ones(len(points))
    member = sparse.csr_array(
        (ones, (nearest, np.arange(len(points)))), shape=(len(centers), len(points))
    )
    sums = member @ points
    filled = count > 0
    moved = np.where(filled[:, None], sums / np.maximum(count, 1)[:, None], centers)
    return moved, nearest, count


def _balanced(
    points: Matrix, centers: Matrix, nearest: Cells, count: Cells, wanted: float
) -> Matrix | None:
    """Return centres without those of tiny cells and with more for large ones; None if none is."""
    tiny, large = count < _TINY * wanted, count > _TOO_LARGE * wanted
    if not tiny.any() and not large.any():
        return None
    order, first = grouped(nearest, len(centers))
    more = []
    for cell in np.flatnonzero(large):
        members = order[first[cell] : first[cell + 1]]
        parts = round(count[cell] / wanted)
        # Means of random parts: in many dimensions, single rows would be nearest to no others.
        more += [points[members[k::parts]].mean(axis=0)[None] for k in range(parts)]
    return np.unique(np.concatenate([centers[~(tiny | large)], *more]), axis=0)


@dataclass(frozen=True)
class _Nearest:
    """Visitor: the nearest centres of a block of rows, and the distances from them."""

    centers: OneLevel | TwoLevels
    count: int

    def __call__(self, block: Any, where: slice) -> tuple[Cells, NDArray[np.float64]]:
        dense = block.toarray() if sparse.issparse(block) else block
        return self.centers.nearest(dense, self.count)
