"""LIBSVM, `MarginClassifier` and the papers' machines, three fits each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.harness.machines import (
    LIBSVM,
    PAPER_C,
    VECTOR_MACHINES,
    libsvm,
    vector_machine,
)
from benchmarks.harness.runner import Measurement

SETS = ("optdigits", "satimage", "pendigits", "ijcnn1")
QUICK_ROWS = 1000
REPEATS = 3
VALUES_OF_C = (1.0, 10.0)


def margin_label(C: float) -> str:
    return f"MarginClassifier, C = {C:g}"


def libsvm_label(C: float) -> str:
    return LIBSVM if C == PAPER_C else f"{LIBSVM}, C = {C:g}"


def margin(dataset: str, C: float, **fields: Any) -> Measurement:
    params = {"C": C, "gamma": "mean_distance", "random_state": 0}
    return Measurement(
        margin_label(C),
        dataset,
        "widemargin.MarginClassifier",
        params,
        # Few rows would start the exact engine only.
        warmups=({"engine": "exact"}, {"engine": "span"}),
        **fields,
    )


def measurements(sets: Sequence[str], rows: int | None) -> list[Measurement]:
    fields: dict[str, Any] = {"rows": rows, "repeats": REPEATS}
    plan: list[Measurement] = []
    for dataset in sets:
        for C in VALUES_OF_C:
            plan.append(libsvm(dataset, paper_C=C, label=libsvm_label(C), **fields))
            plan.append(margin(dataset, C, **fields))
        plan += [vector_machine(name, dataset, label=name, **fields) for name in VECTOR_MACHINES]
    return plan
