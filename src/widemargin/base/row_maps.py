"""Rows as machines see them: columns on one scale, and perhaps in a metric.

The map (`rows.RowMap`) is found from the training rows, and the machine is then one on mapped rows:
engines know nothing of it. Its numbers are fitted attributes of the estimator, by which rows are
mapped again when the machine is asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from widemargin.base.parameters import check_choice
from widemargin.kernels import Kernel
from widemargin.rows import (
    Distinct,
    RowMap,
    Rows,
    as_rows,
    mapped_rows,
    robust_map,
    weighted_moments,
)

# Attributes that hold the map of a fitted machine.
OF_MAP = ("column_centers_", "column_factors_", "column_bend_", "metric_root_", "metric_")


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


def check_own_rows(machine: Any, names: tuple[str, ...], remedy: str) -> None:
    """Raise if parameters of a machine that sees mapped rows are rows themselves."""
    for name in names:
        value = getattr(machine, name)
        if not isinstance(value, str) and (np.iterable(value) or hasattr(value, "centers")):
            raise ValueError(
                f"{name} are rows, and with scale={machine.scale!r} or a metric the machine sees "
                f"others; scale the rows and {name} before the fit, and leave {remedy} at None."
            )


def keep_map(machine: Any, row_map: RowMap | None) -> None:
    """Set the attributes that hold a map."""
    for name in OF_MAP:
        if hasattr(machine, name):
            delattr(machine, name)
    if row_map is None:
        return
    machine.column_centers_, machine.column_factors_ = row_map.center, row_map.factor
    machine.column_bend_ = float(row_map.bend)
    root = row_map.matrix
    if root is not None:
        machine.metric_root_ = root
        machine.metric_ = root**2 if root.ndim == 1 else root @ root.T


def kept_map(machine: Any) -> RowMap | None:
    """Return the map of a fitted machine, if it has one."""
    if not hasattr(machine, "column_centers_"):
        return None
    return RowMap(
        machine.column_centers_,
        machine.column_factors_,
        machine.column_bend_,
        getattr(machine, "metric_root_", None),
    )


def seen(rows: Rows, row_map: RowMap | None) -> Rows:
    """Return rows after a map, if there is one."""
    if row_map is None:
        return rows
    if rows.sparse:
        X = as_dense(rows.X, rows.memory)
        rows = as_rows(X, memory=rows.memory, threads=rows.threads)
    return mapped_rows(rows, row_map)


def seen_distinct(distinct: Distinct, row_map: RowMap | None) -> Distinct:
    """Return distinct rows after a map, if there is one."""
    return distinct if row_map is None else replace(distinct, rows=seen(distinct.rows, row_map))
