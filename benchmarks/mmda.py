"""The tables and figures of the MMDA-CVM and MMDA papers, growth with the rows, peers, noise.

Gaussian kernel with 1/β (β the mean squared distance of training rows) and the paper's C = 1 where
a part follows the MMDA-CVM paper. That minimises ‖w‖² + b² + C Σξ², which is our objective at C/2,
so ours runs at C = 0.5. Each part can be run alone (``--parts``); it then replaces its own figures
in the results and leaves the others. Every measurement has a process of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import (
    mmda_curves,
    mmda_folds,
    mmda_multiclass,
    mmda_noise,
    mmda_peers,
    mmda_scale,
    mmda_scatter,
    mmda_tables,
    mmda_targets,
)
from benchmarks.mmda_extract import Extraction
from benchmarks.mmda_plan import METHODS, QUICK_SETS, table_plan
from benchmarks.papers_mmda import SETS
from benchmarks.peers import MergedSession
from benchmarks.report import Table
from benchmarks.runner import Record, installed, option_parser, stem_from
from benchmarks.span import merged

TIMEOUT = 1800.0
TABLES = "tables"
PLANS: dict[str, Callable[[bool], Sequence[Extraction]]] = {
    module.PART: module.plan
    for module in (
        mmda_scatter,
        mmda_curves,
        mmda_folds,
        mmda_multiclass,
        mmda_scale,
        mmda_peers,
        mmda_noise,
    )
}
PARTS = (TABLES, *PLANS)
# The papers' figures together.
FIGURES = (mmda_scatter.PART, mmda_curves.PART, mmda_folds.PART, mmda_multiclass.PART)


def plan(
    parts: Sequence[str], sets: Sequence[str], names: Sequence[str], quick: bool
) -> list[Extraction]:
    """``sets`` and ``names`` choose among the cells of the tables; the other parts are whole."""
    found = []
    for part in PARTS:
        if part in parts:
            found += table_plan(sets, names, quick) if part == TABLES else PLANS[part](quick)
    return found


class MmdaSession(MergedSession):
    """Keeps the cells of parts that are not run."""

    def keep(self, record: Record) -> None:
        self.records = merged(self.records, {**record, "run": self.header["date"]})

    @staticmethod
    def one_line(record: Record) -> str:
        said = [] if record["status"] == "ok" else [f"{record['status']}: {record['message']}"]
        if record.get("fit_seconds") is not None:
            said.append(f"fit {record['fit_seconds']:.2f} s")
        for classifier, scores in record.get("scores", {}).items():
            reached = ", ".join(f"{score['accuracy']:.2f}" for score in scores.values())
            said.append(f"{classifier} {reached} %")
        return "; ".join(said) or "done"


# ---------------------------------------------------------------- the page


def with_picture(table: Table, *pictures: Path | None) -> Table:
    shown = [f"![{table.title}]({path.name})" for path in pictures if path is not None]
    return Table(table.title, table.header, table.rows, [*table.notes, *shown])


def page(records: Sequence[Record], results: Path, stem: str) -> list[Table]:
    """Every part that was measured, with its picture where Matplotlib is installed."""

    def of(part: str) -> list[Record]:
        return [record for record in records if record["part"] == part]

    def drawn(draw: Callable[[Any, Path], Path | None], what: Any, name: str) -> Path | None:
        return draw(what, results / f"{stem}_{name}.png") if installed("matplotlib") else None

    found = mmda_tables.tables(records)
    if scatter := of(mmda_scatter.PART):
        pictures = [
            drawn(mmda_scatter.figure, record, mmda_scatter.SLUGS[record["label"]])
            for record in scatter
        ]
        found.append(with_picture(mmda_scatter.table(scatter), *pictures))
    for module in (mmda_curves, mmda_folds, mmda_multiclass, mmda_scale):
        if mine := of(module.PART):
            found.append(with_picture(module.table(mine), drawn(module.figure, mine, module.PART)))
    found += [
        module.table(of(module.PART)) for module in (mmda_peers, mmda_noise) if of(module.PART)
    ]
    return found


NOTES = (
    "Every cell: ours, and in brackets the figure the paper prints. N_c is the number of classes; "
    "kN_c features are k directions for each class against the rest. Ours runs at C = 0.5, which "
    "is the MMDA-CVM paper's C = 1. `core` has ε = 0.001 as the paper, `span` at most 1,000 "
    "vectors for all features. Values are raw unless a part says otherwise. A fit is timed alone, "
    "after a warm-up (compilation); compare times within a run only.",
)


QUICK_NOTE = (
    "A quick run: few rows, sets, vectors and directions, whatever the notes say. It shows that "
    "everything works, and its figures tell nothing of the papers."
)


def main(argv: Sequence[str]) -> None:
    parser = option_parser("mmda", "the tables and figures of the MMDA-CVM and MMDA papers")
    parser.set_defaults(timeout=TIMEOUT)
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=(*PARTS, "figures"),
        default=PARTS,
        metavar="PART",
        help=", ".join(PARTS) + f"; figures: {', '.join(FIGURES)}",
    )
    parser.add_argument(
        "--sets", nargs="+", choices=SETS, metavar="SET", help="of the tables: " + ", ".join(SETS)
    )
    names = tuple(METHODS)
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=names,
        default=names,
        metavar="NAME",
        help="of the tables: " + ", ".join(names),
    )
    options = parser.parse_args(argv)
    parts = {*options.parts, *(FIGURES if "figures" in options.parts else ())}
    sets = options.sets or (QUICK_SETS if options.quick else SETS)
    stem = stem_from(options, "mmda")
    session = MmdaSession(stem, options.timeout, options.threads, options.results)
    session.run(plan(parts, sets, options.methods, options.quick))
    tables = page(session.records, session.results, stem)
    notes = (QUICK_NOTE, *NOTES) if options.quick else NOTES
    if not options.quick:
        tables.insert(0, mmda_targets.table(session.records))
    session.write("Maximum margin discriminant analysis", tables, notes)
