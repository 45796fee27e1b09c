"""Records of the GPU benchmark as tables, and what was asked."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.gpu.plan import BLOBS, FITS, FLOOR, HERE, ROWS, SEARCHES, THERE, WAVES
from benchmarks.harness.records import (
    Record,
    gap_of,
    of_part,
    ratio,
    text_of,
    text_or_status,
    value_of,
)
from benchmarks.harness.report import MISSING, Table, bullets, number
from benchmarks.harness.targets import Line, asked_table, line

HEADER = [
    *("set", "vectors", "rows are", "fit, s", "first fit, s", "accuracy, %", "gap"),
    "predict, ms",
]
# Asked of the part "fits": set, place, most seconds, least accuracy.
ASKED_FITS = (("mnist_unit", THERE, 0.5, 98.5), ("mnist_unit", HERE, 0.8, 98.5))
# Asked of generated rows: set, vectors, seconds of a fit, of a prediction.
ASKED_ROWS = ((BLOBS, 0, 0.077, 0.02), (WAVES, 4000, 30.0, None), (WAVES, 16_000, 180.0, None))
MOST_SEARCH_SECONDS = 3.4
MOST_FLOORS = 4.0


def name_of(record: Record) -> str:
    rows = record["point"].get("rows")
    name = record.get("set_name") or record["dataset"]
    return name if rows is None else f"{name}, {rows:,} rows"


def line_of(record: Record) -> list[str]:
    seconds = value_of(record, "predict_seconds")
    return [
        name_of(record),
        text_of(record, "n_vectors", 0),
        record["label"],
        text_or_status(record, value_of(record, "fit_seconds"), 3),
        text_of(record, "warmup_seconds", 2),
        text_of(record, "accuracy"),
        gap_of(record),
        number(None if seconds is None else 1e3 * seconds, 1),
    ]


def remarks(records: Sequence[Record]) -> list[str]:
    lines = []
    for record in records:
        name = f"{name_of(record)}, {record['label']}"
        if record["status"] != "ok":
            lines.append(f"{name}: {record['status']}, {record['message']}")
        if record.get("certificate_line"):
            lines.append(f"{name}: {record['certificate_line']}")
        lines += [f"{name}: warning, {text}" for text in record.get("warnings") or ()]
    return bullets(lines)


def fit_table(title: str, records: Sequence[Record]) -> Table:
    return Table(title, HEADER, [line_of(record) for record in records], remarks(records))


def floor_table(records: Sequence[Record]) -> Table:
    header = ["rows", "vectors", "product alone, s", "TFLOP/s", "pass, s", "fit, s", "fit, floors"]
    lines = []
    for record in records:
        flops = value_of(record, "flops")
        lines.append(
            [
                f"{record['point']['rows']:,}",
                f"{record['point']['vectors']:,}",
                text_or_status(record, value_of(record, "product_seconds"), 4),
                number(None if flops is None else 1e-12 * flops, 1),
                text_of(record, "pass_seconds", 4),
                text_of(record, "fit_seconds", 3),
                number(floors(record), 1),
            ]
        )
    note = (
        "The floor is the matrix product of all rows with all vectors, once, in float32. A pass "
        "also turns the products into kernel values and multiplies them with a column, forth and "
        "back; a fit makes several."
    )
    return Table("Above the floor", header, lines, [note, *remarks(records)])


def floors(record: Record | None) -> float | None:
    return ratio(value_of(record, "fit_seconds"), value_of(record, "product_seconds"))


def targets(records: Sequence[Record]) -> Table:
    """What was asked of the parts that are there."""
    lines: list[Line] = []
    fits = of_part(records, FITS)
    for name, place, seconds, accuracy in ASKED_FITS:
        mine = [r for r in fits if (r["dataset"], r["label"]) == (name, place)]
        good = [r for r in mine if (value_of(r, "accuracy") or 0.0) >= accuracy]
        best = min((value_of(r, "fit_seconds") for r in good), default=None)
        asked = f"span fit of MNIST, {place}: {accuracy} % in under {seconds:g} s"
        met = None if not mine else best is not None and best < seconds
        lines.append(line(asked, number(best, 3, " s"), met))
    for name, vectors, seconds, answer in ASKED_ROWS:
        mine = [
            r
            for r in of_part(records, ROWS)
            if (r["set_name"], r["point"]["vectors"]) == (name, vectors)
        ]
        record = mine[0] if mine else None
        taken, said = value_of(record, "fit_seconds"), value_of(record, "predict_seconds")
        what = f"{name}, {vectors:,} vectors" if vectors else name
        lines.append(_under(f"{what}: fit under {seconds:g} s", taken, seconds))
        if answer is not None:
            lines.append(_under(f"{what}: predict under {answer:g} s", said, answer))
    search = of_part(records, SEARCHES)
    taken = value_of(search[0], "fit_seconds") if search else None
    asked = f"5 folds × 50 values of C, 2,000 vectors: under {MOST_SEARCH_SECONDS:g} s"
    lines.append(_under(asked, taken, MOST_SEARCH_SECONDS))
    above = [f for f in map(floors, of_part(records, FLOOR)) if f is not None]
    worst = max(above, default=None)
    met = None if worst is None else worst <= MOST_FLOORS
    asked = f"a fit takes at most {MOST_FLOORS:g} floors"
    lines.append(line(asked, MISSING if worst is None else f"up to {worst:.1f}", met))
    return asked_table(lines)


def _under(asked: str, taken: float | None, most: float) -> Line:
    return line(asked, number(taken, 3, " s"), None if taken is None else taken < most)
