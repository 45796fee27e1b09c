"""A partition of the rows, and an independent machine in each part.

Where a boundary is too rich for the span of a few thousand vectors, the space is cut into cells,
and a row is answered by the machine of its own cell (near an edge, by those of the two nearest).
``partition`` cuts, ``fit`` goes through the cells, ``decision`` answers. Which machine stands in a
cell is not known here.
"""

from widemargin.cells.decision import CellMachines
from widemargin.cells.fit import CellFit, CellsFit, CellsState
from widemargin.cells.partition import Partition, partition_by_kmeans

__all__ = [
    "CellFit",
    "CellMachines",
    "CellsFit",
    "CellsState",
    "Partition",
    "partition_by_kmeans",
]
