"""A span fit over its floor: what no fit of that kind can do without, each part timed alone.

The floor is K(X, Z) once in float32, the Gram matrix of 4t rows, and the Cholesky factor of a
t × t matrix (t vectors).
"""

from __future__ import annotations

import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.child import build, certificate_of, few_of_every_class
from benchmarks.datasets import Dataset
from benchmarks.report import MISSING, Table, gap_of, number, ratio, text_of, value_of
from benchmarks.runner import Record
from benchmarks.span_phases import PHASES, Stopwatch, instrumented

TRIES = 3
GRAM_ROWS = 4  # in multiples of the vectors
FLOOR = ("kernel", "gram32", "cholesky")
ASKED = 3.0


def best_of(tries: int, work: Callable[[Any], Any], prepare: Callable[[], Any]) -> float:
    """The shortest of some times of work(prepare()), preparation not counted."""
    seconds = []
    for _ in range(tries):
        given = prepare()
        start = time.perf_counter()
        work(given)
        seconds.append(time.perf_counter() - start)
        del given
    return min(seconds)


def floor_of(estimator: Any, X: Any, y: np.ndarray, threads: int) -> dict[str, float]:
    """Seconds of each part of the floor; ``kernel_again`` is into pages that were touched before.

    Kernel values are computed as in a fit: its rows and blocks, its threads, one BLAS thread in
    each, a new array a try. The other parts use as many BLAS threads as there are.
    """
    from widemargin.linalg import cholesky_in_place
    from widemargin.span.values import KernelValues
    from widemargin.threads import single_threaded_blas

    t = estimator.max_vectors
    with single_threaded_blas():
        points = estimator._points(X, y, None, threads)
        n = points.n
        chosen = np.sort(np.random.default_rng(0).permutation(n)[:t])
        vectors = points.rows.take(chosen)

        def new() -> KernelValues:
            # Room for all of them, and for a whole last block.
            return KernelValues(points.rows, points.kernel, np.float32, 4 * t * (n + 4096), t)

        def compute(values: KernelValues) -> None:
            if not values.size:
                values.add(vectors)
            for _ in values.scan(lambda block, where: None, 0, n):
                pass

        seconds = {"kernel": best_of(TRIES, compute, new)}
        last = new()
        compute(last)
        last._mark(ready=False)
        seconds["kernel_again"] = best_of(1, compute, lambda values=last: values)
        rows = last._panels[0].kept[: GRAM_ROWS * t].copy()
        del last
    for name, dtype in (("gram32", np.float32), ("gram64", np.float64)):
        typed = rows.astype(dtype)
        typed.T @ typed  # BLAS starts its threads
        seconds[name] = best_of(TRIES, lambda A: A.T @ A, lambda typed=typed: typed)
    matrix = typed.T @ typed
    matrix[np.diag_indices(len(matrix))] += 1.0
    seconds["cholesky"] = best_of(TRIES, cholesky_in_place, matrix.copy)
    return seconds


def phases_of(estimator: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    """One more fit, with its phases; they add up to ``phases_fit_seconds``."""
    watch = Stopwatch()
    with instrumented(watch):
        start = time.perf_counter()
        with watch.running():
            estimator.fit(X, y)
        total = time.perf_counter() - start
    return {
        "phases_fit_seconds": total,
        "phases": {name: watch.seconds.get(name, 0.0) for name in PHASES},
        "calls": dict(watch.calls),
    }


def measure(spec: dict[str, Any], data: Dataset, keep: Callable[[Any], None]) -> dict[str, Any]:
    """For `benchmarks.child`: warm-up, floor, fits, one fit with its phases."""
    X, y = data.X_train, data.y_train

    def make() -> Any:
        return build(spec["estimator"], spec["params"], X, spec["threads"])

    few = few_of_every_class(y, spec["warmup_rows"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make().fit(X[few], y[few]).predict(data.X_test[:10])
    floor = floor_of(make(), X, y, spec["threads"])
    seconds = []
    for _ in range(spec["repeats"]):
        estimator = make()
        start = time.perf_counter()
        estimator.fit(X, y)
        seconds.append(time.perf_counter() - start)
    certificate = certificate_of(estimator)
    fitted = {
        "n_train": X.shape[0],
        "floor": floor,
        "floor_seconds": sum(floor[part] for part in FLOOR),
        "fit_seconds": statistics.median(seconds),
        "fit_seconds_all": seconds,
        "max_vectors": estimator.max_vectors,
        "n_vectors": len(estimator.support_vectors_),
        "certificate": certificate,
        "certificate_line": str(estimator.certificate_),
    }
    keep(fitted)
    accuracy = 100.0 * float(np.mean(estimator.predict(data.X_test) == data.y_test))
    return {**fitted, "accuracy": accuracy, **phases_of(make(), X, y)}


# ---------------------------------------------------------------- tables


def title(record: Record) -> str:
    return f"{record['dataset']}, C = {record['point']['C']:g}"


def floor_table(records: Sequence[Record]) -> Table:
    rows = []
    for record in records:
        parts = value_of(record, "floor") or {}
        over = ratio(value_of(record, "fit_seconds"), value_of(record, "floor_seconds"))
        rows.append(
            [
                title(record),
                *(number(parts.get(part), 3) for part in ("kernel", "kernel_again")),
                *(number(parts.get(part), 3) for part in ("gram32", "gram64", "cholesky")),
                text_of(record, "floor_seconds", 3),
                text_of(record, "fit_seconds", 3),
                number(over, unit="×"),
                text_of(record, "accuracy"),
                text_of(record, "n_vectors", 0),
                gap_of(record),
            ]
        )
    header = ["set", "K(X, Z), s", "again, s", "Gram float32, s", "Gram float64, s"]
    header += ["Cholesky, s", "floor, s", "fit, s", "fit over floor", "accuracy, %", "vectors"]
    notes = [
        "Floor = K(X, Z) with all vectors that are allowed (float32, into a new array whose pages "
        "nothing has touched, as in a fit) + KᵀK of 4t rows (float32, one matrix product, of which "
        "NumPy computes half) + Cholesky (float64). *Again* is K(X, Z) into the same array a "
        f"second time, and Gram float64 the same product there; neither counts. Best of {TRIES}; "
        "the fit is the median of its repeats, after a warm-up. "
        f"Asked: a fit of at most {ASKED:g} floors. Vectors are those that were kept: of the ones "
        "drawn, those in the span of others are left out.",
        *certificates(records),
    ]
    return Table("Fit over its floor", [*header, "gap"], rows, notes)


def certificates(records: Sequence[Record]) -> list[str]:
    lines = [
        f"- {title(record)}: " + (record.get("certificate_line") or record["message"])
        for record in records
    ]
    return ["\n".join(lines)] if lines else []


def phase_cell(seconds: float | None, total: float | None, calls: int | None) -> str:
    if seconds is None or not total:
        return MISSING
    times = f", {calls}×" if calls else ""
    return f"{seconds:.3f} s, {100.0 * seconds / total:.0f} %{times}"


def phases_table(records: Sequence[Record]) -> Table:
    def cells(phase: str) -> list[str]:
        found = []
        for record in records:
            total = value_of(record, "phases_fit_seconds")
            calls = value_of(record, "calls") or {}
            seconds = (value_of(record, "phases") or {}).get(phase)
            found.append(phase_cell(seconds, total, calls.get(phase)))
        return found

    rows = [[phase, *cells(phase), what] for phase, what in PHASES.items()]
    totals = [text_of(record, "phases_fit_seconds", 3, " s") for record in records]
    rows.append(["fit", *totals, "their sum"])
    notes = [
        "One more fit with wrapped methods: wall time, share of the fit, calls. Where threads "
        "compute kernel values and use them at once, the wall time is divided in proportion to the "
        "threads' times; sums and factors of Newton matrices likewise (the choice of rows "
        "and kernel values that were not kept are in the sum)."
    ]
    header = ["phase", *(title(record) for record in records), "what"]
    return Table("Phases of the fit", header, rows, notes)


def tables(records: Sequence[Record]) -> list[Table]:
    return [floor_table(records), phases_table(records)]
