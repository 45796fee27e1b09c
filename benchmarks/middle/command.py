"""``python -m benchmarks middle``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness.datasets import NOTHING
from benchmarks.harness.records import Record
from benchmarks.harness.runner import Part
from benchmarks.harness.session import MergedSession, add_choice, option_parser
from benchmarks.middle.sets import names
from benchmarks.middle.tables import asked, fit_table, search_table

TASK = "benchmarks.middle.fit.compare"
FIT = "fit"
SEARCH = "search"
VALUES_OF_C = (1.0, 100.0)
QUICK_ROWS = 500


@dataclass(frozen=True)
class Comparison(Part):
    """All machines on a set; ``only`` names those that are wanted, if not all."""

    set_name: str = ""
    C: float = 1.0
    only: Sequence[str] = ()


def said(record: Record) -> str:
    if "machines" not in record:
        return f"{record['status']}: {record['message']}"
    times = (f"{name} {each['fit_seconds']:.3f} s" for name, each in record["machines"].items())
    return ", ".join(times)


def main(argv: Sequence[str]) -> None:
    parser = option_parser("middle", "150 to 60,000 rows, beside LIBSVM and others", timeout=300.0)
    add_choice(parser, "--parts", (FIT, SEARCH), "PART", default=(FIT, SEARCH))
    parser.add_argument(
        "--sets", nargs="+", metavar="SET", help="names of archives; all by default"
    )
    parser.add_argument(
        "--only", nargs="+", default=(), metavar="MACHINE", help="some machines only"
    )
    parser.add_argument("--most-rows", type=int, default=None, help="training rows at the most")
    options = parser.parse_args(argv)
    session = MergedSession.of(options, "middle", said)
    rows = QUICK_ROWS if options.quick else options.most_rows
    plan = [
        Comparison(
            part,
            NOTHING,
            "",
            {},
            rows=rows,
            point={"C": C, "threads": options.threads},
            task=TASK,
            part=part,
            set_name=name,
            C=C,
            only=tuple(options.only),
        )
        for name in options.sets or names()
        for part in options.parts
        for C in (VALUES_OF_C if part == FIT else (0.0,))
    ]
    session.run(plan)
    here = [each for each in session.records if each["point"]["threads"] == options.threads]
    of_C = {
        C: [each for each in here if each["part"] == FIT and each["point"]["C"] == C]
        for C in VALUES_OF_C
    }
    tables = [fit_table(of_C[C], C) for C in VALUES_OF_C]
    tables.append(search_table([each for each in here if each["part"] == SEARCH]))
    notes = [
        'γ is scikit-learn\'s "scale" for all; ours has defaults otherwise. Times are medians of up '
        "to three fits in one process, after compiled code was loaded. LIBSVM runs on one thread."
    ]
    session.write("The middle", [*tables, asked(of_C)], notes)
