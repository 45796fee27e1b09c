"""On a cluster of processes of this machine: one worker and two, few chunks and many."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import Record, text_of, value_of
from benchmarks.harness.report import Table, number
from benchmarks.places.plan import (
    DISTRIBUTED,
    MEMORY,
    QUICK_ROWS,
    SPAN,
    VECTORS,
    Place,
    on_rows,
    ours,
    remarks,
    share_of_workers,
)

PART = "cluster"
LABEL = "span"
# Rows, workers of one thread, chunks. One worker is there for the cost model.
POINTS = (
    (100_000, 1, 16),
    (100_000, 2, 16),
    (1_000_000, 1, 16),
    (1_000_000, 2, 16),
    (1_000_000, 2, 64),
    (10_000_000, 2, 64),
)
QUICK_POINTS = ((QUICK_ROWS[1], 1, 4), (QUICK_ROWS[1], 2, 4))


def plan(quick: bool, most: int) -> list[Place]:
    return [
        on_rows(
            PART,
            LABEL,
            rows,
            ours(SPAN, quick),
            point={"rows": rows, "workers": workers, "chunks": chunks},
            workers=workers,
            chunks=chunks,
            requires=DISTRIBUTED,
            task="benchmarks.places.fit.on_cluster",
            test_rows=QUICK_ROWS[0] if quick else None,
        )
        for rows, workers, chunks in (QUICK_POINTS if quick else POINTS)
        if rows <= most
    ]


def waiting(record: Record) -> float | None:
    """Seconds of the fit in which a worker computed nothing, the mean over workers."""
    actions = value_of(record, "actions")
    if actions is None:
        return None
    return record["fit_seconds"] - actions.get("compute", 0.0) / record["workers"]


def percent_text(share: float | None) -> str:
    return number(None if share is None else 100.0 * share, 0)


def longest(record: Record, count: int = 4) -> str:
    """The tasks on which workers spent most seconds."""
    spent = sorted((value_of(record, "tasks") or {}).items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent[:count])


def table(records: Sequence[Record]) -> Table:
    order = sorted(records, key=lambda record: tuple(record["point"].values()))
    rows = [
        [
            f"{record['rows']:,}",
            str(record["workers"]),
            str(record["chunks"]),
            text_of(record, "fit_seconds"),
            number(waiting(record)),
            percent_text(share_of_workers(record)),
            text_of(record, "n_tasks", 0),
            text_of(record, "moved_mb", 0),
            text_of(record, "accuracy"),
            text_of(record, "resident_mb", 0),
            text_of(record, "client_mb", 0),
        ]
        for record in order
    ]
    header = ["rows", "workers", "chunks", "fit, s", "of it no task runs, s"]
    header += [
        "workers compute, %",
        "tasks",
        "moved, MB",
        "accuracy, %",
        "peak of a worker, MB",
        "peak of the client, MB",
    ]
    note = (
        f"The same rows from .npy, each worker a process of one thread that reads its own chunks; "
        f'span of {VECTORS:,} vectors, memory="{MEMORY}". Workers wait while the client works, and '
        "while messages travel; what they compute for is their CPU time, over the time of the fit. "
        "Little of it says that the client has fetched the rows and done the work. Moved: bytes "
        "between processes, of all kinds, once each."
    )
    said = [
        f"{record['rows']:,} rows, {record['workers']} workers, {record['chunks']} chunks, "
        f"seconds of all workers: {longest(record)}."
        for record in order
        if longest(record)
    ]
    notes = [note, *([" ".join(said)] if said else []), *remarks(order)]
    return Table("On a cluster of processes", header, rows, notes)
