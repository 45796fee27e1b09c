"""A search over the scale of columns, kernels, widths, C, ε and metrics, in stages.

All combinations would take many times as long as one kernel alone. Where there are several scales
or kernels to choose from, it goes by stages (successive halving over rows: K. Jamieson, A.
Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016):

1. All scales and kernels with all widths on a third of the rows, by three of the folds.
2. The best two of them on all rows and folds, with the best width of the sample and its neighbours.
3. Metrics that are learned from the best machine, for each fold from its own rows
   (``base.fold_metrics``), full and diagonal; while another round is better, one more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.base.fold_metrics import FoldMetrics, Step
from widemargin.base.found import Found
from widemargin.base.kernel_regressor import TargetScale
from widemargin.base.progress import ProgressBar
from widemargin.base.widths import Width, best_of_views, views_of
from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.kernels import Kernel
from widemargin.loop import Deadline, Stop
from widemargin.problem import Problem
from widemargin.regression.held_out_targets import FoldSearch
from widemargin.regression.piece_search import PieceSearch
from widemargin.regression.regression_grid import RegressionGrid
from widemargin.rows import Rows

# Rows up to which there is no sample: all widths are scored on all rows.
_FEW = 250
# Share of the rows in the sample, and how many they are at the least and at the most.
_SHARE, _LEAST, _MOST = 1 / 3, 200, 800
# Folds that judge the sample.
_FOLDS = 3
# Scales and kernels that go on from it.
_KEPT = 2
# Part of the time, where it is limited, for the sample,
_TIME_FOR_SAMPLE = 0.2
# and widths in metrics that there are about, for which time is left.
_IN_METRICS = 5
# Rounds of a metric at the most.
_ROUNDS = 5
# Values of C on either side of the best that another round is tried with.
_BESIDE = 2
# Columns up to which a metric is a matrix: its root takes their third power.
_MOST_COLUMNS = 300
# A kernel whose distances depend on the axes.
_OF_AXES = "laplacian"


@dataclass
class TargetSearch:
    """A search for a regressor, in one stage or two.

    Attributes
    ----------
    search : FoldSearch or PieceSearch
        How one width is scored, and the rows.
    grid : RegressionGrid
        All combinations; after `run` those that all rows have decided between.
    rows : mapping of scale to Rows
        The rows as each scale sees them.
    kernel : callable
        Returns the kernel of a width.
    options : ChoiceOptions
        What the machines are told.
    bar : ProgressBar
        Shows how far the search is.
    kinds : sequence of {"diagonal", "full"}
        Kinds of metrics to try.
    cut : Stop or None
        Why it was cut short, after `run`; None if it was not.
    found : Found
        What is known so far.
    metrics : FoldMetrics
        The metrics that were learned.
    sampled : dict
        The best width, and its C, of each scale and kernel on the sample.
    """

    search: FoldSearch | PieceSearch
    grid: RegressionGrid
    rows: Mapping[str | None, Rows]
    kernel: Callable[[Width], Kernel]
    options: ChoiceOptions
    bar: ProgressBar
    kinds: Sequence[str] = ()
    cut: Stop | None = None
    found: Found = field(init=False)
    metrics: FoldMetrics = field(init=False)
    sampled: dict[Any, tuple[Width, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.metrics = FoldMetrics(self._stated, self.search.folds, self.options)
        # The factor between widths, where they are a number of them.
        factors = sorted({each.factor for each in self.grid.widths})
        self._factor = factors[1] / factors[0] if len(factors) > 1 else None

    def run(self) -> Found:
        """Return the scores of the grid, or of as much of it as there was time for."""
        if len(views_of(self.grid.widths)) > _KEPT and self.search.problem.n > _FEW:
            self._choose_on_sample()
        self._walk_all(later=_IN_METRICS if self.kinds else 0)
        if self.kinds and self.cut is None:
            self._add_metrics()
        self.bar.close()
        return self.found

    def _choose_on_sample(self) -> None:
        """Keep the widths that do best on a sample of the rows."""
        sampled = self._on_sample()
        if sampled is None:
            return
        found = sampled._walk_all()
        with np.errstate(invalid="ignore"):
            means = found.scores.mean(axis=2)
        best = np.where(np.isnan(means), -np.inf, means).max(axis=1)
        self.sampled = _best_of_each(found)
        # Without a score nothing is known: columns on one scale, and the first kernel.
        views = views_of(self.grid.widths)
        known = bool(np.isfinite(best).any())
        widths = best_of_views(self.grid.widths, best, _KEPT) if known else views[-1]
        self.grid = replace(self.grid, widths=widths)
        self.bar.total = len(widths)

    def _on_sample(self) -> TargetSearch | None:
        """Return the search of the sample; None if it has too little to say."""
        problem, folds = self.search.problem, self.search.folds
        assert problem.place is not None
        size = int(np.clip(_SHARE * problem.n, _LEAST, _MOST))
        # The first rows are a sample. Rows that have no place, at −1, get none.
        known = np.full(problem.n + 1, -1, dtype=np.intp)
        known[:size] = np.arange(size)
        place = known[problem.place]
        judging = folds.some(range(min(folds.n, _FOLDS)), place >= 0)
        kind = judging.kind[problem.number[:size]]
        if not judging.counts[kind].any(axis=0).all() or min(map(len, judging.test)) < 2:
            return None
        sample = np.arange(size)
        part = replace(problem.subset(sample), place=place)
        return TargetSearch(
            replace(self.search, problem=part, folds=judging),
            self.grid,
            {scale: rows.subset(sample) for scale, rows in self.rows.items()},
            self.kernel,
            replace(self.options, deadline=self.options.deadline.part(_TIME_FOR_SAMPLE)),
            ProgressBar("", len(self.grid.widths), shown=False),
        )

    def _walk_all(self, later: int = 0) -> Found:
        """Score all widths, and return what was found."""
        self.found = Found.nothing(self.grid, self.search.folds.n)
        self._walk(range(len(self.grid.widths)), later)
        return self.found

    def _walk(self, places: range, later: int = 0) -> None:
        """Score some widths, each with its share of the time; so many are `later` to have some."""
        deadline, found, bar = self.options.deadline, self.found, self.bar
        for w in places:
            if deadline.interrupted or (self.cut is not None and deadline.passed):
                return
            width, started = self.grid.widths[w], perf_counter()
            # The final fit has a share too.
            until = deadline.part(1.0 / (places.stop - w + later + 1))
            score = self._score if width.metric is None else self._score_in_metric
            found.scores[w] = score(width, until)
            late = until.passed and bool(np.isnan(found.scores[w]).all(axis=0).any())
            found.finished[w], found.seconds[w] = not late, perf_counter() - started
            self.cut = until.stop if late else self.cut
            bar.advance(0.0, f"{width}; best so far {found.best()[1]:.4f}")

    def _fold_done(self) -> Callable[[], None]:
        return partial(self.bar.advance, 1.0 / self.search.folds.n)

    def _score(self, width: Width, until: Deadline) -> Matrix:
        """Return the scores of a width, of shape (n_pairs, n_folds)."""
        problem = self._rows_seen(width)
        of_width = replace(self.search, problem=problem)
        return of_width.scores(replace(self.options, deadline=until), self._fold_done())

    def _rows_seen(self, width: Width) -> Problem:
        return replace(self.search.problem, rows=self.rows[width.scale], kernel=self.kernel(width))

    # Metrics.

    def _stated(self, width: Width) -> tuple[Problem, Problem]:
        """Return what a metric is learned from: targets about zero."""
        problem = self._rows_seen(width)
        assert problem.regression is not None
        values = problem.regression.values
        scale = TargetScale.of(values, problem.weight, problem.bias > 0.0)
        problem = problem.with_targets((values - scale.offset) / scale.unit, 0.0, problem.bias)
        return problem, problem

    def _add_metrics(self) -> None:
        """Score metrics of the best machine, and more rounds while they are better."""
        index, score = self.found.best()
        width, C = self._at(index)
        first = self._begun(width, C)
        for rounds in range(1, _ROUNDS + 1):
            tried = [replace(each, metric=kind, rounds=rounds) for kind, each in first]
            best = self._walk_on(tried)
            if best is not None and (rounds == 1 or best.kernel != width.kernel):
                # Of the better metric, the neighbours of the width as well.
                self._walk_on(self._beside(best))
            index, now = self.found.best()
            width, C = self._at(index)
            if self.cut is not None or not now > score or width.rounds != rounds:
                return
            assert width.metric is not None
            # Another kernel may be the better one in a better metric.
            others = [each for kind, each in first if kind == width.metric]
            others = [each for each in others if each.kernel != width.kernel]
            score, first = now, [(width.metric, each) for each in (width, *others)]
            self.metrics.begin(width.metric, rounds + 1, Step(width, C))

    def _begun(self, best: Width, C: float) -> list[tuple[str, Width]]:
        """Return the kinds of the first round with the widths to try in them."""
        n_features = self.search.problem.rows.shape[1]
        others = self._others(best)
        found: list[tuple[str, Width]] = []
        if "diagonal" in self.kinds and n_features > 1:
            # Where columns that tell nothing are gone, another kernel may be the better one.
            self.metrics.begin("diagonal", 1, Step(best, C))
            found += [("diagonal", each) for each in (best, *(other for other, _ in others))]
        smooth = [(w, at) for w, at in ((best, C), *others) if w.kernel != _OF_AXES]
        if "full" in self.kinds and 1 < n_features <= _MOST_COLUMNS and smooth:
            self.metrics.begin("full", 1, Step(*smooth[0]))
            found.append(("full", smooth[0][0]))
        return found

    def _others(self, best: Width) -> list[tuple[Width, float]]:
        """Return the usual width of each other kernel in the scale of the best, and its best C."""
        known = self.sampled | _best_of_each(self.found)
        found = []
        for (scale, kernel), (width, C) in known.items():
            if scale != best.scale or kernel == best.kernel:
                continue
            # The width that is best among columns that tell nothing is none for those that do.
            usual = isinstance(width.gamma, float)
            gamma = width.gamma / width.factor if usual else width.gamma
            found.append((replace(width, gamma=gamma, factor=1.0), C))
        return found

    def _at(self, index: int) -> tuple[Width, float]:
        """Return the width and the C of a combination."""
        n = len(self.grid.widths)
        return self.grid.widths[index % n], self.grid.pairs[index // n][0]

    def _walk_on(self, widths: Sequence[Width]) -> Width | None:
        """Score more widths, and return the best of them; None if there was no time for any."""
        first, every = len(self.grid.widths), (*self.grid.widths, *widths)
        self.grid = replace(self.grid, widths=every)
        kept = [*range(first), *[None] * len(widths)]
        self.found = self.found.on(self.grid, kept)
        self.bar.total += len(widths)
        if not widths or self.cut is not None:
            return None
        self._walk(range(first, len(every)))
        scores = self.found.scores[first:].mean(axis=2)
        if not np.isfinite(scores).any():
            return None
        best = np.where(np.isnan(scores), -np.inf, scores).max(axis=1)
        return widths[int(best.argmax())]

    def _beside(self, width: Width) -> list[Width]:
        """Return the neighbours of a width; none where the user has given them."""
        if self._factor is None or not isinstance(width.gamma, float):
            return []
        return [replace(width, gamma=width.gamma * by) for by in (1 / self._factor, self._factor)]

    def _score_in_metric(self, width: Width, until: Deadline) -> Matrix:
        """Return the scores of a width in the metric of each fold.

        Without columns that tell nothing another C is right; for the kernel whose machines had such
        a metric already, one near theirs.
        """
        assert width.metric is not None
        folds, pairs = self.search.folds, self.grid.pairs
        step = self.metrics.steps[width.metric, width.rounds]
        goes_on = width.rounds > 1 and width.kernel == step.width.kernel
        before = self.grid.Cs.index(step.C)
        far = [abs(self.grid.Cs.index(C) - before) for C, _ in pairs]
        near = [p for p in range(len(pairs)) if not goes_on or far[p] <= _BESIDE]
        scores = np.full((len(pairs), folds.n), np.nan)
        for k in range(folds.n):
            if until.passed:
                break
            rows = self.metrics.problems(width, k)[0].rows
            problem = replace(self._rows_seen(width), rows=rows)
            alone = replace(
                self.search,
                problem=problem,
                folds=folds.some([k]),
                pairs=[pairs[p] for p in near],
            )
            own = replace(self.options, deadline=until)
            scores[near, k] = alone.scores(own, self._fold_done())[:, 0]
        return scores

    def metric_of(self, width: Width) -> Any:
        """Return the metric of a width as the final fit takes it; None if it has none."""
        if width.metric is None:
            return None
        root = self.metrics.root(width, None)
        return root**2 if root.ndim == 1 else root @ root.T


def _best_of_each(found: Found) -> dict[Any, tuple[Width, float]]:
    """Return the best width, and its C, of each scale and kernel that has a score."""
    pairs = found.grid.params[:: len(found.grid.widths)]
    scores = np.where(np.isnan(found.scores), -np.inf, found.scores).mean(axis=2)
    best: dict[Any, tuple[float, Width, float]] = {}
    for width, each in zip(found.grid.widths, scores, strict=True):
        kernel = width.kernel if isinstance(width.kernel, str) else id(width.kernel)
        top, key = int(each.argmax()), (width.scale, kernel)
        if np.isfinite(each[top]) and (key not in best or each[top] > best[key][0]):
            best[key] = float(each[top]), width, pairs[top]["C"]
    return {key: (width, C) for key, (_, width, C) in best.items()}


def scored(found: Found) -> int:
    """Return how many combinations have been scored in all folds."""
    scores: Vector = found.of_pairs.sum(axis=1)
    return int((~np.isnan(scores)).sum())
