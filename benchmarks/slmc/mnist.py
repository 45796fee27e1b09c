"""MNIST with few shared vectors: moved, k-means, and random rows."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import Record, microseconds, text_of
from benchmarks.harness.report import Table, number
from benchmarks.slmc.fit import Sparse
from benchmarks.slmc.plan import METHODS, SHARED, SLMC_PATH
from benchmarks.slmc.times import over_span, peers

PART = "mnist"
DATASET = "mnist_unit"
VECTORS = 200
C = 10.0
GAMMA_FACTOR = 1.0
ASKED = 97.0
# Fits of few rows use float64 throughout, and would leave the loops for float32 to be compiled in
# the timed fit.
WARMUP_ROWS = 2000
QUICK_ROWS = 2000
QUICK_VECTORS = 20


def plan(quick: bool, C: float, gamma_factor: float) -> list[Sparse]:
    size = QUICK_VECTORS if quick else VECTORS
    given = {"C": C, "gamma": {"mean_distance": gamma_factor}}
    ours = {**METHODS["slmc-shared"].params, **given, "n_vectors": size, "random_state": 0}
    machines = {**peers(size, given), SHARED: (SLMC_PATH, ours)}
    return [
        Sparse(
            label,
            DATASET,
            path,
            params,
            rows=QUICK_ROWS if quick else None,
            warmup_rows=200 if quick else WARMUP_ROWS,
            point={"C": C, "gamma_factor": gamma_factor},
            part=PART,
            set_name=DATASET,
        )
        for label, (path, params) in machines.items()
    ]


def table(records: Sequence[Record]) -> Table:
    rows = []
    for record in sorted(records, key=lambda record: sorted(record["point"].items())):
        point = record["point"]
        same = [other for other in records if other["point"] == point]
        rows.append(
            [
                record["label"],
                f"{point['C']:g}",
                f"{point['gamma_factor']:g}/β",
                number(record.get("n_train"), 0),
                text_of(record, "n_vectors", 0),
                text_of(record, "accuracy"),
                text_of(record, "fit_seconds", 1),
                number(over_span(same, record), 1, "×"),
                number(microseconds(record), 1),
            ]
        )
    header = ["method", "C", "γ", "rows", "vectors", "accuracy, %", "fit, s", "over the span fit"]
    header += ["prediction, µs a row"]
    notes = [
        "Values in [0, 1]; β is the mean squared distance of training rows. The vectors of every "
        "line are shared by the ten classes, so that a prediction costs as many kernel values as "
        f"there are vectors (asked: at least {ASKED:g} % with {VECTORS})."
    ]
    return Table("MNIST with few vectors", header, rows, notes)
