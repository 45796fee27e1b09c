"""``python -m benchmarks mmda``: all parts, or some of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.harness.records import Record
from benchmarks.harness.sections import Section, write_page
from benchmarks.harness.session import MergedSession, add_choice, option_parser
from benchmarks.mmda import (
    curves,
    folds,
    multiclass,
    noise,
    peers,
    scale,
    scatter,
    tables,
    targets,
    variants,
)
from benchmarks.mmda.extract import Extraction
from benchmarks.mmda.papers import PROTOCOL, SETS
from benchmarks.mmda.plan import (
    METHODS,
    QUICK_SETS,
    RAW,
    STANDARD,
    TIMES,
    standard_plan,
    table_plan,
    times_plan,
)

TIMEOUT = 1800.0
SECTIONS = (
    Section(
        STANDARD,
        tables.standard_tables,
        {"cvm_figure2": curves.accuracy_figure, "cvm_figure4": curves.evaluations_figure},
    ),
    Section(TIMES, tables.times_tables, {"cvm_figure3": curves.time_figure}),
    Section(RAW, tables.raw_tables),
    Section(scatter.PART, scatter.table, scatter.PICTURES),
    Section(folds.PART, folds.table, {folds.PART: folds.figure}),
    Section(multiclass.PART, multiclass.table, {multiclass.PART: multiclass.figure}),
    Section(scale.PART, scale.table, {scale.PART: scale.figure}),
    Section(peers.PART, peers.table),
    Section(noise.PART, noise.table),
    Section(variants.PART, variants.table),
)
PARTS = tuple(section.part for section in SECTIONS)
# The papers' figures together.
FIGURES = (scatter.PART, folds.PART, multiclass.PART)

NOTES = (
    "Every cell: ours, and in brackets the figure the paper prints. N_c is the number of classes; "
    "kN_c features are k directions for each class against the rest. Ours runs at C = 0.5, which "
    "is the MMDA-CVM paper's C = 1. `core` has ε = 0.001 as the paper, `span` at most 1,000 "
    "vectors for all features. A fit is timed alone, after a warm-up (compilation); compare times "
    "within a run only.",
)


def plan(
    parts: Iterable[str], sets: Sequence[str], names: Sequence[str], quick: bool
) -> list[Extraction]:
    """``sets`` and ``names`` choose among the cells of the tables; the other parts are whole."""
    others = (scatter, folds, multiclass, scale, peers, noise, variants)
    of_tables = {STANDARD: standard_plan, TIMES: times_plan, RAW: table_plan}
    plans = {part: make(sets, names, quick) for part, make in of_tables.items()}
    plans |= {module.PART: module.plan(quick) for module in others}
    return [measurement for part in PARTS if part in parts for measurement in plans[part]]


def one_line(record: Record) -> str:
    said = [] if record["status"] == "ok" else [f"{record['status']}: {record['message']}"]
    if record.get("fit_seconds") is not None:
        said.append(f"fit {record['fit_seconds']:.2f} s")
    for classifier, scores in record.get("scores", {}).items():
        reached = ", ".join(f"{score['accuracy']:.2f}" for score in scores.values())
        said.append(f"{classifier} {reached} %")
    return "; ".join(said) or "done"


def main(argv: Sequence[str]) -> None:
    about = "the tables and figures of the MMDA-CVM and MMDA papers"
    parser = option_parser("mmda", about, TIMEOUT)
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=(*PARTS, "figures"),
        default=PARTS,
        metavar="PART",
        help=", ".join(PARTS) + f"; figures: {', '.join(FIGURES)}",
    )
    add_choice(parser, "--sets", SETS, "SET", of="of the tables: ")
    names = tuple(METHODS)
    add_choice(parser, "--methods", names, "NAME", default=names, of="of the tables: ")
    options = parser.parse_args(argv)
    parts = {*options.parts, *(FIGURES if "figures" in options.parts else ())}
    sets = options.sets or (QUICK_SETS if options.quick else SETS)
    session = MergedSession.of(options, "mmda", one_line)
    session.run(plan(parts, sets, options.methods, options.quick))
    title = "Maximum margin discriminant analysis"
    write_page(
        session,
        title,
        SECTIONS,
        NOTES,
        targets.table,
        quick=options.quick,
        targets_first=True,
        protocol=PROTOCOL,
    )
