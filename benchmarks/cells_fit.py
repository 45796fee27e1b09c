"""A timed fit that leaves the machine behind, for tasks that ask it more than its predictions."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.child import (
    MB,
    certificate_of,
    data_bytes,
    few_of_every_class,
    peak_bytes,
    reset_peak,
    vectors_of,
)
from benchmarks.datasets import Dataset


def fitted(make: Callable[[], Any], data: Dataset, warmup_rows: int) -> tuple[Any, dict[str, Any]]:
    """The machine, fitted once after a warm-up on few rows, and what the fit took."""
    X, y = data.X_train, data.y_train
    few = few_of_every_class(y, warmup_rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what few rows do is nobody's concern
        make().fit(X[few], y[few]).predict(data.X_test[:10])
    floor = reset_peak()
    machine = make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        machine.fit(X, y)
        seconds = time.perf_counter() - start
    certificate = certificate_of(machine)
    return machine, {
        "n_train": X.shape[0],
        "n_test": data.X_test.shape[0],
        "n_classes": len(machine.classes_),
        "data_mb": data_bytes(X) / MB,
        "fit_seconds": seconds,
        "peak_mb": (peak_bytes() - floor) / MB,
        "certificate": certificate,
        "certificate_line": str(machine.certificate_),
        # Distinct rows: one that several cells have for a vector counts once, as in other parts.
        "n_vectors": vectors_of(getattr(machine, "best_estimator_", machine), certificate),
        "warnings": sorted({str(warning.message) for warning in caught}),
    }


def answered(machine: Any, data: Dataset) -> dict[str, float]:
    """How long the machine takes for the test rows, and how many it gets right, in percent."""
    start = time.perf_counter()
    predicted = machine.predict(data.X_test)
    seconds = time.perf_counter() - start
    right = 100.0 * float(np.mean(predicted == data.y_test))
    return {"predict_seconds": seconds, "accuracy": right}
