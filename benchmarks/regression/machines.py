"""The machines, by name: where each is found, and which of C and ε it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline

VALUES_OF_C = (1.0, 10.0, 100.0, 1000.0)
VALUES_OF_EPSILON = (0.01, 0.1)
COMPONENTS = 300
SMALL_SEARCH = ({"Cs": 8, "gammas": 1},)
ENGINES = ({"engine": "exact"}, {"engine": "span"}, {"engine": "cells"})

SQUARED = "squared"
INSENSITIVE = "squared ε-insensitive"
LINEAR = "ε-insensitive"
OURS = (SQUARED, INSENSITIVE, LINEAR)
SEARCH = "MarginRegressorCV()"
SVR = "SVR"
INTELEX = "SVR (intelex)"
RIDGE = "KernelRidge"
NYSTROEM = "Nystroem + Ridge"
TREES = "HistGradientBoosting"
GAUSSIAN = "Gaussian process"


def nystroem_ridge(alpha: float, gamma: float) -> Pipeline:
    """`Ridge` on the features of 300 random rows."""
    features = Nystroem(gamma=gamma, n_components=COMPONENTS, random_state=0)
    return make_pipeline(features, Ridge(alpha=alpha))


def gaussian_process() -> GaussianProcessRegressor:
    """Regression with a width for all columns, a variance and noise by the marginal likelihood."""
    kernel = ConstantKernel() * RBF() + WhiteKernel()
    return GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)


@dataclass(frozen=True)
class Regressor:
    """An import path, its parameters, and what is chosen for it.

    ``penalty`` is "C", or "alpha" for 1/(2C), or "" for none; of more training rows than
    ``most_rows`` a random sample of so many is taken, and ``whole`` says that all are tried
    afterwards, as long as there is time; ``warmups`` are changes of parameters for fits that load
    compiled code.
    """

    path: str
    params: dict[str, Any] = field(default_factory=dict)
    penalty: str = "C"
    epsilon: bool = False
    most_rows: int | None = None
    whole: bool = False
    warmups: Sequence[dict[str, Any]] = ()

    def candidates(self) -> list[dict[str, float]]:
        """The points of the grid."""
        if not self.penalty:
            return [{}]
        values = [{"C": C} if self.penalty == "C" else {"alpha": 0.5 / C} for C in VALUES_OF_C]
        if not self.epsilon:
            return values
        return [one | {"epsilon": width} for one in values for width in VALUES_OF_EPSILON]


MARGIN = "widemargin.MarginRegressor"
CACHE = {"cache_size": 1000}
MACHINES = {
    SQUARED: Regressor(MARGIN, {"loss": "squared", "random_state": 0}, warmups=ENGINES),
    INSENSITIVE: Regressor(
        MARGIN,
        {"loss": "squared_epsilon_insensitive", "random_state": 0},
        epsilon=True,
        warmups=ENGINES,
    ),
    LINEAR: Regressor(
        MARGIN,
        {"loss": "epsilon_insensitive", "random_state": 0},
        epsilon=True,
        warmups=ENGINES[:2],
    ),
    SEARCH: Regressor(
        "widemargin.MarginRegressorCV", {"random_state": 0}, "", warmups=SMALL_SEARCH
    ),
    RIDGE: Regressor(
        "sklearn.kernel_ridge.KernelRidge", {"kernel": "rbf"}, "alpha", most_rows=5000
    ),
    NYSTROEM: Regressor("benchmarks.regression.machines.nystroem_ridge", {}, "alpha"),
    TREES: Regressor("sklearn.ensemble.HistGradientBoostingRegressor", {"random_state": 0}, ""),
    GAUSSIAN: Regressor("benchmarks.regression.machines.gaussian_process", {}, "", most_rows=1000),
    INTELEX: Regressor("sklearnex.svm.SVR", CACHE, epsilon=True),
    SVR: Regressor("sklearn.svm.SVR", CACHE, epsilon=True, most_rows=10_000, whole=True),
}
