"""Measurements one after another, each in a fresh process, and the session that keeps them.

`measure` never lets two run at once: on a shared machine that is the difference between a figure
and a guess. The number of threads is set for the child and written beside every result.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.report import Table, markdown_page

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
LIBRARIES = ("widemargin", "numpy", "scipy", "scikit-learn", "numba")
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)

Record = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """What one child process does: fit ``estimator`` (an import path) on a set, ``repeats`` times.

    ``label`` names the column of the table; ``point`` carries what a figure needs (ε, C).
    """

    label: str
    dataset: str
    estimator: str
    params: dict[str, Any]
    repeats: int = 1
    rows: int | None = None
    warmup_rows: int = 200
    point: dict[str, float] = field(default_factory=dict)


def child_environment(threads: int) -> dict[str, str]:
    paths = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        **{variable: str(threads) for variable in THREAD_VARIABLES},
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
    }


def measure(measurement: Measurement, timeout: float = 600.0, threads: int = 2) -> Record:
    """The record of one measurement; ``status`` is "ok", "timeout" or "failed", never an error."""
    spec = {**asdict(measurement), "threads": threads}
    with tempfile.TemporaryDirectory(prefix="widemargin-benchmark-") as folder:
        spec_path, result_path = Path(folder, "spec.json"), Path(folder, "result.json")
        spec_path.write_text(json.dumps(spec))
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.child", str(spec_path), str(result_path)],
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
            return {**spec, "status": "timeout", "message": f"no result within {timeout:g} s"}
        if child.returncode != 0 or not result_path.exists():
            last = (errors.strip().splitlines() or [f"exit status {child.returncode}"])[-1]
            return {**spec, "status": "failed", "message": last}
        return {**spec, "status": "ok", "message": "", **json.loads(result_path.read_text())}


def versions() -> dict[str, str]:
    found = {}
    for library in LIBRARIES:
        try:
            found[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            found[library] = "not installed"
    return found


def machine() -> dict[str, Any]:
    return {
        "cpus": os.cpu_count(),
        "platform": platform.platform(),
        "processor": processor_name(),
        "python": platform.python_version(),
    }


def processor_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


class Session:
    """The measurements of one run of a benchmark: takes them, shows them, writes them.

    The JSON file is rewritten after each, so that an interrupted run loses nothing.
    """

    def __init__(self, name: str, timeout: float, threads: int, results: Path) -> None:
        self.name, self.timeout, self.threads, self.results = name, timeout, threads, results
        self.records: list[Record] = []
        self.header = {
            "name": name,
            "command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "threads": threads,
            "timeout": timeout,
            "machine": machine(),
            "versions": versions(),
        }
        results.mkdir(parents=True, exist_ok=True)

    def run(self, measurements: Sequence[Measurement]) -> None:
        for number, measurement in enumerate(measurements, start=1):
            print(
                f"[{number}/{len(measurements)}] {measurement.dataset}, {measurement.label} ... ",
                end="",
                flush=True,
            )
            record = measure(measurement, self.timeout, self.threads)
            self.records.append(record)
            print(self.one_line(record), flush=True)
            document = {**self.header, "records": self.records}
            (self.results / f"{self.name}.json").write_text(json.dumps(document, indent=1) + "\n")

    @staticmethod
    def one_line(record: Record) -> str:
        if record["status"] != "ok":
            return f"{record['status']}: {record['message']}"
        return (
            f"{record['accuracy']:.2f} %, fit {record['fit_seconds']:.2f} s, "
            f"{record['n_vectors']} vectors, {record['peak_mb']:.0f} MB"
        )

    def write(self, title: str, tables: Sequence[Table], notes: Sequence[str] = ()) -> None:
        """The Markdown page, to the screen and beside the JSON."""
        run = self.header
        facts = (
            f"`{run['command']}`, {run['date'][:10]}, {run['machine']['processor']}, "
            f"{run['machine']['cpus']} CPUs, {run['threads']} threads; "
            + ", ".join(f"{library} {version}" for library, version in run["versions"].items())
        )
        page = markdown_page(title, [facts, *notes], tables)
        print("\n" + page)
        (self.results / f"{self.name}.md").write_text(page)


def option_parser(name: str, description: str) -> argparse.ArgumentParser:
    """The options every benchmark has."""
    parser = argparse.ArgumentParser(f"python -m benchmarks {name}", description=description)
    parser.add_argument("--quick", action="store_true", help="few rows; writes NAME_quick.*")
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds a measurement")
    parser.add_argument("--threads", type=int, default=2, help="threads of each measurement")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the results")
    return parser


def session_from(options: argparse.Namespace, name: str) -> Session:
    """A quick run has its own files: it must never replace a committed result."""
    stem = f"{name}_quick" if options.quick else name
    return Session(stem, options.timeout, options.threads, options.results)
