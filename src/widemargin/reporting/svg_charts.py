"""Charts as SVG: histogram, bars, lines, points and a table of shades.

Every chart is one ``<svg>`` with a title and a description for those who do not see it. Colours are
names of CSS variables of the page, so that light and dark are the page's affair; they are chosen to
be told apart with any colour vision, and series differ in shape or are labelled as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np
from numpy.typing import NDArray

__all__ = ["Series", "bar_chart", "histogram", "line_chart", "point_chart", "shade_table", "ticks"]

# In units of the drawing; a phone shows it at about three quarters of this size.
_WIDTH, _HEIGHT = 460, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 14, 14, 46
_COLORS = ("--blue", "--orange", "--green", "--pink")


@dataclass(frozen=True)
class Series:
    """Values with a name.

    Attributes
    ----------
    name : str
        For the legend.
    x, y : ndarray of shape (n,)
        Places and values.
    low, high : ndarray or None
        Ends of intervals around the values.
    """

    name: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    low: NDArray[np.float64] | None = field(default=None)
    high: NDArray[np.float64] | None = field(default=None)


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Return round numbers that cover a range.

    Examples
    --------
    >>> ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    if not (math.isfinite(low) and math.isfinite(high)) or high <= low:
        return [low]
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * each for each in (1, 2, 5, 10) if power * each >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{each * step:.12g}") for each in range(first, last + 1)]


def histogram(
    title: str,
    said: str,
    groups: dict[str, NDArray[np.float64]],
    *,
    label: str,
    marks: dict[str, float] | None = None,
    bins: int = 30,
) -> str:
    """Return bars of how many values lie where, one group on top of the other.

    Parameters
    ----------
    title, said : str
        For those who do not see it.
    groups : dict of ndarray
        Values by the name of their group.
    label : str
        What the values are.
    marks : dict of float, default=None
        Upright lines with a name.
    bins : int, default=30
        Number of bars.
    """
    values = np.concatenate([each for each in groups.values() if len(each)] or [np.zeros(1)])
    low, high = _range(values, list((marks or {}).values()))
    edges = _edges(low, high, bins, list((marks or {}).values()))
    low, high, bins = float(edges[0]), float(edges[-1]), len(edges) - 1
    counts = [np.histogram(np.clip(each, low, high), edges)[0] for each in groups.values()]
    top = float(max(1, np.sum(counts, axis=0).max()))
    x, y = _scale(low, high, _LEFT, _WIDTH - _RIGHT), _scale(0.0, top, _HEIGHT - _BOTTOM, _TOP)
    parts = [_axes(x, y, (low, high), (0.0, top), label, "rows")]
    below = np.zeros(bins)
    for color, (name, count) in zip(_COLORS, zip(groups, counts, strict=True), strict=False):
        for place in np.flatnonzero(count):
            left, right = x(edges[place]), x(edges[place + 1])
            high_y, low_y = y(below[place] + count[place]), y(below[place])
            wide = max(right - left - 1, 0.5)
            span = f"{_short(edges[place])} to {_short(edges[place + 1])}"
            parts.append(
                f'<rect x="{left + 0.5:.1f}" y="{high_y:.1f}" width="{wide:.1f}" '
                f'height="{max(low_y - high_y, 0.5):.1f}" fill="var({color})">'
                f"<title>{escape(name)}, {span}: {count[place]:,}</title></rect>"
            )
        below = below + count
    for name, value in (marks or {}).items():
        parts.append(
            f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}" '
            f'class="mark"/><text x="{x(value) + 4:.1f}" y="{_TOP + 10}" class="small halo">'
            f"{escape(name)}</text>"
        )
    return _svg(title, said, "".join(parts)) + _legend(list(groups))


def bar_chart(
    title: str, said: str, names: Sequence[str], values: NDArray[np.float64], *, label: str
) -> str:
    """Return lying bars with their names, the first one at the top."""
    low, high = min(0.0, float(values.min())), max(0.0, float(values.max()))
    high = high if high > low else low + 1.0
    left, row = 165, 24
    height = _TOP + row * len(names) + 30
    x = _scale(low, high, left, _WIDTH - 60)
    parts = []
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        top = _TOP + row * place
        begin, end = sorted((x(0.0), x(float(value))))
        parts.append(
            f'<text x="{left - 8}" y="{top + 15}" class="small" text-anchor="end">'
            f"{escape(_cut(name, 20))}<title>{escape(name)}</title></text>"
            f'<rect x="{begin:.1f}" y="{top + 3}" width="{max(end - begin, 1):.1f}" height="17" '
            f'rx="2" fill="var(--blue)"/>'
            f'<text x="{end + 5:.1f}" y="{top + 15}" class="small">{_short(value)}</text>'
        )
    parts.append(
        f'<line x1="{x(0.0):.1f}" x2="{x(0.0):.1f}" y1="{_TOP}" y2="{height - 30}" class="axis"/>'
        f'<text x="{(left + _WIDTH) / 2:.0f}" y="{height - 8}" class="small" '
        f'text-anchor="middle">{escape(label)}</text>'
    )
    return _svg(title, said, "".join(parts), height)


def line_chart(
    title: str,
    said: str,
    series: Sequence[Series],
    *,
    labels: tuple[str, str],
    heights: tuple[float, float] | None = None,
    logarithmic: bool = False,
) -> str:
    """Return lines with points, and bars for their intervals; x may be on a log scale."""
    place = np.log10 if logarithmic else np.asarray
    xs = np.concatenate([place(each.x) for each in series])
    low, high = float(xs.min()), float(xs.max())
    low, high = (low - 0.5, high + 0.5) if low == high else (low, high)
    if heights is None:
        ys = np.concatenate([v for s in series for v in (s.y, s.low, s.high) if v is not None])
        heights = _range(ys, [])
    x = _scale(low, high, _LEFT + 8, _WIDTH - _RIGHT - 8)
    y = _scale(*heights, _HEIGHT - _BOTTOM, _TOP)
    parts = [_axes(x, y, (low, high), heights, *labels, at=_apart(xs) if logarithmic else None)]
    for number, (color, each) in enumerate(zip(_COLORS, series, strict=False)):
        points = [
            (x(float(a)), y(float(np.clip(b, *heights))))
            for a, b in zip(place(each.x), each.y, strict=True)
        ]
        if each.low is not None and each.high is not None:
            for (px, _), a, b in zip(points, each.low, each.high, strict=True):
                parts.append(
                    f'<line x1="{px:.1f}" x2="{px:.1f}" y1="{y(float(a)):.1f}" '
                    f'y2="{y(float(b)):.1f}" stroke="var({color})" stroke-width="1.5"/>'
                )
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        dash = ' stroke-dasharray="6 4"' if number else ""
        parts.append(
            f'<polyline points="{path}" fill="none" stroke="var({color})" stroke-width="2"{dash}/>'
        )
        for (a, b), vx, vy in zip(points, each.x, each.y, strict=True):
            said_here = f"{escape(each.name)}: {_short(vx)}, {_short(vy)}"
            parts.append(_marker(a, b, number, color, said_here))
    return _svg(title, said, "".join(parts)) + _legend([each.name for each in series])


def point_chart(
    title: str,
    said: str,
    x_values: NDArray[np.float64],
    y_values: NDArray[np.float64],
    *,
    labels: tuple[str, str],
    diagonal: bool = False,
    zero: bool = False,
) -> str:
    """Return points; `diagonal` and `zero` draw the lines of right answers."""
    both = np.concatenate([x_values, y_values])
    across = _range(both if diagonal else x_values, [])
    up = across if diagonal else _range(y_values, [0.0] if zero else [])
    x = _scale(*across, _LEFT, _WIDTH - _RIGHT)
    y = _scale(*up, _HEIGHT - _BOTTOM, _TOP)
    parts = [_axes(x, y, across, up, *labels)]
    if diagonal:
        (a, b), (c, d) = (x(across[0]), y(up[0])), (x(across[1]), y(up[1]))
        parts.append(f'<line x1="{a:.1f}" y1="{b:.1f}" x2="{c:.1f}" y2="{d:.1f}" class="mark"/>')
    if zero:
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(0.0):.1f}" y2="{y(0.0):.1f}" '
            'class="mark"/>'
        )
    dots = "".join(
        f'<circle cx="{x(float(a)):.1f}" cy="{y(float(b)):.1f}" r="2.6"/>'
        for a, b in zip(np.clip(x_values, *across), np.clip(y_values, *up), strict=True)
    )
    parts.append(f'<g fill="var(--blue)" fill-opacity="0.55">{dots}</g>')
    return _svg(title, said, "".join(parts))


def shade_table(
    title: str,
    said: str,
    names: Sequence[str],
    counts: NDArray[np.int64],
    *,
    labels: tuple[str, str],
) -> str:
    """Return a square of shaded cells with their counts, rows by the first label."""
    n = len(names)
    cell = 44 if n <= 6 else 34 if n <= 12 else 24
    left, top = 96, 92
    # Room for the last slanted name; a small table is not blown up.
    width, height = max(_WIDTH, left + cell * n + 60), top + cell * n + 10
    share = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    parts = [
        f'<text x="{left + cell * n / 2:.0f}" y="14" class="small" text-anchor="middle">'
        f"{escape(labels[1])}</text>",
        f'<text x="12" y="{top + cell * n / 2:.0f}" class="small" text-anchor="middle" '
        f'transform="rotate(-90 12 {top + cell * n / 2:.0f})">{escape(labels[0])}</text>',
    ]
    for place, name in enumerate(names):
        middle = cell * place + cell / 2
        parts.append(
            f'<text x="{left - 6}" y="{top + middle + 4:.0f}" class="small" text-anchor="end">'
            f"{escape(_cut(name, 10))}<title>{escape(name)}</title></text>"
            f'<text x="{left + middle:.0f}" y="{top - 6}" class="small" '
            f'transform="rotate(-50 {left + middle:.0f} {top - 6})">{escape(_cut(name, 10))}'
            f"<title>{escape(name)}</title></text>"
        )
    for i in range(n):
        for j in range(n):
            color = "--blue" if i == j else "--orange"
            # A few mistakes are to be seen beside many right answers.
            shade = (
                0.0 if not counts[i, j] else 0.15 + 0.85 * float(share[i, j]) ** (0.5 + (i == j))
            )
            x, y = left + cell * j, top + cell * i
            dark = " on-shade" if shade > 0.55 else ""
            number = f"{counts[i, j]:,}" if counts[i, j] else "·"
            parts.append(
                f'<rect x="{x}" y="{y}" width="{cell - 1}" height="{cell - 1}" rx="2" '
                f'fill="var({color})" fill-opacity="{shade:.2f}" class="cell"><title>'
                f"{escape(names[i])} called {escape(names[j])}: {counts[i, j]:,}</title></rect>"
                f'<text x="{x + cell / 2 - 0.5:.0f}" y="{y + cell / 2 + 4:.0f}" '
                f'class="small count{dark}" text-anchor="middle">{number}</text>'
            )
    return _svg(title, said, "".join(parts), height, width)


# What charts share.


def _svg(title: str, said: str, inside: str, height: int = _HEIGHT, width: int = _WIDTH) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}. {escape(said)}"><title>{escape(title)}</title>'
        f"<desc>{escape(said)}</desc>{inside}</svg>"
    )


def _legend(names: Sequence[str]) -> str:
    if len(names) < 2:
        return ""
    entries = "".join(
        f'<span class="key"><i class="swatch{color}"></i>{escape(name)}</span>'
        for color, name in zip(_COLORS, names, strict=False)
    )
    return f'<p class="legend">{entries}</p>'


class _Scale:
    """A straight map from values to places of the drawing."""

    def __init__(self, low: float, high: float, start: float, end: float) -> None:
        self.low, self.start = low, start
        self.slope = (end - start) / (high - low)

    def __call__(self, value: float) -> float:
        return self.start + self.slope * (float(value) - self.low)


def _scale(low: float, high: float, start: float, end: float) -> _Scale:
    return _Scale(low, high if high > low else low + 1.0, start, end)


def _range(values: NDArray[np.float64], also: list[float]) -> tuple[float, float]:
    """Return where nearly all values lie; what is farther out is drawn at the edge."""
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = (
        np.percentile(values, [0.5, 99.5]) if len(values) > 400 else (values.min(), values.max())
    )
    low, high = min([float(low), *also]), max([float(high), *also])
    size = max(abs(low), abs(high))
    # Values that are all the same but for rounding have a picture of some width, too.
    flat = high - low <= max(1e-9 * size, 1e-200)
    room = max(0.1 * size, 0.5) if flat else 0.03 * (high - low)
    return low - room, high + room


def _edges(low: float, high: float, bins: int, marks: list[float]) -> NDArray[np.float64]:
    """Return the edges of bars; one is at the first mark, so that no bar is on both sides."""
    if not marks:
        return np.linspace(low, high, bins + 1)
    step = (high - low) / bins
    before = math.ceil((marks[0] - low) / step - 1e-9)
    after = math.ceil((high - marks[0]) / step - 1e-9)
    return np.asarray(marks[0] + step * np.arange(-before, after + 1))


def _axes(
    x: _Scale,
    y: _Scale,
    across: tuple[float, float],
    up: tuple[float, float],
    x_label: str,
    y_label: str,
    at: Sequence[float] | None = None,
) -> str:
    """Return lines, numbers and names of the axes; `at` are logarithms of numbers to show."""
    parts = []
    for value in ticks(*up):
        parts.append(
            f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" '
            f'class="grid"/><text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" class="small" '
            f'text-anchor="end">{_short(value)}</text>'
        )
    for value in ticks(*across) if at is None else at:
        shown = _short(value) if at is None else _short(round(10.0**value))
        parts.append(
            f'<text x="{x(value):.1f}" y="{_HEIGHT - _BOTTOM + 17}" class="small" '
            f'text-anchor="middle">{shown}</text>'
        )
    parts.append(
        f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{_HEIGHT - _BOTTOM}" '
        f'y2="{_HEIGHT - _BOTTOM}" class="axis"/>'
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2:.0f}" y="{_HEIGHT - 8}" class="small" '
        f'text-anchor="middle">{escape(x_label)}</text>'
        f'<text x="14" y="{(_HEIGHT - _BOTTOM + _TOP) / 2:.0f}" class="small" text-anchor="middle" '
        f'transform="rotate(-90 14 {(_HEIGHT - _BOTTOM + _TOP) / 2:.0f})">{escape(y_label)}</text>'
    )
    return "".join(parts)


def _apart(values: NDArray[np.float64]) -> list[float]:
    """Return those of the values that are not too near to each other to be written."""
    different = np.unique(values)
    least = 0.12 * (different[-1] - different[0])
    kept = [float(different[-1])]
    for value in different[-2::-1]:
        if kept[-1] - value >= least:
            kept.append(float(value))
    return kept


def _marker(x: float, y: float, shape: int, color: str, said: str) -> str:
    """Return a point: round for the first series, square for the others."""
    fill = f'fill="var({color})"'
    if shape == 0:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" {fill}><title>{said}</title></circle>'
    return (
        f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" {fill}>'
        f"<title>{said}</title></rect>"
    )


def _short(value: float) -> str:
    """Return a number in few characters."""
    value = float(value)
    if value == int(value) and abs(value) < 1e6:
        return f"{int(value):,}".replace("-", "−")
    return f"{value:.3g}".replace("-", "−")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
