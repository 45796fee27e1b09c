"""One machine on some splits of a set, alone in its process: errors, vectors, seconds.

What is known is kept after every split, so that a run that is out of time costs the splits that are
left only.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import (
    Found,
    Keep,
    Spec,
    build,
    certificate_of,
    few_of_every_class,
    timed_answers,
    timed_fits,
    vectors_of,
    warmed_up,
)
from benchmarks.harness.runner import Part
from benchmarks.slmc.data import RAETSCH, split_of
from benchmarks.slmc.machines import counts_of

TASK = "benchmarks.slmc.fit.measure"
# Vectors of a warm-up fit, at the most.
WARMUP_VECTORS = 5
SIZES = ("n_vectors", "n_components", "max_vectors")


@dataclass(frozen=True)
class Sparse(Part):
    """A measurement of this benchmark.

    ``set_name`` is the set, which ``dataset`` need not be (`benchmarks.slmc.data.loaded_as`), and
    ``splits`` the numbers of its splits. ``svm`` has the C and γ of the exact machine: a parameter
    ``{"share": s}`` becomes the number of vectors that machines of their own for every class have
    in all at that share. ``keep_vectors`` keeps the expansion vectors, as images.
    """

    set_name: str = ""
    splits: tuple[int, ...] = (1,)
    svm: dict[str, float] | None = None
    keep_vectors: bool = False
    task: str | None = TASK


def resolved(spec: Spec, data: Dataset) -> dict[str, Any]:
    """Parameters with numbers of vectors where shares stand for them."""
    found = dict(spec["params"])
    for key, value in found.items():
        if key != "gamma" and isinstance(value, dict) and value.keys() == {"share"}:
            up = spec["set_name"] in RAETSCH
            counts = counts_of(data.X_train, data.y_train, spec["svm"], value["share"], up)
            found[key] = sum(counts)
    return found


def warm_up(make: Callable[..., Any], spec: Spec, data: Dataset) -> float:
    """Fit a few rows with few vectors; the seconds it took."""
    few = few_of_every_class(data.y_train, spec["warmup_rows"])
    changes = {key: WARMUP_VECTORS for key in SIZES if key in spec["params"]}
    X, y = data.X_train[few], data.y_train[few]
    return warmed_up(lambda: make(**changes).fit(X, y).predict(data.X_test[:10]))


def size_of(machine: Any) -> int | None:
    """Vectors that a prediction visits; the means of a k-means fit are no rows with numbers."""
    if getattr(machine, "support_", 0) is None:
        return len(machine.support_vectors_)
    return vectors_of(machine)


def one_split(spec: Spec, data: Dataset, warm: bool) -> tuple[Found, Any]:
    """What one split gives, and the fitted machine."""
    params = resolved(spec, data)

    def make(**changes: Any) -> Any:
        return build(spec["estimator"], params | changes, data.X_train, spec["threads"])

    found: Found = {}
    if warm:
        found["warmup_seconds"] = warm_up(make, spec, data)
    machine, timed = timed_fits(make, data.X_train, data.y_train, spec["repeats"])
    answers = timed_answers(machine, data)
    found |= {
        "n_train": data.X_train.shape[0],
        "n_test": data.X_test.shape[0],
        "n_classes": len(np.unique(data.y_train)),
        "error": 100.0 - answers["accuracy"],
        "fit_seconds": timed["fit_seconds"],
        "predict_seconds": answers["predict_seconds"],
        "n_vectors": size_of(machine),
        "n_problem_vectors": getattr(machine, "n_problem_vectors_", None),
        "certificate": certificate_of(machine)["certificate"],
        "warnings": timed["warnings"],
    }
    return found, machine


def summary(found: list[Found]) -> Found:
    """Means over the splits."""

    def mean(key: str) -> float:
        return statistics.mean([each[key] for each in found])

    errors = [each["error"] for each in found]
    return {
        "found": found,
        "error": mean("error"),
        "accuracy": 100.0 - mean("error"),
        "deviation": statistics.stdev(errors) if len(errors) > 1 else None,
        "n_vectors": mean("n_vectors"),
        "fit_seconds": mean("fit_seconds"),
        "predict_seconds": mean("predict_seconds"),
        "n_train": found[0]["n_train"],
        "n_test": found[0]["n_test"],
    }


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    found: list[Found] = []
    for number in spec["splits"]:
        part = split_of(spec["set_name"], data, number)
        one, machine = one_split(spec, part, warm=not found)
        found.append({"split": number, **one})
        keep(summary(found))
    more = {}
    if spec["keep_vectors"]:
        more["images"] = np.round(machine.expansion_vectors_, 3)
    return summary(found) | more
