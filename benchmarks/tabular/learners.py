"""The learners: ours, with defaults, and those that people choose."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from scipy.stats import loguniform, randint
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import widemargin as wm
from benchmarks.harness.runner import installed

OURS = "MarginClassifierCV"
PLAIN = "MarginClassifier"
GAUSS = "Gaussian search"
TREES = "HistGradientBoosting"
TREES_SEARCH = "HistGradientBoosting, search"
FOREST = "RandomForest"
LIBSVM = "LIBSVM, grid"
NEIGHBOURS = "k-NN"
XRFM = "xRFM"

# Rows of the training part from which a grid of LIBSVM takes too long.
LIBSVM_ROWS = 10_000
GRID = {"svc__C": [0.1, 1.0, 10.0, 100.0, 1000.0], "svc__gamma": [0.25, 1.0, 4.0]}
SPACE = {
    "learning_rate": loguniform(0.02, 0.3),
    "max_iter": randint(50, 400),
    "max_leaf_nodes": randint(8, 64),
    "min_samples_leaf": randint(2, 40),
    "l2_regularization": loguniform(1e-6, 10.0),
}
FOLDS = 5
MOST_TRIALS = 40


def plain(threads: int, **_: Any) -> Any:
    return wm.MarginClassifier(scale="auto", n_jobs=threads, random_state=0)


def ours(threads: int, **_: Any) -> Any:
    return wm.MarginClassifierCV(n_jobs=threads, random_state=0)


def gauss(threads: int, **_: Any) -> Any:
    alone = {"kernels": None, "metrics": None, "scale": None}
    machine = wm.MarginClassifierCV(**alone, n_jobs=threads, random_state=0)
    return make_pipeline(StandardScaler(), machine)


def trees(**_: Any) -> Any:
    return HistGradientBoostingClassifier(random_state=0)


def trees_search(seconds: float, seconds_of_trees: float, threads: int, **_: Any) -> Any:
    """As many trials as take about as long as our search."""
    trial = max(seconds_of_trees * (FOLDS - 1), 1e-3)
    n_iter = int(min(MOST_TRIALS, max(2, seconds / trial)))
    return RandomizedSearchCV(
        HistGradientBoostingClassifier(random_state=0),
        SPACE,
        n_iter=n_iter,
        cv=FOLDS,
        random_state=0,
    )


def forest(threads: int, **_: Any) -> Any:
    return RandomForestClassifier(random_state=0, n_jobs=threads)


def libsvm(threads: int, n_features: int, **_: Any) -> Any:
    grid = GRID | {"svc__gamma": [each / n_features for each in GRID["svc__gamma"]]}
    machine = make_pipeline(StandardScaler(), SVC(cache_size=500))
    return GridSearchCV(machine, grid, cv=FOLDS, n_jobs=threads)


def neighbours(threads: int, **_: Any) -> Any:
    grid = {"kneighborsclassifier__n_neighbors": [1, 3, 5, 9, 15]}
    machine = make_pipeline(StandardScaler(), KNeighborsClassifier())
    return GridSearchCV(machine, grid, cv=FOLDS, n_jobs=threads)


def xrfm(**_: Any) -> Any:
    from xrfm import xRFM

    return make_pipeline(StandardScaler(), xRFM())


LEARNERS: dict[str, Callable[..., Any]] = {
    OURS: ours,
    PLAIN: plain,
    GAUSS: gauss,
    TREES: trees,
    TREES_SEARCH: trees_search,
    FOREST: forest,
    LIBSVM: libsvm,
    NEIGHBOURS: neighbours,
    XRFM: xrfm,
}


def can(name: str, n_rows: int) -> bool:
    """Whether a learner is there, and fit for so many rows."""
    if name == XRFM:
        return installed("xrfm")
    return name != LIBSVM or n_rows <= LIBSVM_ROWS or bool(os.environ.get("WIDEMARGIN_LONG"))
