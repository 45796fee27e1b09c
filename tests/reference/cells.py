"""Cells, slowly: nearest centres, blended answers and guests by loops over rows, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def distances(X: Array, centers: Array) -> Array:
    """‖x_i − c_j‖ from differences, in units of the largest of them: no square may overflow."""
    apart = X[:, None, :] - centers[None, :, :]
    unit = float(np.abs(apart).max()) or 1.0
    return unit * np.sqrt(((apart / unit) ** 2).sum(axis=2))


def weights(distance: Sequence[float], blend: float) -> dict[int, float]:
    """The cells that answer a row, with their weights, as the module docstring has them."""
    order = sorted(range(len(distance)), key=lambda c: distance[c])
    first = order[0]
    if blend == 0 or len(order) < 2:
        return {first: 1.0}
    d1, d2 = distance[first], distance[order[1]]
    if d2 - d1 >= blend * d1:
        return {first: 1.0}
    share = 1.0 - (d2 - d1) / (blend * d1)
    if len(order) > 2:
        d3 = distance[order[2]]
        share = 0.0 if d3 == d1 else share * (d3 - d2) / (d3 - d1)
    return {first: 1.0 / (1.0 + share), order[1]: share / (1.0 + share)}


def blended(
    X: Array, centers: Array, machines: Sequence[Callable[[Array], Array]], blend: float
) -> Array:
    """Decision values of rows, each by the machines of its own cells: they map (n, d) to (n, p)."""
    values = [machine(X) for machine in machines]
    answers = np.zeros_like(values[0])
    for i, distance in enumerate(distances(X, centers)):
        for cell, weight in weights(list(distance), blend).items():
            answers[i] += weight * values[cell][i]
    return answers


def members(X: Array, centers: Array, overlap: float) -> list[set[int]]:
    """Rows that train in each cell: its own, and those nearest to its edge from outside."""
    distance = distances(X, centers)
    order = np.argsort(distance, axis=1)
    own = [set(np.flatnonzero(order[:, 0] == c)) for c in range(len(centers))]
    if len(centers) < 2:
        return own
    rows = np.arange(len(X))
    inside = distance[rows, order[:, 1]] - distance[rows, order[:, 0]]
    wider = []
    for c, rows_of_cell in enumerate(own):
        candidates = sorted(np.flatnonzero(order[:, 1] == c), key=lambda i: inside[i])
        wider.append(rows_of_cell | set(candidates[: round(overlap * len(rows_of_cell))]))
    return wider
