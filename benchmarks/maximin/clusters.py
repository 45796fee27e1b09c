"""A thousand classes in tight clusters of five: few dimensions, and what they are spent on."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import Record, text_or_status
from benchmarks.harness.report import Table, number
from benchmarks.maximin.data import CLUSTERS
from benchmarks.maximin.fit import Projection
from benchmarks.maximin.methods import (
    APAC,
    AUTO,
    LDA,
    METHODS,
    PAIRWISE,
    PCA,
    Method,
    by_cell,
    projection,
    score_of,
)

PART = "clusters"
DIMENSIONS = (10, 20)
QUICK_DIMENSIONS = (5,)
QUICK_CLASSES = 40
HARD = "MaxiMinDA, hard minimum"
MACHINES = [
    METHODS["auto"],
    Method(HARD, METHODS["exact-refine"].estimator, METHODS["exact-refine"].params),
    Method(LDA, PAIRWISE, {"weighting": "equal"}),
    METHODS["apac"],
    METHODS["pca"],
]
LABELS = [AUTO, HARD, LDA, APAC, PCA]


def plan(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    few = QUICK_CLASSES if quick else None
    return [
        projection(method, name, d, PART, classify=("mean",), classes=few)
        for name in CLUSTERS
        for d in (QUICK_DIMENSIONS if quick else DIMENSIONS)
        for method in MACHINES
    ]


def table(records: list[Record]) -> Table:
    results = by_cell(records, PART)
    rows = []
    for name in CLUSTERS:
        for d in sorted({key[2] for key in results if key[0] == name}):
            for label in LABELS:
                record = results.get((name, label, d))
                if record is None:
                    continue
                own = record.get("own", {})
                rows.append(
                    [
                        name,
                        str(d),
                        label,
                        text_or_status(record, score_of(record, "mean"), 1),
                        number(record.get("min_distance")),
                        number(record.get("fit_seconds"), 1),
                        str(own.get("sharpness", "")),
                        f"{own['shrinkage']:.3g}" if "shrinkage" in own else "",
                    ]
                )
    header = ["set", "d", "method", "nearest mean, %", "smallest distance", "fit, s"]
    kinds = "; ".join(
        f"*{name}*: offsets with standard deviation {kind.offset:.2g} in "
        + ("all dimensions" if kind.n_offset is None else f"{kind.n_offset} others")
        for name, kind in CLUSTERS.items()
    )
    one = next(iter(CLUSTERS.values()))
    notes = [
        f"{one.n_clusters} clusters of {one.n_each} classes, {one.rows} rows each in "
        f"{one.n_features} dimensions, of which {one.n_center} hold the centres of the clusters "
        f"(standard deviation {one.spread:g}); {kinds}. The noise is the identity, and everything "
        f"is turned at random. Accuracy is on {one.fresh} fresh rows a class."
    ]
    return Table("A thousand classes in clusters", [*header, "sharpness", "shrinkage"], rows, notes)
