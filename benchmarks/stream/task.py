"""One pass over a stream, and the ball of all its rows at once beside it.

Rows are made block by block, in float32 and from seeds of their own, and only the batch ball has
them all there at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.harness.datasets import Dataset
from benchmarks.harness.fits import Found, Keep, Spec, build, peak_mb, reset_peak, warmed_up

# After these shares of the blocks the peak is noted.
SHARES = (0.1, 0.5, 1.0)


def blocks(spec: Spec) -> Iterator[np.ndarray]:
    size = spec["n_rows"] // spec["n_blocks"]
    for number in range(spec["n_blocks"]):
        rng = np.random.default_rng([0, number])
        yield rng.standard_normal((size, spec["n_features"]), dtype=np.float32)


def measure(spec: Spec, data: Dataset, keep: Keep) -> Found:
    """The task: seconds, peaks, radius and certificate of the stream; the radius of the batch."""
    few = next(blocks(spec))[:2000]

    def make():
        return build(spec["estimator"], spec["params"], few, spec["threads"])

    warmed_up(lambda: make().partial_fit(few).partial_fit(2.0 * few))
    warmed_up(lambda: make().fit(few))
    noted = [max(1, round(share * spec["n_blocks"])) for share in SHARES]
    floor, seconds, peaks = reset_peak(), 0.0, []
    machine = make()
    for number, block in enumerate(blocks(spec), start=1):
        start = time.perf_counter()
        machine.partial_fit(block)
        seconds += time.perf_counter() - start
        if number in noted:
            peaks.append(peak_mb(floor))
    found = {
        "n_train": spec["n_rows"],
        "fit_seconds": seconds,
        "peaks_mb": peaks,
        "peak_mb": peaks[-1],
        "radius": machine.radius_,
        "eps": machine.certificate_.eps,
        "n_balls": len(machine.cover_radius_),
        "n_vectors": len(machine.cover_vectors_),
        "n_waiting": len(machine.cover_rows_),
    }
    keep(found)
    X = np.concatenate(list(blocks(spec)))
    start = time.perf_counter()
    batch = make().fit(X)
    found |= {"batch_seconds": time.perf_counter() - start, "batch_radius": batch.radius_}
    found |= {"batch_eps": batch.certificate_.eps, "batch_peak_mb": peak_mb(floor)}
    return found
