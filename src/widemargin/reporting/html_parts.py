"""Pieces of the page: sections, tiles, tables, figures. All text is escaped here."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

__all__ = ["Section", "figure", "number", "page", "paragraph", "table", "tiles", "words_of"]


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes
    ----------
    key : str
        Its anchor: letters and hyphens.
    title : str
        Its heading.
    inside : str
        HTML, escaped already.
    half : bool
        Whether half of a wide screen is enough for it.
    """

    key: str
    title: str
    inside: str
    half: bool = False


def number(value: Any, digits: int = 4) -> str:
    """Return a number for readers.

    Examples
    --------
    >>> number(12345), number(0.123456), number(None)
    ('12,345', '0.1235', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return words_of(value)
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}".replace("-", "−")
    return f"{value:.{digits}g}".replace("-", "−")


def words_of(value: Any, most: int = 60) -> str:
    """Return a value of the data as text of a bounded length, not escaped."""
    text = str(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def paragraph(text: str) -> str:
    """Return a paragraph of plain text."""
    return f"<p>{escape(text)}</p>"


def tiles(facts: Sequence[tuple[str, str]]) -> str:
    """Return a row of boxes, each a large value over its name."""
    boxes = "".join(
        f'<div class="tile"><b>{escape(value)}</b><span>{escape(name)}</span></div>'
        for name, value in facts
    )
    return f'<div class="tiles">{boxes}</div>'


def table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "", raw: bool = False
) -> str:
    """Return a table that scrolls sideways where the page is narrow.

    Parameters
    ----------
    heads : sequence of str
        Names of the columns.
    rows : sequence of sequences of str
        Cells.
    caption : str, default=""
        What is in it.
    raw : bool, default=False
        Whether cells are HTML already, such as pictures; text in them has to be escaped then.
    """
    shown = (lambda cell: cell) if raw else escape
    head = "".join(f'<th scope="col">{escape(each)}</th>' for each in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{shown(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    said = f"<caption>{escape(caption)}</caption>" if caption else ""
    return (
        f'<div class="wide" tabindex="0"><table>{said}<thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def figure(chart: str, caption: str, numbers: str = "") -> str:
    """Return a chart with its caption, and its numbers as a table to unfold."""
    fold = f"<details><summary>The numbers</summary>{numbers}</details>" if numbers else ""
    return f"<figure>{chart}<figcaption>{escape(caption)}</figcaption>{fold}</figure>"


def page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Return the whole page: template, style and script are in ``page.html``."""
    folder = files("widemargin.reporting")
    links = "".join(f'<a href="#{each.key}">{escape(each.title)}</a>' for each in sections)
    body = "".join(_section(each) for each in sections)
    text = (folder / "page.html").read_text(encoding="utf-8")
    # The browser runs this script and no other, should a text of the data ever get through.
    script = text.split("<script>")[1].split("</script>")[0]
    return Template(text).substitute(
        title=escape(title),
        subtitle=escape(subtitle),
        links=links,
        sections=body,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )


def _section(section: Section) -> str:
    size = ' class="half"' if section.half else ""
    heading = f"<summary><h2>{escape(section.title)}</h2></summary>"
    inside = f'<div class="inside">{section.inside}</div>'
    return f'<section id="{section.key}"{size}><details open>{heading}{inside}</details></section>'
