"""How extraction grows with the rows: seconds and memory from 1,000 to 500,000 rows of covtype."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.pictures import panels, saved
from benchmarks.harness.records import Record, finished, growth_of, text_of
from benchmarks.harness.report import Table, number, shown
from benchmarks.mmda.extract import Extraction
from benchmarks.mmda.plan import OURS, SPAN_WARMUP_ROWS, ours

PART = "scale"
DATASET = "covtype_all"
ROWS = (1000, 3000, 10_000, 30_000, 100_000, 300_000, 500_000)
QUICK_ROWS = (1000, 2000, 4000)
SOLVERS = ("span", "core")
# Below this the rows cost less than what every fit does.
MANY_ROWS = 10_000
DIRECTIONS = 5
ASKED = 1.1


def plan(quick: bool) -> list[Extraction]:
    """Few rows first, so that a run cut short has the cheap part of both lines."""
    return [
        Extraction(
            solver,
            DATASET,
            OURS,
            ours(solver, 2 if quick else DIRECTIONS, quick),
            rows=rows,
            warmup_rows=SPAN_WARMUP_ROWS if solver == "span" else 200,
            point={"rows": rows},
            part=PART,
            transform=False,
        )
        for rows in (QUICK_ROWS if quick else ROWS)
        for solver in SOLVERS
    ]


def line_of(records: Sequence[Record], solver: str) -> list[Record]:
    mine = [record for record in finished(records) if record["label"] == solver]
    return sorted(mine, key=lambda record: record["n_train"])


def exponent_of(records: Sequence[Record], solver: str, least: int = 0) -> float | None:
    """Growth of the seconds with the rows, from ``least`` rows up."""
    return growth_of(r for r in line_of(records, solver) if r["n_train"] >= least)


def table(records: Sequence[Record]) -> Table:
    rows = []
    for record in sorted(records, key=lambda r: (SOLVERS.index(r["label"]), r["rows"])):
        most = record.get("evaluations", {})
        last = most[max(most, key=int)] if most else {}
        rows.append(
            [
                record["label"],
                f"{record['rows']:,}",
                text_of(record, "fit_seconds"),
                number(record.get("peak_mb"), 0),
                number(record.get("data_mb"), 0),
                number(last.get("each"), 0),
                number(last.get("distinct"), 0),
                shown(record.get("gap"), ".1e"),
                ", ".join(f"{reason} ({n})" for reason, n in record.get("stopped", {}).items()),
            ]
        )
    header = ["solver", "rows", "extraction, s", "peak above data, MB", "data, MB"]
    header += ["vectors a feature", "in all", "largest gap", "stopped"]
    growth = "; ".join(
        f"{solver} {number(exponent_of(records, solver))}, from {MANY_ROWS:,} rows "
        f"{number(exponent_of(records, solver, MANY_ROWS))}"
        for solver in SOLVERS
    )
    notes = [
        f"covtype, class 2 against the rest, standardised; {DIRECTIONS} directions, Gaussian, "
        "γ = 1/β, C = 0.5 (the paper's 1); span with at most 1,000 vectors, core with ε = 0.001. "
        "One fit each, after a warm-up. Growth exponent of the seconds by least squares of the "
        f"logarithms: {growth} (asked: at most {ASKED:g})."
    ]
    return Table("Growth with the rows", header, rows, notes)


def figure(records: Sequence[Record], path: Path) -> Path | None:
    lines = {solver: line_of(records, solver) for solver in SOLVERS}
    if not any(lines.values()):
        return None
    figure, (axes,) = panels(1, 2, (9, 3.6))
    for solver, line in lines.items():
        rows = [record["n_train"] for record in line]
        label = f"{solver}, exponent {number(exponent_of(records, solver))}"
        axes[0].plot(rows, [r["fit_seconds"] for r in line], marker="o", label=label)
        axes[1].plot(rows, [max(r["peak_mb"], 1.0) for r in line], marker="o", label=solver)
    finished = [record for line in lines.values() for record in line]
    least = min(finished, key=lambda record: record["n_train"])
    rows = sorted({record["n_train"] for record in finished})
    straight = [least["fit_seconds"] * n / least["n_train"] for n in rows]
    axes[0].plot(rows, straight, color="#777777", linestyle=":", label="exponent 1")
    labels = ("extraction (s)", "peak memory above the data (MB)")
    for panel, label in zip(axes, labels, strict=True):
        panel.set(xscale="log", yscale="log", xlabel="rows", ylabel=label)
        panel.grid(alpha=0.3)
        panel.legend(fontsize="small")
    return saved(figure, path)
