"""The scores of a grid by exact machines: all folds and all values of C on one kernel matrix.

Folds are sets of rows of the matrix, and pairs of classes are sets of those. A task is one problem
in one fold of one width: one compiled call (``qp.small_loops``) solves it for every C, each from
the solution of the next larger one. Threads work on the tasks of as many widths as have room for
their matrices. Where a matrix is one of low rank, the machines are linear ones on its features
(``qp.low_rank``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.expansion import MachineOptions
from widemargin.kernel_between import KernelBetween
from widemargin.kernels import Kernel
from widemargin.problem import Folds, Problem
from widemargin.qp import low_rank
from widemargin.qp.margin_dual import path_values
from widemargin.rows import threads_within
from widemargin.svm.scoring import GridScores, Judge, held_out, of_classes
from widemargin.threads import ordered_map

# What a matrix of low rank may miss on its diagonal: scores do not feel it.
_LOW_RANK_TOL = 1e-4
# The share of a task's rows up to which a rank is low.
_LOW_RANK_SHARE = 1 / 16
# Share of the memory budget for the kernel matrix.
_MATRIX_SHARE = 0.5


def matrices_that_fit(problem: Problem, memory: int) -> int:
    """Return of how many widths the kernel matrices of all rows fit into memory."""
    return int(_MATRIX_SHARE * memory / (4 * problem.n**2))


@dataclass(frozen=True)
class _Task:
    """One problem in one fold of one width."""

    width: int
    fold: int
    problem: int


def scores_exact(
    problems: Sequence[Problem],
    Cs: Vector,
    folds: Folds,
    judge: Judge,
    options: MachineOptions,
    done: Callable[[int], None] = lambda width: None,
) -> list[GridScores]:
    """Return the score of every C in every fold by exact machines, for several widths.

    Parameters
    ----------
    problems : sequence of Problem
        For each width the problems of the classes, or of pairs of them; equal rows of different
        folds are apart. They differ in nothing but the kernel.
    Cs : ndarray
        Values of C, ascending.
    folds : Folds
        The folds.
    judge : Judge
        The score, labels and weights.
    options : MachineOptions
        How exactly, and with which threads.
    done : callable, optional
        Is told of each fold of a width that is done.
    """
    layout = _Layout(problems[0], folds)
    deadline = options.deadline
    matrices = [_Matrix(problem.kernel, layout) for problem in problems]
    for matrix, found in zip(
        matrices, ordered_map(_Matrix.of_low_rank, matrices, options.threads), strict=True
    ):
        matrix.features = found
    every = range(problems[0].n_problems)
    tasks = [_Task(w, k, p) for w in range(len(problems)) for k in range(folds.n) for p in every]

    def values_of(task: _Task) -> Matrix | None:
        if deadline.passed:
            return None
        return matrices[task.width].values(task, Cs, options.tol)

    scores = np.full((len(problems), len(Cs), folds.n), np.nan)
    values: list[Matrix] = []
    with deadline.ends_on_interrupt():
        threads = threads_within(options.memory, 4 * layout.largest_task**2, options.threads)
        found_values = ordered_map(values_of, tasks, threads, deadline.interrupt)
        for task, found in zip(tasks, found_values, strict=True):
            if found is None:
                break
            values.append(found)
            if len(values) == len(every):
                # All problems of a fold.
                decision = np.stack(values, axis=2)
                scores[task.width, :, task.fold] = layout.scores(decision, task.fold, judge)
                values = []
                done(task.width)
    cut = deadline.stop if np.isnan(scores[..., -1]).any() and deadline.passed else None
    finished = ~np.isnan(scores).any(axis=(1, 2))
    return [GridScores(scores[w], None if finished[w] else cut) for w in range(len(problems))]


class _Layout:
    """Rows class after class, so that those of a pair lie together, and what folds make of them."""

    def __init__(self, problem: Problem, folds: Folds) -> None:
        self.problem, self.folds = problem, folds
        kind = folds.kind[problem.number]
        order = np.lexsort((kind, problem.code))
        self.place = np.argsort(order)
        self.rows = problem.rows.subset(order)
        self.code, self.weight = problem.code[order], problem.weight[order]
        self.table = problem.table
        self.counts = folds.counts[kind[order]]
        assert problem.place is not None
        self.held: list[IndexArray] = []
        for test in folds.test:
            found = problem.place[test]
            self.held.append(np.unique(self.place[found[found >= 0]]))

    @property
    def largest_task(self) -> int:
        """The number of rows that a task learns from, at the most."""
        rows = np.array([np.bincount(self.code, each > 0) for each in self.counts.T])
        return int((rows @ (self.table != 0)).max())

    def scores(self, decision: NDArray[Any], fold: int, judge: Judge) -> Vector:
        """Return the score of every C from values of the rows that a fold holds out."""
        test, place = held_out(self.problem, self.folds, fold, judge)
        # Rows of the matrix, in which values come.
        row = np.searchsorted(self.held[fold], self.place[place])
        each = (of_classes(self.problem, decision[row, c]) for c in range(decision.shape[1]))
        return np.array([judge.score(test, values) for values in each])


class _Matrix:
    """The kernel matrix of all rows for one width."""

    def __init__(self, kernel: Kernel, layout: _Layout) -> None:
        self.layout = layout
        self.K: NDArray[Any] = KernelBetween.of(kernel, layout.rows, np.float32).matrix()
        self.features: Matrix | None = None

    def of_low_rank(self) -> Matrix | None:
        """Return features that have the matrix as their products, where a few do."""
        share = self.layout.largest_task / len(self.K)
        return low_rank.features_of(self.K, _LOW_RANK_TOL, _LOW_RANK_SHARE * share)

    def values(self, task: _Task, Cs: Vector, gap: float) -> Matrix:
        """Return the values of rows that a fold holds out, a column for each C."""
        layout = self.layout
        sign, count = layout.table[layout.code, task.problem], layout.counts[:, task.fold]
        train = np.flatnonzero((sign != 0) & (count > 0))
        held, weight = layout.held[task.fold], layout.weight * count
        if len(train) and abs(sign[train].sum()) < len(train):
            if self.features is not None:
                return low_rank.path_values(self.features, train, held, sign, weight, Cs, gap)
            return path_values(self.K, train, held, sign, weight, Cs, gap)
        # Nothing to learn from, or the best constant of one side.
        total = 2.0 * Cs * weight[train].sum()
        side = sign[train[:1]].sum()
        return np.tile(side * total / (1.0 + total), (len(held), 1))
