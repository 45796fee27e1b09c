"""Cells: beside their peers, on half a million rows, chosen by themselves, growing, at edges.

Each part can be run alone (``--parts``); it then replaces its own figures in the results and leaves
the others. Every measurement has a process of its own. The page ends with what was asked of cells
and whether it was met, from whatever has been measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmarks import (
    cells_auto,
    cells_edges,
    cells_growth,
    cells_peers,
    cells_targets,
    cells_whole,
)
from benchmarks.peers import MergedSession
from benchmarks.report import Table
from benchmarks.runner import Record, Session, option_parser, stem_from
from benchmarks.span import Part, cell_of, merged

TIMEOUT = 1800.0
REPEATS = 3
TABLES: dict[str, Callable[[Sequence[Record]], list[Table]]] = {
    cells_peers.PART: cells_peers.tables,
    cells_whole.PART: lambda records: [cells_whole.table(records)],
    cells_auto.PART: lambda records: [cells_auto.table(records)],
    cells_growth.PART: lambda records: [cells_growth.table(records)],
    cells_edges.PART: cells_edges.tables,
}
PARTS = tuple(TABLES)
# Of which parts sets can be chosen.
SETS = {cells_auto.PART: tuple(cells_auto.SETS), cells_edges.PART: tuple(cells_edges.SETS)}

NOTES = (
    "Every fit is in a process of its own, after a warm-up (compilation). β is the mean squared "
    "distance of training rows. Where a fit was repeated, the median counts. Peak memory is what "
    "the fit adds to the data. C weighs the squared hinge in ours, and the hinge in SVC. Ratios "
    "are of times of one run; a dash where they are not.",
)
QUICK_NOTE = (
    "A quick run: few rows, whatever the notes say. It shows that everything works, and its "
    "figures tell nothing."
)


def plan(
    parts: Iterable[str], quick: bool, repeats: int, sets: Sequence[str] | None = None
) -> list[Part]:
    """The measurements of the parts; ``sets`` chooses among those of auto and edges."""

    def chosen(part: str) -> list[str] | None:
        return None if sets is None else [name for name in SETS[part] if name in sets]

    plans: dict[str, Callable[[], list[Part]]] = {
        cells_peers.PART: lambda: cells_peers.plan(quick, repeats),
        cells_whole.PART: lambda: cells_whole.plan(quick, repeats),
        cells_auto.PART: lambda: cells_auto.plan(quick, repeats, chosen(cells_auto.PART)),
        cells_growth.PART: lambda: cells_growth.plan(quick, repeats),
        cells_edges.PART: lambda: cells_edges.plan(quick, repeats, chosen(cells_edges.PART)),
    }
    return [measurement for part in PARTS if part in parts for measurement in plans[part]()]


class CellsSession(MergedSession):
    """Keeps the figures of parts that are not run, and what a skipped one would replace."""

    def keep(self, record: Record) -> None:
        record = {**record, "run": self.header["date"]}
        there = {cell_of(old) for old in self.records}
        if record["status"] != "skipped" or cell_of(record) not in there:
            self.records = merged(self.records, record)

    @staticmethod
    def one_line(record: Record) -> str:
        text = Session.one_line(record)
        return f"{text}, {record['engine']}" if record.get("engine") else text


def page(records: Sequence[Record]) -> list[Table]:
    found = []
    for part, tables in TABLES.items():
        mine = [record for record in records if record["part"] == part]
        found += tables(mine) if mine else []
    return found


def main(argv: Sequence[str]) -> None:
    parser = option_parser("cells", "cells: peers, half a million rows, auto, growth, edges")
    parser.set_defaults(timeout=TIMEOUT)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    sets = tuple(dict.fromkeys(name for names in SETS.values() for name in names))
    parser.add_argument(
        "--data",
        nargs="+",
        choices=sets,
        metavar="NAME",
        help="of the parts auto and edges: " + ", ".join(sets),
    )
    parser.add_argument(
        "--repeats", type=int, help=f"of short fits, of which the median counts ({REPEATS})"
    )
    options = parser.parse_args(argv)
    stem = stem_from(options, "cells")
    session = CellsSession(stem, options.timeout, options.threads, options.results)
    repeats = options.repeats or (1 if options.quick else REPEATS)
    session.run(plan(options.parts, options.quick, repeats, options.data))
    tables = page(session.records)
    if not options.quick:
        tables.append(cells_targets.table(session.records))
    notes = (QUICK_NOTE, *NOTES) if options.quick else NOTES
    session.write("Cells", tables, notes)
