"""What estimators ask before rows are mapped: whether they can be, and how columns are scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from widemargin.base.parameters import check_choice
from widemargin.kernels import Kernel
from widemargin.rows import Distinct, RowMap, robust_map, weighted_moments


def check_scale(name: str, value: Any) -> None:
    """Raise unless a value says what is done to columns."""
    if value is not None:
        check_choice(name, value, ("auto",))


def check_smooth(kernel: Kernel, name: str) -> None:
    """Raise if a kernel has no gradient to learn a metric from."""
    if not kernel.differentiable:
        raise ValueError(
            f"kernel={kernel.name!r} has no gradient, which {name} learns from; give a kernel by "
            "name, such as 'rbf'."
        )


def as_dense(X: Any, memory: int) -> Any:
    """Return sparse rows as an array, in which a metric is learned, or raise if it is too large."""
    if not sparse.issparse(X):
        return X
    needed = X.shape[0] * X.shape[1] * X.dtype.itemsize
    if needed > memory:
        raise ValueError(
            f"X is sparse, and a metric needs it dense, which takes {needed:,} bytes, more than "
            f"memory={memory:,}; raise memory, or use metric=None."
        )
    return X.toarray()


def scaling_of(scale: str | None, distinct: Distinct, *, centred: bool = False) -> RowMap:
    """Return the map that `scale` stands for on some rows.

    Parameters
    ----------
    scale : {"auto", None}
        What the user wants.
    distinct : Distinct
        Dense rows.
    centred : bool, default=False
        Whether the mean is subtracted where columns are taken as they are.
    """
    if scale is not None:
        return robust_map(distinct.rows, distinct.weight)
    d = distinct.rows.shape[1]
    if not centred:
        return RowMap.identity(d)
    return RowMap(weighted_moments(distinct.rows, distinct.weight).mean, np.ones(d))
