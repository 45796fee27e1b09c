"""Machines of the SLMC paper that are more than one estimator, each as one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from benchmarks.harness.estimators import Peer
from benchmarks.harness.fits import imported

CACHE_MB = 500
FISHER = "widemargin.KernelFisherDA"
REDUCED_SET = "widemargin.ReducedSetClassifier"


def binary_labels(y: np.ndarray) -> list[np.ndarray]:
    """Labels of one problem for two classes, else of each class against the rest."""
    classes = np.unique(y)
    return [y == label for label in (classes[1:] if len(classes) == 2 else classes)]


def exact(X: Any, positive: np.ndarray, svm: dict[str, float]) -> SVC:
    """The SVM with all its support vectors."""
    return SVC(cache_size=CACHE_MB, **svm).fit(X, positive)


def share_of(share: float, n_support: int, up: bool = False) -> int:
    """As our estimators count, or rounded up.

    The paper does not say how it rounds. On banana 5 % are 4.3 vectors in the mean, and the errors
    of the methods with random rows, which leave nothing to a solver, are the paper's where 4.3 is
    rounded up: 29.3 and 28.5 % over five seeds against 29.9 and 28.1 (to the nearest: 31.9, 31.1).
    """
    vectors = share * n_support
    return max(1, math.ceil(vectors - 1e-9) if up else round(vectors))


def counts_of(
    X: Any, y: np.ndarray, svm: dict[str, float], share: float, up: bool = False
) -> list[int]:
    """Vectors of each binary machine: a share of its support vectors."""
    machines = [exact(X, positive, svm) for positive in binary_labels(y)]
    return [share_of(share, len(machine.support_), up) for machine in machines]


class PerClass(ClassifierMixin, BaseEstimator):
    """One binary machine a class against the rest (one for two classes), as the paper's.

    Parameters
    ----------
    machine : str
        Import path of a binary machine with ``n_vectors``; empty for the SVM itself.
    svm : dict
        C and γ of the SVM whose support vectors are counted, or compressed.
    share : float, default=None
        Share of them that each machine may have.
    n_vectors : int or list of int, default=None
        Vectors of each machine instead of a share.
    params : dict, default=None
        Other parameters of the machine.
    up : bool, default=False
        Whether a share is rounded up.
    trials : int, default=1
        Reduced sets that are made, with a seed each; the one nearest to the SVM is taken. The paper
        takes the best of three programs so.
    """

    def __init__(
        self,
        machine: str = "",
        svm: dict[str, float] | None = None,
        share: float | None = None,
        n_vectors: int | list[int] | None = None,
        params: dict[str, Any] | None = None,
        up: bool = False,
        trials: int = 1,
    ) -> None:
        self.machine = machine
        self.svm = svm
        self.share = share
        self.n_vectors = n_vectors
        self.params = params
        self.up = up
        self.trials = trials

    def fit(self, X: Any, y: np.ndarray) -> PerClass:
        self.classes_ = np.unique(y)
        problems = binary_labels(y)
        counts = self.n_vectors
        if counts is None or isinstance(counts, int):
            counts = [counts] * len(problems)
        pairs = zip(problems, counts, strict=True)
        self.machines_ = [self._fitted(X, positive, count) for positive, count in pairs]
        self.n_problem_vectors_ = [self._size(machine) for machine in self.machines_]
        self.n_vectors_ = sum(self.n_problem_vectors_)
        return self

    def _fitted(self, X: Any, positive: np.ndarray, count: int | None) -> Any:
        params = dict(self.params or {})
        if not self.machine or self.machine == REDUCED_SET or count is None:
            svm = exact(X, positive, self.svm or {})
            if not self.machine:
                return svm
            if count is None:
                count = share_of(float(self.share or 1.0), len(svm.support_), self.up)
            if self.machine == REDUCED_SET:
                params["estimator"] = svm
        first = params.pop("random_state", 0)
        made = [
            imported(self.machine)(n_vectors=count, random_state=seed, **params).fit(X, positive)
            for seed in range(first, first + self.trials)
        ]
        if len(made) == 1:
            return made[0]
        return min(made, key=lambda machine: machine.distance_[0][-1])

    @staticmethod
    def _size(machine: Any) -> int:
        return len(machine.support_) if isinstance(machine, SVC) else machine.n_vectors_

    def predict(self, X: Any) -> np.ndarray:
        scores = np.column_stack([machine.decision_function(X) for machine in self.machines_])
        if scores.shape[1] == 1:
            return self.classes_[(scores[:, 0] > 0).astype(int)]
        return self.classes_[scores.argmax(axis=1)]


class FisherSVM(Peer):
    """The kernel Fisher discriminant of all rows, and a linear SVM for its threshold."""

    def __init__(self, gamma: float = 1.0, regularization: float = 1e-3) -> None:
        self.gamma = gamma
        self.regularization = regularization

    def fit(self, X: Any, y: Any) -> FisherSVM:
        features = imported(FISHER)(
            kernel="rbf", gamma=self.gamma, regularization=self.regularization, solver="kernel"
        )
        self.model_ = make_pipeline(features, StandardScaler(), SVC(kernel="linear")).fit(X, y)
        self.n_vectors_ = len(y)
        return self
