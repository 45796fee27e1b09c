"""Weights of pairs of classes, and their pull on the class means (aPAC)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import erf

from widemargin.arrays import Matrix, Vector
from widemargin.pairs.class_pairs import BLOCK, pulled, scan_pairs


def given_priors(priors: Any, n_classes: int) -> Vector:
    """Return the user's probabilities, or say what is wrong with them."""
    try:
        given = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"priors={priors!r} must be an array of probabilities.") from error
    if given.shape != (n_classes,) or not (given > 0).all() or abs(given.sum() - 1) > 1e-6:
        raise ValueError(
            f"priors={priors!r} must hold a positive probability for each of the {n_classes} "
            "classes, in the order of classes_, and sum to 1; leave classes out with "
            "sample_weight=0."
        )
    return np.asarray(given / given.sum())


def pull(
    means: Matrix, priors: Vector, weighting: str, threads: int = 1, *, block: int = BLOCK
) -> Matrix:
    """Return L M, the Laplacian of the weighted pairs of classes times the class means.

    Parameters
    ----------
    means : ndarray of shape (n_classes, rank)
        M, in the whitened space, about the mean of all rows.
    priors : ndarray of shape (n_classes,)
        Probabilities of the classes.
    weighting : {"accuracy", "equal"}
        Weights of the pairs.
    threads : int, default=1
        Threads; the answer does not depend on it.
    block : int, optional
        Numbers of the matrix of distances in a block.
    """
    if weighting == "equal":
        # Σ_j p_i p_j (m_i − m_j), for Σ_j p_j m_j is 0.
        return np.asarray(priors[:, None] * means)

    def of(rows: slice, square: Matrix) -> Matrix:
        pair = _accuracy_weights(square)
        pair *= priors[rows, None]
        pair *= priors[rows.start :]
        return pulled(pair, means, rows)

    pull_of_all = np.zeros_like(means)
    # Precisely, for the weight of a close pair is large.
    for part in scan_pairs(means, of, threads, block, precise=True):
        pull_of_all[-len(part) :] += part
    return pull_of_all


def _accuracy_weights(square: Matrix) -> Matrix:
    """Return erf(D / 2√2) / (2D²) for squared distances D²; 0 for equal means."""
    apart = square > 0
    square[~apart] = 1.0
    return np.where(apart, 0.5 * erf(np.sqrt(square / 8.0)) / square, 0.0)
