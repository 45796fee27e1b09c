"""`MarginClassifier` beside the kernel machines that one would use instead of it.

For each data set, width γ and C all machines run one after another, each in its own process, so
that ratios of times come from one run. γ is a multiple of 1/β (β the mean squared distance of
training rows), the same number for all. A run of some cells replaces these in
``results/peers.json`` and leaves the others; the page and the pictures show all of them.

C is not quite the same for all: ours and `LinearSVC` square the hinge, `SVC` and
`SGDClassifier` do not. Compare errors over a range of C, as the Pareto fronts do.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.peers_plan import CACHE, INTELEX, MACHINES, SETS, cell_of, measurements
from benchmarks.peers_plots import pareto_figure
from benchmarks.peers_tables import ordered, tables
from benchmarks.runner import Record, Session, facts_of, installed, option_parser, stem_from

QUICK_SETS = ("letter",)
QUICK_ROWS = 2000
VALUES_OF_C = (0.1, 1.0, 10.0, 100.0)
GAMMA_FACTORS = (1.0, 8.0)
TIMEOUT = 300.0
MEMORY_GB = 16.0


def merged(records: Sequence[Record], record: Record) -> list[Record]:
    """The records with ``record`` in its cell; a skipped one never replaces a measured one."""
    cells = {cell_of(old): old for old in records}
    if record["status"] != "skipped" or cell_of(record) not in cells:
        cells[cell_of(record)] = record
    return list(cells.values())


class MergedSession(Session):
    """A session that starts from the records of earlier ones; each names the run it is of."""

    def __init__(self, name: str, timeout: float, threads: int, results: Path) -> None:
        super().__init__(name, timeout, threads, results)
        if installed(INTELEX):
            self.header["versions"][INTELEX] = importlib.metadata.version(INTELEX)
        path = results / f"{name}.json"
        earlier = json.loads(path.read_text()) if path.exists() else {"runs": {}, "records": []}
        self.records = earlier["records"]
        self.runs = earlier["runs"] | {self.header["date"]: self.header}

    def keep(self, record: Record) -> None:
        self.records = merged(self.records, {**record, "run": self.header["date"]})

    def used_runs(self) -> dict[str, Record]:
        used = {record["run"] for record in self.records}
        return {name: run for name, run in self.runs.items() if name in used}

    def document(self) -> str:
        """A record a line, so that a partial run changes few lines."""
        head = json.dumps({"name": self.name, "runs": self.used_runs()}, indent=1)
        lines = ",\n".join(json.dumps(record) for record in self.records)
        return f'{head[:-2]},\n "records": [\n{lines}\n ]\n}}\n'

    def facts(self) -> list[str]:
        return [facts_of(run) for run in self.used_runs().values()]


def draw(session: Session) -> dict[str, Path | None]:
    """A picture of each data set; none where Matplotlib is missing."""
    if not installed("matplotlib"):
        print("No pictures: matplotlib is not installed (pip install 'widemargin[bench]').")
        return {}
    families = {machine.label: machine.family for machine in MACHINES.values()}
    pictures = {}
    for dataset in ordered((record["dataset"] for record in session.records), SETS):
        mine = [record for record in session.records if record["dataset"] == dataset]
        path = session.results / f"{session.name}_{dataset}.png"
        pictures[dataset] = pareto_figure(mine, families, dataset, path)
    return pictures


NOTES = (
    "`ours` is `MarginClassifier`. *Over* is a machine's fit time over that of ours in the same "
    "run; a dash where they are not of one run. Above 1 ours is faster. One fit in a process of "
    "its own, after a warm-up (compilation); the time limit holds for the process, so with "
    "loading and prediction. Peak memory is what the fit adds to the data.",
    "All machines get the same γ, C and number of threads; scikit-learn's SVC uses one whatever "
    f"it gets. The SVCs may cache {CACHE['cache_size']} MB, as ours may. C weighs the squared "
    "hinge in ours and in LinearSVC, the hinge in SVC and SGD. Vectors of RBFSampler are features.",
    "The lowest errors and the fronts choose C and γ on the test rows, for every machine alike: "
    "they compare machines and do not estimate the error on new data.",
)


def main(argv: Sequence[str]) -> None:
    parser = option_parser("peers", "MarginClassifier beside other kernel machines")
    parser.set_defaults(timeout=TIMEOUT)
    sets = (*SETS, "generated")
    parser.add_argument("--data", nargs="+", choices=sets, metavar="NAME", help=", ".join(sets))
    parser.add_argument("--C", type=float, nargs="+", default=VALUES_OF_C)
    parser.add_argument("--gamma-factor", type=float, nargs="+", default=GAMMA_FACTORS)
    names = tuple(MACHINES)
    parser.add_argument(
        "--machines", nargs="+", choices=names, metavar="NAME", default=names, help=", ".join(names)
    )
    parser.add_argument("--memory-limit", type=float, default=MEMORY_GB, help="GB a process")
    parser.add_argument("--repeats", type=int, default=1, help="fits, of which the median counts")
    options = parser.parse_args(argv)
    plan = measurements(
        options.data or (QUICK_SETS if options.quick else SETS),
        options.gamma_factor,
        options.C,
        options.machines,
        rows=QUICK_ROWS if options.quick else None,
        repeats=options.repeats,
        memory_gb=options.memory_limit,
    )
    stem = stem_from(options, "peers")
    session = MergedSession(stem, options.timeout, options.threads, options.results)
    session.run(plan)
    page = tables(session.records, draw(session))
    session.write("MarginClassifier and its peers", page, NOTES)
