"""``python -m benchmarks places``: all parts, or some of them."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks.harness.records import Record
from benchmarks.harness.report import number
from benchmarks.harness.sections import Section, write_page
from benchmarks.harness.session import MergedSession, add_choice, option_parser
from benchmarks.places import agree, cells, cluster, deaths, growth, model, peers, scatter, targets
from benchmarks.places.files import SCRATCH
from benchmarks.places.plan import ALL_ROWS, Place

TIMEOUT = 3600.0
REPEATS = 3
SECTIONS = (
    Section(agree.PART, agree.table),
    Section(deaths.PART, deaths.table),
    Section(growth.PART, growth.table),
    Section(peers.PART, peers.table),
    Section(cluster.PART, lambda records: [cluster.table(records), *model.tables(records)]),
    Section(cells.PART, cells.table),
    Section(scatter.PART, scatter.table),
)
PARTS = tuple(section.part for section in SECTIONS)

NOTES = (
    "Every measurement is in a process of its own, after a warm-up (compilation) there and in each "
    "worker. β is the mean squared distance of training rows. Generated rows: what a detector "
    "would see of two processes that end in the same particles, 21 measured columns and 7 masses "
    "derived from them (`benchmarks/places/generator.py`); 200,000 rows of other seeds test. "
    "Writing the files is not timed. Files just written may still be in the system's cache when "
    "they are read.",
)


def plan(parts: Iterable[str], quick: bool, repeats: int, kills: int, most: int) -> list[Place]:
    """The measurements of the parts, on generated rows up to ``most``."""
    plans = {
        agree.PART: agree.plan(quick),
        deaths.PART: deaths.plan(quick, kills),
        growth.PART: growth.plan(quick, repeats, most),
        peers.PART: peers.plan(quick, most),
        cluster.PART: cluster.plan(quick, most),
        cells.PART: cells.plan(quick, most),
        scatter.PART: scatter.plan(quick),
    }
    return [measurement for part in PARTS if part in parts for measurement in plans[part]]


def one_line(record: Record) -> str:
    """What is printed when a measurement has ended."""
    if record["status"] != "ok":
        return f"{record['status']}: {record['message']}"
    said = [f"fit {record['fit_seconds']:.2f} s"]
    if record.get("accuracy") is not None:
        said.append(f"{record['accuracy']:.2f} %")
    if record.get("resident_mb") is not None:
        said.append(f"{number(record['resident_mb'], 0)} MB")
    if record.get("kills") is not None:
        died, same = deaths.counts(record) or (0, 0)
        said.append(f"{same} of {died} with the same bits")
    return ", ".join(said)


@contextlib.contextmanager
def scratch_folder(given: Path | None) -> Iterator[None]:
    """Tell child processes where files are; a folder that was not given goes with this run."""
    with contextlib.ExitStack() as stack:
        folder = given or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="widemargin-places-"))
        )
        folder.mkdir(parents=True, exist_ok=True)
        before = os.environ.get(SCRATCH)
        os.environ[SCRATCH] = str(folder.resolve())
        try:
            yield
        finally:
            if before is None:
                del os.environ[SCRATCH]
            else:
                os.environ[SCRATCH] = before


def told_command(argv: Sequence[str]) -> str:
    """The command as it is kept: without the folders of the machine it ran on."""
    kept = [word for word in argv if not word.startswith(("--scratch=", "--results="))]
    for option in ("--scratch", "--results"):
        if option in kept:
            place = kept.index(option)
            del kept[place : place + 2]
    return shlex.join(["python", "-m", "benchmarks", *kept])


def main(argv: Sequence[str]) -> None:
    parser = option_parser(
        "places", "out of core and on a cluster: agreement, deaths, growth, peers, cells", TIMEOUT
    )
    add_choice(parser, "--parts", PARTS, "PART", default=PARTS)
    parser.add_argument("--scratch", type=Path, help="folder for generated rows (a temporary one)")
    parser.add_argument("--most-rows", type=int, default=ALL_ROWS, help="of the generated rows")
    parser.add_argument("--repeats", type=int, help=f"of the shortest fits ({REPEATS})")
    parser.add_argument("--kills", type=int, help=f"workers that die, an engine ({deaths.KILLS})")
    options = parser.parse_args(argv)
    session = MergedSession.of(options, "places", one_line)
    session.header["command"] = told_command(sys.argv[1:])
    repeats = options.repeats or (1 if options.quick else REPEATS)
    kills = options.kills or (deaths.QUICK_KILLS if options.quick else deaths.KILLS)
    with scratch_folder(options.scratch):
        session.run(plan(options.parts, options.quick, repeats, kills, options.most_rows))
    write_page(session, "Places", SECTIONS, NOTES, targets.table, quick=options.quick)
