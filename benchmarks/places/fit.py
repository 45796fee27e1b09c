"""Tasks of child processes: one fit on generated rows, from disk or on a cluster."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import (
    Found,
    Keep,
    Spec,
    build,
    certificate_of,
    percent,
    timed_fits,
    vectors_of,
    warmed_up,
)
from benchmarks.places.files import (
    TEST_ROWS,
    dask_array,
    dask_frame,
    mapped,
    npy,
    parquet,
    saved,
    test_rows,
)
from benchmarks.places.generator import SCALE, TRAIN, block
from benchmarks.places.watch import Watch
from benchmarks.places.workers import busy_seconds, chunks_for, local_cluster, on_every_worker
from benchmarks.places.workers import pids_of as pids_of_workers

# Fits of few rows use float64, and would leave the loops for float32 to be compiled in the timed
# fit: so many kernel values it takes.
WARMUP_VALUES = 4_500_000
WARMUP_VECTORS = 1000
MOST_WARMUP_ROWS = 20_000
FLOAT32 = "float32"
# Which precision the kernel values of a cell have depends on the rows: a warm-up in both.
WARM_CELLS: tuple[dict[str, Any], ...] = ({}, {"tol": 1e-8})

# ---------------------------------------------------------------- before the clock starts


def few_rows(params: dict[str, Any], dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows of seeds of their own, as many as it takes to compile what the timed fit will run."""
    vectors = params.get("max_vectors", WARMUP_VECTORS)
    rows = min(WARMUP_VALUES // vectors, MOST_WARMUP_ROWS)
    X, y = block(SCALE, 1)
    return X[:rows].astype(dtype), y[:rows]


def warm_up(estimator: str, params: dict[str, Any], threads: int, dtype: str = FLOAT32) -> None:
    """Fits on few rows of the type of those to come, in the process that calls it."""
    X, y = few_rows(params, dtype)
    for changes in WARM_CELLS if params.get("engine") == "cells" else ({},):
        build(estimator, params | changes, X, threads).fit(X, y).predict(X[:10])


def warm_up_on(client: Any, make: Callable[[], Any], spec: Spec, dtype: str = FLOAT32) -> None:
    """Compile in each worker, and let all of them take part in one fit."""
    on_every_worker(client, warm_up, spec["estimator"], spec["params"], 1, dtype)
    X, y = few_rows(spec["params"], dtype)
    chunks = 4 * spec["workers"]
    stem = f"few_{len(y)}_{dtype}"
    X, y = (dask_array(saved(f"{stem}_{name}", a), chunks) for name, a in (("X", X), ("y", y)))
    make().fit(X, y)


# ---------------------------------------------------------------- what is known of a fit


def described(machine: Any, rows: int) -> Found:
    return {
        "n_train": rows,
        "n_vectors": vectors_of(machine),
        "engine": getattr(machine, "engine_", None),
        **certificate_of(machine),
    }


def answers(machine: Any, X: np.ndarray, y: np.ndarray) -> Found:
    """Prediction of rows in memory: a machine fitted anywhere predicts without Dask."""
    start = time.perf_counter()
    predicted = machine.predict(X)
    seconds = time.perf_counter() - start
    return {"n_test": len(y), "predict_seconds": seconds, "accuracy": percent(predicted, y)}


def finish(machine: Any, found: Found, spec: Spec, keep: Keep) -> Found:
    """What was found with the accuracy on rows that no training row has the seed of."""
    keep(found)
    return found | answers(machine, *test_rows(spec["test_rows"] or TEST_ROWS))


# ---------------------------------------------------------------- tasks


def on_disk(spec: Spec, _: Dataset, keep: Keep) -> Found:
    """From a memory map of a .npy file, in one process."""
    X, y = mapped(TRAIN, spec["rows"])
    return out_of_core(spec, X, y, keep)


def on_parquet(spec: Spec, _: Dataset, keep: Keep) -> Found:
    """From a Parquet file through a Dask data frame, without a cluster."""
    return out_of_core(spec, *dask_frame(parquet(TRAIN, spec["rows"])), keep)


def out_of_core(spec: Spec, X: Any, y: Any, keep: Keep) -> Found:
    def make() -> Any:
        return build(spec["estimator"], spec["params"], None, spec["threads"])

    warmup_seconds = warmed_up(lambda: warm_up(spec["estimator"], spec["params"], spec["threads"]))
    with Watch() as watch:
        machine, timed = timed_fits(make, X, y, spec["repeats"])
    found = timed | described(machine, spec["rows"]) | watch.found()
    return finish(machine, found | {"warmup_seconds": warmup_seconds}, spec, keep)


def on_cluster(spec: Spec, _: Dataset, keep: Keep) -> Found:
    """From a .npy file that each worker reads its chunks of."""
    chunks = chunks_for(spec["rows"], spec["chunks"])
    X, y = (dask_array(path, chunks) for path in npy(TRAIN, spec["rows"]))
    with local_cluster(spec["workers"]) as client:
        machine, found = fitted_on(client, spec, X, y)
    return finish(machine, found | described(machine, spec["rows"]), spec, keep)


def fitted_on(client: Any, spec: Spec, X: Any, y: Any, like: Any = None) -> tuple[Any, Found]:
    """A timed fit on a cluster, with what its workers did; ``like`` sets the kernel width."""

    def make() -> Any:
        # Those of the client, which works while the workers wait.
        return build(spec["estimator"], spec["params"], like, spec["threads"])

    warmup_seconds = warmed_up(lambda: warm_up_on(client, make, spec, str(X.dtype)))
    client.get_task_stream()  # from here on tasks are written down
    start = time.time()
    with Watch(pids_of_workers(client)) as watch, Watch([os.getpid()]) as mine:
        machine, timed = timed_fits(make, X, y, 1)
    stream = list(client.get_task_stream(start=start))
    found = timed | watch.found() | busy_seconds(stream)
    found |= {"client_mb": mine.found()["resident_mb"], "warmup_seconds": warmup_seconds}
    return machine, found
