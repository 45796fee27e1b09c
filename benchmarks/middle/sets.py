"""Every set of the folder with labels and a middling number of rows."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from benchmarks.harness.datasets import (
    SPLIT_SEED,
    Dataset,
    DatasetNotFound,
    labels,
    matrix,
    standardised,
)

LEAST_ROWS = 150
MOST_ROWS = 60_000
MOST_CLASSES = 100
TRAIN_SHARE = 0.75
# Regression, and what has other names elsewhere in the folder.
LEFT_OUT = ("reg_", "omniglot", "kddcup", "covtype")


def names() -> list[str]:
    """The sets of the folder, the small ones first."""
    folder = os.environ.get("WIDEMARGIN_DATA")
    if not folder:
        raise DatasetNotFound("set WIDEMARGIN_DATA to a folder of .npz archives")
    sizes = {}
    for path in sorted(Path(folder).glob("*.npz")):
        if path.stem.startswith(LEFT_OUT):
            continue
        with np.load(path, allow_pickle=False) as archive:
            y = archive["y_train" if "y_train" in archive.files else "y"]
            if LEAST_ROWS <= len(y) <= MOST_ROWS and len(np.unique(y)) <= MOST_CLASSES:
                sizes[path.stem] = len(y)
    return sorted(sizes, key=lambda name: sizes[name])


def load_middle(name: str, rows: int | None = None) -> Dataset:
    """A set, standardised where it is dense, and split at random where it has no test part."""
    path = Path(os.environ["WIDEMARGIN_DATA"], f"{name}.npz")
    with np.load(path, allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    first = "X_train" if "y_train" in arrays else "X"
    X, y = matrix(arrays, first), labels(arrays, first.replace("X", "y"))
    if "y_test" in arrays:
        X_test, y_test = matrix(arrays, "X_test"), labels(arrays, "y_test")
    else:
        order = np.random.default_rng(SPLIT_SEED).permutation(len(y))
        cut = int(TRAIN_SHARE * len(y))
        kept, held = np.sort(order[:cut]), np.sort(order[cut:])
        X, y, X_test, y_test = X[kept], y[kept], X[held], y[held]
    if isinstance(X, np.ndarray):
        for part in (X, X_test):
            part[np.isnan(part)] = 0.0
        X, X_test = standardised(X, X_test)
    if rows is not None and rows < len(y):
        kept = np.sort(np.random.default_rng(SPLIT_SEED).permutation(len(y))[:rows])
        X, y = X[kept], y[kept]
    return Dataset(name, X, y, X_test, y_test)
