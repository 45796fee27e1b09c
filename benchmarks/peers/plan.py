"""Which machines are compared on which sets, and in which order they are measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from benchmarks.harness.machines import CACHE, INTELEX_SVC, NYSTROEM, Machine
from benchmarks.harness.runner import Measurement

SETS = (
    "covtype_20000",
    "covtype_100000",
    "mnist_unit",
    "ijcnn1_40000",
    "letter",
    "w8a",
    "kddcup99_10pct",
    "mixture",
)


def ours(label: str, warmups: Sequence[dict[str, Any]] = ({},), **params: Any) -> Machine:
    """Warmed up on enough rows for the largest number of vectors, so that all code is compiled."""
    params |= {"random_state": 0}
    return Machine(label, "ours", "widemargin.MarginClassifier", params, warmups, 5000)


def nystroem(n: int) -> Machine:
    return Machine(f"Nystroem({n}) + LinearSVC", "nystroem", NYSTROEM, {"n_components": n})


def fourier(n: int) -> Machine:
    path = "benchmarks.peers.machines.FourierSGD"
    return Machine(f"RBFSampler({n}) + SGD", "fourier", path, {"n_components": n})


def part(n: int) -> Machine:
    path = "benchmarks.peers.machines.SubsampledSVC"
    return Machine(f"SVC on {n:,} rows", "svc-part", path, {"n_rows": n, **CACHE})


# Few rows would start one engine only, and the choice may fall on another.
ALL_ENGINES = ({"engine": "exact"}, {"engine": "span"}, {"engine": "cells"})

MACHINES = {
    "ours-auto": ours("ours, auto", ALL_ENGINES, engine="auto", max_vectors="auto"),
    "ours-1000": ours("ours, 1000 vectors", engine="span", max_vectors=1000),
    "ours-2000": ours("ours, 2000 vectors", engine="span", max_vectors=2000),
    "svc": Machine("SVC", "svc", "sklearn.svm.SVC", CACHE),
    "intelex": INTELEX_SVC,
    "nystroem-300": nystroem(300),
    "nystroem-1000": nystroem(1000),
    "nystroem-2000": nystroem(2000),
    "fourier-2000": fourier(2000),
    "svc-2000": part(2000),
    "svc-5000": part(5000),
    "svc-10000": part(10_000),
}
OURS = tuple(name for name, machine in MACHINES.items() if machine.family == "ours")


def measurements(
    sets: Iterable[str],
    gamma_factors: Iterable[float],
    values_of_C: Iterable[float],
    machines: Iterable[str],
    **fields: Any,
) -> list[Measurement]:
    """All machines of a cell right after one another; ``fields`` go to every `Measurement`."""
    values_of_C, machines = tuple(values_of_C), tuple(machines)
    gamma_factors = tuple(gamma_factors)
    return [
        MACHINES[name].at(dataset, gamma_factor, C, **fields)
        for dataset in sets
        for gamma_factor in gamma_factors
        for C in values_of_C
        for name in machines
    ]
