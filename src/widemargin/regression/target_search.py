"""A search over the scale of columns, kernels, widths, C and ε: all of them first on some rows.

Where there are several scales or kernels to choose from, all rows decide between a few only
(successive halving over rows: K. Jamieson, A. Talwalkar, "Non-stochastic best arm identification
and hyperparameter optimization", AISTATS 2016):

1. All scales and kernels with all widths on a third of the rows, by three of the folds.
2. The best two of them on all rows and folds, with the best width of the sample and its neighbours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

import numpy as np

from widemargin.arrays import Vector
from widemargin.base.found import Found
from widemargin.base.progress import ProgressBar
from widemargin.base.widths import Width, best_of_views, views_of
from widemargin.expansion import MachineOptions
from widemargin.kernels import Kernel
from widemargin.loop import Stop
from widemargin.regression.held_out_targets import FoldSearch
from widemargin.regression.piece_search import PieceSearch
from widemargin.regression.regression_grid import RegressionGrid
from widemargin.rows import Rows

# Rows up to which there is no sample: all widths are scored on all rows.
_FEW = 250
# Share of the rows in the sample, and how many they are at the least and at the most.
_SHARE, _LEAST, _MOST = 1 / 3, 200, 800
# Folds that judge the sample.
_FOLDS = 3
# Scales and kernels that go on from it.
_KEPT = 2
# Part of the time, where it is limited, for the sample.
_TIME_FOR_SAMPLE = 0.2


@dataclass
class TargetSearch:
    """A search for a regressor, in one stage or two.

    Attributes
    ----------
    search : FoldSearch or PieceSearch
        How one width is scored, and the rows.
    grid : RegressionGrid
        All combinations; after `run` those that all rows have decided between.
    rows : mapping of scale to Rows
        The rows as each scale sees them.
    kernel : callable
        Returns the kernel of a width.
    options : MachineOptions
        What the machines are told.
    bar : ProgressBar
        Shows how far the search is.
    cut : Stop or None
        Why it was cut short, after `run`; None if it was not.
    """

    search: FoldSearch | PieceSearch
    grid: RegressionGrid
    rows: Mapping[str | None, Rows]
    kernel: Callable[[Width], Kernel]
    options: MachineOptions
    bar: ProgressBar
    cut: Stop | None = None

    def run(self) -> Found:
        """Return the scores of the grid, or of as much of it as there was time for."""
        if len(views_of(self.grid.widths)) > _KEPT and self.search.problem.n > _FEW:
            self._choose_on_sample()
        return self._walked()

    def _choose_on_sample(self) -> None:
        """Keep the widths that do best on a sample of the rows."""
        sampled = self._on_sample()
        if sampled is None:
            return
        found = sampled._walked()
        with np.errstate(invalid="ignore"):
            means = found.scores.mean(axis=2)
        best = np.where(np.isnan(means), -np.inf, means).max(axis=1)
        # Without a score nothing is known: columns on one scale, and the first kernel.
        views = views_of(self.grid.widths)
        known = bool(np.isfinite(best).any())
        widths = best_of_views(self.grid.widths, best, _KEPT) if known else views[-1]
        self.grid = replace(self.grid, widths=widths)
        self.bar.total = len(widths)

    def _on_sample(self) -> TargetSearch | None:
        """Return the search of the sample; None if it has too little to say."""
        problem, folds = self.search.problem, self.search.folds
        assert problem.place is not None
        size = int(np.clip(_SHARE * problem.n, _LEAST, _MOST))
        # The first rows are a sample. Rows that have no place, at −1, get none.
        known = np.full(problem.n + 1, -1, dtype=np.intp)
        known[:size] = np.arange(size)
        place = known[problem.place]
        judging = folds.some(range(min(folds.n, _FOLDS)), place >= 0)
        kind = judging.kind[problem.number[:size]]
        if not judging.counts[kind].any(axis=0).all() or min(map(len, judging.test)) < 2:
            return None
        sample = np.arange(size)
        part = replace(problem.subset(sample), place=place)
        return TargetSearch(
            replace(self.search, problem=part, folds=judging),
            self.grid,
            {scale: rows.subset(sample) for scale, rows in self.rows.items()},
            self.kernel,
            replace(self.options, deadline=self.options.deadline.part(_TIME_FOR_SAMPLE)),
            ProgressBar("", len(self.grid.widths), shown=False),
        )

    def _walked(self) -> Found:
        """Go through the widths, each with its share of the time."""
        n, deadline, bar = len(self.grid.widths), self.options.deadline, self.bar
        found = Found.nothing(self.grid, self.search.folds.n)
        fold_done = partial(bar.advance, 1.0 / self.search.folds.n)
        for w, width in enumerate(self.grid.widths):
            started = perf_counter()
            # The final fit has a share too.
            until = deadline.part(1.0 / (n - w + 1))
            problem = replace(
                self.search.problem, rows=self.rows[width.scale], kernel=self.kernel(width)
            )
            of_width = replace(self.search, problem=problem)
            found.scores[w] = of_width.scores(replace(self.options, deadline=until), fold_done)
            late = until.passed and bool(np.isnan(found.scores[w]).any())
            found.finished[w], found.seconds[w] = not late, perf_counter() - started
            self.cut = until.stop if late else self.cut
            bar.advance(0.0, f"{width}; best so far {found.best()[1]:.4f}")
            if deadline.interrupted:
                break
        bar.close()
        return found


def scored(found: Found) -> int:
    """Return how many combinations have been scored in all folds."""
    scores: Vector = found.of_pairs.sum(axis=1)
    return int((~np.isnan(scores)).sum())
