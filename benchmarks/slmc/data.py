"""The sets of the SLMC paper: USPS with values in [−1, 1], and Rätsch's with their splits."""

from __future__ import annotations

import numpy as np

from benchmarks.harness.datasets import (
    NOTHING,
    RECIPES,
    Dataset,
    Recipe,
    arrays_of,
    as_given,
    labels,
    matrix,
)

RAETSCH = ("banana", "breast_cancer", "titanic", "waveform", "german", "image")
USPS = "usps"
THREE_EIGHT = "usps_38"
DIGITS = (3, 8)
MOST_SPLITS = 10
# The tenth split of image is the first once more.
SPLITS = {"image": 9}
WHERE = (
    "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets (Rätsch's benchmarks; X, y and "
    "row numbers train, test of the first ten splits)"
)


def loaded_as(name: str) -> str:
    """The recipe of `harness.datasets` that a child process loads for a set."""
    if name in {USPS, THREE_EIGHT}:
        return USPS
    return name if name in RECIPES else NOTHING


def split_numbers(name: str, most: int = MOST_SPLITS) -> tuple[int, ...]:
    """The splits of a set, from 1; sets with one test part have one."""
    there = SPLITS.get(name, MOST_SPLITS) if name in RAETSCH else 1
    return tuple(range(1, min(most, there) + 1))


def split_of(name: str, data: Dataset, number: int) -> Dataset:
    """One split of a set; ``data`` is what the child process has loaded."""
    if name not in RAETSCH:
        return signed(name, data) if loaded_as(name) == USPS else data
    recipe = Recipe(as_given, f"raetsch_{name}", where=WHERE)
    arrays = arrays_of(name, recipe)
    X, y = matrix(arrays, "X"), labels(arrays, "y")
    kept, held = (np.asarray(arrays[part][number - 1], dtype=np.intp) for part in ("train", "test"))
    return Dataset(name, X[kept], y[kept], X[held], y[held])


def signed(name: str, data: Dataset) -> Dataset:
    """USPS from [0, 1] to [−1, 1], all digits or two."""
    parts = [(data.X_train, data.y_train), (data.X_test, data.y_test)]
    if name == THREE_EIGHT:
        parts = [(X[np.isin(y, DIGITS)], y[np.isin(y, DIGITS)]) for X, y in parts]
    (X_train, y_train), (X_test, y_test) = parts
    return Dataset(name, 2.0 * X_train - 1.0, y_train, 2.0 * X_test - 1.0, y_test)
