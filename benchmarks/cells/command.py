"""``python -m benchmarks cells``: all parts, or some of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.cells import auto, edges, growth, peers, targets, whole
from benchmarks.harness import session as sessions
from benchmarks.harness.records import Record
from benchmarks.harness.runner import Part
from benchmarks.harness.sections import Section, write_page
from benchmarks.harness.session import MergedSession, add_choice, option_parser

TIMEOUT = 1800.0
REPEATS = 3
SECTIONS = (
    Section(peers.PART, peers.tables),
    Section(whole.PART, whole.table),
    Section(auto.PART, auto.table),
    Section(growth.PART, growth.table),
    Section(edges.PART, edges.tables),
)
PARTS = tuple(section.part for section in SECTIONS)
# The sets of auto and edges, among which one can choose.
SETS = tuple(dict.fromkeys([*auto.SETS, *edges.SETS]))

NOTES = (
    "Every fit is in a process of its own, after a warm-up (compilation). β is the mean squared "
    "distance of training rows. Where a fit was repeated, the median counts. Peak memory is what "
    "the fit adds to the data. C weighs the squared hinge in ours, and the hinge in SVC. Ratios "
    "are of times of one run; a dash where they are not.",
)


def plan(
    parts: Iterable[str], quick: bool, repeats: int, sets: Sequence[str] | None = None
) -> list[Part]:
    """The measurements of the parts; ``sets`` chooses among those of auto and edges."""

    def chosen(known: Iterable[str]) -> list[str] | None:
        return None if sets is None else [name for name in known if name in sets]

    plans = {
        peers.PART: peers.plan(quick, repeats),
        whole.PART: whole.plan(quick, repeats),
        auto.PART: auto.plan(quick, repeats, chosen(auto.SETS)),
        growth.PART: growth.plan(quick, repeats),
        edges.PART: edges.plan(quick, repeats, chosen(edges.SETS)),
    }
    return [measurement for part in PARTS if part in parts for measurement in plans[part]]


def one_line(record: Record) -> str:
    text = sessions.one_line(record)
    return f"{text}, {record['engine']}" if record.get("engine") else text


def main(argv: Sequence[str]) -> None:
    parser = option_parser(
        "cells", "cells: peers, half a million rows, auto, growth, edges", TIMEOUT
    )
    add_choice(parser, "--parts", PARTS, "PART", default=PARTS)
    add_choice(parser, "--data", SETS, "NAME", of="of the parts auto and edges: ")
    parser.add_argument(
        "--repeats", type=int, help=f"of short fits, of which the median counts ({REPEATS})"
    )
    options = parser.parse_args(argv)
    session = MergedSession.of(options, "cells", one_line)
    repeats = options.repeats or (1 if options.quick else REPEATS)
    session.run(plan(options.parts, options.quick, repeats, options.data))
    write_page(session, "Cells", SECTIONS, NOTES, targets.table, quick=options.quick)
