"""What benchmarks show: Markdown tables and pages, cells with the paper's figure beside ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

MISSING = "–"


@dataclass(frozen=True)
class Table:
    """A titled grid of finished cells; the first column is aligned left, the others right.

    ``notes`` are paragraphs below the grid.
    """

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()


def with_pictures(table: Table, *pictures: Path | None) -> Table:
    """The table with the pictures that were drawn below its notes."""
    shown = [f"![{table.title}]({path.name})" for path in pictures if path is not None]
    return replace(table, notes=[*table.notes, *shown])


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table, padded so that it also reads well in a terminal."""
    for row in rows:
        if len(row) != len(header):
            raise ValueError(f"row {list(row)!r} has {len(row)} cells, the header {len(header)}")
    escaped = [[str(cell).replace("|", "\\|") for cell in row] for row in (header, *rows)]
    widths = [max(3, *(len(row[column]) for row in escaped)) for column in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return "| " + " | ".join(padded) + " |"

    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join([line(escaped[0]), line(rule), *(line(row) for row in escaped[1:])])


def markdown_page(title: str, notes: Sequence[str], tables: Sequence[Table]) -> str:
    parts = [f"# {title}", *notes]
    for table in tables:
        parts += [f"## {table.title}", markdown_table(table.header, table.rows), *table.notes]
    return "\n\n".join(parts) + "\n"


def bullets(lines: Sequence[str]) -> list[str]:
    """One note that lists the lines, or none where there are none."""
    return ["\n".join(f"- {line}" for line in lines)] if lines else []


def number(value: float | None, digits: int = 2, unit: str = "") -> str:
    return shown(value, f",.{digits}f", unit)


def shown(value: float | None, form: str, unit: str = "") -> str:
    """A figure in that format, or the sign of a missing one."""
    return MISSING if value is None else f"{value:{form}}{unit}"


def beside(ours: str, paper: str) -> str:
    """Our figure with the paper's in brackets; a figure the paper lacks leaves no bracket."""
    return ours if paper == MISSING else f"{ours} ({paper})"


def width(gamma_factor: float) -> str:
    """The width of a Gaussian kernel; β is the mean squared distance of training rows."""
    return f"γ = {gamma_factor:g}/β"
