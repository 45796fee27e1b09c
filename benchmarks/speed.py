"""Fit time over LIBSVM's in one run, default settings: what a new user sees first.

Small sets are where LIBSVM is at its best (0.1 to 0.2 s), so they are the ones to measure. Median
of three fits in a process of its own, after a warm-up; C = 0.5 against SVC's C = 1 (see
`benchmarks.bvm` for why), γ = 1/β for both.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bvm import LIBSVM, MACHINES, by_cell, libsvm, ours
from benchmarks.datasets import RECIPES
from benchmarks.report import Table, gap_of, number, ratio, text_of, value_of
from benchmarks.runner import Measurement, Record, option_parser, session_from

SETS = ("optdigits", "satimage", "pendigits", "ijcnn1")
QUICK_ROWS = 1000
REPEATS = 3


def measurements(sets: Sequence[str], rows: int | None) -> list[Measurement]:
    return [
        measurement
        for dataset in sets
        for measurement in (
            libsvm(dataset, rows=rows, repeats=REPEATS),
            *(ours(name, dataset, label=name, rows=rows, repeats=REPEATS) for name in MACHINES),
        )
    ]


def speed_table(records: Sequence[Record], sets: Sequence[str]) -> Table:
    results = by_cell(records)
    rows = []
    for dataset in sets:
        base = value_of(results.get((dataset, LIBSVM)), "fit_seconds")
        for label in (LIBSVM, *MACHINES):
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
        "last column. LIBSVM is scikit-learn's SVC, which runs on one thread."
    ]
    table = speed_table(session.records, options.sets)
    session.write("Fit time at default settings", [table], notes)
