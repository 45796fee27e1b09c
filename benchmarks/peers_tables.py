"""The page of the comparison with peers: summary, Pareto fronts, a table for each γ and C."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers_plan import MACHINES, OURS, SETS, cell_of
from benchmarks.peers_plots import error_of, front_of
from benchmarks.report import MISSING, Table, number, ratio
from benchmarks.runner import Record


def ordered(found: Iterable[Any], known: Sequence[Any]) -> list[Any]:
    """Without repetition, first those that are known, in that order, then the others."""
    found = set(found)
    return [*(item for item in known if item in found), *sorted(found - set(known))]


def width(gamma_factor: float) -> str:
    return f"γ = {gamma_factor:g}/β"


def fit_ratio(record: Record, base: Record | None) -> float | None:
    """Fit time over that of ``base``; None where one is missing or the runs differ."""
    if base is None or record["run"] != base["run"]:
        return None
    return ratio(record.get("fit_seconds"), base.get("fit_seconds"))


def field_text(record: Record, value: float | None, digits: int) -> str:
    """A figure, also one from before a time-out, or else why there is none."""
    if value is None and record["status"] != "ok":
        return str(record["status"])
    return number(value, digits)


def line(record: Record, bases: Sequence[Record | None]) -> list[str]:
    predict, accuracy = record.get("predict_seconds"), record.get("accuracy")
    per_row = None if predict is None else 1e6 * predict / record["n_test"]
    error = None if accuracy is None else error_of(record)
    return [
        record["label"],
        field_text(record, record.get("fit_seconds"), 3),
        *(number(fit_ratio(record, base), unit="×") for base in bases),
        field_text(record, per_row, 1),
        field_text(record, error, 2),
        field_text(record, record.get("n_vectors"), 0),
        field_text(record, record.get("peak_mb"), 0),
    ]


def remarks(records: Sequence[Record]) -> list[str]:
    """Certificates, and why a figure is missing: one list below a table, or nothing."""
    lines = []
    for record in records:
        if record.get("certificate_line"):
            engine = f" ({record['engine']})" if record.get("engine") else ""
            lines.append(f"- {record['label']}{engine}: {record['certificate_line']}")
        if record["status"] != "ok":
            lines.append(f"- {record['label']}: {record['status']}, {record['message']}")
    return ["\n".join(lines)] if lines else []


def cell_table(records: Sequence[Record]) -> Table:
    """The machines of one data set, width and C."""
    by_label = {record["label"]: record for record in records}
    order = ordered(by_label, [machine.label for machine in MACHINES.values()])
    mine = [by_label[label] for label in order]
    bases = [by_label.get(MACHINES[name].label) for name in OURS]
    dataset, gamma_factor, C, _ = cell_of(mine[0])
    header = ["machine", "fit, s", *(f"over {name}" for name in OURS), "predict, µs a row"]
    header += ["error, %", "vectors", "peak above data, MB"]
    title = f"{dataset}, {width(gamma_factor)}, C = {C:g}"
    return Table(title, header, [line(record, bases) for record in mine], remarks(mine))


def front_table(dataset: str, records: Sequence[Record], picture: Path | None) -> Table:
    """What no other machine and setting beats in both fit time and error."""
    rows = [
        [
            record["label"],
            width(record["point"]["gamma_factor"]),
            f"{record['point']['C']:g}",
            number(record["fit_seconds"], 3),
            number(error_of(record)),
            number(record["n_vectors"], 0),
        ]
        for record in front_of(records)
    ]
    title = f"{dataset}: Pareto front"
    notes = [f"![Error over fit time, {dataset}]({picture.name})"] if picture else []
    return Table(title, ["machine", "γ", "C", "fit, s", "error, %", "vectors"], rows, notes)


def best_text(records: Sequence[Record]) -> str:
    """The lowest error over all settings and the time of that fit, or why there is none."""
    finished = [record for record in records if record["status"] == "ok"]
    if finished:
        best = min(finished, key=lambda record: (error_of(record), record["fit_seconds"]))
        return f"{error_of(best):.2f} % in {best['fit_seconds']:,.2f} s"
    return records[0]["status"] if records else MISSING


def summary_table(records: Sequence[Record], sets: Sequence[str]) -> Table:
    labels = ordered(
        (record["label"] for record in records), [machine.label for machine in MACHINES.values()]
    )

    def cell(label: str, dataset: str) -> str:
        mine = [r for r in records if r["label"] == label and r["dataset"] == dataset]
        return best_text(mine)

    rows = [[label, *(cell(label, dataset) for dataset in sets)] for label in labels]
    return Table("Each machine at its lowest test error", ["machine", *sets], rows)


def tables(records: Sequence[Record], pictures: dict[str, Path | None]) -> list[Table]:
    """The summary; then of each data set the front and a table for each width and C."""
    sets = ordered((record["dataset"] for record in records), SETS)
    found = [summary_table(records, sets)]
    for dataset in sets:
        mine = [record for record in records if record["dataset"] == dataset]
        found.append(front_table(dataset, mine, pictures.get(dataset)))
        for cell in sorted({cell_of(record)[1:3] for record in mine}):
            found.append(cell_table([r for r in mine if cell_of(r)[1:3] == cell]))
    return found
