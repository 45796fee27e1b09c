"""The scores of a grid by exact machines: all folds and all values of C on one kernel matrix.

Folds are sets of rows of the matrix, and pairs of classes are sets of those. A task is one problem
in one fold of one width: one compiled call (``qp.set_loops``) solves it for every C, each from the
solution of the next larger one. Threads work on the tasks of as many widths as have room for their
matrices. Where a matrix is one of low rank, the machines are linear ones on its features
(``qp.low_rank``). When all problems of a fold are solved, the values of the rows that it holds out
are a few matrix products for all of them and every C.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.expansion import MachineOptions
from widemargin.folds import Folds
from widemargin.kernel_between import KernelBetween
from widemargin.kernels import Kernel
from widemargin.problem import Problem
from widemargin.qp import low_rank
from widemargin.qp.margin_dual import path_coefficients
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

    def path_of(task: _Task) -> Path | None:
        if deadline.passed:
            return None
        return matrices[task.width].path(task, Cs, options.tol)

    paths: list[Path] = []
    threads = threads_within(options.memory, 4 * layout.largest_task**2, options.threads)
    with deadline.ends_on_interrupt():
        for path in ordered_map(path_of, tasks, threads, deadline.interrupt):
            if path is None:
                break
            paths.append(path)
            if len(paths) % len(every) == 0:
                # All problems of a fold.
                done(tasks[len(paths) - 1].width)

    def scored(fold_of_width: int) -> Vector:
        task = tasks[fold_of_width * len(every)]
        first = fold_of_width * len(every)
        values = matrices[task.width].values(task.fold, paths[first : first + len(every)])
        return layout.scores(values, task.fold, judge)

    scores = np.full((len(problems) * folds.n, len(Cs)), np.nan)
    judged = range(len(paths) // len(every))
    # A user's own score may not be made for threads.
    for i, found in zip(
        judged, ordered_map(scored, judged, threads if judge.scoring is None else 1), strict=True
    ):
        scores[i] = found
    table = scores.reshape(len(problems), folds.n, len(Cs)).swapaxes(1, 2)
    cut = deadline.stop if np.isnan(table[..., -1]).any() and deadline.passed else None
    finished = ~np.isnan(table).any(axis=(1, 2))
    return [GridScores(table[w], None if finished[w] else cut) for w in range(len(problems))]


@dataclass(frozen=True)
class Path:
    """One problem solved for every C.

    Attributes
    ----------
    rows : ndarray of int of shape (m,) or None
        Rows that support its machines; None where they are made of features.
    coef : ndarray of shape (m, n_Cs) or (n_features, n_Cs)
        Coefficients.
    bias : ndarray of shape (n_Cs,)
        Biases.
    """

    rows: IndexArray | None
    coef: Matrix
    bias: Vector


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
        # Rows that lie together, and the problems which have coefficients of them.
        self.groups = [(slice(0, problem.n), np.arange(problem.n_problems))]
        if problem.partial:
            ends = np.cumsum(np.bincount(self.code, minlength=len(self.table))).tolist()
            self.groups = [
                (slice(begin, end), np.flatnonzero(signs))
                for begin, end, signs in zip([0, *ends], ends, self.table, strict=False)
            ]

    @property
    def largest_task(self) -> int:
        """The number of rows that a task learns from, at the most."""
        rows = np.array([np.bincount(self.code, each > 0) for each in self.counts.T])
        return int((rows @ (self.table != 0)).max())

    def scores(self, decision: NDArray[Any], fold: int, judge: Judge) -> Vector:
        """Return the score of every C from values of the rows that a fold holds out.

        `decision` is of shape (n_Cs, n_held, n_problems).
        """
        test, place = held_out(self.problem, self.folds, fold, judge)
        # Rows of the matrix, in which values come.
        row = np.searchsorted(self.held[fold], self.place[place])
        each = (of_classes(self.problem, values[row]) for values in decision)
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

    def path(self, task: _Task, Cs: Vector, gap: float) -> Path:
        """Return the machines of a task for every C."""
        layout = self.layout
        sign, count = layout.table[layout.code, task.problem], layout.counts[:, task.fold]
        train = np.flatnonzero((sign != 0) & (count > 0))
        weight = layout.weight * count
        if not len(train) or abs(sign[train].sum()) == len(train):
            # Nothing to learn from, or the best constant of one side.
            total = 2.0 * Cs * weight[train].sum()
            bias = sign[train[:1]].sum() * total / (1.0 + total)
            nothing = train[:0] if self.features is None else None
            return Path(nothing, np.zeros((0, len(Cs))), bias)
        if self.features is not None:
            coef = low_rank.path_coefficients(self.features, train, sign, weight, Cs, gap)
            return Path(None, coef, np.zeros(len(Cs)))
        coef = path_coefficients(self.K, train, sign, weight, Cs, gap)
        used = np.flatnonzero(coef.any(axis=1))
        return Path(train[used], coef[used], coef.sum(axis=0))

    def values(self, fold: int, paths: Sequence[Path]) -> NDArray[Any]:
        """Return the values of rows that a fold holds out, of shape (n_Cs, n_held, n_problems)."""
        held, bias = self.layout.held[fold], np.stack([path.bias for path in paths], axis=1)
        values = np.empty((len(bias), len(held), len(paths)))
        values[...] = bias[:, None]
        if self.features is not None:
            for p, path in enumerate(paths):
                if len(path.coef):
                    values[..., p] += (self.features[held] @ path.coef).T
            return values
        # Rows of a class that a fold holds out lie together.
        ends = np.flatnonzero(np.diff(held) != 1) + 1
        runs = list(pairwise([0, *ends.tolist(), len(held)])) if len(held) else []
        for where, problems in self.layout.groups:
            coef = self._coef_in(where, [paths[p] for p in problems.tolist()])
            for first, last in runs:
                lines = slice(int(held[first]), int(held[first]) + last - first)
                part = (self.K[lines, where] @ coef).reshape(last - first, len(bias), -1)
                values[:, first:last, problems] += part.swapaxes(0, 1)
        return values

    def _coef_in(self, where: slice, paths: Sequence[Path]) -> NDArray[Any]:
        """Return coefficients of some rows, a column for every C and each of some problems."""
        n_Cs = paths[0].coef.shape[1]
        coef = np.zeros((where.stop - where.start, n_Cs, len(paths)), dtype=self.K.dtype)
        for p, path in enumerate(paths):
            assert path.rows is not None
            first, last = np.searchsorted(path.rows, [where.start, where.stop])
            coef[path.rows[first:last] - where.start, :, p] = path.coef[first:last]
        return coef.reshape(len(coef), -1)
