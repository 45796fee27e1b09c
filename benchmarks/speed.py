"""Fit time over LIBSVM's in one run, default settings: what a new user sees first.

Small sets are where LIBSVM is at its best (0.1 to 0.2 s), so they are the ones to measure. Median
of three fits in a process of its own, after a warm-up; γ = 1/β for all. The papers' machines run at
C = 0.5 against SVC's C = 1 (see `benchmarks.bvm` for why), `MarginClassifier` at SVC's own C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.bvm import LIBSVM, MACHINES, PAPER_C, by_cell, libsvm, ours
from benchmarks.datasets import RECIPES
from benchmarks.report import Table, gap_of, number, ratio, text_of, value_of
from benchmarks.runner import Measurement, Record, option_parser, session_from

SETS = ("optdigits", "satimage", "pendigits", "ijcnn1")
QUICK_ROWS = 1000
REPEATS = 3
VALUES_OF_C = (1.0, 10.0)


def margin_label(C: float) -> str:
    return f"MarginClassifier, C = {C:g}"


def libsvm_label(C: float) -> str:
    return LIBSVM if C == PAPER_C else f"{LIBSVM}, C = {C:g}"


def margin(dataset: str, C: float, **fields: Any) -> Measurement:
    params = {"C": C, "gamma": "mean_distance", "random_state": 0}
    return Measurement(
        margin_label(C),
        dataset,
        "widemargin.MarginClassifier",
        params,
        # Few rows would start the exact engine only.
        warmups=({"engine": "exact"}, {"engine": "span"}),
        **fields,
    )


def measurements(sets: Sequence[str], rows: int | None) -> list[Measurement]:
    fields: dict[str, Any] = {"rows": rows, "repeats": REPEATS}
    plan = []
    for dataset in sets:
        for C in VALUES_OF_C:
            peer = libsvm(dataset, paper_C=C, **fields)
            plan += [replace(peer, label=libsvm_label(C)), margin(dataset, C, **fields)]
        plan += [ours(name, dataset, label=name, **fields) for name in MACHINES]
    return plan


def speed_table(records: Sequence[Record], sets: Sequence[str]) -> Table:
    results = by_cell(records)
    # Each machine, and the LIBSVM that it is measured against.
    lines = [
        (label, libsvm_label(C))
        for C in VALUES_OF_C
        for label in (libsvm_label(C), margin_label(C))
    ]
    lines += [(name, LIBSVM) for name in MACHINES]
    rows = []
    for dataset in sets:
        for label, peer in lines:
            base = value_of(results.get((dataset, peer)), "fit_seconds")
            record = results.get((dataset, label))
            rows.append(
                [
                    dataset,
                    label,
                    text_of(record, "fit_seconds", digits=3),
                    number(ratio(value_of(record, "fit_seconds"), base), unit="×"),
                    text_of(record, "predict_seconds", digits=3),
                    text_of(record, "accuracy"),
                    text_of(record, "n_vectors", digits=0),
                    gap_of(record),
                    text_of(record, "peak_mb", digits=0),
                    text_of(record, "warmup_seconds"),
                ]
            )
    header = ["set", "machine", "fit, s", "over LIBSVM", "predict, s", "accuracy, %", "vectors"]
    header += ["gap", "peak above data, MB", "warm-up, s"]
    return Table("Fit time", header, rows)


def main(argv: Sequence[str]) -> None:
    parser = option_parser("speed", "fit time over LIBSVM's, default settings")
    parser.add_argument("--sets", nargs="+", choices=sorted(RECIPES), metavar="SET", default=SETS)
    options = parser.parse_args(argv)
    session = session_from(options, "speed")
    session.run(measurements(options.sets, QUICK_ROWS if options.quick else None))
    notes = [
        f"Median of {REPEATS} fits after a warm-up on 200 rows, whose time (compilation) is the "
        "last column. LIBSVM is scikit-learn's SVC, which runs on one thread; each machine is "
        "measured against the one of its own C (the papers' machines against C = 1)."
    ]
    table = speed_table(session.records, options.sets)
    session.write("Fit time at default settings", [table], notes)
