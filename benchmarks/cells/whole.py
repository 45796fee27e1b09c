"""All of covtype but 50,000 rows to test: one fit, the search for γ and C, all seven classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.cells.plan import CELLS, SEARCH, WARMUP_ROWS, microseconds_text, ours, remarks
from benchmarks.harness import child, datasets
from benchmarks.harness.datasets import RECIPES, SPLIT_SEED, Dataset, arrays_of, labels
from benchmarks.harness.fits import (
    Found,
    Keep,
    Spec,
    fitted,
    imported,
    mean_distance_gamma,
    timed_answers,
)
from benchmarks.harness.records import Record, text_of, value_of
from benchmarks.harness.report import MISSING, Table
from benchmarks.harness.runner import Part

PART = "whole"
DATASET = "covtype"
GAMMA_FACTOR = 100.0
C = 10.0
MEMORY = "1GB"
ONE = "one fit"
SEVEN = "one fit, seven classes"
SEARCHED = "search"
PER_CELL = "search, a pair for each cell"
GRID = {"gamma_factors": (30.0, 100.0, 300.0), "Cs": (1.0, 10.0, 100.0), "cv": 3}
QUICK_ROWS = 3000


def plan(quick: bool, repeats: int) -> list[Part]:
    """Every one is fitted once, whatever the repeats: these are the longest."""
    rows = QUICK_ROWS if quick else None
    settings: dict[str, Any] = {"C": C, "gamma_factor": GAMMA_FACTOR, "rows": rows}
    found = [
        ours(PART, ONE, DATASET, CELLS, params={"memory": MEMORY}, **settings),
        ours(
            PART,
            SEVEN,
            DATASET,
            CELLS,
            params={"memory": MEMORY},
            task="benchmarks.cells.whole.seven_classes",
            **settings,
        ),
    ]
    for label, per_cell in ((SEARCHED, False), (PER_CELL, True)):
        params = {**GRID, "engine": CELLS, "per_cell": per_cell, "memory": MEMORY}
        found.append(
            Part(
                label,
                DATASET,
                SEARCH,
                {**params, "random_state": 0},
                rows=rows,
                warmup_rows=WARMUP_ROWS,
                task="benchmarks.cells.whole.search",
                part=PART,
            )
        )
    return found


# ---------------------------------------------------------------- tasks of the child process


def seven_classes(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """A plain measurement with all classes for labels, on the same rows."""
    return child.measure(spec, with_all_classes(data, spec["rows"]), keep)


def with_all_classes(data: Dataset, rows: int | None) -> Dataset:
    """The types of wood 1 to 7 in the place of 2 against the rest."""
    y = labels(arrays_of(DATASET, RECIPES[DATASET]), "y")
    # As `datasets.lodgepole` and `datasets.load` draw the rows.
    order = np.random.default_rng(SPLIT_SEED).permutation(len(y))
    held, kept = order[: datasets.COVTYPE_TEST_ROWS], order[datasets.COVTYPE_TEST_ROWS :]
    if rows is not None and rows < len(kept):
        kept = kept[np.sort(np.random.default_rng(SPLIT_SEED).permutation(len(kept))[:rows])]
    for types, signs in ((y[kept], data.y_train), (y[held], data.y_test)):
        if not np.array_equal(np.where(types == 2, 1, -1), signs):
            raise RuntimeError("the seven classes are not those of these rows")
    return replace(data, y_train=y[kept], y_test=y[held])


def search(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """`MarginClassifierCV` over the grid, with its refit."""
    given = dict(spec["params"])
    unit = mean_distance_gamma(data.X_train)
    gammas = [factor * unit for factor in given.pop("gamma_factors")]

    def make() -> Any:
        return imported(spec["estimator"])(gammas=gammas, n_jobs=spec["threads"], **given)

    machine, found = fitted(make, data, spec["warmup_rows"])
    best = machine.best_estimator_
    found |= {
        "best_C": machine.best_params_["C"],
        "best_gamma_factor": machine.best_params_["gamma"] / unit,
        "best_score": 100.0 * machine.best_score_,
        "mean_scores": machine.cv_results_["mean_test_score"],
        "search_seconds": float(sum(machine.cv_results_["fit_time"][: len(gammas)])),
        "n_cells": len(best.cell_centers_),
    }
    keep(found)
    return found | timed_answers(machine, data)


# ---------------------------------------------------------------- tables


def table(records: Sequence[Record]) -> Table:
    def chosen(record: Record) -> str:
        if record["label"] == PER_CELL:
            return "in each cell"
        factor, best = (
            (value_of(record, "best_gamma_factor"), value_of(record, "best_C"))
            if record["label"] == SEARCHED
            else (GAMMA_FACTOR, C)
        )
        return MISSING if factor is None else f"{factor:g}/β, {best:g}"

    order = [ONE, SEARCHED, PER_CELL, SEVEN]
    mine = sorted(records, key=lambda record: order.index(record["label"]))
    rows = [
        [
            record["label"],
            chosen(record),
            text_of(record, "fit_seconds"),
            text_of(record, "accuracy"),
            microseconds_text(record),
            text_of(record, "n_vectors", 0),
            text_of(record, "peak_mb", 0),
            text_of(record, "data_mb", 0),
        ]
        for record in mine
    ]
    header = ["fit", "γ, C", "fit, s", "accuracy, %", "predict, µs a row", "vectors"]
    header += ["peak above data, MB", "data, MB"]
    searches = [
        f"{record['label']}: {record['search_seconds']:.1f} s of the fit for the search; the best "
        f"pair of all has {record['best_score']:.2f} % in the folds"
        for record in mine
        if record["status"] == "ok" and "best_score" in record
    ]
    factors, Cs = ("; ".join(f"{v:g}" for v in GRID[key]) for key in ("gamma_factors", "Cs"))
    note = (
        f"covtype, 2 against the rest or all seven classes, 50,000 rows test; memory={MEMORY!r}. "
        f"A search is over γ = ({factors})/β and C = {Cs} in {GRID['cv']} folds, with the refit."
    )
    notes = [" ".join([note, *(f"{text}." for text in searches)]), *remarks(mine)]
    return Table("Half a million rows", header, rows, notes)
