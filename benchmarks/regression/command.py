"""``python -m benchmarks regression``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness.datasets import REGRESSION, SPLITS, split_name
from benchmarks.harness.records import Record
from benchmarks.harness.runner import Part, installed
from benchmarks.harness.sections import QUICK_NOTE
from benchmarks.harness.session import INTELEX as PACKAGE
from benchmarks.harness.session import MergedSession, add_choice, option_parser
from benchmarks.regression.fit import CHOICE_ROWS, FEW_ROWS, VALIDATION_ROWS
from benchmarks.regression.machines import INTELEX, LINEAR, MACHINES, SEARCH, SVR, VALUES_OF_C
from benchmarks.regression.tables import (
    FIT,
    INTERVALS,
    LIMITED,
    PIECES,
    SEARCHED,
    choice_table,
    interval_table,
    machine_table,
    targets,
)

COMPARE = "benchmarks.regression.fit.compare"
QUANTILES = "benchmarks.regression.fit.intervals"
QUICK_SETS = ("waves",)
PARTS = (FIT, PIECES, SEARCHED, LIMITED, INTERVALS)
# Seconds for the machines that share a process: none of them should be cut off.
PATIENCE = 500.0


@dataclass(frozen=True)
class Machines(Part):
    """Some machines on a set; ``limit`` is the time limit of the process.

    ``first_of`` is the name of a set whose first split it is.
    """

    names: Sequence[str] = ()
    limit: float = 0.0
    first_of: str = ""


def plan(sets: Sequence[str], parts: Sequence[str], limit: float) -> list[Machines]:
    """Set by set: the fast machines in one process, so that their ratios are of one moment."""
    alone = {PIECES: [LINEAR], SEARCHED: [SEARCH], LIMITED: [SVR], INTERVALS: []}
    others = [name for names in alone.values() for name in names]
    fast = [name for name in MACHINES if name not in (*others, INTELEX)]
    fast += [INTELEX] if installed(PACKAGE) else []
    names = {FIT: fast} | alone
    first = {split_name(name, 0): name for name in REGRESSION}
    return [
        Machines(
            part,
            dataset,
            "",
            {},
            task=QUANTILES if part == INTERVALS else COMPARE,
            part=part,
            names=names[part],
            limit=limit if part == LIMITED else max(limit, PATIENCE),
            first_of=first.get(dataset, ""),
        )
        for dataset in sets
        for part in PARTS
        if part in parts
    ]


def said(record: Record) -> str:
    done = [f"{name} {one['rmse']:.4f}" for name, one in record.get("machines", {}).items()]
    if "coverage" in record:
        done.append(f"coverage {record['coverage']:.1f} %")
    if record["status"] != "ok":
        done.append(f"{record['status']}: {record['message']}")
    return ", ".join(done)


def main(argv: Sequence[str]) -> None:
    parser = option_parser("regression", "ten sets beside SVR and others", timeout=400.0)
    add_choice(parser, "--parts", PARTS, "PART", default=PARTS)
    add_choice(parser, "--sets", REGRESSION, "SET", default=REGRESSION)
    parser.add_argument("--splits", type=int, default=1, choices=range(1, SPLITS + 1))
    options = parser.parse_args(argv)
    session = MergedSession.of(options, "regression", said)
    sets = [split_name(name, k) for k in range(options.splits) for name in options.sets]
    measurements = plan(QUICK_SETS if options.quick else sets, options.parts, options.timeout)
    session.run([one for one in measurements if one.part == LIMITED])
    session.timeout = max(PATIENCE, options.timeout)
    session.run([one for one in measurements if one.part != LIMITED])
    records = session.records
    tables = [
        machine_table(records, "rmse", "RMSE on the test rows, in units of sd(y)", 4),
        machine_table(records, "fit_seconds", "Fit, seconds", 3),
        choice_table(records),
        interval_table(records),
    ]
    values = ", ".join(f"{C:g}" for C in VALUES_OF_C)
    notes = [
        f"γ = 1/d for all kernels. C from {{{values}}} (KernelRidge and Ridge: α = 1/(2C)) and ε "
        f"from {{0.01, 0.1}}, for all machines alike: by five folds on up to {FEW_ROWS:,} training "
        f"rows, of more by {VALIDATION_ROWS:,} held-out rows at the most for machines of "
        f"{CHOICE_ROWS:,} others. Then one fit on all training rows, or the median of three short "
        "ones. Trees have their defaults. Machines that would take more than minutes on all rows "
        "are fitted to a random sample, whose size stands beside their figures: KernelRidge, the "
        "Gaussian process, and SVR, which then has the rest of "
        f"{options.timeout:g} s for all rows. `MarginRegressorCV()` chooses C, the kernel and its "
        "width itself, and its time is that of search and fit. Intervals: the search chooses C by "
        "the quantile loss at γ = 1/d, and folds calibrate; the test rows of all three splits are "
        "counted together on sets of few rows."
    ]
    shown = [QUICK_NOTE, *notes] if options.quick else notes
    session.write("Regression", [*tables, *([] if options.quick else [targets(records)])], shown)
