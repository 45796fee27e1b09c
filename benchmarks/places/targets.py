"""What was asked of places, what was measured, and whether that is enough."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.records import Record, of_part, text_of, value_of
from benchmarks.harness.report import MISSING, Table, number
from benchmarks.harness.targets import Line, asked_table, line
from benchmarks.places import agree, cells, cluster, deaths, growth, model, peers, scatter
from benchmarks.places.plan import ALL_ROWS, CELLS, ROWS, SPAN, THREADS, comparable, gathered

COEFFICIENTS = 1e-5
SLOWER = 1.6
PEAK_MB = 3500.0
EXPONENT = 1.05
SAME = 1e-8
# A fit whose rows have left the workers shows nothing of what was asked.
GATHERED = "the client has gathered the rows"
# What a model that was checked may be off by, at the most.
OFF = 0.25


def labelled(records: Sequence[Record], part: str, label: str) -> Record | None:
    mine = [record for record in of_part(records, part) if record["label"] == label]
    return mine[0] if mine else None


def at(records: Sequence[Record], part: str, label: str, **point: int) -> Record | None:
    """The record of a label at a point."""
    for record in of_part(records, part):
        if record["label"] == label and point.items() <= record["point"].items():
            return record
    return None


def failed(record: Record | None) -> str:
    """Why a figure is missing, where a measurement has said so."""
    if record is None or record["status"] == "ok":
        return MISSING
    return f"{record['status']}: {record['message']}"


def told(record: Record | None) -> str:
    if value_of(record, "accuracy") is None:
        return failed(record)
    return f"{text_of(record, 'accuracy')} % in {text_of(record, 'fit_seconds', 1)} s"


# ---------------------------------------------------------------- a line or two for each wish


def agree_lines(records: Sequence[Record]) -> list[Line]:
    lines = []
    for engine in agree.LABELS:
        record = labelled(records, agree.PART, engine)
        whole = record is not None and record["rows"] is None
        apart, slower = agree.coefficients(record), agree.slower(record)
        vectors = value_of(record, "same_vectors")
        said = failed(record) if vectors is None else "other vectors"
        if apart is not None and record is not None:
            said = f"{apart:.1e} of the largest ({record['coefficient_difference']:.1e})"
        close = None if vectors is None else apart is not None and apart <= COEFFICIENTS
        asked = (
            f"1. covtype 531k on a cluster, {engine}: coefficients within {COEFFICIENTS:g} (of the "
            "largest) of those of the fit in memory"
        )
        if gathered(record):
            said, close = f"{said}; {GATHERED}", False
        lines.append(line(asked, said, close if whole else None))
        if engine == agree.FINE:
            continue
        asked = f"1. {engine}: at most {SLOWER:g} times as long as in memory on {THREADS} threads"
        timely = None if slower is None or not comparable(record) else slower <= SLOWER
        measured = failed(record) if slower is None else number(slower, unit="×")
        if gathered(record):
            measured, timely = f"{measured}; {GATHERED}", False
        lines.append(line(asked, measured, timely if whole else None))
    return lines


def death_lines(records: Sequence[Record]) -> list[Line]:
    lines = []
    for engine in (SPAN, CELLS):
        record = labelled(records, deaths.PART, engine)
        found = deaths.counts(record)
        asked = (
            f"2. a worker killed in the middle of a {engine} fit: the same bits, "
            f"{deaths.KILLS} times in a row"
        )
        if found is None:
            lines.append(line(asked, failed(record), None))
            continue
        died, same = found
        late = len(value_of(record, "kills")) - died
        said = f"{same} of {died}" + (f"; {late} fits ended before the kill" if late else "")
        met = False if same < died else (True if died >= deaths.KILLS else None)
        if gathered(record):
            said, met = f"{said}; {GATHERED}", False
        lines.append(line(asked, said, met))
    return lines


def growth_lines(records: Sequence[Record]) -> list[Line]:
    most = at(records, growth.PART, growth.ON_DISK, rows=ALL_ROWS)
    peak = value_of(most, "resident_mb")
    sizes = [at(records, growth.PART, growth.ON_DISK, rows=rows) for rows in ROWS]
    exponent = growth.exponent([record for record in sizes if record is not None])
    both = at(records, cluster.PART, cluster.LABEL, rows=ALL_ROWS)
    measured = failed(most) if peak is None else number(peak, 0, " MB")
    ran = reported(both)
    on_it = told(both)
    if gathered(both):
        on_it, ran = f"{on_it}; {GATHERED}", False
    steep = None if exponent is None or not comparable(*sizes) else exponent <= EXPONENT
    return [
        line(
            f"3. {ALL_ROWS:,} rows from .npy: peak of the process under {PEAK_MB:,.0f} MB",
            measured,
            None if peak is None else peak < PEAK_MB,
        ),
        line(f"3. {ALL_ROWS:,} rows from .npy: time", told(most), reported(most)),
        line(f"3. {ALL_ROWS:,} rows on the cluster: time", on_it, ran),
        line(
            f"3. time against rows, 10⁵ to 10⁷: exponent at most {EXPONENT:g}",
            number(exponent, 3),
            steep,
        ),
    ]


def reported(*records: Record | None) -> bool | None:
    """Where a figure was asked for and no bound: whether it is there."""
    there = [value_of(record, "accuracy") is not None for record in records]
    return True if all(there) else None


def peer_lines(records: Sequence[Record]) -> list[Line]:
    most = {peers.GRADIENTS: ALL_ROWS, peers.TREES: peers.MOST_TREE_ROWS}
    lines = []
    for label, rows in most.items():
        record = at(records, peers.PART, label, rows=rows)
        asked = f"3. {label}, {rows:,} rows: accuracy and time"
        lines.append(line(asked, told(record), reported(record)))
    return lines


def cell_line(records: Sequence[Record]) -> Line:
    record = at(records, cells.PART, cells.LABEL, rows=ALL_ROWS)
    asked = f"4. cells on {ALL_ROWS:,} rows, out of core: time and accuracy"
    return line(asked, told(record), reported(record))


def scatter_line(records: Sequence[Record]) -> Line:
    mine = [labelled(records, scatter.PART, label) for label in scatter.LABELS]
    found = {
        label: value_of(record, "difference")
        for label, record in zip(scatter.LABELS, mine, strict=True)
    }
    known = {label: value for label, value in found.items() if value is not None}
    said = "; ".join(f"{label} {value:.1e}" for label, value in known.items())
    why = next((failed(record) for record in mine if failed(record) != MISSING), MISSING)
    met = None
    if known:
        close = all(value <= SAME for value in known.values())
        met = close if len(known) == len(found) or not close else None
    return line(
        f"5. MaxiMinDA from a Dask array equals that in memory to {SAME:g}", said or why, met
    )


def model_line(records: Sequence[Record]) -> Line:
    off = model.errors(of_part(records, cluster.PART))
    worst = max(off, key=abs) if off else None
    asked = (
        "6. a cost model checked against 1 and 2 workers, printed for 10, 100 and 1,000 (here: off "
        f"by at most {OFF:.0%} where it was measured)"
    )
    said = MISSING if worst is None else f"at most {100.0 * worst:+.0f} % of {len(off)} fits"
    return line(asked, said, None if worst is None else abs(worst) <= OFF)


def table(records: Sequence[Record]) -> Table:
    rows = [
        *agree_lines(records),
        *death_lines(records),
        *growth_lines(records),
        *peer_lines(records),
        cell_line(records),
        scatter_line(records),
        model_line(records),
    ]
    note = (
        f"A dash: not all of it is measured, or not in one run on {THREADS} threads. Where no "
        "bound was asked, yes says that the figure is there."
    )
    return asked_table(rows, [note])
