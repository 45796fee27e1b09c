"""One method on one set at one number of dimensions, alone in its process.

The task: a timed fit, accuracies in the projection, and the smallest distance between two class
means there.
"""

from __future__ import annotations

import statistics
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import (
    Found,
    Keep,
    Spec,
    build,
    peak_mb,
    reset_peak,
    timed_fits,
    warmed_up,
)
from benchmarks.harness.runner import Part
from benchmarks.maximin.classifiers import scores_of, smallest_distance
from benchmarks.maximin.data import in_one_scale, set_of

TASK = "benchmarks.maximin.fit.measure"
# Stands for the infinite sharpness, which JSON does not have.
INFINITE = "inf"
WARMUP_CLASSES = 4
WARMUP_ROWS = 100
OWN = ("sharpness", "shrinkage", "min_distance", "upper_bound", "n_iter", "lam", "n_components")


@dataclass(frozen=True)
class Projection(Part):
    """A measurement of this benchmark.

    ``set_name`` is the set, which ``dataset`` need not be (`benchmarks.maximin.data.loaded_as`).
    ``classify`` names classifiers, ``folds`` and ``rounds`` are those of repeated
    cross-validation (none with 0), ``classes`` keeps so many classes and ``features`` so many
    random columns. ``unit_length`` divides each direction by its length, as MATLAB's ``eig``
    leaves it. ``seen`` asks a fold for the rows it was trained on.
    """

    set_name: str = ""
    classify: tuple[str, ...] = ()
    folds: int = 0
    rounds: int = 1
    classes: int | None = None
    features: int | None = None
    unit_length: bool = False
    seen: bool = False
    task: str | None = TASK


def made(spec: Spec, X: np.ndarray, **changes: Any) -> Any:
    """The estimator of a measurement."""
    params = spec["params"] | changes
    params = {key: float("inf") if v == INFINITE else v for key, v in params.items()}
    return build(spec["estimator"], params, X, spec["threads"])


def warm_up(spec: Spec, X: np.ndarray, y: np.ndarray) -> float:
    """Fit some rows of a few classes, so that nothing is compiled in the timed fit."""
    chosen = np.unique(y)[:WARMUP_CLASSES]
    few = np.concatenate([np.flatnonzero(y == label)[:WARMUP_ROWS] for label in chosen])
    return warmed_up(lambda: made(spec, X, n_components=1).fit(X[few], y[few]).transform(X[few]))


def finite(value: Any) -> Any:
    return INFINITE if value == float("inf") else value


def facts_of_fit(estimator: Any) -> dict[str, Any]:
    """What the estimator says of itself, where it does."""
    found = {name: finite(getattr(estimator, f"{name}_", None)) for name in OWN}
    return {"own": {name: value for name, value in found.items() if value is not None}}


def in_projection(spec: Spec, estimator: Any, X: np.ndarray) -> np.ndarray:
    """Projections of rows, along directions of unit length where that is asked for."""
    projected = np.asarray(estimator.transform(X), dtype=np.float64)
    if not spec["unit_length"]:
        return projected
    corners = np.vstack([np.zeros(X.shape[1]), np.eye(X.shape[1])])
    images = np.asarray(estimator.transform(corners), dtype=np.float64)
    return projected / np.linalg.norm(images[1:] - images[0], axis=0)


def split_scores(spec: Spec, estimator: Any, data: Dataset) -> dict[str, Any]:
    train, test = (in_projection(spec, estimator, X) for X in (data.X_train, data.X_test))
    parts = train, data.y_train, test, data.y_test
    return scores_of(spec["classify"], *parts, spec["threads"])


def fold_scores(spec: Spec, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Means over all folds of all rounds, and the deviation of the mean of a round."""
    from sklearn.model_selection import StratifiedKFold

    rounds: list[list[dict[str, Any]]] = []
    for seed in range(spec["rounds"]):
        folds = []
        splits = StratifiedKFold(spec["folds"], shuffle=True, random_state=seed).split(X, y)
        for kept, held in splits:
            train, test = in_one_scale(spec["set_name"], X[kept], X[held])
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # those of the fit to all rows are kept
                estimator = made(spec, train).fit(train, y[kept])
            asked = (train, y[kept]) if spec["seen"] else (test, y[held])
            fold = Dataset("fold", train, y[kept], *asked)
            folds.append(split_scores(spec, estimator, fold))
        rounds.append(folds)
    found = averaged([averaged(folds) for folds in rounds])
    best = max(found["knn"], key=found["knn"].get)
    each = [[fold["knn"][best] for fold in folds] for folds in rounds]
    means = [statistics.mean(folds) for folds in each]
    return {
        "scores": found,
        "deviation": statistics.stdev(means) if len(means) > 1 else None,
        # Of the best number of neighbours; folds are the same for every method.
        "fold_accuracies": [[round(value, 3) for value in folds] for folds in each],
    }


def averaged(found: list[dict[str, Any]]) -> dict[str, Any]:
    """The mean of each score."""
    first = found[0]
    mean: dict[str, Any] = {}
    for name, value in first.items():
        if isinstance(value, dict):
            mean[name] = averaged([one[name] for one in found])
        else:
            mean[name] = statistics.mean([one[name] for one in found])
    return mean


def some_columns(spec: Spec, data: Dataset) -> Dataset:
    """So many random columns."""
    if spec["features"] is None:
        return data
    rng = np.random.default_rng(0)
    kept = np.sort(rng.permutation(data.X_train.shape[1])[: spec["features"]])
    return Dataset(
        data.name, data.X_train[:, kept], data.y_train, data.X_test[:, kept], data.y_test
    )


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    data = some_columns(spec, set_of(spec["set_name"], data, spec["classes"]))
    X, X_test = in_one_scale(spec["set_name"], data.X_train, data.X_test)
    y = data.y_train
    data = Dataset(data.name, X, y, X_test, data.y_test)
    found: Found = {
        "n_train": len(y),
        "n_test": len(data.y_test),
        "n_features": X.shape[1],
        "n_classes": len(np.unique(y)),
        "warmup_seconds": warm_up(spec, X, y),
    }
    floor = reset_peak()
    estimator, timed = timed_fits(lambda: made(spec, X), X, y, spec["repeats"])
    found |= timed | {"peak_mb": peak_mb(floor)} | facts_of_fit(estimator)
    keep(found)
    if spec["classify"]:
        projected = np.asarray(estimator.transform(X), dtype=np.float64)
        found["min_distance"] = smallest_distance(projected, y)
        if spec["folds"]:
            found |= fold_scores(spec, X, y)
        else:
            found["scores"] = split_scores(spec, estimator, data)
    return found
