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
from widemargin.svm.exact_search import matrices_that_fit, scores_exact
from widemargin.svm.grid import Found, Grid, Width
from widemargin.svm.grid_engine import engine_of_grid
from widemargin.svm.scoring import GridScores, Judge
from widemargin.svm.search import scores_in_cells, scores_in_span

# How near its optimum an objective in a span must be for its machine to be judged, at the least.
_SPAN_TOL = 1e-3
# The same for exact machines and in cells, as a gap that is proved.
_EXACT_TOL = 1e-2
# Vectors of a span, unless the user says how many: pairs are told apart by fewer than the best of
# them needs, and every fold of every C has a Newton matrix of their number.
_SPAN_VECTORS = 1000
# How much finer the final fit is.
_FINER = 10.0
# Tasks of exact machines for each thread, so that all are busy to the end.
_TASKS_A_THREAD = 4
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
        n, w = len(self.grid.widths), 0
        while w < n and not self.interrupted:
            started = perf_counter()
            group = self._group(w, stated)
            # The final fit has a share too.
            until = self.options.deadline.part(len(group) / (n - w + 1))
            inner = replace(self.options, deadline=until)
            scored = self._scored(group, stated, inner, gamma)
            seconds = (perf_counter() - started) / len(group)
            for width, each in zip(group, scored, strict=True):
                found = self.found
                found.scores[width], found.finished[width] = each.scores, each.cut is None
                found.seconds[width] = seconds
                self.cells = self.cells if each.centers is None else each.centers
                self.cut = self.cut or each.cut
            self.bar.advance(0.0, self._said(group))
            w += len(group)

    def _group(self, first: int, stated: Stated) -> range:
        """Return the widths from `first` on that are scored together, all by exact machines."""
        problem, _ = stated(self.grid.widths[first])
        check_prices(self.grid.Cs[-1], problem.weight)
        engine = self.engines[first] = self._engine(problem, stated)
        last = first + 1
        if engine == "exact":
            tasks = self.folds.n * problem.n_problems
            wanted = -(-_TASKS_A_THREAD * self.options.threads // tasks)
            most = min(wanted, matrices_that_fit(problem, self.options.memory))
            for width in self.grid.widths[last : first + most]:
                problem, _ = stated(width)
                if self._engine(problem, stated) != "exact":
                    break
                self.engines[last] = "exact"
                last += 1
        return range(first, last)

    @property
    def interrupted(self) -> bool:
        """Whether the user has ended it."""
        return self.cut is not None and self.cut.kind.by_user

    def _said(self, group: range) -> str:
        """Return what some widths came to, for the line of progress."""
        mean = self.found.scores[group.start : group.stop].mean(axis=2)
        if np.isnan(mean).all():
            return "no time"
        w, c = np.unravel_index(np.nanargmax(mean), mean.shape)
        _, best = self.found.best()
        width = self.grid.widths[group[w]]
        return f"{mean[w, c]:.4f} with {width}, C {self.grid.Cs[c]:.3g}; best so far {best:.4f}"

    # The engine.

    def _engine(self, problem: Problem, stated: Stated) -> str:
        options = self.options
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
        # The largest C has the machine that takes longest.
        hardest = problem.with_C(self.grid.Cs[-1])
        chosen = options.engine == "exact" or exact_is_cheap(hardest, options, in_search=True)
        return chosen and matrices_that_fit(problem, options.memory) > 0

    # The scores.

    @property
    def _Cs(self) -> Vector:
        return np.array(self.grid.Cs)

    def _scored(
        self,
        group: range,
        stated: Stated,
        options: ChoiceOptions,
        gamma: Callable[[Width], float],
    ) -> list[GridScores]:
        """Return the scores of some widths of one engine."""
        folds, judge, engine = self.folds, self.judge, self.engines[group.start]
        roughly = replace(options, tol=min(_EXACT_TOL, _FINER * options.tol))
        problems = [stated(self.grid.widths[w]) for w in group]
        if engine == "exact":
            elsewhere = [problem for problem, _ in problems]
            share = 1.0 / folds.n
            return scores_exact(
                elsewhere, self._Cs, folds, judge, roughly, lambda _: self.bar.advance(share)
            )
        ((problem, in_span),) = problems
        if engine == "cells":
            roughly = replace(roughly, cells=self.cells)
            width = gamma(self.grid.widths[group.start])
            found = scores_in_cells(problem, self._Cs, folds, judge, roughly, self.choices, width)
        else:
            most = _SPAN_VECTORS if options.max_vectors is None else options.max_vectors
            closely = replace(options, tol=min(_SPAN_TOL, options.tol), max_vectors=most)
            found = scores_in_span(in_span, self._Cs, folds, judge, closely)
        self.bar.advance(1.0)
        return [found]
