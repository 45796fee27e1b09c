"""``python -m benchmarks kdd``."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.bvm_paper import EPSILONS
from benchmarks.harness.session import Session, option_parser
from benchmarks.kdd.plan import QUICK_ROWS, measurements
from benchmarks.kdd.tables import kdd_table


def main(argv: Sequence[str]) -> None:
    parser = option_parser("kdd", "kddcup99, 10 %: time, memory, accuracy")
    parser.add_argument("--C", type=float, default=1e6 / 2.0, help="ours: half the paper's C")
    parser.add_argument("--epsilons", type=float, nargs="*", default=list(EPSILONS))
    parser.add_argument("--no-gap", action="store_true", help="leave out the default stopping")
    options = parser.parse_args(argv)
    session = Session.of(options, "kdd")
    rows = QUICK_ROWS if options.quick else None
    session.run(measurements(options.C, options.epsilons, rows, gap=not options.no_gap))
    notes = [
        f"C = {options.C:g} (the paper's {2.0 * options.C:g}), γ = 1/β. In brackets the paper, on "
        "ten times the rows and a machine of 2007. Peak memory is what the fit adds to the data."
    ]
    session.write("kddcup99, ten percent", [kdd_table(session.records)], notes)
