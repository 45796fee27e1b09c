"""How the fit grows with the rows, the size of the cells being the same."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.cells.plan import CELLS, microseconds_text, ours, remarks
from benchmarks.harness.records import Record, growth_of, ratio, text_of, value_of
from benchmarks.harness.report import Table, number
from benchmarks.harness.runner import Part

PART = "growth"
DATASET = "covtype"
ALL_ROWS = 531_012
ROWS = (50_000, 100_000, 200_000, 400_000, ALL_ROWS)
QUICK_ROWS = (1000, 2000, 4000)
SIZE = 300
GAMMA_FACTOR = 100.0
C = 10.0
# Beyond so many rows a fit is not repeated.
REPEATED_ROWS = 200_000


def plan(quick: bool, repeats: int) -> list[Part]:
    return [
        ours(
            PART,
            f"cells of {SIZE}",
            DATASET,
            CELLS,
            C=C,
            gamma_factor=GAMMA_FACTOR,
            params={"cells": SIZE, "memory": "1GB"},
            rows=rows,
            repeats=repeats if rows <= REPEATED_ROWS else 1,
            point={"rows": rows},
        )
        for rows in (QUICK_ROWS if quick else ROWS)
    ]


def table(records: Sequence[Record]) -> Table:
    records = sorted(records, key=lambda record: record["rows"])

    def per_row(record: Record) -> str:
        each = ratio(value_of(record, "fit_seconds"), value_of(record, "n_train"))
        return number(None if each is None else 1e6 * each, 1)

    rows = [
        [
            f"{record['rows']:,}",
            text_of(record, "fit_seconds"),
            per_row(record),
            text_of(record, "accuracy"),
            microseconds_text(record),
            text_of(record, "peak_mb", 0),
            text_of(record, "data_mb", 0),
        ]
        for record in records
    ]
    header = ["rows", "fit, s", "fit, µs a row", "accuracy, %", "predict, µs a row"]
    header += ["peak above data, MB", "data, MB"]
    note = (
        f"covtype, cells of {SIZE} rows, γ = {GAMMA_FACTOR:g}/β, C = {C:g}. Growth exponent, by "
        f"least squares of the logarithms: {number(growth_of(records))}."
    )
    return Table("Growth with the rows", header, rows, [note, *remarks(records)])
