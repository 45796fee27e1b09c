"""The nearest centres of rows, among all of them or among those of a few groups.

One level: every row is compared with every centre. Centres are compared in float32 about their
mean, in a unit of their own; rows for which rounding may decide which centre is nearest (far from
the mean and close together) are looked at again in float64.

Two levels: centres are in groups, each about a middle. A row looks for its `PROBED` nearest
middles, and for the nearest centres among those of their groups. That *defines* its cell: nothing
is approximated at one place and exact at another. With G groups a row is compared with about
G + PROBED · n_cells / G points, the least at G = √(PROBED · n_cells).
The nearest of all centres would need bounds by which groups can be left out; distances of many
dimensions differ little, and such bounds were not tried. (H. Jégou, M. Douze, C. Schmid, "Product
quantization for nearest neighbor search", IEEE PAMI 33, 2011, section IV: the
inverted file, several lists of which are looked at.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray
from widemargin.threads import Compiled

loops = Compiled("widemargin.cells.nearest_loops")

Matrix = NDArray[Any]
Cells = NDArray[np.intp]

# Groups in which a row looks for its nearest centres; a part of the definition of cells.
PROBED = 8
# Rows farther out than this many times the farthest centre count as being there: float32 ends.
_FAR = 1e30


@dataclass(frozen=True)
class Groups:
    """Groups of centres, which follow each other.

    Attributes
    ----------
    middles : ndarray of shape (n_groups, n_features)
        The middles of the groups, all different.
    offsets : ndarray of int of shape (n_groups + 1,)
        Where the centres of each group begin; each has at least one.
    """

    middles: NDArray[np.float64]
    offsets: IndexArray

    @classmethod
    def of(cls, centers: Matrix, middles: Matrix) -> tuple[Matrix, Groups]:
        """Return centres in the order of the groups of their nearest middles, and the groups."""
        own = OneLevel.of(middles).nearest(centers, 1)[0][:, 0]
        return centers[np.argsort(own, kind="stable")], cls._filled(middles, own)

    @classmethod
    def _filled(cls, middles: Matrix, own: Cells) -> Groups:
        """Return the groups that have centres, from the groups of the centres."""
        count = np.bincount(own, minlength=len(middles))
        filled = count > 0
        return cls(middles[filled], np.concatenate([[0], np.cumsum(count[filled])]))

    def subset(self, chosen: IndexArray) -> Groups:
        """Return the groups of some of the centres, whose numbers ascend."""
        own = np.searchsorted(self.offsets, chosen, side="right") - 1
        return self._filled(self.middles, own)


def n_groups_for(n_cells: int) -> int:
    """Return how many groups make the fewest comparisons for so many centres."""
    return max(1, round(math.sqrt(PROBED * n_cells)))


@dataclass(frozen=True)
class OneLevel:
    """Centres made ready to be compared with many rows.

    Attributes
    ----------
    origin : ndarray of shape (n_features,)
        Their mean,
    unit : float
        a unit,
    apart : ndarray of shape (n_cells, n_features)
        and the centres about the mean in this unit.
    square : ndarray of shape (n_cells,)
        Squared norms of these.
    right : ndarray of float32 of shape (n_cells, n_features + 1)
        These, and −½ times their squared norms.
    """

    origin: NDArray[np.float64]
    unit: float
    apart: NDArray[np.float64]
    square: NDArray[np.float64]
    right: NDArray[np.float32]

    @classmethod
    def of(cls, centers: Matrix) -> OneLevel:
        """Make centres ready."""
        origin = centers.mean(axis=0)
        apart = centers - origin
        unit = float(np.abs(apart).max()) or 1.0
        apart = np.ascontiguousarray(apart / unit)
        square = np.einsum("ij,ij->i", apart, apart)
        right = np.column_stack([apart, -0.5 * square]).astype(np.float32)
        return cls(origin, unit, apart, square, right)

    def nearest(self, rows: Matrix, count: int) -> tuple[Cells, Matrix]:
        """Return the `count` nearest centres of each row, the nearest first, and distances."""
        cell = np.empty((len(rows), count), dtype=np.intp)
        distance = np.empty((len(rows), count))
        loops.nearest(
            np.ascontiguousarray(rows),
            self.origin,
            self.unit,
            _FAR,
            self.apart,
            self.square,
            self.right,
            cell,
            distance,
        )
        return cell, distance


@dataclass(frozen=True)
class TwoLevels:
    """Centres in groups, made ready to be compared with many rows.

    Attributes
    ----------
    middles : OneLevel
        The middles of the groups.
    centers : OneLevel
        The centres.
    across : ndarray of float32 of shape (n_features + 1, n_cells)
        `right` of the centres, a column for each.
    offsets : ndarray of int of shape (n_groups + 1,)
        Where the centres of each group begin.
    """

    middles: OneLevel
    centers: OneLevel
    across: NDArray[np.float32]
    offsets: IndexArray

    @classmethod
    def of(cls, centers: Matrix, groups: Groups) -> TwoLevels:
        """Make centres ready."""
        ready = OneLevel.of(centers)
        across = np.ascontiguousarray(ready.right.T)
        return cls(OneLevel.of(groups.middles), ready, across, groups.offsets)

    def nearest(self, rows: Matrix, count: int) -> tuple[Cells, Matrix]:
        """Return the `count` nearest centres of each row, the nearest first, and distances."""
        rows = np.ascontiguousarray(rows)
        probed = min(PROBED, len(self.offsets) - 1)
        group, _ = self.middles.nearest(rows, probed)
        # In the order of centres: of equally near ones the first is taken.
        group.sort(axis=1)
        cell = np.empty((len(rows), count), dtype=np.intp)
        distance = np.empty((len(rows), count))
        loops.nearest_in_groups(
            rows,
            self.centers.origin,
            self.centers.unit,
            _FAR,
            self.centers.apart,
            self.centers.square,
            self.across,
            self.offsets,
            group,
            cell,
            distance,
        )
        return cell, distance


def made_ready(centers: Matrix, groups: Groups | None) -> OneLevel | TwoLevels:
    """Return centres that are ready to be compared with rows."""
    return OneLevel.of(centers) if groups is None else TwoLevels.of(centers, groups)
