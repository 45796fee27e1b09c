"""The page of the comparison with peers: summary, Pareto fronts, a table for each γ and C."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.records import (
    Record,
    finished,
    fit_ratio,
    microseconds,
    ordered,
    text_or_status,
)
from benchmarks.harness.report import MISSING, Table, bullets, number, width
from benchmarks.peers.plan import MACHINES, OURS, SETS
from benchmarks.peers.plots import error_of, front_of

LABELS = [machine.label for machine in MACHINES.values()]


def setting_of(record: Record) -> tuple[float, float]:
    """γ as a multiple of 1/β, and C."""
    return record["point"]["gamma_factor"], record["point"]["C"]


def line(record: Record, bases: Sequence[Record | None]) -> list[str]:
    error = None if record.get("accuracy") is None else error_of(record)
    return [
        record["label"],
        text_or_status(record, record.get("fit_seconds"), 3),
        *(number(fit_ratio(record, base), unit="×") for base in bases),
        text_or_status(record, microseconds(record), 1),
        text_or_status(record, error, 2),
        text_or_status(record, record.get("n_vectors"), 0),
        text_or_status(record, record.get("peak_mb"), 0),
    ]


def remarks(records: Sequence[Record]) -> list[str]:
    """Certificates, and why a figure is missing: one list below a table, or nothing."""
    lines = []
    for record in records:
        if record.get("certificate_line"):
            engine = f" ({record['engine']})" if record.get("engine") else ""
            lines.append(f"{record['label']}{engine}: {record['certificate_line']}")
        if record["status"] != "ok":
            lines.append(f"{record['label']}: {record['status']}, {record['message']}")
    return bullets(lines)


def cell_table(records: Sequence[Record]) -> Table:
    """The machines of one data set, width and C."""
    by_label = {record["label"]: record for record in records}
    mine = [by_label[label] for label in ordered(by_label, LABELS)]
    bases = [by_label.get(MACHINES[name].label) for name in OURS]
    dataset, (gamma_factor, C) = mine[0]["dataset"], setting_of(mine[0])
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
    done = finished(records)
    if done:
        best = min(done, key=lambda record: (error_of(record), record["fit_seconds"]))
        return f"{error_of(best):.2f} % in {best['fit_seconds']:,.2f} s"
    return records[0]["status"] if records else MISSING


def summary_table(records: Sequence[Record], sets: Sequence[str]) -> Table:
    labels = ordered((record["label"] for record in records), LABELS)

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
        for setting in sorted({setting_of(record) for record in mine}):
            found.append(cell_table([r for r in mine if setting_of(r) == setting]))
    return found
