"""The tables and the example of the SLMC paper, training time, MNIST with few vectors, growth.

Tables 1, 2 and 3 at 5 % and 10 % of the SVM's vectors, with the paper's parameters on USPS and
parameters by cross-validation on Rätsch's sets, which are chosen once and kept in the results
(``--parts choice`` chooses again). Each part can be run alone; it then replaces its own figures in
the results and leaves the others. Every measurement has a process of its own.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import papers_slmc as paper
from benchmarks import (
    slmc_choice,
    slmc_curve,
    slmc_example,
    slmc_mnist,
    slmc_plan,
    slmc_tables,
    slmc_targets,
    slmc_time,
)
from benchmarks.mmda import with_picture
from benchmarks.peers import MergedSession
from benchmarks.report import Table
from benchmarks.runner import Record, installed, option_parser, stem_from
from benchmarks.slmc_data import MOST_SPLITS, RAETSCH
from benchmarks.slmc_plan import METHODS
from benchmarks.span import merged

TIMEOUT = 3600.0
PARTS = (
    slmc_choice.PART,
    slmc_plan.PART,
    slmc_example.PART,
    slmc_time.PART,
    slmc_mnist.PART,
    slmc_curve.PART,
)
# Of the tables, in a quick run.
QUICK_SETS, QUICK_SHARES, QUICK_SPLITS = ("banana", "titanic"), (0.10,), 1


class SlmcSession(MergedSession):
    """Keeps the cells of parts that are not run; a cell is of the set, not of what was loaded."""

    def keep(self, record: Record) -> None:
        named = {**record, "dataset": record["set_name"], "run": self.header["date"]}
        self.records = merged(self.records, named)

    @staticmethod
    def one_line(record: Record) -> str:
        said = [record["set_name"]]
        if record["status"] != "ok":
            said.append(f"{record['status']}: {record['message']}")
        if record.get("chosen"):
            said.append(", ".join(f"{key} = {v:.4g}" for key, v in record["chosen"].items()))
        if record.get("error") is not None:
            said.append(f"error {record['error']:.2f} %, fit {record['fit_seconds']:.2f} s")
        if record.get("n_vectors") is not None:
            said.append(f"{record['n_vectors']:g} vectors")
        return "; ".join(said)


def choose(session: SlmcSession, options: argparse.Namespace) -> None:
    """Choose the parameters that are missing, or all of these sets if asked to."""
    again = slmc_choice.PART in options.parts
    sets = list(options.datasets) if again or slmc_plan.PART in options.parts else []
    fixed = {
        slmc_time.PART: slmc_time.SETS,
        slmc_curve.PART: [name for name, _ in slmc_curve.LINES],
    }
    others = [name for part, names in fixed.items() if part in options.parts for name in names]
    if not options.quick:
        sets = list(dict.fromkeys([*sets, *others]))
    found = slmc_choice.svm_plan(sets)
    session.run(found if again else slmc_choice.missing(session.records, found))
    if again or slmc_plan.PART in options.parts:
        labels = {METHODS[name].choice for name in options.methods}
        found = slmc_choice.plan(session.records, options.datasets, list(labels), options.shares)
        session.run(found if again else slmc_choice.missing(session.records, found))


def measure(session: SlmcSession, options: argparse.Namespace) -> None:
    """Run the parts; each is planned when the choices before it are known."""
    quick = options.quick
    plans: dict[str, Callable[[], Sequence[Any]]] = {
        slmc_plan.PART: lambda: slmc_plan.table_plan(
            session.records, options.datasets, options.methods, options.shares, options.splits
        ),
        slmc_example.PART: lambda: slmc_example.plan(session.records, quick),
        slmc_time.PART: lambda: slmc_time.plan(session.records, quick),
        slmc_mnist.PART: lambda: slmc_mnist.plan(quick, options.mnist_C, options.mnist_gamma),
        slmc_curve.PART: lambda: slmc_curve.plan(session.records, quick),
    }
    for part, planned in plans.items():
        if part in options.parts:
            session.run(planned())


# ---------------------------------------------------------------- the page


def page(records: Sequence[Record], results: Path, stem: str) -> list[Table]:
    """Every part that was measured, with its picture where Matplotlib is installed."""

    def of(part: str) -> list[Record]:
        return [record for record in records if record["part"] == part]

    found = slmc_tables.tables(records)
    pictures = {slmc_example.PART: "vectors", slmc_curve.PART: "curve"}
    for module in (slmc_example, slmc_time, slmc_mnist, slmc_curve, slmc_choice):
        mine = of(module.PART)
        if not mine:
            continue
        table = module.table(mine)
        if module.PART in pictures and installed("matplotlib"):
            path = results / f"{stem}_{pictures[module.PART]}.png"
            table = with_picture(table, module.figure(mine, path))
        found.append(table)
    return found


NOTES = (
    "Every cell: ours, and in brackets the figure the paper prints. Shares are of the support "
    "vectors of the SVM (`SVC`), on USPS of each of the ten machines one-vs-rest. SLMC is "
    "`SparseMarginClassifier` with the paper's hinge; RS and MRS are `ReducedSetClassifier`, RSVM "
    "and MRSVM `ReducedSVMClassifier`, SKFD `SparseFisherClassifier`. A fit is timed after a "
    "warm-up (compilation); compare times within a run only.",
)
QUICK_NOTE = (
    "A quick run: few sets, splits and rows, whatever the notes say. It shows that everything "
    "works, and its figures tell nothing of the paper."
)


def options_from(argv: Sequence[str]) -> argparse.Namespace:
    parser = option_parser("slmc", "the tables and the example of the SLMC paper")
    parser.set_defaults(timeout=TIMEOUT)
    sets, names = paper.SETS, tuple(METHODS)
    parser.add_argument(
        "--parts", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument(
        "--datasets",
        nargs="+",
        choices=sets,
        metavar="SET",
        help="of the tables: " + ", ".join(sets),
    )
    parser.add_argument(
        "--methods",
        nargs="+",
        choices=names,
        default=names,
        metavar="NAME",
        help="of the tables: " + ", ".join(names),
    )
    parser.add_argument("--shares", nargs="+", type=float, help="of the tables (0.05 0.1)")
    parser.add_argument("--splits", type=int, help=f"of the tables, the first ({MOST_SPLITS})")
    parser.add_argument("--mnist-C", type=float, default=slmc_mnist.C, help="of the part mnist")
    parser.add_argument(
        "--mnist-gamma",
        type=float,
        default=slmc_mnist.GAMMA_FACTOR,
        help="of the part mnist, × 1/β",
    )
    options = parser.parse_args(argv)
    quick = options.quick
    options.datasets = options.datasets or (QUICK_SETS if quick else (*RAETSCH, "usps"))
    options.shares = options.shares or (QUICK_SHARES if quick else paper.SHARES)
    options.splits = options.splits or (QUICK_SPLITS if quick else MOST_SPLITS)
    return options


def main(argv: Sequence[str]) -> None:
    options = options_from(argv)
    stem = stem_from(options, "slmc")
    session = SlmcSession(stem, options.timeout, options.threads, options.results)
    choose(session, options)
    measure(session, options)
    tables = page(session.records, session.results, stem)
    notes = (QUICK_NOTE, *NOTES) if options.quick else NOTES
    if not options.quick:
        tables.append(slmc_targets.table(session.records))
    session.write("Sparse large margin classifiers", tables, notes)
