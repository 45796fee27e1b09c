"""The scores of a grid: every value of C in every fold, for one kernel width."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from widemargin.cells import CellOptions, cut
from widemargin.cells.held_out import CellChoices, HeldOutOptions, batches, held_out_values
from widemargin.folds import Folds
from widemargin.loop import Ended, Stop
from widemargin.problem import Problem
from widemargin.span import SpanOptions, solve_in_span
from widemargin.svm.scoring import GridScores, Judge, held_out, of_classes

# Share of the memory budget for the scores of all problems in a span.
_SCORES_SHARE = 0.25


def scores_in_span(
    problem: Problem, Cs: NDArray[np.float64], folds: Folds, judge: Judge, options: SpanOptions
) -> GridScores:
    """Return the score of every C in every fold, by machines in the span of the same vectors.

    Parameters
    ----------
    problem : Problem
        Problems of the classes, or of pairs of them; equal rows of different folds are apart.
    Cs : ndarray
        Values of C.
    folds : Folds
        The folds.
    judge : Judge
        The score, labels and weights.
    options : SpanOptions
        How machines are fitted.
    """
    scores = np.full((len(Cs), folds.n), np.nan)
    parts = list(span_batches(len(Cs), problem, folds.n, options.memory))
    cut_by: Stop | None = None
    for b, chosen in enumerate(parts):
        until = options.deadline.part(1.0 / (len(parts) - b))
        # Without bounds the gap says nothing; the solver itself knows when it is stuck.
        inner = replace(options, deadline=until, patience=options.max_iter, prove=False)
        solver, result = solve_in_span(problem.in_folds(folds, Cs[chosen]), inner)
        shape = len(chosen), folds.n, problem.n_problems
        column = np.arange(np.prod(shape)).reshape(shape)
        held = [held_out(problem, folds, k, judge) for k in range(folds.n)]
        values = [
            solver.scores_at(place, column[:, k].ravel()) for k, (_, place) in enumerate(held)
        ]
        if problem.n_problems == 1 and judge.scoring is None:
            for k, (test, _) in enumerate(held):
                scores[chosen, k] = judge.accuracies(test, values[k])
        else:
            for c, number in enumerate(chosen):
                of_C = slice(c * problem.n_problems, (c + 1) * problem.n_problems)
                for k, (test, _) in enumerate(held):
                    decision = of_classes(problem, values[k][:, of_C])
                    scores[number, k] = judge.score(test, decision)
        if result.stop.kind is Ended.MAX_TIME or result.stop.kind.by_user:
            cut_by = result.stop
        if result.stop.kind.by_user:
            break
    return GridScores(scores, cut_by)


def span_batches(n_Cs: int, problem: Problem, n_folds: int, memory: int) -> Iterator[list[int]]:
    """Yield places of values of C whose scores fit into memory together."""
    # Scores, and the change of a step, in the larger of the two precisions.
    each = 2 * 8 * problem.n * problem.n_problems * n_folds
    size = max(1, int(_SCORES_SHARE * memory / each))
    for first in range(0, n_Cs, size):
        yield list(range(first, min(n_Cs, first + size)))


def scores_in_cells(
    problem: Problem,
    Cs: NDArray[np.float64],
    folds: Folds,
    judge: Judge,
    options: CellOptions,
    choices: CellChoices | None = None,
    gamma: float = 1.0,
) -> GridScores:
    """Return the score of every C in every fold, by machines in cells, and the cells' centres.

    Parameters
    ----------
    problem : Problem
        Problems of the classes, or of pairs of them; equal rows of different folds are apart.
    Cs : ndarray
        Values of C, ascending.
    folds : Folds
        The folds.
    judge : Judge
        The score, labels and weights.
    options : CellOptions
        How rows are cut and machines fitted.
    choices : CellChoices, default=None
        Is told of the scores in each cell.
    gamma : float, default=1.0
        The kernel width that it is told of.
    """
    scores = np.full((len(Cs), folds.n), np.nan)
    members = cut(problem, options)
    centers = members.partition.centers
    cell_of = np.empty(problem.n, dtype=np.intp)
    for number, index in enumerate(members.inside):
        cell_of[index] = number
    if choices is not None:
        choices.begin(gamma, centers)
    parts = list(batches(problem, len(Cs), folds, options.memory))
    for b, (chosen_folds, chosen_Cs) in enumerate(parts):
        inner = HeldOutOptions(
            options.tol,
            options.memory,
            options.threads,
            options.deadline.part(1.0 / (len(parts) - b)),
            options.matrix_rows,
        )
        values = held_out_values(problem, members, Cs[chosen_Cs], folds, chosen_folds, inner)
        for c, number in enumerate(chosen_Cs):
            for held in values:
                test, place = held_out(problem, folds, held.fold, judge)
                decision = held.of(place, c)
                # There may have been no time for some cells.
                known = np.isfinite(decision).all(axis=1)
                rows, cell = test[known], cell_of[place[known]]
                decision = of_classes(problem, decision[known])
                scores[number, held.fold] = judge.score(rows, decision)
                if choices is not None:
                    choices.add(number, *judge.score_of_parts(rows, decision, cell, len(centers)))
        if options.deadline.interrupted:
            break
    return GridScores(scores, options.deadline.stop if options.deadline.passed else None, centers)
