"""The detectors, by name, and how many rows each is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import SGDOneClassSVM
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM

COMPONENTS = 300
NEIGHBOUR_ROWS = 20_000
KERNEL_ROWS = 10_000

OURS = "MarginOneClass"
ALIKE = "MarginOneClass, parameters of OneClassSVM"
KERNEL = "OneClassSVM ν = 0.5"
KERNEL_TENTH = "OneClassSVM ν = 0.1"
LINEAR = "SGDOneClassSVM"
FOREST = "IsolationForest"
NEIGHBOURS = "LocalOutlierFactor"
TAILS = "PyOD's ECOD"
DISTANCES = "PyOD's KNN"


def kernel_machine(nu: float) -> Pipeline:
    """`OneClassSVM` of standardised columns."""
    return make_pipeline(StandardScaler(), OneClassSVM(gamma="scale", nu=nu, cache_size=1000))


def linear_machine() -> Pipeline:
    """`SGDOneClassSVM` on the features of 300 random rows; of unit variance, γ is 1/d."""
    features = Nystroem(gamma=None, n_components=COMPONENTS, random_state=0)
    return make_pipeline(StandardScaler(), features, SGDOneClassSVM(nu=0.5, random_state=0))


def neighbours(n_jobs: int | None = None) -> Pipeline:
    """`LocalOutlierFactor` of standardised columns."""
    return make_pipeline(StandardScaler(), LocalOutlierFactor(n_jobs=n_jobs))


def distances(n_jobs: int | None = None) -> Pipeline:
    """PyOD's distance from the fifth neighbour, of standardised columns."""
    from pyod.models.knn import KNN

    return make_pipeline(StandardScaler(), KNN(n_jobs=n_jobs or 1))


@dataclass(frozen=True)
class Detector:
    """An import path and its parameters.

    ``sample`` is how many random rows it is fitted on at the most; above ``most_rows`` it is left
    out; ``warmups`` are changes of parameters for fits that load compiled code.
    """

    path: str
    params: dict[str, Any] = field(default_factory=dict)
    sample: int | None = None
    most_rows: int | None = None
    warmups: Sequence[dict[str, Any]] = ()


HERE = "benchmarks.outliers.detectors"
DETECTORS = {
    OURS: Detector(
        "widemargin.MarginOneClass",
        {"random_state": 0},
        warmups=({"engine": "exact"}, {"engine": "span"}),
    ),
    KERNEL: Detector(f"{HERE}.kernel_machine", {"nu": 0.5}, sample=KERNEL_ROWS),
    KERNEL_TENTH: Detector(f"{HERE}.kernel_machine", {"nu": 0.1}, sample=KERNEL_ROWS),
    LINEAR: Detector(f"{HERE}.linear_machine"),
    FOREST: Detector("sklearn.ensemble.IsolationForest", {"random_state": 0}),
    NEIGHBOURS: Detector(f"{HERE}.neighbours", most_rows=NEIGHBOUR_ROWS),
}
# The same problem as the peer's, to compare times: same columns, γ and ν.
ALIKE_DETECTOR = Detector(
    "widemargin.MarginOneClass",
    {"nu": 0.1, "gamma": "scale", "scale": "standard", "random_state": 0},
    warmups=({"engine": "exact"}, {"engine": "span"}),
)
if find_spec("pyod") is not None:
    DETECTORS |= {
        TAILS: Detector("pyod.models.ecod.ECOD", {"n_jobs": 1}),
        DISTANCES: Detector(f"{HERE}.distances", most_rows=NEIGHBOUR_ROWS),
    }
