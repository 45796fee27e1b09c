"""What overlap and blend buy: accuracy, seconds, and the jumps of the decision function at edges.

Jumps are looked for along segments between random test rows. Points of a segment that are nearest
to different centres have an edge between them; bisection finds it, and the decision values just
before and just after are compared. How much these change over as small a step beyond the edge says
what is no jump. Blending is done in prediction, so that one fit serves for all its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.cells.plan import CELLS, ours, remarks
from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec, build, fitted, timed_answers
from benchmarks.harness.records import Record
from benchmarks.harness.report import Table, number, shown
from benchmarks.harness.runner import Part

PART = "edges"
# γ times β, and C.
SETS = {"covtype_100000": (8.0, 10.0), "ijcnn1": (4.0, 10.0)}
SIZE = 300
OVERLAPS = (0.0, 0.3, 1.0)
BLENDS = (0.0, 0.1, 0.2, 0.5)
# The defaults of the classifier.
OVERLAP = 0.3
BLEND = 0.2
SEGMENTS = 1000
QUICK_ROWS = 3000
# Parts of a segment in which an edge is looked for.
_PARTS = 16
# Halvings of such a part.
_HALVINGS = 26
# How far from the edge the decision function is asked, in segments: farther than float32 may
# misplace the edge.
_STEP = 1e-6
_AT_A_TIME = 4096


def plan(quick: bool, repeats: int, sets: Sequence[str] | None = None) -> list[Part]:
    """Every machine is fitted once, whatever the repeats."""
    return [
        ours(
            PART,
            f"overlap {overlap:g}",
            dataset,
            CELLS,
            C=SETS[dataset][1],
            gamma_factor=SETS[dataset][0],
            params={"cells": SIZE, "overlap": overlap},
            rows=QUICK_ROWS if quick else None,
            point={"overlap": overlap},
            task="benchmarks.cells.edges.measure",
        )
        for dataset in sets or SETS
        for overlap in OVERLAPS
    ]


# ---------------------------------------------------------------- task of the child process


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    def make() -> Any:
        return build(spec["estimator"], spec["params"], data.X_train, spec["threads"])

    machine, found = fitted(make, data, spec["warmup_rows"])
    found["n_cells"] = len(machine.cell_centers_)
    keep(found)
    X = data.X_test.toarray() if sp.issparse(data.X_test) else data.X_test
    sides = edges(machine.cell_centers_, X, spec.get("segments", SEGMENTS))
    blends = []
    for blend in BLENDS:
        machine.set_params(blend=blend)
        blends.append({"blend": blend, **timed_answers(machine, data), **jumps(machine, sides)})
    default = next(each for each in blends if each["blend"] == BLEND)
    taken = {key: default[key] for key in ("accuracy", "predict_seconds")}
    return found | taken | {"blends": blends, "n_edges": len(sides[0])}


def nearest(centers: np.ndarray, X: np.ndarray) -> np.ndarray:
    """The number of the nearest centre of each row."""
    half = 0.5 * np.einsum("ij,ij->i", centers, centers)
    parts = [
        np.argmax(X[first : first + _AT_A_TIME] @ centers.T - half, axis=1)
        for first in range(0, len(X), _AT_A_TIME)
    ]
    return np.concatenate([np.zeros(0, dtype=np.intp), *parts])


def edges(
    centers: np.ndarray, X: np.ndarray, segments: int, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points just before and just after edges, and points as far again beyond them."""
    rng = np.random.default_rng(seed)
    first, last = X[rng.integers(len(X), size=(2, segments))]
    origin = centers.mean(axis=0)  # so that no digits are lost
    centers = centers - origin
    grid = np.linspace(0.0, 1.0, _PARTS + 1)
    along = (last - first)[:, None] * grid[:, None] + (first - origin)[:, None]
    cell = nearest(centers, along.reshape(-1, X.shape[1])).reshape(segments, -1)
    segment, part = np.nonzero(cell[:, 1:] != cell[:, :-1])
    own, low, high = cell[segment, part], grid[part], grid[part + 1]
    first, way = first[segment], (last - first)[segment]
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        same = nearest(centers, first - origin + middle[:, None] * way) == own
        low, high = np.where(same, middle, low), np.where(same, high, middle)
    found = [first + (high + step)[:, None] * way for step in (-_STEP, _STEP, 3 * _STEP)]
    return found[0], found[1], found[2]


def jumps(machine: Any, sides: Sequence[np.ndarray]) -> dict[str, float | None]:
    """The largest and the median jump, and the largest change over as small a step beyond."""
    if not len(sides[0]):
        return {"largest_jump": None, "median_jump": None, "largest_step": None}
    values = [machine.decision_function(points).reshape(len(points), -1) for points in sides]
    jump = np.abs(values[1] - values[0]).max(axis=1)
    step = np.abs(values[2] - values[1]).max(axis=1)
    return {
        "largest_jump": float(jump.max()),
        "median_jump": float(np.median(jump)),
        "largest_step": float(step.max()),
    }


# ---------------------------------------------------------------- tables


def blend_of(record: Record | None, blend: float) -> dict[str, Any] | None:
    """What was measured with a blend; None where it was not."""
    found = (record or {}).get("blends") or ()
    return next((each for each in found if each["blend"] == blend), None)


def table(dataset: str, records: Sequence[Record]) -> Table:
    rows = []
    for record in sorted(records, key=lambda record: record["point"]["overlap"]):
        for blend in BLENDS:
            each, plain = blend_of(record, blend), blend_of(record, 0.0)
            known = each is not None and plain is not None
            row = [f"{record['point']['overlap']:g}", f"{blend:g}"]
            if not known or each is None or plain is None:
                rows.append([*row, record["status"], *[number(None)] * 6])
                continue
            share = None
            if each["largest_jump"] is not None and plain["largest_jump"]:
                share = each["largest_jump"] / plain["largest_jump"]
            rows.append(
                [
                    *row,
                    number(each["accuracy"], 3),
                    number(record["fit_seconds"]),
                    number(1e6 * each["predict_seconds"] / record["n_test"], 1),
                    shown(each["largest_jump"], ".2g"),
                    number(share, 4, "×"),
                    shown(each["median_jump"], ".2g"),
                    shown(each["largest_step"], ".2g"),
                ]
            )
    header = ["overlap", "blend", "accuracy, %", "fit, s", "predict, µs a row", "largest jump"]
    header += ["over no blend", "median jump", "largest change beyond"]
    factor, C = SETS[dataset]
    edges = ", ".join(f"{record['n_edges']:,}" for record in records if record.get("n_edges"))
    note = (
        f"Cells of {SIZE} rows, γ = {factor:g}/β, C = {C:g}. Jumps of the decision function at all "
        f"edges ({edges or 'none'}) that {SEGMENTS:,} segments between test rows were seen to "
        "cross; the last column is the largest change over as small a step beyond the edge."
    )
    return Table(f"Edges, {dataset}", header, rows, [note, *remarks(records)])


def tables(records: Sequence[Record]) -> list[Table]:
    found = []
    for dataset in SETS:
        mine = [record for record in records if record["dataset"] == dataset]
        found += [table(dataset, mine)] if mine else []
    return found
