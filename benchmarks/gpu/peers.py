"""Tasks of child processes: machines of others on a GPU, with their own defaults."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from benchmarks.gpu.fit import answers, described_device, device_name, seconds_of, there
from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec

# Rows by which xRFM chooses, as a share of the training rows.
HELD_OUT = 0.2


def measured(spec: Spec, make: Any, keep: Keep) -> tuple[Any, Found]:
    """Fits in a warm process; their median counts."""
    make()
    seconds, machine = [], None
    for _ in range(spec["repeats"]):
        taken, machine = seconds_of(make)
        seconds.append(taken)
    found: Found = {
        "device": described_device(),
        "fit_seconds": statistics.median(seconds),
        "fit_seconds_all": seconds,
        "n_vectors": None,
        "warmup_seconds": None,
        "certificate": None,
    }
    keep(found)
    return machine, found


def low_rank_search(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """TorchKM: folds and values of C on landmarks."""
    from torchkm.estimators import TorchKMSVC

    X, X_test = (there(np.asarray(part, np.float32)) for part in (data.X_train, data.X_test))
    y = there(np.asarray(data.y_train, np.float32))

    def make() -> Any:
        machine = TorchKMSVC(low_rank=True, device=device_name(), **spec["params"])
        return machine.fit(X, y)

    machine, found = measured(spec, make, keep)
    return found | {"n_train": len(data.y_train)} | answers(machine, X_test, data.y_test)


def recursive_features(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """XRFM: a part of the training rows is what it chooses by."""
    from xrfm import xRFM

    classes, code = np.unique(data.y_train, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(code))
    held = int(HELD_OUT * len(order))
    X, X_test = (there(np.asarray(part, np.float32)) for part in (data.X_train, data.X_test))
    y = there(code.astype(np.int64))
    chosen, kept = there(order[:held]), there(order[held:])

    def make() -> Any:
        machine = xRFM(device=device_name(), verbose=False, **spec["params"])
        return machine.fit(X[kept], y[kept], X[chosen], y[chosen])

    machine, found = measured(spec, make, keep)
    known = np.searchsorted(classes, data.y_test)
    return found | {"n_train": len(code)} | answers(machine, X_test, known)
