"""Machines that are more than one scikit-learn estimator, each as one, for a child process."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC


class Peer(ClassifierMixin, BaseEstimator):
    """Predicts with ``model_``, which ``fit`` of a subclass makes.

    ``n_vectors_`` says how many rows (or features that stand for them) a prediction has to visit.
    """

    model_: Any
    n_vectors_: int

    def predict(self, X: Any) -> np.ndarray:
        return self.model_.predict(X)


class NystroemLinearSVC(Peer):
    """`Nystroem` features of random rows, and a `LinearSVC` (squared hinge, as ours) on them."""

    def __init__(
        self, C: float = 1.0, gamma: float = 1.0, n_components: int = 300, random_state: int = 0
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> NystroemLinearSVC:
        features = Nystroem(
            gamma=self.gamma, n_components=self.n_components, random_state=self.random_state
        )
        machine = LinearSVC(C=self.C, random_state=self.random_state)
        self.model_ = make_pipeline(features, machine).fit(X, y)
        self.n_vectors_ = len(features.component_indices_)
        return self
