"""The span fit by itself: how near its floor, how it grows, what a search and its features cost.

Each part can be run alone (``--parts``); it then replaces its own figures in the results and leaves
the others. Every measurement has a process of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import span_cv, span_floor, span_map
from benchmarks.peers import MergedSession
from benchmarks.report import Table, gap_of, number, ratio, text_of, value_of
from benchmarks.runner import Measurement, Record, Session, option_parser, stem_from

OURS = "widemargin.MarginClassifier"
MEAN_DISTANCE = {"mean_distance": 1.0}
FLOOR_SETS = (("covtype_100000", 1.0), ("covtype_100000", 10.0), ("mnist_unit", 10.0))
ALL_ROWS = 581_012
SCALE_ROWS = (50_000, 100_000, 200_000, 400_000, ALL_ROWS)
SCALE_BASE, SCALE_ASKED = 100_000, 6.5
CV_SETS = ("covtype_20000", "ijcnn1_40000", "letter")
GRID_SET = "optdigits"
MAP_SETS = (("letter", 3), ("mnist_unit", 1))
# Fits of few rows use float64, and would leave the loops for float32 to be compiled in the timed
# fit: so many kernel values it takes.
WARMUP_VALUES = 4_500_000


@dataclass(frozen=True)
class Part(Measurement):
    """A measurement of one part of the benchmark."""

    part: str = ""


def ours(**params: Any) -> dict[str, Any]:
    return {"engine": "span", "gamma": MEAN_DISTANCE, "random_state": 0, **params}


def warmup_rows(n_vectors: int) -> int:
    return WARMUP_VALUES // n_vectors


def floor_plan(quick: bool, repeats: int) -> list[Part]:
    vectors = 500 if quick else 2000
    return [
        Part(
            "fit",
            dataset,
            OURS,
            ours(C=C, max_vectors=vectors),
            repeats=repeats,
            rows=10_000 if quick else None,
            warmup_rows=warmup_rows(vectors),
            point={"C": C},
            task="benchmarks.span_floor.measure",
            part="floor",
        )
        for dataset, C in FLOOR_SETS
    ]


def scale_plan(quick: bool, repeats: int) -> list[Part]:
    vectors = 500 if quick else 1000
    return [
        Part(
            "fit",
            "covtype_all",
            OURS,
            ours(C=1.0, max_vectors=vectors, memory="1GB"),
            repeats=repeats if rows <= SCALE_BASE else 1,
            rows=rows,
            warmup_rows=warmup_rows(vectors),
            point={"rows": rows},
            part="scale",
        )
        for rows in ((10_000, 20_000, 40_000) if quick else SCALE_ROWS)
    ]


def cv_plan(quick: bool, repeats: int) -> list[Part]:
    params = {"Cs": 3, "cv": 3, "max_vectors": 200} if quick else {}
    params = {"Cs": 10, "cv": 5, "max_vectors": 1000, **params}
    labels = [*((dataset, "search") for dataset in CV_SETS), (GRID_SET, span_cv.GRID)]
    return [
        Part(
            label,
            dataset,
            "widemargin.MarginClassifierCV",
            params,
            repeats=repeats,
            rows=2000 if quick else None,
            warmup_rows=1000 if quick else warmup_rows(params["max_vectors"]),
            task="benchmarks.span_cv.measure",
            part="cv",
        )
        for dataset, label in labels
    ]


def map_plan(quick: bool, mnist_rows: int | None) -> list[Part]:
    size, rows = (200, {}) if quick else (1000, {"mnist_unit": mnist_rows})
    return [
        Part(
            label,
            dataset,
            "widemargin.SpanMap",
            {"size": size, "C": 10.0, "seeds": 1 if quick else seeds},
            rows=2000 if quick else rows.get(dataset),
            warmup_rows=1000,
            task="benchmarks.span_map.measure",
            part="map",
        )
        for (dataset, seeds), label in itertools.product(
            MAP_SETS, (span_map.NYSTROEM, *span_map.STRATEGIES)
        )
    ]


# ---------------------------------------------------------------- growth with the rows


def growth_exponent(rows: Sequence[float], seconds: Sequence[float]) -> float | None:
    """p of the best seconds ∝ rows^p, by least squares of the logarithms."""
    if len(set(rows)) < 2:
        return None
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


def scale_table(records: Sequence[Record]) -> Table:
    records = sorted(records, key=lambda record: record["rows"])
    finished = [record for record in records if record["status"] == "ok"]
    seconds = {record["n_train"]: record["fit_seconds"] for record in finished}
    base = seconds.get(SCALE_BASE)
    rows = [
        [
            f"{record['rows']:,}",
            text_of(record, "fit_seconds"),
            number(ratio(value_of(record, "fit_seconds"), base), unit="×"),
            text_of(record, "peak_mb", 0),
            text_of(record, "data_mb", 0),
            text_of(record, "n_vectors", 0),
            gap_of(record),
            number(passes(record), 0),
        ]
        for record in records
    ]
    header = ["rows", "fit, s", f"over {SCALE_BASE:,} rows", "peak above data, MB", "data, MB"]
    header += ["vectors", "gap", "kernel values / (rows × vectors), %"]
    exponent = growth_exponent(list(seconds), list(seconds.values()))
    whole = number(ratio(seconds.get(ALL_ROWS), base), unit="×")
    note = (
        f'covtype, C = 1, γ = 1/β, memory="1GB". All rows over {SCALE_BASE:,}: {whole} (asked: '
        f"at most {SCALE_ASKED:g}×). Growth exponent, by least squares of the logarithms: "
        f"{number(exponent)}. The last column is above 100 % where kernel values did not fit "
        "into memory and were computed again. Every fit but those on up to "
        f"{SCALE_BASE:,} rows is a single one."
    )
    return Table("Growth with the rows", header, rows, [note])


def passes(record: Record) -> float | None:
    """Kernel values computed, in percent of one value a row and vector that was kept."""
    certificate = value_of(record, "certificate")
    if not certificate:
        return None
    return 100.0 * certificate["n_kernel"] / (record["n_train"] * certificate["n_vectors"])


# ---------------------------------------------------------------- all parts


TABLES: dict[str, Callable[[Sequence[Record]], list[Table]]] = {
    "floor": span_floor.tables,
    "scale": lambda records: [scale_table(records)],
    "cv": span_cv.tables,
    "map": span_map.tables,
}
PARTS = tuple(TABLES)


def plan(
    parts: Iterable[str], quick: bool, repeats: int, mnist_rows: int | None
) -> list[Measurement]:
    plans = {
        "floor": lambda: floor_plan(quick, repeats),
        "scale": lambda: scale_plan(quick, repeats),
        "cv": lambda: cv_plan(quick, repeats),
        "map": lambda: map_plan(quick, mnist_rows),
    }
    return [measurement for part in PARTS if part in parts for measurement in plans[part]()]


def cell_of(record: Record) -> tuple[Any, ...]:
    return record["part"], record["dataset"], record["label"], str(record["point"])


def merged(records: Sequence[Record], record: Record) -> list[Record]:
    """The records with ``record`` in its cell."""
    return list(({cell_of(old): old for old in records} | {cell_of(record): record}).values())


class SpanSession(MergedSession):
    def keep(self, record: Record) -> None:
        self.records = merged(self.records, {**record, "run": self.header["date"]})

    @staticmethod
    def one_line(record: Record) -> str:
        if record["status"] != "ok" or record["part"] == "scale":
            return Session.one_line(record)
        return f"{record['accuracy']:.2f} %, fit {record['fit_seconds']:.2f} s"


def all_tables(records: Sequence[Record]) -> list[Table]:
    found = []
    for part, tables in TABLES.items():
        mine = [record for record in records if record["part"] == part]
        found += tables(mine) if mine else []
    return found


def main(argv: Sequence[str]) -> None:
    parser = option_parser("span", "the span fit: floor, growth, cross-validation, features")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--repeats", type=int, help="fits, of which the median counts (3)")
    parser.add_argument(
        "--map-rows", type=int, default=20_000, help="rows of mnist_unit in the part map"
    )
    options = parser.parse_args(argv)
    stem = stem_from(options, "span")
    session = SpanSession(stem, options.timeout, options.threads, options.results)
    repeats = options.repeats or (1 if options.quick else 3)
    session.run(plan(options.parts, options.quick, repeats, options.map_rows))
    session.write("The span fit", all_tables(session.records))
