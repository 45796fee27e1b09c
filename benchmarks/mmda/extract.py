"""One extraction of features, alone in its process, and classifiers on them.

The task prepares the rows, warms up, fits the extractor (timed), transforms all rows (timed), then
tries one classifier after another. What is known is kept after every step, so that a slow
classifier that runs out of time costs its own figure only.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset, standardised
from benchmarks.harness.fits import (
    Found,
    Keep,
    Spec,
    build,
    certificate_of,
    data_mb,
    few_of_every_class,
    peak_mb,
    reset_peak,
    timed_fits,
    warmed_up,
)
from benchmarks.harness.runner import Part
from benchmarks.mmda.classifiers import CLASSIFIERS

TASK = "benchmarks.mmda.extract.measure"
# Stands for a number of directions where a method has one set of features only.
ALL = 0


@dataclass(frozen=True)
class Extraction(Part):
    """A measurement of this benchmark.

    ``classify`` names the classifiers, each with the numbers of directions a problem whose features
    it gets (`ALL` for all there are). ``sample`` fits the extractor on so many rows with classes of
    one size. ``scaled`` standardises the columns, ``permuted`` is the seed that shuffles the labels
    of both parts, and without ``transform`` the fit is all. ``width`` is that of the SVM's Gaussian
    kernel: so many times 1/β of the features.
    """

    classify: dict[str, tuple[int, ...]] = field(default_factory=dict)
    sample: int | None = None
    scaled: bool = False
    permuted: int | None = None
    transform: bool = True
    width: float = 1.0
    task: str | None = TASK


def balanced(y: np.ndarray, size: int, seed: int = 0) -> np.ndarray:
    """About ``size`` random row indices, as many of one class as of another where there are."""
    rng = np.random.default_rng(seed)
    classes = np.unique(y)
    share = max(1, size // len(classes))
    chosen = [rng.permutation(np.flatnonzero(y == label))[:share] for label in classes]
    return np.sort(np.concatenate(chosen))


def prepared(spec: Spec, data: Dataset) -> Dataset:
    X_train, y_train, X_test, y_test = data.X_train, data.y_train, data.X_test, data.y_test
    if spec["scaled"]:
        X_train, X_test = standardised(X_train, X_test)
    if spec["permuted"] is not None:
        rng = np.random.default_rng(spec["permuted"])
        y_train, y_test = rng.permutation(y_train), rng.permutation(y_test)
    return Dataset(data.name, X_train, y_train, X_test, y_test)


def orders_of(extractor: Any) -> np.ndarray | None:
    """The place of every feature among those of its problem, from 1; None if it has no problems."""
    directions = getattr(extractor, "directions_", None)
    return None if directions is None else np.asarray(directions["order"], dtype=np.intp)


def columns_of(extractor: Any, n_directions: int, n_classes: int) -> np.ndarray | slice:
    """The features of the first ``n_directions`` directions of every problem.

    An extractor without problems has as many among its first.
    """
    if n_directions == ALL:
        return slice(None)
    orders = orders_of(extractor)
    if orders is None:
        return slice(n_directions * n_classes)
    return np.flatnonzero(orders <= n_directions)


def evaluations_of(extractor: Any, n_rows: int) -> dict[int, dict[str, Any]]:
    """Kernel evaluations of the features, for every number of directions.

    ``each`` is the mean over the features taken one by one, as the paper counts, ``distinct`` those
    of a row for all features together.
    """
    orders = orders_of(extractor)
    if orders is None:
        dense = getattr(extractor, "kernel", None) is not None
        return {ALL: {"each": n_rows, "distinct": n_rows}} if dense else {}
    vectors = np.asarray(extractor.directions_["n_vectors"], dtype=np.float64)
    coef = getattr(extractor, "coef_", None)
    found = {}
    for n_directions in range(1, int(orders.max(initial=0)) + 1):
        chosen = orders <= n_directions
        distinct = None if coef is None else int(np.any(coef[chosen] != 0.0, axis=0).sum())
        found[n_directions] = {
            "n_features": int(chosen.sum()),
            "each": float(vectors[chosen].mean()),
            "distinct": distinct,
        }
    return found


def facts_of(extractor: Any) -> Found:
    """How the fit of ours ended."""
    found: Found = {
        **certificate_of(extractor),
        "solver": getattr(extractor, "solver_", None),
        "n_kernel": getattr(extractor, "n_kernel_evaluations_", None),
    }
    directions = getattr(extractor, "directions_", None)
    if directions is not None and len(directions["order"]):
        found["gap"] = float(np.max(directions["gap"]))
        found["stopped"] = dict(Counter(str(reason) for reason in directions["stopped"]))
    return found


def warm_up(make: Callable[..., Any], spec: Spec, X: Any, y: np.ndarray) -> float:
    """Fit a few rows and few directions; the seconds it took."""
    few = few_of_every_class(y, spec["warmup_rows"])
    changes: dict[str, Any] = {}
    if "n_directions" in spec["params"]:
        changes["n_directions"] = min(2, spec["params"]["n_directions"])
    if "n_components" in spec["params"]:
        changes["n_components"] = min(spec["params"]["n_components"], len(few) - 1)
    return warmed_up(lambda: make(**changes).fit(X[few], y[few]).transform(X[few[:10]]))


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    data = prepared(spec, data)
    X, y = data.X_train, data.y_train
    rows = slice(None) if spec["sample"] is None else balanced(y, spec["sample"])
    X_fit, y_fit = X[rows], y[rows]

    def make(**changes: Any) -> Any:
        return build(spec["estimator"], spec["params"] | changes, X_fit, spec["threads"])

    warmup_seconds = warm_up(make, spec, X_fit, y_fit)
    floor = reset_peak()
    extractor, timed = timed_fits(make, X_fit, y_fit, spec["repeats"])
    found: Found = {
        "n_train": X.shape[0],
        "n_fit": X_fit.shape[0],
        "n_test": data.X_test.shape[0],
        "n_inputs": X.shape[1],
        "n_classes": len(np.unique(y)),
        "data_mb": data_mb(X),
        "warmup_seconds": warmup_seconds,
        **timed,
        "peak_mb": peak_mb(floor),
        "evaluations": evaluations_of(extractor, X_fit.shape[0]),
        **facts_of(extractor),
    }
    keep(found)
    return found | (classified(spec, data, extractor, found, keep) if spec["transform"] else {})


def classified(spec: Spec, data: Dataset, extractor: Any, found: Found, keep: Keep) -> Found:
    """Seconds of the transform of the training rows, and what each classifier made of it."""
    start = time.perf_counter()
    train = extractor.transform(data.X_train)
    more: Found = {"transform_seconds": time.perf_counter() - start}
    more |= {"n_features_out": train.shape[1], "scores": {}}
    keep(found | more)
    test = extractor.transform(data.X_test)
    for name, numbers in spec["classify"].items():
        more["scores"][name] = {}
        for n_directions in numbers:
            columns = columns_of(extractor, n_directions, found["n_classes"])
            parts = train[:, columns], data.y_train, test[:, columns], data.y_test
            start = time.perf_counter()
            more_of = {"width": spec["width"]} if name == "SVM" else {}
            result = CLASSIFIERS[name](*parts, spec["threads"], **more_of)
            result |= {"seconds": time.perf_counter() - start, "n_features": parts[0].shape[1]}
            more["scores"][name][n_directions] = result
            keep(found | more)
    return more
