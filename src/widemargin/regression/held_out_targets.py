"""Scores of rows that folds hold out, for every C and ε, on one kernel matrix of all rows.

In a fold with weights s, S = diag(s) and G = K + bias, the coefficients for the squared loss are

    α = S^½ (S^½ G S^½ + 1/(2C))⁻¹ S^½ t = S^½ V (Λ + 1/(2C))⁻¹ Vᵀ S^½ t,

so that one eigendecomposition V Λ Vᵀ serves every C. It takes as long as a few Cholesky factors:
for fewer values of C, and where there is an ε, machines are solved by Newton's method
(``qp.interval_newton``) as they are in the final fit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.metrics import check_scoring, mean_pinball_loss, r2_score

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.balls.exact_targets import ExactTargets
from widemargin.base.kernel_regressor import TargetScale
from widemargin.expansion import MachineOptions
from widemargin.folds import Folds
from widemargin.kernel_between import KernelBetween
from widemargin.loop import Ended, Limits, run
from widemargin.problem import Problem
from widemargin.rows import threads_within
from widemargin.threads import ordered_map

# Values of C from which an eigendecomposition takes less time than their Cholesky factors.
_MANY_CS = 8
# Matrices of a fold's rows that are there at a time, and those of all rows.
_FOLD_MATRICES = 5
_MATRICES_SHARE = 0.9
# Eigenvalues are known up to this, over the largest and for each row.
_ROUNDING = 1e-15


def most_rows(memory: int) -> int:
    """Return the number of rows whose search fits into memory."""
    return int(np.sqrt(_MATRICES_SHARE * memory / (8 * (_FOLD_MATRICES + 1))))


class HeldOutTargets(RegressorMixin, BaseEstimator):
    """A regressor of the rows that were held out, for a scorer: its answers are known."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = answer

    def fit(self, X: Any, y: Any) -> HeldOutTargets:
        """Return itself; there is nothing to fit."""
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predictions of the rows that were held out."""
        found: NDArray[np.float64] = self.answer
        return found


@dataclass(frozen=True)
class TargetJudge:
    """Scores of predictions.

    Attributes
    ----------
    scoring : str, callable or None
        As in `GridSearchCV`; None is R².
    y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        Targets of the user's rows.
    weight : ndarray of shape (n_samples,)
        Their weights.
    quantiles : tuple of float
        Which quantiles predictions are, if they are any: without `scoring`, minus the mean of their
        losses is the score.
    several : bool
        Whether each of them has a column.
    """

    scoring: Any
    y: NDArray[np.float64]
    weight: Vector
    quantiles: tuple[float, ...] = ()
    several: bool = False

    def score(self, rows: IndexArray, answer: Matrix) -> float:
        """Return the score of the predictions of some rows."""
        y, weight = self.y[rows], self.weight[rows]
        if not self.several:
            answer = answer.reshape(y.shape)
        if self.scoring is None and self.quantiles:
            columns = answer.T if self.several else [answer]
            return -float(
                np.mean(
                    [
                        mean_pinball_loss(y, column, sample_weight=weight, alpha=level)
                        for column, level in zip(columns, sorted(self.quantiles), strict=True)
                    ]
                )
            )
        if self.scoring is None:
            return float(r2_score(y, answer, sample_weight=weight))
        held = HeldOutTargets(answer)
        scorer = check_scoring(held, scoring=self.scoring)
        # Those of scikit-learn hide the function that knows whether it takes weights.
        asked = signature(getattr(scorer, "_score_func", scorer)).parameters
        weighted = {"sample_weight": weight} if "sample_weight" in asked else {}
        return float(scorer(held, rows[:, None], y, **weighted))


@dataclass(frozen=True)
class FoldRows:
    """What a fold trains on and holds out.

    Attributes
    ----------
    train : ndarray of int
        Rows of the problem to learn from,
    part : Problem
        the problem of those, with
    weight : ndarray of shape (n_train,)
        their weights in the fold, and
    targets : ndarray of shape (n_train, n_outputs)
        their targets, in the units of the user.
    rows, held : ndarray of int
        The user's rows that are held out, and which rows of the problem they are.
    """

    train: IndexArray
    part: Problem
    weight: Vector
    targets: Matrix
    rows: IndexArray
    held: IndexArray


def rows_of_fold(problem: Problem, folds: Folds, fold: int) -> FoldRows:
    """Return what a fold makes of the rows of a problem; rows of the place −1 are not in it."""
    assert problem.regression is not None and problem.place is not None
    count = folds.counts[folds.kind[problem.number], fold]
    train = np.flatnonzero(count)
    weight = problem.weight[train] * count[train]
    test = folds.test[fold]
    place = problem.place[test]
    return FoldRows(
        train,
        replace(problem.subset(train), weight=weight),
        weight,
        problem.regression.values[train],
        test[place >= 0],
        place[place >= 0],
    )


@dataclass(frozen=True)
class FoldSearch:
    """A search on one kernel matrix for each width.

    Attributes
    ----------
    problem : Problem
        The rows, with targets in the units of the user; equal rows of different folds are apart.
    folds : Folds
        The folds.
    pairs : list of tuple of float
        Values of C and ε.
    judge : TargetJudge
        The score.
    centred : bool
        Whether targets are centred in each fold.
    """

    problem: Problem
    folds: Folds
    pairs: list[tuple[float, float]]
    judge: TargetJudge
    centred: bool

    def scores(self, options: MachineOptions, done: Callable[[], None]) -> Matrix:
        """Return the scores, of shape (n_pairs, n_folds); NaN for those there was no time for.

        Parameters
        ----------
        options : MachineOptions
            How exactly, and with which threads.
        done : callable
            Is told of each fold that is done.
        """
        problem, deadline = self.problem, options.deadline
        scores = np.full((len(self.pairs), self.folds.n), np.nan)
        with deadline.ends_on_interrupt():
            if deadline.passed:
                return scores
            values = KernelBetween.of(problem.kernel, problem.rows, np.float64)
            K = np.asarray(values.matrix(), dtype=np.float64)
            threads = threads_within(
                options.memory, _FOLD_MATRICES * 8 * problem.n**2, options.threads
            )

            def answered(fold: int) -> list[Matrix | None]:
                return self._answers(K, fold, options)

            every = range(self.folds.n)
            answers = ordered_map(answered, every, threads, deadline.interrupt)
            # A user's own score may not be made for threads.
            for k, each in zip(every, answers, strict=True):
                rows = rows_of_fold(self.problem, self.folds, k).rows
                for c, answer in enumerate(each):
                    if answer is not None:
                        scores[c, k] = self.judge.score(rows, answer)
                done()
        return scores

    def _answers(self, K: Matrix, fold: int, options: MachineOptions) -> list[Matrix | None]:
        """Return the predictions of the rows that a fold holds out, for all values of C and ε."""
        problem = self.problem
        assert problem.regression is not None
        if options.deadline.passed:
            return [None] * len(self.pairs)
        own = rows_of_fold(problem, self.folds, fold)
        scale = TargetScale.of(own.targets, own.weight, self.centred)
        targets = (own.targets - scale.offset) / scale.unit
        matrix = K[np.ix_(own.train, own.train)]
        if len(self.pairs) >= _MANY_CS and not any(epsilon for _, epsilon in self.pairs):
            found = self._by_eigenvalues(matrix, targets, own.weight)
        else:
            found = [
                _by_newton(
                    own.part.with_C(C).with_targets(targets, epsilon / scale.unit, problem.bias),
                    matrix,
                    options,
                )
                for C, epsilon in self.pairs
            ]
        between = K[np.ix_(own.held, own.train)]
        return [
            None
            if alpha is None
            else scale.offset + scale.unit * (between @ alpha + problem.bias * alpha.sum(axis=0))
            for alpha in found
        ]

    def _by_eigenvalues(
        self, matrix: Matrix, targets: Matrix, weight: Vector
    ) -> list[Matrix | None]:
        """Return the coefficients for each C; None where the matrix has no machine."""
        # Relative to the largest weight: roots of extreme weights leave no digits otherwise.
        largest = float(weight.max())
        root = np.sqrt(weight / largest)
        matrix += self.problem.bias
        matrix *= root
        matrix *= root[:, None]
        values, vectors = np.linalg.eigh(matrix)
        noise = _ROUNDING * len(values) * float(np.abs(values).max())
        values = np.where(np.abs(values) <= noise, np.maximum(0.0, values), values)
        right = vectors.T @ (root[:, None] * targets)
        found: list[Matrix | None] = []
        for C, _ in self.pairs:
            shifted = values + 1.0 / (2.0 * C * largest)
            if shifted.min() <= 0.0:
                found.append(None)
                continue
            found.append(root[:, None] * (vectors @ (right / shifted[:, None])))
        return found


def _by_newton(problem: Problem, matrix: Matrix, options: MachineOptions) -> Matrix | None:
    """Return the coefficients of a machine; None if there was no time for them."""
    limits = Limits(options.max_iter, options.deadline, patience=options.max_iter)
    # Threads work on folds.
    result = run(ExactTargets(problem, replace(options, threads=1), matrix), limits)
    if result.stop.kind is Ended.MAX_TIME or result.stop.kind.by_user:
        return None
    alpha: Matrix = result.state.alpha
    return alpha
