"""Areas under curves and times, a set a line; what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.harness.datasets import OUTLIERS
from benchmarks.harness.records import Record, of_part, text_or_status
from benchmarks.harness.report import MISSING, Table, number
from benchmarks.harness.targets import Line, asked_table, judged, line
from benchmarks.outliers.detectors import ALIKE, DETECTORS, FOREST, KERNEL, KERNEL_TENTH, OURS

FIT = "fit"
RACE = "race"
RACE_SET = "ad_cover"
RACE_ROWS = 50_000
LARGE = ("ad_cover", "ad_donors", "ad_http")


def figure(record: Record, name: str, key: str) -> float | None:
    """A figure of a detector on a set, also from a process that ran out of time later."""
    value: float | None = record.get("machines", {}).get(name, {}).get(key)
    return value


def common(records: Sequence[Record], names: Sequence[str], key: str) -> dict[str, list[float]]:
    """The figures of some detectors on the sets where all of them have one."""
    found: dict[str, list[float]] = {name: [] for name in names}
    for record in records:
        values = [figure(record, name, key) for name in names]
        if None not in values:
            for name, value in zip(names, values, strict=True):
                found[name].append(float(value or 0.0))
    return found


def detector_table(records: Sequence[Record], key: str, title: str, digits: int) -> Table:
    names = [name for name in DETECTORS if any(name in one["names"] for one in records)]
    rows = [
        [
            record["dataset"],
            f"{record['n_rows']:,} × {record['n_features']}" if "n_rows" in record else MISSING,
            number(record.get("share")),
            *(text_or_status(record, figure(record, name, key), digits) for name in names),
        ]
        for record in records
    ]
    if key != "fit_seconds":
        # Neighbours are left out on many rows.
        means = common(records, [one for one in names if DETECTORS[one].most_rows is None], key)
        shown = [
            number(float(np.mean(means[name])) if means[name] else None) if name in means else ""
            for name in names
        ]
        rows.append([f"mean of {len(means[names[0]])}", "", "", *shown])
    return Table(title, ["set", "rows × columns", "anomalies, %", *names], rows)


def race_table(records: Sequence[Record]) -> Table:
    rows = [
        [
            name,
            text_or_status(record, figure(record, name, "fit_seconds")),
            text_or_status(record, figure(record, name, "auc")),
        ]
        for record in of_part(records, RACE)
        for name in record["names"]
    ]
    title = f"{RACE_ROWS:,} random rows of {RACE_SET}, all of them for each"
    return Table(title, ["detector", "fit, s", "ROC AUC, %"], rows)


# ---------------------------------------------------------------- what was asked


def time_line(records: Sequence[Record], dataset: str) -> Line:
    mine = [figure(one, OURS, "fit_seconds") for one in records if one["dataset"] == dataset]
    seconds = mine[0] if mine else None
    met = None if seconds is None else seconds < 10.0
    return line(f"4. {dataset} fitted in under 10 s", number(seconds, 2, " s"), met)


def mean_line(records: Sequence[Record], peer: str) -> Line:
    found = common(records, (OURS, peer), "auc")
    seen, whole = len(found[OURS]), len(OUTLIERS)
    asked = f"4. mean ROC AUC over {whole} sets at least that of {peer}"
    if not seen:
        return line(asked, MISSING, None)
    ours, theirs = float(np.mean(found[OURS])), float(np.mean(found[peer]))
    said = f"{ours:.2f} against {theirs:.2f}" + (f" on {seen}" if seen < whole else "")
    return line(asked, said, judged(ours >= theirs, seen == whole))


def race_line(records: Sequence[Record], name: str) -> Line:
    rows = f"{RACE_ROWS:,} rows"
    asked = f"4. {name}: 20 times faster than OneClassSVM on {rows}, AUC at most 0.5 below"
    ours: dict[str, Any] = {}
    theirs: dict[str, Any] = {}
    for record in of_part(records, RACE):
        ours |= record.get("machines", {}).get(name, {})
        theirs |= record.get("machines", {}).get(KERNEL_TENTH, {})
    if not ours or "auc" not in theirs:
        return line(asked, MISSING, None)
    gain, difference = theirs["fit_seconds"] / ours["fit_seconds"], ours["auc"] - theirs["auc"]
    said = f"{gain:.1f}×, {difference:+.2f} points"
    return line(asked, said, gain >= 20.0 and difference >= -0.5)


def targets(records: Sequence[Record]) -> Table:
    fits = of_part(records, FIT)
    lines = [time_line(fits, dataset) for dataset in LARGE]
    lines += [mean_line(fits, peer) for peer in (KERNEL, KERNEL_TENTH, FOREST)]
    return asked_table([*lines, *(race_line(records, name) for name in (OURS, ALIKE))])
