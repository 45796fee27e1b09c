"""Gradient products by central differences, to compare with."""

from __future__ import annotations

import numpy as np


def gradient_products(values, X, weight, signs, step=1e-5):
    """Return Σ s ∇f ∇fᵀ over rows and the problems that feel them.

    `values` gives decision values of rows, a column for each problem; `signs` are the rows' own.
    """
    d = X.shape[1]
    slopes = np.empty((len(X), signs.shape[1], d))
    for k in range(d):
        up, down = X.copy(), X.copy()
        up[:, k] += step
        down[:, k] -= step
        slopes[:, :, k] = (values(up) - values(down)) / (2 * step)
    total = np.zeros((d, d))
    for i in range(len(X)):
        for p in range(signs.shape[1]):
            if signs[i, p]:
                total += weight[i] * np.outer(slopes[i, p], slopes[i, p])
    return total
