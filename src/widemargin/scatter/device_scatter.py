"""Counts, means and scatter of rows on a device: each block there, their sums joined here.

As ``class_scatter`` does it, in float64. Rows of a class are added up by a product with a matrix
that has a column for each class of the block.
"""

from __future__ import annotations

import numpy as np

from widemargin.arrays import Codes, IndexArray, Matrix, Vector
from widemargin.device import Array, Device, blocks_on_device, to_numpy
from widemargin.rows import Rows
from widemargin.scatter.class_scatter import (
    ClassScatter,
    VisitFeatures,
    scatter_of,
    unit_above,
)
from widemargin.scatter.fourth_powers import directions


def scatter_anywhere(
    rows: Rows, code: Codes, weight: Vector, n_classes: int, features: VisitFeatures
) -> ClassScatter:
    """Return the scatter of all rows, computed where they are worked on.

    Parameters
    ----------
    rows : Rows
        The rows.
    code : ndarray of int of shape (n,)
        Their classes, as numbers from 0.
    weight : ndarray of shape (n,)
        Their weights, as multiplicities.
    n_classes : int
        Number of classes.
    features : callable
        Turns a block of rows into features.
    """
    if rows.device is None:
        return scatter_of(rows, code, weight, n_classes, features)
    scatter = ClassScatter.empty(n_classes, features.width)
    counted = np.flatnonzero(weight > 0)
    if not len(counted):
        return scatter
    if len(counted) < len(weight):
        rows, code, weight = rows.subset(counted), code[counted], weight[counted]
    device, visit = rows.device, features.there(rows.device)
    g = device.array(directions(features.width)[0])
    scatter.origin = features_at(rows, np.arange(1), features)[0]
    width = 4 * features.width + 3 * g.shape[1] + rows.shape[1] + n_classes
    for block, where in blocks_on_device(rows, width):
        centred = visit(block) - device.array(scatter.origin)
        part = _scatter_of_block(device, centred, code[where], weight[where], g, scatter.origin)
        with np.errstate(over="ignore", invalid="ignore"):
            scatter.merge(*part)
    return scatter


def _scatter_of_block(
    device: Device, rows: Array, code: Codes, weight: Vector, g: Array, origin: Vector
) -> tuple[ClassScatter, Codes]:
    """Return the scatter of rows about the origin, for the classes among them, and these."""
    xp = device.xp
    unit = unit_above(to_numpy(xp.max(xp.abs(rows))))
    if unit:
        rows = rows / unit
    classes, place = np.unique(code, return_inverse=True)
    total = np.bincount(place, weight).astype(np.float64)
    there, heavy = device.index(place), device.array(weight)[:, None]
    columns = xp.arange(len(classes), dtype=there.dtype, device=device.where)[None, :]
    of_class = xp.where(there[:, None] == columns, heavy, xp.zeros_like(heavy))
    offset = xp.matmul(of_class.mT, rows) / device.array(total)[:, None]
    rows = rows - xp.take(offset, there, axis=0)
    t = xp.matmul(rows, g)
    t2 = t * t
    powers = xp.stack([xp.matmul(of_class.mT, power) for power in (t2, t2 * t, t2 * t2)])
    rows = rows * xp.sqrt(heavy)
    sums = (offset, xp.matmul(rows.mT, rows), powers)
    return ClassScatter(origin, unit, total, *map(to_numpy, sums)), classes


def features_at(rows: Rows, index: IndexArray, features: VisitFeatures) -> Matrix:
    """Return the features of some rows, as NumPy's."""
    if rows.device is None:
        return rows.gather(_Block(features), index, width=features.width)
    visit, found = features.there(rows.device), np.empty((len(index), features.width))
    for block, where in blocks_on_device(rows.subset(index), 2 * features.width + rows.shape[1]):
        found[where] = to_numpy(visit(block))
    return found


class _Block:
    """Visitor: the features of a block."""

    def __init__(self, features: VisitFeatures) -> None:
        self.features = features

    def __call__(self, block: object, where: slice) -> Matrix:
        """Return the features of the rows of a block."""
        return self.features(block)
