"""Successive halving over rows: many ways to see few rows, and few ways to see many.

Which scale, kernel and metric is right changes with the rows: on few of them columns that tell
little do harm and a kernel must be wide, on many the nearest rows say the most. So a search of many
rows climbs. The first rung learns from a few thousand rows and scores everything; each rung after
it has up to four times the rows and scores what was best on the one below, and narrower kernels as
long as those are better. Rows that a fold holds out judge all rungs. On the second, metrics are
learned from the machines that are best there. All rows and folds then decide between what is left.

Machines of the first rung are exact, and so are those of others where that is cheap; where it is
not, they are in cells, which cost little and see what many rows will show. On the last rung engines
are compared, each at its best: a span, cells of several sizes, and the exact machine. Larger cells,
and the exact machine of all rows, must be clearly better than what costs less.

K. Jamieson, A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization",
AISTATS 2016.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.arrays import IndexArray
from widemargin.balls import cost_of_exact
from widemargin.base.fold_metrics import FoldMetrics, Step
from widemargin.base.widths import Width
from widemargin.cells.engine_choice import Decision
from widemargin.svm.grid import Grid
from widemargin.svm.metric_search import MetricSearch, same_view

# Part of the time, where it is limited, for all rungs,
_TIME_FOR_RUNGS = 0.5
# and of what the last one has left, for each comparison of engines.
_TIME_TO_COMPARE = 0.3
# A cell must hold a small part of the rows to learn from.
_PARTS = 3
# The part of the errors that an engine may have at the most to be taken in place of a cheaper one.
_CLEARLY = 0.97
# The part of the errors of smaller cells that the largest have at the most, where the exact machine
# is worth a trial.
_GAINING = 0.9
# How many times the errors of others those of a span may be on the second rung, which is the last
# that is heard of it otherwise: cells and exact machines gain more from rows.
_HOPELESS = 1.15


@dataclass(frozen=True)
class RungSizes:
    """Sizes of the rungs.

    Attributes
    ----------
    first, second : int
        Rows that the first two rungs learn from.
    growth : float
        How many times as many each later one has, at the most,
    least_growth : float
        and at the least.
    most_share : float
        The part of the rows that these learn from, at the most.
    judging : int
        Rows that judge the first rung; twice as many judge the others. A second fold judges, too,
        where the first holds out fewer.
    views : tuple of int
        Combinations of scale, kernel and metric that go on from the first rungs,
    last_views : int
        and from the last one.
    beside : int
        Values of C on either side of the best that go on.
    vectors : int
        Vectors of a span that is compared with others.
    work : float
        Multiplications of an exact machine on a rung,
    work_at_the_end : float
        and of the final one, if it was not cheap enough for the search, at the most.
    """

    first: int = 2000
    second: int = 6000
    growth: float = 4.0
    least_growth: float = 1.9
    most_share: float = 0.5
    judging: int = 3000
    views: tuple[int, ...] = (4, 3)
    last_views: int = 2
    beside: int = 2
    vectors: int = 500
    work: float = 2e10
    work_at_the_end: float = 1e12


@dataclass(frozen=True)
class Arm:
    """What goes on from a rung.

    Attributes
    ----------
    width : Width
        A width, the best one of its scale, kernel and metric.
    C : float
        The value of C that is best with it.
    """

    width: Width
    C: float


class RowHalving:
    """The climb of one search.

    Parameters
    ----------
    search : MetricSearch
        The search of all rows, which has not begun.
    sizes : RungSizes
        Sizes of the rungs.
    """

    def __init__(self, search: MetricSearch, sizes: RungSizes) -> None:
        self.search, self.sizes = search, sizes
        self.problem, _ = search.stated(search.grid.widths[0])
        tests = search.folds.test
        self.folds = range(1 if len(tests[0]) >= sizes.judging else min(2, len(tests)))
        self.learners, self.judges = self._parted()
        options = search.options
        # Whether any engine may be taken,
        self.free = options.engine == "auto" and options.cuttable and not options.in_a_span
        # and which it is, unless exact machines are cheap.
        self.engine = Decision("cells", options.trial.cells[min(1, len(options.trial.cells) - 1)])
        self.span_may_win = self.free
        self.metrics_in_cells = False

    def run(self) -> bool:
        """Climb, and let all rows decide between what is left; False if nothing is known."""
        within = self.search.options.deadline.part(_TIME_FOR_RUNGS)
        rungs, arms = self._rungs(), list[Arm]()
        grid = self.search.grid.thinned()
        highest: MetricSearch | None = None
        for number, size in enumerate(rungs):
            last = number == len(rungs) - 1
            told = replace(self.search.options, deadline=within.part(1 / (len(rungs) - number)))
            rung = self._rung(number, size, grid, told, arms, highest)
            if rung is None:
                break
            rung.walk(0)
            # What is wider was scored below.
            rung.go_beyond(wider=number == 0)
            if np.isnan(rung.found.best()[1]):
                break
            highest = rung
            if number == 1 and rung.kinds and rung.cut is None:
                rung.add_metrics()
                rung.go_beyond(wider=False)
            if last and rung.cut is None:
                self._refine(rung)
            kept = self.sizes.views[min(number, len(self.sizes.views) - 1)]
            arms = self._arms(rung, self.sizes.last_views if last else kept)
            if rung.cut is not None:
                break
            if number == 1 and not last:
                self._look_at_span(rung, arms[0], size)
            grid = self._grid_of(arms)
        if highest is None:
            return False
        if highest.cut is None and self.free:
            arms[0] = self._choose_engine(highest, arms[0], rungs[-1])
        if highest.ended:
            self.search.cut = highest.cut
        self._decide(highest, arms)
        return True

    # Rows.

    def _parted(self) -> tuple[IndexArray, IndexArray]:
        """Return rows to learn from and rows that judge; the first ones of both are samples."""
        folds, place = self.search.folds, self.problem.place
        assert place is not None
        tests = place[np.concatenate([folds.test[k] for k in self.folds])]
        held = np.zeros(self.problem.n, dtype=bool)
        held[tests[tests >= 0]] = True
        counts = folds.counts[folds.kind[self.problem.number]][:, list(self.folds)]
        learners = np.flatnonzero(~held & counts.any(axis=1))
        return learners, np.flatnonzero(held)[: 2 * self.sizes.judging]

    def _rungs(self) -> list[int]:
        """Return how many rows each rung learns from."""
        sizes, most = self.sizes, len(self.learners)
        found = [min(sizes.first, most), min(sizes.second, most)]
        while True:
            size = int(min(sizes.growth * found[-1], sizes.most_share * most))
            if size < sizes.least_growth * found[-1]:
                return found
            found.append(size)

    def _rows(self, number: int, size: int) -> IndexArray:
        """Return the rows of a rung: so many to learn from, and those that judge."""
        judges = self.judges if number else self.judges[: self.sizes.judging]
        return np.sort(np.concatenate([self.learners[:size], judges]))

    # Rungs.

    def _rung(
        self,
        number: int,
        size: int,
        grid: Grid,
        told: Any,
        arms: Sequence[Arm],
        below: MetricSearch | None,
    ) -> MetricSearch | None:
        """Return the search of a rung, which has not begun; None if it could say nothing."""
        cheap = not arms or self._cost(arms[0], size) <= self.sizes.work
        if self.free and cheap:
            told = replace(told, engine="exact")
        elif self.free:
            told = replace(told, engine="cells", cells=self.engine.size)
        rung = self.search.part(self._rows(number, size), self.folds, grid, told)
        if rung is not None and below is not None:
            if number == 1:
                self.metrics_in_cells = not cheap
            rung.metrics = self._metrics_of(rung, below.metrics.steps)
        return rung

    def _metrics_of(self, search: MetricSearch, steps: dict[tuple[str, int], Step]) -> FoldMetrics:
        """Return the metrics of a search that are learned as those of the rung below were."""
        options = replace(search.options, engine=self.search.options.engine)
        metrics = replace(search.metrics, options=options, in_cells=self.metrics_in_cells)
        metrics.steps = steps
        return metrics

    def _cost(self, arm: Arm, size: int) -> float:
        """Return the multiplications of an exact machine of so many rows."""
        problem, _ = self.search.stated(arm.width)
        return cost_of_exact(
            problem.subset(self.learners[:size]).with_C(arm.C),
            self.search.options.exact_sizes.probe,
        )

    def _arms(self, rung: MetricSearch, most: int) -> list[Arm]:
        """Return the best width of each of the best scales, kernels and metrics."""
        arms: list[Arm] = []
        best = rung.best_of_widths()
        for w in np.argsort(-best, kind="stable").tolist():
            width = rung.grid.widths[w]
            if len(arms) == most or not np.isfinite(best[w]):
                break
            if not any(same_view(width, arm.width) for arm in arms):
                arms.append(Arm(width, rung.best_C(w)))
        return arms

    def _grid_of(self, arms: Sequence[Arm]) -> Grid:
        """Return the widths of arms, each with the narrower one that more rows may want."""
        widths: list[Width] = []
        for arm in arms:
            widths += [arm.width, *self._beside(arm.width, 1.0)]
        return replace(self.search.grid, Cs=self._near(arms), widths=tuple(widths))

    def _beside(self, width: Width, steps: float) -> list[Width]:
        """Return a width narrower by some steps, or wider; none where the user gave widths."""
        factor = self.search.step(width)
        return [] if factor is None else [replace(width, gamma=width.gamma * factor**steps)]

    def _near(self, arms: Sequence[Arm]) -> tuple[float, ...]:
        """Return values of C about those of arms."""
        Cs = self.search.grid.Cs
        places = [Cs.index(arm.C) for arm in arms]
        first = max(0, min(places) - self.sizes.beside)
        return Cs[first : max(places) + self.sizes.beside + 1]

    def _refine(self, rung: MetricSearch) -> None:
        """Score widths half a step from the best, where that is cheap."""
        index, _ = rung.found.best()
        width, _ = rung.at(index)
        if rung.engines[index % len(rung.engines)] != "span":
            rung.walk_on([*self._beside(width, -0.5), *self._beside(width, 0.5)])

    # Engines.

    def _look_at_span(self, rung: MetricSearch, arm: Arm, size: int) -> None:
        """Leave out the span where it is far behind on a lower rung."""
        if self.span_may_win:
            found = self._alone(rung, arm, Decision("span", 0), size)
            score = rung.found.best()[1]
            self.span_may_win = found is not None and self._beats(found[0], score, _HOPELESS)

    def _choose_engine(self, rung: MetricSearch, arm: Arm, size: int) -> Arm:
        """Choose the engine on the last rung; return the best arm in that."""
        full = self.search.stated(arm.width)[0]
        if self.search.exactly(full):
            return arm
        options = self.search.options
        sizes = (options.cells,) if options.size_given else options.trial.cells
        parts = [each for each in sizes if _PARTS * each <= size]
        contenders = [Decision("cells", each) for each in parts or sizes[:1]]
        if self.span_may_win:
            contenders.insert(0, Decision("span", 0))
        best: tuple[float, Arm] | None = None
        smaller, gaining = None, False
        for contender in contenders:
            found = self._alone(rung, arm, contender, size)
            if found is None:
                continue
            if contender.engine == "cells":
                gaining = smaller is not None and self._beats(found[0], smaller, _GAINING)
                smaller = found[0]
            clearly = 1.0 if best is not None and self.engine.engine == "span" else _CLEARLY
            if best is None or self._beats(found[0], best[0], clearly):
                best, self.engine = found, contender
        if best is None:
            return arm
        if gaining:
            self._promote(rung, best, size)
        return best[1]

    def _promote(self, rung: MetricSearch, best: tuple[float, Arm], size: int) -> None:
        """Let the final machine be exact, if that is clearly better and not too dear."""
        score, arm = best
        if self._cost(arm, len(self.learners)) > self.sizes.work_at_the_end:
            return
        found = self._alone(rung, arm, Decision("exact", 0), size)
        if found is not None and self._beats(found[0], score, _CLEARLY):
            self.search.promoted = "exact"

    def _beats(self, score: float, best: float, factor: float) -> bool:
        """Return whether a score has at most so many times the errors of another."""
        if self.search.judge.scoring is not None:
            # Nobody knows what the best score would be.
            return score > best
        return 1.0 - score <= factor * (1.0 - best)

    def _alone(
        self, rung: MetricSearch, arm: Arm, engine: Decision, size: int
    ) -> tuple[float, Arm] | None:
        """Return the score of an arm in an engine, at its best; None if there was no time.

        In a span, a wider kernel may be the better one.
        """
        until = rung.options.deadline.part(_TIME_TO_COMPARE)
        told = replace(self.search.options, deadline=until)
        widths: tuple[Width, ...] = (arm.width,)
        if engine.engine == "span":
            told = replace(told, max_vectors=self.sizes.vectors)
            widths = (arm.width, *self._beside(arm.width, -1.0))
        elif engine.engine == "cells":
            told = replace(told, engine="cells", cells=engine.size)
        else:
            told = replace(told, engine="exact")
        grid = replace(self.search.grid, Cs=self._near([arm]), widths=widths)
        trial = self.search.part(self._rows(1, size), self.folds, grid, told)
        if trial is None:
            return None
        trial.metrics, trial.decision = self._metrics_of(trial, rung.metrics.steps), engine
        trial.walk(0)
        index, score = trial.found.best()
        if trial.cut is not None or np.isnan(score):
            return None
        return score, Arm(*trial.at(index))

    # The end.

    def _decide(self, highest: MetricSearch, arms: Sequence[Arm]) -> None:
        """Let all rows and folds decide between the best and what came second."""
        search, (best, *others) = self.search, arms
        beside = -0.5 if self.engine.engine == "span" else 0.5
        widths = (best.width, *self._beside(best.width, beside), *(arm.width for arm in others))
        search.metrics = self._metrics_of(search, highest.metrics.steps)
        search.decision = self.engine
        if self.engine.engine == "cells" and not search.options.size_given:
            search.options = replace(search.options, cells=self.engine.size)
        grid = replace(search.grid, Cs=self._near([best]), widths=widths)
        search.restart(grid, expected=grid.Cs.index(best.C) * len(widths))
        search.walk(0)
