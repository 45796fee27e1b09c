"""The tables and figures of the Maxi-Min paper, many classes, clusters of classes, a stream.

Each part can be run alone (``--parts``); it then replaces its own figures in the results and leaves
the others. Every measurement has a process of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import (
    maximin_clusters,
    maximin_figure2,
    maximin_omniglot,
    maximin_stream,
    maximin_tables,
    maximin_targets,
    maximin_time,
)
from benchmarks.maximin_fit import Projection
from benchmarks.maximin_methods import score_of
from benchmarks.mmda import with_picture
from benchmarks.peers import MergedSession
from benchmarks.report import Table
from benchmarks.runner import Record, installed, option_parser, stem_from
from benchmarks.span import merged

TIMEOUT = 1800.0
Plan = Callable[[bool, Sequence[Record]], list[Projection]]
# Plans of a part one after another: a later one may need what an earlier one found.
PLANS: dict[str, tuple[Plan, ...]] = {
    maximin_figure2.PART: (maximin_figure2.plan,),
    maximin_tables.TABLE_1: (maximin_tables.plan_1,),
    maximin_tables.TABLE_2: (maximin_tables.plan_2,),
    maximin_omniglot.PART: (maximin_omniglot.plan, maximin_omniglot.plan_same),
    maximin_clusters.PART: (maximin_clusters.plan,),
    maximin_stream.PART: (maximin_stream.plan,),
    maximin_time.PART: (maximin_time.plan,),
}
PARTS = tuple(PLANS)


class MaxiMinSession(MergedSession):
    """Keeps the cells of parts that are not run; a cell is of the set, not of what was loaded."""

    def keep(self, record: Record) -> None:
        named = {**record, "dataset": record["set_name"], "run": self.header["date"]}
        self.records = merged(self.records, named)

    @staticmethod
    def one_line(record: Record) -> str:
        said = [record["set_name"]]
        if record["status"] != "ok":
            said.append(f"{record['status']}: {record['message']}")
        for classifier in ("knn", "mean", "quadratic"):
            if (reached := score_of(record, classifier)) is not None:
                said.append(f"{classifier} {reached:.2f} %")
        for key, unit in (("fit_seconds", " s"), ("min_distance", ""), ("angle", "")):
            if record.get(key) is not None:
                said.append(f"{key.replace('_', ' ')} {record[key]:.4g}{unit}")
        own = record.get("own", {})
        if "sharpness" in own:
            said.append(f"sharpness {own['sharpness']}, shrinkage {own['shrinkage']:.3g}")
        return "; ".join(said)


def measure(session: MaxiMinSession, options: argparse.Namespace) -> None:
    """Run the parts; each plan is made when the ones before it are measured."""
    for part in PARTS:
        if part not in options.parts:
            continue
        for plan in PLANS[part]:
            wanted = [
                one
                for one in plan(options.quick, session.records)
                if (not options.sets or one.set_name in options.sets)
                and (not options.dimensions or one.params["n_components"] in options.dimensions)
                and (not options.methods or one.label in options.methods)
            ]
            if part == maximin_time.PART:
                measure_times(session, wanted, options.sdp_limit)
            else:
                session.run(wanted)


def measure_times(session: MaxiMinSession, wanted: Sequence[Projection], limit: float) -> None:
    """One after another, as what is hopeless after the ones before is left out."""
    usual = session.timeout
    # What an earlier run could not do may be possible now.
    session.records = [
        record
        for record in session.records
        if not (record["part"] == maximin_time.PART and record["status"] == "timeout")
    ]
    for one in wanted:
        if maximin_time.hopeless(session.records, one):
            continue
        session.timeout = limit if one.label == maximin_time.SDP else usual
        session.run([one])
    session.timeout = usual


# ---------------------------------------------------------------- the page


def page(records: list[Record], results: Path, stem: str) -> list[Table]:
    """Every part that was measured, with its picture where Matplotlib is installed."""

    def of(part: str) -> list[Record]:
        return [record for record in records if record["part"] == part]

    def drawn(draw: Callable[[Any, Path], Path | None], mine: list[Record], name: str) -> Any:
        return draw(mine, results / f"{stem}_{name}.png") if installed("matplotlib") else None

    found: list[Table] = []
    if mine := of(maximin_figure2.PART):
        picture = drawn(maximin_figure2.figure, mine, "figure2")
        found.append(with_picture(maximin_figure2.table(mine), picture))
    if mine := of(maximin_tables.TABLE_1):
        found += maximin_tables.tables_1(mine)
    for part, tables, draw, name in (
        (maximin_tables.TABLE_2, maximin_tables.tables_2, maximin_tables.figure_2, "usps"),
        (maximin_omniglot.PART, maximin_omniglot.tables, maximin_omniglot.figure, "omniglot"),
        (maximin_time.PART, maximin_time.tables, maximin_time.figure, "time"),
    ):
        if mine := of(part):
            more = tables(mine)
            picture = drawn(draw, mine, name)
            found += [*more[:-1], *(with_picture(table, picture) for table in more[-1:])]
    for module in (maximin_clusters, maximin_stream):
        if mine := of(module.PART):
            found.append(module.table(mine))
    return found


NOTES = (
    "Every cell: ours, and in brackets the figure the paper prints. MaxiMinDA alone is the "
    "default, sharpness and shrinkage by held-out rows; *exact* and *online* solve the paper's "
    "relaxation, with infinite sharpness; *eigen* takes its leading eigenvectors as the paper "
    "does, *refine* maximises the smallest distance itself. Values are raw unless a part says "
    "otherwise. A fit is timed after a warm-up (compilation); compare times within a run only.",
)
QUICK_NOTE = (
    "A quick run: few sets, rows, classes and dimensions, whatever the notes say. It shows that "
    "everything works, and its figures tell nothing of the paper."
)


def main(argv: Sequence[str]) -> None:
    parser = option_parser("maximin", "the tables and figures of the Maxi-Min paper")
    parser.set_defaults(timeout=TIMEOUT)
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument("--sets", nargs="+", metavar="SET", help="of the parts, these sets only")
    parser.add_argument("--methods", nargs="+", metavar="METHOD", help="of the parts, these only")
    parser.add_argument(
        "--dimensions", nargs="+", type=int, metavar="D", help="of the parts, these only"
    )
    parser.add_argument(
        "--sdp-limit",
        type=float,
        default=maximin_time.SDP_LIMIT,
        help="seconds for a semidefinite program",
    )
    options = parser.parse_args(argv)
    stem = stem_from(options, "maximin")
    session = MaxiMinSession(stem, options.timeout, options.threads, options.results)
    measure(session, options)
    tables = page(session.records, session.results, stem)
    notes = (QUICK_NOTE, *NOTES) if options.quick else NOTES
    if not options.quick:
        tables.append(maximin_targets.table(session.records))
    session.write("Maxi-Min discriminant analysis", tables, notes)
