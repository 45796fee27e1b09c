"""A worker process is killed in the middle of a fit: is the model the same, bit for bit?"""

from __future__ import annotations

import hashlib
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec, build, warmed_up
from benchmarks.harness.records import Record, text_of, value_of
from benchmarks.harness.report import MISSING, Table
from benchmarks.places.files import dask_array, npy, test_rows
from benchmarks.places.fit import answers, described, warm_up_on
from benchmarks.places.generator import TRAIN
from benchmarks.places.plan import (
    CELLS,
    CHUNKS,
    DISTRIBUTED,
    QUICK_ROWS,
    SPAN,
    Place,
    on_rows,
    ours,
    remarks,
)
from benchmarks.places.watch import Watch
from benchmarks.places.workers import local_cluster, pids_of

PART = "deaths"
ROWS = 200_000
WORKERS = 2
KILLS = 10
QUICK_KILLS = 2
LABELS = (SPAN, CELLS)
# The share of the undisturbed fit's time after which workers die, from the first to the last kill.
FIRST_MOMENT, LAST_MOMENT = 0.15, 0.85
TEST_COUNT = 2000
STATE = ("dual_coef_", "intercept_", "support_vectors_", "cell_centers_")


def plan(quick: bool, kills: int) -> list[Place]:
    return [
        on_rows(
            PART,
            engine,
            QUICK_ROWS[-1] if quick else ROWS,
            ours(engine, quick),
            repeats=kills,
            requires=DISTRIBUTED,
            task="benchmarks.places.deaths.measure",
            workers=WORKERS,
            chunks=4 if quick else CHUNKS,
            test_rows=TEST_COUNT,
        )
        for engine in LABELS
    ]


# ---------------------------------------------------------------- the task


def bits_of(machine: Any, X: np.ndarray) -> str:
    """A hash of all that a model is made of, and of its values on some rows."""
    found = hashlib.sha256()
    for name in STATE:
        value = getattr(machine, name, None)
        if value is not None:
            found.update(name.encode() + np.ascontiguousarray(value).tobytes())
    found.update(np.ascontiguousarray(machine.decision_function(X)).tobytes())
    return found.hexdigest()


def with_a_kill(client: Any, fit: Callable[[], Any], after: float, which: int) -> tuple[Any, bool]:
    """What a fit leaves behind, and whether its worker died before it ended."""
    pids = pids_of(client)
    victim, died = pids[which % len(pids)], threading.Event()

    def kill() -> None:
        os.kill(victim, signal.SIGKILL)
        died.set()

    timer = threading.Timer(after, kill)
    timer.start()
    try:
        found = fit()
        return found, died.is_set()
    finally:
        timer.cancel()
        timer.join()


def measure(spec: Spec, _: Dataset, keep: Keep) -> Found:
    X, y = (dask_array(path, spec["chunks"]) for path in npy(TRAIN, spec["rows"]))
    X_test, y_test = test_rows(spec["test_rows"])

    def make() -> Any:
        return build(spec["estimator"], spec["params"], None, 1)

    with local_cluster(spec["workers"]) as client:
        warmed_up(lambda: warm_up_on(client, make, spec))
        start = time.perf_counter()
        with Watch(pids_of(client)) as watch:
            machine = make().fit(X, y)
        seconds = time.perf_counter() - start
        bits = bits_of(machine, X_test)
        found = {"fit_seconds": seconds, "kills": [], **watch.found()}
        found |= described(machine, spec["rows"])
        # The control: if two undisturbed fits differ, a kill is not to blame.
        start = time.perf_counter()
        again = make().fit(X, y)
        # The first fit may have compiled something, and a kill must come before the end.
        seconds = min(seconds, time.perf_counter() - start)
        found["same_again"] = bits_of(again, X_test) == bits
        keep(found)
    for number, share in enumerate(np.linspace(FIRST_MOMENT, LAST_MOMENT, spec["repeats"])):
        # A cluster of its own: what the death before has left behind is not in question.
        with local_cluster(spec["workers"]) as client:
            warmed_up(lambda: warm_up_on(client, make, spec))
            kill = one_kill(client, lambda: make().fit(X, y), share * seconds, number, bits, X_test)
            found["kills"].append(kill)
        keep(found)
    return found | answers(machine, X_test, y_test)


def one_kill(
    client: Any, fit: Callable[[], Any], after: float, number: int, bits: str, X: np.ndarray
) -> Found:
    start = time.perf_counter()
    try:
        machine, died = with_a_kill(client, fit, after, number)
    except Exception as error:  # whatever a fit raises when its worker dies is the finding
        return {"after": after, "died": True, "same": False, "error": f"{error!r}"[:200]}
    seconds = time.perf_counter() - start
    same = bits_of(machine, X) == bits
    return {"after": after, "died": died, "same": same, "seconds": seconds, "error": ""}


# ---------------------------------------------------------------- tables


def counts(record: Record | None) -> tuple[int, int] | None:
    """Fits in which a worker died, and those of them that left the same bits."""
    kills = value_of(record, "kills")
    if kills is None:
        return None
    died = [kill for kill in kills if kill["died"]]
    return len(died), sum(kill["same"] for kill in died)


def table(records: Sequence[Record]) -> Table:
    order = sorted(records, key=lambda record: LABELS.index(record["label"]))
    rows = []
    for record in order:
        kills = value_of(record, "kills") or []
        died, same = counts(record) or (None, None)
        spent = [kill["seconds"] for kill in kills if kill["died"] and "seconds" in kill]
        again = value_of(record, "same_again")
        rows.append(
            [
                record["label"],
                text_of(record, "fit_seconds"),
                MISSING if again is None else ("yes" if again else "no"),
                MISSING if died is None else str(died),
                MISSING if same is None else str(same),
                f"{statistics.median(spent):.2f}" if spent else MISSING,
                f"{max(spent):.2f}" if spent else MISSING,
            ]
        )
    header = ["engine", "undisturbed fit, s", "same bits again", "fits with a death"]
    header += ["of them with the same bits", "their seconds, median", "and longest"]
    note = (
        f"{ROWS:,} generated rows in {CHUNKS} chunks on {WORKERS} workers of one thread. In each "
        f"fit one worker gets SIGKILL, at {FIRST_MOMENT:.0%} to {LAST_MOMENT:.0%} of the time of "
        "the undisturbed fit; Dask starts another in its place, which compiles anew. Bits: "
        "coefficients, intercepts, vectors, centres, and decision values of rows."
    )
    errors = {kill["error"] for record in order for kill in value_of(record, "kills") or []}
    told = [f"Errors: {'; '.join(sorted(errors - {''}))}."] if errors - {""} else []
    return Table("Workers that die", header, rows, [note, *told, *remarks(order)])
