"""``python -m benchmarks speed``."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.datasets import RECIPES
from benchmarks.harness.session import Session, option_parser
from benchmarks.speed.plan import QUICK_ROWS, REPEATS, SETS, measurements
from benchmarks.speed.tables import speed_table


def main(argv: Sequence[str]) -> None:
    parser = option_parser("speed", "fit time over LIBSVM's, default settings")
    parser.add_argument("--sets", nargs="+", choices=sorted(RECIPES), metavar="SET", default=SETS)
    options = parser.parse_args(argv)
    session = Session.of(options, "speed")
    session.run(measurements(options.sets, QUICK_ROWS if options.quick else None))
    notes = [
        f"Median of {REPEATS} fits after a warm-up on 200 rows, whose time (compilation) is the "
        "last column. LIBSVM is scikit-learn's SVC, which runs on one thread; each machine is "
        "measured against the one of its own C (the papers' machines against C = 1)."
    ]
    table = speed_table(session.records, options.sets)
    session.write("Fit time at default settings", [table], notes)
