"""The search of a grid on a Dask collection: rows that are brought here, a span, or cells.

As for one machine (``collection_fit``), few rows are searched in memory, and of many those with the
least keys decide between a span and cells, as they do in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from widemargin.base.progress import ProgressBar
from widemargin.base.widths import Width
from widemargin.cells.engine_choice import ChoiceOptions, sample_rows
from widemargin.cells.uncut import ExactSizes
from widemargin.folds import Folds
from widemargin.kernels import Kernel
from widemargin.places.collection import Collection
from widemargin.places.folds_of_shards import FoldsOfShards
from widemargin.places.labels import Labels
from widemargin.places.loading import Facts
from widemargin.places.sorted_shards import SortedShards
from widemargin.problem import Problem, one_vs_one, one_vs_rest
from widemargin.svm.collection_fit import room_here
from widemargin.svm.grid import Grid
from widemargin.svm.grid_engine import engine_of_grid
from widemargin.svm.grid_search import on_sample
from widemargin.svm.grid_walk import GridWalk
from widemargin.svm.margin_classifier import MarginClassifier, check_loss
from widemargin.svm.scoring import Judge
from widemargin.svm.search_of_cells import CellsSearch
from widemargin.svm.search_of_shards import ShardsSearch

# Rows up to which a search in memory has a choice that others have not: exact machines.
_FEW_ROWS = ExactSizes().most_of_many


def is_gathered(
    facts: Facts, machine: MarginClassifier, memory: int, *, scored: bool, precomputed: bool
) -> bool:
    """Return whether a collection is searched in memory, or raise if it must be and is too large.

    Parameters
    ----------
    facts : Facts
        What is known of all rows.
    machine : MarginClassifier
        What is to be fitted.
    memory : int
        Budget of this process in bytes.
    scored : bool
        Whether there is a score other than the accuracy.
    precomputed : bool
        Whether the rows are those of a kernel matrix.
    """
    engine, room = machine.engine, room_here(memory)
    fits = facts.nbytes <= room
    what = f"engine={engine!r}"
    if precomputed:
        what = "kernel='precomputed'"
    elif engine == "cells":
        what += " with scoring"
    needed = precomputed or engine == "exact" or (engine == "cells" and scored)
    if needed and not fits:
        raise ValueError(
            f"{what} searches rows in memory, but those of X take {facts.nbytes:,} bytes, more "
            f"than {room:,}, a quarter of memory; use engine='span', or more memory."
        )
    return needed or (fits and engine == "auto" and facts.n <= _FEW_ROWS)


@dataclass(frozen=True)
class CollectionSearch:
    """What is searched for on the rows of a collection.

    Attributes
    ----------
    collection : Collection
        The rows.
    labels : Labels
        Labels of all rows.
    folds : Folds
        The folds.
    grid : Grid
        The grid.
    machine : MarginClassifier
        What is to be fitted, with other parameters for each pair.
    kernel : callable
        Gives the kernel of a width.
    scoring : str, callable or None
        The score.
    per_cell : bool
        Whether each cell is to have its own pair.
    """

    collection: Collection
    labels: Labels
    folds: Folds
    grid: Grid
    machine: MarginClassifier
    kernel: Callable[[Width], Kernel]
    scoring: Any
    per_cell: bool

    def walk(self, options: ChoiceOptions, bar: ProgressBar) -> GridWalk:
        """Return the search, in the engine of the final fit."""
        shown = (self.grid, self.folds.n, options, bar)
        cuttable = options.engine == "auto" and options.cuttable and self.scoring is None
        if options.engine != "cells" and not cuttable:
            return self._in_span(*shown)
        collection, n_classes = self.collection, len(self.collection.classes)
        stated = replace(self._stated("ovr"), table=one_vs_rest(n_classes))
        shards = SortedShards(
            collection.source,
            collection.facts,
            stated,
            options.memory,
            options.threads,
            self.folds.small_kind,
        )
        if n_classes > 2 and self.machine.in_pairs(shards.n, n_classes):
            stated = replace(stated, table=one_vs_one(n_classes))
        if options.engine == "auto" and not self._cells_are_better(shards, stated.table, options):
            return self._in_span(*shown)
        return CellsSearch(
            *shown, shards, stated, self.folds, self.kernel, self._gamma, self.per_cell
        )

    def _gamma(self, width: Width) -> float:
        return 1.0 if width.gamma is None else self.collection.gamma(width.gamma)

    def _stated(self, multi_class: str) -> Any:
        first = self.kernel(self.grid.widths[0])
        weight = self.machine.class_weight
        return self.collection.stated(first, multi_class, weight, self.grid.Cs[0])

    def _in_span(
        self, grid: Grid, n_folds: int, options: ChoiceOptions, bar: ProgressBar
    ) -> ShardsSearch:
        machine, classes = self.machine, self.collection.classes
        check_loss(machine.loss, "span", machine.max_vectors, machine.vectors)
        rows = FoldsOfShards.of(
            self.collection,
            self._stated(machine.multi_class),
            self.folds,
            most_C=grid.Cs[-1],
            decisions=self.scoring is not None,
        )
        judge = Judge(self.scoring, self.labels.among(classes), self.labels.used, classes)
        return ShardsSearch(grid, n_folds, options, bar, rows, judge, self.kernel)

    def _cells_are_better(
        self, shards: SortedShards, in_cells: np.ndarray, options: ChoiceOptions
    ) -> bool:
        """Return what the rows with the least keys say."""
        count = sample_rows(options.trial)
        in_span = self.collection.table(self.machine.multi_class)
        both = shards.problem(count, in_cells), shards.problem(count, in_span)

        def stated(width: Width) -> tuple[Problem, Problem]:
            kernel = self.kernel(width)
            return replace(both[0], kernel=kernel), replace(both[1], kernel=kernel)

        each = [partial(stated, width) for width in self.grid.widths]
        told = replace(on_sample(options), n_rows=shards.n)
        return engine_of_grid(each, np.array(self.grid.Cs), told).engine == "cells"
