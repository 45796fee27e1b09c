"""What the other parameters of `MaxMarginDA` do, once, on three sets: one table.

Uncorrelated features (the MMDA-CVM paper's outlook), directions at right angles across all problems
(the MMDA paper's), random output codes and the cosine kernel to the fourth power, each instead of
the default and all else equal: the paper's protocol with three directions a problem, the exact
solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.harness.records import Record, text_or_status
from benchmarks.harness.report import Table, number
from benchmarks.mmda.extract import Extraction
from benchmarks.mmda.plan import OURS, QUICK_ROWS, QUICK_SETS, SMALL_SETS, WIDTH, ours, width_of

PART = "variants"
DIRECTIONS = 3
CLASSIFIERS = ("1-NN", "ANN", "SVM")
VARIANTS: dict[str, dict[str, Any]] = {
    "default": {},
    'constraint="uncorrelated"': {"constraint": "uncorrelated"},
    'across="all"': {"across": "all"},
    'codes="random"': {"codes": "random"},
    'kernel="cosine_power"': {"kernel": "cosine_power", "degree": 4},
}


def plan(quick: bool) -> list[Extraction]:
    return [
        Extraction(
            label,
            dataset,
            OURS,
            ours("deflation", DIRECTIONS, quick, gamma=width_of(WIDTH)) | changes,
            rows=QUICK_ROWS if quick else None,
            part=PART,
            classify=dict.fromkeys(CLASSIFIERS, (DIRECTIONS,)),
            scaled=True,
            width=WIDTH,
        )
        for dataset in (QUICK_SETS if quick else SMALL_SETS)
        for label, changes in VARIANTS.items()
    ]


def table(records: Sequence[Record]) -> Table:
    rows = []
    for record in records:
        scores = record.get("scores", {})
        cells = []
        for classifier in CLASSIFIERS:
            found = scores.get(classifier, {}).get(str(DIRECTIONS))
            cells.append(text_or_status(record, None if found is None else found["accuracy"]))
        counted = record.get("evaluations", {}).get(str(DIRECTIONS), {})
        rows.append(
            [
                record["dataset"],
                record["label"],
                text_or_status(record, record.get("n_features_out"), 0),
                *cells,
                number(counted.get("each"), 0),
                number(counted.get("distinct"), 0),
            ]
        )
    header = ["set", "parameter", "features", *(f"{name}, %" for name in CLASSIFIERS)]
    header += ["kernel evaluations a feature", "together"]
    notes = [
        f"Standardised columns, γ = {WIDTH:g}/β, the paper's C = 1, exact solver with the squared "
        f"hinge, {DIRECTIONS} directions a problem; one parameter differs from the default in each "
        "line. Random codes are as many problems as there are classes."
    ]
    return Table("Other parameters", header, rows, notes)
