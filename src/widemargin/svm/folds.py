"""Folds of a cross-validation as problems over the same rows, and scores of the rows held out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from widemargin.balls import Points
from widemargin.classifier import winners
from widemargin.span import Problems


class Folds:
    """Which rows each fold trains on and holds out.

    Attributes
    ----------
    n : int
        Number of folds.
    test : list of ndarray of int
        Rows that each fold holds out.
    kind : ndarray of int of shape (n_samples,)
        Rows of one kind are trained on and held out by the same folds.
    counts : ndarray of shape (n_kinds, n)
        How often a fold trains on rows of a kind: 0 or 1, or more with a bootstrap.
    """

    def __init__(self, splits: list[tuple[Any, Any]], weight: NDArray[np.float64]) -> None:
        if not splits:
            raise ValueError("cv gives no folds; use a number such as cv=5, or a splitter.")
        self.n = len(splits)
        # Indices may also be masks.
        everything = np.arange(len(weight))
        parts = [(everything[train], everything[test]) for train, test in splits]
        self.test = [test for _, test in parts]
        member = np.zeros((len(weight), 2 * self.n), dtype=np.int16)
        for k, (train, test) in enumerate(parts):
            if not (weight[train].any() and weight[test].any()):
                raise ValueError(
                    f"Fold {k} of cv has no row of positive sample_weight to train on or to hold "
                    "out; use fewer folds, or leave rows of weight zero out."
                )
            np.add.at(member[:, k], train, 1)
            member[test, self.n + k] = 1
        kinds, kind = np.unique(member, axis=0, return_inverse=True)
        self.kind: NDArray[np.intp] = kind.ravel().astype(np.intp)
        self.counts = kinds[:, : self.n].astype(np.float64)


class HeldOut(ClassifierMixin, BaseEstimator):
    """A classifier of the rows that were held out, for a scorer: its answers are known."""

    def __init__(self, classes: Any = None, decision: Any = None) -> None:
        self.classes = classes
        self.decision = decision
        self.classes_ = classes

    def fit(self, X: Any, y: Any) -> HeldOut:
        """Return itself; there is nothing to fit."""
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decision values of the rows that were held out."""
        values: NDArray[np.float64] = self.decision
        return values

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the labels that follow from them."""
        return winners(self.classes_, self.decision)


def fold_problems(points: Points, Cs: NDArray[np.float64], folds: Folds, threads: int) -> Problems:
    """Return the problems of all values of C and all folds, classes running fastest."""
    n_machines = len(Cs) * folds.n
    return Problems(
        points.code,
        np.tile(points.table, n_machines),
        points.weight,
        np.repeat(Cs, folds.n * points.n_problems),
        folds.kind[points.number].astype(np.int32),
        np.tile(np.repeat(folds.counts, points.n_problems, axis=1), len(Cs)),
        threads,
    )
