"""Tables 1 and 2 as the Maxi-Min paper seems to have run them: one protocol for all sets.

Found by trying: columns moved to [0, 1]; LDA, LPP and aPAC with directions of unit length, as
MATLAB's ``eig`` returns them; MMDA in the whitened space, as its equation (6) says; LPP with every
two rows of a class joined by an edge of weight one; MMDAOnline as in `online`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.harness.records import Record
from benchmarks.harness.report import Table, beside, number
from benchmarks.maximin import papers as paper
from benchmarks.maximin.data import IN_ONE_RANGE, plain_name
from benchmarks.maximin.fit import Projection
from benchmarks.maximin.methods import METHODS, Method, by_cell, labels_in, projection
from benchmarks.maximin.tables import (
    CLASSIFY,
    FOLDED,
    FOLDS,
    QUICK_DIMENSIONS,
    QUICK_ROWS,
    QUICK_SETS,
    ROUNDS,
    accuracy_text,
    dimensions_of,
    paper_text,
)

TABLE_1 = "printed1"
TABLE_2 = "printed2"
ROOTS = "MMDAOnline, roots of eigenvalues"
# More neighbours than any class has rows: all of them.
ALL_ROWS = 10_000
LPP = {"supervised": True, "affinity": "binary", "n_neighbors": ALL_ROWS}
AS_PRINTED = (
    Method(paper.MMDA, METHODS["exact-eigen"].estimator, METHODS["exact-eigen"].params),
    Method(paper.ONLINE, "benchmarks.maximin.online.OnlineOfOurs"),
    Method(ROOTS, "benchmarks.maximin.online.OnlineWithRoots"),
    Method(paper.LDA, METHODS["lda"].estimator),
    Method(paper.LPP, METHODS["lpp"].estimator, LPP),
    Method(paper.APAC, METHODS["apac"].estimator),
    Method(paper.LFDA, METHODS["lfda"].estimator, METHODS["lfda"].params),
    Method(paper.PCA, METHODS["pca"].estimator, METHODS["pca"].params),
)
LABELS = [method.label for method in AS_PRINTED]
UNIT_LENGTH = (paper.LDA, paper.LPP, paper.APAC)
SETS = tuple(name + IN_ONE_RANGE for name in paper.UCI)
USPS = "usps" + IN_ONE_RANGE


def measured(method: Method, name: str, d: int, part: str, **fields: Any) -> Projection:
    """A method of the paper, with directions as long as the paper's."""
    unit = method.label in UNIT_LENGTH
    return projection(method, name, d, part, classify=CLASSIFY, unit_length=unit, **fields)


def plan_1(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    found = []
    for name in SETS:
        plain = plain_name(name)
        if quick and plain not in QUICK_SETS:
            continue
        rounds = {"folds": 3 if quick else FOLDS, "rounds": 1 if quick else ROUNDS}
        fields = rounds if plain in FOLDED else {"rows": QUICK_ROWS if quick else None}
        found += [
            measured(method, name, dimensions_of(plain), TABLE_1, **fields) for method in AS_PRINTED
        ]
    return found


def plan_2(quick: bool, records: Sequence[Record] = ()) -> list[Projection]:
    rows = QUICK_ROWS if quick else None
    return [
        measured(method, USPS, d, TABLE_2, rows=rows)
        for d in (QUICK_DIMENSIONS if quick else paper.DIMENSIONS)
        for method in AS_PRINTED
    ]


# ---------------------------------------------------------------- tables


def printed_name(label: str) -> str:
    """The column of the paper that a line is compared with."""
    return paper.ONLINE if label == ROOTS else label


def chosen(records: Sequence[Record]) -> str:
    """Which λ cross-validation took."""
    told = [
        f"{plain_name(record['set_name'])}, d = {record['point']['d']}: {record['own']['lam']:g}"
        for record in records
        if record["label"] == paper.ONLINE and "lam" in record.get("own", {})
    ]
    return "λ of MMDAOnline on all training rows: " + ("; ".join(told) or "not measured") + "."


def table_1(records: list[Record]) -> list[Table]:
    results = by_cell(records, TABLE_1)
    names = [name for name in SETS if any(key[0] == name for key in results)]
    rows = []
    for label in labels_in(results, LABELS):
        line = [label]
        for name in names:
            record = results.get((name, label, dimensions_of(plain_name(name))))
            theirs = paper_text(paper.uci(printed_name(label), plain_name(name)))
            line.append(beside(accuracy_text(record), theirs))
        rows.append(line)
    notes = [
        "Columns in [0, 1] by the training rows; directions of LDA, LPP and aPAC of unit length, "
        "those of MMDA in the whitened space; LPP joins all rows of a class with weight one. "
        'MMDAOnline is `MaxiMinDA` with solver="online", rounding="eigen", infinite sharpness, '
        f"T = 1000, λ by five folds of the training rows; *{ROOTS[12:]}*: Algorithm 1 once more, "
        "with the solution of (5), in which eigenvectors have the roots of their eigenvalues for "
        "lengths; the paper takes the eigenvectors. Unit length is what tells LDA from MMDA at "
        "c − 1 dimensions, on satimage as in the paper. Rows of tae, wine and balance are held "
        f"out, {ROUNDS} rounds of {FOLDS} folds.",
        chosen(records),
    ]
    title = "Table 1, as the paper seems to have run it"
    return [Table(title, ["accuracy, %", *map(plain_name, names)], rows, notes)]


def table_2(records: list[Record]) -> list[Table]:
    results = by_cell(records, TABLE_2)
    numbers = sorted({key[2] for key in results}, reverse=True)
    rows = [
        [
            label,
            *(
                beside(
                    accuracy_text(results.get((USPS, label, d))),
                    number(paper.usps(printed_name(label), d), 1),
                )
                for d in numbers
            ),
        ]
        for label in labels_in(results, LABELS)
    ]
    notes = ["The protocol of the table above, on the test rows.", chosen(records)]
    title = "Table 2, as the paper seems to have run it"
    return [Table(title, ["accuracy, %", *(f"d = {d}" for d in numbers)], rows, notes)]
