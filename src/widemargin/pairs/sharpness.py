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
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Matrix, Vector
from widemargin.certificate import Certificate
from widemargin.loop import Deadline, Ended, Limits, Stop, bounds, run
from widemargin.pairs.class_pairs import ClassPairs, spanned
from widemargin.pairs.refine import (
    BHATTACHARYYA,
    pushed_apart,
    softened,
    widest_mean,
)
from widemargin.scatter.class_scatter import ClassScatter
from widemargin.scatter.stream import Fold, Sample, Stream

SHRINKAGES = 0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 0.6, 0.9
SHARPNESSES = 0.0, 0.1, 0.3, 1.0, 3.0, 10.0, float("inf")
# Folds, and rows of the sample above which fewer do.
_FOLDS, _FEWER_FOLDS, _MANY_ROWS = 5, 3, 5000
# Where shrinkage is chosen: roughly, for there are many values to try; more so for many classes.
_SHARPNESS, _STEPS, _FEWER_STEPS, _MANY_CLASSES = 1.0, 20, 8, 500
# How much better something stranger must be: what is as good is chosen softer.
_BETTER = 1e-9


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
    stopped : str
        Why no more was tried.
    converged : bool
        Whether that was all there was to try.
    """

    shrinkage: float
    sharpness: float
    accuracy: dict[str, Vector]
    stopped: str
    converged: bool


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
        many = len(stream.sample) > _MANY_ROWS
        return [
            _FoldSpace.of(fold, n_components, priors, threads)
            for fold in stream.folds(_FEWER_FOLDS if many else _FOLDS)
        ]

    # Without rows that can be held out there is nothing to try.
    if not len(stream.sample):
        shrinkages, sharpnesses = shrinkages[:1], sharpnesses[:1]
    trials = Trials(folds, shrinkages, sharpnesses)
    steps = len(shrinkages) + len(sharpnesses)
    result = run(trials, Limits(deadline=deadline, patience=steps + 1))
    shrinkage, sharpness = trials.best(result.state)
    columns = np.array(result.state.lines, dtype=np.float64).reshape(-1, 3).T
    table = dict(zip(("shrinkage", "sharpness", "accuracy"), columns, strict=True))
    stopped = result.certificate.stopped
    return Choice(float(shrinkage), float(sharpness), table, stopped, result.converged)


@dataclass(frozen=True)
class Tried:
    """What is known: accuracies for the shrinkages, and for sharpnesses at the best of them."""

    rough: tuple[Line, ...] = ()
    curve: tuple[Line, ...] = ()

    @property
    def lines(self) -> tuple[Line, ...]:
        """All of it."""
        return self.rough + self.curve


class Trials:
    """Solver of the choice, for ``loop.run``; a step tries one value on all folds.

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

    def start(self) -> Tried:
        """Return that nothing is known."""
        return Tried()

    def step(self, state: Tried) -> Tried:
        """Try the next shrinkage, or the next sharpness."""
        if not self.folds:
            self.folds = self._make()
            self.total = float(sum(fold.weight for fold in self.folds))
        if len(state.rough) < self.n_rough:
            each = self.shrinkages[len(state.rough)]
            right = sum(fold.at(each).roughly_right() for fold in self.folds)
            return replace(state, rough=(*state.rough, (each, _SHARPNESS, right / self.total)))
        shrinkage = self._shrinkage(state)
        if not state.curve:
            self._searches = [fold.at(shrinkage) for fold in self.folds]
        s = self.sharpnesses[len(state.curve)]
        right = sum(search.right(s) for search in self._searches)
        return replace(state, curve=(*state.curve, (shrinkage, s, right / self.total)))

    def certificate(self, state: Tried) -> Certificate:
        """Return the share of errors of the best, which is above no known bound but 0."""
        return bounds(1.0 - max((line[2] for line in state.lines), default=0.0), 0.0)

    def stopped(self, state: Tried) -> Stop | None:
        """Return whether all was tried, or sharper ones are worse."""
        if len(state.rough) < self.n_rough:
            return None
        if len(state.curve) == self.n_curve:
            return Stop(Ended.SOLVED, "all values tried")
        falls = max((line[2] for line in state.curve[-2:]), default=0.0)
        if len(state.curve) > 2 and falls < _best(state.curve)[2] - _BETTER:
            return Stop(Ended.SOLVED, "sharper ones are worse")
        return None

    def finish(self, state: Tried) -> Tried:
        """Return the state as it is."""
        return state

    def best(self, state: Tried) -> tuple[float, float]:
        """Return the shrinkage and the sharpness to take, as far as is known."""
        shrinkage = self._shrinkage(state)
        known = list(state.curve)
        if len(known) < self.n_curve and self.stopped(state) is None:
            # Cut short: what the shrinkage was chosen at is known as well.
            known += [line for line in state.rough if line[0] == shrinkage]
        return shrinkage, _best(known)[1] if known and self.n_curve else self.sharpnesses[0]

    def _shrinkage(self, state: Tried) -> float:
        return _least(state.rough, self.total) if state.rough else self.shrinkages[0]


def _least(lines: Sequence[Line], total: float) -> float:
    """Return the least shrinkage that is within a standard error of the best.

    With few rows the best by chance may be a strong one, which changes the space for nothing.
    """
    best = _best(lines)[2]
    error = np.sqrt(best * (1.0 - best) / total)
    return next(line[0] for line in lines if line[2] >= best - error)


def _best(lines: Sequence[Line]) -> Line:
    """Return the line of the highest accuracy, the first of equal ones."""
    best = lines[0]
    for line in lines[1:]:
        if line[2] > best[2] + _BETTER:
            best = line
    return best


@dataclass(frozen=True)
class _FoldSpace:
    """A fold in the coordinates of the eigenvectors of its within-class covariance.

    Attributes
    ----------
    values : ndarray of shape (d,)
        Eigenvalues.
    means : ndarray of shape (c, d)
        Means of the classes that have rows.
    rows : ndarray of shape (n, d)
        Rows that were held out, of these classes.
    code, row_weight : ndarray of shape (n,)
        Their classes and weights.
    prior : ndarray of shape (c,)
        Weights of the classes.
    weight : float
        Sum of the weights of all rows that were held out.
    """

    values: Vector
    means: Matrix
    rows: Matrix
    code: NDArray[np.intp]
    row_weight: Vector
    prior: Vector
    weight: float
    n_components: int | None
    threads: int

    @classmethod
    def of(
        cls, fold: Fold, n_components: int | None, priors: Vector | None, threads: int
    ) -> _FoldSpace:
        scatter, held_out = fold.scatter, fold.held_out
        there = scatter.weight > 0
        place = np.cumsum(there) - 1
        known = there[held_out.code]
        rows = _in_units(scatter, held_out.at(known))
        values, vectors = np.linalg.eigh(scatter.scaled_covariance(None))
        prior = scatter.weight if priors is None else priors
        return cls(
            np.maximum(values, 0.0),
            scatter.offset[there] @ vectors,
            rows @ vectors,
            place[held_out.code[known]],
            held_out.weight[known],
            prior[there],
            float(held_out.weight.sum()),
            n_components,
            threads,
        )

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
        return _Search(classes, rows, self.code, self.row_weight, self.n_components)


class _Search:
    """The directions of a fold, from soft to sharp."""

    def __init__(
        self,
        classes: ClassPairs,
        rows: Matrix,
        code: NDArray[np.intp],
        weight: Vector,
        n_components: int | None,
    ) -> None:
        self.classes = classes
        self.rows, self.code, self.weight = rows, code, weight
        k = classes.means.shape[1]
        self.d = k if n_components is None else min(n_components, k)
        self.sharpness = 0.0
        self.W = widest_mean(classes, self.d)

    def roughly_right(self) -> float:
        """Return the weight of the rows whose nearest mean is their own, after a short search."""
        if self.d:
            rate = np.array([_SHARPNESS / BHATTACHARYYA])
            steps = _FEWER_STEPS if self.classes.n_classes > _MANY_CLASSES else _STEPS
            self.W = softened(self.classes, self.W, rate, np.ones(1), 1e-4, steps)
        return self._right()

    def right(self, sharpness: float) -> float:
        """Return the weight of the rows whose nearest class mean is their own."""
        if self.d and sharpness > self.sharpness:
            self.W = pushed_apart(self.classes, self.W, sharpness, softest=self.sharpness, tol=1e-4)
            self.sharpness = sharpness
        return self._right()

    def _right(self) -> float:
        return nearest_mean_weight(
            self.classes.means @ self.W, self.rows @ self.W, self.code, self.weight
        )


def nearest_mean_weight(
    means: Matrix, rows: Matrix, code: NDArray[np.intp], weight: Vector
) -> float:
    """Return the weight of the rows whose nearest mean is that of their class."""
    size = 0.5 * (means * means).sum(axis=1)
    step = max(1, (1 << 22) // len(means))
    right = 0.0
    for first in range(0, len(rows), step):
        part = slice(first, first + step)
        nearest = (rows[part] @ means.T - size).argmax(axis=1)
        right += float(weight[part][nearest == code[part]].sum())
    return right


def _in_units(scatter: ClassScatter, sample: Sample) -> Matrix:
    """Return rows about the origin of a scatter, in its units."""
    unit = scatter.unit if scatter.unit > 0 else 1.0
    return np.asarray((sample.rows - scatter.origin) / unit)
