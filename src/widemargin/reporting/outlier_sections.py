"""Sections about outliers: the scores, and the rows farthest out."""

from __future__ import annotations

import numpy as np

from widemargin.reporting.evidence import Evidence
from widemargin.reporting.hard_rows import hard_rows
from widemargin.reporting.html_parts import Section, figure, number, paragraph, table
from widemargin.reporting.svg_charts import histogram

__all__ = ["outlier_sections"]


def outlier_sections(evidence: Evidence) -> list[Section]:
    """Return the sections about an outlier detector."""
    assert evidence.scores is not None
    scores, outside = evidence.scores, evidence.predicted == -1
    said = (
        f"{int(outside.sum()):,} of {evidence.n:,} rows ({100 * outside.mean():.1f} %) lie outside."
    )
    chart = histogram(
        "Scores",
        said,
        {"inside": scores[~outside], "outside": scores[outside]},
        label="decision value",
        marks={"border": 0.0},
    )
    shares = [0, 1, 5, 25, 50, 75, 100]
    numbers = table(
        ["share of rows below", "decision value"],
        [
            [f"{q} %", number(float(v))]
            for q, v in zip(shares, np.percentile(scores, shares), strict=True)
        ],
    )
    parts = paragraph(said) + figure(
        chart, "Rows left of the border are outliers; end bars hold all beyond.", numbers
    )
    found = [Section("scores", "Scores", parts, half=True)]
    if evidence.y is not None and len(np.unique(evidence.y)) <= 20:
        rows = [
            [str(each), number(int(own.sum())), f"{100 * float(outside[own].mean()):.1f} %"]
            for each in np.unique(evidence.y)
            for own in [evidence.y == each]
        ]
        by_label = table(["label", "rows", "called outliers"], rows)
        found.append(Section("labels", "By label", by_label, half=True))
    return [*found, hard_rows(evidence, np.argsort(scores, kind="stable"), scores, "score")]
