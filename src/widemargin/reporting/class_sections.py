"""Sections about classes: confusions, margins, hardest rows, sureness, closest classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin.reporting.evidence import Evidence
from widemargin.reporting.hard_rows import hard_rows
from widemargin.reporting.html_parts import Section, figure, number, paragraph, table, words_of
from widemargin.reporting.svg_charts import Series, bar_chart, histogram, line_chart, shade_table

__all__ = ["class_sections"]

# Classes up to which a matrix of confusions can be read.
_MOST_SHOWN = 20
# Groups of rows by their margin, and rows that a group has at the least.
_GROUPS = 10
_LEAST = 10


def class_sections(evidence: Evidence) -> list[Section]:
    """Return the sections about a classifier."""
    counts = _confusions(evidence)
    confusions = Section("confusions", "Confusions", _confusion_part(evidence, counts))
    found = [confusions]
    if evidence.margin is not None:
        own = evidence.margins()
        margins = Section("margins", "Margins", _margin_part(evidence, own), half=True)
        order = np.argsort(own, kind="stable")
        found = [margins, confusions, hard_rows(evidence, order, own, "margin")]
        sure = _sureness_part(evidence)
        if sure:
            found.append(Section("calibration", "Calibration", sure, half=True))
    if len(evidence.model.classes_) > 2:
        closest = _closest_part(evidence, counts)
        found.append(Section("closest", "Closest classes", closest, half=True))
    return found


def _names(evidence: Evidence) -> list[str]:
    return [words_of(each) for each in evidence.model.classes_]


def _confusions(evidence: Evidence) -> NDArray[np.int64]:
    """Return how many rows of each class (down) are called what (across)."""
    assert evidence.y is not None
    classes = evidence.model.classes_
    true = np.searchsorted(classes, evidence.y)
    called = np.searchsorted(classes, evidence.predicted)
    n = len(classes)
    return np.bincount(true * n + called, minlength=n * n).reshape(n, n)


def _confusion_part(evidence: Evidence, counts: NDArray[np.int64]) -> str:
    names, own, called = _names(evidence), counts.sum(axis=1), counts.sum(axis=0)
    right = np.diag(counts)
    wrong = int(counts.sum() - right.sum())
    said = (
        f"{int(right.sum()):,} of {evidence.n:,} rows are called what they are, {wrong:,} are not."
    )
    rows = [
        [
            names[place],
            number(int(own[place])),
            _share(right[place], own[place]),
            _share(right[place], called[place]),
        ]
        for place in range(len(names))
        if own[place] or called[place]
    ]
    by_class = table(
        ["class", "rows", "found (recall)", "right when named (precision)"],
        rows if len(rows) <= 100 else sorted(rows, key=lambda row: row[2])[:100],
        caption="" if len(rows) <= 100 else "The 100 classes that are found least.",
    )
    if len(names) > _MOST_SHOWN:
        return paragraph(said) + _common_mistakes(names, counts) + by_class
    chart = shade_table(
        "Confusions", said, names, counts, labels=("what it is", "what the model says")
    )
    shown = figure(
        chart,
        "Right answers are on the diagonal, in blue; mistakes are orange. Shades are shares of a "
        "row of the table.",
    )
    return paragraph(said) + f'<div class="charts">{shown}<div>{by_class}</div></div>'


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "–"


def _common_mistakes(names: list[str], counts: NDArray[np.int64]) -> str:
    wrong = counts.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:15]
    rows = []
    for place in order:
        i, j = divmod(int(place), len(names))
        if wrong[i, j]:
            rows.append([names[i], names[j], number(int(wrong[i, j]))])
    if not rows:
        return ""
    return table(["what it is", "what the model says", "rows"], rows, caption="Common mistakes")


def _margin_part(evidence: Evidence, margins: NDArray[np.float64]) -> str:
    right = evidence.predicted == evidence.y
    close = float((np.abs(margins) < 0.1 * (np.median(np.abs(margins)) or 1.0)).mean())
    said = (
        f"The median margin is {np.median(margins):.3g}; {100 * float((margins < 0).mean()):.1f} % "
        f"of the rows lie on the wrong side, and {100 * close:.1f} % very near to the border."
    )
    chart = histogram(
        "Margins of the rows",
        said,
        {"right": margins[right], "wrong": margins[~right]},
        label="margin: by how much the row's own class leads",
        marks={"border": 0.0},
    )
    quantiles = [0, 5, 25, 50, 75, 95, 100]
    values = np.percentile(margins, quantiles)
    numbers = table(
        ["share of rows below", "margin"],
        [[f"{q} %", number(float(v))] for q, v in zip(quantiles, values, strict=True)],
    )
    caption = (
        "Rows to the right of the border are called what they are, the farther the surer. The bars "
        "at the ends hold all that lies beyond."
    )
    return paragraph(said) + figure(chart, caption, numbers)


def _sureness_part(evidence: Evidence) -> str:
    """Return how often the model is right when it leads by how much."""
    leads, right = evidence.leads(), evidence.predicted == evidence.y
    groups = min(_GROUPS, evidence.n // _LEAST)
    if groups < 2:
        return ""
    parts = np.array_split(np.argsort(leads, kind="stable"), groups)
    x = np.array([float(np.median(leads[part])) for part in parts])
    y = np.array([float(right[part].mean()) for part in parts])
    sizes = np.array([len(part) for part in parts])
    low, high = _wilson(y, sizes)
    said = (
        f"Of the tenth of rows with the smallest lead {100 * y[0]:.0f} % are right, of that with "
        f"the largest {100 * y[-1]:.0f} %."
        if groups == _GROUPS
        else f"Where the lead is smallest {100 * y[0]:.0f} % are right, where it is largest "
        f"{100 * y[-1]:.0f} %."
    )
    chart = line_chart(
        "How often the model is right, by its lead",
        said,
        [Series("right", x, y, low, high)],
        labels=("lead of the predicted class", "share that is right"),
        heights=(max(0.0, float(np.floor(10 * low.min()) / 10)), 1.0),
    )
    rows = [
        [number(float(a)), f"{100 * b:.1f} %", f"{100 * c:.1f} to {100 * d:.1f} %", number(int(e))]
        for a, b, c, d, e in zip(x, y, low, high, sizes, strict=True)
    ]
    numbers = table(["median lead", "right", "95 % interval", "rows"], rows)
    hint = (
        "Decision values are no probabilities; where the line rises, they order answers by how "
        "sure they are. CalibratedClassifierCV(model, ensemble=False) of scikit-learn turns them "
        "into probabilities."
    )
    caption = f"{groups} groups of equally many rows, with intervals of 95 % (Wilson)."
    return paragraph(said) + figure(chart, caption, numbers) + paragraph(hint)


def _wilson(
    share: NDArray[np.float64], n: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the interval of 95 % for shares of n (E. B. Wilson, 1927)."""
    z = 1.959964
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


def _closest_part(evidence: Evidence, counts: NDArray[np.int64]) -> str:
    """Return the pairs of classes that are mistaken for each other most, or lie nearest."""
    names, n = _names(evidence), len(counts)
    own = np.maximum(counts.sum(axis=1), 1)
    rate = counts / own[:, None]
    both = np.triu((rate + rate.T) / 2, 1)
    order = np.argsort(-both, axis=None, kind="stable")[:10]
    pairs = [divmod(int(place), n) for place in order if both.flat[place] > 0]
    if not pairs:
        return paragraph("No two classes are mistaken for each other in these rows.")
    labels = [f"{names[i]} / {names[j]}" for i, j in pairs]
    values = np.array([100 * both[i, j] for i, j in pairs])
    said = f"{labels[0]} are mistaken for each other most: {values[0]:.2g} % of their rows."
    chart = bar_chart(
        "Closest classes", said, labels, values, label="rows of the two that are mistaken, %"
    )
    rows = [
        [names[i], names[j], number(int(counts[i, j])), number(int(counts[j, i]))] for i, j in pairs
    ]
    numbers = table(["one", "other", "one called other", "other called one"], rows)
    return paragraph(said) + figure(chart, "Mean of both directions.", numbers)
