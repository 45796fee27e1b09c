"""Figures 2 and 3 of the BVM paper as plots: ``python -m benchmarks bvm --figures``.

Figure 2 sweeps ε (the paper: letter and its 266,079-row usps, which is not to be had; here letter
and ijcnn1). Figure 3 sweeps C (the paper: w3a, reuters, usps; here 5,000 rows of w8a, and reuters).
C on the axis is the paper's; ours runs at half of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from benchmarks.bvm import MACHINES, QUICK_ROWS, libsvm, ours
from benchmarks.papers import epsilon_name
from benchmarks.report import Table, gap_of, sweep_figure, text_of
from benchmarks.runner import Measurement, Record, session_from

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
        ours(machine, dataset, epsilon=e, label=machine, rows=rows, point={"epsilon": e})
        for dataset in sets
        for e in sorted(epsilons, reverse=True)
        for machine in MACHINES
    ]


def C_sweep(sets: Sequence[str], values: Sequence[float], rows: int | None) -> list[Measurement]:
    return [
        measurement
        for dataset in sets
        for C in values
        for measurement in (
            libsvm(dataset, C, rows=rows, point={"C": C}),
            *(ours("BVM", dataset, C, e, rows=rows, point={"C": C}) for e in C_EPSILONS),
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
    session = session_from(options, "bvm_figures")
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
