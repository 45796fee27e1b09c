"""What is measured on a GPU: sets, sizes and settings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.harness.datasets import NOTHING
from benchmarks.harness.runner import Part

OURS = "widemargin.MarginClassifier"
SEARCH = "widemargin.MarginClassifierCV"
TORCH = "torch"
FITS, MACHINES, ROWS, SEARCHES, FLOOR = "fits", "machines", "rows", "search", "floor"
PARTS = (FITS, MACHINES, ROWS, SEARCHES, FLOOR)
# Where rows are when a fit begins.
THERE, HERE, PROCESSOR = "arrays of the device", "NumPy, device=...", "NumPy, processor"
INTELEX = "SVC (intelex), processor"
TORCHKM, XRFM = "TorchKM, low rank, defaults", "xRFM, defaults"
NAIVE = "kernel ridge by torch's Cholesky, on as many rows as vectors"
REPEATS = 3
# Columns as they come, which tell classes apart better, and on one scale.
RAW, STANDARD = "covtype_seven_100000_raw", "covtype_seven_100000"
WAVES = "waves"
BLOBS = "make_classification"
QUICK_ROWS = 3000
QUICK_VECTORS = 60


@dataclass(frozen=True)
class OnDevice(Part):
    """A measurement on a set, or on generated rows: ``made`` is their shape, none of a set."""

    place: str = THERE
    made: tuple[int, int] | None = None
    set_name: str | None = None


def fits(quick: bool) -> list[OnDevice]:
    """The span fit of sets, wherever their rows are."""
    wanted = [
        ("mnist_unit", 2000, {"C": 10.0, "gamma": {"mean_distance": 1.0}}),
        ("mnist_unit", 2500, {"C": 10.0, "gamma": {"mean_distance": 2.0}}),
        ("covtype", 2000, {"C": 10.0, "gamma": {"mean_distance": 4.0}}),
    ]
    if quick:
        wanted = [(NOTHING, QUICK_VECTORS, {"C": 1.0})]
    found = []
    for name, vectors, params in wanted:
        params = params | {"engine": "span", "max_vectors": vectors, "random_state": 0}
        for place in (THERE, HERE, PROCESSOR):
            found.append(_of_set(FITS, place, name, params, vectors))
        naive = {"vectors": vectors, "C": params["C"], "gamma": params.get("gamma")}
        found.append(_of_set(FITS, NAIVE, name, naive, vectors, task="benchmarks.gpu.floor.naive"))
    return found


def _of_set(
    part: str, label: str, name: str, params: dict[str, Any], vectors: int = 0, **others: Any
) -> OnDevice:
    given = {
        "estimator": OURS,
        "repeats": REPEATS,
        "requires": None if label == PROCESSOR else TORCH,
        "task": "benchmarks.gpu.fit.on_device",
        "place": label,
        "point": {"vectors": vectors},
    }
    given |= others
    return OnDevice(label, name, given.pop("estimator"), params, part=part, **given)


def labelled(engine: str, place: str) -> str:
    """What a machine of the part is called."""
    return f"{engine}, {place}"


def machines(quick: bool) -> list[OnDevice]:
    """The exact machine and cells, beside machines of others."""
    wide, narrow = {"gamma": {"mean_distance": 1.0}}, {"gamma": {"mean_distance": 100.0}}
    wanted = [
        ("mnist_unit", "exact", wide, (THERE, HERE)),
        ("covtype", "cells", narrow, (THERE, HERE)),
        ("covtype_seven", "cells", narrow, (THERE,)),
        ("covtype_seven_100000", "cells", narrow, (THERE,)),
        (
            RAW,
            "cells",
            {"kernel": "laplacian", "gamma": {"mean_deviation": 10.0}, "cells": 1000},
            (THERE,),
        ),
    ]
    if quick:
        wanted = [(NOTHING, "exact", wide, (THERE,)), (NOTHING, "cells", wide, (THERE,))]
    found = []
    for name, engine, width, places in wanted:
        params = {"C": 10.0, "engine": engine, "random_state": 0} | width
        found += [
            _of_set(MACHINES, labelled(engine, place), name, params, place=place)
            for place in places
        ]
    if quick:
        return found
    found.append(
        _of_set(
            *(MACHINES, INTELEX, "mnist_unit", {"C": 10.0} | wide),
            estimator="sklearnex.svm.SVC",
            requires="sklearnex",
            place=PROCESSOR,
        )
    )
    task = "benchmarks.gpu.peers.recursive_features"
    for name in (STANDARD, RAW):
        found.append(_of_set(*(MACHINES, XRFM, name, {}), requires="xrfm", task=task, repeats=1))
    return found


def rows(quick: bool) -> list[OnDevice]:
    """Generated rows, few and many."""
    sizes = [(BLOBS, 32_000, 64, None), (WAVES, 10_000_000, 28, 4000)]
    sizes.append((WAVES, 10_000_000, 28, 16_000))
    if quick:
        sizes = [(BLOBS, QUICK_ROWS, 8, None), (WAVES, QUICK_ROWS, 5, QUICK_VECTORS)]
    found = []
    for name, n, d, vectors in sizes:
        params: dict[str, Any] = {"engine": "exact", "random_state": 0}
        if vectors is not None:
            params |= {"engine": "span", "max_vectors": vectors, "gamma": 1.0 / (2 * d)}
        found.append(
            OnDevice(
                THERE,
                NOTHING,
                OURS,
                params,
                repeats=REPEATS if n < 10**6 else 1,
                requires=TORCH,
                task="benchmarks.gpu.fit.on_made_rows",
                point={"rows": n, "vectors": vectors or 0},
                part=ROWS,
                made=(n, d),
                set_name=name,
            )
        )
    return found


def searches(quick: bool) -> list[OnDevice]:
    """Five folds and 50 values of C in one span."""
    vectors, Cs = (QUICK_VECTORS, 5) if quick else (2000, 50)
    params = {
        "Cs": [float(10.0 ** (-3 + 6 * k / (Cs - 1))) for k in range(Cs)],
        "gammas": ["mean_distance"],
        "kernels": None,
        "cv": 5,
        "engine": "span",
        "max_vectors": vectors,
        "random_state": 0,
    }
    name = NOTHING if quick else "covtype"
    ours = _of_set(SEARCHES, THERE, name, params, vectors, estimator=SEARCH, repeats=1)
    if quick:
        return [ours]
    theirs = {"num_landmarks": vectors, "nC": Cs, "cv": 5}
    task = "benchmarks.gpu.peers.low_rank_search"
    peer = _of_set(SEARCHES, TORCHKM, name, theirs, vectors, requires="torchkm", task=task)
    return [ours, peer]


def floors(quick: bool) -> list[OnDevice]:
    """One pass over kernel values, and the matrix product alone."""
    sizes = [(QUICK_ROWS, 8, QUICK_VECTORS)]
    if not quick:
        sizes = [(60_000, 784, 4000), (531_012, 54, 2000), (2_000_000, 28, 4000)]
    return [
        OnDevice(
            "one pass",
            NOTHING,
            OURS,
            {"vectors": t},
            repeats=REPEATS,
            requires=TORCH,
            task="benchmarks.gpu.floor.one_pass",
            point={"rows": n, "vectors": t},
            part=FLOOR,
            made=(n, d),
            set_name=WAVES,
        )
        for n, d, t in sizes
    ]


def plan(parts: Iterable[str], quick: bool) -> list[OnDevice]:
    """The measurements of the parts."""
    plans = {FITS: fits, MACHINES: machines, ROWS: rows, SEARCHES: searches, FLOOR: floors}
    return [each for part in PARTS if part in parts for each in plans[part](quick)]
