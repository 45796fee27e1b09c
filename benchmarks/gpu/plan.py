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
FITS, ROWS, SEARCHES, FLOOR = "fits", "rows", "search", "floor"
PARTS = (FITS, ROWS, SEARCHES, FLOOR)
# Where rows are when a fit begins.
THERE, HERE, PROCESSOR = "arrays of the device", "NumPy, device=...", "NumPy, processor"
NAIVE = "kernel ridge by torch's Cholesky, on as many rows as vectors"
REPEATS = 3
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
        ("mnist_unit", 4000, {"C": 10.0, "gamma": {"mean_distance": 1.0}}),
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
    part: str, label: str, name: str, params: dict[str, Any], vectors: int, **others: Any
) -> OnDevice:
    task = others.pop("task", "benchmarks.gpu.fit.on_device")
    return OnDevice(
        label,
        name,
        others.pop("estimator", OURS),
        params,
        repeats=REPEATS,
        requires=None if label == PROCESSOR else TORCH,
        task=task,
        point={"vectors": vectors},
        part=part,
        place=label,
        **others,
    )


def rows(quick: bool) -> list[OnDevice]:
    """Generated rows, few and many."""
    sizes = [(BLOBS, 32_000, 64, None), (WAVES, 10_000_000, 28, 4000)]
    sizes.append((WAVES, 10_000_000, 28, 16_000))
    if quick:
        sizes = [(BLOBS, QUICK_ROWS, 8, None), (WAVES, QUICK_ROWS, 5, QUICK_VECTORS)]
    found = []
    for name, n, d, vectors in sizes:
        params: dict[str, Any] = {"engine": "span", "random_state": 0}
        if vectors is not None:
            params |= {"max_vectors": vectors, "gamma": 1.0 / (2 * d)}
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
    return [_of_set(SEARCHES, THERE, name, params, vectors, estimator=SEARCH)]


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
    plans = {FITS: fits, ROWS: rows, SEARCHES: searches, FLOOR: floors}
    return [each for part in PARTS if part in parts for each in plans[part](quick)]
