"""How much an error depends on the draw: cells of the tables above the paper's, with other seeds.

RSVM and MRSVM take random rows, and SLMC and SKFD start from random rows or means; on Rätsch's sets
there are four to forty of them. The tables have one seed. Where one of their cells is above the
paper's, the same splits are measured with ten seeds: the paper's figure is a draw too.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec, build, percent
from benchmarks.harness.records import Record
from benchmarks.harness.report import Table, number
from benchmarks.slmc import papers as paper
from benchmarks.slmc.data import RAETSCH, split_of
from benchmarks.slmc.fit import Sparse, resolved
from benchmarks.slmc.plan import METHODS, measurement
from benchmarks.slmc.tables import NAMES, by_cell, mean_of

PART = "draws"
TASK = "benchmarks.slmc.draws.measure"
SEEDS = 10
# Points above the paper from which a cell is looked at.
NEAR = 0.5
DRAWN = ("rs", "mrs", "rsvm", "mrsvm", "slmc-random", "slmc-kmeans", "skfd")


def plan(records: Sequence[Record], sets: Sequence[str], names: Sequence[str]) -> list[Sparse]:
    """The cells above the paper's, as the tables have them."""
    results = by_cell(records)
    found = []
    for name in (each for each in DRAWN if each in names):
        for share in paper.SHARES:
            for dataset in (each for each in sets if each in RAETSCH):
                ours = mean_of(results, name, dataset, share)
                printed = paper.error(METHODS[name].label, dataset, share)
                if ours is None or printed is None or ours <= printed + NEAR:
                    continue
                one = measurement(name, dataset, share, records, PART)
                if one is not None:
                    splits = METHODS[name].splits(dataset)
                    found.append(replace(one, splits=splits, repeats=SEEDS, task=TASK))
    return found


def seeded(params: dict[str, Any], seed: int) -> dict[str, Any]:
    """The parameters with another seed; trials of one fit have seeds of their own."""
    seed *= params.get("trials", 1)
    if "random_state" in params:
        return {**params, "random_state": seed}
    return {**params, "params": {**params["params"], "random_state": seed}}


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: the mean error over the splits, for each seed."""
    parts = [split_of(spec["set_name"], data, number) for number in spec["splits"]]
    given = [resolved(spec, part) for part in parts]
    means: list[float] = []
    for seed in range(spec["repeats"]):
        errors = []
        for part, params in zip(parts, given, strict=True):
            machine = build(spec["estimator"], seeded(params, seed), part.X_train, spec["threads"])
            machine.fit(part.X_train, part.y_train)
            errors.append(100.0 - percent(machine.predict(part.X_test), part.y_test))
        means.append(statistics.mean(errors))
        keep({"means": means})
    return {"means": means}


def table(records: Sequence[Record]) -> Table:
    rows = []
    for record in records:
        share = record["point"]["share"]
        means = record.get("means", [])
        if not means:
            continue
        printed = paper.error(METHODS[NAMES[record["label"]]].label, record["dataset"], share)
        rows.append(
            [
                f"{record['dataset']}, {record['label']}, {100 * share:g} %",
                str(len(means)),
                number(statistics.mean(means), 1),
                number(statistics.stdev(means) if len(means) > 1 else None, 1),
                f"{min(means):.1f} to {max(means):.1f}",
                number(printed, 1),
            ]
        )
    header = ["set, method", "seeds", "mean error, %", "deviation", "least to most", "paper"]
    notes = [
        f"Cells of one seed that are more than {NEAR:g} points above the paper, with others: a "
        "figure for each seed, the mean over the splits. The deviation is that of these figures: "
        "what the draw of rows, or the start, makes of the same splits and parameters."
    ]
    return Table("Draws", header, rows, notes)
