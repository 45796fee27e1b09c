"""The scores of a grid: every value of C in every fold, for one kernel width."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.balls import Points
from widemargin.loop import Limits, run
from widemargin.progress import Report
from widemargin.rows import parse_memory
from widemargin.rows.base import IndexArray
from widemargin.span import as_strategy
from widemargin.svm.engines import SIZES
from widemargin.svm.folds import Folds, Judge, fold_problems
from widemargin.svm.folds_in_cells import CellChoices, batches, held_out_values
from widemargin.svm.margin import MarginClassifier
from widemargin.threads import n_threads, single_threaded_blas

Matrix = NDArray[np.float64]

# Share of the memory budget for the scores of all problems in a span.
_SCORES_SHARE = 0.25
# How near its optimum an objective must be for its machine to be judged.
_SEARCH_TOL = 1e-3
# The same in cells, as a gap that is proved.
_CELLS_TOL = 1e-2


def scores_in_span(
    machine: MarginClassifier, Cs: list[float], folds: Folds, X: Any, judge: Judge, report: Report
) -> Matrix:
    """Return the score of every C in every fold, by machines in the span of the same vectors.

    Parameters
    ----------
    machine : MarginClassifier
        With the kernel width, and all other parameters.
    Cs : list of float
        Values of C.
    folds : Folds
        The folds.
    X : array
        Rows.
    judge : Judge
        The score, labels and weights.
    report : callable
        Told of each step.
    """
    threads = n_threads(machine.n_jobs)
    scores = np.empty((len(Cs), folds.n))
    with single_threaded_blas():
        machine._earlier_classes = None
        points = machine._points(X, judge.y, judge.weight, threads, folds.kind)
        parts = list(span_batches(Cs, points, folds.n, parse_memory(machine.memory)))
        for b, chosen in enumerate(parts):
            problems = fold_problems(points, np.array(Cs)[chosen], folds, threads)
            machine.tol = _SEARCH_TOL
            strategy = as_strategy(machine.vectors, X.shape[1])
            limit = machine._vector_limit()
            solver = machine._span_fit(points, problems, strategy, limit, bounds=False)
            until = machine._deadline.part(1.0 / (len(parts) - b))
            # Without bounds the gap says nothing; the solver itself knows when it is stuck.
            run(solver, Limits(machine.max_iter, deadline=until, patience=machine.max_iter), report)
            values = solver.scores().reshape(points.n, len(chosen), folds.n, -1)
            for c, number in enumerate(chosen):
                for k in range(folds.n):
                    test, place = _held_out(points, folds, k, judge)
                    decision = values[place, c, k].astype(np.float64)
                    scores[number, k] = judge.score(test, decision)
    return scores


def span_batches(Cs: list[float], points: Points, n_folds: int, memory: int) -> Iterator[list[int]]:
    """Yield places of values of C whose scores fit into memory together."""
    # Scores, and the change of a step, in the larger of the two precisions.
    each = 2 * 8 * points.n * points.n_problems * n_folds
    size = max(1, int(_SCORES_SHARE * memory / each))
    for first in range(0, len(Cs), size):
        yield list(range(first, min(len(Cs), first + size)))


def scores_in_cells(
    machine: MarginClassifier,
    Cs: list[float],
    folds: Folds,
    X: Any,
    judge: Judge,
    choices: CellChoices | None,
) -> tuple[Matrix, Matrix]:
    """Return the score of every C in every fold, by machines in cells, and the cells' centres.

    Parameters
    ----------
    machine : MarginClassifier
        With the kernel width, and all other parameters.
    Cs : list of float
        Values of C, ascending.
    folds : Folds
        The folds.
    X : array
        Rows.
    judge : Judge
        The score, labels and weights.
    choices : CellChoices or None
        Is told of the scores in each cell.
    """
    threads, memory = n_threads(machine.n_jobs), parse_memory(machine.memory)
    scores = np.empty((len(Cs), folds.n))
    with single_threaded_blas():
        points = machine._points(X, judge.y, judge.weight, threads, folds.kind)
        deadline = machine._deadline
        size = SIZES[0] if isinstance(machine.cells, str) else machine.cells
        cut = machine._cut(points, size, threads, deadline)
        cell_of = np.empty(points.n, dtype=np.intp)
        for number, index in enumerate(cut.own()):
            cell_of[index] = number
        if choices is not None:
            choices.begin(machine.gamma_, cut.partition.centers)
        parts = list(batches(points, len(Cs), folds, memory))
        for b, (some_folds, some_Cs) in enumerate(parts):
            until = deadline.part(1.0 / (len(parts) - b))
            values = held_out_values(
                cut, np.array(Cs)[some_Cs], folds, some_folds, _CELLS_TOL, memory, threads, until
            )
            for c, number in enumerate(some_Cs):
                for held in values:
                    test, place = _held_out(points, folds, held.fold, judge)
                    decision = held.of(place, c)
                    # There may have been no time for some cells.
                    known = np.isfinite(decision).all(axis=1)
                    rows, decision, cell = test[known], decision[known], cell_of[place[known]]
                    scores[number, held.fold] = judge.score(rows, decision)
                    if choices is not None:
                        part = judge.score_of_parts(rows, decision, cell, cut.partition.n_cells)
                        choices.add(number, *part)
    return scores, cut.partition.centers


def _held_out(points: Points, folds: Folds, k: int, judge: Judge) -> tuple[IndexArray, IndexArray]:
    """Return the rows of some weight that a fold holds out, and which points they are."""
    assert points.place is not None
    test = folds.test[k]
    test = test[judge.weight[test] > 0]
    return test, points.place[test]
