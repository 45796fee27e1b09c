"""Figure 4 of the MMDA paper: three classifiers on features of three sets with several classes.

K-MMDA one against the rest with the cosine kernel to the fourth power, 1 to 5 directions a class
(the paper's KOA<i>), beside no extraction, PCA and LDA. Columns are standardised, as the paper
says. That power does not see the sign of a cosine, so K-MMDA also runs on the values as they are,
which have none below zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.pictures import panel_each, pyplot, saved
from benchmarks.harness.records import Record, text_or_status
from benchmarks.harness.report import Table, number
from benchmarks.mmda.extract import ALL, Extraction
from benchmarks.mmda.plan import EXACT_MEMORY, OURS
from benchmarks.mmda.scatter import LDA, PCA

PART = "multiclass"
CLASSES = {"dna": 3, "satimage": 6, "optdigits": 10}
CLASSIFIERS = ("wide ANN", "linear SVM", "tree")
DIRECTIONS = (1, 2, 3, 5)
COSINE = {"kernel": "cosine_power", "degree": 4, "C": 1.0, "loss": "hinge"}
# Footnote 4: b = 0.
COSINE |= {"solver": "deflation", "memory": EXACT_MEMORY, "fit_intercept": False}
# As many principal components as K-MMDA has features with three directions.
COMPONENTS_A_CLASS = 3
CLAIM = (
    "MMDA, Figure 4. The paper: K-MMDA is competitive on DNA and optdigits; on satimage every "
    "extractor is worse than none."
)


def plan(quick: bool) -> list[Extraction]:
    numbers = (1, 2) if quick else DIRECTIONS
    found = []
    for dataset in ("dna",) if quick else CLASSES:
        n_components = COMPONENTS_A_CLASS * CLASSES[dataset]
        methods: dict[str, tuple[str, dict[str, Any], bool]] = {
            "none": ("sklearn.preprocessing.FunctionTransformer", {}, True),
            "PCA": (PCA, {"n_components": n_components}, True),
            "LDA": (LDA, {}, True),
            "K-MMDA": (OURS, COSINE | {"n_directions": max(numbers)}, True),
            "K-MMDA, raw": (OURS, COSINE | {"n_directions": max(numbers)}, False),
        }
        for label, (path, params, scaled) in methods.items():
            orders = numbers if path == OURS else (ALL,)
            found.append(
                Extraction(
                    label,
                    dataset,
                    path,
                    params,
                    rows=300 if quick else None,
                    part=PART,
                    classify=dict.fromkeys(CLASSIFIERS, orders),
                    scaled=scaled,
                )
            )
    return found


def lines_of(record: Record) -> list[tuple[str, dict[str, dict[str, Any]]]]:
    """A line for every number of directions: its name, and what each classifier gave."""
    scores = record.get("scores", {})
    numbers = list(dict.fromkeys(k for found in scores.values() for k in found))
    return [
        (
            record["label"] if k == str(ALL) else f"{record['label']}, {k} a class",
            {name: found[k] for name, found in scores.items() if k in found},
        )
        for k in numbers
    ] or [(record["label"], {})]


def table(records: Sequence[Record]) -> Table:
    rows = []
    for record in records:
        missing = text_or_status(record, None)
        for name, found in lines_of(record):
            some = next(iter(found.values()), {})
            cells = [number(found[c]["accuracy"]) if c in found else missing for c in CLASSIFIERS]
            leaves = f"{found['tree']['leaves']:,}" if "tree" in found else missing
            size = str(some.get("n_features", missing))
            seconds = number(record.get("fit_seconds"))
            rows.append([record["dataset"], name, size, *cells, leaves, seconds])
    header = ["set", "features", "number", "ANN, %", "linear SVM, %", "tree, %", "leaves"]
    notes = [
        "Accuracy on the test rows. The network has three hidden units an input and 500 steps of "
        "gradient descent on all rows; the SVM is LIBSVM's, C = 1; the tree C4.5 as in Table V. "
        "K-MMDA: cosine to the fourth power, hinge, C = 1, b = 0, one fit with the most "
        "directions, of which the others are the first; *raw* is without standardised columns. "
        f"PCA has {COMPONENTS_A_CLASS} components a class. The paper prints a chart only."
    ]
    title = "MMDA, Figure 4: classifiers and features"
    return Table(title, [*header, "extraction, s"], rows, notes)


def figure(records: Sequence[Record], path: Path) -> Path | None:
    """Bars as in the paper: a panel a set, a group of bars a classifier."""
    known = [record for record in records if record.get("scores")]
    if not known:
        return None
    datasets = list(dict.fromkeys(record["dataset"] for record in known))
    figure, axes = panel_each(datasets, 4.2, 3.6)
    colors = pyplot().get_cmap("viridis")
    for panel, dataset in zip(axes, datasets, strict=True):
        mine = [line for r in known if r["dataset"] == dataset for line in lines_of(r)]
        width = 0.85 / len(mine)
        lowest = 100.0
        for place, (name, found) in enumerate(mine):
            bars = [(at, found[c]["accuracy"]) for at, c in enumerate(CLASSIFIERS) if c in found]
            lowest = min([lowest, *(height for _, height in bars)])
            left = [at + (place + 0.5) * width - 0.425 for at, _ in bars]
            color = colors(place / max(1, len(mine) - 1))
            panel.bar(left, [height for _, height in bars], width, label=name, color=color)
        panel.set(title=dataset, ylim=(max(0.0, lowest - 3.0), 100.0), ylabel="accuracy (%)")
        panel.set_xticks(range(len(CLASSIFIERS)), ("ANN", "linear SVM", "tree"))
    figure.suptitle(CLAIM, fontsize="medium")
    handles, names = axes[-1].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right upper", fontsize="small", frameon=False)
    return saved(figure, path)
