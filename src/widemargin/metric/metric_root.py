"""Roots of metrics: of gradient products, and of a matrix that a user gives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Matrix

# Eigenvalues below this share of the largest are nothing but rounding.
_ROUNDING = 1e-12


def metric_root(
    products: NDArray[np.float64],
    power: float = 1.0,
    before: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Return the root of a power of gradient products, A = (Bᵀ G B)^(power / 2).

    Parameters
    ----------
    products : ndarray of shape (d, d) or (d,)
        G, the sums of gradients in mapped coordinates, or their diagonal.
    power : float, default=1.0
        The power.
    before : ndarray of shape (d, d) or (d,), default=None
        B, the map into these coordinates; None is the identity.
    """
    if products.ndim == 1:
        found = products if before is None else before**2 * products
        return np.asarray((found / max(found.max(), np.finfo(float).tiny)) ** (power / 2.0))
    found = products if before is None else before.T @ products @ before
    return _matrix_power(found, power / 2.0)


def _matrix_power(matrix: Matrix, power: float) -> Matrix:
    """Return a power of a symmetric matrix whose largest eigenvalue is set to 1."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    largest = max(float(values[-1]), np.finfo(np.float64).tiny)
    values = np.where(values > _ROUNDING * largest, values / largest, 0.0)
    return np.asarray((vectors * values**power) @ vectors.T)


def root_of_given(metric: Any, n_features: int) -> NDArray[np.float64]:
    """Return the root of a metric that a user gives, or raise if it is none.

    Parameters
    ----------
    metric : array-like of shape (n_features, n_features) or (n_features,)
        M, symmetric and positive semi-definite, or its diagonal.
    n_features : int
        Number of features.
    """
    given = np.asarray(metric, dtype=np.float64)
    if given.shape not in ((n_features,), (n_features, n_features)):
        raise ValueError(
            f"metric has shape {given.shape}, but X has {n_features} features; give an array of "
            f"shape ({n_features}, {n_features}), or its diagonal of shape ({n_features},)."
        )
    if not np.isfinite(given).all():
        raise ValueError("metric has values that are not finite; give finite numbers.")
    if given.ndim == 1:
        if (given < 0).any():
            raise ValueError("metric has negative values; give weights of at least 0.")
        return np.sqrt(given)
    if not np.allclose(given, given.T, rtol=1e-6, atol=1e-9 * float(np.abs(given).max())):
        raise ValueError("metric is not symmetric; give M = AᵀA.")
    values, vectors = np.linalg.eigh((given + given.T) / 2.0)
    if values[0] < -1e-8 * max(abs(float(values[-1])), np.finfo(float).tiny):
        raise ValueError(
            f"metric has the negative eigenvalue {values[0]:.3g}; give a positive semi-definite "
            "matrix, M = AᵀA."
        )
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
