"""``python -m benchmarks tabular``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness.datasets import NOTHING
from benchmarks.harness.records import Record
from benchmarks.harness.report import Table, with_pictures
from benchmarks.harness.runner import Part, installed
from benchmarks.harness.sections import QUICK_NOTE
from benchmarks.harness.session import MergedSession, add_choice, option_parser
from benchmarks.tabular.directions import digits_directions
from benchmarks.tabular.learners import LEARNERS
from benchmarks.tabular.sets import FROM_SKLEARN, LARGE, SETS, SMALL
from benchmarks.tabular.tables import critical_difference, set_table, summary_table, targets

TASK = "benchmarks.tabular.fit.compare"
PARTS = ("small", "large")
SPLITS = {"small": 10, "large": 2}
QUICK_ROWS = 200


@dataclass(frozen=True)
class Split(Part):
    """Some learners on one split of a set."""

    set_name: str = ""
    names: Sequence[str] = ()


def plan(
    sets: Sequence[str], splits: int | None, only: Sequence[str], rows: int | None = None
) -> list[Split]:
    """Every split of every set."""
    found = []
    for name in sets:
        part = "large" if name in LARGE else "small"
        found += [
            Split(
                name,
                NOTHING,
                "",
                {},
                rows=rows,
                point={"split": split},
                task=TASK,
                part=part,
                set_name=name,
                names=list(only or LEARNERS),
            )
            for split in range(splits or SPLITS[part])
        ]
    return found


def said(record: Record) -> str:
    done = [
        f"{name} {one['error']:.2f} % in {one['fit_seconds']:.2f} s"
        for name, one in record.get("machines", {}).items()
    ]
    if record["status"] != "ok":
        done.append(f"{record['status']}: {record['message']}")
    return ", ".join(done)


def main(argv: Sequence[str]) -> None:
    parser = option_parser("tabular", "tables of numbers beside trees, forests, LIBSVM", 500.0)
    add_choice(parser, "--parts", PARTS, "PART", default=PARTS)
    add_choice(parser, "--sets", SETS, "SET")
    add_choice(parser, "--only", tuple(LEARNERS), "LEARNER", default=())
    parser.add_argument("--splits", type=int, default=None, help="splits of each set")
    options = parser.parse_args(argv)
    session = MergedSession.of(options, "tabular", said)
    if options.quick:
        session.run(plan(FROM_SKLEARN[2:], 1, options.only, QUICK_ROWS))
    else:
        wanted = {"small": SMALL, "large": LARGE}
        sets = [name for part in options.parts for name in wanted[part]]
        chosen = [name for name in sets if not options.sets or name in options.sets]
        session.run(plan(chosen, options.splits, options.only))
    records = session.records
    tables = [
        summary_table(records, SMALL, "Sets of at most 10,000 rows"),
        summary_table(records, SETS, "All sets"),
        set_table(records, "error", "Errors, %", 2),
        set_table(records, "fit_seconds", "Fit, seconds", 2),
    ]
    notes = [
        "Random stratified splits, a fifth of the rows to judge by; raw columns for all, which "
        "the Gaussian search, LIBSVM and neighbours standardise. Searches have five folds; that of "
        "trees has as many trials as take the time of ours, 40 at the most."
    ]
    picture = session.results / f"{session.name}_ranks.png"
    drawn = critical_difference(records, picture) if installed("matplotlib") else None
    tables[1] = with_pictures(tables[1], drawn)
    if installed("matplotlib") and not options.quick:
        digits_directions(session.results / f"{session.name}_digits.png")
    asked: list[Table] = [] if options.quick else [targets(records)]
    session.write("Tables", [*tables, *asked], [QUICK_NOTE, *notes] if options.quick else notes)
