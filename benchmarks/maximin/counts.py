"""How many cells of the Maxi-Min paper each protocol meets: the choice of one must be seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.harness.records import Record
from benchmarks.maximin import hypotheses, printed, tables
from benchmarks.maximin import papers as paper
from benchmarks.maximin.data import IN_ONE_RANGE
from benchmarks.maximin.methods import METHODS, Results, best_neighbours, by_cell

# Points below the paper at which a cell still counts.
CHANCE = 0.5
LOGARITHMS = "balance, logarithms" + IN_ONE_RANGE
PLAIN = {method.paper: method.label for method in METHODS.values() if method.paper}
Places = dict[str, tuple[Results, str]]


def met(results: Results, name: str, label: str, d: int, theirs: float) -> bool:
    ours = best_neighbours(results.get((name, label, d)))
    return ours is not None and ours >= theirs - CHANCE


def first_table(places: Places, labels: dict[str, str]) -> Iterator[bool]:
    """Table 1; ``places`` says where each set was measured."""
    for dataset, (results, name) in places.items():
        d = tables.dimensions_of(dataset)
        for method, line in paper.TABLE_1.items():
            yield met(results, name, labels[method], d, line[dataset][0])


def second_table(results: Results, name: str, labels: dict[str, str]) -> Iterator[bool]:
    for method, line in paper.TABLE_2.items():
        for d, theirs in line.items():
            yield met(results, name, labels[method], d, theirs)


def told(records: Sequence[Record]) -> str:
    """One line: the cells met by each protocol."""
    raw, raw_usps, as_printed, usps, guessed = (
        by_cell(list(records), part)
        for part in (
            tables.TABLE_1,
            tables.TABLE_2,
            printed.TABLE_1,
            printed.TABLE_2,
            hypotheses.PART,
        )
    )
    same = {method: method for method in paper.TABLE_1}
    plain: Places = {name: (raw, name) for name in paper.UCI}
    held: Places = {name: (as_printed, name + IN_ONE_RANGE) for name in paper.UCI}
    seen: Places = held | {"tae": (guessed, hypotheses.TEACHING)}
    logs: Places = seen | {"balance": (guessed, LOGARITHMS)}
    roots = same | {paper.ONLINE: printed.ROOTS}
    one = sum(second_table(raw_usps, "usps", PLAIN))
    two, other = (sum(second_table(usps, printed.USPS, labels)) for labels in (same, roots))
    counts = {
        "raw columns, our own lengths and graph, rows held out": sum(first_table(plain, PLAIN))
        + one,
        "the protocol below, rows held out": sum(first_table(held, same)) + two,
        "the same with the roots of eigenvalues in MMDAOnline": sum(first_table(held, roots))
        + other,
        "the same with eigenvectors, tae by rows seen (which counts)": sum(first_table(seen, same))
        + two,
        "and balance by logarithms": sum(first_table(logs, same)) + two,
    }
    whole = sum(map(len, paper.TABLE_1.values())) + sum(map(len, paper.TABLE_2.values()))
    said = "; ".join(f"{name}: {count}" for name, count in counts.items())
    return f"Of {whole} cells of Tables 1 and 2 are met, by protocol: {said}."
