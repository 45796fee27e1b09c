"""The task of a child process: learners on one split of a set, one after another."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

import widemargin as wm
from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec, few_of_every_class, percent
from benchmarks.tabular.learners import LEARNERS, OURS, TREES, can
from benchmarks.tabular.sets import load_split

# Test rows from which the calibration of probabilities is measured.
CALIBRATION_ROWS = 1000
BINS = 10


def calibration_error(probability: np.ndarray, hit: np.ndarray) -> float:
    """The expected calibration error of the largest probabilities, in percent."""
    top = probability.max(axis=1)
    place = np.minimum((BINS * top).astype(int), BINS - 1)
    parts = [place == each for each in np.unique(place)]
    return 100.0 * float(sum(p.mean() * abs(top[p].mean() - hit[p].mean()) for p in parts))


def measured(estimator: Any, data: Dataset) -> Found:
    start = time.perf_counter()
    estimator.fit(data.X_train, data.y_train)
    fit_seconds = time.perf_counter() - start
    start = time.perf_counter()
    answer = estimator.predict(data.X_test)
    found: Found = {
        "fit_seconds": fit_seconds,
        "predict_seconds": time.perf_counter() - start,
        "error": 100.0 - percent(answer, data.y_test),
    }
    if isinstance(estimator, wm.MarginClassifierCV):
        found["params"] = {key: str(value) for key, value in estimator.best_params_.items()}
    return found


def compare(spec: Spec, _: Dataset, keep: Keep) -> Found:
    """The task: the named learners on a split."""
    data = load_split(spec["set_name"], int(spec["point"]["split"]), spec["rows"])
    n, d = data.X_train.shape
    found: Found = {"n_rows": n + len(data.y_test), "n_features": d, "machines": {}}
    found["n_classes"] = len(np.unique(data.y_train))
    few = few_of_every_class(data.y_train, 200)
    # The search of trees has the time of ours, which comes before.
    known = {"seconds": 10.0, "seconds_of_trees": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Compiled code is loaded.
        wm.MarginClassifierCV(Cs=2, gammas=2, cv=2, n_jobs=spec["threads"]).fit(
            data.X_train[few], data.y_train[few]
        )
        for name in spec["names"]:
            if not can(name, n):
                continue
            estimator = LEARNERS[name](threads=spec["threads"], n_features=d, **known)
            found["machines"][name] = each = measured(estimator, data)
            known["seconds"] = each["fit_seconds"] if name == OURS else known["seconds"]
            known["seconds_of_trees"] = (
                each["fit_seconds"] if name == TREES else known["seconds_of_trees"]
            )
            keep(found)
        if OURS in spec["names"] and len(data.y_test) >= CALIBRATION_ROWS:
            found["calibration_error"] = calibration_of(data, spec["threads"])
    return found


def calibration_of(data: Dataset, threads: int) -> float:
    machine = wm.MarginClassifierCV(probability=True, n_jobs=threads, random_state=0)
    machine.fit(data.X_train, data.y_train)
    probability = machine.predict_proba(data.X_test)
    hit = machine.classes_[probability.argmax(axis=1)] == data.y_test
    return calibration_error(probability, hit)
