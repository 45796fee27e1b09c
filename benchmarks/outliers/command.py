"""``python -m benchmarks outliers``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.harness.datasets import OUTLIERS
from benchmarks.harness.records import Record, of_part
from benchmarks.harness.runner import Part
from benchmarks.harness.sections import QUICK_NOTE
from benchmarks.harness.session import MergedSession, add_choice, option_parser
from benchmarks.outliers.detectors import ALIKE, DETECTORS, KERNEL_ROWS, KERNEL_TENTH, OURS
from benchmarks.outliers.fit import SCORED_ROWS
from benchmarks.outliers.tables import (
    FIT,
    RACE,
    RACE_ROWS,
    RACE_SET,
    detector_table,
    race_table,
    targets,
)

TASK = "benchmarks.outliers.fit.compare"
PARTS = (FIT, RACE)
QUICK_SET = "scattered"


@dataclass(frozen=True)
class Detectors(Part):
    """Some detectors on a set; ``whole`` fits each on all rows."""

    names: Sequence[str] = ()
    whole: bool = False


def plan(sets: Sequence[str], parts: Sequence[str], race_set: str = RACE_SET) -> list[Detectors]:
    """All detectors on each set, and machines of the same rows on many."""
    found = []
    if FIT in parts:
        found += [
            Detectors(FIT, dataset, "", {}, task=TASK, part=FIT, names=list(DETECTORS))
            for dataset in sets
        ]
    if RACE in parts:
        names = [OURS, ALIKE, KERNEL_TENTH]
        given = {"task": TASK, "part": RACE, "names": names, "whole": True, "rows": RACE_ROWS}
        found.append(Detectors(RACE, race_set, "", {}, **given))
    return found


def said(record: Record) -> str:
    done = [
        f"{name} {one['auc']:.2f} % in {one['fit_seconds']:.2f} s"
        for name, one in record.get("machines", {}).items()
        if "auc" in one
    ]
    if record["status"] != "ok":
        done.append(f"{record['status']}: {record['message']}")
    return ", ".join(done)


def main(argv: Sequence[str]) -> None:
    parser = option_parser("outliers", "the sets of ADBench beside OneClassSVM and others", 180.0)
    add_choice(parser, "--parts", PARTS, "PART", default=PARTS)
    add_choice(parser, "--sets", OUTLIERS, "SET", default=OUTLIERS)
    options = parser.parse_args(argv)
    session = MergedSession.of(options, "outliers", said)
    if options.quick:
        session.run(plan([QUICK_SET], options.parts, QUICK_SET))
    else:
        session.run(plan([f"ad_{name}" for name in options.sets], options.parts))
    records = session.records
    fits = of_part(records, FIT)
    tables = [
        detector_table(fits, "auc", "ROC AUC, %", 2),
        detector_table(fits, "precision", "Average precision, %", 2),
        detector_table(fits, "fit_seconds", "Fit, seconds", 3),
        race_table(records),
    ]
    notes = [
        "Fitted on all rows without labels, ours with defaults. OneClassSVM has standardised "
        f'columns, gamma="scale" and {KERNEL_ROWS:,} random rows at the most, LocalOutlierFactor '
        "and PyOD's KNN, of standardised columns too, are left out above 20,000 rows. Of more rows "
        f"than that, {SCORED_ROWS:,} random ones are ranked, the same by all detectors."
    ]
    shown = [QUICK_NOTE, *notes] if options.quick else notes
    made = [*tables, *([] if options.quick else [targets(records)])]
    session.write("Outliers", made, shown)
