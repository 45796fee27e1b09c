"""Cells on the same rows, from disk."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import Record, growth_of
from benchmarks.harness.report import Table, number
from benchmarks.places.growth import HEADER, line_of
from benchmarks.places.plan import (
    CELLS,
    GAMMA_FACTOR,
    MEMORY,
    QUICK_ROWS,
    ROWS,
    C,
    Place,
    on_rows,
    ours,
    remarks,
)

PART = "cells"
LABEL = "cells, .npy"


def plan(quick: bool, most: int) -> list[Place]:
    return [
        on_rows(
            PART,
            LABEL,
            rows,
            ours(CELLS, quick),
            task="benchmarks.places.fit.on_disk",
            test_rows=QUICK_ROWS[0] if quick else None,
        )
        for rows in (QUICK_ROWS if quick else ROWS)
        if rows <= most
    ]


def table(records: Sequence[Record]) -> Table:
    order = sorted(records, key=lambda record: record["rows"])
    note = (
        f"The same rows, in cells of the default size, γ = {GAMMA_FACTOR:g}/β, C = {C:g}, "
        f'memory="{MEMORY}". Growth exponent: {number(growth_of(order), 3)}.'
    )
    return Table("Cells, from disk", HEADER, [*map(line_of, order)], [note, *remarks(order)])
