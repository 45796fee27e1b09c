"""The task of a child process: detectors on a set, one after another."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.neighbors import LocalOutlierFactor

from benchmarks.harness.datasets import SPLIT_SEED, Dataset
from benchmarks.harness.fits import Found, Keep, Spec, build, timed_fits, warmed_up
from benchmarks.outliers.detectors import ALIKE, ALIKE_DETECTOR, DETECTORS

# Rows that are ranked at the most, the same for all: kernel machines with thousands of vectors
# would take minutes for more.
SCORED_ROWS = 100_000
WARMUP_ROWS = 600


def some(n: int, most: int | None) -> np.ndarray | slice:
    """Random rows, the same for all, or all of them."""
    if most is None or n <= most:
        return slice(None)
    return np.sort(np.random.default_rng(SPLIT_SEED).permutation(n)[:most])


def scores_of(model: Any, X: np.ndarray) -> np.ndarray:
    """How strange rows are; of neighbours, for the rows that they were fitted on."""
    last = model[-1] if hasattr(model, "steps") else model
    if isinstance(last, LocalOutlierFactor):
        return -last.negative_outlier_factor_
    if hasattr(last, "decision_scores_"):
        # PyOD's are large outside.
        return model.decision_function(X)
    return -model.score_samples(X)


def compare(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: the named detectors on a set; ``whole`` gives each all rows."""
    X, y = data.X_train, data.y_train
    found: Found = {"n_rows": len(y), "n_features": X.shape[1], "machines": {}}
    found["share"] = 100.0 * float(y.mean())
    ranked = some(len(y), SCORED_ROWS)
    for name in spec["names"]:
        detector = ALIKE_DETECTOR if name == ALIKE else DETECTORS[name]
        if detector.most_rows is not None and len(y) > detector.most_rows:
            continue
        rows = X if spec["whole"] else X[some(len(y), detector.sample)]

        def make(detector: Any = detector, **changes: Any) -> Any:
            return build(detector.path, detector.params | changes, X, spec["threads"])

        for changes in detector.warmups:
            warmed_up(
                lambda make=make, changes=changes: (
                    make(**changes).fit(X[:WARMUP_ROWS]).score_samples(X[:10])
                )
            )
        model, each = timed_fits(make, rows, None, 1)
        each["n_fitted"] = len(rows)
        found["machines"][name] = each
        keep(found)
        strange = scores_of(model, X[ranked])
        each["auc"] = 100.0 * float(roc_auc_score(y[ranked], strange))
        each["precision"] = 100.0 * float(average_precision_score(y[ranked], strange))
        if hasattr(model, "certificate_"):
            each |= {"engine": model.engine_, "gap": model.certificate_.gap}
        keep(found)
    return found
