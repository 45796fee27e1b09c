"""A search some of whose widths are in metrics, which each fold learns from its own rows.

A metric is learned from the machine that is best without one (``fold_metrics``), of each kind; a
full one from the best whose kernel can have it. One that is no better in either of two folds is
left there. While another round is better, there is one more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from widemargin.arrays import IndexArray, Vector
from widemargin.base.fold_metrics import FoldMetrics, Step
from widemargin.base.progress import ProgressBar
from widemargin.base.widths import Width
from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.problem import Problem
from widemargin.rows import threads_within
from widemargin.svm.grid import Grid
from widemargin.svm.grid_search import GridSearch
from widemargin.svm.scoring import GridScores
from widemargin.threads import ordered_map

# Columns up to which a metric is a matrix: its root takes their third power.
_MOST_COLUMNS = 300
# Rounds of a metric at the most.
_ROUNDS = 3
# Values of C on either side of the best that a metric is tried with.
_BESIDE = 2
# Folds after which a metric is left that was better in none of them, at no C.
_FOLDS_OF_TRIAL = 2
# Widths beyond those of the grid at the most.
_BEYOND = 4
# A kernel whose distances depend on the axes.
_OF_AXES = "laplacian"


@dataclass
class MetricSearch(GridSearch):
    """A search on rows in memory, in metrics too.

    Attributes
    ----------
    kinds : sequence of {"diagonal", "full"}
        Kinds of metrics to try.
    """

    kinds: Sequence[str] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.metrics = FoldMetrics(self.stated, self.folds, self.options)

    # Other searches.

    def part(
        self, sample: IndexArray, chosen: Sequence[int], grid: Grid, options: ChoiceOptions
    ) -> Self | None:
        """Return a search of some rows by some folds; None if it could say nothing.

        Parameters
        ----------
        sample : ndarray of int
            The rows, ascending.
        chosen : sequence of int
            The folds.
        grid : Grid
            What it goes through.
        options : ChoiceOptions
            What it is told.
        """
        problem, _ = self.stated(grid.widths[0])
        assert problem.place is not None
        known = np.full(problem.n + 1, -1, dtype=np.intp)
        known[sample] = np.arange(len(sample))
        # Rows that have no place, at -1, get none.
        place = known[problem.place]
        folds = self.folds.some(chosen, place >= 0)
        kind = folds.kind[problem.number[sample]]
        for k in range(folds.n):
            learnt = problem.code[sample][folds.counts[kind, k] > 0]
            if not len(folds.test[k]) or len(np.unique(learnt)) < 2:
                return None

        def stated(width: Width) -> tuple[Problem, Problem]:
            first, second = self.stated(width)
            part, in_span = (replace(each.subset(sample), place=place) for each in (first, second))
            return part, in_span

        bar = ProgressBar("", len(grid.widths), shown=False)
        told = (grid, folds.n, options, bar, folds, self.judge, stated, self.gamma)
        return type(self)(*told, kinds=self.kinds)

    # What is known.

    def best_of_widths(self) -> Vector:
        """Return the best score of each width, minus infinity where none is known."""
        with np.errstate(invalid="ignore"):
            mean = self.found.scores.mean(axis=2)
        best: Vector = np.where(np.isnan(mean), -np.inf, mean).max(axis=1)
        return best

    def best_C(self, w: int) -> float:
        """Return the value of C that is best with a width."""
        with np.errstate(invalid="ignore"):
            mean = self.found.scores[w].mean(axis=1)
        return self.grid.Cs[int(np.where(np.isnan(mean), -np.inf, mean).argmax())]

    def at(self, index: int) -> tuple[Width, float]:
        """Return the width and the C of a combination."""
        n = len(self.grid.widths)
        return self.grid.widths[index % n], self.grid.Cs[index // n]

    def step(self, width: Width) -> float | None:
        """Return the factor between widths; None where the user has given them."""
        if not isinstance(width.gamma, float):
            return None
        factors = sorted({each.factor for each in self.grid.widths})
        return factors[1] / factors[0] if len(factors) > 1 else None

    # More widths.

    def walk_on(self, widths: Sequence[Width]) -> Width | None:
        """Score more widths, and return the best of them; None if there was no time for any."""
        first = len(self.grid.widths)
        self.become((*self.grid.widths, *widths))
        if self.cut is None:
            self.walk(first)
        best = self.best_of_widths()[first:]
        return widths[int(best.argmax())] if np.isfinite(best).any() else None

    def go_beyond(self, *, wider: bool = True) -> None:
        """Score further widths, as long as the best is the narrowest of its kind, or the widest."""
        for _ in range(_BEYOND):
            index, _ = self.found.best()
            width, _ = self.at(index)
            step = self.step(width)
            if step is None or self.cut is not None:
                return
            alike = [
                each.gamma
                for each in self.grid.widths
                if same_view(each, width) and each.rounds == width.rounds
            ]
            if width.gamma == max(alike):
                factor = step
            elif width.gamma == min(alike) and wider:
                factor = 1 / step
            else:
                return
            self.walk_on([replace(width, gamma=width.gamma * factor)])

    def add_metrics(self) -> None:
        """Score metrics of the best machine, and more rounds while they are better."""
        index, score = self.found.best()
        width, C = self.at(index)
        bases = self._bases(width, C)
        for rounds in range(1, _ROUNDS + 1):
            for kind, base in bases.items():
                self.metrics.begin(kind, rounds, base)
            in_metrics = [
                replace(base.width, metric=kind, rounds=rounds) for kind, base in bases.items()
            ]
            tried = self.walk_on(in_metrics)
            if rounds == 1 and tried is not None and self.engines[-1] != "span":
                # Of the better kind, the neighbours of the width as well, where that is cheap.
                self.walk_on(self._beside(tried))
            index, now = self.found.best()
            width, C = self.at(index)
            if self.cut is not None or not now > score or width.rounds != rounds:
                return
            assert width.metric is not None
            score, bases = now, {width.metric: Step(width, C)}

    def _bases(self, best: Width, C: float) -> dict[str, Step]:
        """Return what the first round of each kind is learned from."""
        problem, _ = self.stated(best)
        n_features, found = problem.rows.shape[1], {}
        if n_features > 1 and "diagonal" in self.kinds:
            found["diagonal"] = Step(best, C)
        if 1 < n_features <= _MOST_COLUMNS and "full" in self.kinds:
            scores = self.best_of_widths()
            smooth = [w for w, each in enumerate(self.grid.widths) if each.kernel != _OF_AXES]
            smooth = [w for w in smooth if np.isfinite(scores[w])]
            if smooth:
                w = max(smooth, key=lambda place: scores[place])
                found["full"] = Step(self.grid.widths[w], self.best_C(w))
        return found

    def _beside(self, width: Width) -> list[Width]:
        """Return the neighbours of a width."""
        step = self.step(width)
        if step is None:
            return []
        return [replace(width, gamma=width.gamma * factor) for factor in (1 / step, step)]

    def metric_of(self, index: int) -> Any:
        """Return the metric of a combination as the final fit takes it; None if it has none."""
        width, _ = self.at(index)
        if width.metric is None:
            return None
        root = self.metrics.root(width, None)
        return root**2 if root.ndim == 1 else root @ root.T

    # Scores in the metric of each fold.

    def group(self, first: int) -> range:
        """Return the widths from `first` on that are scored together."""
        width = self.grid.widths[first]
        if width.metric is None:
            found = super().group(first)
            metrics = (w for w in found if self.grid.widths[w].metric is not None)
            return range(first, next(metrics, found.stop))
        last = first + 1
        while last < len(self.grid.widths) and _same_metric(width, self.grid.widths[last]):
            last += 1
        self.engines[first:last] = [self._engine(self.stated(width)[0])] * (last - first)
        return range(first, last)

    def scored(self, group: range, options: ChoiceOptions) -> list[GridScores]:
        """Return the scores of some widths of one engine."""
        widths = [self.grid.widths[w] for w in group]
        if widths[0].metric is None:
            return super().scored(group, options)
        some_Cs = self._near(self.metrics.steps[str(widths[0].metric), widths[0].rounds].C)
        grid = replace(self.grid, Cs=self.grid.Cs[some_Cs])
        workers = self._folds_at_a_time(group, options)
        inside = replace(options, threads=max(1, options.threads // workers))
        n = self.folds.n

        def scored(k: int) -> list[GridScores]:
            until = options.deadline.part(min(1.0, workers / (n - k)))
            return self._scored_in_fold(k, group, grid, replace(inside, deadline=until))

        without, deadline = self._of_the_best(), options.deadline
        parts: list[list[GridScores]] = []
        for folds in (range(min(n, _FOLDS_OF_TRIAL)), range(_FOLDS_OF_TRIAL, n)):
            with deadline.ends_on_interrupt():
                parts += ordered_map(scored, folds, workers, deadline.interrupt)
            if _no_better(parts, without):
                break
        if len(parts) < n:
            missing = np.full((len(grid.Cs), n - len(parts)), np.nan)
            cut = deadline.stop if deadline.passed else None
            parts.append([GridScores(missing, cut) for _ in widths])
        self.bar.advance(float(len(group)))
        joined = [_joined([part[w] for part in parts]) for w in range(len(group))]
        return [self._among_all(each, some_Cs) for each in joined]

    def _folds_at_a_time(self, group: range, options: ChoiceOptions) -> int:
        """Return how many folds are worked on beside each other: exact machines are one call each.

        Where there are many problems they keep threads busy; a user's score may not be for threads.
        """
        problem, _ = self.stated(self.grid.widths[group.start])
        alone = self.engines[group.start] != "exact" or problem.n_problems >= options.threads
        if alone or self.judge.scoring is not None:
            return 1
        # The matrix of a fold, one to learn a metric from, and what is made on the way.
        return threads_within(options.memory, 3 * 8 * problem.n**2, options.threads)

    def _scored_in_fold(
        self, k: int, group: range, grid: Grid, options: ChoiceOptions
    ) -> list[GridScores]:
        """Return the scores of widths in the metric of a fold."""

        def stated(width: Width) -> tuple[Problem, Problem]:
            return self.metrics.problems(width, k)

        told = (grid, 1, options, ProgressBar("", len(group), shown=False), self.folds.some([k]))
        inner = GridSearch(*told, self.judge, stated, self.gamma)
        inner.engines = self.engines
        exact = self.engines[group.start] == "exact"
        each = [group] if exact else [range(w, w + 1) for w in group]
        return [found for some in each for found in inner.scored(some, options)]

    def _of_the_best(self) -> Vector:
        """Return the score of the best combination in each fold."""
        index, _ = self.found.best()
        n = len(self.grid.widths)
        scores: Vector = self.found.scores[index % n, index // n]
        return scores

    def _near(self, C: float) -> slice:
        """Return where the values of C are that a metric is tried with: near the one without."""
        place = int(np.abs(np.log(self.grid.Cs) - np.log(C)).argmin())
        return slice(max(0, place - _BESIDE), place + _BESIDE + 1)

    def _among_all(self, found: GridScores, some_Cs: slice) -> GridScores:
        """Return scores of some values of C among those of all, which are not known."""
        scores = np.full((len(self.grid.Cs), self.folds.n), np.nan)
        scores[some_Cs] = found.scores
        return replace(found, scores=scores)


def _joined(parts: Sequence[GridScores]) -> GridScores:
    """Return scores of all folds from those of each."""
    cuts: list[Any] = [each.cut for each in parts if each.cut is not None]
    return GridScores(np.hstack([each.scores for each in parts]), cuts[0] if cuts else None)


def _no_better(parts: Sequence[Sequence[GridScores]], without: Vector) -> bool:
    """Return whether the best that metrics came to is in no fold better than without."""
    best = [np.fmax.reduce([each.scores.max() for each in part]) for part in parts]
    return all(now <= before for now, before in zip(best, without, strict=False))


def _same_metric(width: Width, other: Width) -> bool:
    same = width.metric, width.rounds, width.scale
    return same == (other.metric, other.rounds, other.scale)


def same_view(width: Width, other: Width) -> bool:
    """Return whether widths have scale, kernel and metric in common."""
    same = width.kernel, width.scale, width.metric
    return same == (other.kernel, other.scale, other.metric)
