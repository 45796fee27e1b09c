"""Output codes: which side each class is on in each problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin.arrays import Matrix
from widemargin.problem import one_vs_rest

# Tries for a column of random codes that is not one of the others.
_TRIES = 100


def code_table(codes: Any, n_classes: int, rng: np.random.Generator) -> Matrix:
    """Return the signs of the classes in the problems: one-vs-rest if `codes` is None."""
    if codes is None:
        return one_vs_rest(n_classes)
    return random_codes(n_classes, rng) if isinstance(codes, str) else given_codes(codes, n_classes)


def given_codes(codes: Any, n_classes: int) -> Matrix:
    """Return the user's table of signs, or say what is wrong with it."""
    try:
        table = np.asarray(codes, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"codes={codes!r} must be a table of −1 and 1.") from error
    if table.ndim != 2 or len(table) != n_classes or not table.size:
        raise ValueError(
            f"codes must have a row for each of the {n_classes} classes and a column for each "
            f"problem, but has shape {table.shape}."
        )
    if not np.isin(table, (-1.0, 1.0)).all():
        raise ValueError("codes must hold −1 and 1 only: the side of each class in each problem.")
    lonely = np.flatnonzero(np.abs(table.sum(axis=0)) == n_classes)
    if len(lonely):
        raise ValueError(
            f"column {lonely[0]} of codes has all classes on one side; there is nothing to "
            "separate."
        )
    return np.ascontiguousarray(table)


def random_codes(n_classes: int, rng: np.random.Generator) -> Matrix:
    """Return as many random problems as classes, no two of them the same."""
    table = np.empty((n_classes, 0))
    for _ in range(_TRIES * n_classes):
        column = rng.choice([-1.0, 1.0], n_classes)
        mixed = abs(column.sum()) < n_classes
        if mixed and not (np.abs(column @ table) == n_classes).any():
            table = np.column_stack([table, column])
        if table.shape[1] == n_classes:
            break
    # Few classes have fewer different problems than that; one is always found.
    return np.ascontiguousarray(table) if table.size else one_vs_rest(n_classes)
