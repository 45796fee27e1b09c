"""The peers that are more than one scikit-learn estimator, each as one.

Every one takes ``C`` and ``gamma`` as the others do. `NystroemLinearSVC`, which other benchmarks
measure too, is in `benchmarks.harness.estimators`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from benchmarks.harness.estimators import Peer


class FourierSGD(Peer):
    """Random Fourier features (`RBFSampler`) and an `SGDClassifier` with the hinge loss."""

    def __init__(
        self,
        C: float = 1.0,
        gamma: float = 1.0,
        n_components: int = 2000,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.n_components = n_components
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> FourierSGD:
        features = RBFSampler(
            gamma=self.gamma, n_components=self.n_components, random_state=self.random_state
        )
        # Its objective is the SVM's divided by C n, so this is the same C.
        machine = SGDClassifier(
            alpha=1.0 / (self.C * X.shape[0]), n_jobs=self.n_jobs, random_state=self.random_state
        )
        self.model_ = make_pipeline(features, machine).fit(X, y)
        self.n_vectors_ = self.n_components
        return self


class SubsampledSVC(Peer):
    """`SVC` on ``n_rows`` random rows, the width of the kernel as on all of them."""

    def __init__(
        self,
        C: float = 1.0,
        gamma: float = 1.0,
        n_rows: int = 2000,
        cache_size: float = 200,
        random_state: int = 0,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.n_rows = n_rows
        self.cache_size = cache_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> SubsampledSVC:
        order = np.random.default_rng(self.random_state).permutation(X.shape[0])
        kept = np.sort(order[: self.n_rows])
        self.model_ = SVC(C=self.C, gamma=self.gamma, cache_size=self.cache_size)
        self.model_.fit(X[kept], y[kept])
        self.n_vectors_ = len(self.model_.support_)
        return self
