"""Which machines are compared on which sets, and in which order they are measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.runner import Measurement, Record

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
INTELEX = "scikit-learn-intelex"
# As much as the default of our `memory`; its own 200 MB would slow LIBSVM down.
CACHE = {"cache_size": 1000}


@dataclass(frozen=True)
class Machine:
    """A line of the tables; ``family`` groups it with others in the pictures."""

    label: str
    family: str
    estimator: str
    params: dict[str, Any] = field(default_factory=dict)
    warmups: Sequence[dict[str, Any]] = ({},)
    warmup_rows: int = 200
    requires: str | None = None


def ours(label: str, warmups: Sequence[dict[str, Any]] = ({},), **params: Any) -> Machine:
    """Warmed up on enough rows for the largest number of vectors, so that all code is compiled."""
    params |= {"random_state": 0}
    return Machine(label, "ours", "widemargin.MarginClassifier", params, warmups, 5000)


def nystroem(n: int) -> Machine:
    path = "benchmarks.peers_machines.NystroemLinearSVC"
    return Machine(f"Nystroem({n}) + LinearSVC", "nystroem", path, {"n_components": n})


def fourier(n: int) -> Machine:
    path = "benchmarks.peers_machines.FourierSGD"
    return Machine(f"RBFSampler({n}) + SGD", "fourier", path, {"n_components": n})


def part(n: int) -> Machine:
    path = "benchmarks.peers_machines.SubsampledSVC"
    return Machine(f"SVC on {n:,} rows", "svc-part", path, {"n_rows": n, **CACHE})


# Few rows would start one engine only, and the choice may fall on the other.
BOTH_ENGINES = ({"engine": "exact"}, {"engine": "span"})

MACHINES = {
    "ours-auto": ours("ours, auto", BOTH_ENGINES, engine="auto", max_vectors="auto"),
    "ours-1000": ours("ours, 1000 vectors", engine="span", max_vectors=1000),
    "ours-2000": ours("ours, 2000 vectors", engine="span", max_vectors=2000),
    "svc": Machine("SVC", "svc", "sklearn.svm.SVC", CACHE),
    "intelex": Machine("SVC (intelex)", "intelex", "sklearnex.svm.SVC", CACHE, requires=INTELEX),
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
        measurement(dataset, gamma_factor, C, MACHINES[name], **fields)
        for dataset in sets
        for gamma_factor in gamma_factors
        for C in values_of_C
        for name in machines
    ]


def measurement(
    dataset: str, gamma_factor: float, C: float, machine: Machine, **fields: Any
) -> Measurement:
    return Measurement(
        machine.label,
        dataset,
        machine.estimator,
        {"C": C, "gamma": {"mean_distance": gamma_factor}, **machine.params},
        point={"gamma_factor": gamma_factor, "C": C},
        warmups=machine.warmups,
        warmup_rows=machine.warmup_rows,
        requires=machine.requires,
        **fields,
    )


Cell = tuple[str, float, float, str]


def cell_of(record: Record) -> Cell:
    point = record["point"]
    return record["dataset"], point["gamma_factor"], point["C"], record["label"]
