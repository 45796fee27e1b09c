"""What the tasks of a child process share: building estimators, warming up, timing, memory.

A task is a function ``(spec, data, keep) -> found``: ``spec`` has the fields of its measurement and
``threads``, ``keep`` gets what is known so far, in case the rest runs out of time.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import importlib
import inspect
import re
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.harness.datasets import Dataset

Spec = dict[str, Any]
Found = dict[str, Any]
Keep = Callable[[Found], None]

MB = 1024.0 * 1024.0

# ---------------------------------------------------------------- estimators


def mean_distance_gamma(X: Any) -> float:
    """1/β, β the mean squared distance over all pairs of rows: twice the sum of the variances."""
    mean = np.asarray(X.mean(axis=0, dtype=np.float64)).ravel()
    values = X.data if sp.issparse(X) else X.ravel()
    # einsum sums in float64 without a second copy of the matrix.
    squares = np.einsum("i,i->", values, values, dtype=np.float64) / X.shape[0]
    return float(1.0 / (2.0 * (squares - mean @ mean)))


def imported(path: str) -> Any:
    """What an import path stands for."""
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


def build(path: str, params: dict[str, Any], X: Any, threads: int) -> Any:
    """The estimator of that import path; peers get the number behind ``gamma="mean_distance"``.

    ``gamma={"mean_distance": 8}`` is eight times that number, for ours too.
    """
    cls = imported(path)
    params = dict(params)
    if params.get("gamma") == "mean_distance" and not path.startswith("widemargin."):
        params["gamma"] = mean_distance_gamma(X)
    elif isinstance(params.get("gamma"), dict):
        params["gamma"] = params["gamma"]["mean_distance"] * mean_distance_gamma(X)
    if "n_jobs" in inspect.signature(cls).parameters:
        params.setdefault("n_jobs", threads)
    return cls(**params)


def certificate_of(estimator: Any) -> dict[str, Any]:
    """How the fit of ours ended, as numbers and as a line; None where there is no certificate."""
    certificate = getattr(estimator, "certificate_", None)
    if not dataclasses.is_dataclass(certificate):
        return {"certificate": None, "certificate_line": None}
    return {
        "certificate": dataclasses.asdict(certificate),
        "certificate_line": str(certificate),
    }


def vectors_of(estimator: Any) -> int | None:
    """Distinct training rows in the expansion (a row may serve several binary machines)."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    if hasattr(estimator, "n_vectors_"):  # features that stand for vectors
        return estimator.n_vectors_
    if hasattr(estimator, "support_"):
        return len(np.unique(estimator.support_))
    certificate = certificate_of(estimator)["certificate"]
    return certificate.get("n_vectors") if certificate else None


def percent(predicted: np.ndarray, y: np.ndarray) -> float:
    """The share of labels that are right."""
    return 100.0 * float(np.mean(predicted == y))


# ---------------------------------------------------------------- time


def few_of_every_class(y: np.ndarray, size: int) -> np.ndarray:
    """About ``size`` row indices in which every class is present."""
    classes = np.unique(y)
    share = max(2, size // len(classes))
    return np.sort(np.concatenate([np.flatnonzero(y == label)[:share] for label in classes]))


def warmed_up(work: Callable[[], Any]) -> float:
    """Seconds of some work on few rows, after which nothing is compiled in a timed fit."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what few rows do is nobody's concern
        work()
    return time.perf_counter() - start


def timed_fit(estimator: Any, X: Any, y: np.ndarray) -> float:
    start = time.perf_counter()
    estimator.fit(X, y)
    return time.perf_counter() - start


def timed_fits(make: Callable[[], Any], X: Any, y: np.ndarray, repeats: int) -> tuple[Any, Found]:
    """The estimator of the last of some fits; their seconds, of which the median counts."""
    seconds = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(repeats):
            estimator = make()
            seconds.append(timed_fit(estimator, X, y))
    return estimator, {
        "fit_seconds": statistics.median(seconds),
        "fit_seconds_all": seconds,
        "warnings": sorted({str(warning.message) for warning in caught}),
    }


def timed_answers(estimator: Any, data: Dataset) -> dict[str, float]:
    """How long the estimator takes for the test rows, and how many it gets right, in percent."""
    start = time.perf_counter()
    predicted = estimator.predict(data.X_test)
    seconds = time.perf_counter() - start
    return {"predict_seconds": seconds, "accuracy": percent(predicted, data.y_test)}


def fitted(
    make: Callable[..., Any],
    data: Dataset,
    warmup_rows: int,
    repeats: int = 1,
    warmups: Sequence[dict[str, Any]] = ({},),
) -> tuple[Any, Found]:
    """The estimator after warm-ups and timed fits, and what is known before it predicts."""
    X, y = data.X_train, data.y_train

    def warm_up() -> None:
        few = few_of_every_class(y, warmup_rows)
        for changes in warmups:
            make(**changes).fit(X[few], y[few]).predict(data.X_test[:10])

    warmup_seconds = warmed_up(warm_up)
    floor = reset_peak()
    estimator, timed = timed_fits(make, X, y, repeats)
    return estimator, {
        "n_train": X.shape[0],
        "n_test": data.X_test.shape[0],
        "n_features": X.shape[1],
        "n_classes": len(np.unique(y)),
        "data_mb": data_mb(X),
        "warmup_seconds": warmup_seconds,
        **timed,
        "peak_mb": peak_mb(floor),
        "n_vectors": vectors_of(estimator),
        "engine": getattr(estimator, "engine_", None),
        **certificate_of(estimator),
    }


# ---------------------------------------------------------------- memory


def reset_peak() -> int:
    """Forget the high-water mark that loading left behind; the bytes held now, as the floor."""
    # Give freed memory back first: a fit that could reuse what loading freed would look free.
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    # Elsewhere than on Linux the mark of loading stays, and the difference is a lower bound.
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def peak_bytes() -> int:
    """Most bytes resident so far. VmHWM first: ru_maxrss also remembers the parent process."""
    try:
        kilobytes = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        kilobytes = None
    if kilobytes:
        return 1024 * int(kilobytes[1])
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def peak_mb(floor: int = 0) -> float:
    """The peak above that floor."""
    return (peak_bytes() - floor) / MB


def data_mb(X: Any) -> float:
    arrays = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return sum(array.nbytes for array in arrays) / MB
