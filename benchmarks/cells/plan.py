"""What the parts of the cells benchmark share: how ours is set up, warmed up and told of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.harness.records import Record, finished, microseconds, text_or_status
from benchmarks.harness.report import bullets
from benchmarks.harness.runner import Part

OURS = "widemargin.MarginClassifier"
SEARCH = "widemargin.MarginClassifierCV"
AUTO = "auto"
EXACT = "exact"
SPAN = "span"
CELLS = "cells"
# What was asked is asked for this many threads.
THREADS = 2
# Enough for several cells, and with these vectors for the loops of the span in float32.
WARMUP_ROWS = 5000
WARMUP_VECTORS = 1500
# Which precision the kernel values of a cell have depends on the rows and C: a warm-up in both.
WARM_CELLS = ({"engine": CELLS}, {"engine": CELLS, "tol": 1e-8})
WARM_SPAN = ({"engine": SPAN, "max_vectors": WARMUP_VECTORS},)
# Few rows would start one engine only, and the choice may fall on another.
WARM_ALL = ({"engine": EXACT}, *WARM_SPAN, *WARM_CELLS)
WARM = {AUTO: WARM_ALL, EXACT: WARM_ALL[:1], SPAN: WARM_SPAN, CELLS: WARM_CELLS}


def ours(
    part: str,
    label: str,
    dataset: str,
    engine: str,
    *,
    C: float,
    gamma_factor: float,
    params: dict[str, Any] | None = None,
    **fields: Any,
) -> Part:
    """A fit of `MarginClassifier`; ``fields`` are those of the measurement."""
    gamma = {"mean_distance": gamma_factor}
    point = {"gamma_factor": gamma_factor, "C": C}
    given = {"warmups": WARM[engine], "warmup_rows": WARMUP_ROWS, "point": point} | fields
    settings = {"C": C, "gamma": gamma, "engine": engine, "random_state": 0, **(params or {})}
    return Part(label, dataset, OURS, settings, part=part, **given)


def microseconds_text(record: Record) -> str:
    return text_or_status(record, microseconds(record), 1)


def remarks(records: Sequence[Record]) -> list[str]:
    """Certificates, warnings, and why a figure is missing: one list below a table, or nothing."""
    lines = []
    for record in records:
        name = f"{record['dataset']}, {record['label']}"
        if record["status"] != "ok":
            lines.append(f"{name}: {record['status']}, {record['message']}")
        if record.get("certificate_line"):
            lines.append(f"{name}: {record['certificate_line']}")
        lines += [f"{name}: warning, {text}" for text in record.get("warnings") or ()]
    return bullets(lines)


def comparable(*records: Record | None) -> bool:
    """Whether all were measured, in one run and on as many threads as was asked for."""
    there = finished(record for record in records if record is not None)
    runs = {record["run"] for record in there}
    on_time = all(record["threads"] == THREADS for record in there)
    return len(there) == len(records) and len(runs) == 1 and on_time
