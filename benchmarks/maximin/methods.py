"""The methods of the Maxi-Min paper as measurements."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.harness.records import Record
from benchmarks.maximin import papers as paper
from benchmarks.maximin.data import loaded_as
from benchmarks.maximin.fit import INFINITE, Projection

OURS = "widemargin.MaxiMinDA"
PAIRWISE = "widemargin.PairwiseAccuracyDA"
# The paper's: the smallest distance alone, and a covariance as it is.
HARD = {"sharpness": INFINITE, "shrinkage": None, "random_state": 0}


@dataclass(frozen=True)
class Method:
    """A line of a table: how we call it, and how the paper does."""

    label: str
    estimator: str
    params: dict[str, Any] = field(default_factory=dict)
    paper: str = ""


def hard(solver: str, rounding: str) -> dict[str, Any]:
    return HARD | {"solver": solver, "rounding": rounding}


AUTO = "MaxiMinDA"
LEDOIT = "MaxiMinDA, Ledoit–Wolf"
REFINED = "exact, refine"
ROUNDED = "exact, eigen"
ONLINE_REFINED = "online, refine"
ONLINE_ROUNDED = "online, eigen"
LDA = "LDA"
APAC = "aPAC"
PCA = "PCA"

METHODS = {
    "auto": Method(AUTO, OURS, {"random_state": 0}),
    "exact-refine": Method(REFINED, OURS, hard("exact", "refine")),
    "exact-eigen": Method(ROUNDED, OURS, hard("exact", "eigen"), paper.MMDA),
    "online-refine": Method(ONLINE_REFINED, OURS, hard("online", "refine")),
    "online-eigen": Method(ONLINE_ROUNDED, OURS, hard("online", "eigen"), paper.ONLINE),
    "lda": Method(LDA, "sklearn.discriminant_analysis.LinearDiscriminantAnalysis", {}, paper.LDA),
    "apac": Method(APAC, PAIRWISE, {}, paper.APAC),
    "lfda": Method("LFDA", "widemargin.LocalFisherDA", {"shrinkage": None}, paper.LFDA),
    "lpp": Method(
        "LPP", "widemargin.LocalityPreservingProjection", {"supervised": True}, paper.LPP
    ),
    "lpp-unlabelled": Method("LPP without labels", "widemargin.LocalityPreservingProjection"),
    "pca": Method(PCA, "sklearn.decomposition.PCA", {"random_state": 0}, paper.PCA),
}
LABELS = [method.label for method in METHODS.values()]


def projection(
    method: Method, set_name: str, n_dimensions: int, part: str, **fields: Any
) -> Projection:
    """One method on one set at one number of dimensions."""
    return Projection(
        method.label,
        loaded_as(set_name),
        method.estimator,
        {"n_components": n_dimensions, **method.params},
        **({"point": {"d": n_dimensions}} | fields),
        part=part,
        set_name=set_name,
    )


# ---------------------------------------------------------------- reading the records

Cell = tuple[str, str, int]
Results = dict[Cell, Record]


def by_cell(records: list[Record], part: str) -> Results:
    """The records of a part by set, label and dimensions."""
    return {
        (record["set_name"], record["label"], int(record["point"]["d"])): record
        for record in records
        if record["part"] == part
    }


def best_neighbours(record: Record | None) -> float | None:
    """The best accuracy of 1 to 9 neighbours."""
    found = (record or {}).get("scores", {}).get("knn")
    return max(found.values()) if found else None


def score_of(record: Record | None, classifier: str) -> float | None:
    """The accuracy of a classifier, if the measurement got that far."""
    if classifier == "knn":
        return best_neighbours(record)
    return (record or {}).get("scores", {}).get(classifier)


def labels_in(results: Results, order: list[str]) -> list[str]:
    """The labels that were measured, in that order."""
    there = {label for _, label, _ in results}
    return [label for label in order if label in there]
