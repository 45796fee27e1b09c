"""A million rows of 3,755 classes through ``partial_fit``, and a smaller copy beside a batch fit.

Rows are made block by block, and never all there at once.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness.datasets import NOTHING, Dataset
from benchmarks.harness.fits import Found, Keep, Spec, peak_mb, percent, reset_peak
from benchmarks.harness.records import Record
from benchmarks.harness.report import Table, number, shown
from benchmarks.maximin.data import Source
from benchmarks.maximin.fit import Projection, facts_of_fit, made
from benchmarks.maximin.methods import OURS

PART = "stream"
LARGE = "stream"
SMALL = "smaller copy"
LARGE_LABEL = "3,755 classes × 512 × 1,000,000"
SOURCES = {LARGE: Source(3755, 512, 1_000_000), SMALL: Source(300, 64, 30_000, block=1500)}
QUICK = {LARGE: Source(60, 32, 6000, block=1000), SMALL: Source(20, 16, 2000, block=300)}
SETTINGS: dict[str, dict[str, Any]] = {
    "sharpness 1, Ledoit–Wolf": {"sharpness": 1.0, "shrinkage": "auto"},
    "default": {},
}
FRESH_BLOCKS = 2
ORDERS = (1, 2, 3)


def plan(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    dimensions = {LARGE: 10 if quick else 160, SMALL: 5 if quick else 20}
    return [
        Projection(
            label,
            NOTHING,
            OURS,
            {"n_components": dimensions[name], "random_state": 0, **settings},
            point={"d": dimensions[name]},
            part=PART,
            set_name=name,
            # Tells the child process which sizes to take.
            classes=(QUICK if quick else SOURCES)[name].n_classes,
            task=f"benchmarks.maximin.stream.{task}",
        )
        for name, task in ((SMALL, "compare"), (LARGE, "stream"))
        for label, settings in SETTINGS.items()
    ]


def source_of(spec: Spec) -> Source:
    full = SOURCES[spec["set_name"]]
    return full if spec["classes"] == full.n_classes else QUICK[spec["set_name"]]


def streamed(spec: Spec, source: Source, order: np.ndarray | None) -> tuple[Any, float]:
    """The estimator after all blocks, and the seconds that it took to take them in."""
    classes = np.arange(source.n_classes)
    estimator, seconds = None, 0.0
    for X, y in source.blocks(order):
        if estimator is None:
            estimator = made(spec, X)
        start = time.perf_counter()
        estimator.partial_fit(X, y, classes=classes)
        seconds += time.perf_counter() - start
    return estimator, seconds


def warm_up(spec: Spec) -> None:
    """A few rows, so that nothing is compiled later."""
    few = Source(5, 16, 400, block=200)
    estimator, _ = streamed(spec | {"params": spec["params"] | {"n_components": 2}}, few, None)
    estimator.transform(np.zeros((1, few.n_features)))


def stream(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: seconds and memory of one pass, and accuracy on fresh rows."""
    warm_up(spec)
    source = source_of(spec)
    floor = reset_peak()
    estimator, seconds = streamed(spec, source, None)
    found = {
        "n_train": source.n_rows,
        "n_features": source.n_features,
        "n_classes": source.n_classes,
        "accumulate_seconds": seconds,
        "accumulate_peak_mb": peak_mb(),
    }
    keep(found)
    start = time.perf_counter()
    estimator.finalize()
    found |= {
        "solve_seconds": time.perf_counter() - start,
        "peak_mb": peak_mb(),
        "above_floor_mb": peak_mb(floor),
        **facts_of_fit(estimator),
    }
    found["fit_seconds"] = found["accumulate_seconds"] + found["solve_seconds"]
    keep(found)
    shape = source.shape()
    means = estimator.class_means_
    right = []
    for number_of in range(source.n_blocks, source.n_blocks + FRESH_BLOCKS):
        X, y = source.rows_of(number_of, *shape)
        Z = estimator.transform(X)
        nearest = np.argmin((means**2).sum(axis=1) - 2.0 * Z @ means.T, axis=1)
        right.append(percent(nearest, y))
    return found | {"scores": {"mean": float(np.mean(right))}}


def compare(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: streams in several orders of the blocks beside a batch fit."""
    from scipy.linalg import subspace_angles

    source = source_of(spec)
    blocks = list(source.blocks())
    X = np.concatenate([rows for rows, _ in blocks])
    y = np.concatenate([label for _, label in blocks])
    batch = made(spec, X).fit(X, y)
    size = np.abs(batch.components_).max()
    angles, differences, first = [], [], None
    for seed in ORDERS:
        order = np.random.default_rng(seed).permutation(source.n_blocks)
        components = streamed(spec, source, order)[0].finalize().components_
        angles.append(float(subspace_angles(components.T, batch.components_.T).max()))
        first = components if first is None else first
        differences.append(float(np.abs(components - first).max() / size))
    return {
        "n_train": source.n_rows,
        "n_features": source.n_features,
        "n_classes": source.n_classes,
        "angle": max(angles),
        "order_difference": max(differences),
        **facts_of_fit(batch),
    }


# ---------------------------------------------------------------- table


def row_of(record: Record) -> list[str]:
    own = record.get("own", {})
    tiny = [record.get(key) for key in ("angle", "order_difference")]
    return [
        f"{record['set_name']}, {record['label']}",
        "×".join(f"{record[key]:,}" for key in ("n_classes", "n_features", "n_train"))
        if "n_train" in record
        else record["status"],
        f"{record['point']['d']:g}",
        number(record.get("accumulate_seconds"), 1),
        number(record.get("solve_seconds"), 1),
        number(record.get("peak_mb"), 0),
        number((record.get("scores") or {}).get("mean"), 1),
        *(shown(value, ".1e") for value in tiny),
        f"{own['sharpness']}, {own['shrinkage']:.3g}" if "sharpness" in own else record["status"],
    ]


def table(records: Sequence[Record]) -> Table:
    header = ["stream", "classes×features×rows", "d", "taking rows in, s", "solving, s"]
    header += ["peak of the process, MB", "nearest mean, %", "largest angle with batch"]
    header += ["difference by order", "sharpness, shrinkage"]
    notes = [
        "One pass; making the rows is not timed. Memory is that of the whole process, with Python "
        "and its libraries. Accuracy is on fresh rows. The smaller copy is streamed in "
        f"{len(ORDERS)} random orders of its blocks: the largest principal angle with a batch fit, "
        "in radians, and the largest difference between the components of two orders, relative "
        "to the largest entry."
    ]
    return Table("Streamed rows", header, [row_of(record) for record in records], notes)
