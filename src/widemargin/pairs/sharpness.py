"""How sharp, and how much shrinkage: chosen on rows that were held out.

The closest pair of classes is what the Maxi-Min criterion looks at; with few rows a class it is
close by accident. So the sharpness of ``refine`` is chosen by the accuracy of the nearest class
mean, in the projection, on rows that had no part in it. So is the shrinkage of the within-class
covariance, which matters more with few rows; it is chosen first, at a sharpness of 1: the least one
within a standard error of the best. (LDA in few dimensions merges classes, and would prefer
whatever shrinkage keeps some of them apart.)

One eigendecomposition serves all intensities, for they leave the eigenvectors as they are. From one
sharpness to the next the directions start where they were, and the search for the best one ends
when two sharper ones in a row were worse.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from widemargin.arrays import Codes, Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.loop import Deadline, Ended, Limits, Solver, Stop, bounds, run
from widemargin.pairs.class_pairs import ClassPairs, spanned
from widemargin.pairs.refine import BHATTACHARYYA, pushed_apart, softened, widest_mean
from widemargin.scatter.stream import Fold, Stream

# Shrinkages to choose from.
SHRINKAGES = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9)
# Sharpnesses to choose from.
SHARPNESSES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, float("inf"))
# Folds.
_FOLDS = 5
# Folds of many rows.
_FEWER_FOLDS = 3
# Rows of the sample that are many.
_MANY_ROWS = 5000
# The sharpness at which shrinkage is chosen.
_SHARPNESS = 1.0
# Steps of a search there: roughly, for there are many values to try.
_STEPS = 20
# Steps for many classes.
_FEWER_STEPS = 8
# Classes that are many.
_MANY_CLASSES = 500
# How much better something stranger must be: what is as good is chosen softer.
_BETTER = 1e-9
# Relative change of the criterion at which a search ends.
_TOL = 1e-4
# Distances of rows to means that are computed at a time.
_AT_A_TIME = 1 << 22

# Shrinkage, sharpness, and the accuracy that they have.
Line = tuple[float, float, float]


@dataclass(frozen=True)
class Choice:
    """What was chosen, and by which accuracies.

    Attributes
    ----------
    shrinkage, sharpness : float
        The choice.
    accuracy : dict of arrays
        "shrinkage", "sharpness" and the mean "accuracy" of everything that was tried.
    stop : Stop
        Why no more was tried.
    """

    shrinkage: float
    sharpness: float
    accuracy: dict[str, Vector]
    stop: Stop


def choose(
    stream: Stream,
    shrinkages: Sequence[float],
    sharpnesses: Sequence[float],
    n_components: int | None,
    priors: Vector | None,
    threads: int,
    deadline: Deadline,
) -> Choice:
    """Choose on held-out rows; after an interrupt, the best of what was tried.

    Parameters
    ----------
    stream : Stream
        All rows, with a sample of them.
    shrinkages, sharpnesses : sequence of float
        Values to choose from, the softest first; a single one is not questioned.
    n_components : int or None
        Directions.
    priors : ndarray or None
        Weights of the classes; None takes those of the rows.
    threads : int
        Threads for the pairs of classes.
    deadline : Deadline
        When no more is tried.
    """

    def folds() -> list[_FoldSpace]:
        count = _FEWER_FOLDS if len(stream.sample) > _MANY_ROWS else _FOLDS
        return [_FoldSpace(fold, n_components, priors, threads) for fold in stream.folds(count)]

    # Without rows that can be held out there is nothing to try.
    if not len(stream.sample):
        shrinkages, sharpnesses = shrinkages[:1], sharpnesses[:1]
    trials = Trials(folds, shrinkages, sharpnesses)
    steps = len(shrinkages) + len(sharpnesses)
    result = run(trials, Limits(deadline=deadline, patience=steps + 1))
    shrinkage, sharpness = trials.best(result.state)
    columns = np.array(result.state, dtype=np.float64).reshape(-1, 3).T
    table = dict(zip(("shrinkage", "sharpness", "accuracy"), columns, strict=True))
    return Choice(float(shrinkage), float(sharpness), table, result.stop)


class Trials(Solver[tuple[Line, ...]]):
    """Solver of the choice, for ``loop.run``; a step tries one value on all folds.

    Its state is what is known: accuracies for the shrinkages, and then for sharpnesses at the best
    of them.

    Parameters
    ----------
    folds : callable
        Makes the folds, in the first step.
    shrinkages, sharpnesses : sequence of float
        Values to choose from; a single one is not questioned.
    """

    def __init__(
        self,
        folds: Callable[[], list[_FoldSpace]],
        shrinkages: Sequence[float],
        sharpnesses: Sequence[float],
    ) -> None:
        self._make = folds
        self.shrinkages, self.sharpnesses = shrinkages, sharpnesses
        self.n_rough = len(shrinkages) if len(shrinkages) > 1 else 0
        self.n_curve = len(sharpnesses) if len(sharpnesses) > 1 else 0
        self.folds: list[_FoldSpace] = []
        self.total = 0.0
        self._searches: list[_Search] = []

    def start(self) -> tuple[Line, ...]:
        """Return that nothing is known."""
        return ()

    def step(self, state: tuple[Line, ...]) -> tuple[Line, ...]:
        """Try the next shrinkage, or the next sharpness."""
        if not self.folds:
            self.folds = self._make()
            self.total = float(sum(fold.weight for fold in self.folds))
        done = len(state)
        if done < self.n_rough:
            shrinkage, sharpness = self.shrinkages[done], _SHARPNESS
            right = sum(fold.at(shrinkage).roughly_right() for fold in self.folds)
        else:
            shrinkage, sharpness = self._shrinkage(state), self.sharpnesses[done - self.n_rough]
            if done == self.n_rough:
                self._searches = [fold.at(shrinkage) for fold in self.folds]
            right = sum(search.right(sharpness) for search in self._searches)
        return (*state, (shrinkage, sharpness, right / self.total))

    def certificate(self, state: tuple[Line, ...]) -> Certificate:
        """Return the share of errors of the best, which is above no known bound but 0."""
        return bounds(1.0 - max((line[2] for line in state), default=0.0), 0.0)

    def stopped(self, state: tuple[Line, ...]) -> Stop | None:
        """Return whether all was tried, or sharper ones are worse."""
        if len(state) == self.n_rough + self.n_curve:
            return Stop(Ended.SOLVED, "all values tried")
        curve = state[self.n_rough :]
        if len(curve) > 2 and max(curve[-2][2], curve[-1][2]) < _best(curve)[2] - _BETTER:
            return Stop(Ended.SOLVED, "sharper ones are worse")
        return None

    def best(self, state: tuple[Line, ...]) -> tuple[float, float]:
        """Return the shrinkage and the sharpness to take, as far as is known."""
        shrinkage, known = self._shrinkage(state), state[self.n_rough :]
        if self.stopped(state) is None:
            # Cut short: what the shrinkage was chosen at is known as well.
            known += tuple(line for line in state[: self.n_rough] if line[0] == shrinkage)
        return shrinkage, _best(known)[1] if known and self.n_curve else self.sharpnesses[0]

    def _shrinkage(self, state: tuple[Line, ...]) -> float:
        """Return the least shrinkage that is within a standard error of the best.

        With few rows the best by chance may be a strong one, which changes the space for nothing.
        """
        rough = state[: self.n_rough]
        if not rough:
            return self.shrinkages[0]
        best = _best(rough)[2]
        error = np.sqrt(best * (1.0 - best) / self.total)
        return next(line[0] for line in rough if line[2] >= best - error)


def _best(lines: Sequence[Line]) -> Line:
    """Return the line of the highest accuracy, the first of equal ones."""
    most = max(line[2] for line in lines)
    return next(line for line in lines if line[2] >= most - _BETTER)


class _FoldSpace:
    """A fold in the coordinates of the eigenvectors of its within-class covariance.

    Attributes
    ----------
    weight : float
        Sum of the weights of all rows that were held out.
    """

    def __init__(
        self, fold: Fold, n_components: int | None, priors: Vector | None, threads: int
    ) -> None:
        scatter, held_out = fold.scatter, fold.held_out
        self.n_components, self.threads = n_components, threads
        self.weight = float(held_out.weight.sum())
        there = scatter.weight > 0
        # Rows that were held out, of classes that have others.
        kept = held_out.at(there[held_out.code])
        self.code, self.row_weight = (np.cumsum(there) - 1)[kept.code], kept.weight
        values, vectors = np.linalg.eigh(scatter.scaled_covariance(None))
        self.values = np.maximum(values, 0.0)
        self.means = scatter.offset[there] @ vectors
        # In the units of the scatter, about its origin.
        self.rows = (kept.rows - scatter.origin) / (scatter.unit or 1.0) @ vectors
        self.prior = (scatter.weight if priors is None else priors)[there]

    def at(self, shrinkage: float) -> _Search:
        """Return the fold in the whitened space of this intensity."""
        values = (1.0 - shrinkage) * self.values + shrinkage * self.values.mean()
        kept = values > 1e-10 * values.max(initial=0.0)
        scale = 1.0 / np.sqrt(values[kept])
        means = self.means[:, kept] * scale
        basis = spanned(means)
        center = means.mean(axis=0)
        classes = ClassPairs((means - center) @ basis, self.prior, self.threads)
        rows = (self.rows[:, kept] * scale - center) @ basis
        d = basis.shape[1] if self.n_components is None else min(self.n_components, basis.shape[1])
        return _Search(classes, rows, self.code, self.row_weight, widest_mean(classes, d))


@dataclass
class _Search:
    """The directions W of a fold, from soft to sharp."""

    classes: ClassPairs
    rows: Matrix
    code: Codes
    weight: Vector
    W: Matrix
    sharpness: float = 0.0

    def roughly_right(self) -> float:
        """Return the weight of the rows whose nearest mean is their own, after a short search."""
        if self.W.size:
            rate = np.array([_SHARPNESS / BHATTACHARYYA])
            steps = _FEWER_STEPS if self.classes.n_classes > _MANY_CLASSES else _STEPS
            self.W = softened(self.classes, self.W, rate, np.ones(1), _TOL, steps)
        return self._right()

    def right(self, sharpness: float) -> float:
        """Return the weight of the rows whose nearest class mean is their own."""
        if self.W.size and sharpness > self.sharpness:
            self.W = pushed_apart(self.classes, self.W, sharpness, softest=self.sharpness, tol=_TOL)
            self.sharpness = sharpness
        return self._right()

    def _right(self) -> float:
        means = self.classes.means @ self.W
        return nearest_mean_weight(means, self.rows @ self.W, self.code, self.weight)


def nearest_mean_weight(means: Matrix, rows: Matrix, code: Codes, weight: Vector) -> float:
    """Return the weight of the rows whose nearest mean is that of their class."""
    size = 0.5 * (means * means).sum(axis=1)
    step = max(1, _AT_A_TIME // len(means))
    right = 0.0
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        nearest = (rows[part] @ means.T - size).argmax(axis=1)
        right += float(weight[part][nearest == code[part]].sum())
    return right
