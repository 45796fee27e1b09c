"""Ratios of fit times and differences of accuracies, a set a line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.harness.records import Record, finished
from benchmarks.harness.report import Table, number
from benchmarks.harness.targets import Line, asked_table, line
from benchmarks.middle.fit import GRID, INTELEX, INTELEX_GRID, LIBSVM, NYSTROEM, OURS, TREES

# Rows from which fit times are compared as ratios only.
MANY = 1000
# Threads from which more is asked.
MANY_THREADS = 16
# Seconds below which a fit is short whatever the ratio.
SHORT = 5e-3


def mean_ratio(ratios: Sequence[float]) -> float | None:
    """The geometric mean."""
    return float(np.exp(np.mean(np.log(ratios)))) if len(ratios) else None


def ratio_of(record: Record, peer: str) -> float | None:
    """Our fit time over a peer's."""
    found = record["machines"]
    if OURS not in found or peer not in found:
        return None
    return found[OURS]["fit_seconds"] / found[peer]["fit_seconds"]


def fit_table(records: Sequence[Record], C: float, threads: int) -> Table:
    rows = []
    for record in finished(records):
        found = record["machines"]
        ours = found.get(OURS, {})
        rows.append(
            [
                record["set_name"],
                f"{record['n_rows']:,} × {record['n_features']:,}, {record['n_classes']}",
                f"{ours.get('engine', '')} {ours.get('multi_class', '')}",
                number(ours.get("fit_seconds"), 3),
                *(
                    number(found.get(name, {}).get("fit_seconds"), 3)
                    for name in (LIBSVM, INTELEX, NYSTROEM, TREES)
                ),
                number(ratio_of(record, LIBSVM), 2, "×"),
                *(
                    number(found.get(name, {}).get("accuracy"))
                    for name in (OURS, LIBSVM, INTELEX, NYSTROEM, TREES)
                ),
            ]
        )
    header = ["set", "rows × columns, classes", "ours", "fit, s", LIBSVM, INTELEX, NYSTROEM, TREES]
    header += ["over LIBSVM", "accuracy, %", LIBSVM, INTELEX, NYSTROEM, TREES]
    return Table(f"C = {C:g}, {threads} threads", header, rows)


def search_table(records: Sequence[Record], threads: int) -> Table:
    rows = []
    for record in finished(records):
        found = record["machines"]
        mine, peer = found.get(OURS, {}), found.get(GRID, {})
        rows.append(
            [
                record["set_name"],
                f"{record['n_rows']:,} × {record['n_features']:,}, {record['n_classes']}",
                mine.get("engine", ""),
                number(mine.get("fit_seconds")),
                number(peer.get("fit_seconds")),
                number(found.get(INTELEX_GRID, {}).get("fit_seconds")),
                number(1.0 / (ratio_of(record, GRID) or np.nan), 1, "×"),
                number(mine.get("best_score")),
                number(peer.get("best_score")),
                number(mine.get("accuracy")),
                number(peer.get("accuracy")),
            ]
        )
    header = ["set", "rows × columns, classes", "ours", "search, s", GRID, INTELEX_GRID]
    header += ["faster than GridSearchCV", "best score, %", GRID, "accuracy, %", GRID]
    title = f"Search over 5 values of C, 4 widths, 3 folds, {threads} threads"
    return Table(title, header, rows)


def asked_lines(records: Sequence[Record], C: float, threads: int) -> list[Line]:
    done = [record for record in finished(records) if ratio_of(record, LIBSVM) is not None]
    large = [record for record in done if record["n_rows"] >= MANY]
    ratios = {record["set_name"]: ratio_of(record, LIBSVM) or 0.0 for record in large}
    mean = mean_ratio(list(ratios.values()))
    slow = [f"{name} {value:.2f}" for name, value in ratios.items() if value > 1.3]
    late = [
        record["set_name"]
        for record in done
        if record["n_rows"] < MANY
        and (ratio_of(record, LIBSVM) or 0.0) > 1.5
        and record["machines"][OURS]["fit_seconds"] > SHORT
    ]
    lost = {
        record["set_name"]: record["machines"][LIBSVM]["accuracy"]
        - record["machines"][OURS]["accuracy"]
        for record in done
    }
    below = [f"{name} {value:.2f}" for name, value in lost.items() if value > 0.5]
    gained = -float(np.mean(list(lost.values()))) if lost else None
    most = 0.7 if threads < MANY_THREADS else 0.25
    about = f"C = {C:g}, {threads} threads"
    return [
        line(
            f"{about}: geometric mean over LIBSVM from {MANY:,} rows at most {most:g}",
            number(mean, 2, "×"),
            None if mean is None else mean <= most,
        ),
        line(f"{about}: none above 1.3", "; ".join(slow) or "none", not slow),
        line(f"{about}: smaller sets at most 1.5, or 5 ms", "; ".join(late) or "all", not late),
        line(
            f"{about}: mean accuracy not below LIBSVM's",
            number(gained, 2, " points"),
            None if gained is None else gained >= 0.0,
        ),
        line(f"{about}: none more than 0.5 points below", "; ".join(below) or "none", not below),
    ]


def faster_lines(records: Sequence[Record], threads: int) -> list[Line]:
    """What was asked of searches."""
    ratios = {
        record["set_name"]: 1.0 / ratio
        for record in finished(records)
        if record["n_rows"] >= MANY and (ratio := ratio_of(record, GRID))
    }
    mean = mean_ratio(list(ratios.values()))
    slow = [f"{name} {value:.1f}" for name, value in ratios.items() if value < 5.0]
    return [
        line(
            f"search, {threads} threads: 5 times as fast as GridSearchCV from {MANY:,} rows, mean",
            number(mean, 1, "×"),
            None if mean is None else mean >= 5.0,
        ),
        line(f"search, {threads} threads: the same on each", "; ".join(slow) or "all", not slow),
    ]


def asked(
    fits: dict[tuple[int, float], Sequence[Record]], searches: dict[int, Sequence[Record]]
) -> Table:
    lines = [each for (t, C), records in fits.items() for each in asked_lines(records, C, t)]
    lines += [each for t, records in searches.items() for each in faster_lines(records, t)]
    return asked_table(lines)
