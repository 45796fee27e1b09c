"""What the parts of the places benchmark share: measurements, settings, remarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.harness.datasets import NOTHING
from benchmarks.harness.records import Record, finished, value_of
from benchmarks.harness.report import bullets
from benchmarks.harness.runner import Part
from benchmarks.places.generator import COLUMNS

OURS = "widemargin.MarginClassifier"
SPAN, CELLS = "span", "cells"
PHYSICS = "physics"
# What was asked is asked for this many threads, or workers of one thread.
THREADS = 2
VECTORS = 1000
MEMORY = "2GB"
CHUNKS = 16
ROWS = (100_000, 1_000_000, 10_000_000)
ALL_ROWS = ROWS[-1]
QUICK_ROWS = (2000, 4000, 8000)
QUICK_VECTORS = 50
# Of the kernel, for rows whose columns have a deviation of one: β is twice their number.
GAMMA_FACTOR = 1.0
GAMMA = GAMMA_FACTOR / (2 * len(COLUMNS))
# Width and C are not searched for: what is compared is places, not machines.
C = 1.0
# What the workers of a fit that runs on them compute for, at the least: this share of its time.
LEAST_SHARE = 0.2
DASK, DISTRIBUTED, PYARROW = "dask", "distributed", "pyarrow"


@dataclass(frozen=True)
class Place(Part):
    """A measurement on generated rows, or on a set that the child process loads.

    ``set_name`` is the set of the record; ``workers`` is 0 without a cluster.
    """

    set_name: str | None = None
    workers: int = 0
    chunks: int = CHUNKS
    test_rows: int | None = None


def ours(engine: str, quick: bool, **params: Any) -> dict[str, Any]:
    """Parameters of `MarginClassifier` on the generated rows."""
    found = {"engine": engine, "C": C, "gamma": GAMMA, "memory": MEMORY, "random_state": 0}
    if engine == SPAN:
        found["max_vectors"] = QUICK_VECTORS if quick else VECTORS
    return found | params


def on_rows(part: str, label: str, rows: int, params: dict[str, Any], **fields: Any) -> Place:
    """A measurement on so many generated rows."""
    given = {"estimator": OURS, "point": {"rows": rows}, "set_name": PHYSICS} | fields
    return Place(label, NOTHING, given.pop("estimator"), params, rows=rows, part=part, **given)


def share_of_workers(record: Record | None) -> float | None:
    """How much of a fit each worker has computed for: little, where the client has all the rows."""
    seconds = value_of(record, "cpu_seconds")
    if record is None or seconds is None or not record["workers"]:
        return None
    return seconds / (record["workers"] * record["fit_seconds"])


def gathered(record: Record | None) -> bool:
    """Whether the client has fetched the rows and done the work itself."""
    share = share_of_workers(record)
    return share is not None and share < LEAST_SHARE


def name_of(record: Record) -> str:
    point = [f"{value:,} {key}" for key, value in record["point"].items()]
    return ", ".join([record["dataset"], *point, record["label"]])


def remarks(records: Sequence[Record]) -> list[str]:
    """Certificates, warnings, and why a figure is missing: one list below a table, or nothing."""
    lines = []
    for record in records:
        name = name_of(record)
        if record["status"] != "ok":
            lines.append(f"{name}: {record['status']}, {record['message']}")
        if record.get("certificate_line"):
            lines.append(f"{name}: {record['certificate_line']}")
        lines += [
            f"{name}: warning, {' '.join(text.split())}" for text in record.get("warnings") or ()
        ]
    return bullets(lines)


def comparable(*records: Record | None) -> bool:
    """Whether all were measured, in one run and on as many threads as was asked for."""
    there = finished(record for record in records if record is not None)
    runs = {record["run"] for record in there}
    on_time = all(record["threads"] == THREADS for record in there)
    return len(there) == len(records) and len(runs) == 1 and on_time
