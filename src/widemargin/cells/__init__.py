"""A partition of the rows, and an independent machine in each part.

Where a boundary is too rich for the span of a few thousand vectors, the space is cut into cells,
and a row is answered by the machine of its own cell (near an edge, by those of the two nearest).
``partition`` cuts, ``nearest_centers`` compares rows with centres, ``members`` says which rows
train where, ``cell_machine`` is what stands in a cell, ``cell_engine`` goes through all, and
``cell_decision`` answers. ``uncut`` is the machine of rows that are not cut, and ``held_out``
scores a grid of parameters in cells. The files of a device do the same where rows are arrays of
another library: ``device_partition``, ``device_batches``, ``device_cells`` and
``device_decision``.
"""

from widemargin.cells.cell_by_cell import FittedCells
from widemargin.cells.cell_decision import CellMachines
from widemargin.cells.cell_engine import CellOptions, CellsFit, cut, fit_cells
from widemargin.cells.device_cells import fit_cells_there
from widemargin.cells.device_decision import values_there
from widemargin.cells.members import Members
from widemargin.cells.nearest_centers import Groups
from widemargin.cells.partition import Partition, partition_by_kmeans
from widemargin.cells.uncut import ExactSizes, UncutOptions, exact_is_cheap, fit_uncut

__all__ = [
    "CellMachines",
    "CellOptions",
    "CellsFit",
    "ExactSizes",
    "FittedCells",
    "Groups",
    "Members",
    "Partition",
    "UncutOptions",
    "cut",
    "exact_is_cheap",
    "fit_cells",
    "fit_cells_there",
    "fit_uncut",
    "partition_by_kmeans",
    "values_there",
]
