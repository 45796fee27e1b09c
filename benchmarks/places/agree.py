"""A real set as a Dask array on two workers, beside the fit in memory on two threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec, build, percent, timed_fits, warmed_up
from benchmarks.harness.records import Record, ratio, text_of, value_of
from benchmarks.harness.report import MISSING, Table, number, shown
from benchmarks.places.cluster import longest, percent_text, waiting
from benchmarks.places.files import dask_array, saved
from benchmarks.places.fit import described, fitted_on, warm_up
from benchmarks.places.plan import (
    CELLS,
    CHUNKS,
    DISTRIBUTED,
    OURS,
    QUICK_VECTORS,
    SPAN,
    VECTORS,
    Place,
    remarks,
    share_of_workers,
)
from benchmarks.places.workers import local_cluster

PART = "agree"
DATASET, QUICK_DATASET = "covtype", "mixture"
QUICK_ROWS = 4000
WORKERS = 2
# All kernel values of the span are kept in both fits: what is compared is the same work.
MEMORY = "6GB"
IN_SPAN = {"engine": SPAN, "C": 1.0, "gamma": {"mean_distance": 1.0}, "max_vectors": VECTORS}
# In double precision, where the order of sums does not decide which step is the last.
FINE = "span, tol = 1e-6"
SETTINGS: dict[str, dict[str, Any]] = {
    SPAN: IN_SPAN,
    CELLS: {"engine": CELLS, "C": 10.0, "gamma": {"mean_distance": 100.0}},
    FINE: IN_SPAN | {"tol": 1e-6, "memory": "12GB"},
}
LABELS = tuple(SETTINGS)


def plan(quick: bool) -> list[Place]:
    dataset = QUICK_DATASET if quick else DATASET
    found = []
    for label, given in SETTINGS.items():
        params = {"memory": MEMORY, "random_state": 0, **given}
        if quick and "max_vectors" in params:
            params["max_vectors"] = QUICK_VECTORS
        found.append(
            Place(
                label,
                dataset,
                OURS,
                params,
                rows=QUICK_ROWS if quick else None,
                requires=DISTRIBUTED,
                task="benchmarks.places.agree.measure",
                part=PART,
                workers=WORKERS,
                chunks=4 if quick else CHUNKS,
            )
        )
    return found


# ---------------------------------------------------------------- the task


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """Both fits in one process, so that their times can be compared."""
    memory, found = in_memory(spec, data)
    keep(found)
    stem = f"{spec['dataset']}_{len(data.y_train)}"
    pieces = (("X", data.X_train), ("y", data.y_train))
    with local_cluster(spec["workers"]) as client:
        # Rows lie in the workers' memory before the clock starts, as they do in the other fit.
        X, y = (
            dask_array(saved(f"{stem}_{name}", piece), spec["chunks"]).persist()
            for name, piece in pieces
        )
        wait_for(X, y)
        machine, spent = fitted_on(client, spec, X, y, like=data.X_train)
    found |= spent | described(machine, len(data.y_train))
    found |= differences(memory, machine, data.X_test)
    predicted = machine.predict(data.X_test)
    return found | {"accuracy": percent(predicted, data.y_test), "n_test": len(data.y_test)}


def wait_for(*collections: Any) -> None:
    from distributed import wait

    wait(collections)


def in_memory(spec: Spec, data: Dataset) -> tuple[Any, Found]:
    def make() -> Any:
        return build(spec["estimator"], spec["params"], data.X_train, spec["threads"])

    dtype = str(data.X_train.dtype)
    warmed_up(lambda: warm_up(spec["estimator"], spec["params"], spec["threads"], dtype))
    machine, timed = timed_fits(make, data.X_train, data.y_train, 1)
    return machine, {
        "memory_fit_seconds": timed["fit_seconds"],
        "memory_accuracy": percent(machine.predict(data.X_test), data.y_test),
        "memory_certificate": described(machine, len(data.y_train))["certificate"],
    }


def differences(one: Any, other: Any, X: np.ndarray) -> Found:
    """Largest differences of coefficients and decision values; None where vectors differ."""
    values = [machine.decision_function(X) for machine in (one, other)]
    found: Found = {
        "value_difference": float(np.abs(values[0] - values[1]).max()),
        "largest_value": float(np.abs(values[0]).max()),
        "coefficient_difference": None,
        "largest_coefficient": float(np.abs(one.dual_coef_).max()),
        "same_vectors": same_vectors(one, other),
    }
    if found["same_vectors"]:
        pairs = [(one.dual_coef_, other.dual_coef_), (one.intercept_, other.intercept_)]
        found["coefficient_difference"] = max(float(np.abs(a - b).max()) for a, b in pairs)
    return found


def same_vectors(one: Any, other: Any) -> bool:
    vectors = [np.asarray(machine.support_vectors_) for machine in (one, other)]
    return vectors[0].shape == vectors[1].shape and np.allclose(*vectors, rtol=0.0, atol=1e-6)


# ---------------------------------------------------------------- tables


def relative(record: Record | None, difference: str, largest: str) -> float | None:
    return ratio(value_of(record, difference), value_of(record, largest))


def coefficients(record: Record | None) -> float | None:
    """The largest difference of coefficients over the largest coefficient."""
    return relative(record, "coefficient_difference", "largest_coefficient")


def slower(record: Record | None) -> float | None:
    return ratio(value_of(record, "fit_seconds"), value_of(record, "memory_fit_seconds"))


def table(records: Sequence[Record]) -> Table:
    order = sorted(records, key=lambda record: LABELS.index(record["label"]))
    rows = [
        [
            record["label"],
            text_of(record, "memory_fit_seconds"),
            text_of(record, "fit_seconds"),
            number(slower(record), unit="×"),
            shown(value_of(record, "coefficient_difference"), ".1e"),
            shown(coefficients(record), ".1e"),
            shown(value_of(record, "value_difference"), ".1e"),
            text_of(record, "memory_accuracy"),
            text_of(record, "accuracy"),
        ]
        for record in order
    ]
    header = ["engine", "in memory, 2 threads, s", "Dask, 2 workers, s", "Dask over memory"]
    header += ["coefficients differ by", "over the largest", "decision values differ by"]
    header += ["accuracy in memory, %", "accuracy with Dask, %"]
    note = (
        f"covtype, 2 against the rest, 531,012 rows in {CHUNKS} chunks that the workers hold when "
        f'the clock starts; memory="{MEMORY}". Span of {VECTORS:,} vectors at γ = 1/β, C = 1; '
        "cells at γ = 100/β, C = 10. The client works on two threads while the workers wait. The "
        "largest differences of all; a dash where the vectors are others. Single precision, which "
        "the default tol = 1e-3 takes, rounds sums over other parts of the rows in another way, "
        "and so leads to another last step."
    )
    return Table(
        "The same answer on a cluster", header, rows, [note, *rest(order), *remarks(order)]
    )


def rest(records: Sequence[Record]) -> list[str]:
    """Where the time of the cluster goes."""
    said = []
    for record in records:
        wait = waiting(record)
        if wait is not None:
            moving = (value_of(record, "actions") or {}).get("transfer", 0.0)
            said.append(
                f"{record['label']}: of {record['fit_seconds']:.1f} s no task runs on a worker "
                f"for {wait:.1f} s; a worker computes for "
                f"{percent_text(share_of_workers(record))} % of the fit; {record['n_tasks']:,} "
                f"tasks, {record['moved_mb']:.0f} MB between processes, {moving:.1f} s of waiting "
                f"for other workers' results; most seconds of both workers: "
                f"{longest(record) or MISSING}."
            )
    return [" ".join(said)] if said else []
