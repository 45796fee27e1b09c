"""A run of a benchmark: its options, its measurements one after another, its files."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

from benchmarks.harness import runner
from benchmarks.harness.records import Record, merged
from benchmarks.harness.report import Table, markdown_page
from benchmarks.harness.runner import ROOT, Measurement, installed, title_of
from benchmarks.harness.sources import age, commit, hash_of

RESULTS = ROOT / "benchmarks" / "results"
LIBRARIES = ("widemargin", "numpy", "scipy", "scikit-learn", "numba")
# A peer of some benchmarks, named where it is installed.
INTELEX = "scikit-learn-intelex"

# ---------------------------------------------------------------- options


def option_parser(name: str, description: str, timeout: float = 600.0) -> argparse.ArgumentParser:
    """The options every benchmark has."""
    parser = argparse.ArgumentParser(f"python -m benchmarks {name}", description=description)
    parser.add_argument("--quick", action="store_true", help="few rows; writes NAME_quick.*")
    parser.add_argument("--timeout", type=float, default=timeout, help="seconds a measurement")
    parser.add_argument("--threads", type=int, default=2, help="threads of each measurement")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the results")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page anew")
    return parser


def add_choice(
    parser: argparse.ArgumentParser,
    option: str,
    choices: Sequence[str],
    metavar: str,
    *,
    default: Sequence[str] | None = None,
    of: str = "",
) -> None:
    """An option that takes some of these names, which its help lists."""
    parser.add_argument(
        option,
        nargs="+",
        choices=choices,
        default=default,
        metavar=metavar,
        help=of + ", ".join(choices),
    )


# ---------------------------------------------------------------- where figures come from


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


def facts_of(run: Record, records: Sequence[Record]) -> str:
    """Where the figures of a run come from, and whether they are older than the code."""
    made = f", commit {run['commit']}" if run.get("commit") else ""
    said = (
        f"`{run['command']}`, {run['date'][:10]}{made}, {run['machine']['processor']}, "
        f"{run['machine']['cpus']} CPUs, {run['threads']} threads; "
        + ", ".join(f"{library} {version}" for library, version in run["versions"].items())
    )
    old = age(records, run.get("sources", {}))
    return f"{said}. {old}" if old else said


# ---------------------------------------------------------------- sessions


def one_line(record: Record) -> str:
    """What is printed when a measurement has ended."""
    if record["status"] != "ok":
        return f"{record['status']}: {record['message']}"
    return (
        f"{record['accuracy']:.2f} %, fit {record['fit_seconds']:.2f} s, "
        f"{record['n_vectors']} vectors, {record['peak_mb']:.0f} MB"
    )


class Session:
    """The measurements of one run of a benchmark: takes them, shows them, writes them.

    The JSON file is rewritten after each, so that an interrupted run loses nothing. ``say`` makes
    the line that is printed for a record.
    """

    def __init__(
        self,
        name: str,
        timeout: float,
        threads: int,
        results: Path,
        say: Callable[[Record], str] = one_line,
    ) -> None:
        self.name, self.timeout, self.threads, self.results = name, timeout, threads, results
        self.say = say
        self.measures = True
        self.records: list[Record] = []
        self.header: Record = {
            "name": name,
            "command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "threads": threads,
            "timeout": timeout,
            "machine": machine(),
            "versions": versions(),
            "commit": commit(),
            "sources": {},
        }
        results.mkdir(parents=True, exist_ok=True)

    @classmethod
    def of(
        cls, options: argparse.Namespace, name: str, say: Callable[[Record], str] = one_line
    ) -> Self:
        """A quick run has its own files: it must never replace a committed result."""
        stem = f"{name}_quick" if options.quick else name
        session = cls(stem, options.timeout, options.threads, options.results, say)
        session.measures = not options.page
        return session

    def run(self, measurements: Sequence[Measurement]) -> None:
        if not self.measures:
            return
        for number, measurement in enumerate(measurements, start=1):
            print(
                f"[{number}/{len(measurements)}] {title_of(measurement)} ... ",
                end="",
                flush=True,
            )
            record = runner.measure(measurement, self.timeout, self.threads)
            self.keep(self.with_source(record))
            print(self.say(record), flush=True)
            (self.results / f"{self.name}.json").write_text(self.document())

    def with_source(self, record: Record) -> Record:
        """The record with a hash of the modules it has run, which the header lists."""
        modules = record.pop("modules", None)
        source = None if modules is None else hash_of(modules)
        if source is None:
            return record
        self.header["sources"][source] = modules
        return {**record, "source": source}

    def keep(self, record: Record) -> None:
        self.records.append(record)

    def document(self) -> str:
        """The text of the JSON file."""
        return json.dumps({**self.header, "records": self.records}, indent=1) + "\n"

    def facts(self) -> list[str]:
        """Where the figures come from, a paragraph a run."""
        return [facts_of(self.header, self.records)]

    def write(self, title: str, tables: Sequence[Table], notes: Sequence[str] = ()) -> None:
        """The Markdown page, to the screen and beside the JSON."""
        page = markdown_page(title, [*self.facts(), *notes], tables)
        print("\n" + page)
        (self.results / f"{self.name}.md").write_text(page)


class MergedSession(Session):
    """A session that starts from the records of earlier ones; each names the run it is of.

    What is measured replaces its own cell, and all others are kept.
    """

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        if installed(INTELEX):
            self.header["versions"][INTELEX] = importlib.metadata.version(INTELEX)
        path = self.results / f"{self.name}.json"
        earlier = json.loads(path.read_text()) if path.exists() else {"runs": {}, "records": []}
        self.records = earlier["records"]
        self.runs = earlier["runs"] | {self.header["date"]: self.header}

    def keep(self, record: Record) -> None:
        # A cell is of the set, not of what the child process has loaded for it.
        dataset = record.get("set_name") or record["dataset"]
        run = self.header["date"]
        self.records = merged(self.records, {**record, "dataset": dataset, "run": run})

    def used_runs(self) -> dict[str, Record]:
        used = {record["run"] for record in self.records}
        return {name: run for name, run in self.runs.items() if name in used}

    def document(self) -> str:
        """A record a line, so that a partial run changes few lines."""
        head = json.dumps({"name": self.name, "runs": self.used_runs()}, indent=1)
        lines = ",\n".join(json.dumps(record) for record in self.records)
        return f'{head[:-2]},\n "records": [\n{lines}\n ]\n}}\n'

    def facts(self) -> list[str]:
        return [
            facts_of(run, [record for record in self.records if record["run"] == name])
            for name, run in self.used_runs().items()
        ]
