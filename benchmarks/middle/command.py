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
from benchmarks.middle.threads import FITS, threads_table

TASK = "benchmarks.middle.fit.compare"
SCALING = "benchmarks.middle.threads.scaling"
FIT = "fit"
SEARCH = "search"
THREADS = "threads"
VALUES_OF_C = (1.0, 100.0)
QUICK_ROWS = 500


@dataclass(frozen=True)
class Comparison(Part):
    """All machines on a set; ``only`` names those that are wanted, if not all."""

    set_name: str = ""
    C: float = 1.0
    only: Sequence[str] = ()


def said(record: Record) -> str:
    if "seconds" in record and isinstance(record["seconds"], dict):
        return ", ".join(f"{n} threads {each:.2f} s" for n, each in record["seconds"].items())
    if "machines" not in record:
        return f"{record['status']}: {record['message']}"
    times = (f"{name} {each['fit_seconds']:.3f} s" for name, each in record["machines"].items())
    return ", ".join(times)


def records_of(records: Sequence[Record], part: str, **point: float) -> list[Record]:
    """The records of a part, at a point."""
    return [
        each
        for each in records
        if each["part"] == part and all(each["point"][key] == value for key, value in point.items())
    ]


def main(argv: Sequence[str]) -> None:
    parser = option_parser("middle", "150 to 60,000 rows, beside LIBSVM and others", timeout=300.0)
    add_choice(parser, "--parts", (FIT, SEARCH, THREADS), "PART", default=(FIT, SEARCH))
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
        for name in (options.sets or names() if {FIT, SEARCH} & set(options.parts) else ())
        for part in options.parts
        if part != THREADS
        for C in (VALUES_OF_C if part == FIT else (0.0,))
    ]
    if THREADS in options.parts:
        plan += [
            Comparison(
                THREADS,
                NOTHING,
                "",
                {},
                rows=rows,
                point={"C": 0.0, "threads": 0},
                task=SCALING,
                part=THREADS,
                set_name=name,
            )
            for name in FITS
        ]
    session.run(plan)
    # Of every number of threads that was ever asked for.
    numbers = sorted({each["point"]["threads"] for each in session.records} - {0})
    fits = {
        (threads, C): records
        for threads in numbers
        for C in VALUES_OF_C
        if (records := records_of(session.records, FIT, C=C, threads=threads))
    }
    searches = {
        threads: records
        for threads in numbers
        if (records := records_of(session.records, SEARCH, threads=threads))
    }
    tables = [fit_table(records, C, threads) for (threads, C), records in fits.items()]
    tables += [search_table(records, threads) for threads, records in searches.items()]
    tables.append(threads_table(records_of(session.records, THREADS)))
    tables.append(asked(fits, searches))
    notes = [
        "γ is scikit-learn's scale for all; ours has defaults otherwise. Times are medians of up "
        "to three fits in one process, after compiled code was loaded. LIBSVM runs on one thread."
    ]
    session.write("The middle", tables, notes)
