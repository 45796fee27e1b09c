"""What was asked of cells, what was measured, and whether that is enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.cells import auto, edges, growth, peers, whole
from benchmarks.cells.plan import AUTO, THREADS, comparable
from benchmarks.harness.fits import MB
from benchmarks.harness.records import (
    Record,
    growth_of,
    microseconds,
    of_part,
    ratio,
    value_of,
)
from benchmarks.harness.report import MISSING, Table, number, width
from benchmarks.harness.targets import Line, asked_table, judged, line

# γ times β, C; then how many times faster, and points of accuracy that may be lost.
FASTER = {(8.0, 10.0): (30.0, 0.2), (1.0, 100.0): (40.0, 0.0)}
WHOLE_ACCURACY = 95.0
WHOLE_SECONDS = 30.0
# The budget is in powers of ten, the records in powers of two.
MEMORY_MB = 1e9 / MB
SEARCH_ACCURACY = 96.0
SEARCH_SECONDS = 300.0
BELOW = 0.3
OVER = 1.5
EXPONENT = 1.1
JUMP = 0.1
# Accuracies are shares of whole rows: what is less than this is rounding.
ROUNDING = 1e-9


def faster_line(records: Sequence[Record], gamma_factor: float, C: float) -> Line:
    """The default size of cells beside the peer; the other sizes are told."""
    times, less = FASTER[gamma_factor, C]
    mine = peers.at(records, gamma_factor, C)
    peer = mine.get(peers.PEER.label)
    said, met = [], False
    for label in peers.SIZES:
        record = mine.get(label)
        if record is None or peer is None or not comparable(record, peer):
            continue
        faster = ratio(peer["fit_seconds"], record["fit_seconds"]) or 0.0
        said.append(
            f"{label} {faster:.0f}× ({record['fit_seconds']:.2f} s), {record['accuracy']:.2f} %, "
            f"{number(microseconds(record), 1)} µs a row"
        )
        if label == peers.DEFAULT:
            least = peer["accuracy"] - less - ROUNDING
            met = faster >= times and record["accuracy"] >= least
    if said and peer is not None:
        said.append(f"{peer['label']} {peer['fit_seconds']:.1f} s, {peer['accuracy']:.2f} %")
    allowed = f"its accuracy less {less:g} points" if less else "its accuracy"
    asked = (
        f"1. covtype 100,000, {width(gamma_factor)}, C = {C:g}: cells of the default size at least "
        f"{times:g} times faster to fit than scikit-learn-intelex's SVC, at {allowed}"
    )
    known = comparable(mine.get(peers.DEFAULT), peer) and all_rows(mine.values())
    return line(asked, "; ".join(said) or MISSING, met if known else None)


def all_rows(records: Iterable[Record]) -> bool:
    return all(record["rows"] is None for record in records)


def whole_lines(records: Sequence[Record]) -> list[Line]:
    mine = {record["label"]: record for record in records if record["rows"] is None}

    def told(label: str) -> str:
        record = mine.get(label)
        if not comparable(record):
            return MISSING
        assert record is not None
        return f"{record['accuracy']:.2f} % in {record['fit_seconds']:.1f} s"

    def within(label: str, accuracy: float, seconds: float) -> bool | None:
        record = mine.get(label)
        if record is None or not comparable(record):
            return None
        return record["accuracy"] >= accuracy and record["fit_seconds"] < seconds

    one, seven = whole.ONE, whole.SEVEN
    lines = [
        line(
            f"2. covtype, 531,012 rows: at least {WHOLE_ACCURACY:g} % in under "
            f"{WHOLE_SECONDS:g} s of fit",
            told(one),
            within(one, WHOLE_ACCURACY, WHOLE_SECONDS),
        )
    ]
    for label in (one, whole.SEARCHED, whole.PER_CELL):
        peak = value_of(mine.get(label), "peak_mb")
        asked = f"2. {label}: memory={whole.MEMORY!r} kept above the data"
        met = None if peak is None else peak <= MEMORY_MB
        # The search was not asked to, but it has the same parameter.
        lines.append(line(asked, number(peak, 0, f" MB of {MEMORY_MB:.0f}"), met))
    for label in (whole.SEARCHED, whole.PER_CELL):
        asked = (
            f"2. MarginClassifierCV over 3 × 3 values, {label}: at least {SEARCH_ACCURACY:g} % in "
            f"under {SEARCH_SECONDS:g} s"
        )
        lines.append(line(asked, told(label), within(label, SEARCH_ACCURACY, SEARCH_SECONDS)))
    reported = True if comparable(mine.get(seven)) else None
    return [*lines, line("2. all seven classes: accuracy reported", told(seven), reported)]


def auto_lines(records: Sequence[Record]) -> list[Line]:
    """The accuracy of the choice, and its cost."""
    below, over, complete = {}, {}, {"below": True, "over": True}
    for dataset in auto.SETS:
        mine = auto.by_engine(records, dataset)
        measured = auto.whole(mine, dataset)
        for name, found, value in (
            ("below", below, auto.shortfall(mine)),
            ("over", over, auto.cost(mine)),
        ):
            complete[name] = complete[name] and measured and value is not None
            if value is not None:
                found[dataset] = (value, str(mine[AUTO]["engine"]))
    worse = {name: value for name, (value, _) in below.items() if value > BELOW + ROUNDING}
    dear = {name: value for name, (value, _) in over.items() if value > OVER}
    texts = [
        f"3. auto never more than {BELOW:g} points below the best of exact, span and cells",
        f"3. auto costs at most {OVER:g} times the engine that it chose",
    ]
    said = [
        "; ".join(f"{name} {value:+.2f} ({engine})" for name, (value, engine) in below.items()),
        "; ".join(f"{name} {value:.2f}× ({engine})" for name, (value, engine) in over.items()),
    ]
    return [
        line(texts[0], said[0] or MISSING, judged(not worse, complete["below"])),
        line(texts[1], said[1] or MISSING, judged(not dear, complete["over"])),
    ]


def growth_line(records: Sequence[Record]) -> Line:
    mine = [record for record in records if record["rows"] in growth.ROWS]
    found = growth_of(mine)
    asked = f"4. growth exponent in the rows, 50,000 to {growth.ALL_ROWS:,}, at most {EXPONENT:g}"
    complete = len(mine) == len(growth.ROWS) and comparable(*mine)
    met = complete and found is not None and found <= EXPONENT
    return line(asked, number(found), met if complete else None)


def edge_lines(records: Sequence[Record]) -> list[Line]:
    """The default blend beside none, at the default overlap."""
    lines = []
    for dataset in edges.SETS:
        record = next(
            (
                each
                for each in records
                if each["dataset"] == dataset
                and each["point"] == {"overlap": edges.OVERLAP}
                and each["rows"] is None
            ),
            None,
        )
        plain, blended = (edges.blend_of(record, b) for b in (0.0, edges.BLEND))
        asked = (
            f"5. {dataset}, blend {edges.BLEND:g}: the largest jump at most a tenth of that "
            "without, accuracy not lower"
        )
        if plain is None or blended is None or not plain["largest_jump"]:
            lines.append(line(asked, MISSING, None))
            continue
        share = blended["largest_jump"] / plain["largest_jump"]
        measured = (
            f"{blended['largest_jump']:.2g} against {plain['largest_jump']:.2g} ({share:.4f}×); "
            f"{blended['accuracy']:.3f} % against {plain['accuracy']:.3f} %"
        )
        fine = share <= JUMP and blended["accuracy"] >= plain["accuracy"] - ROUNDING
        lines.append(line(asked, measured, fine))
    return lines


def table(records: Sequence[Record]) -> Table:
    rows = [
        *(faster_line(of_part(records, peers.PART), *point) for point in peers.POINTS),
        *whole_lines(of_part(records, whole.PART)),
        *auto_lines(of_part(records, auto.PART)),
        growth_line(of_part(records, growth.PART)),
        *edge_lines(of_part(records, edges.PART)),
    ]
    notes = [
        f"A dash: not all of it is measured, or not in one run on {THREADS} threads. Where auto is "
        "above all other engines, the points below the best are negative."
    ]
    return asked_table(rows, notes)
