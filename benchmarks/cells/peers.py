"""Cells beside a span and the exact machine of scikit-learn-intelex, where γ or C is large."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from benchmarks.cells.plan import CELLS, SPAN, microseconds_text, ours, remarks
from benchmarks.harness.machines import INTELEX_SVC as PEER
from benchmarks.harness.records import Record, fit_ratio, text_of
from benchmarks.harness.report import Table, number, width
from benchmarks.harness.runner import Part

PART = "peers"
DATASET = "covtype_100000"
# γ times β, and C.
POINTS = ((8.0, 10.0), (1.0, 100.0))
DEFAULT = "cells"
SIZES = {DEFAULT: "auto", "cells of 300": 300, "cells of 1,000": 1000}
QUICK_ROWS = 3000


def plan(quick: bool, repeats: int) -> list[Part]:
    """All machines of a point right after one another."""
    rows = QUICK_ROWS if quick else None
    found = []
    for gamma_factor, C in POINTS:
        for label, size in SIZES.items():
            found.append(
                ours(
                    PART,
                    label,
                    DATASET,
                    CELLS,
                    C=C,
                    gamma_factor=gamma_factor,
                    params={"cells": size},
                    rows=rows,
                    repeats=repeats,
                )
            )
        found.append(ours(PART, SPAN, DATASET, SPAN, C=C, gamma_factor=gamma_factor, rows=rows))
        peer = PEER.at(DATASET, gamma_factor, C, rows=rows)
        fields = {field.name: getattr(peer, field.name) for field in dataclasses.fields(peer)}
        found.append(Part(**fields, part=PART))
    return found


def at(records: Sequence[Record], gamma_factor: float, C: float) -> dict[str, Record]:
    """The machines of a point by their labels."""
    point = {"gamma_factor": gamma_factor, "C": C}
    return {record["label"]: record for record in records if record["point"] == point}


def tables(records: Sequence[Record]) -> list[Table]:
    found = []
    for gamma_factor, C in POINTS:
        mine = at(records, gamma_factor, C)
        if not mine:
            continue
        peer = mine.get(PEER.label)
        rows = [
            [
                record["label"],
                text_of(record, "fit_seconds"),
                number(fit_ratio(peer, record), 1, "×"),
                text_of(record, "accuracy"),
                microseconds_text(record),
                text_of(record, "n_vectors", 0),
                text_of(record, "peak_mb", 0),
            ]
            for record in mine.values()
        ]
        header = ["machine", "fit, s", f"faster than {PEER.label}", "accuracy, %"]
        header += ["predict, µs a row", "vectors", "peak above data, MB"]
        title = f"{DATASET}, {width(gamma_factor)}, C = {C:g}"
        found.append(Table(title, header, rows, remarks(list(mine.values()))))
    return found
