"""``python -m benchmarks span``: all parts, or some of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.harness import session as sessions
from benchmarks.harness.records import Record
from benchmarks.harness.runner import Part
from benchmarks.harness.sections import Section, write_page
from benchmarks.harness.session import MergedSession, add_choice, option_parser
from benchmarks.span import cv, features, floor, scale

SECTIONS = (
    Section(floor.PART, floor.tables),
    Section(scale.PART, scale.table),
    Section(cv.PART, cv.tables),
    Section(features.PART, features.tables),
)
PARTS = tuple(section.part for section in SECTIONS)
REPEATS = 3


def plan(parts: Iterable[str], quick: bool, repeats: int, mnist_rows: int | None) -> list[Part]:
    plans = {
        floor.PART: floor.plan(quick, repeats),
        scale.PART: scale.plan(quick, repeats),
        cv.PART: cv.plan(quick, repeats),
        features.PART: features.plan(quick, mnist_rows),
    }
    return [measurement for part in PARTS if part in parts for measurement in plans[part]]


def one_line(record: Record) -> str:
    if record["status"] != "ok" or record["part"] == scale.PART:
        return sessions.one_line(record)
    return f"{record['accuracy']:.2f} %, fit {record['fit_seconds']:.2f} s"


def main(argv: Sequence[str]) -> None:
    parser = option_parser("span", "the span fit: floor, growth, cross-validation, features")
    add_choice(parser, "--parts", PARTS, "PART", default=PARTS)
    parser.add_argument("--repeats", type=int, help=f"fits, of which the median counts ({REPEATS})")
    parser.add_argument(
        "--map-rows", type=int, default=20_000, help="rows of mnist_unit in the part map"
    )
    options = parser.parse_args(argv)
    session = MergedSession.of(options, "span", one_line)
    repeats = options.repeats or (1 if options.quick else REPEATS)
    session.run(plan(options.parts, options.quick, repeats, options.map_rows))
    write_page(session, "The span fit", SECTIONS, quick=options.quick)
