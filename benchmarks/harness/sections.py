"""The page of a benchmark in parts: a section for each part that was measured.

Each part can be run alone (``--parts``); it then replaces its own figures in the results and leaves
the others, and the page shows all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness.records import Record, of_part
from benchmarks.harness.report import Table, bullets, with_pictures
from benchmarks.harness.runner import installed
from benchmarks.harness.session import Session

QUICK_NOTE = (
    "A quick run: few rows, sets and settings, whatever the notes say. It shows that everything "
    "works, and its figures tell nothing."
)

Draw = Callable[[list[Record], Path], Path | None]


@dataclass(frozen=True)
class Section:
    """The tables of a part from its records; pictures go below the last of them.

    ``pictures`` maps the end of a picture's file name to what draws it, which returns None where
    there is nothing to draw.
    """

    part: str
    tables: Callable[[list[Record]], Table | list[Table]]
    pictures: Mapping[str, Draw] = field(default_factory=dict)


def tables_of(sections: Sequence[Section], session: Session) -> list[Table]:
    """Every part that was measured, with its pictures where Matplotlib is installed."""
    found: list[Table] = []
    for section in sections:
        mine = of_part(session.records, section.part)
        if not mine:
            continue
        made = section.tables(mine)
        tables = [made] if isinstance(made, Table) else made
        if tables and installed("matplotlib"):
            drawn = [
                draw(mine, session.results / f"{session.name}_{name}.png")
                for name, draw in section.pictures.items()
            ]
            tables = [*tables[:-1], with_pictures(tables[-1], *drawn)]
        found += tables
    return found


def write_page(
    session: Session,
    title: str,
    sections: Sequence[Section],
    notes: Sequence[str] = (),
    targets: Callable[[list[Record]], Table] | None = None,
    *,
    quick: bool,
    targets_first: bool = False,
    protocol: Sequence[str] = (),
) -> None:
    """All sections; what was asked is judged by whole runs only.

    ``protocol`` says, a line each, what differs from how the paper did it.
    """
    tables = tables_of(sections, session)
    if targets is not None and not quick:
        tables.insert(0 if targets_first else len(tables), targets(session.records))
    notes = [*notes, *told(protocol)]
    session.write(title, tables, [QUICK_NOTE, *notes] if quick else notes)


def told(protocol: Sequence[str]) -> list[str]:
    """What differs from the paper's protocol, as notes at the head of a page."""
    return ["What differs from the paper's protocol:", *bullets(protocol)] if protocol else []
