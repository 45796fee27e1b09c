"""Records of the GPU benchmark as tables, and what was asked."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.gpu.plan import (
    BLOBS,
    FITS,
    FLOOR,
    HERE,
    MACHINES,
    RAW,
    ROWS,
    SEARCHES,
    STANDARD,
    THERE,
    TORCHKM,
    WAVES,
    XRFM,
    labelled,
)
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
ASKED_FITS = (("mnist_unit", THERE, 0.5, 98.5),)
# Asked of the part "machines": set, place, engine, most seconds, least accuracy.
ASKED_MACHINES = (
    ("mnist_unit", THERE, "exact", 0.6, 98.0),
    ("mnist_unit", HERE, "exact", 0.8, 98.0),
    ("covtype", THERE, "cells", 0.35, 95.9),
    ("covtype_seven", THERE, "cells", 1.0, 95.0),
)
# Asked of generated rows: set, vectors, seconds of a fit, of a prediction.
ASKED_ROWS = ((BLOBS, 0, 0.077, 0.02), (WAVES, 4000, 30.0, None), (WAVES, 16_000, 180.0, None))
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
    for name, place, engine, seconds, accuracy in ASKED_MACHINES:
        record = _machine(records, name, labelled(engine, place))
        taken, right = value_of(record, "fit_seconds"), value_of(record, "accuracy")
        asked = f"{engine}, {name}, {place}: {accuracy:g} % in under {seconds:g} s"
        met = None if taken is None else taken < seconds and (right or 0.0) >= accuracy
        lines.append(line(asked, number(taken, 3, " s"), met))
    lines.append(_beside_xrfm(records))
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
    lines.append(_beside_torchkm(of_part(records, SEARCHES)))
    above = [f for f in map(floors, of_part(records, FLOOR)) if f is not None]
    worst = max(above, default=None)
    met = None if worst is None else worst <= MOST_FLOORS
    asked = f"a fit takes at most {MOST_FLOORS:g} floors"
    lines.append(line(asked, MISSING if worst is None else f"up to {worst:.1f}", met))
    return asked_table(lines)


def _machine(records: Sequence[Record], name: str, label: str) -> Record | None:
    mine = of_part(records, MACHINES)
    return next((r for r in mine if (r["dataset"], r["label"]) == (name, label)), None)


def _best(found: Sequence[Record | None]) -> Record | None:
    """The most accurate of some measurements."""
    done = [each for each in found if value_of(each, "accuracy") is not None]
    return max(done, key=lambda each: value_of(each, "accuracy") or 0.0, default=None)


def _beside_xrfm(records: Sequence[Record]) -> Line:
    """More accurate, or a point less in a tenth of the time."""
    cells = labelled("cells", THERE)
    ours, theirs = (
        _best([_machine(records, name, label) for name in (STANDARD, RAW)])
        for label in (cells, XRFM)
    )
    mine, peer = value_of(ours, "accuracy"), value_of(theirs, "accuracy")
    share = ratio(value_of(ours, "fit_seconds"), value_of(theirs, "fit_seconds"))
    asked = "covtype, seven classes, 100,000 rows: above xRFM, or a point below in a tenth"
    if mine is None or peer is None or share is None:
        return line(asked, MISSING, None)
    met = mine > peer or (mine >= peer - 1.0 and share <= 0.1)
    return line(asked, f"{mine:.2f} against {peer:.2f} % in {share:.3f} of its time", met)


def _beside_torchkm(records: Sequence[Record]) -> Line:
    """Faster than the peer in the same run, at its accuracy or better."""
    ours = next((record for record in records if record["label"] == THERE), None)
    theirs = next((record for record in records if record["label"] == TORCHKM), None)
    share = ratio(value_of(ours, "fit_seconds"), value_of(theirs, "fit_seconds"))
    asked = "5 folds × 50 values of C, 2,000 vectors: faster than TorchKM, and as accurate"
    mine, peer = value_of(ours, "accuracy"), value_of(theirs, "accuracy")
    if share is None or mine is None or peer is None:
        return line(asked, number(value_of(ours, "fit_seconds"), 3, " s"), None)
    said = f"{share:.2f} of its time, {mine:.2f} against {peer:.2f} %"
    return line(asked, said, share < 1.0 and mine >= peer)


def _under(asked: str, taken: float | None, most: float) -> Line:
    return line(asked, number(taken, 3, " s"), None if taken is None else taken < most)
