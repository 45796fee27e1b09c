"""How a span fit grows with the rows: seconds and memory up to all of covtype."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import (
    Record,
    finished,
    gap_of,
    growth_of,
    ratio,
    text_of,
    value_of,
)
from benchmarks.harness.report import Table, number
from benchmarks.harness.runner import Part
from benchmarks.span.plan import OURS, ours, warmup_rows

PART = "scale"
ALL_ROWS = 581_012
ROWS = (50_000, 100_000, 200_000, 400_000, ALL_ROWS)
BASE = 100_000
ASKED = 6.5


def plan(quick: bool, repeats: int) -> list[Part]:
    vectors = 500 if quick else 1000
    return [
        Part(
            "fit",
            "covtype_all",
            OURS,
            ours(C=1.0, max_vectors=vectors, memory="1GB"),
            repeats=repeats if rows <= BASE else 1,
            rows=rows,
            warmup_rows=warmup_rows(vectors),
            point={"rows": rows},
            part=PART,
        )
        for rows in ((10_000, 20_000, 40_000) if quick else ROWS)
    ]


def table(records: Sequence[Record]) -> Table:
    records = sorted(records, key=lambda record: record["rows"])
    seconds = {record["n_train"]: record["fit_seconds"] for record in finished(records)}
    base = seconds.get(BASE)
    rows = [
        [
            f"{record['rows']:,}",
            text_of(record, "fit_seconds"),
            number(ratio(value_of(record, "fit_seconds"), base), unit="×"),
            text_of(record, "peak_mb", 0),
            text_of(record, "data_mb", 0),
            text_of(record, "n_vectors", 0),
            gap_of(record),
            number(passes(record), 0),
        ]
        for record in records
    ]
    header = ["rows", "fit, s", f"over {BASE:,} rows", "peak above data, MB", "data, MB"]
    header += ["vectors", "gap", "kernel values / (rows × vectors), %"]
    whole = number(ratio(seconds.get(ALL_ROWS), base), unit="×")
    note = (
        f'covtype, C = 1, γ = 1/β, memory="1GB". All rows over {BASE:,}: {whole} (asked: '
        f"at most {ASKED:g}×). Growth exponent, by least squares of the logarithms: "
        f"{number(growth_of(records))}. The last column is above 100 % where kernel values did not "
        f"fit into memory and were computed again. Every fit but those on up to {BASE:,} rows is a "
        "single one."
    )
    return Table("Growth with the rows", header, rows, [note])


def passes(record: Record) -> float | None:
    """Kernel values computed, in percent of one value a row and vector that was kept."""
    certificate = value_of(record, "certificate")
    if not certificate:
        return None
    return 100.0 * certificate["n_kernel"] / (record["n_train"] * certificate["n_vectors"])
