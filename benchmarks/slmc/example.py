"""Example 2 and Figure 1 of the SLMC paper: digits 3 and 8 of USPS with twelve vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.harness.pictures import panels, saved
from benchmarks.harness.records import Record, text_of
from benchmarks.harness.report import MISSING, Table, beside, number
from benchmarks.slmc import papers as paper
from benchmarks.slmc.data import THREE_EIGHT
from benchmarks.slmc.fit import Sparse
from benchmarks.slmc.plan import METHODS, measurement

PART = "example"
NAMES = ("svm", "rs", "mrs", "rsvm", "mrsvm", "slmc-random", "slmc-kmeans", "slmc-squared", "skfd")
DRAWN = ("slmc-random", "slmc-kmeans")
SHAPE = (16, 16)
QUICK_ROWS = 1000


def plan(records: Sequence[Record], quick: bool) -> list[Sparse]:
    found = [
        measurement(
            name,
            THREE_EIGHT,
            None if METHODS[name].whole else paper.EXAMPLE_VECTORS,
            records,
            PART,
            rows=QUICK_ROWS if quick else None,
            keep_vectors=name in DRAWN,
        )
        for name in NAMES
    ]
    return [one for one in found if one is not None]


def table(records: Sequence[Record]) -> Table:
    rows = []
    for record in records:
        label = record["label"]
        vectors = paper.EXAMPLE_SUPPORT_VECTORS if label == paper.SVM else None
        wrong = record.get("error")
        count = None if wrong is None else round(wrong * record["n_test"] / 100.0)
        rows.append(
            [
                label,
                beside(text_of(record, "error", 2), number(paper.EXAMPLE_ERRORS.get(label), 1)),
                MISSING if count is None else f"{count} of {record['n_test']}",
                beside(text_of(record, "n_vectors", 0), number(vectors, 0)),
                text_of(record, "fit_seconds", 2),
            ]
        )
    header = ["method", "test error, % (paper)", "wrong", "vectors (paper)", "fit, s"]
    notes = [
        "C = 10, γ = 1/128 on values in [−1, 1] for all methods; SKFD with its default μ. The "
        "pictures are the vectors of SLMC after a random start and after k-means."
    ]
    return Table("Example 2: digits 3 and 8 with twelve vectors", header, rows, notes)


def figure(records: Sequence[Record], path: Path) -> Path | None:
    """The paper's Figure 1 for both starts."""
    mine = [record for record in records if record.get("images")]
    if not mine:
        return None
    from widemargin.plot import vectors

    drawn, axes = panels(len(mine), 1, (6, 2.4 * len(mine)), layout=None)
    for ax, record in zip(axes[:, 0], mine, strict=True):
        vectors(np.array(record["images"]), SHAPE, ax=ax, columns=6)
        ax.set_title(f"{record['label']}, {record['error']:.1f} % error", fontsize="small")
    drawn.tight_layout()
    return saved(drawn, path, dpi=110)
