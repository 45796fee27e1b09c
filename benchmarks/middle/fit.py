"""All machines on one set, in one process."""

from __future__ import annotations

import statistics
import time
import warnings
from typing import Any

from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

import widemargin as wm
from benchmarks.harness.datasets import Dataset
from benchmarks.harness.estimators import NystroemLinearSVC
from benchmarks.harness.fits import Found, Keep, Spec, few_of_every_class, percent
from benchmarks.middle.sets import load_middle

OURS = "widemargin"
LIBSVM = "LIBSVM"
INTELEX = "intelex"
NYSTROEM = "Nystroem + LinearSVC"
TREES = "HistGradientBoosting"
GRID = "GridSearchCV(SVC)"
INTELEX_GRID = "GridSearchCV(intelex)"

# Fits of the same machine, of which the median counts, as long as they are short.
REPEATS = 3
SHORT = 2.0
# Megabytes of kernel values that LIBSVM may keep.
CACHE = 1000
SEARCH_C = (0.1, 1.0, 10.0, 100.0, 1000.0)
SEARCH_WIDTHS = (0.25, 0.5, 1.0, 2.0)
FOLDS = 3


def scale(X: Any) -> float:
    """γ as scikit-learn's "scale" has it, of dense or sparse rows."""
    mean = X.mean()
    square = X.multiply(X).mean() if hasattr(X, "multiply") else (X * X).mean()
    return float(1.0 / (X.shape[1] * (square - mean * mean)))


def machines(C: float, gamma: float, threads: int) -> dict[str, Any]:
    """Ours with defaults, and its peers with the same C and γ."""
    found = {
        OURS: wm.MarginClassifier(C, gamma=gamma, n_jobs=threads, random_state=0),
        LIBSVM: SVC(C=C, gamma=gamma, cache_size=CACHE),
        NYSTROEM: NystroemLinearSVC(C=C, gamma=gamma),
        TREES: HistGradientBoostingClassifier(random_state=0),
    }
    peer = intelex_svc()
    if peer is not None:
        found[INTELEX] = peer(C=C, gamma=gamma, cache_size=CACHE)
    return found


def searches(gamma: float, threads: int) -> dict[str, Any]:
    """The same grid, by ours and by `GridSearchCV`."""
    widths = [factor * gamma for factor in SEARCH_WIDTHS]
    grid = {"C": list(SEARCH_C), "gamma": widths}
    found = {
        OURS: wm.MarginClassifierCV(list(SEARCH_C), gammas=widths, cv=FOLDS, n_jobs=threads),
        GRID: GridSearchCV(SVC(cache_size=CACHE), grid, cv=FOLDS, n_jobs=threads),
    }
    peer = intelex_svc()
    if peer is not None:
        found[INTELEX_GRID] = GridSearchCV(peer(cache_size=CACHE), grid, cv=FOLDS)
    return found


def intelex_svc() -> Any:
    """scikit-learn-intelex's SVC, where it is installed."""
    try:
        from sklearnex.svm import SVC as peer
    except ImportError:
        return None
    return peer


def timed(estimator: Any, data: Dataset, keep_short: bool = True) -> Found:
    """The median time of fits, and the answers of the last."""
    seconds: list[float] = []
    while not seconds or (keep_short and len(seconds) < REPEATS and sum(seconds) < SHORT):
        fresh = clone(estimator)
        start = time.perf_counter()
        fresh.fit(data.X_train, data.y_train)
        seconds.append(time.perf_counter() - start)
    start = time.perf_counter()
    answer = fresh.predict(data.X_test)
    found: Found = {
        "fit_seconds": statistics.median(seconds),
        "predict_seconds": time.perf_counter() - start,
        "accuracy": percent(answer, data.y_test),
    }
    if hasattr(fresh, "best_score_"):
        found["best_score"] = 100.0 * fresh.best_score_
    machine = getattr(fresh, "best_estimator_", fresh)
    if hasattr(machine, "certificate_"):
        found |= {
            "engine": machine.engine_,
            "multi_class": machine.multi_class_,
            "gap": machine.certificate_.gap,
            "n_vectors": machine.certificate_.n_vectors,
        }
    return found


def compare(spec: Spec, _: Dataset, keep: Keep) -> Found:
    """The task: every machine, or every search, on a set."""
    data = load_middle(spec["set_name"], spec["rows"])
    gamma, threads = scale(data.X_train), spec["threads"]
    found: Found = {
        "n_rows": data.X_train.shape[0],
        "n_features": data.X_train.shape[1],
        "n_classes": len(set(data.y_train.tolist())),
        "machines": {},
    }
    searching = spec["part"] == "search"
    chosen = searches(gamma, threads) if searching else machines(spec["C"], gamma, threads)
    few = few_of_every_class(data.y_train, 200)
    for name, estimator in chosen.items():
        if name in (NYSTROEM, TREES, INTELEX) and hasattr(data.X_train, "tocsr"):
            continue
        if spec["only"] and name not in spec["only"]:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if name == OURS:
                # Compiled code is loaded, and both precisions of it.
                for C in (1e-2, 1e4):
                    wm.MarginClassifier(C, engine="exact", n_jobs=threads).fit(
                        data.X_train[few], data.y_train[few]
                    )
                if not searching:
                    # And so is what this set alone needs.
                    clone(estimator).fit(data.X_train, data.y_train)
            if searching:
                # Worker processes have started, too.
                clone(estimator).fit(data.X_train[few], data.y_train[few])
            found["machines"][name] = timed(estimator, data, not searching)
        keep(found)
    return found
