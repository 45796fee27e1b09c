"""Tasks of child processes: a model is fitted, exported, and asked there and here."""

from __future__ import annotations

import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec, build
from benchmarks.travel.compiled import GCC, Compiled
from benchmarks.travel.plan import DIABETES, DIGITS, IRIS, C

# Rows that are asked, of those that were fitted, again and again; and seconds of asking.
ASKED = 20_000
SECONDS = 0.5


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows in single precision, as they come back from files, and labels or numbers."""
    from sklearn import datasets

    if name in (DIGITS, IRIS, DIABETES):
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        if name == DIGITS:
            X = X / 16.0
        if name == DIABETES:
            X, y = X / X.std(axis=0), (y - y.mean()) / y.std()
    else:
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20_000, 10))
        wave = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2]
        y = (wave + 0.5 * rng.normal(size=len(X)) > 0.3).astype(int)
    return X.astype(np.float32), y


def microseconds(work: Callable[[], Any], rows: int) -> float:
    """Microseconds a row, the best of several."""
    work()
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return 1e6 * best / rows


def answers_of(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    """What a model says of rows: decision values, numbers or features."""
    for name in ("decision_function", "transform", "predict"):
        if hasattr(model, name):
            return getattr(model, name)
    raise TypeError(type(model).__name__)


def measure(spec: Spec, _: Dataset, keep: Keep) -> Found:
    """Fit, export, compare all answers, and time both."""
    X, y = rows_of(spec["rows_of"])
    model = build(spec["estimator"], spec["params"], X, spec["threads"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        model.fit(X, y)
    found: Found = {"n_train": len(X), "fit_seconds": time.perf_counter() - start}
    asked = np.concatenate([X] * -(-ASKED // len(X)))[:ASKED]
    ours = answers_of(model)
    found["own_us"] = microseconds(lambda: ours(asked), len(asked))
    there = in_c if spec["part"] == C else in_onnx
    found |= there(model, spec, asked)
    answers = found.pop("answers")
    keep(found)
    expected = np.asarray(ours(X), dtype=np.float64).reshape(len(X), -1)
    values = answers(X).reshape(len(X), -1)
    return found | {"difference": float(np.abs(values - expected).max() / np.abs(expected).max())}


def in_onnx(model: Any, spec: Spec, asked: np.ndarray) -> Found:
    """The model as a graph in onnxruntime."""
    import onnxruntime

    from widemargin import export

    file = export.onnx(model, **spec["options"]).SerializeToString()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = spec["threads"]
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    wanted = next(name for name in ("scores", "prediction", "features") if name in names)

    def answers(X: np.ndarray) -> np.ndarray:
        return session.run([wanted], {"X": X})[0]

    return {
        "bytes": len(file),
        "there_us": microseconds(lambda: answers(asked), len(asked)),
        "answers": answers,
    }


def in_c(model: Any, spec: Spec, asked: np.ndarray) -> Found:
    """The model as C source, compiled for this machine, one thread."""
    from widemargin import export

    if GCC is None:
        raise RuntimeError("gcc is not installed")
    source = export.c(model, **spec["options"])
    with tempfile.TemporaryDirectory() as folder:
        made = Compiled(source, Path(folder), looped=True)
        rows = made.rows(asked)
        sizes = made.sizes()
        taken = microseconds(lambda: made.many(rows), len(rows))
    return {
        "bytes": sizes["code"] + sizes["constants"],
        "code_bytes": sizes["code"],
        "ram_bytes": sizes["memory"],
        "there_us": taken,
        "answers": made.values,
    }
