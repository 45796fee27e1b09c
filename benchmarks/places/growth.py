"""From disk on one machine: 10⁵, 10⁶ and 10⁷ rows, and what others do with them."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import (
    Record,
    growth_of,
    microseconds,
    of_part,
    ratio,
    text_of,
    text_or_status,
    value_of,
)
from benchmarks.harness.report import Table, number
from benchmarks.places.plan import (
    GAMMA_FACTOR,
    MEMORY,
    PYARROW,
    QUICK_ROWS,
    ROWS,
    SPAN,
    VECTORS,
    C,
    Place,
    on_rows,
    ours,
    remarks,
)

PART = "growth"
ON_DISK = "span, .npy"
FROM_PARQUET = "span, Parquet through Dask, no cluster"
LABELS = (ON_DISK, FROM_PARQUET)
PARQUET_ROWS = 1_000_000


def plan(quick: bool, repeats: int, most: int) -> list[Place]:
    """``most`` is the largest number of rows; fits of the fewest are repeated."""
    sizes = [rows for rows in (QUICK_ROWS if quick else ROWS) if rows <= most]
    test = {"test_rows": sizes[0] if quick and sizes else None}
    found = [
        on_rows(
            PART,
            ON_DISK,
            rows,
            ours(SPAN, quick),
            task="benchmarks.places.fit.on_disk",
            repeats=repeats if rows == sizes[0] else 1,
            **test,
        )
        for rows in sizes
    ]
    for rows in [rows for rows in sizes if rows == (QUICK_ROWS[0] if quick else PARQUET_ROWS)]:
        found.append(
            on_rows(
                PART,
                FROM_PARQUET,
                rows,
                ours(SPAN, quick),
                task="benchmarks.places.fit.on_parquet",
                requires=PYARROW,
                **test,
            )
        )
    return found


def line_of(record: Record) -> list[str]:
    each = ratio(value_of(record, "fit_seconds"), value_of(record, "n_train"))
    return [
        f"{record['rows']:,}",
        record["label"],
        text_of(record, "fit_seconds"),
        number(None if each is None else 1e6 * each),
        text_of(record, "accuracy"),
        text_or_status(record, microseconds(record), 1),
        text_of(record, "resident_mb", 0),
        text_of(record, "anonymous_mb", 0),
    ]


HEADER = [
    *("rows", "fit of", "fit, s", "fit, µs a row", "accuracy, %", "predict, µs a row"),
    *("peak of the process, MB", "without pages of files, MB"),
]


def table(records: Sequence[Record]) -> Table:
    order = sorted(records, key=lambda record: (LABELS.index(record["label"]), record["rows"]))
    note = (
        f"Generated rows of 28 columns, float32. Span of {VECTORS:,} vectors, γ = "
        f'{GAMMA_FACTOR:g}/β, C = {C:g}, memory="{MEMORY}". Growth exponent of the time from '
        f".npy, by least squares of the logarithms: {number(exponent(records), 3)}. The peak is "
        "that of the whole process with interpreter and libraries, MB of 10⁶ bytes. Pages of the "
        "file that were read are in it, though the system can take them back at any time; the last "
        "column is without them, and sampled."
    )
    return Table(
        "From disk, on one machine", HEADER, [*map(line_of, order)], [note, *remarks(order)]
    )


def exponent(records: Sequence[Record]) -> float | None:
    mine = of_part(records, PART)
    return growth_of(record for record in mine if record["label"] == ON_DISK)
