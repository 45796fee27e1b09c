"""Finding figures in the results that are in the repository."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness.records import Record
from benchmarks.harness.sources import age


class MissingFigure(LookupError):
    """A page asks for what no benchmark has measured."""


@dataclass
class Figures:
    """Records of all benchmarks, and which of them a page has used.

    ``results`` is the folder of the JSON files.
    """

    results: Path
    _documents: dict[str, Record] = field(default_factory=dict)
    _used: list[tuple[str, Record]] = field(default_factory=list)

    def document(self, name: str) -> Record:
        if name not in self._documents:
            self._documents[name] = json.loads((self.results / f"{name}.json").read_text())
        return self._documents[name]

    def records(self, name: str, part: str | None = None) -> list[Record]:
        """The records of a part that were finished; they count as used."""
        found = [
            record
            for record in self.document(name)["records"]
            if record.get("part") == part and record["status"] == "ok"
        ]
        if not found:
            raise MissingFigure(f"{name}.json has no finished record of the part {part!r}.")
        self._used += [(name, record) for record in found]
        return found

    def record(
        self, name: str, dataset: str, label: str, part: str | None = None, **point: float
    ) -> Record:
        """The one record of a set and a label at a point; it counts as used."""
        found = [
            record
            for record in self.document(name)["records"]
            if (record.get("part"), record["dataset"], record["label"]) == (part, dataset, label)
            and all(record["point"].get(key) == value for key, value in point.items())
        ]
        if len(found) != 1 or found[0]["status"] != "ok":
            raise MissingFigure(
                f"{name}.json has {len(found)} records of {label!r} on {dataset!r} at {point}, "
                "of which one that is finished is wanted."
            )
        self._used.append((name, found[0]))
        return found[0]

    def run_of(self, name: str, record: Record) -> Record:
        """The header of the run that a record is of."""
        document = self.document(name)
        return document["runs"][record["run"]] if "runs" in document else document

    def told(self, to_root: str = "") -> str:
        """Where the figures since the last call come from: a line of Markdown.

        ``to_root`` leads from the folder of the page to that of README.md.
        """
        runs: dict[tuple[str, str], tuple[Record, list[Record]]] = {}
        for name, record in self._used:
            run = self.run_of(name, record)
            runs.setdefault((name, run["date"]), (run, []))[1].append(record)
        self._used.clear()
        headers = [run for run, _ in runs.values()]
        names = list(dict.fromkeys(name for name, _ in runs))
        machines = sorted({run["machine"]["processor"] for run in headers})
        said = [
            ", ".join(f"`python -m benchmarks {name}`" for name in names),
            _between(sorted({run["date"][:10] for run in headers})),
            " and ".join(machines),
            f"{_between(sorted({run['threads'] for run in headers}))} threads",
            "results: "
            + ", ".join(f"[{name}]({to_root}benchmarks/results/{name}.md)" for name in names),
        ]
        old = any(age(records, run.get("sources", {})) for run, records in runs.values())
        line = "; ".join(said) + "."
        return f"{line} Some of these figures are older than the code." if old else line


def _between(values: Sequence[Any]) -> str:
    return str(values[0]) if len(values) == 1 else f"{values[0]} to {values[-1]}"
