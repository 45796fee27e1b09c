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

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import Matrix, Vector

# Columns up to which the fourth powers are exact.
_EXACT_COLUMNS = 8
# Random directions beyond, at the least.
_DIRECTIONS = 128

# Σ s t², Σ s t³ and Σ s t⁴ of t = gᵀ(x − m), of shape (3, n_classes, n_directions).
Powers = NDArray[np.float64]


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


def no_powers(n_classes: int, n_features: int) -> Powers:
    """Return the powers of no rows."""
    return np.zeros((3, n_classes, directions(n_features)[0].shape[1]))


def powers_of(rows: Matrix, sums: sparse.csr_array) -> Powers:
    """Return the powers of rows about their means; `sums @ values` adds up each class."""
    t = rows @ directions(rows.shape[1])[0]
    t2 = t * t
    return np.stack([sums @ t2, sums @ (t2 * t), sums @ (t2 * t2)])


def scaled_powers(powers: Powers, factor: float) -> Powers:
    """Return the powers of the rows times a factor."""
    return powers * factor ** np.arange(2.0, 5.0)[:, None, None]


def joined_powers(
    one: Powers, weight: Vector, other: Powers, other_weight: Vector, shift: Matrix
) -> Powers:
    """Return the powers of two sets of rows, about the means of both.

    `shift` is how far the means of the other lie from those of the one.
    """
    t = shift @ directions(shift.shape[1])[0]
    n, m = weight[:, None], other_weight[:, None]
    p, q, t2 = n / (n + m), m / (n + m), t * t
    joined = one + other
    joined[0] += t2 * (n * q)
    joined[1] += t2 * t * (n * q * (p - q)) + 3.0 * t * (p * other[0] - q * one[0])
    joined[2] += t2 * t2 * (n * q * (p * p - p * q + q * q))
    joined[2] += 6.0 * t2 * (p * p * other[0] + q * q * one[0])
    joined[2] += 4.0 * t * (p * other[1] - q * one[1])
    return joined


def mean_of_norms(powers: Powers, covariance: Matrix, total: float) -> float:
    """Return the mean of ‖x − m‖⁴.

    Parameters
    ----------
    powers : ndarray of shape (3, n_classes, n_directions)
        Of the rows.
    covariance : ndarray of shape (n_features, n_features)
        Within-class covariance of the same rows.
    total : float
        Sum of their weights.
    """
    share = directions(len(covariance))[1]
    second, _, fourth = powers.sum(axis=1) / total
    gaussian = 3.0 * float(share @ second**2)
    trace, square = float(np.trace(covariance)), float(np.sum(covariance * covariance))
    ratio = float(share @ fourth) / gaussian if gaussian > 0 else 1.0
    # No fourth moment is below the square of the second.
    return max(trace**2, ratio * (trace**2 + 2.0 * square))
