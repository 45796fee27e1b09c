"""Machines that several benchmarks measure, as measurements.

The BVM paper minimises ‖w‖² + b² + C Σξ², which is our objective at C/2, so its machines run at
half of its C; LIBSVM's own problem (hinge, free bias) keeps the paper's C, as the paper's did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.harness.bvm_paper import epsilon_name
from benchmarks.harness.runner import Measurement
from benchmarks.harness.session import INTELEX

# ---------------------------------------------------------------- those of the BVM paper

PAPER_C = 1.0
VECTOR_MACHINES = {
    "BVM": "widemargin.BallVectorClassifier",
    "CVM": "widemargin.CoreVectorClassifier",
}
LIBSVM = "LIBSVM"


def vector_machine(
    machine: str,
    dataset: str,
    paper_C: float = PAPER_C,
    epsilon: float | None = None,
    label: str | None = None,
    **fields: Any,
) -> Measurement:
    """One of ours at the paper's C; ``epsilon=None`` leaves the default stopping rule."""
    params: dict[str, Any] = {"C": paper_C / 2.0, "kernel": "rbf", "gamma": "mean_distance"}
    # At the paper's C and width nearly all rows of letter are vectors: that takes its matrix.
    params |= {"random_state": 0, "memory": "4GB"}
    if epsilon is not None:
        params |= {"stopping": "ball", "epsilon": epsilon}
    rule = "gap" if epsilon is None else epsilon_name(epsilon)
    label = label or f"{machine} {rule}"
    return Measurement(label, dataset, VECTOR_MACHINES[machine], params, **fields)


def libsvm(
    dataset: str, paper_C: float = PAPER_C, label: str = LIBSVM, **fields: Any
) -> Measurement:
    params = {"C": paper_C, "kernel": "rbf", "gamma": "mean_distance"}
    return Measurement(label, dataset, "sklearn.svm.SVC", params, **fields)


# ---------------------------------------------------------------- machines at a width and a C

# As much as the default of our `memory`; its own 200 MB would slow LIBSVM down.
CACHE = {"cache_size": 1000}
NYSTROEM = "benchmarks.harness.estimators.NystroemLinearSVC"


@dataclass(frozen=True)
class Machine:
    """A line of a comparison; ``family`` groups it with others in pictures."""

    label: str
    family: str
    estimator: str
    params: dict[str, Any] = field(default_factory=dict)
    warmups: Sequence[dict[str, Any]] = ({},)
    warmup_rows: int = 200
    requires: str | None = None

    def at(self, dataset: str, gamma_factor: float, C: float, **fields: Any) -> Measurement:
        """On a set, with γ as a multiple of 1/β."""
        return Measurement(
            self.label,
            dataset,
            self.estimator,
            {"C": C, "gamma": {"mean_distance": gamma_factor}, **self.params},
            point={"gamma_factor": gamma_factor, "C": C},
            warmups=self.warmups,
            warmup_rows=self.warmup_rows,
            requires=self.requires,
            **fields,
        )


INTELEX_SVC = Machine("SVC (intelex)", "intelex", "sklearnex.svm.SVC", CACHE, requires=INTELEX)
