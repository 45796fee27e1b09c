"""Paired t-tests of MMDA against the others, as the Maxi-Min paper reports them for Table 1."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.harness.records import Record
from benchmarks.harness.report import MISSING, Table, number
from benchmarks.maximin import papers as paper
from benchmarks.maximin.data import plain_name
from benchmarks.maximin.methods import by_cell
from benchmarks.maximin.printed import LABELS, ROOTS, SETS, TABLE_1
from benchmarks.maximin.tables import FOLDED, FOLDS, dimensions_of

LEVEL = 0.05
OTHERS = [label for label in LABELS if label not in (paper.MMDA, ROOTS)]


def paired(mine: np.ndarray, theirs: np.ndarray, overlap: float) -> tuple[float, float]:
    """The mean difference, and p of a paired t-test on both sides.

    ``overlap`` is test over training rows where rounds are repeated (Nadeau and Bengio 2003):
    training parts of rounds have rows in common, and a plain test would call chance significant.
    """
    from scipy import stats

    apart = mine - theirs
    spread = float(apart.std(ddof=1))
    if spread == 0.0:
        return float(apart.mean()), 1.0
    t = apart.mean() / (spread * math.sqrt(1.0 / len(apart) + overlap))
    return float(apart.mean()), float(2.0 * stats.t.sf(abs(t), len(apart) - 1))


def said(p: float) -> str:
    return f"{p:.3f}" + (" *" if p < LEVEL else "")


def table(records: list[Record]) -> Table:
    results = by_cell(records, TABLE_1)
    rows = []
    for name in SETS:
        plain = plain_name(name)
        if plain not in FOLDED:
            continue
        d = dimensions_of(plain)
        mine = (results.get((name, paper.MMDA, d)) or {}).get("fold_accuracies")
        for label in OTHERS:
            theirs = (results.get((name, label, d)) or {}).get("fold_accuracies")
            if mine is None or theirs is None:
                rows.append([plain, label, *[MISSING] * 3])
                continue
            a, b = np.array(mine), np.array(theirs)
            first = paired(a[0], b[0], 0.0)[1]
            mean, whole = paired(a.ravel(), b.ravel(), 1.0 / (FOLDS - 1))
            rows.append([plain, label, number(mean, 2), said(first), said(whole)])
    header = ["set", "MMDA against", "lead, points", "p, ten folds", "p, all rounds"]
    notes = [
        "Rows held out, the table above; folds are the same for all. *Ten folds*: the plain test "
        "on the first round, as the paper must have done it; *all rounds*: corrected for rows that "
        f"rounds share. A star: below {LEVEL:g}. The paper finds MMDA significantly better than "
        "all others on wine, better than all but LFDA on balance, and marginally better on tae. "
        "At c − 1 dimensions MMDA, LDA and aPAC span one space, and only the lengths of its axes "
        "differ; a significant lead over these can only come from there.",
    ]
    return Table("Paired t-tests", header, rows, notes)
