"""The scores of a grid by exact machines: all folds and all values of C on one kernel matrix.

Folds are sets of rows of the matrix, and pairs of classes are sets of those. A task is one problem
in one fold: one compiled call (``qp.small_loops``) solves it for every C, each from the solution of
the one before. Threads work on tasks. Where the matrix is one of low rank, the machines are linear
ones on its features (``qp.low_rank``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.expansion import MachineOptions
from widemargin.problem import Folds, Problem, kernel_matrix_of
from widemargin.qp import low_rank
from widemargin.qp.margin_dual import path_values
from widemargin.svm.scoring import GridScores, Judge, held_out, of_classes
from widemargin.threads import ordered_map

# What a matrix of low rank may miss on its diagonal: scores do not feel it.
_LOW_RANK_TOL = 1e-4
# Share of the memory budget for the kernel matrix.
_MATRIX_SHARE = 0.5


def matrix_fits(problem: Problem, memory: int) -> bool:
    """Return whether the kernel matrix of all rows fits into memory."""
    return 4 * problem.n**2 <= _MATRIX_SHARE * memory


@dataclass(frozen=True)
class _Task:
    """One problem in one fold."""

    fold: int
    problem: int


def scores_exact(
    problem: Problem, Cs: Vector, folds: Folds, judge: Judge, options: MachineOptions
) -> GridScores:
    """Return the score of every C in every fold, by exact machines.

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
    options : MachineOptions
        How exactly, and with which threads.
    """
    matrix = _Matrix(problem, folds)
    scores = np.full((len(Cs), folds.n), np.nan)
    deadline = options.deadline

    def values_of(task: _Task) -> Matrix | None:
        return None if deadline.passed else matrix.values(task, Cs, options.tol)

    for k in range(folds.n):
        tasks = [_Task(k, p) for p in range(problem.n_problems)]
        values: list[Matrix] = []
        with deadline.ends_on_interrupt():
            for found in ordered_map(values_of, tasks, options.threads, deadline.interrupt):
                if found is None:
                    break
                values.append(found)
        if len(values) < len(tasks):
            return GridScores(scores, deadline.stop)
        test, place = held_out(problem, folds, k, judge)
        # Rows of the matrix, in which values come.
        row = np.searchsorted(matrix.held[k], matrix.place[place])
        for c in range(len(Cs)):
            decision = np.stack([each[row, c] for each in values], axis=1)
            scores[c, k] = judge.score(test, of_classes(problem, decision))
    return GridScores(scores, None)


class _Matrix:
    """The kernel matrix of all rows, class after class, so that rows of a pair lie together."""

    def __init__(self, problem: Problem, folds: Folds) -> None:
        kind = folds.kind[problem.number]
        self.order = np.lexsort((kind, problem.code))
        self.place = np.argsort(self.order)
        rows = problem.rows.subset(self.order)
        self.K: NDArray[Any] = kernel_matrix_of(problem.kernel, rows, np.float32)
        self.features = low_rank.features_of(self.K, _LOW_RANK_TOL)
        self.code, self.weight = problem.code[self.order], problem.weight[self.order]
        self.table = problem.table
        self.counts = folds.counts[kind[self.order]]
        assert problem.place is not None
        self.held: list[IndexArray] = []
        for test in folds.test:
            found = problem.place[test]
            self.held.append(np.unique(self.place[found[found >= 0]]))

    def values(self, task: _Task, Cs: Vector, gap: float) -> Matrix:
        """Return the values of rows that a fold holds out, a column for each C."""
        sign, count = self.table[self.code, task.problem], self.counts[:, task.fold]
        train = np.flatnonzero((sign != 0) & (count > 0))
        held, weight = self.held[task.fold], self.weight * count
        if len(train) and abs(sign[train].sum()) < len(train):
            if self.features is not None:
                return low_rank.path_values(self.features, train, held, sign, weight, Cs, gap)
            return path_values(self.K, train, held, sign, weight, Cs, gap)
        # Nothing to learn from, or the best constant of one side.
        total = 2.0 * Cs * weight[train].sum()
        side = sign[train[:1]].sum()
        return np.tile(side * total / (1.0 + total), (len(held), 1))
