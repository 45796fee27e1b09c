"""Scores of rows that were held out, from the decision values that they got."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import check_scoring

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.folds import Folds
from widemargin.loop import Stop
from widemargin.problem import Problem, class_scores, places_of_winners, winners


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


@dataclass(frozen=True)
class Judge:
    """Scores of rows from the decision values that they got when they were held out.

    Attributes
    ----------
    scoring : str, callable or None
        As in `GridSearchCV`; None is the accuracy, weighted.
    code : ndarray of int of shape (n_samples,)
        Class of each row.
    weight : ndarray of shape (n_samples,)
        Their weights.
    classes : ndarray of shape (n_classes,)
        All labels.
    """

    scoring: Any
    code: NDArray[Any]
    weight: NDArray[Any]
    classes: NDArray[Any]

    def score(self, rows: IndexArray, values: NDArray[Any]) -> float:
        """Return the score of rows with decision values, a column for each problem."""
        if not len(rows):
            return float("nan")
        values = values[:, 0] if values.shape[1] == 1 else values
        if self.scoring is None:
            # scikit-learn's `accuracy_score` takes longer than small machines do.
            weight = self.weight[rows]
            right = places_of_winners(values) == self.code[rows]
            return float(weight[right].sum() / weight.sum())
        held, y = HeldOut(self.classes, values), self.classes[self.code[rows]]
        return float(check_scoring(held, scoring=self.scoring)(held, rows[:, None], y))

    def accuracies(self, rows: IndexArray, values: NDArray[Any]) -> Vector:
        """Return the weighted accuracies of several machines, a column of values each."""
        if not len(rows):
            return np.full(values.shape[1], np.nan)
        weight, positive = self.weight[rows], self.code[rows] > 0
        right = (values > 0) == positive[:, None]
        found: Vector = weight @ right / weight.sum()
        return found

    def score_of_parts(
        self, rows: IndexArray, values: NDArray[Any], part: IndexArray, n_parts: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the score of each part of the rows, and the weight that it speaks for.

        A score other than the accuracy is asked of parts with several classes only; others have no
        weight.
        """
        score, weight = np.zeros(n_parts), np.zeros(n_parts)
        if self.scoring is None:
            answer = winners(self.classes, values[:, 0] if values.shape[1] == 1 else values)
            np.add.at(weight, part, self.weight[rows])
            right = answer == self.classes[self.code[rows]]
            np.add.at(score, part, self.weight[rows] * right)
            return np.divide(score, weight, out=score, where=weight > 0), weight
        order = np.argsort(part, kind="stable")
        first = np.searchsorted(part[order], np.arange(n_parts + 1))
        for p in range(n_parts):
            members = order[first[p] : first[p + 1]]
            code = self.code[rows[members]]
            if (code == code[:1]).all():
                continue
            try:
                found = self.score(rows[members], values[members])
            except ValueError as error:
                raise ValueError(
                    f"per_cell=True scores the rows of each cell, where some classes may be "
                    f"missing, and scoring={self.scoring!r} failed there: {error} Give another "
                    "score, or per_cell=False."
                ) from error
            if np.isfinite(found):
                # Weights enter the loss only, where there is a score.
                score[p], weight[p] = found, len(members)
        return score, weight


@dataclass(frozen=True, eq=False)
class Noting(Judge):
    """A judge that takes note of the decision values that it is shown.

    Attributes
    ----------
    values : ndarray of shape (n_samples, n_classes), or of one column for two classes
        The last ones of each row; NaN where there were none.
    """

    values: NDArray[np.float64]

    @classmethod
    def of(cls, judge: Judge) -> Noting:
        """Return one for the rows of another judge."""
        k = len(judge.classes)
        nothing = np.full((len(judge.code), 1 if k == 2 else k), np.nan)
        return cls(None, judge.code, judge.weight, judge.classes, nothing)

    def accuracies(self, rows: IndexArray, values: NDArray[Any]) -> Vector:
        """Take note of the last machine's."""
        return np.array([self.score(rows, column[:, None]) for column in values.T])

    def score(self, rows: IndexArray, values: NDArray[Any]) -> float:
        """Take note of the decision values of rows."""
        self.values[rows] = values
        return 0.0


@dataclass(frozen=True)
class GridScores:
    """Scores of one kernel width.

    Attributes
    ----------
    scores : ndarray of shape (n_Cs, n_folds)
        The score of every C in every fold; NaN where there was no time.
    cut : Stop or None
        Why the machines that were judged are not finished, or not all there.
    centers : ndarray of shape (n_cells, n_features) or None
        Centres of the cells, where there are any.
    """

    scores: Matrix
    cut: Stop | None
    centers: Matrix | None = None


def of_classes(problem: Problem, values: NDArray[Any]) -> NDArray[Any]:
    """Return values of which the largest is the answer, from those of all problems."""
    return class_scores(values, len(problem.table)) if problem.partial else values


def held_out(problem: Problem, folds: Folds, k: int, judge: Judge) -> tuple[IndexArray, IndexArray]:
    """Return the rows of some weight that a fold holds out, and which of the problem they are."""
    assert problem.place is not None
    test = folds.test[k]
    test = test[judge.weight[test] > 0]
    return test, problem.place[test]
