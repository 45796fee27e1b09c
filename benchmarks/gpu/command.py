"""``python -m benchmarks gpu``: all parts, or some of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from benchmarks.gpu import tables
from benchmarks.gpu.plan import FITS, FLOOR, MACHINES, PARTS, ROWS, SEARCHES, plan
from benchmarks.harness.records import Record
from benchmarks.harness.sections import Section, write_page
from benchmarks.harness.session import MergedSession, add_choice, option_parser

TIMEOUT = 900.0
SECTIONS = (
    Section(FITS, partial(tables.fit_table, "Spans of sets")),
    Section(MACHINES, partial(tables.fit_table, "Exact machines and cells")),
    Section(ROWS, partial(tables.fit_table, "Generated rows")),
    Section(SEARCHES, partial(tables.fit_table, "Five folds and 50 values of C")),
    Section(FLOOR, tables.floor_table),
)
NOTES = (
    "Every measurement is in a process of its own. The first fit there is not counted; the median "
    "of those that follow is, until the device is idle. Rows of the device are torch tensors in "
    "float32. β is the mean squared distance of training rows.",
)


def one_line(record: Record) -> str:
    """What is printed when a measurement has ended."""
    if record["status"] != "ok":
        return f"{record['status']}: {record['message']}"
    said = f"fit {record['fit_seconds']:.3f} s"
    return said if record.get("accuracy") is None else f"{said}, {record['accuracy']:.2f} %"


def main(argv: Sequence[str]) -> None:
    parser = option_parser("gpu", "fits on a GPU: sets, generated rows, a search, floors", TIMEOUT)
    add_choice(parser, "--parts", PARTS, "PART", default=PARTS)
    options = parser.parse_args(argv)
    session = MergedSession.of(options, "gpu", one_line)
    session.run(plan(options.parts, options.quick))
    write_page(session, "On a GPU", SECTIONS, NOTES, tables.targets, quick=options.quick)
