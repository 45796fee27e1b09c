"""``python -m benchmarks stream``."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import Record
from benchmarks.harness.session import Session, option_parser
from benchmarks.stream.plan import BLOCKS, EPSILON, N_FEATURES, measurements
from benchmarks.stream.tables import stream_table


def one_line(record: Record) -> str:
    if record["status"] != "ok":
        return f"{record['status']}: {record['message']}"
    return (
        f"{record['fit_seconds']:.2f} s, {record['peak_mb']:.0f} MB, radius "
        f"{record['radius']:.4f} (batch {record['batch_radius']:.4f})"
    )


def main(argv: Sequence[str]) -> None:
    parser = option_parser("stream", "the ball of a stream: seconds, memory, radius")
    options = parser.parse_args(argv)
    session = Session.of(options, "stream", one_line)
    session.run(measurements(options.quick))
    notes = [
        f"Normal rows of {N_FEATURES} features in {BLOCKS} blocks through partial_fit, ε = "
        f"{EPSILON:g}. Peaks are above what the process had before, a block that is made included; "
        "seconds are those of partial_fit alone. The batch ball has all rows there at once."
    ]
    session.write("The ball of a stream", [stream_table(session.records)], notes)
