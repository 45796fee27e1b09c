"""The space in which the within-class covariance is the identity, and directions in it.

Fisher's criterion and its kin maximise the trace of (Vᵀ S_w V)⁻¹ Vᵀ S_b V: with the rows whitened
by S_w, the answer is the leading eigenvectors of S_b (Fukunaga 1990, chapter 10).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from widemargin.arrays import Matrix, Vector
from widemargin.scatter.class_scatter import ClassScatter, per_unit

SAME_MEAN = (
    "X has the same mean in every class of y, so that no direction separates the means; use "
    "features in which they differ, or a kernel."
)
# Share of the largest eigenvalue from which a variance is there; what rounding leaves of none is
# far below.
_VANISHES = 1e-10
# The same as a share of the squared distance of the class means.
_ROUNDING = 1e-24
# Share of the largest eigenvalue of a between-class matrix from which a direction tells classes
# apart.
_SEPARATES = 1e-12


@dataclass(frozen=True)
class Whitening:
    """The way into the whitened space: (x − mean) @ matrix.

    Attributes
    ----------
    matrix : ndarray of shape (n_features, rank)
        W with Wᵀ S W = I, S the within-class covariance.
    mean : ndarray of shape (n_features,)
        Weighted mean of all rows.
    means : ndarray of shape (n_classes, rank)
        The class means in the whitened space; zero for classes without rows.
    """

    matrix: Matrix
    mean: Vector
    means: Matrix


def whitened(
    scatter: ClassScatter, shrinkage: float | str | None = None, *, ridge: float = 0.0
) -> Whitening:
    """Return the whitening of the within-class covariance.

    Parameters
    ----------
    scatter : ClassScatter
        Counts, means and within-class scatter of the rows.
    shrinkage : float in [0, 1], "auto" or None, default=None
        How far the covariance is moved towards a multiple of the identity.
    ridge : float, default=0.0
        Multiple of the identity that is added, as a share of the rows' total variance.

    Returns
    -------
    Whitening
        Directions in which the covariance vanishes are left out, as
        ``LinearDiscriminantAnalysis(solver="svd")`` does. If it vanishes in all (the rows of each
        class are all equal), the matrix is the identity times one over the root mean square
        distance of the class means from their mean.

    Notes
    -----
    Columns are first brought to a within-class variance of one. That does not change the
    whitened space, but columns of very different size then cost no digits.
    """
    center, means = scatter.scaled_means()
    covariance = scatter.scaled_covariance(shrinkage)
    covariance[np.diag_indices(scatter.n_features)] += ridge * scatter.scaled_variance()
    farthest = np.abs(scatter.offset[scatter.weight > 0]).max(axis=0)
    varies = np.flatnonzero(np.diagonal(covariance) > _ROUNDING * farthest**2)
    matrix = _inverse_root(covariance, varies)
    if not matrix.shape[1]:
        spread = float(np.sqrt(scatter.scaled_variance()))
        matrix = np.eye(scatter.n_features) / (spread if spread > 0 else 1.0)
    per_row_unit = per_unit(matrix, scatter.unit)
    return Whitening(per_row_unit, scatter.origin + scatter.unit * center, means @ matrix)


def _inverse_root(covariance: Matrix, varies: NDArray[np.intp]) -> Matrix:
    """Return W with Wᵀ S W = I, for the columns that vary."""
    if not len(varies):
        return np.zeros((len(covariance), 0))
    size = np.sqrt(np.diagonal(covariance)[varies])
    # In place, for there may be thousands of columns; in LAPACK's order, or it would make a copy.
    correlation = np.asfortranarray(covariance[np.ix_(varies, varies)])
    correlation /= size
    correlation /= size[:, None]
    value, vector = linalg.eigh(correlation, driver="evd", check_finite=False, overwrite_a=True)
    # The strongest first.
    kept = np.flatnonzero(value > _VANISHES * value[-1])[::-1]
    root = vector[:, kept]
    root /= np.sqrt(value[kept])
    root /= size[:, None]
    matrix = np.zeros((len(covariance), len(kept)))
    matrix[varies] = root
    return matrix


def leading(means: Matrix, pulled: Matrix, n_components: int | None) -> tuple[Matrix, Vector]:
    """Return leading eigenvectors of a between-class matrix S_b = Mᵀ L M.

    Parameters
    ----------
    means : ndarray of shape (n_classes, rank)
        M, the class means in the whitened space.
    pulled : ndarray of shape (n_classes, rank)
        L M, with L symmetric, positive semidefinite and 0 on constants.
    n_components : int or None
        How many; None for all that separate classes.

    Returns
    -------
    directions : ndarray of shape (rank, n_components)
        Orthonormal eigenvectors.
    criterion : ndarray of shape (n_components,)
        Their eigenvalues, in descending order.
    """
    n_classes, rank = means.shape
    most = min(n_classes - 1, rank)
    if n_components is not None and n_components > most:
        raise ValueError(
            f"n_components={n_components} must be at most {most}: the between-class matrix of "
            f"{n_classes} classes has rank {n_classes - 1} at the most, and the within-class "
            f"covariance has rank {rank}; lower n_components."
        )
    basis = np.eye(rank)
    if n_classes < rank:
        # S_b lives in the span of the means.
        basis = linalg.qr(means.T, mode="economic", check_finite=False)[0]
    between = (means @ basis).T @ (pulled @ basis)
    value, vector = linalg.eigh(0.5 * (between + between.T), driver="evd", check_finite=False)
    value, vector = np.maximum(0.0, value[::-1][:most]), vector[:, ::-1][:, :most]
    if not value[0] > 0:
        raise ValueError(SAME_MEAN)
    if n_components is None:
        n_components = int(np.count_nonzero(value > _SEPARATES * value[0]))
    return basis @ vector[:, :n_components], value[:n_components]
