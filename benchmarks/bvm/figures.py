"""Figures 1 to 4 of the BVM paper as plots: ``python -m benchmarks bvm --figures``.

Machines are those of the tables, as printed, at 2/β. Figure 2 sweeps ε on letter and usps, Figure 3
C on w3a, reuters and usps, and Figure 4 the number of rows on web. usps is 20,000 rows of the
paper's 266,079 (`benchmarks.harness.datasets.shifted`), and web is the first rows of w8a, as many
as w1a to w8a have; the last is four fifths of w8a, because the others test. C on an axis is the
paper's; ours runs at half of it. Figure 1 is a drawing: ``geometry.py`` has one from a run.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bvm.geometry import one_move_figure
from benchmarks.bvm.plan import QUICK_ROWS, WIDTHS
from benchmarks.harness.bvm_paper import epsilon_name
from benchmarks.harness.datasets import STANDARD
from benchmarks.harness.machines import VECTOR_MACHINES, libsvm, vector_machine
from benchmarks.harness.pictures import panels, saved
from benchmarks.harness.records import Record, finished, gap_of, of_part, text_of
from benchmarks.harness.report import Table
from benchmarks.harness.runner import Measurement, installed
from benchmarks.harness.sections import told
from benchmarks.harness.session import MergedSession, add_choice

USPS = "usps_shifted_20000"
EPSILON_SETS = ("letter" + STANDARD, USPS)
EPSILON_SWEEP = tuple(10.0**power for power in range(-8, 0))
C_SETS = ("w3a", "reuters", USPS)
C_SWEEP = tuple(10.0**power for power in range(-1, 5))
C_EPSILONS = (1e-3, 1e-4, 1e-5)
WEB = "w8a"
# w1a to w7a; w8a is all rows there are.
WEB_SIZES = (2477, 3470, 4912, 7366, 9888, 17188, 24692, 39799)
WEB_EPSILONS = (1e-3, 1e-4)

NOTES = (
    "As in the tables: machines as printed, one row at a time, γ = 2/β. Each picture says what the "
    "paper claims with it; `papers.md` says whether that holds.",
    *told(
        (
            "LASVM and SimpleSVM are not run: they are not to be had.",
            "usps is 20,000 random rows of the paper's 266,079, and 10,000 of its test rows.",
            "Figure 4 has random rows of w8a, as many as w1a to w8a, and a fifth of w8a tests: the "
            "paper's test part is not to be had.",
            "Figure 3 has C up to 1e4; machines that took longer than the time limit are left out.",
        )
    ),
)


@dataclass(frozen=True)
class Sweep:
    """A figure of the paper: a line for each machine over one number, a row of panels a set."""

    part: str
    figure: int
    axis: str
    axis_label: str
    claim: str


SWEEPS = (
    Sweep(
        "epsilon",
        2,
        "epsilon",
        "ε",
        "Paper: accurate for ε from 1e-8 to 1e-3; time and vectors are stable from 1e-4 down; "
        "about as many vectors; BVM almost ten times faster than CVM.",
    ),
    Sweep(
        "C",
        3,
        "C",
        "C (the paper's)",
        "Paper: BVM is about as accurate as LIBSVM for every C, except at ε = 1e-3 on w3a; time "
        "and vectors are comparable for ε ≤ 1e-4.",
    ),
    Sweep(
        "rows",
        4,
        "n",
        "training rows",
        "Paper: at ε = 1e-4 BVM and CVM are as accurate as LIBSVM, at 1e-3 they are poor; all "
        "scale well.",
    ),
)


def epsilon_sweep(
    sets: Sequence[str], epsilons: Sequence[float], rows: int | None
) -> list[Measurement]:
    """Loose ε first, so that a run cut short still has the cheap half of the picture."""
    return [
        printed(machine, dataset, e, "epsilon", {"epsilon": e}, label=machine, rows=rows)
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
            libsvm(dataset, C, gamma_factor=WIDTHS[0], part="C", rows=rows, point={"C": C}),
            *(
                printed("BVM", dataset, e, "C", {"C": C}, paper_C=C, rows=rows, label=named(e))
                for e in C_EPSILONS
            ),
        )
    ]


def rows_sweep(sizes: Sequence[int]) -> list[Measurement]:
    return [
        measurement
        for n in sizes
        for measurement in (
            libsvm(WEB, gamma_factor=WIDTHS[0], part="rows", rows=n, point={"n": n}),
            *(
                printed(machine, WEB, e, "rows", {"n": n}, rows=n, label=named(e, machine))
                for machine in VECTOR_MACHINES
                for e in WEB_EPSILONS
            ),
        )
    ]


def named(epsilon: float, machine: str = "BVM") -> str:
    return f"{machine} {epsilon_name(epsilon)}"


def printed(
    machine: str, dataset: str, epsilon: float, part: str, point: dict[str, float], **fields: Any
) -> Measurement:
    """A machine of the paper, as printed, at the width of the tables."""
    settings = {"gamma_factor": WIDTHS[0], "as_printed": True, "part": part, "point": point}
    return vector_machine(machine, dataset, epsilon=epsilon, **settings, **fields)


def sweep_table(title: str, records: Sequence[Record], axis: str) -> Table:
    rows = [
        [
            record["dataset"],
            f"{record['point'][axis]:,.0f}" if axis == "n" else f"{record['point'][axis]:.0e}",
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


def sweep_figure(records: Sequence[Record], sweep: Sweep, path: Path) -> Path | None:
    """Accuracy, time and vectors over ``point[axis]``: a row of panels a set, a line a label."""
    done = finished(records)
    if not done:
        return None
    datasets = list(dict.fromkeys(record["dataset"] for record in done))
    size = (12, 3.4 * len(datasets) + 0.6)
    figure, axes = panels(len(datasets), len(PANELS), size)
    for row, dataset in zip(axes, datasets, strict=True):
        mine = [record for record in done if record["dataset"] == dataset]
        for panel, (key, label, scale) in zip(row, PANELS, strict=True):
            for series in dict.fromkeys(record["label"] for record in mine):
                points = sorted(
                    (record["point"][sweep.axis], record[key])
                    for record in mine
                    if record["label"] == series and record[key] is not None
                )
                panel.plot(*zip(*points, strict=True), marker="o", markersize=4, label=series)
            panel.set(
                xscale="log", yscale=scale, xlabel=sweep.axis_label, ylabel=label, title=dataset
            )
            panel.grid(alpha=0.3)
    axes[0, 0].legend(fontsize="small")
    figure.suptitle(f"Figure {sweep.figure}. {sweep.claim}", fontsize="small", wrap=True)
    return saved(figure, path, dpi=110)


def add_parts(parser: argparse.ArgumentParser) -> None:
    parts = [sweep.part for sweep in SWEEPS]
    add_choice(parser, "--parts", parts, "PART", default=parts, of="of --figures: ")


def plan_of(options: argparse.Namespace) -> list[Measurement]:
    """The sweeps; ``--sets`` picks among their sets, ``--quick`` thins them."""
    rows = QUICK_ROWS if options.quick else None
    thin = slice(None, None, 3) if options.quick else slice(None)
    first, second = (
        [name for name in sets if options.sets is None or name in options.sets]
        for sets in (EPSILON_SETS, C_SETS)
    )
    sizes = WEB_SIZES[:2] if options.quick else WEB_SIZES
    plan = {
        "epsilon": epsilon_sweep(first, EPSILON_SWEEP[thin], rows),
        "C": C_sweep(second, C_SWEEP[thin], rows),
        "rows": rows_sweep(sizes) if options.sets is None or WEB in options.sets else [],
    }
    return [each for part in options.parts for each in plan[part]]


def run(options: argparse.Namespace) -> None:
    session = MergedSession.of(options, "bvm_figures")
    session.run(plan_of(options))
    drawn: list[Path | None] = []
    if installed("matplotlib"):
        drawn.append(one_move_figure(session.results / f"{session.name}_move.png"))
    tables, shown = [], ["![Figure 1](" + path.name + ")" for path in drawn if path is not None]
    for sweep in SWEEPS:
        records = of_part(session.records, sweep.part)
        if not records:
            continue
        tables.append(
            sweep_table(f"Figure {sweep.figure}: over {sweep.axis_label}", records, sweep.axis)
        )
        if installed("matplotlib"):
            path = session.results / f"{session.name}_{sweep.part}.png"
            found = sweep_figure(records, sweep, path)
            shown += [] if found is None else [f"![Figure {sweep.figure}]({found.name})"]
    session.write("The BVM paper's figures", tables, [*NOTES, *shown])
