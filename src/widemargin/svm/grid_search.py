"""The search of a grid, width by width, in the engine that the final fit will use.

Widths for which the exact machine is cheap are scored by exact machines (``exact_search``). For
others there is a span or cells (``search``): which, is decided once, on held-out rows of a sample,
where each has its own best C and width of the grid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.base.widths import Width
from widemargin.cells.engine_choice import ChoiceOptions, Decision
from widemargin.cells.held_out import CellChoices
from widemargin.cells.uncut import exact_is_cheap
from widemargin.folds import Folds
from widemargin.loop import Deadline
from widemargin.problem import Problem, check_prices
from widemargin.svm.exact_search import matrices_that_fit, scores_exact
from widemargin.svm.grid_engine import engine_of_grid
from widemargin.svm.grid_walk import GridWalk, in_a_span, roughly
from widemargin.svm.scoring import GridScores, Judge, Noting
from widemargin.svm.search import scores_in_cells, scores_in_span

# Tasks of exact machines for each thread, so that all are busy to the end.
_TASKS_A_THREAD = 4
# Accuracy at which the sample is judged that decides between cells and a span.
_TRIAL_TOL = 1e-2
# Part of the time, where it is limited, for that decision.
_TIME_TO_CHOOSE = 0.15


Stated = Callable[[Width], tuple[Problem, Problem]]
"""Gives the problems of a width: those of exact machines and cells, and those of a span."""


def on_sample(options: ChoiceOptions) -> ChoiceOptions:
    """Return how closely, and in which time, machines of a sample are fitted."""
    deadline = options.deadline.part(_TIME_TO_CHOOSE)
    return replace(options, deadline=deadline, tol=_TRIAL_TOL)


@dataclass
class GridSearch(GridWalk):
    """A search on rows in memory.

    Attributes
    ----------
    folds : Folds
        The folds.
    judge : Judge
        The score.
    stated : callable
        Gives the problems of a width: of exact machines and cells, and of a span.
    gamma : callable
        Gives its number.
    per_cell : bool
        Whether each cell is to have its own pair.
    """

    folds: Folds
    judge: Judge
    stated: Stated
    gamma: Callable[[Width], float]
    per_cell: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.choices = CellChoices(len(self.grid.Cs)) if self.per_cell else None
        # The engine of widths for which exact machines are too dear, once it is decided.
        self.decision: Decision | None = None
        # All widths of the same rows have the same cells.
        self.cells: dict[str | None, Any] = {}

    def group(self, first: int) -> range:
        """Return the widths from `first` on that are scored together, all by exact machines."""
        problem, _ = self.stated(self.grid.widths[first])
        check_prices(self.grid.Cs[-1], problem.weight)
        engine = self.engines[first] = self._engine(problem)
        last = first + 1
        if engine == "exact":
            tasks = self.folds.n * problem.n_problems
            wanted = -(-_TASKS_A_THREAD * self.options.threads // tasks)
            most = min(wanted, matrices_that_fit(problem, self.options.memory))
            begun = self.grid.widths[first]
            for width in self.grid.widths[last : first + most]:
                if width.scale != begun.scale:
                    break
                problem, _ = self.stated(width)
                if self._engine(problem) != "exact":
                    break
                self.engines[last] = "exact"
                last += 1
        return range(first, last)

    def held_values(self, index: int) -> NDArray[np.float64]:
        """Return the decision values that rows get when a fold holds them out; NaN if none does.

        The folds of one combination are solved again: a search has no room for all of them.
        """
        n = len(self.grid.widths)
        judge, grid = self.judge, self.grid
        noting = Noting.of(judge)
        self.judge, self.grid = noting, replace(grid, Cs=(grid.Cs[index // n],))
        told = replace(self.options, deadline=Deadline())
        self.scored(range(index % n, index % n + 1), told)
        self.judge, self.grid = judge, grid
        return noting.values[:, 0] if len(judge.classes) == 2 else noting.values

    # The engine.

    def _engine(self, problem: Problem) -> str:
        options = self.options
        if options.engine == "cells":
            return "cells"
        if self.exactly(problem):
            return "exact"
        if options.engine == "span" or not options.cuttable:
            return "span"
        if self.decision is None:
            each = [partial(self.stated, width) for width in self.grid.widths]
            self.decision = engine_of_grid(each, self.Cs, on_sample(self.options))
        return self.decision.engine

    def exactly(self, problem: Problem) -> bool:
        """Return whether a width is scored by exact machines."""
        options = self.options
        if options.engine == "span" or options.in_a_span:
            return False
        if options.max_vectors is not None and options.max_vectors < problem.n:
            return False
        # The largest C has the machine that takes longest.
        hardest = problem.with_C(self.grid.Cs[-1])
        chosen = options.engine == "exact" or exact_is_cheap(hardest, options, in_search=True)
        return chosen and matrices_that_fit(problem, options.memory) > 0

    # The scores.

    def scored(self, group: range, options: ChoiceOptions) -> list[GridScores]:
        """Return the scores of some widths of one engine."""
        folds, judge, engine = self.folds, self.judge, self.engines[group.start]
        inner = roughly(options)
        problems = [self.stated(self.grid.widths[w]) for w in group]
        if engine == "exact":
            elsewhere = [problem for problem, _ in problems]
            share = 1.0 / folds.n
            return scores_exact(
                elsewhere, self.Cs, folds, judge, inner, lambda _: self.bar.advance(share)
            )
        ((problem, in_span),) = problems
        if engine == "cells":
            seen = self.grid.widths[group.start]
            inner = replace(inner, cells=self.cells.get(seen.scale, options.cells))
            width = self.gamma(seen)
            found = scores_in_cells(problem, self.Cs, folds, judge, inner, self.choices, width)
            self.cells[seen.scale] = found.centers
        else:
            found = scores_in_span(in_span, self.Cs, folds, judge, in_a_span(options))
        self.bar.advance(1.0)
        return [found]
