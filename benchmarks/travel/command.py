"""``python -m benchmarks travel``."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import Record
from benchmarks.harness.session import MergedSession, option_parser
from benchmarks.travel.plan import measurements
from benchmarks.travel.tables import tables
from benchmarks.travel.task import ASKED


def one_line(record: Record) -> str:
    if record["status"] != "ok":
        return f"{record['status']}: {record['message']}"
    return (
        f"{record['bytes'] / 1000:.1f} kB, differs by {record['difference']:.1e}, "
        f"{record['there_us']:.2f} µs a row (ours {record['own_us']:.2f})"
    )


def main(argv: Sequence[str]) -> None:
    parser = option_parser("travel", "ONNX graphs and C source: sizes, differences, times")
    options = parser.parse_args(argv)
    session = MergedSession.of(options, "travel", one_line)
    session.run(measurements(options.quick))
    notes = [
        f"Differences are over the largest answer, at all rows that were fitted; times are of "
        f"{ASKED:,} rows at once, the best of several. C source is compiled with -Os for this "
        "machine and runs in one thread; flash is its code and its constants."
    ]
    session.write("Models that travel", tables(session.records), notes)
