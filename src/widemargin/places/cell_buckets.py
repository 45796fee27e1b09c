"""Where buckets of cells get their rows and are fitted: in this process, or on a cluster.

Here, a pass over all partitions brings together the rows of as many buckets as fit into a part of
the memory, and they are fitted one after another, with all threads; then comes the next pass.

On a cluster, a task for each shard cuts its rows into pieces, one for each bucket. A task for each
bucket takes its pieces from all shards and fits its cells. Nothing but machines comes back. All
tasks depend on nothing that was there before but the collection: what a dead worker had is made
again, with the same bits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, Protocol

import numpy as np

from widemargin.arrays import IndexArray, Vector
from widemargin.cells.cell_engine import CellOptions
from widemargin.loop import Deadline, PlaceLost
from widemargin.places.bucket import Bucket, Work, done_there, fit_bucket
from widemargin.places.cell_shard import Buckets, Piece, hand_out
from widemargin.places.on_workers import loss_is_told, named
from widemargin.places.sorted_shards import SortedShards
from widemargin.places.sources import Cluster, OutOfCore, part_of
from widemargin.span.shards import Each

# Share of the memory for rows that are brought together; they are there twice for a moment.
_ROWS_SHARE = 0.15
# Bytes of a row beside itself in a piece: class, weight, number, depth and two cells.
_BESIDE = 40
# Cells of a bucket in this process: as many as in a step of the fit in memory.
_CELLS_AT_A_TIME = 1024
# Buckets for each thread of a cluster, and pieces of all shards at the most.
_BUCKETS_OF_A_THREAD = 8
_MOST_PIECES = 200_000
# Buckets that wait for each thread where time is limited: a task is told what is left of it.
_AHEAD = 2
# Seconds that are waited for tasks whose time is over, and for a scheduler; and between two looks.
_GRACE = 2.0
_PATIENCE = 10.0
_LOOK = 0.5


class BucketPlace(Protocol):
    """Where buckets are fitted.

    Attributes
    ----------
    n_passes : int
        How often all rows were looked at.
    """

    n_passes: int

    def limits(self, options: CellOptions) -> dict[str, Any]:
        """Return the memory and the threads that a bucket may use."""

    def parts(self, order: Sequence[int], sizes: IndexArray) -> list[IndexArray]:
        """Return the cells of each bucket, from cells in the order in which they are fitted."""

    def begin(self, buckets: Sequence[Bucket], n_cells: int) -> None:
        """Say what will be fitted."""

    def fitted(self, waiting: Sequence[int], deadline: Deadline) -> Iterator[tuple[int, Any]]:
        """Yield some buckets that wait, at least one if there is time, and their machines."""

    def end(self) -> None:
        """Forget what was not fitted."""


def place_of(
    shards: SortedShards, assigned: Each, depth: Vector, stated: Any, work: Work = fit_bucket
) -> BucketPlace:
    """Return the place where the rows of a source are brought together.

    Parameters
    ----------
    shards : SortedShards
        The rows.
    assigned : Each
        Where they belong.
    depth : ndarray of shape (n_cells,)
        Rows from outside a cell are wanted up to this depth.
    stated : Statement
        What is to be fitted, or whatever the work is to know.
    work : callable, default=fit_bucket
        What is done with each bucket.
    """
    if isinstance(shards.source, Cluster):
        return BucketsOnWorkers(shards, shards.source, assigned, depth, stated, work)
    assert isinstance(shards.source, OutOfCore)
    return BucketsHere(shards, shards.source, assigned, depth, stated, work)


def runs_of(
    order: Sequence[int], sizes: IndexArray, most_rows: float, most_cells: float
) -> list[IndexArray]:
    """Return neighbours of an order in runs of so many rows and cells at the most."""
    runs: list[list[int]] = []
    rows = np.inf
    for cell in order:
        rows += sizes[cell]
        if rows > most_rows or len(runs[-1]) >= most_cells:
            runs.append([])
            rows = float(sizes[cell])
        runs[-1].append(cell)
    return [np.array(run, dtype=np.intp) for run in runs]


class BucketsHere:
    """Buckets of this process, filled by passes over the partitions.

    Parameters
    ----------
    shards, assigned, depth, stated, work
        As in `place_of`.
    source : OutOfCore
        Where rows are loaded.
    """

    def __init__(
        self,
        shards: SortedShards,
        source: OutOfCore,
        assigned: Each,
        depth: Vector,
        stated: Any,
        work: Work,
    ) -> None:
        self.shards, self.source, self.assigned = shards, source, assigned
        self.depth, self.stated, self.work = depth, stated, work
        self.n_passes, self.n_cells = 0, 0
        self._each = shards.bytes_per_row + _BESIDE
        self._most_rows = _ROWS_SHARE * shards.memory / self._each
        self._buckets: Sequence[Bucket] = []
        self._rows: list[int] = []
        # Pieces of the buckets whose rows are here, those that are fitted first at the front.
        self._here: deque[tuple[int, list[Piece]]] = deque()

    def limits(self, options: CellOptions) -> dict[str, Any]:
        """Return the memory and the threads that a bucket may use."""
        return {"memory": options.memory, "threads": options.threads}

    def parts(self, order: Sequence[int], sizes: IndexArray) -> list[IndexArray]:
        """Return the cells of each bucket."""
        largest = int(sizes.max())
        if largest * self._each > self.shards.memory:
            raise ValueError(
                f"A cell has {largest:,} rows, which take {largest * self._each:,.0f} bytes, more "
                f"than memory={self.shards.memory:,}; give smaller cells, more centres, or more "
                "memory."
            )
        found = runs_of(order, sizes, self._most_rows, _CELLS_AT_A_TIME)
        self._rows = [int(sizes[part].sum()) for part in found]
        return found

    def begin(self, buckets: Sequence[Bucket], n_cells: int) -> None:
        """Say what will be fitted."""
        self._buckets, self.n_cells = buckets, n_cells

    def fitted(self, waiting: Sequence[int], deadline: Deadline) -> Iterator[tuple[int, Any]]:
        """Yield the next bucket."""
        if not self._here:
            self._collect(waiting)
        number, pieces = self._here.popleft()
        yield number, self.work(pieces, self._buckets[number], self.stated, deadline)

    def end(self) -> None:
        """Forget what was not fitted."""
        self._here.clear()

    def _collect(self, waiting: Sequence[int]) -> None:
        """Bring the rows of some buckets here, in a pass over all rows."""
        chosen, rows = [waiting[0]], self._rows[waiting[0]]
        for number in waiting[1:]:
            rows += self._rows[number]
            if rows > self._most_rows:
                break
            chosen.append(number)
        wanted = buckets_of([self._buckets[number] for number in chosen], self.n_cells, self.depth)
        pieces = self.source.ask(
            "pieces", hand_out, self.shards.rows, self.assigned, self.shards.plans, wanted
        )
        self.n_passes += 1
        self._here.extend((number, [part[b] for part in pieces]) for b, number in enumerate(chosen))


def buckets_of(chosen: Sequence[Bucket], n_cells: int, depth: Vector) -> Buckets:
    """Return which cells are brought together."""
    bucket = np.full(n_cells, -1, dtype=np.int32)
    for number, each in enumerate(chosen):
        bucket[each.cells] = number
    return Buckets(bucket, len(chosen), depth)


class BucketsOnWorkers:
    """Buckets on the workers of a Dask cluster.

    Parameters
    ----------
    shards, assigned, depth, stated, work
        As in `place_of`.
    source : Cluster
        The cluster.
    """

    def __init__(
        self,
        shards: SortedShards,
        source: Cluster,
        assigned: Each,
        depth: Vector,
        stated: Any,
        work: Work,
    ) -> None:
        self.shards, self.source, self.assigned = shards, source, assigned
        self.depth, self.stated, self.work = depth, stated, work
        self.n_passes = 1
        self._buckets: Sequence[Bucket] = []
        # Pieces of each bucket that waits, and tasks that fit one.
        self._pieces: dict[int, list[Any]] = {}
        self._tasks: dict[int, Any] = {}

    def limits(self, options: CellOptions) -> dict[str, Any]:
        """Return the memory and the threads that a bucket may use."""
        return {"memory": self.shards.facts.memory, "threads": 1}

    def parts(self, order: Sequence[int], sizes: IndexArray) -> list[IndexArray]:
        """Return the cells of each bucket: several buckets for each thread, of equal rows."""
        threads = len(self.source.homes)
        count = min(_BUCKETS_OF_A_THREAD * threads, max(threads, _MOST_PIECES // threads))
        return runs_of(order, sizes, max(1.0, sizes.sum() / count), np.inf)

    def begin(self, buckets: Sequence[Bucket], n_cells: int) -> None:
        """Let the rows be cut into pieces."""
        self._buckets = buckets
        wanted = buckets_of(buckets, n_cells, self.depth)
        cut = self.source.each(
            "pieces", hand_out, self.shards.rows, self.assigned, self.shards.plans, wanted
        )
        client = self.source.client
        self._pieces = {
            b: [client.submit(part_of, each, b, key=named("piece")) for each in cut]
            for b in range(len(buckets))
        }
        # Nothing else is made of the rows: Dask loads them again only if a piece is lost.
        self.source.forget()

    def fitted(self, waiting: Sequence[int], deadline: Deadline) -> Iterator[tuple[int, Any]]:
        """Yield the buckets that are ready, as soon as there are as many as threads."""
        with loss_is_told():
            self._submit(waiting, deadline)
            most = min(len(waiting), len(self.source.homes))
            done: list[int] = []
            while len(done) < most:
                ready = self._ready(deadline)
                if not ready:
                    break
                for number, found in ready:
                    del self._tasks[number]
                    done.append(number)
                    yield number, found

    def end(self) -> None:
        """Let go of all tasks."""
        self._tasks, self._pieces = {}, {}

    def _submit(self, waiting: Sequence[int], deadline: Deadline) -> None:
        """Hand out tasks: all of them, or a few for each thread where time is limited."""
        homes, left = self.source.homes, deadline.left()
        most = len(waiting) if left is None else _AHEAD * len(homes)
        for number in waiting:
            if len(self._tasks) >= most:
                break
            if number in self._pieces:
                self._tasks[number] = self.source.client.submit(
                    done_there,
                    self._pieces.pop(number),
                    self._buckets[number],
                    self.stated,
                    left,
                    self.work,
                    key=named("cells"),
                    workers=[homes[number % len(homes)]],
                    allow_other_workers=True,
                )

    def _ready(self, deadline: Deadline) -> list[tuple[int, Any]]:
        """Return the buckets that are done, once one is; none if time is over."""
        from distributed import wait

        client = self.source.client
        gone: float | None = None
        over: float | None = None
        while True:
            with suppress(TimeoutError):
                wait(list(self._tasks.values()), timeout=_LOOK, return_when="FIRST_COMPLETED")
            ready = [number for number, task in self._tasks.items() if task.done()]
            if ready and client.status == "running":
                found = client.gather([self._tasks[number] for number in ready])
                return list(zip(ready, found, strict=True))
            now = monotonic()
            gone = None if client.status == "running" else (gone or now)
            if gone is not None and (now - gone > _PATIENCE or client.status == "closed"):
                raise PlaceLost("the scheduler of the cluster does not answer any more")
            over = (over or now) if deadline.passed else None
            if over is not None and now - over > _GRACE:
                return []
