"""Accuracy, time and vectors beside the BVM paper's, and memory."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness import bvm_paper as paper
from benchmarks.harness.records import Record, gap_of, text_of
from benchmarks.harness.report import Table, beside, number
from benchmarks.kdd.plan import DATASET


def kdd_table(records: Sequence[Record]) -> Table:
    def cell(record: Record, key: str, printed: paper.Printed, digits: int) -> str:
        theirs = paper.printed(printed, DATASET, record["label"])
        return beside(text_of(record, key, digits), number(theirs, digits))

    rows = [
        [
            record["label"],
            cell(record, "accuracy", paper.ACCURACY, 2),
            cell(record, "fit_seconds", paper.SECONDS, 2),
            cell(record, "n_vectors", paper.VECTORS, 0),
            text_of(record, "predict_seconds"),
            text_of(record, "peak_mb", digits=0),
            text_of(record, "data_mb", digits=0),
            gap_of(record),
        ]
        for record in records
    ]
    header = ["machine", "accuracy, % (paper)", "fit, s (paper)", "vectors (paper)", "predict, s"]
    header += ["peak above data, MB", "data, MB", "gap"]
    return Table("Intrusion, normal against attack", header, rows)
