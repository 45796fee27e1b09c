"""Whether a grid is searched in a span or in cells: each at its own best on a sample.

A width that is right for cells, where rows are few and near, is too narrow for a span of a few
hundred vectors. So both go through the grid on a sample, which one fold cuts into rows to learn
from and rows to judge by, and their best accuracies are compared as in ``engine_choice``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from widemargin.arrays import Vector
from widemargin.cells.engine_choice import ChoiceOptions, Decision, decided, rows_of
from widemargin.folds import Folds
from widemargin.problem import Problem
from widemargin.svm.scoring import GridScores, Judge
from widemargin.svm.search import scores_in_cells, scores_in_span

Stated = Callable[[], tuple[Problem, Problem]]


def engine_of_grid(stated: Sequence[Stated], Cs: Vector, options: ChoiceOptions) -> Decision:
    """Return the engine for a grid.

    Parameters
    ----------
    stated : sequence of callables
        Each gives the problems of a width: those of cells, and those of a span.
    Cs : ndarray
        Values of C, ascending.
    options : ChoiceOptions
        How machines are to be fitted; their deadline is when it must have been decided.
    """
    sizes = options.trial
    nothing = Decision("span", sizes.cells[0], "no time to compare it with cells")
    options = replace(options, max_vectors=None, report=None)
    best_cells, best_span, best_width = -1.0, -1.0, 0
    for w, of_width in enumerate(stated):
        of_cells, of_span = of_width()
        n = rows_of(of_cells, options)
        learn = min(sizes.learn, int(sizes.learn_share * n), n // 2)
        size = min(learn + sizes.judge, of_cells.n)
        few = n < sizes.least_rows
        if few or len(np.unique(of_cells.code[:learn])) < 2:
            return Decision("span", sizes.cells[0])
        cells = _best(_in_cells(of_cells, learn, size, Cs, options), options)
        span = _best(_in_span(of_span, learn, size, Cs, options), options)
        if cells is None or span is None:
            return nothing
        if cells > best_cells:
            best_cells, best_width = cells, w
        best_span = max(best_span, span)

    def of_half() -> float | None:
        problem, _ = stated[best_width]()
        n = rows_of(problem, options)
        learn = min(sizes.learn, int(sizes.learn_share * n), n // 2)
        size = min(learn + sizes.judge, problem.n)
        return _best(_in_cells(problem, learn, size, Cs, options, learn // 2), options)

    return decided(best_span, best_cells, of_half, sizes)


def _best(found: GridScores, options: ChoiceOptions) -> float | None:
    """Return the best accuracy, or None if time was too short for it."""
    if options.deadline.interrupted:
        raise KeyboardInterrupt
    return None if found.cut is not None or options.deadline.passed else float(found.scores.max())


def _in_cells(
    problem: Problem,
    learn: int,
    size: int,
    Cs: Vector,
    options: ChoiceOptions,
    fewer: int | None = None,
) -> GridScores:
    """Return accuracies in cells of a sample, perhaps with fewer of the rows to learn from."""
    kept = np.r_[: learn if fewer is None else fewer, learn:size]
    sample, folds, judge = _sample(problem, kept, len(kept) - (size - learn))
    inside = replace(options, cells=options.trial.cell)
    return scores_in_cells(sample, Cs, folds, judge, inside)


def _in_span(
    problem: Problem, learn: int, size: int, Cs: Vector, options: ChoiceOptions
) -> GridScores:
    """Return accuracies in a small span of a sample."""
    sample, folds, judge = _sample(problem, np.arange(size), learn)
    inside = replace(options, max_vectors=options.trial.vectors)
    return scores_in_span(sample, Cs, folds, judge, inside)


def _sample(problem: Problem, kept: np.ndarray, learn: int) -> tuple[Problem, Folds, Judge]:
    """Return some rows, the fold that learns from the first of them, and the judge of the rest."""
    every = np.arange(len(kept))
    part = replace(problem.subset(kept), number=every, place=every)
    folds = Folds([(every[:learn], every[learn:])], part.weight)
    judge = Judge(None, part.code, part.weight, np.arange(len(part.table)))
    return part, folds, judge
