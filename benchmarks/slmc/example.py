"""Example 2 and Figure 1 of the SLMC paper: digits 3 and 8 of USPS with twelve vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.harness.pictures import panels, saved
from benchmarks.harness.records import Record, text_of
from benchmarks.harness.report import MISSING, Table, beside, number
from benchmarks.slmc import papers as paper
from benchmarks.slmc.data import SIDE, SMOOTHED_THREE_EIGHT, THREE_EIGHT
from benchmarks.slmc.fit import Sparse
from benchmarks.slmc.plan import METHODS, measurement

PART = "example"
NAMES = ("svm", "rs", "mrs", "rsvm", "mrsvm", "slmc-random", "slmc-kmeans", "slmc-squared", "skfd")
DRAWN = ("slmc-random", "slmc-kmeans")
SETS = {THREE_EIGHT: "raw", SMOOTHED_THREE_EIGHT: "smoothed"}
QUICK_ROWS = 1000
CLAIM = 'The paper: the twelve vectors that tell "3" from "8" look like digits.'


def plan(records: Sequence[Record], quick: bool) -> list[Sparse]:
    found = [
        measurement(
            name,
            dataset,
            None if METHODS[name].whole else paper.EXAMPLE_VECTORS,
            records,
            PART,
            rows=QUICK_ROWS if quick else None,
            keep_vectors=name in DRAWN,
        )
        for dataset in SETS
        for name in NAMES
    ]
    return [one for one in found if one is not None]


def table(records: Sequence[Record]) -> Table:
    rows = []
    for record in sorted(records, key=lambda record: list(SETS).index(record["dataset"])):
        label = record["label"]
        vectors = paper.EXAMPLE_SUPPORT_VECTORS if label == paper.SVM else None
        wrong = record.get("error")
        count = None if wrong is None else round(wrong * record["n_test"] / 100.0)
        rows.append(
            [
                f"{SETS[record['dataset']]}, {label}",
                beside(text_of(record, "error", 2), number(paper.EXAMPLE_ERRORS.get(label), 1)),
                MISSING if count is None else f"{count} of {record['n_test']}",
                beside(text_of(record, "n_vectors", 0), number(vectors, 0)),
                text_of(record, "fit_seconds", 2),
            ]
        )
    header = ["images, method", "test error, % (paper)", "wrong", "vectors (paper)", "fit, s"]
    notes = [
        "C = 10, γ = 1/128 on values in [−1, 1] for all methods; SKFD with its default μ. Images "
        "are raw, or smoothed by a Gaussian of 0.75 pixels as in Table 1. The "
        "pictures are the vectors of SLMC after a random start and after k-means."
    ]
    return Table("Example 2: digits 3 and 8 with twelve vectors", header, rows, notes)


def figure(records: Sequence[Record], path: Path) -> Path | None:
    """The paper's Figure 1: a row a start, a column raw or smoothed images."""
    mine = {(r["label"], r["dataset"]): r for r in records if r.get("images")}
    if not mine:
        return None
    from widemargin.plot import vectors

    labels = list(dict.fromkeys(label for label, _ in mine))
    sets = [dataset for dataset in SETS if any(dataset == each for _, each in mine)]
    drawn, axes = panels(len(labels), len(sets), (5.2 * len(sets), 2.3 * len(labels) + 0.6))
    for i, label in enumerate(labels):
        for j, dataset in enumerate(sets):
            record = mine.get((label, dataset))
            if record is None:
                axes[i, j].axis("off")
                continue
            vectors(np.array(record["images"]), (SIDE, SIDE), ax=axes[i, j], columns=6)
            told = f"{label}, {SETS[dataset]} images: {record['error']:.1f} % error"
            axes[i, j].set_title(told, fontsize="small")
    drawn.suptitle(f"Figure 1. {CLAIM}", fontsize="medium")
    return saved(drawn, path, dpi=110)
