"""A span fit over its floor, and where its time goes.

The floor is what no fit of that kind can do without, each part timed alone: K(X, Z) once in
float32, the Gram matrix of 4t rows, and the Cholesky factor of a t × t matrix (t vectors).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import (
    Found,
    Keep,
    Spec,
    build,
    certificate_of,
    few_of_every_class,
    percent,
    timed_fits,
    warmed_up,
)
from benchmarks.harness.records import Record, gap_of, ratio, text_of, value_of
from benchmarks.harness.report import MISSING, Table, bullets, number
from benchmarks.harness.runner import Part
from benchmarks.span.internals import TRIES, floor_of, instrumented
from benchmarks.span.phases import PHASES, Stopwatch
from benchmarks.span.plan import OURS, ours, warmup_rows

PART = "floor"
SETS = (("covtype_100000", 1.0), ("covtype_100000", 10.0), ("mnist_unit", 10.0))
FLOOR = ("kernel", "gram32", "cholesky")
ASKED = 3.0


def plan(quick: bool, repeats: int) -> list[Part]:
    vectors = 500 if quick else 2000
    return [
        Part(
            "fit",
            dataset,
            OURS,
            ours(C=C, max_vectors=vectors),
            repeats=repeats,
            rows=10_000 if quick else None,
            warmup_rows=warmup_rows(vectors),
            point={"C": C},
            task="benchmarks.span.floor.measure",
            part=PART,
        )
        for dataset, C in SETS
    ]


def phases_of(estimator: Any, X: Any, y: np.ndarray) -> Found:
    """One more fit, with its phases; they add up to ``phases_fit_seconds``."""
    watch = Stopwatch()
    with instrumented(watch):
        start = time.perf_counter()
        with watch.running():
            estimator.fit(X, y)
        total = time.perf_counter() - start
    return {
        "phases_fit_seconds": total,
        "phases": {name: watch.seconds.get(name, 0.0) for name in PHASES},
        "calls": dict(watch.calls),
    }


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: warm-up, floor, fits, one fit with its phases."""
    X, y = data.X_train, data.y_train

    def make() -> Any:
        return build(spec["estimator"], spec["params"], X, spec["threads"])

    few = few_of_every_class(y, spec["warmup_rows"])
    warmed_up(lambda: make().fit(X[few], y[few]).predict(data.X_test[:10]))
    floor = floor_of(make(), X, y, spec["threads"])
    estimator, timed = timed_fits(make, X, y, spec["repeats"])
    found = {
        "n_train": X.shape[0],
        "floor": floor,
        "floor_seconds": sum(floor[part] for part in FLOOR),
        **timed,
        "max_vectors": estimator.max_vectors,
        "n_vectors": len(estimator.support_vectors_),
        **certificate_of(estimator),
    }
    keep(found)
    found["accuracy"] = percent(estimator.predict(data.X_test), data.y_test)
    return found | phases_of(make(), X, y)


# ---------------------------------------------------------------- tables


def title(record: Record) -> str:
    return f"{record['dataset']}, C = {record['point']['C']:g}"


def floor_table(records: Sequence[Record]) -> Table:
    rows = []
    for record in records:
        parts = value_of(record, "floor") or {}
        over = ratio(value_of(record, "fit_seconds"), value_of(record, "floor_seconds"))
        rows.append(
            [
                title(record),
                *(number(parts.get(part), 3) for part in ("kernel", "kernel_again")),
                *(number(parts.get(part), 3) for part in ("gram32", "gram64", "cholesky")),
                text_of(record, "floor_seconds", 3),
                text_of(record, "fit_seconds", 3),
                number(over, unit="×"),
                text_of(record, "accuracy"),
                text_of(record, "n_vectors", 0),
                gap_of(record),
            ]
        )
    header = ["set", "K(X, Z), s", "again, s", "Gram float32, s", "Gram float64, s"]
    header += ["Cholesky, s", "floor, s", "fit, s", "fit over floor", "accuracy, %", "vectors"]
    notes = [
        "Floor = K(X, Z) with all vectors that are allowed (float32, into a new array whose pages "
        "nothing has touched, as in a fit) + KᵀK of 4t rows (float32, one matrix product, of which "
        "NumPy computes half) + Cholesky (float64). *Again* is K(X, Z) into the same array a "
        f"second time, and Gram float64 the same product there; neither counts. Best of {TRIES}; "
        "the fit is the median of its repeats, after a warm-up. "
        f"Asked: a fit of at most {ASKED:g} floors. Vectors are those that were kept: of the ones "
        "drawn, those in the span of others are left out.",
        *certificates(records),
    ]
    return Table("Fit over its floor", [*header, "gap"], rows, notes)


def certificates(records: Sequence[Record]) -> list[str]:
    return bullets(
        [
            f"{title(record)}: " + (record.get("certificate_line") or record["message"])
            for record in records
        ]
    )


def phase_cell(seconds: float | None, total: float | None, calls: int | None) -> str:
    if seconds is None or not total:
        return MISSING
    times = f", {calls}×" if calls else ""
    return f"{seconds:.3f} s, {100.0 * seconds / total:.0f} %{times}"


def phases_table(records: Sequence[Record]) -> Table:
    def cells(phase: str) -> list[str]:
        found = []
        for record in records:
            total = value_of(record, "phases_fit_seconds")
            calls = value_of(record, "calls") or {}
            seconds = (value_of(record, "phases") or {}).get(phase)
            found.append(phase_cell(seconds, total, calls.get(phase)))
        return found

    rows = [[phase, *cells(phase), what] for phase, what in PHASES.items()]
    totals = [text_of(record, "phases_fit_seconds", 3, " s") for record in records]
    rows.append(["fit", *totals, "their sum"])
    notes = [
        "One more fit with wrapped methods: wall time, share of the fit, calls. Where threads "
        "compute kernel values and use them at once, the wall time is divided in proportion to the "
        "threads' times; sums and factors of Newton matrices likewise (the choice of rows "
        "and kernel values that were not kept are in the sum)."
    ]
    header = ["phase", *(title(record) for record in records), "what"]
    return Table("Phases of the fit", header, rows, notes)


def tables(records: Sequence[Record]) -> list[Table]:
    return [floor_table(records), phases_table(records)]
