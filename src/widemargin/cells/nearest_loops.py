"""The nearest centres of a block of rows, compiled by Numba when first used.

Import this module through ``threads.Compiled``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# Rows whose products with the centres are made at a time: so many, fewer where centres are many,
# and some in any case.
_TILE = 256
_TILE_VALUES = 1_000_000
_LEAST_TILE = 16


@njit(nogil=True, cache=True)
def nearest(
    rows: Any,
    origin: Any,
    unit: float,
    far: float,
    centers: Any,
    square: Any,
    right: Any,
    cell: Any,
    distance: Any,
) -> None:
    """Write the nearest centres of rows, the nearest first, and the distances from them.

    x·c − ½‖c‖² is the larger the nearer c is: one product in float32 finds the candidates. Where
    rounding could have hidden a nearer one, all are computed again in float64.

    Parameters
    ----------
    rows : ndarray of shape (m, d)
        Rows.
    origin : ndarray of shape (d,)
        The point about which they are looked at,
    unit : float
        and the unit.
    far : float
        What is farther out, in this unit, counts as being there.
    centers : ndarray of shape (n_cells, d)
        Centres about that point, in that unit.
    square : ndarray of shape (n_cells,)
        Their squared norms.
    right : ndarray of float32 of shape (n_cells, d + 1)
        The centres, and −½ times their squared norms.
    cell : ndarray of int of shape (m, count)
        Where the numbers of the nearest are written.
    distance : ndarray of shape (m, count)
        Where the distances are written.
    """
    step = max(_LEAST_TILE, min(_TILE, _TILE_VALUES // len(centers)))
    most, d = min(step, len(rows)), rows.shape[1]
    # Once for all tiles: some systems give such arrays back at once, and take as long for that as
    # for the products.
    points = np.empty((most, d))
    left = np.ones((most, d + 1), dtype=np.float32)
    scores = np.empty((most, len(centers)), dtype=np.float32)
    for first in range(0, len(rows), step):
        tile = slice(first, min(len(rows), first + step))
        m = tile.stop - tile.start
        _nearest(
            rows[tile],
            origin,
            unit,
            far,
            centers,
            square,
            right,
            points[:m],
            left[:m],
            scores[:m],
            cell[tile],
            distance[tile],
        )


@njit(nogil=True, cache=True)
def _nearest(
    rows: Any,
    origin: Any,
    unit: float,
    far: float,
    centers: Any,
    square: Any,
    right: Any,
    points: Any,
    left: Any,
    scores: Any,
    cell: Any,
    distance: Any,
) -> None:
    """Do the same for rows whose products with all centres stay in the processor's cache.

    `points`, `left` (whose last column is one) and `scores` are room for rows and products.
    """
    m, d = rows.shape
    n_cells, count = len(centers), cell.shape[1]
    for i in range(m):
        for j in range(d):
            value = (rows[i, j] - origin[j]) / unit
            points[i, j] = min(max(value, -far), far)
            left[i, j] = points[i, j]
    np.dot(left, right.T, scores)
    farthest = np.sqrt(square.max())
    scale = (2.0 + np.sqrt(d)) * 1.1920929e-07
    tops = min(count + 1, n_cells)
    best = np.empty(tops, dtype=np.int64)
    everything = np.arange(n_cells)
    for i in range(m):
        _settle(
            points[i],
            scores[i],
            everything,
            centers,
            square,
            farthest,
            scale,
            unit,
            best,
            cell[i],
            distance[i],
        )


@njit(nogil=True, cache=True)
def nearest_in_groups(
    rows: Any,
    origin: Any,
    unit: float,
    far: float,
    centers: Any,
    square: Any,
    across: Any,
    offsets: Any,
    group: Any,
    cell: Any,
    distance: Any,
) -> None:
    """Write the nearest centres of rows among those of some groups, as `nearest` does among all.

    Parameters
    ----------
    rows, origin, unit, far, centers, square, cell, distance
        As in `nearest`.
    across : ndarray of float32 of shape (d + 1, n_cells)
        The centres, and −½ times their squared norms, a column for each.
    offsets : ndarray of int of shape (n_groups + 1,)
        Where the centres of each group begin.
    group : ndarray of int of shape (m, probed)
        The groups of each row, ascending; they have `count` centres at the least.
    """
    m, d = rows.shape
    n_cells, count = len(centers), cell.shape[1]
    farthest = np.sqrt(square.max())
    scale = (2.0 + np.sqrt(d)) * 1.1920929e-07
    point, scores = np.empty(d), np.empty(n_cells, dtype=np.float32)
    candidates = np.empty(n_cells, dtype=np.int64)
    best = np.empty(count + 1, dtype=np.int64)
    for i in range(m):
        for j in range(d):
            value = (rows[i, j] - origin[j]) / unit
            point[j] = min(max(value, -far), far)
        end = 0
        for g in group[i]:
            first, size = offsets[g], offsets[g + 1] - offsets[g]
            line = scores[end : end + size]
            line[:] = across[d, first : first + size]
            for j in range(d):
                factor = np.float32(point[j])
                part = across[j, first : first + size]
                for c in range(size):
                    line[c] += factor * part[c]
            for c in range(size):
                candidates[end + c] = first + c
            end += size
        _settle(
            point,
            scores[:end],
            candidates[:end],
            centers,
            square,
            farthest,
            scale,
            unit,
            best[: min(count + 1, end)],
            cell[i],
            distance[i],
        )


@njit(nogil=True, cache=True)
def _settle(
    point: Any,
    line: Any,
    candidates: Any,
    centers: Any,
    square: Any,
    farthest: float,
    scale: float,
    unit: float,
    best: Any,
    cell: Any,
    distance: Any,
) -> None:
    """Write the nearest of some centres of a point, from their float32 products with it.

    `best` is room for one place more than there are centres wanted, if there are so many.
    """
    d, count, tops = len(point), len(cell), len(best)
    _largest(line, best)
    norm = 0.0
    for j in range(d):
        norm += point[j] * point[j]
    norm = np.sqrt(norm)
    reach = 0.0
    for k in range(count):
        reach = max(reach, np.sqrt(square[candidates[best[k]]]))
    reach = min(farthest, 2.0 * norm + reach)
    slack = scale * reach * (norm + reach)
    # Not the other way round: what overflows is no number.
    if tops > count and not line[best[count]] < line[best[count - 1]] - slack:
        exact = np.empty(len(candidates))
        for c in range(len(candidates)):
            product = -0.5 * square[candidates[c]]
            for j in range(d):
                product += point[j] * centers[candidates[c], j]
            exact[c] = product
        _largest(exact, best)
    for k in range(count):
        number = candidates[best[k]]
        total = 0.0
        for j in range(d):
            apart = point[j] - centers[number, j]
            total += apart * apart
        root = np.sqrt(total)
        # Kept in order; of equals the first stays the first.
        place = k
        while place and distance[place - 1] > root:
            distance[place] = distance[place - 1]
            cell[place] = cell[place - 1]
            place -= 1
        distance[place] = root
        cell[place] = number
    for k in range(count):
        distance[k] *= unit


@njit(nogil=True, cache=True)
def _largest(values: Any, best: Any) -> None:
    """Write the places of the largest values, the largest first, of equals the first."""
    count = len(best)
    for k in range(count):
        best[k] = -1
    for c in range(len(values)):
        value = values[c]
        if best[count - 1] >= 0 and not value > values[best[count - 1]]:
            continue
        place = count - 1
        while place and (best[place - 1] < 0 or value > values[best[place - 1]]):
            best[place] = best[place - 1]
            place -= 1
        best[place] = c
