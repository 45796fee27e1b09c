"""``python -m benchmarks papers``: cells of the papers' tables that are met, short or not run."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from benchmarks.harness.report import MISSING, Table, markdown_page, number
from benchmarks.harness.session import RESULTS
from benchmarks.papers.cell import FACTOR, MET, NOT_RUN, POINTS, SHORT, Cell
from benchmarks.papers.cells import PICTURES, all_cells, reason_for

PAGE = RESULTS / "papers.md"
ASKED = 85.0
# A set whose rows are not to be had.
OTHER_DATA = "kddcup99_10pct"
ALLOWED = "all but intrusion"

NOTES = (
    "`python -m benchmarks papers`, from the results of `bvm`, `mmda`, `slmc` and `maximin` in "
    "this folder, whose pages say when and where they were measured.",
    f"A cell is met if ours is no more than {POINTS:g} points of accuracy or error worse than what "
    f"the paper prints, or, for sizes and for ratios of times, no more than {FACTOR:g} times as "
    "large. Columns of other people's programs (LASVM, SimpleSVM) are left out. The rows of "
    "`intrusion` are not to be had, a tenth of them is (kddcup99_10pct); w3a is a part of w8a of "
    "its size, and usps with 266,079 rows is made by shifting the digits that there are. MMDA "
    "(Kocsor, Kovács and Szepesvári) prints pictures only.",
)


def counts_table(cells: Sequence[Cell]) -> Table:
    rows = []
    tables = list(dict.fromkeys((cell.paper, cell.table) for cell in cells))
    for paper, table in [*tables, (ALLOWED, ""), ("all", "")]:
        mine = [
            each
            for each in cells
            if (each.paper, each.table) == (paper, table)
            or paper == "all"
            or (paper == ALLOWED and each.dataset != OTHER_DATA)
        ]
        count = Counter(cell.verdict for cell in mine)
        run = count[MET] + count[SHORT]
        rows.append(
            [
                f"{paper} {table}".strip(),
                *(str(count[verdict]) for verdict in (MET, SHORT, NOT_RUN)),
                number(100 * count[MET] / run if run else None, 0, " %"),
                number(100 * count[MET] / len(mine), 0, " %"),
            ]
        )
    header = ["table", MET, SHORT, NOT_RUN, "met, of those run", "met, of all"]
    return Table(f"Cells (asked: {ASKED:g} % of those that our data allows)", header, rows)


def reasons_table(cells: Sequence[Cell], verdict: str) -> Table:
    """A line for each reason: its cells, and the worst of them."""
    found: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        if cell.verdict == verdict:
            found.setdefault((cell.paper, cell.table, reason_for(cell)), []).append(cell)
    rows = [
        [f"{paper} {table}", str(len(mine)), _told(mine), reason]
        for (paper, table, reason), mine in found.items()
    ]
    return Table(f"Why cells are {verdict}", ["table", "cells", "which", "reason"], rows)


def _told(cells: Sequence[Cell], most: int = 6) -> str:
    told = [
        f"{cell.dataset} {cell.method}"
        + ("" if cell.ours is None else f" {cell.ours:.4g} ({cell.printed:.4g})")
        for cell in cells
    ]
    more = f" and {len(told) - most} more" if len(told) > most else ""
    return "; ".join(told[:most]) + more


def pictures_table() -> Table:
    """Every figure of the papers: ours, the claim, and whether it holds."""
    rows = [
        [
            f"{paper} {each.figure}",
            f"[{each.file}]({each.file})" if each.file else MISSING,
            each.claim,
            each.holds,
        ]
        for paper, pictures in PICTURES.items()
        for each in pictures
    ]
    return Table("Figures", ["figure", "ours", "the paper's claim", "holds"], rows)


def page(cells: Sequence[Cell]) -> str:
    tables = [
        counts_table(cells),
        *(reasons_table(cells, each) for each in (SHORT, NOT_RUN)),
        pictures_table(),
    ]
    return markdown_page("The papers, cell by cell", NOTES, tables)


def main(argv: Sequence[str]) -> None:
    argparse.ArgumentParser("python -m benchmarks papers", description=__doc__).parse_args(argv)
    made = page(all_cells(RESULTS))
    PAGE.write_text(made)
    print(made)
