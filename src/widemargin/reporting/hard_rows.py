"""The table of rows that a model finds hardest."""

from __future__ import annotations

from html import escape

import numpy as np
from numpy.typing import NDArray

from widemargin.reporting.evidence import Evidence, row_values
from widemargin.reporting.html_parts import Section, number, paragraph, table, words_of
from widemargin.reporting.pictures import picture

__all__ = ["hard_rows"]

_SHOWN = 12
_COLUMNS = 6

_WORDS = {
    "classes": "Rows whose own class trails most. Wrong labels in the data are often among them.",
    "numbers": "Rows whose prediction is farthest off. Slips in the data are often among them.",
    "outliers": "Rows that lie farthest outside.",
}


def hard_rows(
    evidence: Evidence, order: NDArray[np.intp], values: NDArray[np.float64], name: str
) -> Section:
    """Return the section on the first rows of an order.

    Parameters
    ----------
    evidence : Evidence
        The model and its rows.
    order : ndarray of int
        Rows, the hardest first.
    values : ndarray of shape (n,)
        What makes them hard.
    name : str
        What these values are called.
    """
    pictured = evidence.picture is not None
    truth = evidence.y is not None
    heads = ["row", *(["picture"] if pictured else []), *(["truth"] if truth else [])]
    heads += ["the model says", name]
    columns = [] if pictured else evidence.names[:_COLUMNS]
    heads += [words_of(each, 24) for each in columns]
    rows = []
    for place in order[:_SHOWN]:
        row = int(place)
        cells = [escape(number(int(evidence.number[row])))]
        if evidence.picture is not None:
            pixels = np.asarray(row_values(evidence.X, row), dtype=np.float64)
            cells.append(picture(pixels, evidence.picture, f"row {evidence.number[row]}"))
        if evidence.y is not None:
            cells.append(escape(_shown(evidence.y[row])))
        cells += [escape(_shown(evidence.predicted[row])), escape(number(float(values[row])))]
        if not pictured:
            cells += [escape(words_of(each, 24)) for each in evidence.shown(row, _COLUMNS)]
        rows.append(cells)
    said = _WORDS[evidence.task] + " Rows count from 0."
    title = "Most outlying rows" if evidence.task == "outliers" else "Hardest rows"
    return Section("rows", title, paragraph(said) + table(heads, rows, raw=True))


def _shown(value: object) -> str:
    if isinstance(value, float | np.floating):
        return number(float(value))
    return words_of(value)
