"""Sections about numbers: predictions beside the truth, residuals, hardest rows."""

from __future__ import annotations

import numpy as np

from widemargin.reporting.evidence import Evidence
from widemargin.reporting.hard_rows import hard_rows
from widemargin.reporting.html_parts import Section, figure, number, paragraph, table
from widemargin.reporting.svg_charts import histogram, point_chart

__all__ = ["number_sections"]

# Points of a picture at the most.
_POINTS = 800


def number_sections(evidence: Evidence) -> list[Section]:
    """Return the sections about a regressor."""
    assert evidence.y is not None
    y = evidence.y.astype(np.float64)
    residual = y - evidence.predicted
    some = np.linspace(0, evidence.n - 1, min(evidence.n, _POINTS)).astype(np.int64)
    off = np.abs(residual)
    said = (
        f"Half of the predictions are within {np.median(off):.3g} of the truth, nine tenths within "
        f"{np.percentile(off, 90):.3g}. The mean error is {residual.mean():.3g}."
    )
    truth = point_chart(
        "Predictions beside the truth",
        said,
        evidence.predicted[some],
        y[some],
        labels=("prediction", "truth"),
        diagonal=True,
    )
    left = point_chart(
        "Errors by prediction",
        "What is left of the truth when the prediction is taken away, for each prediction.",
        evidence.predicted[some],
        residual[some],
        labels=("prediction", "truth − prediction"),
        zero=True,
    )
    spread = histogram(
        "Errors", said, {"rows": residual}, label="truth − prediction", marks={"": 0.0}
    )
    shares = [0, 5, 25, 50, 75, 95, 100]
    cuts = np.percentile(residual, shares)
    numbers = table(
        ["share of rows below", "error"],
        [[f"{q} %", number(float(v))] for q, v in zip(shares, cuts, strict=True)],
    )
    note = f"{len(some):,} of {evidence.n:,} rows." if len(some) < evidence.n else "All rows."
    predictions = (
        '<div class="charts">'
        + figure(truth, f"On the line the prediction is right. {note}")
        + figure(left, f"A shape here is something that the model has missed. {note}")
        + "</div>"
    )
    order = np.argsort(-off, kind="stable")
    errors = figure(spread, "The bars at the ends hold all that lies beyond.", numbers)
    return [
        Section("errors", "Errors", paragraph(said) + errors, half=True),
        Section("predictions", "Predictions", predictions),
        hard_rows(evidence, order, residual, "error"),
    ]
