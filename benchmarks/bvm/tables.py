"""Tables 2, 3 and 4 of the BVM paper, its figure beside ours in every cell, and the gap reached."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bvm.plan import LABELS
from benchmarks.harness import bvm_paper as paper
from benchmarks.harness.machines import LIBSVM
from benchmarks.harness.records import Record, by_set_and_label, gap_of, ratio, text_of, value_of
from benchmarks.harness.report import MISSING, Table, beside, number

# Accuracy points below LIBSVM from which a machine is named in the last column of the table.
FLAG_POINTS = 0.5

Results = dict[tuple[str, str], Record]


def accuracy_table(results: Results, sets: Sequence[str]) -> Table:
    rows = []
    for dataset in sets:
        base = value_of(results.get((dataset, LIBSVM)), "accuracy")
        cells, compared, flagged = [], 0, []
        for label in (*LABELS, LIBSVM):
            record = results.get((dataset, label))
            printed = number(paper.printed(paper.ACCURACY, dataset, label))
            cells.append(beside(text_of(record, "accuracy"), printed))
            reached = value_of(record, "accuracy")
            if label == LIBSVM or base is None or reached is None:
                continue
            compared += 1
            if reached < base - FLAG_POINTS:
                flagged.append(label)
        verdict = ", ".join(flagged) or ("none" if compared else MISSING)
        rows.append([dataset, *cells, verdict])
    header = ["test accuracy, % (paper)", *LABELS, LIBSVM, f"> {FLAG_POINTS} below LIBSVM"]
    return Table("Table 2: accuracy", header, rows)


def seconds_table(results: Results, sets: Sequence[str]) -> Table:
    rows = []
    for dataset in sets:
        base = value_of(results.get((dataset, LIBSVM)), "fit_seconds")
        printed_base = paper.printed(paper.SECONDS, dataset, LIBSVM)
        cells = []
        for label in (*LABELS, LIBSVM):
            record = results.get((dataset, label))
            own = text_of(record, "fit_seconds", unit=" s")
            printed = paper.printed(paper.SECONDS, dataset, label)
            if label != LIBSVM and value_of(record, "fit_seconds") is not None:
                own += ", " + number(ratio(value_of(record, "fit_seconds"), base), unit="×")
            theirs = number(printed, unit=" s")
            if label != LIBSVM and printed is not None:
                theirs += ", " + number(ratio(printed, printed_base), unit="×")
            cells.append(beside(own, theirs))
        rows.append([dataset, *cells])
    header = ["fit seconds, ratio to LIBSVM (paper)", *LABELS, LIBSVM]
    return Table("Table 3: training time", header, rows)


def vectors_table(results: Results, sets: Sequence[str]) -> Table:
    rows = []
    for dataset in sets:
        cells = [
            beside(
                text_of(results.get((dataset, label)), "n_vectors", digits=0),
                number(paper.printed(paper.VECTORS, dataset, label), digits=0),
            )
            for label in (*LABELS, LIBSVM)
        ]
        rows.append([dataset, *cells])
    return Table("Table 4: vectors", ["vectors (paper)", *LABELS, LIBSVM], rows)


def gap_table(results: Results, sets: Sequence[str]) -> Table:
    """Not in the paper: how far from optimal each rule stopped."""
    rows = [
        [dataset, *(gap_of(results.get((dataset, label))) for label in LABELS)] for dataset in sets
    ]
    return Table("Relative duality gap reached", ["gap", *LABELS], rows)


def tables(records: Sequence[Record], sets: Sequence[str]) -> list[Table]:
    results = by_set_and_label(records)
    makers = (accuracy_table, seconds_table, vectors_table, gap_table)
    return [make(results, sets) for make in makers]
