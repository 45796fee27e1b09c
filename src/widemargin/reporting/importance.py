"""How much a model's answers depend on a column: what shuffling it costs.

L. Breiman, "Random forests", Machine Learning 2001, section 10, on rows that the user gives.
"""

from __future__ import annotations

from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.reporting.evidence import Evidence, taken

__all__ = ["importances"]

# Rows that are asked about again for each column, at the most.
_ROWS = 1000
# Sparse rows have too many columns to try, as a rule.
_MOST_SPARSE = 2000


def importances(
    evidence: Evidence, seconds: float, random_state: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return columns that were tried within a time, and the loss of each.

    The loss is in accuracy for classes, in R² for numbers, and the mean change of the score
    relative to its spread for outliers.
    """
    rng = np.random.default_rng(random_state)
    some = rng.permutation(evidence.n)[:_ROWS]
    X = taken(evidence.X, some)
    if sparse.issparse(X):
        if X.shape[1] > _MOST_SPARSE:
            return np.empty(0, dtype=np.int64), np.empty(0)
        X = X.toarray()
    base = _answers(evidence, X)
    end = monotonic() + seconds
    tried, losses = [], []
    for column in rng.permutation(X.shape[1]):
        if monotonic() > end:
            break
        tried.append(int(column))
        losses.append(_loss(evidence, some, base, _answers(evidence, _shuffled(X, column, rng))))
    return np.array(tried, dtype=np.int64), np.array(losses)


def _answers(evidence: Evidence, X: Any) -> NDArray[Any]:
    if evidence.task == "outliers":
        return np.asarray(evidence.model.decision_function(X))
    return np.asarray(evidence.model.predict(X))


def _shuffled(X: Any, column: int, rng: np.random.Generator) -> Any:
    order = rng.permutation(X.shape[0])
    changed = X.copy()
    if hasattr(X, "iloc"):
        changed[X.columns[column]] = X.iloc[:, column].to_numpy()[order]
    else:
        changed[:, column] = X[order, column]
    return changed


def _loss(
    evidence: Evidence, some: NDArray[np.int64], base: NDArray[Any], found: NDArray[Any]
) -> float:
    if evidence.task == "outliers":
        return float(np.abs(found - base).mean() / (base.std() or 1.0))
    assert evidence.y is not None
    y = evidence.y[some]
    if evidence.task == "classes":
        return float((base == y).mean() - (found == y).mean())
    spread = float(((y - y.mean()) ** 2).sum()) or 1.0
    return float((((found - y) ** 2).sum() - ((base - y) ** 2).sum()) / spread)
