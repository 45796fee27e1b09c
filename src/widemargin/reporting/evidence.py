"""What a page is written from: the model, some rows, and what the model says of them."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from itertools import combinations
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import is_classifier, is_outlier_detector, is_regressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

__all__ = ["Evidence", "gather", "taken"]

# Rows that a page looks at, at the most: it is read by people.
_MOST_ROWS = 20_000


@dataclass(frozen=True)
class Evidence:
    """A model and what it says of rows.

    Attributes
    ----------
    model, machine : estimator
        What the user has fitted; its last step, or the best estimator of a search.
    task : {"classes", "numbers", "outliers"}
        What it is for.
    X : DataFrame, ndarray or CSR matrix
        Rows, as the model reads them.
    y : ndarray or None
        What is true of them.
    number : ndarray of int
        The user's numbers of the rows, where there were more than a page looks at.
    n_given : int
        Rows that the user gave.
    predicted : ndarray
        What the model says.
    scores : ndarray or None
        Decision values of an outlier detector.
    margin : ndarray of shape (n, n_classes) or None
        By how much each class leads the others, of a classifier.
    names : list of str
        Of the columns.
    picture : tuple of int or None
        The shape of a row that is a picture.
    seconds : float
        What predicting took.
    """

    model: Any
    machine: Any
    task: str
    X: Any
    y: NDArray[Any] | None
    number: NDArray[np.int64]
    n_given: int
    predicted: NDArray[Any]
    scores: NDArray[np.float64] | None
    margin: NDArray[np.float64] | None
    names: list[str]
    picture: tuple[int, ...] | None
    seconds: float

    @property
    def n(self) -> int:
        """Rows that are looked at."""
        return len(self.number)

    def margins(self) -> NDArray[np.float64]:
        """Return by how much each row's own class leads."""
        assert self.margin is not None and self.y is not None
        return self._of(self.y)

    def leads(self) -> NDArray[np.float64]:
        """Return by how much the predicted class leads."""
        return self._of(self.predicted)

    def _of(self, labels: NDArray[Any]) -> NDArray[np.float64]:
        assert self.margin is not None
        code = np.searchsorted(self.model.classes_, labels)
        found: NDArray[np.float64] = np.take_along_axis(self.margin, code[:, None], axis=1)[:, 0]
        return found

    def shown(self, row: int, most: int = 6) -> list[str]:
        """Return the first values of a row as text."""
        values = row_values(self.X, row)[:most]
        return [
            f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)
            for value in values
        ]


def gather(model: Any, X: Any, y: Any, *, names: Any, picture: Any, random_state: int) -> Evidence:
    """Ask a model about rows.

    Raises
    ------
    TypeError
        If the model is not a fitted classifier, regressor or outlier detector.
    ValueError
        If rows and targets do not go together.
    """
    machine = model.steps[-1][1] if isinstance(model, Pipeline) else model
    task = _task(machine)
    check_is_fitted(machine)
    X = X if hasattr(X, "iloc") or sparse.issparse(X) else np.asarray(X)
    n = int(X.shape[0])
    if not n:
        raise ValueError("X has no rows; give some to report on.")
    if task != "outliers" and y is None:
        raise ValueError(f"y=None, but a report on {task} needs the truth; give y.")
    if y is not None:
        y = np.asarray(y)
        if y.shape != (n,):
            raise ValueError(f"y has the shape {y.shape}, but X has {n} rows; give one for each.")
    chosen = np.arange(n)
    if n > _MOST_ROWS:
        chosen = np.sort(np.random.default_rng(random_state).choice(n, _MOST_ROWS, replace=False))
    if task == "classes":
        known = np.isin(y[chosen], model.classes_)
        if not known.any():
            raise ValueError(
                f"y has no class that the model knows; it knows {list(model.classes_[:5])}."
            )
        chosen = chosen[known]
    X = taken(X, chosen)
    begun = perf_counter()
    predicted = np.asarray(model.predict(X))
    seconds = perf_counter() - begun
    if task == "numbers" and predicted.ndim > 1:
        raise ValueError(
            f"the model predicts {predicted.shape[1]} numbers a row; report on one at a time."
        )
    outliers = task == "outliers"
    scores = np.asarray(model.decision_function(X), dtype=np.float64) if outliers else None
    found = names if names is not None else getattr(X, "columns", range(X.shape[1]))
    return Evidence(
        model=model,
        machine=getattr(machine, "best_estimator_", machine),
        task=task,
        X=X,
        y=None if y is None else y[chosen],
        number=chosen,
        n_given=n,
        predicted=predicted,
        scores=scores,
        margin=_class_margins(model, machine, X) if task == "classes" else None,
        names=[f"column {each}" if isinstance(each, int) else str(each) for each in found],
        picture=None if picture is None else tuple(int(side) for side in picture),
        seconds=seconds,
    )


def _class_margins(model: Any, machine: Any, X: Any) -> NDArray[np.float64] | None:
    """Return by how much each class leads the others, at each row.

    For machines of classes against the rest it is the score of a class minus the best other one;
    for pairs of classes, whose scores are votes, the least of the values of its pairs.
    """
    if not hasattr(model, "decision_function"):
        return None
    n_classes = len(model.classes_)
    machine = copy(getattr(machine, "best_estimator_", machine))
    pairs = n_classes > 2 and getattr(machine, "multi_class_", "") == "ovo"
    if pairs:
        machine.decision_function_shape = "ovo"
        steps = isinstance(model, Pipeline) and len(model.steps) > 1
        values = np.asarray(machine.decision_function(model[:-1].transform(X) if steps else X))
        found = np.full((len(values), n_classes), np.inf)
        for column, (i, j) in enumerate(combinations(range(n_classes), 2)):
            np.minimum(found[:, i], values[:, column], out=found[:, i])
            np.minimum(found[:, j], -values[:, column], out=found[:, j])
        return found
    scores = np.asarray(model.decision_function(X), dtype=np.float64)
    if scores.ndim == 1:
        return np.column_stack([-scores, scores])
    if scores.shape[1] != n_classes:
        return None
    best = np.sort(scores, axis=1)
    rival = np.where(scores == best[:, -1:], best[:, -2:-1], best[:, -1:])
    return np.asarray(scores - rival)


def _task(machine: Any) -> str:
    if is_classifier(machine):
        return "classes"
    if is_regressor(machine):
        return "numbers"
    if is_outlier_detector(machine):
        return "outliers"
    raise TypeError(
        f"model={type(machine).__name__} is not a classifier, regressor or outlier detector; a "
        "projection is reported on in a pipeline with one of these."
    )


def taken(X: Any, index: NDArray[np.int64]) -> Any:
    """Return some rows of a frame, an array or a sparse matrix."""
    return X.iloc[index] if hasattr(X, "iloc") else X[index]


def row_values(X: Any, row: int) -> list[Any]:
    """Return the values of a row."""
    if hasattr(X, "iloc"):
        return list(X.iloc[row])
    return list(X[[row]].toarray()[0]) if sparse.issparse(X) else list(X[row])
