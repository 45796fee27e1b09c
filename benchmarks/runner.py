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
    ``warmups`` holds one change of parameters for each warm-up fit, for an estimator whose few
    rows would take another path than the timed fit. ``requires`` names a package that may be
    missing; ``memory_gb`` is what the process may allocate. ``task`` is the import path of a
    function that takes the place of `benchmarks.child.measure`.
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


def installed(library: str) -> bool:
    try:
        importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


def versions() -> dict[str, str]:
    return {
        library: importlib.metadata.version(library) if installed(library) else "not installed"
        for library in LIBRARIES
    }


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


def facts_of(run: Record) -> str:
    return (
        f"`{run['command']}`, {run['date'][:10]}, {run['machine']['processor']}, "
        f"{run['machine']['cpus']} CPUs, {run['threads']} threads; "
        + ", ".join(f"{library} {version}" for library, version in run["versions"].items())
    )


def title_of(measurement: Measurement) -> str:
    point = [f"{key} = {value:g}" for key, value in measurement.point.items()]
    return ", ".join([measurement.dataset, *point, measurement.label])


class Session:
    """The measurements of one run of a benchmark: takes them, shows them, writes them.

    The JSON file is rewritten after each, so that an interrupted run loses nothing.
    """

    def __init__(self, name: str, timeout: float, threads: int, results: Path) -> None:
        self.name, self.timeout, self.threads, self.results = name, timeout, threads, results
        self.records: list[Record] = []
        self.header: Record = {
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
                f"[{number}/{len(measurements)}] {title_of(measurement)} ... ",
                end="",
                flush=True,
            )
            record = measure(measurement, self.timeout, self.threads)
            self.keep(record)
            print(self.one_line(record), flush=True)
            (self.results / f"{self.name}.json").write_text(self.document())

    def keep(self, record: Record) -> None:
        self.records.append(record)

    def document(self) -> str:
        """The text of the JSON file."""
        return json.dumps({**self.header, "records": self.records}, indent=1) + "\n"

    @staticmethod
    def one_line(record: Record) -> str:
        if record["status"] != "ok":
            return f"{record['status']}: {record['message']}"
        return (
            f"{record['accuracy']:.2f} %, fit {record['fit_seconds']:.2f} s, "
            f"{record['n_vectors']} vectors, {record['peak_mb']:.0f} MB"
        )

    def facts(self) -> list[str]:
        """Where the figures come from, a paragraph a run."""
        return [facts_of(self.header)]

    def write(self, title: str, tables: Sequence[Table], notes: Sequence[str] = ()) -> None:
        """The Markdown page, to the screen and beside the JSON."""
        page = markdown_page(title, [*self.facts(), *notes], tables)
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


def stem_from(options: argparse.Namespace, name: str) -> str:
    """A quick run has its own files: it must never replace a committed result."""
    return f"{name}_quick" if options.quick else name


def session_from(options: argparse.Namespace, name: str) -> Session:
    return Session(stem_from(options, name), options.timeout, options.threads, options.results)
