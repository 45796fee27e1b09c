"""Tables 2, 3 and 4 of the BVM paper, its figure beside ours in every cell, and the gap reached."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bvm.plan import AS_PRINTED, FORMS, LABELS, OURS, TABLES, WIDTHS
from benchmarks.harness import bvm_paper as paper
from benchmarks.harness.machines import LIBSVM, PRINTED
from benchmarks.harness.records import (
    Record,
    by_set_and_label,
    gap_of,
    of_part,
    ratio,
    text_of,
    value_of,
)
from benchmarks.harness.report import MISSING, Table, beside, number, width

# Accuracy points below LIBSVM from which a machine is named in the last column of the table.
FLAG_POINTS = 0.5
WRITTEN = {OURS: "many rows join at once", AS_PRINTED: "as printed: one row at a time"}

Results = dict[tuple[str, str], Record]


def printed(table: paper.Printed, dataset: str, label: str) -> float | None:
    """The paper's figure: its machines are one, whatever form ours have."""
    return paper.printed(table, dataset, label.removesuffix(f" {PRINTED}"))


def accuracy_table(results: Results, sets: Sequence[str], labels: Sequence[str]) -> Table:
    rows = []
    for dataset in sets:
        base = value_of(results.get((dataset, LIBSVM)), "accuracy")
        cells, compared, flagged = [], 0, []
        for label in (*labels, LIBSVM):
            record = results.get((dataset, label))
            theirs = number(printed(paper.ACCURACY, dataset, label))
            cells.append(beside(text_of(record, "accuracy"), theirs))
            reached = value_of(record, "accuracy")
            if label == LIBSVM or base is None or reached is None:
                continue
            compared += 1
            if reached < base - FLAG_POINTS:
                flagged.append(label)
        verdict = ", ".join(flagged) or ("none" if compared else MISSING)
        rows.append([dataset, *cells, verdict])
    header = ["test accuracy, % (paper)", *labels, LIBSVM, f"> {FLAG_POINTS} below LIBSVM"]
    return Table("Table 2: accuracy", header, rows)


def seconds_table(results: Results, sets: Sequence[str], labels: Sequence[str]) -> Table:
    rows = []
    for dataset in sets:
        base = value_of(results.get((dataset, LIBSVM)), "fit_seconds")
        printed_base = paper.printed(paper.SECONDS, dataset, LIBSVM)
        cells = []
        for label in (*labels, LIBSVM):
            record = results.get((dataset, label))
            own = text_of(record, "fit_seconds", unit=" s")
            theirs = printed(paper.SECONDS, dataset, label)
            if label != LIBSVM and value_of(record, "fit_seconds") is not None:
                own += ", " + number(ratio(value_of(record, "fit_seconds"), base), unit="×")
            said = number(theirs, unit=" s")
            if label != LIBSVM and theirs is not None:
                said += ", " + number(ratio(theirs, printed_base), unit="×")
            cells.append(beside(own, said))
        rows.append([dataset, *cells])
    header = ["fit seconds, ratio to LIBSVM (paper)", *labels, LIBSVM]
    return Table("Table 3: training time", header, rows)


def vectors_table(results: Results, sets: Sequence[str], labels: Sequence[str]) -> Table:
    rows = []
    for dataset in sets:
        cells = [
            beside(
                text_of(results.get((dataset, label)), "n_vectors", digits=0),
                number(printed(paper.VECTORS, dataset, label), digits=0),
            )
            for label in (*labels, LIBSVM)
        ]
        rows.append([dataset, *cells])
    return Table("Table 4: vectors", ["vectors (paper)", *labels, LIBSVM], rows)


def gap_table(results: Results, sets: Sequence[str], labels: Sequence[str]) -> Table:
    """Not in the paper: how far from optimal each rule stopped."""
    rows = [
        [dataset, *(gap_of(results.get((dataset, label))) for label in labels)] for dataset in sets
    ]
    return Table("Relative duality gap reached", ["gap", *labels], rows)


def faster_table(results: Results, sets: Sequence[str], labels: Sequence[str]) -> Table:
    """The paper's claim: BVM is usually faster than CVM at the same ε."""
    rows = []
    for dataset in sets:
        cells = []
        for epsilon in map(paper.epsilon_name, paper.EPSILONS):
            pair = [label for label in labels if epsilon in label.split()]
            ball, core = (value_of(results.get((dataset, each)), "fit_seconds") for each in pair)
            theirs = (printed(paper.SECONDS, dataset, each) for each in pair)
            cells.append(beside(number(ratio(ball, core)), number(ratio(*theirs))))
        rows.append([dataset, *cells])
    header = ["BVM's time over CVM's (paper)", *map(paper.epsilon_name, paper.EPSILONS)]
    return Table("BVM over CVM", header, rows)


MAKERS = (accuracy_table, seconds_table, vectors_table, gap_table, faster_table)


def tables(records: Sequence[Record]) -> list[Table]:
    """All tables of every width and form that was measured."""
    found = []
    for gamma_factor in WIDTHS:
        mine = [
            record
            for record in of_part(records, TABLES)
            if record["point"]["gamma_factor"] == gamma_factor
        ]
        results = by_set_and_label(mine)
        sets = list(dict.fromkeys(record["dataset"] for record in mine))
        for form in FORMS:
            labels = LABELS[form]
            if not any((dataset, label) in results for dataset in sets for label in labels):
                continue
            for make in MAKERS:
                table = make(results, sets, labels)
                title = f"{table.title}, {width(gamma_factor)}, {WRITTEN[form]}"
                found.append(Table(title, table.header, table.rows, table.notes))
    return found
