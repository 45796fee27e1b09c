"""The search of a grid on rows that are not in the memory of this process, in a span."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.base.widths import Width
from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.folds import Folds
from widemargin.kernels import Kernel
from widemargin.loop import Ended, PlaceLost, Stop
from widemargin.places.folds_of_shards import FoldsOfShards
from widemargin.problem import class_scores
from widemargin.span import SpanOptions
from widemargin.svm.grid_walk import GridWalk, in_a_span
from widemargin.svm.scoring import GridScores, Judge


@dataclass
class ShardsSearch(GridWalk):
    """A search on rows in shards.

    Attributes
    ----------
    rows : FoldsOfShards
        The rows, and what is to be fitted to them.
    judge : Judge
        The score.
    kernel : callable
        Gives the kernel of a width.
    """

    rows: FoldsOfShards
    judge: Judge
    kernel: Callable[[Width], Kernel]

    def group(self, first: int) -> range:
        """Return one width."""
        return range(first, first + 1)

    def scored(self, group: range, options: ChoiceOptions) -> list[GridScores]:
        """Return the scores of a width."""
        kernel = self.kernel(self.grid.widths[group.start])
        found = scores_in_shards(self.rows, kernel, self.Cs, self.judge, in_a_span(options))
        self.bar.advance(1.0)
        return [found]


def scores_in_shards(
    rows: FoldsOfShards, kernel: Kernel, Cs: Vector, judge: Judge, options: SpanOptions
) -> GridScores:
    """Return the score of every C in every fold, by machines in the span of the same vectors.

    Parameters
    ----------
    rows : FoldsOfShards
        Rows and folds.
    kernel : Kernel
        k.
    Cs : ndarray
        Values of C.
    judge : Judge
        The score, classes and weights.
    options : SpanOptions
        How machines are fitted.
    """
    scores = np.full((len(Cs), rows.folds.n), np.nan)
    parts = rows.batches(len(Cs))
    cut: Stop | None = None
    for b, chosen in enumerate(parts):
        until = options.deadline.part(1.0 / (len(parts) - b))
        # Without bounds the gap says nothing; the solver itself knows when it is stuck.
        inner = replace(options, deadline=until, patience=options.max_iter, prove=False)
        stop: Stop | None = None
        try:
            with until.ends_on_interrupt():
                scores[chosen], stop = _scored(rows, kernel, Cs[chosen], judge, inner)
        except PlaceLost as lost:
            stop = Stop(Ended.LOST, str(lost))
        stop = until.stop if stop is None or until.interrupted else stop
        lost_or_ended = stop.kind is Ended.LOST or stop.kind.by_user
        if lost_or_ended or stop.kind is Ended.MAX_TIME:
            cut = stop
        if lost_or_ended:
            break
    return GridScores(scores, cut)


def _scored(
    rows: FoldsOfShards, kernel: Kernel, Cs: Vector, judge: Judge, options: SpanOptions
) -> tuple[Matrix, Stop]:
    """Return the score of some values of C in every fold, and how the fit ended.

    Shards and their kernel values are gone when it is over, before there are others.
    """
    answers = rows.solve(kernel, Cs, options)
    if answers.stop.kind is Ended.LOST:
        return np.full((len(Cs), rows.folds.n), np.nan), answers.stop
    if judge.scoring is None:
        return answers.accuracy(), answers.stop
    scores = np.empty((len(Cs), rows.folds.n))
    partial, n_classes = not rows.stated.table.all(), len(judge.classes)
    for k in range(rows.folds.n):
        test, place = _held_out(rows.folds, k, judge)
        for c in range(len(Cs)):
            values = answers.decisions(c, k)[place].astype(np.float64)
            decision = class_scores(values, n_classes) if partial else values
            scores[c, k] = judge.score(test, decision)
    return scores, answers.stop


def _held_out(folds: Folds, k: int, judge: Judge) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of some weight that a fold holds out, and where each is among them."""
    test = folds.test[k]
    test = test[judge.weight[test] > 0]
    order = np.flatnonzero((folds.held[:, k] > 0)[folds.kind] & (judge.weight > 0))
    return test, np.searchsorted(order, test)
