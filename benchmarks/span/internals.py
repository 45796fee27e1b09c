"""All that the benchmarks know of widemargin beyond its public names.

When a part of `widemargin.span` gets another name or shape, this is the file to adapt: the floor
computes kernel values with the fit's own blocks, and the phases are methods of the fit that are
wrapped from outside. It is imported in the functions, so that other parts run without it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.span.phases import (
    BOUNDS,
    CHECKING,
    FACTOR,
    GRADIENTS,
    KERNEL,
    LINE,
    MOVING,
    PRODUCTS,
    PROOF,
    ROWS,
    SOLVE,
    SUM,
    VECTORS,
    Stopwatch,
)

TRIES = 3
GRAM_ROWS = 4  # in multiples of the vectors


def values_of_C(search: Any) -> Sequence[float]:
    """Those that a `MarginClassifierCV` tries."""
    return search._grid().Cs


# ---------------------------------------------------------------- the floor of a fit


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
    from widemargin.factors import cholesky_in_place
    from widemargin.span.values import KernelValues

    t = estimator.max_vectors
    with estimator._computing() as resources:
        data = estimator._labelled(X, y, None)
        distinct = estimator._distinct(data, resources)
        wanted = {name: getattr(estimator, name) for name in ("C", "class_weight")}
        gamma = estimator._resolved_gamma(estimator.gamma, distinct)
        problem = estimator._problem(data, distinct, gamma=gamma, **wanted)
        n = problem.n
        chosen = np.sort(np.random.default_rng(0).permutation(n)[:t])
        vectors = problem.rows.take(chosen)

        def new() -> KernelValues:
            # Room for all of them, and for a whole last block.
            room = 4 * t * (n + 4096)
            return KernelValues(problem.rows, problem.kernel, np.dtype(np.float32), room, t)

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


# ---------------------------------------------------------------- the phases of a fit


@contextlib.contextmanager
def instrumented(watch: Stopwatch) -> Iterator[None]:
    """Every phase of a span fit is counted by the watch."""
    from widemargin.base import estimator
    from widemargin.span import curvature, landmarks, levels, span_engine
    from widemargin.span.basis import Basis
    from widemargin.span.descent import Descent
    from widemargin.span.losses import LowerBound
    from widemargin.span.shard import Shard
    from widemargin.span.values import KernelValues

    passes = [(Shard, "_multiply", PRODUCTS), (Descent, "_pull", GRADIENTS)]
    phases = [
        (estimator, "validate_data", CHECKING),
        (estimator.KernelEstimator, "_distinct", ROWS),
        (Basis, "extended", VECTORS),
        *((each, "draw", VECTORS) for each in vars(landmarks).values() if draws(each)),
        (Descent, "_line_search", LINE),
        (Shard, "advance", LINE),
        (curvature.Curvature, "solve", SOLVE),
        (Descent, "_whitened", BOUNDS),
        (LowerBound, "improved", BOUNDS),
        (Shard, "blend", BOUNDS),
        (levels.SpanFit, "_on_near_rows", MOVING),
        (Shard, "rounding", PROOF),
        (span_engine, "full_dual", PROOF),
    ]
    work = [
        (KernelValues, "_block", "block"),
        (Shard, "gram", "sum"),
        (Basis, "factorised", "factor"),
    ]
    scan = KernelValues.scan

    def counted_scan(values: Any, visit: Callable[..., Any], first: int, stop: int) -> Any:
        return scan(values, watch.work("visit", visit), first, stop)

    with contextlib.ExitStack() as stack:

        def patch(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
            stack.enter_context(mock.patch.object(owner, name, wrapper))

        for owner, name, phase in phases:
            patch(owner, name, watch.phase(phase, getattr(owner, name)))
        for owner, name, phase in passes:
            shares = {"block": KERNEL, "visit": phase}
            patch(owner, name, watch.phase(phase, getattr(owner, name), shares))
        form = watch.phase(SUM, curvature.Curvature.form, {"sum": SUM, "factor": FACTOR})
        patch(curvature.Curvature, "form", form)
        for owner, name, kind in work:
            patch(owner, name, watch.work(kind, getattr(owner, name)))
        patch(KernelValues, "scan", counted_scan)
        yield


def draws(item: Any) -> bool:
    """Whether it is a class of `span.landmarks` with a ``draw`` of its own."""
    return isinstance(item, type) and "draw" in vars(item) and not getattr(item, "_is_protocol", 0)
