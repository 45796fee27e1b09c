"""Σ ‖x − m‖⁴ about class means m that are known only when all rows have been seen.

The intensity of Ledoit and Wolf (2004), "A well-conditioned estimator for large-dimensional
covariance matrices", needs it, and to stream it takes the scatter of every single class. Here it is
taken from a few fixed directions g instead. The powers of gᵀx need a few numbers a class and
direction, and are joined exactly (Pébay 2008, "Formulas for robust, one-pass parallel computation
of covariances and arbitrary-order statistical moments"); and

    Σ_g E(gᵀ(x − m))⁴ / Σ_g 3(gᵀΣg)²  ≈  E‖x − m‖⁴ / ((tr Σ)² + 2 tr Σ²).

Both sides are 1 for Gaussian rows and 1 + κ for elliptical ones, whatever the directions; over
directions of all the sphere they agree for rows of any kind. Up to 8 columns the directions are
those of an identity, Σ_g w_g (gᵀa)⁴ = ‖a‖⁴, and nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import Matrix, Vector

# Columns up to which the fourth powers are exact, and random directions beyond, at the least.
_EXACT_COLUMNS, _DIRECTIONS = 8, 128


@lru_cache(maxsize=8)
def directions(n_features: int) -> tuple[Matrix, Vector]:
    """Return directions as columns and weights with Σ_g w_g (gᵀa)⁴ ∝ ‖a‖⁴, exactly or nearly.

    Exactly, from (a+b)⁴ + (a−b)⁴ = 2a⁴ + 12a²b² + 2b⁴: ‖a‖⁴ is a sixth of the sum of (a_i ± a_j)⁴
    over the pairs, and (4 − n)/3 times that of a_i⁴. Nearly: random, from a fixed seed.
    """
    if n_features > _EXACT_COLUMNS:
        rng = np.random.default_rng(2004)
        size = (n_features, min(n_features, _DIRECTIONS))
        # Directions at right angles miss less of the sphere than as many independent ones.
        n_bases = -(-_DIRECTIONS // n_features)
        bases = [np.linalg.qr(rng.standard_normal(size))[0] for _ in range(n_bases)]
        g = np.hstack(bases)
        return g, np.full(g.shape[1], 1.0 / g.shape[1])
    unit = np.eye(n_features)
    first, second = np.triu_indices(n_features, 1)
    g = np.hstack([unit, unit[:, first] + unit[:, second], unit[:, first] - unit[:, second]])
    share = np.full(g.shape[1], 1.0 / 6.0)
    share[:n_features] = (4.0 - n_features) / 3.0
    return g, share


@dataclass(frozen=True)
class Powers:
    """Σ s t², Σ s t³ and Σ s t⁴ of t = gᵀ(x − m), for each class and direction.

    Attributes
    ----------
    second, third, fourth : ndarray of shape (n_classes, n_directions)
        The sums.
    """

    second: Matrix
    third: Matrix
    fourth: Matrix

    @classmethod
    def none(cls, n_classes: int, n_features: int) -> Powers:
        """Return the powers of no rows."""
        shape = (n_classes, directions(n_features)[0].shape[1])
        return cls(np.zeros(shape), np.zeros(shape), np.zeros(shape))

    @classmethod
    def of(cls, rows: Matrix, sums: sparse.csr_array) -> Powers:
        """Return the powers of rows about their means; `sums @ values` adds up each class."""
        t = rows @ directions(rows.shape[1])[0]
        t2 = t * t
        return cls(sums @ t2, sums @ (t2 * t), sums @ (t2 * t2))

    def at(self, classes: NDArray[np.intp]) -> Powers:
        """Return those of some classes."""
        return Powers(self.second[classes], self.third[classes], self.fourth[classes])

    def put(self, classes: NDArray[np.intp], other: Powers) -> None:
        """Replace those of some classes."""
        self.second[classes] = other.second
        self.third[classes] = other.third
        self.fourth[classes] = other.fourth

    def times(self, factor: float) -> Powers:
        """Return those of the rows times a factor."""
        return Powers(self.second * factor**2, self.third * factor**3, self.fourth * factor**4)

    def joined(self, weight: Vector, other: Powers, other_weight: Vector, shift: Matrix) -> Powers:
        """Return the powers of two sets of rows, about the means of both.

        `shift` is how far the means of the other lie from those of this one.
        """
        t = shift @ directions(shift.shape[1])[0]
        n, m = weight[:, None], other_weight[:, None]
        p, q, t2 = n / (n + m), m / (n + m), t * t
        second = self.second + other.second + t2 * (n * q)
        third = self.third + other.third + t2 * t * (n * q * (p - q))
        third += 3.0 * t * (p * other.second - q * self.second)
        fourth = self.fourth + other.fourth + t2 * t2 * (n * q * (p * p - p * q + q * q))
        fourth += 6.0 * t2 * (p * p * other.second + q * q * self.second)
        fourth += 4.0 * t * (p * other.third - q * self.third)
        return Powers(second, third, fourth)

    def mean_of_norms(self, covariance: Matrix, total: float) -> float:
        """Return the mean of ‖x − m‖⁴.

        Parameters
        ----------
        covariance : ndarray of shape (n_features, n_features)
            Within-class covariance of the same rows.
        total : float
            Sum of their weights.
        """
        share = directions(len(covariance))[1]
        fourth = float(share @ self.fourth.sum(axis=0)) / total
        gaussian = 3.0 * float(share @ (self.second.sum(axis=0) / total) ** 2)
        trace, square = float(np.trace(covariance)), float(np.sum(covariance * covariance))
        ratio = fourth / gaussian if gaussian > 0 else 1.0
        # No fourth moment is below the square of the second.
        return max(trace**2, ratio * (trace**2 + 2.0 * square))
