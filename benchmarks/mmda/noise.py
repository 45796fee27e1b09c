"""Labels in random order: what is extracted must not separate rows that the fit has not seen.

The rows that it has seen are looked at too, each by its nearest other one: what stands apart there
and not on the test rows is the labels learnt by heart.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.harness.records import Record
from benchmarks.harness.report import MISSING, Table, number
from benchmarks.mmda.extract import Extraction
from benchmarks.mmda.papers import CLASSES, DIRECTIONS
from benchmarks.mmda.plan import METHODS, extraction

PART = "noise"
DATASET = "optdigits"
NAMES = ("core", "span")
SEEDS = (0, 1, 2)
NEW = "1-NN"
SEEN = "1-NN, seen"
CHANCE = 100.0 / CLASSES[DATASET]
ASKED = 3.0


def plan(quick: bool) -> list[Extraction]:
    found = []
    for seed in SEEDS[:1] if quick else SEEDS:
        for name in NAMES:
            classify = {NEW: DIRECTIONS, SEEN: DIRECTIONS}
            one = extraction(name, DATASET, max(DIRECTIONS), classify, PART, quick, permuted=seed)
            found.append(replace(one, point={"seed": seed}))
    return found


def accuracies(
    records: Sequence[Record], label: str, classifier: str = NEW
) -> dict[str, list[float]]:
    """Accuracy of 1-NN for every number of directions, a value a seed."""
    found: dict[str, list[float]] = {}
    for record in records:
        if record["label"] == label:
            for k, score in record.get("scores", {}).get(classifier, {}).items():
                found.setdefault(k, []).append(score["accuracy"])
    return found


def farthest(records: Sequence[Record], label: str) -> float | None:
    """The largest distance from chance, in points."""
    found = [value for values in accuracies(records, label).values() for value in values]
    return max((abs(value - CHANCE) for value in found), default=None)


def row_of(records: Sequence[Record], label: str, classifier: str) -> list[str]:
    statuses = {r["status"] for r in records if r["label"] == label} - {"ok"}
    found = accuracies(records, label, classifier)
    cells = []
    for k in map(str, DIRECTIONS):
        values = found.get(k)
        spread = f" ({min(values):.2f} to {max(values):.2f})" if values else ""
        mean = number(statistics.mean(values)) if values else ", ".join(statuses) or MISSING
        cells.append(mean + spread)
    away = number(farthest(records, label)) if classifier == NEW else MISSING
    return [f"{label}, {'test rows' if classifier == NEW else 'training rows'}", *cells, away]


def table(records: Sequence[Record]) -> Table:
    labels = [METHODS[name].label for name in NAMES]
    rows = [row_of(records, label, rows) for label in labels for rows in (NEW, SEEN)]
    header = ["1-NN, %", *(f"{k} a class" for k in DIRECTIONS), "points from chance"]
    notes = [
        f"{DATASET} with its labels permuted, in both parts; chance is {CHANCE:g} % (asked: within "
        f"{ASKED:g} points on the test rows). Means over {len(SEEDS)} permutations, the range in "
        "brackets; the last column is the farthest of them. A training row is classified by its "
        "nearest other one."
    ]
    return Table("Permuted labels", header, rows, notes)
