"""The search for losses in linear pieces: exact machines of all folds on one kernel matrix.

Machines of a width are solved from the smallest C to the largest, each from the one before, whose
coefficients grow with C. A large C takes long and fits single rows; so a width is left when two
values of C in a row have done worse than a smaller one, and the rest have no score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.base.kernel_regressor import TargetScale
from widemargin.expansion import MachineOptions
from widemargin.folds import Folds
from widemargin.kernel_between import KernelBetween
from widemargin.problem import Problem
from widemargin.qp.interval_dual import solve_interval_dual
from widemargin.regression.held_out_targets import TargetJudge, rows_of_fold
from widemargin.regression.interval_losses import PiecewiseLoss
from widemargin.rows import threads_within
from widemargin.threads import ordered_map

# Values of C in a row that do worse, after which larger ones are left out.
_WORSE = 2
# Matrices of a fold's rows at a time: kernel values, and a factor.
_FOLD_MATRICES = 2


@dataclass(frozen=True)
class PieceSearch:
    """A search on one kernel matrix for each width.

    Attributes
    ----------
    problem : Problem
        The rows, with targets in the units of the user; equal rows of different folds are apart.
    folds : Folds
        The folds.
    pairs : list of tuple of float
        Values of C, ascending, and ε.
    judge : TargetJudge
        The score.
    quantiles : tuple of float
        Which, where it is their loss; none for that of ε.
    several : bool
        Whether they belong together, and are sorted.
    """

    problem: Problem
    folds: Folds
    pairs: list[tuple[float, float]]
    judge: TargetJudge
    quantiles: tuple[float, ...] = ()
    several: bool = False

    def scores(self, options: MachineOptions, done: Callable[[], None]) -> Matrix:
        """Return the scores, of shape (n_pairs, n_folds); NaN for those that were left out.

        Parameters
        ----------
        options : MachineOptions
            How exactly, and with which threads.
        done : callable
            Is told of each fold that is done.
        """
        scores, deadline = np.full((len(self.pairs), self.folds.n), np.nan), options.deadline
        with deadline.ends_on_interrupt():
            if not deadline.passed:
                values = KernelBetween.of(self.problem.kernel, self.problem.rows, np.float64)
                K = np.asarray(values.matrix(), dtype=np.float64)
                folds = [_Fold.of(self, K, k) for k in range(self.folds.n)]
                for epsilon in dict.fromkeys(epsilon for _, epsilon in self.pairs):
                    self._rise(folds, epsilon, scores, options)
        for _ in range(self.folds.n):
            done()
        return scores

    def _rise(
        self, folds: list[_Fold], epsilon: float, scores: Matrix, options: MachineOptions
    ) -> None:
        """Score the values of C with an ε, until larger ones do worse."""
        deadline, best, worse = options.deadline, -np.inf, 0
        size = _FOLD_MATRICES * 8 * max(len(each.train) for each in folds) ** 2
        threads = threads_within(options.memory, size, options.threads)
        for each in folds:
            each.before = None
        for place, (C, own) in enumerate(self.pairs):
            if own != epsilon:
                continue

            def answered(fold: _Fold, C: float = C) -> Matrix:
                return fold.answer(self, C, epsilon, options)

            answers = list(ordered_map(answered, folds, threads, deadline.interrupt))
            if deadline.passed:
                return
            for k, (fold, answer) in enumerate(zip(folds, answers, strict=True)):
                scores[place, k] = self.judge.score(fold.rows, answer)
            mean = float(scores[place].mean())
            best, worse = max(best, mean), worse + 1 if mean < best else 0
            if worse == _WORSE:
                return

    def loss(self, C: float, epsilon: float, unit: float) -> PiecewiseLoss:
        """Return the loss in a unit of the targets."""
        if self.quantiles:
            return PiecewiseLoss(C / unit, None, self.quantiles, self.several)
        return PiecewiseLoss(C / unit, epsilon / unit)


@dataclass
class _Fold:
    """What a fold trains on and holds out, and its last machines.

    Attributes
    ----------
    train : ndarray of int
        Rows of the problem to learn from.
    rows : ndarray of int
        The user's rows that are held out.
    part : Problem
        The rows to learn from, with scaled targets.
    matrix, across : ndarray
        Kernel values of those, and of the rows that are held out with them.
    scale : TargetScale
        Of the targets.
    before : tuple or None
        The last C, and the coefficients of its machines.
    """

    train: IndexArray
    rows: IndexArray
    part: Problem
    matrix: Matrix
    across: Matrix
    scale: TargetScale
    before: tuple[float, Matrix] | None = None

    @classmethod
    def of(cls, search: PieceSearch, K: Matrix, fold: int) -> _Fold:
        """Return a fold of a search."""
        found = rows_of_fold(search.problem, search.folds, fold)
        scale = TargetScale.of(found.targets, found.weight, centred=True)
        targets = (found.targets - scale.offset) / scale.unit
        train = found.train
        return cls(
            train,
            found.rows,
            found.part.with_targets(targets, 0.0, 1.0),
            K[np.ix_(train, train)],
            K[np.ix_(found.held, train)],
            scale,
        )

    def answer(
        self, search: PieceSearch, C: float, epsilon: float, options: MachineOptions
    ) -> Matrix:
        """Return the predictions of the rows that are held out."""
        stated = search.loss(C, epsilon, self.scale.unit).stated(self.part)
        found = []
        for p in range(stated.n_problems):
            found.append(
                solve_interval_dual(
                    self.matrix,
                    stated.low[:, p],
                    stated.high[:, p],
                    stated.below[:, p],
                    stated.above[:, p],
                    start=self._start(C, p),
                    tol=options.tol,
                    deadline=options.deadline,
                )
            )
        coef = np.column_stack([each.beta for each in found])
        self.before = C, coef
        values = self.across @ coef + np.array([each.intercept for each in found])
        n_levels = values.shape[1] // len(self.scale.offset)
        answer: Matrix = values * self.scale.unit + np.repeat(self.scale.offset, n_levels)
        return np.sort(answer, axis=1) if search.several else answer

    def _start(self, C: float, p: int) -> Vector | None:
        if self.before is None:
            return None
        earlier, coef = self.before
        start: Vector = coef[:, p] * (C / earlier)
        return start
