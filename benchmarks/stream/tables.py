"""What the stream took, and its radius over that of the batch ball."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import Record, ratio, text_of, value_of
from benchmarks.harness.report import Table, number, shown
from benchmarks.stream.task import SHARES


def stream_table(records: Sequence[Record]) -> Table:
    def row(record: Record) -> list[str]:
        peaks = value_of(record, "peaks_mb") or [None] * len(SHARES)
        over = ratio(value_of(record, "radius"), value_of(record, "batch_radius"))
        return [
            record["label"],
            text_of(record, "n_train", 0),
            text_of(record, "fit_seconds"),
            *(number(peak, 0) for peak in peaks),
            text_of(record, "n_balls", 0),
            text_of(record, "n_waiting", 0),
            number(over, 4),
            shown(value_of(record, "eps"), ".1e"),
            text_of(record, "batch_seconds"),
            text_of(record, "batch_peak_mb", 0),
        ]

    peaks = [f"peak after {share:.0%}, MB" for share in SHARES]
    header = ["kernel", "rows", "stream, s", *peaks, "balls", "rows waiting"]
    header += ["radius over batch", "proved eps", "batch, s", "batch peak, MB"]
    return Table("The hard ball of a stream", header, [row(record) for record in records])
