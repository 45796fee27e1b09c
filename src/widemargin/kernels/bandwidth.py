"""From `gamma="scale"` and `gamma="mean_distance"` to a number."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def resolve_gamma(gamma: Any, mean: NDArray[np.float64], variance: NDArray[np.float64]) -> float:
    """Return the kernel width that `gamma` stands for.

    Parameters
    ----------
    gamma : {"scale", "auto", "mean_distance"} or float
        "scale" is 1 / (n_features · variance of all values of X), as in scikit-learn; "auto" is
        1 / n_features; "mean_distance" is the papers' 1/β with β the mean squared distance between
        rows, which is twice the sum of the columns' variances.
    mean, variance : ndarray of shape (n_features,)
        Weighted moments of the columns.

    Returns
    -------
    float
        Positive and finite. Data without variance gives 1, as in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> resolve_gamma("mean_distance", np.zeros(2), np.array([1.0, 3.0]))
    0.125
    """
    if not isinstance(gamma, str):
        return float(gamma)
    if gamma == "auto":
        return 1.0 / len(mean)
    with np.errstate(over="ignore", invalid="ignore"):
        if gamma == "scale":
            spread = len(mean) * (variance.mean() + mean.var())
        else:
            spread = 2.0 * variance.sum()
        spread = float(spread)
    if not np.isfinite(spread):
        raise ValueError(
            f"gamma={gamma!r} cannot be computed: X has too large a variance. Scale X (for example "
            "with StandardScaler) or give gamma as a number."
        )
    if spread <= 0.0:
        return 1.0
    return float(min(1.0 / spread, np.finfo(np.float64).max)) if spread > 1e-300 else 1e300
