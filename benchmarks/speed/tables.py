"""Each machine beside the LIBSVM of its own C."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.machines import LIBSVM, VECTOR_MACHINES
from benchmarks.harness.records import Record, by_set_and_label, gap_of, ratio, text_of, value_of
from benchmarks.harness.report import Table, number
from benchmarks.speed.plan import VALUES_OF_C, libsvm_label, margin_label


def speed_table(records: Sequence[Record], sets: Sequence[str]) -> Table:
    results = by_set_and_label(records)
    # Each machine, and the LIBSVM that it is measured against.
    lines = [
        (label, libsvm_label(C))
        for C in VALUES_OF_C
        for label in (libsvm_label(C), margin_label(C))
    ]
    lines += [(name, LIBSVM) for name in VECTOR_MACHINES]
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
