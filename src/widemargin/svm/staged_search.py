"""A search that decides about the scale of the columns, kernel, width, C and metric together.

All combinations would take many times as long as one kernel alone. So it goes by stages, each on
held-out rows:

1. All scales and kernels with all widths and values of C on a sample of the rows, by some of the
   folds (successive halving over rows).
2. The best two of them on all rows and folds, with the best width of the sample and its neighbours.
3. For the best of those, metrics that are learned from its machine (``fold_metrics``), full and
   diagonal; while another round is better, one more.

On many rows these stages are a rehearsal: they see a few thousand rows, by one fold or two, and
all rows and folds then decide between the winner and what came second, each with the width and C
that were best and their neighbours. Which kernel, scale and metric is right does not change with
the rows as the best width does.

K. Jamieson, A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization",
AISTATS 2016, is the halving; arXiv 2212.13881 the metric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.arrays import IndexArray
from widemargin.base.fold_metrics import FoldMetrics, Step
from widemargin.base.progress import ProgressBar
from widemargin.base.widths import Width, best_of_views, views_of
from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.problem import Folds, Problem
from widemargin.svm.grid import Grid
from widemargin.svm.grid_search import GridSearch, Stated
from widemargin.svm.scoring import GridScores, Judge

# Part of the time, where it is limited, for the sample,
_TIME_FOR_SAMPLE = 0.2
# and for the rehearsal.
_TIME_FOR_REHEARSAL = 0.5
# Columns up to which a metric is a matrix: its root takes their third power.
_MOST_COLUMNS = 300
# Widths in metrics that there are about, for which time is left.
_IN_METRICS = 4
# A kernel whose distances depend on the axes.
_OF_AXES = "laplacian"

Told = tuple[Grid, int, ChoiceOptions, ProgressBar, Folds, Judge, Stated, Callable[[Width], float]]
"""What a search is told of its rows and its grid."""


@dataclass(frozen=True)
class StageSizes:
    """Sizes of the stages.

    Attributes
    ----------
    few : int
        Rows up to which there is no sample: all widths are scored on all rows.
    share : float
        Share of the rows in the sample,
    least, most : int
        and how many they are at the least and at the most.
    folds : int
        Folds that judge the sample.
    many : int
        Problems, such as pairs of classes, beyond which it is one fold.
    kept : int
        Scales and kernels that go on from it.
    rounds : int
        Rounds of a metric at the most.
    beside : int
        Values of C on either side of the best that a metric is tried with.
    rehearsed : int
        Rows beyond which there is a rehearsal,
    rehearsal : int
        the rows that it sees,
    judging : int
        and those that judge it, at the least if the first two folds hold out so many; they are
        twice as many at the most.
    beside_rehearsed : int
        Values of C on either side of its best that all rows decide between.
    """

    few: int = 250
    share: float = 1 / 3
    least: int = 200
    most: int = 2000
    folds: int = 3
    many: int = 50
    kept: int = 2
    rounds: int = 3
    beside: int = 2
    rehearsed: int = 5000
    rehearsal: int = 5000
    judging: int = 2000
    beside_rehearsed: int = 2


@dataclass
class StagedSearch(GridSearch):
    """A search in stages.

    Attributes
    ----------
    kinds : sequence of {"diagonal", "full"}
        Kinds of metrics to try.
    sizes : StageSizes
        Sizes of the stages.
    """

    kinds: Sequence[str] = ()
    sizes: StageSizes = StageSizes()

    def __post_init__(self) -> None:
        super().__post_init__()
        self.metrics = FoldMetrics(self.stated, self.folds, self.options)

    def run(self) -> None:
        """Go through the stages, or those for which there is time."""
        if self._rehearse():
            self.walk(0)
            return
        self._choose_on_sample()
        self.walk(0, later=_IN_METRICS if self.kinds else 0)
        if self.kinds and self.cut is None:
            self._add_metrics()

    # The rehearsal.

    def _rehearse(self) -> bool:
        """Go through all stages with some rows of many; return whether that has said anything."""
        problem, _ = self.stated(self.grid.widths[0])
        sizes = self.sizes
        if problem.n <= sizes.rehearsed:
            return False
        assert problem.place is not None
        place, folds, held = problem.place, 0, 0
        while folds < min(self.folds.n, 2) and held < sizes.judging:
            held, folds = held + len(self.folds.test[folds]), folds + 1
        chosen = range(folds)
        seen = np.arange(problem.n) < sizes.rehearsal
        tests = np.concatenate([self.folds.test[k] for k in chosen])
        judges = np.unique(place[tests][place[tests] >= 0])
        seen[judges[: 2 * sizes.judging]] = True
        told = self._part(np.flatnonzero(seen), chosen, _TIME_FOR_REHEARSAL, self.grid)
        if told is None:
            return False
        trial = StagedSearch(*told, kinds=self.kinds, sizes=replace(sizes, rehearsed=problem.n))
        trial.run()
        index, score = trial.found.best()
        if np.isnan(score):
            return False
        if trial.ended:
            self.cut = trial.cut
        self._go_on_from(trial, index)
        return True

    def _go_on_from(self, trial: StagedSearch, index: int) -> None:
        """Keep the best of a rehearsal, and what came second, with their neighbours."""
        self.metrics.steps = trial.metrics.steps
        best, C = trial._at(index)
        with np.errstate(invalid="ignore"):
            means = trial.found.scores.mean(axis=2)
        scores = np.where(np.isnan(means), -np.inf, means).max(axis=1)
        second = [
            (score, -w)
            for w, (score, width) in enumerate(zip(scores, trial.grid.widths, strict=True))
            if not _same_view(width, best) and np.isfinite(score)
        ]
        widths = [best]
        step = self._step(best)
        if step is not None:
            # The more rows, the narrower.
            widths.append(replace(best, gamma=best.gamma * step))
        if second:
            widths.append(trial.grid.widths[-max(second)[1]])
        place = self.grid.Cs.index(C)
        beside = self.sizes.beside_rehearsed
        Cs = self.grid.Cs[max(0, place - beside) : place + beside + 1]
        grid = replace(self.grid, Cs=Cs, widths=tuple(widths))
        self.restart(grid, expected=Cs.index(C) * len(widths))

    def _part(
        self, sample: IndexArray, chosen: Sequence[int], share: float, grid: Grid
    ) -> Told | None:
        """Return what a search of some rows by some folds is told; None if it could say nothing."""
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
            return tuple(replace(each.subset(sample), place=place) for each in (first, second))  # type: ignore[return-value]

        told = replace(self.options, deadline=self.options.deadline.part(share))
        bar = ProgressBar("", len(grid.widths), shown=False)
        return (grid, folds.n, told, bar, folds, self.judge, stated, self.gamma)

    # The sample.

    def _choose_on_sample(self) -> None:
        """Keep the widths that do best on a sample of the rows."""
        views = views_of(self.grid.widths)
        problem, _ = self.stated(self.grid.widths[0])
        sizes, n = self.sizes, problem.n
        if len(views) <= sizes.kept or n <= sizes.few:
            return
        size = int(np.clip(sizes.share * n, sizes.least, sizes.most))
        trial = self._on_sample(size)
        if trial is None:
            return
        trial.run()
        with np.errstate(invalid="ignore"):
            mean = trial.found.scores.mean(axis=2)
        best = np.where(np.isnan(mean), -np.inf, mean).max(axis=1)
        if not np.isfinite(best).any():
            # Nothing is known: columns on one scale, and the first kernel.
            self.become(views[-1])
            return
        self.become(best_of_views(self.grid.widths, best, sizes.kept))

    def _on_sample(self, size: int) -> GridSearch | None:
        """Return the search of the sample; None if it has too little to say."""
        problem, _ = self.stated(self.grid.widths[0])
        # A problem more is a task more for each fold, however few its rows.
        judging = self.sizes.folds if problem.n_problems <= self.sizes.many else 1
        chosen = range(min(self.folds.n, judging))
        # Every second C: which it is to be is not asked yet.
        grid = replace(self.grid, Cs=self.grid.Cs[len(self.grid.Cs) > 1 :: 2])
        told = self._part(np.arange(size), chosen, _TIME_FOR_SAMPLE, grid)
        return None if told is None else GridSearch(*told)

    # Metrics.

    def _add_metrics(self) -> None:
        """Score metrics of the best machine, and more rounds while they are better."""
        index, score = self.found.best()
        width, C = self._at(index)
        kinds = [kind for kind in self.kinds if self._can_be(kind, width)]
        for rounds in range(1, self.sizes.rounds + 1):
            for kind in kinds:
                self.metrics.begin(kind, rounds, Step(width, C))
            tried = self._walk_on([_in_metric(width, kind, rounds) for kind in kinds])
            if rounds == 1 and tried is not None and self.engines[-1] == "exact":
                # Of the better kind, the neighbours of the width as well, where that is cheap.
                self._walk_on(self._beside(tried))
            index, now = self.found.best()
            width, C = self._at(index)
            if self.cut is not None or not now > score or width.rounds != rounds:
                return
            assert width.metric is not None
            score, kinds = now, [width.metric]

    def _walk_on(self, widths: Sequence[Width]) -> Width | None:
        """Score more widths, and return the best of them; None if there was no time for any."""
        first = len(self.grid.widths)
        self.become((*self.grid.widths, *widths))
        if self.cut is None:
            self.walk(first)
        scores = self.found.scores[first:].mean(axis=2)
        if not np.isfinite(scores).any():
            return None
        best = np.where(np.isnan(scores), -np.inf, scores).max(axis=1)
        return widths[int(best.argmax())]

    def _can_be(self, kind: str, width: Width) -> bool:
        problem, _ = self.stated(width)
        full = width.kernel != _OF_AXES and problem.rows.shape[1] <= _MOST_COLUMNS
        return problem.rows.shape[1] > 1 and (kind == "diagonal" or full)

    def _beside(self, width: Width) -> list[Width]:
        """Return the neighbours of a width."""
        step = self._step(width)
        if step is None:
            return []
        return [replace(width, gamma=width.gamma * factor) for factor in (1 / step, step)]

    def _step(self, width: Width) -> float | None:
        """Return the factor between widths; None where the user has given them."""
        if not isinstance(width.gamma, float):
            return None
        factors = sorted({each.factor for each in self.grid.widths})
        return factors[1] / factors[0] if len(factors) > 1 else None

    def metric_of(self, index: int) -> Any:
        """Return the metric of a combination as the final fit takes it; None if it has none."""
        width, _ = self._at(index)
        if width.metric is None:
            return None
        root = self.metrics.root(width, None)
        return root**2 if root.ndim == 1 else root @ root.T

    def _at(self, index: int) -> tuple[Width, float]:
        """Return the width and the C of a combination."""
        n = len(self.grid.widths)
        return self.grid.widths[index % n], self.grid.Cs[index // n]

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
        # The engine of the machine that the metric comes from, where there is one.
        step = self.metrics.steps[width.metric, width.rounds]
        if step.width in self.grid.widths:
            engine = self.engines[self.grid.widths.index(step.width)]
        else:
            engine = self._engine(self.stated(width)[0])
        self.engines[first:last] = [engine] * (last - first)
        return range(first, last)

    def scored(self, group: range, options: ChoiceOptions) -> list[GridScores]:
        """Return the scores of some widths of one engine."""
        widths = [self.grid.widths[w] for w in group]
        if widths[0].metric is None:
            return super().scored(group, options)
        parts: list[list[GridScores]] = []
        some_Cs = self._near(self.metrics.steps[str(widths[0].metric), widths[0].rounds].C)
        grid = replace(self.grid, Cs=self.grid.Cs[some_Cs])
        for k in range(self.folds.n):
            alone = self.folds.some([k])

            def stated(width: Width, k: int = k) -> tuple[Problem, Problem]:
                return self.metrics.problems(width, k)

            until = options.deadline.part(1.0 / (self.folds.n - k))
            bar = ProgressBar("", len(group), shown=False)
            told = (grid, 1, replace(options, deadline=until), bar, alone, self.judge)
            inner = GridSearch(*told, stated, self.gamma)
            inner.engines = self.engines
            engine = self.engines[group.start]
            each = [group] if engine == "exact" else [range(w, w + 1) for w in group]
            parts.append([found for some in each for found in inner.scored(some, told[2])])
        self.bar.advance(float(len(group)))
        joined = [_joined([part[w] for part in parts]) for w in range(len(group))]
        return [self._among_all(each, some_Cs) for each in joined]

    def _near(self, C: float) -> slice:
        """Return where the values of C are that a metric is tried with: near the one without."""
        place = int(np.abs(np.log(self.grid.Cs) - np.log(C)).argmin())
        return slice(max(0, place - self.sizes.beside), place + self.sizes.beside + 1)

    def _among_all(self, found: GridScores, some_Cs: slice) -> GridScores:
        """Return scores of some values of C among those of all, which are not known."""
        scores = np.full((len(self.grid.Cs), self.folds.n), np.nan)
        scores[some_Cs] = found.scores
        return replace(found, scores=scores)


def _in_metric(width: Width, kind: str, rounds: int) -> Width:
    return replace(width, metric=kind, rounds=rounds)


def _joined(parts: Sequence[GridScores]) -> GridScores:
    """Return scores of all folds from those of each."""
    cuts: list[Any] = [each.cut for each in parts if each.cut is not None]
    return GridScores(np.hstack([each.scores for each in parts]), cuts[0] if cuts else None)


def _same_metric(width: Width, other: Width) -> bool:
    same = width.metric, width.rounds, width.scale
    return same == (other.metric, other.rounds, other.scale)


def _same_view(width: Width, other: Width) -> bool:
    """Return whether widths have scale, kernel and metric in common."""
    same = width.kernel, width.scale, width.metric
    return same == (other.kernel, other.scale, other.metric)
