"""``python -m benchmarks peers``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness.machines import CACHE
from benchmarks.harness.records import ordered
from benchmarks.harness.runner import installed
from benchmarks.harness.session import MergedSession, Session, add_choice, option_parser
from benchmarks.peers.plan import MACHINES, SETS, measurements
from benchmarks.peers.plots import pareto_figure
from benchmarks.peers.tables import tables

QUICK_SETS = ("letter",)
QUICK_ROWS = 2000
VALUES_OF_C = (0.1, 1.0, 10.0, 100.0)
GAMMA_FACTORS = (1.0, 8.0)
TIMEOUT = 300.0
MEMORY_GB = 16.0

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


def main(argv: Sequence[str]) -> None:
    parser = option_parser("peers", "MarginClassifier beside other kernel machines", TIMEOUT)
    add_choice(parser, "--data", (*SETS, "generated"), "NAME")
    parser.add_argument("--C", type=float, nargs="+", default=VALUES_OF_C)
    parser.add_argument("--gamma-factor", type=float, nargs="+", default=GAMMA_FACTORS)
    add_choice(parser, "--machines", tuple(MACHINES), "NAME", default=tuple(MACHINES))
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
    session = MergedSession.of(options, "peers")
    session.run(plan)
    page = tables(session.records, draw(session))
    session.write("MarginClassifier and its peers", page, NOTES)
