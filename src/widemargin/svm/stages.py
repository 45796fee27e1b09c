"""A search that decides about the scale of the columns, kernel, width, C and metric together.

All combinations would take many times as long as one kernel alone. So it goes by stages, each on
held-out rows:

1. All scales and kernels with all widths and every second C on a sample of the rows, by some of the
   folds.
2. The best two of them on all rows and folds, with the best width of the sample and its neighbours,
   and further ones as long as the last is the best.
3. For the best of those, metrics that are learned from its machine (``metric_search``), full and
   diagonal; while another round is better, one more.

Many rows go another way (``row_halving``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from widemargin.base.widths import best_of_views, views_of
from widemargin.svm.metric_search import MetricSearch
from widemargin.svm.row_halving import RowHalving, RungSizes

# Part of the time, where it is limited, for the sample.
_TIME_FOR_SAMPLE = 0.2
# Widths in metrics that there are about, for which time is left.
_IN_METRICS = 4


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
    climbed : int
        Rows beyond which rungs are climbed instead.
    rungs : RungSizes
        Sizes of those.
    """

    few: int = 60
    share: float = 1 / 3
    least: int = 200
    most: int = 2000
    folds: int = 3
    many: int = 50
    kept: int = 2
    climbed: int = 5000
    rungs: RungSizes = field(default_factory=RungSizes)


def search_in_stages(search: MetricSearch, sizes: StageSizes) -> None:
    """Go through the stages, or those for which there is time.

    Parameters
    ----------
    search : MetricSearch
        A search that has not begun; afterwards it has all scores that decided last.
    sizes : StageSizes
        Sizes.
    """
    problem, _ = search.stated(search.grid.widths[0])
    if problem.n > sizes.climbed and RowHalving(search, sizes.rungs).run():
        return
    _choose_on_sample(search, sizes)
    search.walk(0, later=_IN_METRICS if search.kinds else 0)
    search.go_beyond()
    if search.kinds and search.cut is None:
        search.add_metrics()


def _choose_on_sample(search: MetricSearch, sizes: StageSizes) -> None:
    """Keep the widths that do best on a sample of the rows."""
    views = views_of(search.grid.widths)
    problem, _ = search.stated(search.grid.widths[0])
    if len(views) <= sizes.kept or problem.n <= sizes.few:
        return
    size = min(problem.n, int(np.clip(sizes.share * problem.n, sizes.least, sizes.most)))
    # A problem more is a task more for each fold, however few its rows.
    judging = sizes.folds if problem.n_problems <= sizes.many else 1
    # Every second C: which it is to be is not asked yet.
    grid = search.grid.thinned()
    until = search.options.deadline.part(_TIME_FOR_SAMPLE)
    told = replace(search.options, deadline=until)
    # The first rows are a sample.
    trial = search.part(np.arange(size), range(min(search.folds.n, judging)), grid, told)
    if trial is None:
        return
    trial.run()
    best = trial.best_of_widths()
    if not np.isfinite(best).any():
        # Nothing is known: columns on one scale, and the first kernel.
        search.become(views[-1])
        return
    search.become(best_of_views(search.grid.widths, best, sizes.kept))
