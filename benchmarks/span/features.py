"""`SpanMap` and `Nystroem` as features of the same linear machine."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import (
    Found,
    Keep,
    Spec,
    few_of_every_class,
    mean_distance_gamma,
    percent,
)
from benchmarks.harness.records import Record, text_of, value_of
from benchmarks.harness.report import MISSING, Table
from benchmarks.harness.runner import Part

PART = "map"
SETS = (("letter", 3), ("mnist_unit", 1))
NYSTROEM = "Nystroem"
STRATEGIES = ("random", "kmeans", "leverage", "core")
TOL = 1e-2


def plan(quick: bool, mnist_rows: int | None) -> list[Part]:
    size, rows = (200, {}) if quick else (1000, {"mnist_unit": mnist_rows})
    return [
        Part(
            label,
            dataset,
            "widemargin.SpanMap",
            {"size": size, "C": 10.0, "seeds": 1 if quick else seeds},
            rows=2000 if quick else rows.get(dataset),
            warmup_rows=1000,
            task="benchmarks.span.features.measure",
            part=PART,
        )
        for (dataset, seeds), label in itertools.product(SETS, (NYSTROEM, *STRATEGIES))
    ]


def features(label: str, size: int, gamma: float, seed: int, threads: int) -> Any:
    from sklearn.kernel_approximation import Nystroem

    from widemargin import SpanMap

    if label == NYSTROEM:
        return Nystroem(gamma=gamma, n_components=size, random_state=seed, n_jobs=threads)
    return SpanMap(size, vectors=label, gamma=gamma, n_jobs=threads, random_state=seed)


def linear(C: float, threads: int) -> Any:
    """`LinearSVC`, its classes in threads: alone it is single-threaded and takes minutes."""
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.svm import LinearSVC

    return OneVsRestClassifier(LinearSVC(C=C, dual=False, tol=TOL), n_jobs=threads)


def one_seed(spec: Spec, data: Dataset, gamma: float, seed: int) -> dict[str, float]:
    import joblib

    params, threads = spec["params"], spec["threads"]
    times = [time.perf_counter()]
    chosen = features(spec["label"], params["size"], gamma, seed, threads)
    chosen.fit(data.X_train, data.y_train)
    times.append(time.perf_counter())
    train = chosen.transform(data.X_train)
    times.append(time.perf_counter())
    with joblib.parallel_config("threading"):
        machine = linear(params["C"], threads).fit(train, data.y_train)
    times.append(time.perf_counter())
    accuracy = percent(machine.predict(chosen.transform(data.X_test)), data.y_test)
    spent = dict(zip(("map", "transform", "linear"), np.diff(times), strict=True))
    return {**spent, "accuracy": accuracy, "size": train.shape[1]}


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: every seed in turn; medians of the times, mean accuracy."""
    gamma = mean_distance_gamma(data.X_train)
    few = few_of_every_class(data.y_train, spec["warmup_rows"])
    warm = features(spec["label"], spec["params"]["size"], gamma, 0, spec["threads"])
    warm.set_params(**{"n_components" if spec["label"] == NYSTROEM else "n_vectors": 50})
    warm.fit(data.X_train[few], data.y_train[few]).transform(data.X_test[:10])
    seeds = [one_seed(spec, data, gamma, seed) for seed in range(spec["params"]["seeds"])]

    def each(key: str) -> list[float]:
        return [seed[key] for seed in seeds]

    return {
        "n_train": data.X_train.shape[0],
        "map_seconds": statistics.median(each("map")),
        "transform_seconds": statistics.median(each("transform")),
        "linear_seconds": statistics.median(each("linear")),
        "fit_seconds": statistics.median(
            [seed["map"] + seed["transform"] + seed["linear"] for seed in seeds]
        ),
        "n_vectors": int(statistics.median(each("size"))),
        "accuracy": statistics.mean(each("accuracy")),
        "accuracies": each("accuracy"),
    }


# ---------------------------------------------------------------- table


def spread(values: Sequence[float] | None) -> str:
    """Smallest and largest, if there are several."""
    if not values or len(values) < 2:
        return MISSING
    return f"{min(values):.2f} to {max(values):.2f}"


def name_of(label: str) -> str:
    return label if label == NYSTROEM else f'SpanMap, "{label}"'


def tables(records: Sequence[Record]) -> list[Table]:
    rows = [
        [
            f"{record['dataset']}, {record.get('n_train') or record['rows'] or 0:,} rows",
            name_of(record["label"]),
            text_of(record, "accuracy"),
            spread(value_of(record, "accuracies")),
            str(record["params"]["seeds"]),
            text_of(record, "n_vectors", 0),
            text_of(record, "map_seconds"),
            text_of(record, "transform_seconds"),
            text_of(record, "linear_seconds"),
        ]
        for record in records
    ]
    header = ["set", "features", "accuracy, %", "from, to", "seeds", "vectors", "map, s"]
    header += ["transform, s", "LinearSVC, s"]
    known = sorted({(r["params"]["size"], f"{r['params']['C']:g}") for r in records})
    notes = [
        "; ".join(f"{size} vectors, C = {C}" for size, C in known)
        + f", γ = 1/β; `LinearSVC(dual=False, tol={TOL:g})` one-vs-rest, its classes in threads. "
        "Accuracy is the mean over the seeds, times their medians. The map is its fit alone."
    ]
    return [Table("Features for a linear machine", header, rows, notes)]
