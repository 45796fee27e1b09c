"""MaxiMinDA from a Dask array beside the fit in memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec, build, certificate_of, warmed_up
from benchmarks.harness.records import Record, text_of, value_of
from benchmarks.harness.report import Table, shown
from benchmarks.places.files import dask_array, saved
from benchmarks.places.plan import CHUNKS, DASK, DISTRIBUTED, Place, remarks
from benchmarks.places.workers import local_cluster

PART = "scatter"
ESTIMATOR = "widemargin.MaxiMinDA"
DATASET, QUICK_DATASET = "letter_standard", "generated"
ALONE, ON_CLUSTER = "no cluster", "2 workers"
LABELS = (ALONE, ON_CLUSTER)
DIRECTIONS, QUICK_DIRECTIONS = 5, 2


def plan(quick: bool) -> list[Place]:
    return [
        Place(
            label,
            QUICK_DATASET if quick else DATASET,
            ESTIMATOR,
            {"n_components": QUICK_DIRECTIONS if quick else DIRECTIONS, "random_state": 0},
            requires=DASK if label == ALONE else DISTRIBUTED,
            task="benchmarks.places.scatter.measure",
            part=PART,
            workers=0 if label == ALONE else 2,
            chunks=4 if quick else CHUNKS,
        )
        for label in LABELS
    ]


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    def make() -> Any:
        return build(spec["estimator"], spec["params"], data.X_train, spec["threads"])

    warmed_up(lambda: make().fit(data.X_train, data.y_train))
    start = time.perf_counter()
    memory = make().fit(data.X_train, data.y_train)
    found: Found = {"memory_fit_seconds": time.perf_counter() - start}
    keep(found)
    pieces = (("X", data.X_train), ("y", data.y_train))
    X, y = (
        dask_array(saved(f"{spec['dataset']}_{name}", piece), spec["chunks"])
        for name, piece in pieces
    )
    place = local_cluster(spec["workers"]) if spec["workers"] else contextlib.nullcontext()
    with place:
        start = time.perf_counter()
        machine = make().fit(X, y)
        found["fit_seconds"] = time.perf_counter() - start
    one, other = (np.asarray(each.transform(data.X_test)) for each in (memory, machine))
    return found | {
        "n_train": len(data.y_train),
        "difference": float(np.abs(one - other).max() / np.abs(one).max()),
        "component_difference": apart(memory.components_, machine.components_),
        "bit_equal": bool(np.array_equal(one, other)),
        **certificate_of(machine),
    }


def apart(one: np.ndarray, other: np.ndarray) -> float | None:
    """The largest difference over the largest entry; None where shapes differ."""
    if one.shape != other.shape:
        return None
    return float(np.abs(one - other).max() / np.abs(one).max())


def table(records: Sequence[Record]) -> Table:
    order = sorted(records, key=lambda record: LABELS.index(record["label"]))
    rows = [
        [
            record["label"],
            text_of(record, "memory_fit_seconds"),
            text_of(record, "fit_seconds"),
            shown(value_of(record, "component_difference"), ".1e"),
            shown(value_of(record, "difference"), ".1e"),
        ]
        for record in order
    ]
    header = ["MaxiMinDA on a Dask array", "in memory, s", "Dask, s"]
    header += ["directions differ by", "projections differ by"]
    note = (
        f"letter, standardised, 15,000 rows in {CHUNKS} chunks, {DIRECTIONS} directions; largest "
        "differences over the largest entry."
    )
    return Table("Scatter from chunks", header, rows, [note, *remarks(order)])
