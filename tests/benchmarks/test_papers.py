"""The papers' tables, cell by cell."""

from __future__ import annotations

import pytest

from benchmarks.harness.session import RESULTS
from benchmarks.papers import command
from benchmarks.papers.cell import ACCURACY, ERROR, MET, NOT_RUN, SHORT, SIZE, TIME, Cell
from benchmarks.papers.cells import PICTURES, REASONS, all_cells, reason_for


def _cell(kind, printed, ours, **fields):
    given = {"paper": "BVM", "table": "Table 2", "dataset": "letter", "method": "CVM 1e-4"} | fields
    return Cell(**given, kind=kind, printed=printed, ours=ours)


@pytest.mark.parametrize(
    ("kind", "printed", "ours", "verdict"),
    [
        (ACCURACY, 94.0, 93.5, MET),
        (ACCURACY, 94.0, 93.4, SHORT),
        (ERROR, 4.0, 4.5, MET),
        (ERROR, 4.0, 4.6, SHORT),
        (SIZE, 100.0, 120.0, MET),
        (SIZE, 100.0, 121.0, SHORT),
        (TIME, 2.0, 0.1, MET),
        (TIME, 2.0, 2.5, SHORT),
        (ACCURACY, 94.0, None, NOT_RUN),
    ],
)
def test_a_cell_is_met_within_the_tolerance_of_its_kind(kind, printed, ours, verdict):
    assert _cell(kind, printed, ours).verdict == verdict


def test_every_cell_that_is_not_met_has_a_reason_and_every_reason_a_cell():
    cells = all_cells(RESULTS)
    without = [cell for cell in cells if reason_for(cell).isupper()]
    assert not without
    open_cells = [cell for cell in cells if cell.verdict != MET]
    used = {next(reason for reason in REASONS if reason.fits(cell)) for cell in open_cells}
    assert [reason.text for reason in REASONS if reason not in used] == []


def test_a_cell_without_a_reason_cries():
    assert reason_for(_cell(ACCURACY, 94.0, 10.0, paper="another")).isupper()
    assert reason_for(_cell(ACCURACY, 94.0, 94.0, paper="another")) == ""


def test_the_page_is_that_of_the_results():
    assert command.PAGE.read_text() == command.page(all_cells(RESULTS))


def test_no_cell_is_counted_twice():
    named = [(c.paper, c.table, c.dataset, c.method, c.kind) for c in all_cells(RESULTS)]
    assert len(named) == len(set(named))


@pytest.mark.parametrize("paper", PICTURES)
def test_every_picture_is_there_and_has_a_verdict(paper):
    for picture in PICTURES[paper]:
        if picture.file:
            assert (RESULTS / picture.file).is_file()
            assert picture.holds.startswith(("yes", "no", "in part"))
        else:
            assert picture.holds
