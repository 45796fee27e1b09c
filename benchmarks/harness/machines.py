"""Machines that several benchmarks measure, as measurements.

The BVM paper minimises ‖w‖² + b² + C Σξ², which is our objective at C/2, so its machines run at
half of its C; LIBSVM's own problem (hinge, free bias) keeps the paper's C, as the paper's did.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.harness.bvm_paper import epsilon_name
from benchmarks.harness.runner import Measurement, Part
from benchmarks.harness.session import INTELEX

# ---------------------------------------------------------------- those of the BVM paper

PAPER_C = 1.0
VECTOR_MACHINES = {
    "BVM": "widemargin.BallVectorClassifier",
    "CVM": "widemargin.CoreVectorClassifier",
}
# The machines as the paper has them: a row at a time, the furthest of 59, one radius of Algorithm 4
# (its footnote 4), and pairs of classes, of which the paper says nothing: its numbers of vectors
# are those of pairs. Ours let many rows join at once, and take each class against the rest.
AS_PRINTED: dict[str, dict[str, Any]] = {
    "BVM": {"growth": "one", "sample_size": 59, "multi_class": "ovo", "max_radii": 1},
    "CVM": {"growth": "one", "sample_size": 59, "multi_class": "ovo"},
}
PRINTED = "as printed"
LIBSVM = "LIBSVM"


def vector_machine(
    machine: str,
    dataset: str,
    paper_C: float = PAPER_C,
    epsilon: float | None = None,
    label: str | None = None,
    gamma_factor: float = 1.0,
    as_printed: bool = False,
    memory: str = "4GB",
    **fields: Any,
) -> Part:
    """One of ours at the paper's C; ``epsilon=None`` leaves the default stopping rule."""
    params: dict[str, Any] = {"C": paper_C / 2.0, "kernel": "rbf"}
    # At the paper's C and width nearly all rows of letter are vectors: that takes its matrix.
    params |= {"gamma": {"mean_distance": gamma_factor}, "random_state": 0, "memory": memory}
    if epsilon is not None:
        params |= {"stopping": "ball", "epsilon": epsilon}
    if as_printed:
        params |= AS_PRINTED[machine]
    rule = "gap" if epsilon is None else epsilon_name(epsilon)
    label = label or f"{machine} {rule}" + (f" {PRINTED}" if as_printed else "")
    return Part(label, dataset, VECTOR_MACHINES[machine], params, **fields)


def libsvm(
    dataset: str,
    paper_C: float = PAPER_C,
    label: str = LIBSVM,
    gamma_factor: float = 1.0,
    **fields: Any,
) -> Part:
    params = {"C": paper_C, "kernel": "rbf", "gamma": {"mean_distance": gamma_factor}}
    return Part(label, dataset, "sklearn.svm.SVC", params, **fields)


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
