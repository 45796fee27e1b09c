"""The learning curve: how a machine does with a part of the rows.

A quarter of the rows is held out; copies of the machine are fitted to growing parts of the others,
as long as the time lasts.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from time import monotonic

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import Pipeline

from widemargin.reporting.evidence import Evidence, taken

__all__ = ["GrowthCurve", "growth_curve"]

_HELD_OUT = 0.25
_SHARES = (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)
# A fit to twice the rows takes up to so many times as long.
_GROWTH = 4.0


@dataclass(frozen=True)
class GrowthCurve:
    """Scores by the number of rows.

    Attributes
    ----------
    rows : ndarray of int
        Rows of each fit.
    fitted, held_out : ndarray of float
        Scores on these rows, and on those that were held out.
    complete : bool
        Whether there was time for all.
    """

    rows: NDArray[np.int64]
    fitted: NDArray[np.float64]
    held_out: NDArray[np.float64]
    complete: bool


def growth_curve(evidence: Evidence, seconds: float, random_state: int) -> GrowthCurve:
    """Return the learning curve, as far as a time lasts; no points if rows are too few."""
    assert evidence.y is not None
    X, y = evidence.X, evidence.y
    if isinstance(evidence.model, Pipeline) and len(evidence.model.steps) > 1:
        X = evidence.model[:-1].transform(X)
    order = np.random.default_rng(random_state).permutation(evidence.n)
    cut = int(_HELD_OUT * len(order))
    test, train = order[:cut], order[cut:]
    begun, took, last, points, complete = monotonic(), 0.0, 0, [], True
    for share in _SHARES:
        size = int(share * len(train))
        if size < 10 or len(test) < 5:
            continue
        if evidence.task == "classes" and len(np.unique(y[train[:size]])) < 2:
            continue
        left = seconds - (monotonic() - begun)
        if left <= 0 or (last and took * (size / last) ** (np.log2(_GROWTH)) > left):
            complete = False
            break
        machine = clone(evidence.machine)
        if "max_time" in machine.get_params():
            machine.set_params(max_time=max(left, 0.1))
        started = monotonic()
        with warnings.catch_warnings():
            # A fit that the clock ends is good enough for a point.
            warnings.simplefilter("ignore")
            machine.fit(taken(X, train[:size]), y[train[:size]])
        took, last = monotonic() - started, size
        some = train[:size][:2000]
        points.append(
            (size, machine.score(taken(X, some), y[some]), machine.score(taken(X, test), y[test]))
        )
    found = np.array(points, dtype=np.float64).reshape(-1, 3)
    return GrowthCurve(found[:, 0].astype(np.int64), found[:, 1], found[:, 2], complete)
