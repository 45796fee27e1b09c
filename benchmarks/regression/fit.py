"""Tasks of a child process: machines on a set, and intervals of quantiles."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.harness.datasets import SPLIT_SEED, SPLITS, Dataset, load, split_name
from benchmarks.harness.fits import Found, Keep, Spec, build, timed_fits, warmed_up
from benchmarks.regression.machines import MACHINES, Regressor

# Rows on which C and ε are chosen, for all machines alike: SVR is slow on more.
CHOICE_ROWS = 3000
VALIDATION_ROWS = 1000
# Training rows up to which they are chosen by folds: a part of few rows tells little.
FEW_ROWS = 2000
FOLDS = 5
WARMUP_ROWS = 600
# A fit below so many seconds is timed three times, and the median counts.
SHORT = 1.0
QUANTILES = (0.05, 0.5, 0.95)
VALUES_FOR_QUANTILES = 8
# Training rows up to which the intervals of all published splits are counted together: one has
# about a hundred test rows, whose share varies by 3 points.
SMALL_ROWS = 2000


def rmse(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def parts_of_choice(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Training rows to fit on and to validate on: folds, or on many rows one part of them."""
    order = np.random.default_rng(SPLIT_SEED).permutation(n)
    if n <= FEW_ROWS:
        parts = np.array_split(order, FOLDS)
        return [
            (np.concatenate([part for j, part in enumerate(parts) if j != k]), parts[k])
            for k in range(FOLDS)
        ]
    held = min(n // 5, VALIDATION_ROWS)
    return [(order[held : held + CHOICE_ROWS], order[:held])]


def maker(machine: Regressor, X: np.ndarray, threads: int) -> Any:
    """What builds the machine with changes, at γ = 1/d."""
    width = {"gamma": 1.0 / X.shape[1]} if machine.penalty else {}

    def make(**changes: Any) -> Any:
        return build(machine.path, machine.params | width | changes, X, threads)

    return make


def chosen(make: Any, candidates: list[dict[str, float]], data: Dataset) -> Found:
    """The point of the grid with the lowest error on training rows that were held out."""
    begun = time.perf_counter()
    X, y = data.X_train, data.y_train

    def error(point: dict[str, float]) -> float:
        squares = [
            rmse(make(**point).fit(X[fit], y[fit]).predict(X[held]), y[held]) ** 2
            for fit, held in parts_of_choice(len(y))
        ]
        return float(np.sqrt(np.mean(squares)))

    errors = [error(one) for one in candidates] if len(candidates) > 1 else [float("nan")]
    best = int(np.argmin(errors))
    return {
        "chosen": candidates[best],
        "validation": errors[best],
        "choice_seconds": time.perf_counter() - begun,
    }


def measured(
    make: Any, point: dict[str, float], data: Dataset, most_rows: int | None = None
) -> Found:
    """Timed fits on all training rows or a sample of so many, and the error on the test rows."""
    X, y = data.X_train, data.y_train
    sampled = most_rows is not None and len(y) > most_rows
    if sampled:
        kept = np.random.default_rng(SPLIT_SEED).permutation(len(y))[:most_rows]
        X, y = X[kept], y[kept]
    model, found = timed_fits(lambda: make(**point), X, y, 1)
    if found["fit_seconds"] < SHORT:
        model, found = timed_fits(lambda: make(**point), X, y, 3)
    found |= {"rmse": rmse(model.predict(data.X_test), data.y_test)}
    found |= {"sampled_rows": len(y)} if sampled else {}
    if hasattr(model, "best_params_"):
        found |= {"chosen": model.best_params_, "validation": float(model.best_score_)}
        model = model.best_estimator_
    if hasattr(model, "certificate_"):
        found |= {"engine": model.engine_, "gap": model.certificate_.gap}
        found |= {"n_vectors": model.certificate_.n_vectors}
    return found


def compare(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: the named machines on a set, one after another."""
    begun = time.perf_counter()
    X, y = data.X_train, data.y_train
    found: Found = {"n_train": len(y), "n_features": X.shape[1], "machines": {}}
    for name in spec["names"]:
        machine = MACHINES[name]
        make = maker(machine, X, spec["threads"])
        for changes in machine.warmups:
            warmed_up(lambda make=make, changes=changes: fit_few(make(**changes), X, y))
        choice = chosen(make, machine.candidates(), data)
        found["before_seconds"] = time.perf_counter() - begun
        keep(found)
        point = choice["chosen"]
        found["machines"][name] = choice | measured(make, point, data, machine.most_rows)
        found["before_seconds"] = time.perf_counter() - begun
        keep(found)
        if machine.whole and "sampled_rows" in found["machines"][name]:
            found["machines"][name] = choice | measured(make, point, data)
            keep(found)
    return found


def fit_few(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    model.fit(X[:WARMUP_ROWS], y[:WARMUP_ROWS]).predict(X[:10])


def intervals(spec: Spec, data: Dataset, _: Keep) -> Found:
    """The task: the 90 % interval between two quantiles, and how many test rows lie in it.

    C is chosen by the search, the shares by calibration: nothing is set by hand. Small sets have
    their three splits, counted together.
    """
    splits = [data]
    if len(data.y_train) <= SMALL_ROWS and spec["first_of"]:
        splits += [load(split_name(spec["first_of"], k)) for k in range(1, SPLITS)]
    inside, widths, seconds, found = [], [], [], {}
    for one in splits:
        model, found = timed_fits(lambda one=one: interval_maker(spec, one), *training(one), 1)
        low, _, high = model.predict(one.X_test).T
        inside.append((low <= one.y_test) & (one.y_test <= high))
        widths.append(float(np.mean(high - low)))
        seconds.append(found["fit_seconds"])
    best = model.best_estimator_
    counted = np.concatenate(inside)
    return found | {
        "fit_seconds": float(np.mean(seconds)),
        "n_train": len(data.y_train),
        "n_test": len(counted),
        "n_splits": len(splits),
        "C": model.best_params_["C"],
        "engine": best.engine_,
        "coverage": 100.0 * counted.mean(),
        "width": float(np.mean(widths)),
    }


def training(data: Dataset) -> tuple[np.ndarray, np.ndarray]:
    return data.X_train, data.y_train


def interval_maker(spec: Spec, data: Dataset) -> Any:
    """The search for C at γ = 1/d, whose final quantiles are calibrated."""
    params = {"loss": "quantile", "quantiles": QUANTILES, "kernels": None, "random_state": 0}
    params |= {"Cs": VALUES_FOR_QUANTILES, "gammas": [1.0 / data.X_train.shape[1]]}
    return build("widemargin.MarginRegressorCV", params, data.X_train, spec["threads"])
