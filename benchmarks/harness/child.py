"""One measurement in its process: ``python -m benchmarks.harness.child SPEC.json RESULT.json``.

The parent (`benchmarks.harness.runner`) starts a new interpreter for each, so that neither memory
nor compiled code of one machine is there when the next is timed. Order inside: load, warm-up fit on
a few rows (Numba compiles and BLAS starts its threads then, not in the timed fit), fit, predict.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.datasets import Dataset, load
from benchmarks.harness.fits import Found, Keep, Spec, build, fitted, imported, timed_answers
from benchmarks.harness.sources import modules_behind


def plain(value: Any) -> Any:
    """Numbers, strings and lists only, for JSON; infinities and NaN become null."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def limit_memory(gigabytes: float | None) -> None:
    """Let an allocation above the limit fail here, before the machine runs out for everyone."""
    # Elsewhere than on Linux there may be no such limit, or one that does nothing.
    if gigabytes is not None:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            limit = int(gigabytes * 1024**3)
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def measure(spec: Spec, data: Dataset, keep: Keep = lambda _: None) -> Found:
    """The usual task: warm-up, timed fits and one timed prediction of the test part."""

    def make(**changes: Any) -> Any:
        return build(spec["estimator"], spec["params"] | changes, data.X_train, spec["threads"])

    warmups = spec.get("warmups", ({},))
    estimator, found = fitted(make, data, spec["warmup_rows"], spec["repeats"], warmups)
    found["fitted_params"] = {key: estimator.get_params()[key] for key in spec["params"]}
    keep(found)
    return found | timed_answers(estimator, data)


def main(spec_path: str, result_path: str) -> None:
    spec = json.loads(Path(spec_path).read_text())
    limit_memory(spec["memory_gb"])
    start = time.perf_counter()
    data = load(spec["dataset"], spec["rows"])
    load_seconds = time.perf_counter() - start

    def write(path: str, found: Found) -> None:
        about = {"load_seconds": load_seconds, "modules": modules_behind(spec["estimator"])}
        Path(path).write_text(json.dumps(plain({**about, **found})))

    task = measure if spec["task"] is None else imported(spec["task"])
    write(result_path, task(spec, data, lambda found: write(f"{result_path}.fitted", found)))


if __name__ == "__main__":
    main(*sys.argv[1:])
