"""Every cell that a paper prints, with what we measured for it, and every picture."""

from __future__ import annotations

from pathlib import Path

from benchmarks.papers import bvm, maxi_min, mmda, mmda_cvm, slmc
from benchmarks.papers.cell import MET, Cell, Picture
from benchmarks.readme.figures import Figures

# Tables are counted paper by paper.
WITH_TABLES = (bvm, mmda_cvm, slmc, maxi_min)
# The first reason that fits a cell counts.
REASONS = tuple(reason for paper in WITH_TABLES for reason in paper.REASONS)
PICTURES: dict[str, tuple[Picture, ...]] = {
    "MMDA": mmda.PICTURES,
    "MMDA-CVM": mmda_cvm.PICTURES,
    "BVM": bvm.PICTURES,
    "SLMC": slmc.PICTURES,
    "Maxi-Min": maxi_min.PICTURES,
}


def all_cells(results: Path) -> list[Cell]:
    figures = Figures(results)
    return [cell for paper in WITH_TABLES for cell in paper.cells(figures)]


def reason_for(cell: Cell) -> str:
    """Why a cell is not met; "" where it is, and a cry where nobody knows."""
    if cell.verdict == MET:
        return ""
    return next((each.text for each in REASONS if each.fits(cell)), "NO REASON GIVEN")
