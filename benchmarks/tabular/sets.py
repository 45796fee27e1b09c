"""The sets: those of the folder and of scikit-learn, with raw columns, split at random."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets as sklearn_sets
from sklearn.model_selection import train_test_split

from benchmarks.harness.datasets import Dataset, DatasetNotFound, labels, matrix

FROM_SKLEARN = ("sklearn_breast_cancer", "sklearn_digits", "sklearn_iris", "sklearn_wine")
SMALL = (
    "tae", "ionosphere", "heart_cleveland", "bupa", "balance_scale", "pima", "raetsch_german",
    "raetsch_image", "raetsch_waveform", "raetsch_banana", "raetsch_titanic",
    "raetsch_breast_cancer", "ad_cardio", "ad_fault", "ad_vowels", "ad_wdbc", "dna", "ad_wilt",
    "ad_pageblocks", "ad_landsat", "ad_thyroid", "ad_annthyroid", "optdigits", "satimage",
    "pendigits", *FROM_SKLEARN,
)  # fmt: skip
LARGE = ("letter", "ad_mammography", "ijcnn1_train", "covtype")
SETS = (*SMALL, *LARGE)
# Rows of a set at the most: the rest is not looked at, by any learner.
MOST_ROWS = {"covtype": 125_000}
TEST_SHARE = 0.2


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """All rows of a set, and their labels."""
    if name in FROM_SKLEARN:
        load: Any = getattr(sklearn_sets, "load_" + name.removeprefix("sklearn_"))
        X, y = load(return_X_y=True)
        return np.asarray(X, dtype=np.float64), np.asarray(y)
    folder = os.environ.get("WIDEMARGIN_DATA")
    if not folder:
        raise DatasetNotFound("set WIDEMARGIN_DATA to a folder of .npz archives")
    with np.load(Path(folder, f"{name}.npz"), allow_pickle=False) as archive:
        arrays = {key: archive[key] for key in archive.files}
    parts = ("_train", "_test") if "y_train" in arrays else ("",)
    X = np.vstack([matrix(arrays, f"X{part}") for part in parts if f"y{part}" in arrays])
    y = np.concatenate([labels(arrays, f"y{part}") for part in parts if f"y{part}" in arrays])
    X = np.asarray(X, dtype=np.float64)
    # Learners differ in what they make of missing values, and few sets have any.
    return np.where(np.isnan(X), np.nanmedian(X, axis=0), X), y


def load_split(name: str, split: int, rows: int | None = None) -> Dataset:
    """A random split of a set, stratified; the same for all learners."""
    X, y = rows_of(name)
    most = min(rows or len(y), MOST_ROWS.get(name, len(y)))
    if most < len(y):
        kept = np.random.default_rng(split).permutation(len(y))[:most]
        X, y = X[kept], y[kept]
    counts = dict(zip(*np.unique(y, return_counts=True), strict=True))
    alone = np.array([counts[label] < 2 for label in y])
    X, y = X[~alone], y[~alone]
    train, test = train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, random_state=split, stratify=y
    )
    return Dataset(name, X[train], y[train], X[test], y[test])
