"""A cost model of the span fit on a cluster, for numbers of rows and workers nobody measured here.

The seconds of a fit are taken for a sum of

- a part that one process does, whatever the rows are (factors of matrices of t × t);
- what workers do for each row, and for each kernel value that is computed, shared by the workers;
- what each task costs the scheduler, which hands out one at a time;
- what travels to the client, through the one network card that it has.

The first four constants are fitted to the records of one worker and of two, none below zero; the
speed of the network is a guess that is said. The model knows nothing of stragglers, of a scheduler
with more than it can hold, nor of workers on unlike machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from benchmarks.harness.records import Record, finished
from benchmarks.harness.report import Table, number
from benchmarks.places.generator import COLUMNS
from benchmarks.places.plan import VECTORS

ROWS = (100_000_000, 1_000_000_000)
WORKERS = (10, 100, 1000)
# Rows of a chunk at the most: about what Dask advises for its size.
CHUNK_ROWS = 625_000
# Bytes a second of a network card of 10 Gbit/s.
NETWORK = 1.25e9
# Bytes of kernel values that a worker keeps at the most; it computes others anew in every pass.
KEPT = 4.0e9
BYTES_OF_VALUE = 4
BYTES_OF_ROW = 4 * len(COLUMNS)


@dataclass(frozen=True)
class Costs:
    """Seconds of each thing, and how often a fit does it.

    ``tasks`` and ``moved`` (bytes) are for each chunk and whole fit; ``recomputed`` is how many
    times every kernel value is computed where they are not kept.
    """

    alone: float
    row: float
    value: float
    task: float
    tasks: float
    moved: float
    passes: float
    recomputed: float


@dataclass(frozen=True)
class Estimate:
    """Seconds by where they go, and what causes them."""

    alone: float
    compute: float
    tasks: float
    network: float
    n_chunks: int
    n_tasks: float
    moved: float
    kernel_passes: float

    @property
    def seconds(self) -> float:
        return self.alone + self.compute + self.tasks + self.network


# ---------------------------------------------------------------- constants


def usable(records: Sequence[Record]) -> list[Record]:
    """Fits that tell how many tasks and kernel values they took."""
    return [record for record in finished(records) if record["certificate"] and record["n_tasks"]]


def causes(record: Record) -> list[float]:
    """What the seconds of a fit are proportional to: of the client, rows, kernel values, tasks."""
    share = 1.0 / record["workers"]
    values = record["certificate"]["n_kernel"]
    return [1.0, share * record["n_train"], share * values, float(record["n_tasks"])]


def costs_of(records: Sequence[Record]) -> Costs | None:
    """The constants, by least squares of relative errors; None with fewer records than these."""
    mine = usable(records)
    seconds = np.array([record["fit_seconds"] for record in mine])
    if len(mine) < 4 or len({record["workers"] for record in mine}) < 2:
        return None
    terms = np.array([causes(record) for record in mine]) / seconds[:, None]
    # Columns of like size: rows and tasks differ by orders of magnitude.
    size = np.linalg.norm(terms, axis=0)
    found = nnls(terms / size, np.ones(len(mine)))[0] / size
    largest = max(mine, key=lambda record: (record["n_train"], record["chunks"]))
    passes = max(kernel_passes(record) for record in mine)
    return Costs(
        *(float(value) for value in found),
        tasks=largest["n_tasks"] / largest["chunks"],
        moved=1e6 * largest["moved_mb"] / largest["chunks"],
        passes=float(largest["certificate"]["n_passes"]),
        recomputed=max(1.0, passes),
    )


def kernel_passes(record: Record) -> float:
    """How many times each kernel value was computed, on average."""
    certificate = record["certificate"]
    return certificate["n_kernel"] / (record["n_train"] * max(certificate["n_vectors"], 1))


def modelled(costs: Costs, record: Record) -> float:
    """The seconds of a fit that was measured; on one machine the network is its memory."""
    constants = (costs.alone, costs.row, costs.value, costs.task)
    return float(np.dot(constants, causes(record)))


def errors(records: Sequence[Record]) -> list[float]:
    """Modelled over measured seconds, less one, of each record that the model can tell of."""
    costs = costs_of(records)
    if costs is None:
        return []
    return [modelled(costs, record) / record["fit_seconds"] - 1.0 for record in usable(records)]


# ---------------------------------------------------------------- estimates


def estimate(costs: Costs, rows: int, workers: int, vectors: int = VECTORS) -> Estimate:
    chunks = workers * -(-rows // (workers * CHUNK_ROWS))
    kept = BYTES_OF_VALUE * vectors * rows / workers <= KEPT
    times = 1.0 if kept else costs.recomputed
    compute = (costs.row + costs.value * times * vectors) * rows / workers
    n_tasks, moved = costs.tasks * chunks, costs.moved * chunks
    return Estimate(
        alone=costs.alone,
        compute=compute,
        tasks=costs.task * n_tasks,
        network=moved / NETWORK,
        n_chunks=chunks,
        n_tasks=n_tasks,
        moved=moved,
        kernel_passes=times,
    )


# ---------------------------------------------------------------- tables


def tables(records: Sequence[Record]) -> list[Table]:
    """The check on what was measured, and the estimates; nothing while too little is measured."""
    costs = costs_of(records)
    return [] if costs is None else [check(costs, records), estimates(costs)]


def check(costs: Costs, records: Sequence[Record]) -> Table:
    order = sorted(usable(records), key=lambda record: tuple(record["point"].values()))
    rows = []
    for record in order:
        seconds = modelled(costs, record)
        rows.append(
            [
                f"{record['n_train']:,}",
                str(record["workers"]),
                str(record["chunks"]),
                number(record["certificate"]["n_passes"], 0),
                number(kernel_passes(record)),
                number(record["fit_seconds"]),
                number(seconds),
                f"{100.0 * (seconds / record['fit_seconds'] - 1.0):+.0f} %",
            ]
        )
    header = ["rows", "workers", "chunks", "passes", "kernel values / (rows × vectors)"]
    header += ["measured, s", "model, s", "off by"]
    note = (
        f"Fitted to these records: {costs.alone:.2f} s alone, {1e6 * costs.row:.2f} µs a row, "
        f"{1e9 * costs.value:.2f} ns a kernel value, {1e3 * costs.task:.2f} ms a task; "
        f"{costs.tasks:.0f} tasks a chunk and {costs.moved / 1e6:.1f} MB that move for it, in the "
        f"fit of most rows, of {costs.passes:.0f} passes."
    )
    return Table("The cost model, where it was measured", header, rows, [note])


def estimates(costs: Costs) -> Table:
    rows = []
    for count in ROWS:
        for workers in WORKERS:
            found = estimate(costs, count, workers)
            each = found.moved / max(costs.passes, 1.0)
            rows.append(
                [
                    f"{count:,}",
                    f"{workers:,}",
                    f"{found.n_chunks:,}",
                    number(BYTES_OF_ROW * count / workers / 1e9, 2),
                    number(found.kernel_passes),
                    number(each / 1e6, 1),
                    number(found.compute, 0),
                    number(found.tasks, 0),
                    number(found.network, 0),
                    number(found.seconds, 0),
                ]
            )
    header = ["rows", "workers", "chunks", "rows of a worker, GB", "kernel values computed, times"]
    header += ["moved in a pass, MB", "computing, s", "tasks, s", "network, s", "fit, s"]
    note = (
        f"Not measured. Workers like those here, of one thread; chunks of at most {CHUNK_ROWS:,} "
        f"rows; a worker keeps at most {KEPT / 1e9:g} GB of kernel values; {NETWORK / 1e9:g} GB a "
        "second to the client. Where tasks or the network take longest, answers of several shards "
        "should be added on their workers before they travel."
    )
    return Table("The cost model, where nothing was measured", header, rows, [note])
