"""Our machines on the ten percent of kddcup99."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.machines import VECTOR_MACHINES, vector_machine
from benchmarks.harness.runner import Measurement

DATASET = "kddcup99_10pct"
QUICK_ROWS = 20_000


def measurements(
    C: float, epsilons: Sequence[float], rows: int | None, gap: bool = True
) -> list[Measurement]:
    """Ours at C, which is half the paper's; at each ε, and with the default stopping rule."""
    rules = [*epsilons, *([None] if gap else [])]
    return [
        vector_machine(machine, DATASET, paper_C=2.0 * C, epsilon=epsilon, rows=rows)
        for machine in VECTOR_MACHINES
        for epsilon in rules
    ]
