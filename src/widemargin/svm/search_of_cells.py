"""The search of a grid in cells, on rows that are not in the memory of this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from widemargin.base.widths import Width
from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.cells.held_out import CellChoices
from widemargin.folds import Folds
from widemargin.kernels import Kernel
from widemargin.loop import Ended, PlaceLost, Stop
from widemargin.places.cells_of_shards import cut_shards
from widemargin.places.scores_of_cells import CellScores, GridOfCells, scores_of_cells
from widemargin.places.sorted_shards import SortedShards
from widemargin.places.span_of_shards import Statement
from widemargin.svm.grid_walk import GridWalk, roughly
from widemargin.svm.scoring import GridScores


@dataclass
class CellsSearch(GridWalk):
    """A search in cells on rows in shards, all widths at once.

    Attributes
    ----------
    shards : SortedShards
        The rows, equal ones of different folds apart.
    stated : Statement
        What is to be fitted.
    folds : Folds
        The folds.
    kernel, gamma : callable
        Give the kernel and the number of a width.
    per_cell : bool
        Whether each cell is to have its own pair.
    """

    shards: SortedShards
    stated: Statement
    folds: Folds
    kernel: Callable[[Width], Kernel]
    gamma: Callable[[Width], float]
    per_cell: bool = False

    def group(self, first: int) -> range:
        """Return all widths."""
        widths = range(first, len(self.grid.widths))
        for w in widths:
            self.engines[w] = "cells"
        return widths

    def scored(self, group: range, options: ChoiceOptions) -> list[GridScores]:
        """Return the scores of all widths."""
        options = roughly(options)
        deadline, stop = options.deadline, None
        cells = cut_shards(self.shards, self.stated.table.shape[1], options)
        widths = [self.grid.widths[w] for w in group]
        grid = GridOfCells(
            self.stated,
            tuple(self.kernel(width) for width in widths),
            self.Cs,
            self.folds.counts,
            self.folds.held,
        )
        known, done = CellScores.nothing(grid, cells.partition.n_cells), 0.0
        try:
            with deadline.ends_on_interrupt():
                for share, own, found in scores_of_cells(self.shards, cells, grid, options):
                    known.add(own, found)
                    self.bar.advance(share * len(widths))
                    done += share
        except PlaceLost as lost:
            stop = Stop(Ended.LOST, str(lost))
        if stop is None and (deadline.passed or done < 1.0 - 1e-9):
            stop = deadline.stop
        if self.per_cell:
            self.choices = self._choices(widths, known, cells.partition.centers)
        with np.errstate(invalid="ignore"):
            scores = known.right / known.total
        return [GridScores(each, stop, cells.partition.centers) for each in scores]

    def _choices(self, widths: list[Width], known: CellScores, centers: np.ndarray) -> CellChoices:
        """Return which pairs suit each cell."""
        choices = CellChoices(len(self.grid.Cs))
        for w, width in enumerate(widths):
            choices.begin(self.gamma(width), centers)
            for c in range(len(self.grid.Cs)):
                right, total = known.cell_right[w, c], known.cell_total[w, c]
                share = np.divide(right, total, out=np.zeros_like(right), where=total > 0)
                choices.add(c, share, total)
        return choices
