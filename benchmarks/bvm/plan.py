"""LIBSVM and our machines on the sets of the BVM paper.

Each of ours runs with the paper's rule (``stopping="ball"``) at its three ε, and with our default,
the SVM's relative duality gap.
"""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.harness.bvm_paper import EPSILONS, epsilon_name
from benchmarks.harness.machines import VECTOR_MACHINES, libsvm, vector_machine
from benchmarks.harness.runner import Measurement

SETS = ("optdigits", "satimage", "pendigits", "letter", "ijcnn1", "w8a", "reuters")
QUICK_SETS = ("optdigits", "reuters")
QUICK_ROWS = 1500
LABELS = tuple(
    f"{machine} {rule}"
    for machine in VECTOR_MACHINES
    for rule in (*map(epsilon_name, EPSILONS), "gap")
)


def measurements(sets: Sequence[str], rows: int | None) -> list[Measurement]:
    """LIBSVM first on each set: the others are read against it."""
    return [
        measurement
        for dataset in sets
        for measurement in (
            libsvm(dataset, rows=rows),
            *(
                vector_machine(machine, dataset, epsilon=epsilon, rows=rows)
                for machine in VECTOR_MACHINES
                for epsilon in (*EPSILONS, None)
            ),
        )
    ]
