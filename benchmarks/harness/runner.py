"""One measurement in a fresh process, and what it is made of.

`measure` never lets two run at once: on a shared machine that is the difference between a figure
and a guess. The number of threads is set for the child and written beside every result.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.harness.records import Record

ROOT = Path(__file__).resolve().parents[2]
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)


@dataclass(frozen=True)
class Measurement:
    """What one child process does: fit ``estimator`` (an import path) on a set, ``repeats`` times.

    ``label`` names the column of the table; ``point`` carries what a figure needs (ε, C).
    ``warmups`` holds one change of parameters for each warm-up fit, for an estimator whose few
    rows would take another path than the timed fit. ``requires`` names a package that may be
    missing; ``memory_gb`` is what the process may allocate. ``task`` is the import path of a
    function that takes the place of `benchmarks.harness.child.measure`.
    """

    label: str
    dataset: str
    estimator: str
    params: dict[str, Any]
    repeats: int = 1
    rows: int | None = None
    warmup_rows: int = 200
    point: dict[str, float] = field(default_factory=dict)
    warmups: Sequence[dict[str, Any]] = ({},)
    requires: str | None = None
    memory_gb: float | None = None
    task: str | None = None


@dataclass(frozen=True)
class Part(Measurement):
    """A measurement of one part of a benchmark that has several."""

    part: str = ""


def title_of(measurement: Measurement) -> str:
    point = [f"{key} = {value:g}" for key, value in measurement.point.items()]
    return ", ".join([measurement.dataset, *point, measurement.label])


def installed(library: str) -> bool:
    try:
        importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def child_environment(threads: int) -> dict[str, str]:
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        **{variable: str(threads) for variable in THREAD_VARIABLES},
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }


def measure(measurement: Measurement, timeout: float = 600.0, threads: int = 2) -> Record:
    """The record of one measurement, never an error.

    ``status`` is "ok", "timeout" (with what was known after the fit, if that had finished),
    "failed", or "skipped" where a package is not installed.
    """
    spec = {**asdict(measurement), "threads": threads}
    if measurement.requires and not installed(measurement.requires):
        message = f"{measurement.requires} is not installed"
        return {**spec, "status": "skipped", "message": message}
    with tempfile.TemporaryDirectory(prefix="widemargin-benchmark-") as folder:
        spec_path, result_path = Path(folder, "spec.json"), Path(folder, "result.json")
        spec_path.write_text(json.dumps(spec))
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.harness.child", str(spec_path), str(result_path)],
            env=child_environment(threads),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that a timeout also ends workers the fit may have started
        )
        try:
            _, errors = child.communicate(timeout=timeout)
        except BaseException as error:  # an interrupt must not leave the child behind either
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            partial = read_if_whole(Path(f"{result_path}.fitted"))
            phase = ", the fit had finished" if partial else ""
            message = f"no result within {timeout:g} s{phase}"
            return {**spec, "status": "timeout", "message": message, **partial}
        if child.returncode != 0 or not result_path.exists():
            last = (errors.strip().splitlines() or [f"exit status {child.returncode}"])[-1]
            return {**spec, "status": "failed", "message": last}
        return {**spec, "status": "ok", "message": "", **json.loads(result_path.read_text())}


def read_if_whole(path: Path) -> Record:
    """A JSON file that its writer may not have finished; empty where it has not."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
