"""Sizes, differences and times of models elsewhere, beside our own."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import Record, of_part, text_of, value_of
from benchmarks.harness.report import Table, number, shown
from benchmarks.travel.plan import ONNX, C


def _row(record: Record) -> list[str]:
    size = value_of(record, "bytes")
    found = [
        record["label"],
        record["rows_of"],
        text_of(record, "n_train", 0),
        number(None if size is None else size / 1000.0, 1),
    ]
    if record["part"] == C:
        found += [text_of(record, "code_bytes", 0), text_of(record, "ram_bytes", 0)]
    return [
        *found,
        shown(value_of(record, "difference"), ".1e"),
        text_of(record, "there_us", 2),
        text_of(record, "own_us", 2),
    ]


def tables(records: Sequence[Record]) -> list[Table]:
    """A table of each kind of export."""
    header = ["model", "rows of", "rows", "file, kB"]
    times = ["largest difference", "there, µs a row", "our predict, µs a row"]
    in_c = ["model", "rows of", "rows", "flash, kB", "of it code, bytes", "RAM, bytes", *times]
    kinds = ((ONNX, "ONNX, in onnxruntime", [*header, *times]), (C, "C99, compiled by gcc", in_c))
    return [
        Table(title, head, [_row(record) for record in of_part(records, part)])
        for part, title, head in kinds
        if of_part(records, part)
    ]
