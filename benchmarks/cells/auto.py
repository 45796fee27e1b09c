"""Whether ``engine="auto"`` takes the right engine, and what asking costs."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.cells.plan import AUTO, CELLS, EXACT, SPAN, comparable, ours, remarks
from benchmarks.harness.records import Record, fit_ratio, ordered, text_of, value_of
from benchmarks.harness.report import MISSING, Table, number
from benchmarks.harness.runner import Part

PART = "auto"
# And the training rows of each.
SETS = {
    "letter": 15_000,
    "mnist_unit": 60_000,
    "ijcnn1_40000": 40_000,
    "covtype_20000": 20_000,
    "covtype_100000": 100_000,
    "w8a": 39_800,
    "kddcup99_10pct": 494_021,
    "mixture": 100_000,
}
GAMMA_FACTOR = 1.0
C = 10.0
ENGINES = (AUTO, EXACT, SPAN, CELLS)
# The exact machine of more rows takes longer than all the rest.
MOST_EXACT_ROWS = 20_000
QUICK_SETS = ("letter", "covtype_20000")
QUICK_ROWS = 2000


def engines_for(rows: int) -> list[str]:
    return [engine for engine in ENGINES if engine != EXACT or rows <= MOST_EXACT_ROWS]


def plan(quick: bool, repeats: int, sets: Sequence[str] | None = None) -> list[Part]:
    rows = QUICK_ROWS if quick else None
    return [
        ours(
            PART,
            engine,
            dataset,
            engine,
            C=C,
            gamma_factor=GAMMA_FACTOR,
            rows=rows,
            repeats=1 if engine == EXACT else repeats,
        )
        for dataset in sets or (QUICK_SETS if quick else SETS)
        for engine in engines_for(rows or SETS[dataset])
    ]


def by_engine(records: Sequence[Record], dataset: str) -> dict[str, Record]:
    return {record["label"]: record for record in records if record["dataset"] == dataset}


def shortfall(mine: dict[str, Record]) -> float | None:
    """Points of accuracy by which auto is below the best of the others; negative above them."""
    auto = value_of(mine.get(AUTO), "accuracy")
    others = [value_of(mine.get(engine), "accuracy") for engine in ENGINES if engine != AUTO]
    known = [accuracy for accuracy in others if accuracy is not None]
    return None if auto is None or not known else max(known) - auto


def cost(mine: dict[str, Record]) -> float | None:
    """Seconds of auto over those of the engine that it chose, in the same run."""
    chosen = mine.get(value_of(mine.get(AUTO), "engine") or "")
    return fit_ratio(mine[AUTO], chosen) if value_of(chosen, "fit_seconds") else None


def whole(mine: dict[str, Record], dataset: str) -> bool:
    """Whether all that is to be compared was measured, on all rows."""
    needed = [mine.get(engine) for engine in engines_for(SETS[dataset])]
    return comparable(*needed) and all(record["rows"] is None for record in needed if record)


def table(records: Sequence[Record]) -> Table:
    rows = []
    for dataset in ordered((record["dataset"] for record in records), tuple(SETS)):
        mine = by_engine(records, dataset)
        auto = mine.get(AUTO)
        cells = []
        for engine in ENGINES:
            record = mine.get(engine)
            text = text_of(record, "accuracy")
            if value_of(record, "accuracy") is not None:
                text = f"{text} % in {text_of(record, 'fit_seconds')} s"
            cells.append(text)
        name = f"{dataset}, {number((auto or {}).get('n_train'), 0)} rows"
        chosen = str(value_of(auto, "engine") or MISSING)
        below = number(shortfall(mine))
        rows.append([name, chosen, *cells, below, number(cost(mine), unit="×")])
    header = ["set", "auto chose", *ENGINES, "below the best, points", "over the chosen engine"]
    note = (
        f"Accuracy and seconds of the fit, γ = {GAMMA_FACTOR:g}/β, C = {C:g}. The exact machine is "
        f"left out for more than {MOST_EXACT_ROWS:,} rows; cells are of the default size. A "
        "negative figure below the best: auto is above all others."
    )
    mine = [record for record in records if record["label"] == AUTO or record["status"] != "ok"]
    return Table("The choice of the engine", header, rows, [note, *remarks(mine)])
