"""Tasks of child processes: fits on a device, timed until it is idle."""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.gpu.plan import BLOBS, HERE, PROCESSOR
from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import (
    Found,
    Keep,
    Spec,
    build,
    certificate_of,
    mean_distance_gamma,
    percent,
    vectors_of,
    warmed_up,
)

# Of generated rows, the part that tests.
TEST_SHARE = 0.05
MOST_TEST_ROWS = 50_000


def device_name() -> str:
    """The first GPU, or the processor as torch's device."""
    import torch

    return "cuda:0" if torch.cuda.is_available() else "cpu:0"


def described_device() -> str:
    """What the card is called."""
    import torch

    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no GPU"


def idle() -> None:
    """Wait until the device has done what it was told."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def seconds_of(work: Callable[[], Any]) -> tuple[float, Any]:
    idle()
    start = time.perf_counter()
    answer = work()
    idle()
    return time.perf_counter() - start, answer


def there(X: np.ndarray, dtype: Any = None) -> Any:
    """An array of the device."""
    import torch

    return torch.tensor(np.ascontiguousarray(X), dtype=dtype, device=device_name())


def as_numpy(values: Any) -> np.ndarray:
    return values.cpu().numpy() if hasattr(values, "cpu") else np.asarray(values)


def timed(spec: Spec, make: Callable[[], Any], X: Any, y: Any, keep: Keep) -> tuple[Any, Found]:
    """Fits in a warm process; their median counts."""
    warm = warmed_up(lambda: make().fit(X, y))
    seconds = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(spec["repeats"]):
            taken, machine = seconds_of(lambda: make().fit(X, y))
            seconds.append(taken)
    found = {
        "warmup_seconds": warm,
        "fit_seconds": statistics.median(seconds),
        "fit_seconds_all": seconds,
        "warnings": sorted({str(warning.message) for warning in caught}),
        "n_train": int(X.shape[0]),
        "n_vectors": vectors_of(machine),
        **certificate_of(machine),
    }
    keep(found)
    return machine, found


def answers(machine: Any, X: Any, y: np.ndarray) -> Found:
    """The second of two predictions: vectors have moved in the first."""
    machine.predict(X)
    taken, predicted = seconds_of(lambda: machine.predict(X))
    return {"n_test": len(y), "predict_seconds": taken, "accuracy": percent(as_numpy(predicted), y)}


def width_of(asked: dict[str, float], X: np.ndarray) -> float:
    """A multiple of the reciprocal of a mean distance: squared, or of absolute values."""
    (measure, factor), *_ = asked.items()
    if measure == "mean_distance":
        return factor * mean_distance_gamma(X)
    middle = X.mean(axis=0, dtype=np.float64)
    return factor / float(np.abs(X - middle).mean(axis=0).sum())


def on_device(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """A set, whose rows are where the measurement says."""
    X = np.asarray(data.X_train, dtype=np.float32)
    X_test = np.asarray(data.X_test, dtype=np.float32)
    params = dict(spec["params"])
    if isinstance(params.get("gamma"), dict):
        params["gamma"] = width_of(params["gamma"], X)
    classes, code = np.unique(data.y_train, return_inverse=True)
    y, y_test = code.astype(np.int64), np.searchsorted(classes, data.y_test)
    place, about = spec["place"], {}
    rows: tuple[Any, Any, Any] = X, y, X_test
    if place == HERE:
        params["device"] = device_name()
    elif place != PROCESSOR:
        rows = there(X), there(y), there(X_test)
    if place != PROCESSOR:
        about = {"device": described_device()}
    machine, found = timed(
        spec, lambda: build(spec["estimator"], params, X, spec["threads"]), *rows[:2], keep
    )
    return about | found | answers(machine, rows[2], y_test)


def made(name: str, shape: tuple[int, int]) -> tuple[Any, Any]:
    """Generated rows on the device, with two classes."""
    import torch

    n, d = shape
    if name == BLOBS:
        from sklearn.datasets import make_classification

        X, y = make_classification(n, d, random_state=0)
        return there(X.astype(np.float32)), there(y)
    chance = torch.Generator(device=device_name()).manual_seed(0)
    X = torch.randn((n, d), generator=chance, device=device_name())
    noise = torch.randn(n, generator=chance, device=device_name())
    wave = torch.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + torch.cos(X[:, 3] + X[:, 4])
    return X, (wave + 0.5 * noise > 0.5).to(torch.int64)


def on_made_rows(spec: Spec, _: Dataset, keep: Keep) -> Found:
    """Generated rows, which never leave the device."""
    X, y = made(spec["set_name"], tuple(spec["made"]))
    test = min(MOST_TEST_ROWS, int(TEST_SHARE * X.shape[0]))
    machine, found = timed(
        spec,
        lambda: build(spec["estimator"], spec["params"], None, spec["threads"]),
        X[test:],
        y[test:],
        keep,
    )
    return {"device": described_device()} | found | answers(machine, X[:test], as_numpy(y[:test]))
