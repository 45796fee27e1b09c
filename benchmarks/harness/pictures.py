"""Matplotlib without a display, imported when a picture is drawn: it need not be installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any


def pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")  # no display needed
    from matplotlib import pyplot

    return pyplot


def panels(
    n_rows: int, n_columns: int, size: tuple[float, float], **options: Any
) -> tuple[Any, Any]:
    """A figure of so many panels, and these as an array with that many rows and columns."""
    settings = {"squeeze": False, "layout": "constrained", **options}
    return pyplot().subplots(n_rows, n_columns, figsize=size, **settings)


def panel_each(names: Sequence[str], width: float, height: float) -> tuple[Any, list[Any]]:
    """A figure with a panel for each name, side by side."""
    figure, axes = panels(1, len(names), (width * len(names), height))
    return figure, list(axes[0])


def saved(figure: Any, path: Path, dpi: int = 90) -> Path:
    figure.savefig(path, dpi=dpi)
    pyplot().close(figure)
    return path
