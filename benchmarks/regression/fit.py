"""Tasks of a child process: machines on a set, and intervals of quantiles."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics import mean_pinball_loss

from benchmarks.harness.datasets import SPLIT_SEED, Dataset
from benchmarks.harness.fits import Found, Keep, Spec, build, timed_fits, warmed_up
from benchmarks.regression.machines import MACHINES, MARGIN, VALUES_OF_C, Regressor

# Rows on which C and ε are chosen, for all machines alike: SVR is slow on more.
CHOICE_ROWS = 4000
VALIDATION_ROWS = 1000
WARMUP_ROWS = 600
# A fit below so many seconds is timed three times, and the median counts.
SHORT = 1.0
QUANTILES = (0.05, 0.5, 0.95)
# Quantiles have exact machines only.
INTERVAL_ROWS = 2000


def rmse(predicted: np.ndarray, y: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - y) ** 2)))


def parts_of_choice(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Training rows to fit on and, a fifth of all at the most, to validate on."""
    order = np.random.default_rng(SPLIT_SEED).permutation(n)
    held = min(n // 5, VALIDATION_ROWS)
    return order[held : held + CHOICE_ROWS], order[:held]


def maker(machine: Regressor, X: np.ndarray, threads: int) -> Any:
    """What builds the machine with changes, at γ = 1/d."""
    width = {"gamma": 1.0 / X.shape[1]} if machine.penalty else {}

    def make(**changes: Any) -> Any:
        return build(machine.path, machine.params | width | changes, X, threads)

    return make


def chosen(make: Any, candidates: list[dict[str, float]], data: Dataset) -> Found:
    """The point of the grid with the lowest error on the held-out training rows."""
    begun = time.perf_counter()
    fit, held = parts_of_choice(len(data.y_train))
    X, y = data.X_train, data.y_train
    errors = [rmse(make(**one).fit(X[fit], y[fit]).predict(X[held]), y[held]) for one in candidates]
    best = int(np.argmin(errors))
    return {
        "chosen": candidates[best],
        "validation": errors[best],
        "choice_seconds": time.perf_counter() - begun,
    }


def measured(make: Any, point: dict[str, float], data: Dataset) -> Found:
    """Timed fits on all training rows, and the error on the test rows."""
    X, y = data.X_train, data.y_train
    model, found = timed_fits(lambda: make(**point), X, y, 1)
    if found["fit_seconds"] < SHORT:
        model, found = timed_fits(lambda: make(**point), X, y, 3)
    found |= {"rmse": rmse(model.predict(data.X_test), data.y_test)}
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
        if machine.most_rows is not None and len(y) > machine.most_rows:
            continue
        make = maker(machine, X, spec["threads"])
        for changes in machine.warmups:
            warmed_up(lambda make=make, changes=changes: fit_few(make(**changes), X, y))
        choice = chosen(make, machine.candidates(), data)
        found["before_seconds"] = time.perf_counter() - begun
        keep(found)
        found["machines"][name] = choice | measured(make, choice["chosen"], data)
        keep(found)
    return found


def fit_few(model: Any, X: np.ndarray, y: np.ndarray) -> None:
    model.fit(X[:WARMUP_ROWS], y[:WARMUP_ROWS]).predict(X[:10])


def intervals(spec: Spec, data: Dataset, _: Keep) -> Found:
    """The task: the 90 % interval between two quantiles, and how many test rows lie in it."""
    n = min(len(data.y_train), INTERVAL_ROWS)
    kept = np.random.default_rng(SPLIT_SEED).permutation(len(data.y_train))[:n]
    X, y = data.X_train[kept], data.y_train[kept]
    params = {"loss": "quantile", "quantiles": QUANTILES, "gamma": 1.0 / X.shape[1]}

    def make(C: float) -> Any:
        return build(MARGIN, params | {"C": C}, X, spec["threads"])

    held = n // 5
    losses = []
    for C in VALUES_OF_C:
        answer = make(C).fit(X[held:], y[held:]).predict(X[:held])
        losses.append(
            sum(mean_pinball_loss(y[:held], answer[:, k], alpha=q) for k, q in enumerate(QUANTILES))
        )
    C = VALUES_OF_C[int(np.argmin(losses))]
    model, found = timed_fits(lambda: make(C), X, y, 1)
    low, _, high = model.predict(data.X_test).T
    inside = (low <= data.y_test) & (data.y_test <= high)
    found |= {"n_train": n, "n_test": len(inside), "C": C, "engine": model.engine_}
    return found | {"coverage": 100.0 * inside.mean(), "width": float(np.mean(high - low))}
