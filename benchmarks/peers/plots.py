"""Pareto fronts of the comparison with peers: which machines nobody beats in time and in error."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness.pictures import panels, saved
from benchmarks.harness.records import Record, finished
from benchmarks.harness.report import width

SMALL = 5.0  # errors that differ by less than this factor are drawn on a linear axis
# Ours in warm colours, exact machines dark, approximations in blue and green, parts violet.
COLORS = {
    "ours": ("#b30000", "#e34a33", "#fc8d59"),
    "svc": ("#000000",),
    "intelex": ("#777777",),
    "nystroem": ("#9ecae1", "#4292c6", "#08519c"),
    "fourier": ("#41ab5d",),
    "svc-part": ("#d4b9da", "#c994c7", "#88419d"),
}
MARKERS = ("o", "^", "s", "D", "v", "P")


def pareto_front(points: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of the points that no other beats or equals in both numbers, by the first one.

    Both are costs. Of equal points the first counts.
    """
    front: list[int] = []
    for index in sorted(range(len(points)), key=lambda index: (*points[index], index)):
        if not front or points[index][1] < points[front[-1]][1]:
            front.append(index)
    return front


def error_of(record: Record) -> float:
    """Test error in percent, to the digits of its tables."""
    return round(100.0 - record["accuracy"], 4)


def front_of(records: Sequence[Record]) -> list[Record]:
    """The finished records that no other beats in fit time and in error, fastest first."""
    done = finished(records)
    points = [(record["fit_seconds"], error_of(record)) for record in done]
    return [done[index] for index in pareto_front(points)]


def color_of(family: str, number: int) -> str:
    shades = COLORS.get(family, ("#888888",))
    return shades[min(number, len(shades) - 1)]


def pareto_figure(
    records: Sequence[Record], families: dict[str, str], title: str, path: Path
) -> Path | None:
    """Error over fit time of one data set: a colour a machine, a marker a width, the front a line.

    Parameters
    ----------
    records : sequence of dict
        All measurements of the set; those without a result are counted below the axis.
    families : dict
        From the label of a machine to the key of its `COLORS`, in the order of the legend.
    title : str
        The title.
    path : Path
        Where the picture goes.

    Returns
    -------
    Path or None
        The same path, or None where no measurement finished.
    """
    done = finished(records)
    if not done:
        return None
    from matplotlib.lines import Line2D
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    figure, ((axes,),) = panels(1, 1, (8, 4.5))
    front = front_of(done)
    axes.step(
        [record["fit_seconds"] for record in front],
        [error_of(record) for record in front],
        where="post",
        color="#444444",
        linewidth=1,
        zorder=1,
    )
    factors = sorted({record["point"]["gamma_factor"] for record in done})
    marker_of = {factor: MARKERS[rank % len(MARKERS)] for rank, factor in enumerate(factors)}
    plain: dict[str, Any] = {
        "linestyle": "none",
        "markeredgecolor": "white",
        "markeredgewidth": 0.4,
    }
    handles, seen = [], dict.fromkeys(families.values(), 0)
    for label, family in families.items():
        color = color_of(family, seen[family])
        seen[family] += 1
        mine = [record for record in done if record["label"] == label]
        for record in mine:
            marker = marker_of[record["point"]["gamma_factor"]]
            size = 9 if record in front else 5.5
            point = (record["fit_seconds"], error_of(record))
            axes.plot(*point, marker=marker, markersize=size, color=color, **plain)
        if mine:
            handles.append(Line2D([], [], marker="o", color=color, label=label, **plain))
    for factor, marker in marker_of.items():
        sign = Line2D([], [], marker=marker, color="#444444", label=width(factor), **plain)
        handles.append(sign)
    handles.append(Line2D([], [], color="#444444", linewidth=1, label="Pareto front"))

    errors = [error_of(record) for record in done]
    axes.set(xscale="log", title=title, ylabel="test error (%)")
    axes.set_xlabel("fit (s)" + missing_note(len(records) - len(done)))
    if min(errors) > 0.0 and max(errors) > SMALL * min(errors):
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(alpha=0.3)
    figure.legend(handles=handles, loc="outside right upper", fontsize="small", frameon=False)
    return saved(figure, path)


def missing_note(count: int) -> str:
    return f"; {count} without a result are not drawn" if count else ""
