"""What benchmarks show: Markdown tables, cells with the paper's figure beside ours, sweep plots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


def number(value: float | None, digits: int = 2, unit: str = "") -> str:
    return MISSING if value is None else f"{value:,.{digits}f}{unit}"


def beside(ours: str, paper: str) -> str:
    """Our figure with the paper's in brackets; a figure the paper lacks leaves no bracket."""
    return ours if paper == MISSING else f"{ours} ({paper})"


def ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base


def value_of(record: dict[str, Any] | None, key: str) -> float | None:
    """A field of a finished record; None where it was not run or did not finish."""
    return None if record is None or record["status"] != "ok" else record[key]


def text_of(record: dict[str, Any] | None, key: str, digits: int = 2, unit: str = "") -> str:
    """The same as text, or why there is none."""
    if record is not None and record["status"] != "ok":
        return record["status"]
    return number(value_of(record, key), digits, unit)


def gap_of(record: dict[str, Any] | None) -> str:
    certificate = value_of(record, "certificate")
    gap = certificate.get("gap") if isinstance(certificate, dict) else None
    return MISSING if gap is None else f"{gap:.1e}"


PANELS = (
    ("accuracy", "test accuracy (%)", "linear"),
    ("fit_seconds", "fit (s)", "log"),
    ("n_vectors", "vectors", "log"),
)


def sweep_figure(
    records: Sequence[dict[str, Any]], axis: str, axis_label: str, path: Path
) -> Path | None:
    """Accuracy, time and vectors over ``point[axis]``: a row of panels a set, a line a label."""
    finished = [record for record in records if record["status"] == "ok"]
    if not finished:
        return None
    import matplotlib

    matplotlib.use("Agg")  # no display needed
    from matplotlib import pyplot as plt

    datasets = list(dict.fromkeys(record["dataset"] for record in finished))
    figure, axes = plt.subplots(
        len(datasets), len(PANELS), figsize=(12, 3.4 * len(datasets)), squeeze=False
    )
    for row, dataset in zip(axes, datasets, strict=True):
        mine = [record for record in finished if record["dataset"] == dataset]
        for panel, (key, label, scale) in zip(row, PANELS, strict=True):
            for series in dict.fromkeys(record["label"] for record in mine):
                points = sorted(
                    (record["point"][axis], record[key])
                    for record in mine
                    if record["label"] == series and record[key] is not None
                )
                panel.plot(*zip(*points, strict=True), marker="o", markersize=4, label=series)
            panel.set(xscale="log", yscale=scale, xlabel=axis_label, ylabel=label, title=dataset)
            panel.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    plt.close(figure)
    return path
