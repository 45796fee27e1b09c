"""Quantiles whose shares hold on new rows: conformalized quantile regression.

Romano, Patterson and Candès, "Conformalized quantile regression" (NeurIPS 2019), with an offset for
each quantile (their theorem 2). With errors E_i = y_i − q(x_i) of rows that q has not seen, the
offset of a level τ ≥ ½ is their ⌈(n + 1) τ⌉-th smallest, that of a level below the
⌊(n + 1) τ⌋-th: a new row, exchangeable with those n, lies at or below the moved quantile with a
probability of at least τ, or below it with one of at most τ. No more than 1 / (n + 1) is given
away.

The rows are a share that is held out of the fit, for which this is the theorem; or each row in
turn, held out by one of some folds (Barber, Candès, Ramdas and Tibshirani, "Predictive inference
with the jackknife+", 2021). The machine is then that of all rows and loses none, and the statement
is theirs up to how much a machine changes when a fold joins it.

A weight of k is k copies: it counts k times in n and in the ranks. Copies of a row with its target
are one row of the problem, and so in the same fold: none gives another away. Equal rows of
different targets may be apart, as a new row may be equal to one that is known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from numbers import Integral
from typing import Any

import numpy as np

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.base import parameters as check

# Folds where nobody says how many: more where rows are few, and a fold's absence is felt.
_FOLDS = 5
_FOLDS_OF_FEW = 10
_FEW_ROWS = 2000
# Weight of the rows from which the shares are known well enough: to 0.3 %.
_ENOUGH = 10_000.0
# Ranks are sums of weights, which are rounded.
_SAME_RANK = 1e-9


def check_calibration(name: str, value: Any) -> None:
    """Raise unless a value is "auto", None, a number of folds, or a share of the rows."""
    if value is None or (isinstance(value, str) and value == "auto"):
        return
    if isinstance(value, Integral) and not isinstance(value, bool):
        check.check_count(name, value, least=2, also="a share such as 0.2, None or 'auto'")
        return
    if isinstance(value, bool) or not isinstance(value, float) or not 0.0 < value < 1.0:
        raise ValueError(
            f"{name}={value!r} must be 'auto', None, a number of folds such as 5, or a share of "
            "the rows between 0 and 1, such as 0.2."
        )


def folds_of_rows(n: int, calibration: Any) -> IndexArray:
    """Return the fold of each row of a problem.

    Parameters
    ----------
    n : int
        Number of its rows, which are different and in the order of a hash.
    calibration : "auto", int or float
        How many folds, or as many as there are rows if these are fewer; "auto" for a number that
        suits them. With a share of the rows there are two: 0 is held out, 1 is not.
    """
    row: IndexArray = np.arange(n)
    if isinstance(calibration, float):
        fold: IndexArray = (row >= ceil(calibration * n)).astype(np.intp)
        return fold
    few = _FOLDS_OF_FEW if n <= _FEW_ROWS else _FOLDS
    return row % (few if isinstance(calibration, str) else int(calibration))


@dataclass(frozen=True)
class Offsets:
    """What quantiles are to be moved by.

    Attributes
    ----------
    values : ndarray of shape (n_columns,)
        A number for each column of predictions.
    weight : float
        Weight of the rows that they were learnt from.
    lacking : float
        The weight that would have been needed for what the levels ask; 0 if there was enough.
    """

    values: Vector
    weight: float
    lacking: float = 0.0


def offsets_of(errors: Matrix, weight: Vector, levels: Vector) -> Offsets:
    """Return the offsets that make shares right on rows that were held out.

    Parameters
    ----------
    errors : ndarray of shape (n, n_columns)
        Targets less predictions.
    weight : ndarray of shape (n,)
        Weights of the rows.
    levels : ndarray of shape (n_columns,)
        Quantiles that columns are to be.

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.arange(1.0, 20.0)[:, None]
    >>> offsets_of(errors, np.ones(19), np.array([0.9])).values
    array([18.])
    """
    total = float(weight.sum())
    values, lacking = np.zeros(len(levels)), 0.0
    for column, level in enumerate(levels):
        upper = level >= 0.5
        share = level if upper else 1.0 - level
        error = errors[:, column] if upper else -errors[:, column]
        order = np.argsort(error, kind="stable")
        rank = share * (total + 1.0) * (1.0 - _SAME_RANK)
        at = int(np.searchsorted(np.cumsum(weight[order]), rank))
        if at == len(order):
            # Nothing finite would do.
            lacking, at = max(lacking, ceil(share / (1.0 - share) - _SAME_RANK)), at - 1
        values[column] = error[order[at]] if upper else -error[order[at]]
    return Offsets(values, total, lacking)


def calibrated(
    fold: IndexArray,
    targets: Matrix,
    weight: Vector,
    levels: Vector,
    answered: Callable[[IndexArray, IndexArray], Matrix | None],
) -> Offsets | None:
    """Return the offsets from the errors of folds; None if there was no time for any.

    Parameters
    ----------
    fold : ndarray of int of shape (n,)
        Fold of each row.
    targets : ndarray of shape (n, n_columns)
        Targets of the columns of predictions.
    weight : ndarray of shape (n,)
        Weights.
    levels : ndarray of shape (n_columns,)
        Quantiles.
    answered : callable
        Takes the rows to learn from and those that are held out, and returns predictions of these;
        None if there was no time.
    """
    errors: list[Matrix] = []
    judged: list[Vector] = []
    for k in range(int(fold.max(initial=0)) + 1):
        kept, held = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        answer = answered(kept, held) if len(kept) and len(held) else None
        if answer is None:
            break
        errors.append(targets[held] - answer)
        judged.append(weight[held])
        if sum(float(each.sum()) for each in judged) >= _ENOUGH:
            break
    if not errors:
        return None
    return offsets_of(np.vstack(errors), np.concatenate(judged), levels)
