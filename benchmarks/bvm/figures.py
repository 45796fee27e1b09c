"""Figures 2 and 3 of the BVM paper as plots: ``python -m benchmarks bvm --figures``.

Figure 2 sweeps ε (the paper: letter and its 266,079-row usps, which is not to be had; here letter
and ijcnn1). Figure 3 sweeps C (the paper: w3a, reuters, usps; here 5,000 rows of w8a, and reuters).
C on the axis is the paper's; ours runs at half of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bvm.plan import QUICK_ROWS
from benchmarks.harness.bvm_paper import epsilon_name
from benchmarks.harness.machines import VECTOR_MACHINES, libsvm, vector_machine
from benchmarks.harness.pictures import panels, saved
from benchmarks.harness.records import Record, finished, gap_of, text_of
from benchmarks.harness.report import Table
from benchmarks.harness.runner import Measurement
from benchmarks.harness.session import Session

EPSILON_SETS = ("letter", "ijcnn1")
EPSILON_SWEEP = tuple(10.0**power for power in range(-8, 0))
C_SETS = ("w8a_5000", "reuters")
C_SWEEP = tuple(10.0**power for power in range(-1, 5))
C_EPSILONS = (1e-3, 1e-4, 1e-5)


def epsilon_sweep(
    sets: Sequence[str], epsilons: Sequence[float], rows: int | None
) -> list[Measurement]:
    """Loose ε first, so that a run cut short still has the cheap half of the picture."""
    return [
        vector_machine(machine, dataset, epsilon=e, label=machine, rows=rows, point={"epsilon": e})
        for dataset in sets
        for e in sorted(epsilons, reverse=True)
        for machine in VECTOR_MACHINES
    ]


def C_sweep(sets: Sequence[str], values: Sequence[float], rows: int | None) -> list[Measurement]:
    return [
        measurement
        for dataset in sets
        for C in values
        for measurement in (
            libsvm(dataset, C, rows=rows, point={"C": C}),
            *(vector_machine("BVM", dataset, C, e, rows=rows, point={"C": C}) for e in C_EPSILONS),
        )
    ]


def sweep_table(title: str, records: Sequence[Record], axis: str) -> Table:
    rows = [
        [
            record["dataset"],
            f"{record['point'][axis]:.0e}",
            record["label"],
            text_of(record, "accuracy"),
            text_of(record, "fit_seconds"),
            text_of(record, "n_vectors", digits=0),
            gap_of(record),
        ]
        for record in records
    ]
    header = ["set", axis, "machine", "accuracy, %", "fit, s", "vectors", "gap"]
    return Table(title, header, rows)


PANELS = (
    ("accuracy", "test accuracy (%)", "linear"),
    ("fit_seconds", "fit (s)", "log"),
    ("n_vectors", "vectors", "log"),
)


def sweep_figure(records: Sequence[Record], axis: str, axis_label: str, path: Path) -> Path | None:
    """Accuracy, time and vectors over ``point[axis]``: a row of panels a set, a line a label."""
    done = finished(records)
    if not done:
        return None
    datasets = list(dict.fromkeys(record["dataset"] for record in done))
    size = (12, 3.4 * len(datasets))
    figure, axes = panels(len(datasets), len(PANELS), size, layout=None)
    for row, dataset in zip(axes, datasets, strict=True):
        mine = [record for record in done if record["dataset"] == dataset]
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
    return saved(figure, path, dpi=110)


def run(options: argparse.Namespace) -> None:
    """Both sweeps; ``--sets`` picks among their sets, ``--quick`` thins them."""
    rows = QUICK_ROWS if options.quick else None
    thin = slice(None, None, 3) if options.quick else slice(None)
    first, second = (
        [name for name in sets if options.sets is None or name in options.sets]
        for sets in (EPSILON_SETS, C_SETS)
    )
    plan = {
        "epsilon": epsilon_sweep(first, EPSILON_SWEEP[thin], rows),
        "C": C_sweep(second, C_SWEEP[thin], rows),
    }
    session = Session.of(options, "bvm_figures")
    session.run([measurement for sweep in plan.values() for measurement in sweep])

    tables, notes = [], [f"Figure 3 uses ε = {', '.join(map(epsilon_name, C_EPSILONS))} for BVM."]
    for axis, figure, label in (("epsilon", 2, "ε"), ("C", 3, "C (the paper's)")):
        records = [record for record in session.records if axis in record["point"]]
        if not records:
            continue
        tables.append(sweep_table(f"Figure {figure}: over {label}", records, axis))
        path = sweep_figure(records, axis, label, session.results / f"{session.name}_{axis}.png")
        if path is not None:
            notes.append(f"![Figure {figure}]({path.name})")
    session.write("The BVM paper's figures", tables, notes)
