"""Probabilities from decision values of rows that were held out.

One rising function g of the margin gives the probability of a class. The margin of the second of
two classes is the decision value; that of a class among several is how much its score exceeds the
largest of the others, and g is found from all classes together, whose values are then divided by
their sum. With few rows g is the sigmoid 1 / (1 + exp(−(a f + b))) of largest likelihood with the
targets of J. Platt, "Probabilistic outputs for support vector machines", 1999; with many it is the
isotonic regression of B. Zadrozny, C. Elkan, "Transforming classifier scores into accurate
multiclass probability estimates", KDD 2002. A function of one number may be found on the rows that
also chose C and the kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

from widemargin.arrays import Codes, Matrix, Vector

# Rows from which g is an isotonic regression.
_MANY_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Calibration:
    """The function g, as points between which it is linear.

    Attributes
    ----------
    margin : ndarray of shape (n_points,)
        Margins, ascending.
    probability : ndarray of shape (n_points,)
        g there; beyond the first and the last it is constant.
    """

    margin: Vector
    probability: Vector

    def __call__(self, scores: NDArray[Any]) -> Matrix:
        """Return the probabilities of the classes, a column for each."""
        found = np.interp(_margins(scores), self.margin, self.probability)
        if scores.ndim == 1:
            return np.column_stack([1.0 - found, found])
        return np.asarray(found / found.sum(axis=1, keepdims=True))


def calibrated(scores: NDArray[Any], code: Codes, weight: Vector) -> Calibration:
    """Return the calibration of scores.

    Parameters
    ----------
    scores : ndarray of shape (n,) or (n, n_classes)
        Decision values of rows that were held out; rows with NaN are left out.
    code : ndarray of int of shape (n,)
        Their classes.
    weight : ndarray of shape (n,)
        Their weights.
    """
    known = np.isfinite(scores if scores.ndim == 1 else scores.sum(axis=1)) & (weight > 0)
    if not known.any():
        # Nothing was held out that could tell.
        return Calibration(np.array([-1.0, 1.0]), np.array([0.25, 0.75]))
    scores, code, weight = scores[known], code[known], weight[known]
    margin = _margins(scores)
    hit = code == 1
    if scores.ndim > 1:
        k = scores.shape[1]
        hit = (np.arange(k) == code[:, None]).ravel()
        margin, weight = margin.ravel(), np.repeat(weight, k)
    many = known.sum() >= _MANY_ROWS
    return (_isotonic if many else _sigmoid)(margin, hit, weight)


def _margins(scores: NDArray[Any]) -> Matrix:
    """Return how much each score exceeds the largest of the others; that of two classes itself."""
    if scores.ndim == 1:
        return np.asarray(scores, dtype=np.float64)
    top = np.partition(scores, -2, axis=1)
    best, second = top[:, -1:], top[:, -2:-1]
    return np.asarray(scores - np.where(scores == best, second, best), dtype=np.float64)


def _targets(hit: NDArray[np.bool_], weight: Vector) -> tuple[float, float]:
    """Return Platt's targets of rows that are not, and that are, of the class."""
    yes, no = float(weight[hit].sum()), float(weight[~hit].sum())
    return 1.0 / (no + 2.0), (yes + 1.0) / (yes + 2.0)


def _isotonic(margin: Vector, hit: NDArray[np.bool_], weight: Vector) -> Calibration:
    least, most = _targets(hit, weight)
    rising = IsotonicRegression(y_min=least, y_max=most, out_of_bounds="clip")
    rising.fit(margin, hit.astype(np.float64), sample_weight=weight)
    return Calibration(rising.X_thresholds_, rising.y_thresholds_)


def _sigmoid(margin: Vector, hit: NDArray[np.bool_], weight: Vector) -> Calibration:
    least, most = _targets(hit, weight)
    target = np.where(hit, most, least)
    size = max(float(np.abs(margin).max()), np.finfo(float).tiny)
    unit = margin / size

    def loss(at: Vector) -> tuple[float, Vector]:
        z = at[0] * unit + at[1]
        value = weight @ (np.logaddexp(0.0, z) - target * z)
        slope = weight * (expit(z) - target)
        return float(value), np.array([slope @ unit, slope.sum()])

    share = float(weight[hit].sum() + 1.0) / float(weight[~hit].sum() + 1.0)
    a, b = minimize(loss, [0.0, np.log(share)], jac=True, method="L-BFGS-B").x
    # Within a thousandth, and constant where there were no rows.
    points = np.linspace(-1.0, 1.0, 2001)
    return Calibration(size * points, expit(max(a, 0.0) * points + b))
