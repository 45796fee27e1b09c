"""MMDAOnline as the Maxi-Min paper has it: λ by cross-validation, T = 1000 updates.

Two forms. `OnlineOfOurs` is `MaxiMinDA(solver="online", rounding="eigen")`: the leading
eigenvectors of Q, as the paper has them. `OnlineWithRoots` is Algorithm 1 written down once more,
with the solution of (5): the W' that minimises ‖A − W'W'ᵀ‖ has these eigenvectors times the roots
of their eigenvalues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from benchmarks.maximin.classifiers import ROUNDING, class_means, nearest_mean, neighbours

N_UPDATES = 1000
# λ scales with the fourth power of distances in the whitened space, which are 0.6 to 100 squared.
GRID = (1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3, 1e4)
FOLDS = 5


@dataclass(frozen=True)
class Whitened:
    """A map into the whitened space of the class means, and these there."""

    center: np.ndarray
    map: np.ndarray
    means: np.ndarray


def whitened(X: np.ndarray, y: np.ndarray, shrinkage: str | None) -> Whitened:
    """Section 3.2, step one; "auto" shrinks the within-class covariance by Ledoit and Wolf."""
    from sklearn.covariance import ledoit_wolf

    labels, code = np.unique(y, return_inverse=True)
    center, means = X.mean(axis=0), class_means(X, code, len(labels))
    away = X - means[code]
    if shrinkage is None:
        covariance = away.T @ away / len(X)
    else:
        covariance = ledoit_wolf(away, assume_centered=True)[0]
    values, vectors = np.linalg.eigh(covariance)
    kept = values > ROUNDING * values[-1]
    white = vectors[:, kept] / np.sqrt(values[kept])
    inside = (means - center) @ white
    # Algorithm 1 never leaves the span of the class means.
    _, size, axes = np.linalg.svd(inside - inside.mean(axis=0), full_matrices=False)
    axes = axes[size > np.sqrt(ROUNDING) * size[0]]
    return Whitened(center, white @ axes.T, inside @ axes.T)


def after_updates(means: np.ndarray, lam: float, n_updates: int, seed: int) -> np.ndarray:
    """Algorithm 1: Q after so many random pairs of classes, kept as λt Q, the sum in (20)."""
    rng = np.random.default_rng(seed)
    first = rng.integers(len(means), size=n_updates)
    second = (first + rng.integers(1, len(means), size=n_updates)) % len(means)
    total = np.zeros((means.shape[1], means.shape[1]))
    for t, apart in enumerate(means[first] - means[second]):
        if t == 0 or apart @ total @ apart < lam * t:
            total += np.outer(apart, apart)
    return total / (lam * n_updates)


class OnlineByValidation(TransformerMixin, BaseEstimator):
    """What both forms share: the choice of λ by the accuracy on held-out folds of the rows."""

    def __init__(
        self,
        n_components: int = 2,
        n_updates: int = N_UPDATES,
        shrinkage: str | None = None,
        classifier: str = "knn",
        random_state: int = 0,
    ) -> None:
        self.n_components = n_components
        self.n_updates = n_updates
        self.shrinkage = shrinkage
        self.classifier = classifier
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> OnlineByValidation:
        from sklearn.model_selection import StratifiedKFold

        folds = min(FOLDS, int(np.unique(y, return_counts=True)[1].min()))
        splits = StratifiedKFold(folds, shuffle=True, random_state=self.random_state)
        accuracy = np.zeros(len(GRID))
        for kept, held in splits.split(X, y):
            start = self._start(X[kept], y[kept])
            for number, lam in enumerate(GRID):
                center, W = self._found(start, lam)
                parts = (X[kept] - center) @ W, y[kept], (X[held] - center) @ W, y[held]
                accuracy[number] += self._accuracy(*parts) / folds
        self.lam_ = GRID[int(np.argmax(accuracy))]
        self.mean_, self.directions_ = self._found(self._start(X, y), self.lam_)
        return self

    def transform(self, X: np.ndarray) -> np.ndarray:
        return (X - self.mean_) @ self.directions_

    def _accuracy(self, *parts: np.ndarray) -> float:
        if self.classifier == "mean":
            return nearest_mean(*parts)
        return max(neighbours(*parts, threads=1).values())

    def _start(self, X: np.ndarray, y: np.ndarray) -> Any:
        raise NotImplementedError

    def _found(self, start: Any, lam: float) -> tuple[np.ndarray, np.ndarray]:
        """The mean, and the directions with that λ."""
        raise NotImplementedError


class OnlineWithRoots(OnlineByValidation):
    """Algorithm 1, and (5) solved."""

    def _start(self, X: np.ndarray, y: np.ndarray) -> Whitened:
        return whitened(X, y, self.shrinkage)

    def _found(self, start: Whitened, lam: float) -> tuple[np.ndarray, np.ndarray]:
        Q = after_updates(start.means, lam, self.n_updates, self.random_state)
        values, vectors = np.linalg.eigh(Q)
        values, vectors = (part[..., ::-1][..., : self.n_components] for part in (values, vectors))
        return start.center, start.map @ (vectors * np.sqrt(np.maximum(values, 0.0)))


class OnlineOfOurs(OnlineByValidation):
    """`MaxiMinDA` with the same choice of λ."""

    def _start(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return X, y

    def _found(
        self, start: tuple[np.ndarray, np.ndarray], lam: float
    ) -> tuple[np.ndarray, np.ndarray]:
        from widemargin import MaxiMinDA

        machine = MaxiMinDA(
            self.n_components,
            sharpness=float("inf"),
            shrinkage=self.shrinkage,
            solver="online",
            rounding="eigen",
            lam=lam,
            n_updates=self.n_updates,
            random_state=self.random_state,
        ).fit(*start)
        return machine.mean_, machine.components_.T
