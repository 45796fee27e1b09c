"""The search of a grid, width by width, in the engine that the final fit will use.

Widths for which the exact machine is cheap are scored by exact machines (``exact_search``). For
others there is a span or cells (``search``): which, is decided once, on held-out rows of a sample,
where each has its own best C and width of the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.base.progress import ProgressBar
from widemargin.cells.held_out import CellChoices
from widemargin.cells.uncut import exact_is_cheap
from widemargin.loop import Stop
from widemargin.problem import Folds, Problem, check_prices
from widemargin.svm.engine_choice import ChoiceOptions, Decision
from widemargin.svm.exact_search import matrix_fits, scores_exact
from widemargin.svm.grid import Found, Grid, Width
from widemargin.svm.grid_engine import engine_of_grid
from widemargin.svm.scoring import GridScores, Judge
from widemargin.svm.search import scores_in_cells, scores_in_span

# How near its optimum an objective in a span must be for its machine to be judged, at the least.
_SPAN_TOL = 1e-3
# The same for exact machines and in cells, as a gap that is proved.
_EXACT_TOL = 1e-2
# How much finer the final fit is.
_FINER = 10.0
# Accuracy at which the sample is judged that decides between cells and a span.
_TRIAL_TOL = 1e-2
# Part of the time, where it is limited, for that decision.
_TIME_TO_CHOOSE = 0.15


Stated = Callable[[Width], tuple[Problem, Problem]]
"""Gives the problems of a width: those of exact machines and cells, and those of a span."""


@dataclass
class GridSearch:
    """A search that goes through a grid.

    Attributes
    ----------
    grid : Grid
        What to search, with widths as numbers or words.
    folds : Folds
        The folds.
    judge : Judge
        The score.
    options : ChoiceOptions
        How machines are fitted, and in which engine.
    bar : ProgressBar
        Shows how far it is.
    per_cell : bool
        Whether each cell is to have its own pair.
    """

    grid: Grid
    folds: Folds
    judge: Judge
    options: ChoiceOptions
    bar: ProgressBar
    per_cell: bool = False

    def __post_init__(self) -> None:
        self.found = Found.nothing(self.grid, self.folds.n)
        self.engines = ["span"] * len(self.grid.widths)
        self.choices = CellChoices(len(self.grid.Cs)) if self.per_cell else None
        self.cut: Stop | None = None
        # The engine of widths for which exact machines are too dear, once it is decided.
        self.decision: Decision | None = None
        # All widths have the same cells.
        self.cells: Any = self.options.cells

    def run(self, stated: Stated, gamma: Callable[[Width], float]) -> None:
        """Score all widths, or those for which there is time.

        Parameters
        ----------
        stated : callable
            Gives the problems of a width: of exact machines and cells, and of a span.
        gamma : callable
            Gives its number.
        """
        widths = self.grid.widths
        for w, width in enumerate(widths):
            started = perf_counter()
            # The final fit has a share too.
            until = self.options.deadline.part(1.0 / (len(widths) - w + 1))
            inner = replace(self.options, deadline=until)
            problem, in_span = stated(width)
            check_prices(self.grid.Cs[-1], problem.weight)
            self.engines[w] = self._engine(problem, stated, inner)
            stated_so = in_span if self.engines[w] == "span" else problem
            scored = self._scored(self.engines[w], stated_so, inner, gamma(width))
            found = self.found
            found.scores[w], found.finished[w] = scored.scores, scored.cut is None
            found.seconds[w] = perf_counter() - started
            self.cells = self.cells if scored.centers is None else scored.centers
            self.cut = self.cut or scored.cut
            self.bar.advance(1.0, f"{width}: {self._said(w)}")
            if scored.cut is not None and scored.cut.kind.by_user:
                break

    @property
    def interrupted(self) -> bool:
        """Whether the user has ended it."""
        return self.cut is not None and self.cut.kind.by_user

    def _said(self, w: int) -> str:
        """Return what a width came to, for the line of progress."""
        mean = self.found.scores[w].mean(axis=1)
        if np.isnan(mean).all():
            return "no time"
        c = int(np.nanargmax(mean))
        _, best = self.found.best()
        return f"{mean[c]:.4f} with C {self.grid.Cs[c]:.3g}, best so far {best:.4f}"

    # The engine.

    def _engine(self, problem: Problem, stated: Stated, options: ChoiceOptions) -> str:
        if options.engine == "cells":
            return "cells"
        if self._exactly(problem, options):
            return "exact"
        if options.engine == "span" or not options.cuttable:
            return "span"
        if self.decision is None:
            deadline = self.options.deadline.part(_TIME_TO_CHOOSE)
            on_sample = replace(self.options, deadline=deadline, tol=_TRIAL_TOL)
            each = [partial(stated, width) for width in self.grid.widths]
            self.decision = engine_of_grid(each, self._Cs, on_sample)
        return self.decision.engine

    def _exactly(self, problem: Problem, options: ChoiceOptions) -> bool:
        """Return whether a width is scored by exact machines."""
        if options.engine == "span" or options.in_a_span:
            return False
        if options.max_vectors is not None and options.max_vectors < problem.n:
            return False
        chosen = options.engine == "exact" or exact_is_cheap(problem, options)
        return chosen and matrix_fits(problem, options.memory)

    # The scores.

    @property
    def _Cs(self) -> Vector:
        return np.array(self.grid.Cs)

    def _scored(
        self, engine: str, problem: Problem, options: ChoiceOptions, gamma: float
    ) -> GridScores:
        """Return the scores of one width."""
        folds, judge = self.folds, self.judge
        roughly = replace(options, tol=min(_EXACT_TOL, _FINER * options.tol))
        if engine == "exact":
            return scores_exact(problem, self._Cs, folds, judge, roughly)
        if engine == "cells":
            roughly = replace(roughly, cells=self.cells)
            return scores_in_cells(problem, self._Cs, folds, judge, roughly, self.choices, gamma)
        closely = replace(options, tol=min(_SPAN_TOL, options.tol))
        return scores_in_span(problem, self._Cs, folds, judge, closely)
