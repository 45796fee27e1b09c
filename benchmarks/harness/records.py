"""Reading records: what a measurement leaves behind, a dict each.

A record has the fields of its measurement, ``status``, ``message``, and what the task found. Its
``estimator`` and ``task`` are the import paths of the day it was measured, which may have changed
since: nothing is looked up by them. A record is known by its part, set, label and point.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.harness.report import Table, number, shown

Record = dict[str, Any]


def of_part(records: Iterable[Record], part: str) -> list[Record]:
    return [record for record in records if record["part"] == part]


def finished(records: Iterable[Record]) -> list[Record]:
    return [record for record in records if record["status"] == "ok"]


def by_set_and_label(records: Iterable[Record]) -> dict[tuple[str, str], Record]:
    return {(record["dataset"], record["label"]): record for record in records}


# ---------------------------------------------------------------- keeping those of earlier runs


def cell_of(record: Record) -> tuple[Any, ...]:
    """What two measurements of one thing have in common."""
    return record.get("part"), record["dataset"], record["label"], str(record["point"])


def merged(records: Sequence[Record], record: Record) -> list[Record]:
    """The records with ``record`` in its cell; a skipped one never replaces a measured one."""
    cells = {cell_of(old): old for old in records}
    if record["status"] != "skipped" or cell_of(record) not in cells:
        cells[cell_of(record)] = record
    return list(cells.values())


# ---------------------------------------------------------------- figures of a record


def value_of(record: Record | None, key: str) -> Any:
    """A field of a finished record; None where it was not run or did not finish."""
    return None if record is None or record["status"] != "ok" else record[key]


def text_of(record: Record | None, key: str, digits: int = 2, unit: str = "") -> str:
    """The same as text, or why there is none."""
    return text_or_status(record, value_of(record, key), digits, unit)


def text_or_status(
    record: Record | None, value: float | None, digits: int = 2, unit: str = ""
) -> str:
    """A figure, also one from before a time-out, or else why there is none."""
    if value is None and record is not None and record["status"] != "ok":
        return str(record["status"])
    return number(value, digits, unit)


def gap_of(record: Record | None) -> str:
    certificate = value_of(record, "certificate")
    return shown(certificate.get("gap") if isinstance(certificate, dict) else None, ".1e")


def microseconds(record: Record | None) -> float | None:
    """Prediction, for a test row."""
    seconds = value_of(record, "predict_seconds")
    return None if record is None or seconds is None else 1e6 * seconds / record["n_test"]


def ratio(value: float | None, base: float | None) -> float | None:
    return None if value is None or not base else value / base


def fit_ratio(record: Record | None, base: Record | None) -> float | None:
    """Fit time over that of ``base``; None where one is missing or the runs differ."""
    if record is None or base is None or record["run"] != base["run"]:
        return None
    return ratio(record.get("fit_seconds"), base.get("fit_seconds"))


# ---------------------------------------------------------------- several records


def ordered(found: Iterable[Any], known: Sequence[Any]) -> list[Any]:
    """Without repetition, first those that are known, in that order, then the others."""
    found = set(found)
    return [*(item for item in known if item in found), *sorted(found - set(known))]


def growth_exponent(rows: Sequence[float], seconds: Sequence[float]) -> float | None:
    """p of the best seconds ∝ rows^p, by least squares of the logarithms."""
    if len(set(rows)) < 2:
        return None
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


def growth_of(records: Iterable[Record]) -> float | None:
    """The growth exponent of the fits that finished."""
    done = finished(records)
    return growth_exponent([r["n_train"] for r in done], [r["fit_seconds"] for r in done])


def tables_of_sets(
    results: dict[Any, Record],
    sets: Sequence[str],
    makers: Sequence[Callable[[Any, Sequence[str]], Table]],
) -> list[Table]:
    """Tables with a column for each set that was measured; a set is second in the keys."""
    there = [dataset for dataset in sets if any(dataset == key[1] for key in results)]
    return [make(results, there) for make in makers] if there else []
