"""Figures 2 to 4 of the MMDA-CVM paper: accuracy, time and kernel evaluations over the features.

The paper prints curves without numbers. What its tables say of the same sets at N_c, 3N_c and 5N_c
features is what ours is compared with.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.pictures import panels, saved
from benchmarks.harness.records import Record, text_or_status
from benchmarks.harness.report import Table, beside, number
from benchmarks.mmda import papers as paper
from benchmarks.mmda.extract import ALL, Extraction
from benchmarks.mmda.papers import CLASSES, DIRECTIONS
from benchmarks.mmda.plan import METHODS, QUICK_SETS, SMALL_SETS, extraction, set_of

PART = "curves"
SWEEP = (1, 2, 3, 5, 7, 10)
NAMES = ("core", "span", "exact", "kpca")
# The exact solver takes its time, and the paper's numbers end here.
EXACT_SWEEP = DIRECTIONS
COLORS = {"core": "#b30000", "span": "#fc8d59", "exact": "#000000", "kpca": "#4292c6"}


def plan(quick: bool) -> list[Extraction]:
    found = []
    for dataset in QUICK_SETS if quick else SMALL_SETS:
        for name in NAMES:
            for k in (1, 2) if quick else EXACT_SWEEP if name == "exact" else SWEEP:
                number_of = ALL if METHODS[name].solver is None else k
                classify = {"ANN": (number_of,)}
                found.append(extraction(name, dataset, k, classify, PART, quick))
    return found


def name_of(record: Record) -> str:
    return next(name for name, method in METHODS.items() if method.label == record["label"])


def reached(record: Record) -> float | None:
    """Accuracy of the network, if it got that far."""
    scores = record.get("scores", {}).get("ANN", {})
    return next(iter(scores.values()))["accuracy"] if scores else None


def evaluations(record: Record, key: str) -> float | None:
    """Kernel evaluations of a row: summed over the features (``each``), or ``distinct``."""
    counted = record.get("evaluations", {})
    if not counted:
        return None
    last = counted[max(counted, key=int)]
    if key == "distinct":
        return last[key]
    return last["each"] * (last.get("n_features") or record["params"]["n_components"])


def printed(record: Record) -> tuple[float | None, float | None, float | None]:
    """Accuracy, seconds and summed kernel evaluations that the paper prints at that point."""
    dataset, name, k = (
        set_of(record["dataset"]),
        name_of(record),
        int(record["point"]["directions"]),
    )
    line = METHODS[name].paper
    if METHODS[name].solver is None:
        # KPCA's line has 5N_c features.
        k = ALL if k == max(DIRECTIONS) else -1
    each = paper.evaluations(line, k, dataset)
    features = CLASSES[dataset] * (k or max(DIRECTIONS))
    total = None if each is None else each * features
    return paper.accuracy(line, "ANN", k, dataset), paper.seconds(line, k, dataset), total


def table(records: Sequence[Record]) -> Table:
    rows = []
    for record in records:
        accuracy, seconds, total = printed(record)
        own = functools.partial(text_or_status, record)
        k = int(record["point"]["directions"])
        rows.append(
            [
                set_of(record["dataset"]),
                record["label"],
                str(k * CLASSES[set_of(record["dataset"])]),
                beside(own(reached(record), 2), number(accuracy)),
                beside(own(record.get("fit_seconds"), 2), number(seconds, 0)),
                beside(own(evaluations(record, "each"), 0), number(total, 0)),
                own(evaluations(record, "distinct"), 0),
            ]
        )
    header = ["set", "method", "features", "ANN, % (paper)", "extraction, s (paper)"]
    header += ["kernel evaluations, summed (paper)", "together"]
    notes = [
        "The paper's figures have no numbers; in brackets is what its tables say at that number of "
        "features. Kernel evaluations are summed over the features, as the paper does, and counted "
        "once for all features together. Every number of features is a fit of its own."
    ]
    return Table("MMDA-CVM, Figures 2 to 4", header, rows, notes)


PANELS = (
    ("test accuracy of the ANN (%)", "linear"),
    ("extraction (s)", "log"),
    ("kernel evaluations a row", "log"),
)


def figure(records: Sequence[Record], path: Path) -> Path | None:
    """A row of panels a set, a line a method; crosses are the paper's tables."""
    known = [record for record in records if record.get("fit_seconds") is not None]
    if not known:
        return None
    datasets = list(dict.fromkeys(set_of(record["dataset"]) for record in known))
    figure, axes = panels(len(datasets), 3, (12, 3.4 * len(datasets)))
    for row, dataset in zip(axes, datasets, strict=True):
        for name in NAMES:
            mine = [r for r in known if set_of(r["dataset"]) == dataset and name_of(r) == name]
            draw(row, sorted(mine, key=lambda r: r["point"]["directions"]), name, dataset)
        for panel, (label, scale) in zip(row, PANELS, strict=True):
            panel.set(xlabel="features", ylabel=label, yscale=scale, title=dataset)
            panel.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="small", title="× the paper")
    handles, names = axes[0, 2].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower right", ncols=4, fontsize="small")
    return saved(figure, path, dpi=100)


def draw(panels: Any, records: Sequence[Record], name: str, dataset: str) -> None:
    style = {"color": COLORS[name], "marker": "o", "markersize": 4}
    cross = {"color": COLORS[name], "marker": "x", "linestyle": "none", "markersize": 7}

    def features(record: Record) -> float:
        return record["point"]["directions"] * CLASSES[dataset]

    def line(panel: Any, values: Sequence[float | None], **looks: Any) -> None:
        points = [(features(r), v) for r, v in zip(records, values, strict=True) if v is not None]
        if points:
            panel.plot(*zip(*points, strict=True), **looks)

    label = METHODS[name].label
    line(panels[0], [reached(r) for r in records], label=label, **style)
    line(panels[0], [printed(r)[0] for r in records], **cross)
    # Times of 2007's machine are not drawn beside ours.
    line(panels[1], [r["fit_seconds"] for r in records], **style)
    line(panels[2], [evaluations(r, "each") for r in records], label=f"{label}, summed", **style)
    line(panels[2], [printed(r)[2] for r in records], **cross)
    together = [evaluations(r, "distinct") for r in records]
    line(panels[2], together, label=f"{label}, together", linestyle="--", **style)
