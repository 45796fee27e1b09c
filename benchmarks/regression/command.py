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
from benchmarks.regression.fit import CHOICE_ROWS, INTERVAL_ROWS, VALIDATION_ROWS
from benchmarks.regression.machines import INTELEX, MACHINES, SVR
from benchmarks.regression.tables import (
    FIT,
    INTERVALS,
    LIMITED,
    choice_table,
    interval_table,
    machine_table,
    targets,
)

COMPARE = "benchmarks.regression.fit.compare"
QUANTILES = "benchmarks.regression.fit.intervals"
QUICK_SETS = ("waves",)
PARTS = (FIT, LIMITED, INTERVALS)
# Seconds for the machines that share a process: none of them should be cut off.
PATIENCE = 600.0


@dataclass(frozen=True)
class Machines(Part):
    """Some machines on a set; ``limit`` is the time limit of the process."""

    names: Sequence[str] = ()
    limit: float = 0.0


def plan(sets: Sequence[str], parts: Sequence[str], limit: float) -> list[Machines]:
    """Set by set: the fast machines in one process, so that their ratios are of one moment."""
    fast = [name for name in MACHINES if name not in (SVR, INTELEX)]
    fast += [INTELEX] if installed(PACKAGE) else []
    names = {FIT: fast, LIMITED: [SVR], INTERVALS: []}
    return [
        Machines(
            part,
            dataset,
            "",
            {},
            task=QUANTILES if part == INTERVALS else COMPARE,
            part=part,
            names=names[part],
            limit=limit,
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
    parser = option_parser("regression", "ten sets beside SVR and others", timeout=120.0)
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
    notes = [
        "γ = 1/d for all kernels. C from {1, 10, 100} (KernelRidge and Ridge: α = 1/(2C)) and ε "
        f"from {{0.01, 0.1}}, chosen on at most {CHOICE_ROWS:,} training rows and validated on a "
        f"fifth of them all, {VALIDATION_ROWS:,} at the most, for all machines alike; trees have "
        "their defaults. Then one fit on all training rows, or the median of three short ones. "
        f"SVR has a process of its own and {options.timeout:g} s for the choice and the fit. "
        f"Quantiles have exact machines only: {INTERVAL_ROWS:,} training rows at the most."
    ]
    shown = [QUICK_NOTE, *notes] if options.quick else notes
    session.write("Regression", [*tables, *([] if options.quick else [targets(records)])], shown)
