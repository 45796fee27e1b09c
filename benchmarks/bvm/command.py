"""``python -m benchmarks bvm``: the tables, or with ``--figures`` the sweeps."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.bvm import figures
from benchmarks.bvm.plan import QUICK_ROWS, QUICK_SETS, SETS, measurements
from benchmarks.bvm.tables import tables
from benchmarks.harness.datasets import RECIPES
from benchmarks.harness.session import Session, option_parser

NOTES = (
    "Every cell: ours, and in brackets the figure the paper prints. Paper's C = 1 (ours: C = 0.5), "
    "Gaussian kernel, γ = 1/β. Columns named by ε use the paper's stopping rule, `gap` our "
    "default. LIBSVM is scikit-learn's SVC in the same run, one-vs-one and on one thread.",
    "w8a stands for the paper's web, and is split 80/20 like ijcnn1; reuters is TF-IDF with rows "
    "of unit length. Times compare only within a run: read the ratios.",
)


def main(argv: Sequence[str]) -> None:
    parser = option_parser("bvm", "Tables 2 to 4 and Figures 2 and 3 of the BVM paper")
    parser.add_argument("--sets", nargs="+", choices=sorted(RECIPES), metavar="SET", default=None)
    parser.add_argument("--figures", action="store_true", help="the sweeps instead of the tables")
    options = parser.parse_args(argv)
    if options.figures:
        figures.run(options)
        return
    sets = options.sets or (QUICK_SETS if options.quick else SETS)
    session = Session.of(options, "bvm")
    session.run(measurements(sets, QUICK_ROWS if options.quick else None))
    session.write("The BVM paper's tables", tables(session.records, sets), NOTES)
