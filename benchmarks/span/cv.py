"""What a cross-validated search costs beside a single fit, and what it finds beside a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import (
    Found,
    Keep,
    Spec,
    few_of_every_class,
    mean_distance_gamma,
    percent,
    timed_fit,
    warmed_up,
)
from benchmarks.harness.records import Record, ratio, text_of, value_of
from benchmarks.harness.report import Table, number, shown
from benchmarks.harness.runner import Part
from benchmarks.span.internals import values_of_C
from benchmarks.span.plan import warmup_rows

PART = "cv"
SETS = ("covtype_20000", "ijcnn1_40000", "letter")
GRID = "grid"
GRID_SET = "optdigits"
# A single fit is not repeated beyond this.
ENOUGH_SECONDS = 5.0


def plan(quick: bool, repeats: int) -> list[Part]:
    params = {"Cs": 3, "cv": 3, "max_vectors": 200} if quick else {}
    params = {"Cs": 10, "cv": 5, "max_vectors": 1000, **params}
    labels = [*((dataset, "search") for dataset in SETS), (GRID_SET, GRID)]
    return [
        Part(
            label,
            dataset,
            "widemargin.MarginClassifierCV",
            params,
            repeats=repeats,
            rows=2000 if quick else None,
            warmup_rows=1000 if quick else warmup_rows(params["max_vectors"]),
            task="benchmarks.span.cv.measure",
            part=PART,
        )
        for dataset, label in labels
    ]


def searching(spec: Spec, gamma: float) -> Any:
    from widemargin import MarginClassifierCV

    params = spec["params"]
    return MarginClassifierCV(
        params["Cs"],
        [gamma],
        cv=params["cv"],
        engine="span",
        max_vectors=params["max_vectors"],
        n_jobs=spec["threads"],
        random_state=0,
    )


def single(spec: Spec, gamma: float, C: float) -> Any:
    from widemargin import MarginClassifier

    return MarginClassifier(
        C,
        gamma=gamma,
        engine="span",
        max_vectors=spec["params"]["max_vectors"],
        n_jobs=spec["threads"],
        random_state=0,
    )


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: the search with its refit, then single fits in the same process."""
    X, y = data.X_train, data.y_train
    gamma = mean_distance_gamma(X)
    few = few_of_every_class(y, spec["warmup_rows"])
    warmed_up(lambda: searching(spec, gamma).set_params(Cs=2, cv=2).fit(X[few], y[few]))
    search = searching(spec, gamma)
    seconds = timed_fit(search, X, y)
    looked = float(search.cv_results_["fit_time"][0])
    best = search.best_params_["C"]
    found = {
        "n_train": X.shape[0],
        "n_classes": len(search.classes_),
        "fit_seconds": seconds,
        "search_seconds": looked,
        "refit_seconds": seconds - looked,
        "best_C": best,
        "best_score": search.best_score_,
        "mean_scores": search.cv_results_["mean_test_score"],
        "certificate_line": str(search.certificate_),
    }
    keep(found)
    found["accuracy"] = percent(search.predict(data.X_test), data.y_test)
    if spec["label"] == GRID:
        return found | grid(spec, X, y, gamma)
    for name, C in (("single_seconds", best), ("single_seconds_at_1", 1.0)):
        times: list[float] = []
        while len(times) < spec["repeats"] and sum(times) < ENOUGH_SECONDS:
            times.append(timed_fit(single(spec, gamma, C), X, y))
        found[name] = float(np.median(times))
    return found


def grid(spec: Spec, X: Any, y: np.ndarray, gamma: float) -> dict[str, Any]:
    """`GridSearchCV` over the same values and folds."""
    from sklearn.model_selection import GridSearchCV

    Cs = values_of_C(searching(spec, gamma))
    search = GridSearchCV(single(spec, gamma, 1.0), {"C": Cs}, cv=spec["params"]["cv"])
    seconds = timed_fit(search, X, y)
    return {
        "grid_seconds": seconds,
        "grid_best_C": search.best_params_["C"],
        "grid_best_score": search.best_score_,
        "grid_mean_scores": search.cv_results_["mean_test_score"],
    }


def differences(
    ours: Sequence[float] | None, theirs: Sequence[float] | None
) -> tuple[float | None, float | None]:
    """The mean of ours − theirs, and the largest difference either way."""
    if ours is None or theirs is None:
        return None, None
    found = [a - b for a, b in zip(ours, theirs, strict=True)]
    return sum(found) / len(found), max(map(abs, found))


# ---------------------------------------------------------------- tables


def cost_table(records: Sequence[Record]) -> Table:
    def row(record: Record) -> list[str]:
        total = value_of(record, "fit_seconds")
        singles = [value_of(record, key) for key in ("single_seconds", "single_seconds_at_1")]
        return [
            f"{record['dataset']}, {number(record.get('n_train'), 0)} rows",
            text_of(record, "n_classes", 0),
            text_of(record, "search_seconds"),
            text_of(record, "refit_seconds"),
            text_of(record, "fit_seconds"),
            *(number(seconds) for seconds in singles),
            *(number(ratio(total, seconds), unit="×") for seconds in singles),
            shown(value_of(record, "best_C"), ".3g"),
            text_of(record, "best_score", 4),
            text_of(record, "accuracy"),
        ]

    header = ["set", "classes", "search, s", "refit, s", "both, s", "one fit, s"]
    header += ["one fit at C = 1, s", "over one fit", "over one fit at C = 1", "C", "score"]
    notes = [
        "`MarginClassifierCV` with one γ = 1/β, the search with its refit; *one fit* is "
        "`MarginClassifier` with that γ and number of vectors at the chosen C. The score is the "
        "mean accuracy of the folds; accuracy that on the test rows. "
        + "; ".join(sorted({settings(record) for record in records}))
        + "."
    ]
    rows = [row(record) for record in records]
    return Table("Cross-validation over a single fit", [*header, "accuracy, %"], rows, notes)


def settings(record: Record) -> str:
    params = record["params"]
    return f"{params['Cs']} values of C, {params['cv']} folds, {params['max_vectors']} vectors"


def grid_table(records: Sequence[Record]) -> Table:
    rows = []
    for record in records:
        name = f"{record['dataset']}, {number(record.get('n_train'), 0)} rows"
        scores = [value_of(record, key) for key in ("mean_scores", "grid_mean_scores")]
        for label, prefix in (("MarginClassifierCV", ""), ("GridSearchCV", "grid_")):
            key = f"{prefix}seconds" if prefix else "fit_seconds"
            rows.append(
                [
                    name,
                    label,
                    text_of(record, key),
                    shown(value_of(record, f"{prefix}best_C"), ".3g"),
                    text_of(record, f"{prefix}best_score", 4),
                    *(number(None if prefix else each, 4) for each in differences(*scores)),
                ]
            )
    header = ["set", "search", "search and refit, s", "C", "score"]
    header += ["mean difference", "largest difference"]
    notes = [
        "The same values of C and the same folds. Differences are those of the mean scores to "
        "`GridSearchCV`'s, over all values of C. In the search, vectors are chosen from all rows "
        "by the labels of all rows; in `GridSearchCV` held-out rows have no say."
    ]
    return Table("The search beside GridSearchCV", header, rows, notes)


def tables(records: Sequence[Record]) -> list[Table]:
    grids = [record for record in records if record["label"] == GRID]
    return [cost_table([r for r in records if r["label"] != GRID]), grid_table(grids)]
