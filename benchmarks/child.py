"""One measurement, alone in its process: ``python -m benchmarks.child SPEC.json RESULT.json``.

The parent (`benchmarks.runner`) starts a new interpreter for each, so that neither memory nor
compiled code of one machine is there when the next is timed. Order inside: load, warm-up fit on a
few rows (Numba compiles and BLAS starts its threads then, not in the timed fit), fit, predict.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import importlib
import inspect
import json
import re
import resource
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.datasets import Dataset, load

MB = 1024.0 * 1024.0


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


def few_of_every_class(y: np.ndarray, size: int) -> np.ndarray:
    """About ``size`` row indices in which every class is present."""
    classes = np.unique(y)
    share = max(2, size // len(classes))
    return np.sort(np.concatenate([np.flatnonzero(y == label)[:share] for label in classes]))


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


def data_bytes(X: Any) -> int:
    if sp.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.nbytes


def plain(value: Any) -> Any:
    """Numbers, strings and lists only, for JSON; infinities and NaN become null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def certificate_of(estimator: Any) -> dict[str, Any] | None:
    certificate = getattr(estimator, "certificate_", None)
    return dataclasses.asdict(certificate) if dataclasses.is_dataclass(certificate) else None


def vectors_of(estimator: Any, certificate: dict[str, Any] | None) -> int | None:
    """Distinct training rows in the expansion (a row may serve several binary machines)."""
    if hasattr(estimator, "n_vectors_"):  # features that stand for vectors
        return estimator.n_vectors_
    if hasattr(estimator, "support_"):
        return len(np.unique(estimator.support_))
    return certificate.get("n_vectors") if certificate else None


def limit_memory(gigabytes: float | None) -> None:
    """Let an allocation above the limit fail here, before the machine runs out for everyone."""
    # Elsewhere than on Linux there may be no such limit, or one that does nothing.
    if gigabytes is not None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            limit = int(gigabytes * 1024**3)
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def measure(
    spec: dict[str, Any], data: Dataset, keep: Callable[[dict[str, Any]], None] = lambda _: None
) -> dict[str, Any]:
    """Warm-up, timed fits (the median counts) and one timed prediction of the test part.

    ``keep`` gets what is known after the fit, in case the prediction runs out of time.
    """
    X, y = data.X_train, data.y_train

    def make(**changes: Any) -> Any:
        return build(spec["estimator"], spec["params"] | changes, X, spec["threads"])

    few = few_of_every_class(y, spec["warmup_rows"])
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what 200 rows do is nobody's concern
        for changes in spec.get("warmups", ({},)):
            make(**changes).fit(X[few], y[few]).predict(data.X_test[:10])
    warmup_seconds = time.perf_counter() - start

    floor = reset_peak()
    seconds = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(spec["repeats"]):
            estimator = make()
            start = time.perf_counter()
            estimator.fit(X, y)
            seconds.append(time.perf_counter() - start)
    peak = peak_bytes() - floor

    certificate = certificate_of(estimator)
    fitted = {
        "n_train": X.shape[0],
        "n_test": data.X_test.shape[0],
        "n_features": X.shape[1],
        "n_classes": len(np.unique(y)),
        "data_mb": data_bytes(X) / MB,
        "warmup_seconds": warmup_seconds,
        "fit_seconds": statistics.median(seconds),
        "fit_seconds_all": seconds,
        "peak_mb": peak / MB,
        "n_vectors": vectors_of(estimator, certificate),
        "engine": getattr(estimator, "engine_", None),
        "certificate": certificate,
        "certificate_line": None if certificate is None else str(estimator.certificate_),
        "fitted_params": {key: estimator.get_params()[key] for key in spec["params"]},
    }
    keep(fitted)

    start = time.perf_counter()
    predicted = estimator.predict(data.X_test)
    predict_seconds = time.perf_counter() - start

    return {
        **fitted,
        "predict_seconds": predict_seconds,
        "accuracy": 100.0 * float(np.mean(predicted == data.y_test)),
        "warnings": sorted({str(warning.message) for warning in caught}),
    }


def main(spec_path: str, result_path: str) -> None:
    spec = json.loads(Path(spec_path).read_text())
    limit_memory(spec["memory_gb"])
    start = time.perf_counter()
    data = load(spec["dataset"], spec["rows"])
    load_seconds = time.perf_counter() - start

    def write(path: str, result: dict[str, Any]) -> None:
        Path(path).write_text(json.dumps(plain({"load_seconds": load_seconds, **result})))

    task = measure if spec["task"] is None else imported(spec["task"])
    write(result_path, task(spec, data, lambda fitted: write(f"{result_path}.fitted", fitted)))


if __name__ == "__main__":
    main(*sys.argv[1:])
