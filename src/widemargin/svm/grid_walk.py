"""A walk through a grid, width by width, with a share of the time for each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.base.found import Found
from widemargin.base.progress import ProgressBar
from widemargin.base.widths import Width
from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.cells.held_out import CellChoices
from widemargin.loop import Ended, PlaceLost, Stop
from widemargin.svm.grid import Grid
from widemargin.svm.scoring import GridScores

# How near its optimum an objective in a span must be for its machine to be judged, at the least.
_SPAN_TOL = 1e-3
# The gap to which exact machines and those in cells are fitted at the least to be judged.
_EXACT_TOL = 1e-2
# How much finer the final fit is.
_FINER = 10.0
# Vectors of a span, unless the user says how many: pairs are told apart by fewer than the best of
# them needs, and every fold of every C has a Newton matrix of their number.
_SPAN_VECTORS = 1000


@dataclass
class GridWalk(ABC):
    """A search that goes through a grid; a subclass says how widths are scored.

    Attributes
    ----------
    grid : Grid
        What to search, with widths as numbers or words.
    n_folds : int
        Number of folds.
    options : ChoiceOptions
        How machines are fitted, and in which engine.
    bar : ProgressBar
        Shows how far it is.
    """

    grid: Grid
    n_folds: int
    options: ChoiceOptions
    bar: ProgressBar

    def __post_init__(self) -> None:
        self.found = Found.nothing(self.grid, self.n_folds)
        self.engines = ["span"] * len(self.grid.widths)
        self.choices: CellChoices | None = None
        self.cut: Stop | None = None
        # The engine of the final machine, where it is to be another than that of the search.
        self.promoted: str | None = None

    @abstractmethod
    def group(self, first: int) -> range:
        """Return the widths from `first` on that are scored together."""

    @abstractmethod
    def scored(self, group: range, options: ChoiceOptions) -> list[GridScores]:
        """Return the scores of some widths of one engine."""

    def run(self) -> None:
        """Score all widths, or those for which there is time."""
        self.walk(0)

    def walk(self, first: int, later: int = 0) -> None:
        """Score the widths from `first` on; so many others will want their time later."""
        n, w = len(self.grid.widths), first
        while w < n and not self.ended:
            started = perf_counter()
            group = self.group(w)
            # The final fit has a share too.
            until = self.options.deadline.part(len(group) / (n - w + 1 + later))
            scored = self.scored(group, replace(self.options, deadline=until))
            seconds = (perf_counter() - started) / len(group)
            for width, each in zip(group, scored, strict=True):
                found = self.found
                found.scores[width], found.finished[width] = each.scores, each.cut is None
                found.seconds[width] = seconds
                self.cut = each.cut if _ends(each.cut) else self.cut or each.cut
            self.bar.advance(0.0, self._said(group))
            w += len(group)

    def restart(self, grid: Grid, expected: int) -> None:
        """Search another grid, of which nothing is known but the combination that may be best."""
        self.grid = grid
        self.found = replace(Found.nothing(grid, self.n_folds), expected=expected)
        self.engines = ["span"] * len(grid.widths)
        self.bar.total = self.bar.done + len(grid.widths)

    def become(self, widths: tuple[Width, ...]) -> None:
        """Go on with other widths, of which some may have been scored."""
        before = {width: w for w, width in enumerate(self.grid.widths)}
        kept = [before.get(width) for width in widths]
        self.grid = replace(self.grid, widths=widths)
        self.found = self.found.on(self.grid, kept)
        self.engines = ["span" if w is None else self.engines[w] for w in kept]
        self.bar.total = self.bar.done + sum(
            w is None or not self.found.finished[k] for k, w in enumerate(kept)
        )

    def best(self) -> int:
        """Return which pair is best, or raise if the search has ended before it had any score."""
        index, score = self.found.best()
        if not (self.ended and np.isnan(score)) or self.found.expected is not None:
            return index
        if self.cut is not None and self.cut.kind is Ended.LOST:
            raise PlaceLost(f"the search had no score yet, and {self.cut.reason}")
        raise KeyboardInterrupt("the search was interrupted before it had any score")

    def metric_of(self, index: int) -> Any:
        """Return the metric of a combination as the final fit takes it; None if it has none."""
        return None

    def said_of_cut(self, index: int) -> str:
        """Return what a user is to know of a search that was cut short."""
        assert self.cut is not None
        n_Cs, n_finished = len(self.grid.Cs), int(self.found.finished.sum())
        return (
            f"The search of MarginClassifierCV was cut short ({self.cut.reason}): "
            f"{n_finished * n_Cs} of {len(self.grid.widths) * n_Cs} pairs of C and gamma have been "
            f"scored with machines that are finished. {self.grid.params[index]} is the best that "
            "is known, and is fitted now; give it more time, or a smaller grid."
        )

    @property
    def ended(self) -> bool:
        """Whether no other width shall begin: the user has ended it, or its rows are lost."""
        return _ends(self.cut)

    @property
    def Cs(self) -> Vector:
        """Values of C."""
        return np.array(self.grid.Cs)

    def _said(self, group: range) -> str:
        """Return what some widths came to, for the line of progress."""
        mean = self.found.scores[group.start : group.stop].mean(axis=2)
        if np.isnan(mean).all():
            return "no time"
        w, c = np.unravel_index(np.nanargmax(mean), mean.shape)
        _, best = self.found.best()
        width = self.grid.widths[group[w]]
        return f"{mean[w, c]:.4f} with {width}, C {self.grid.Cs[c]:.3g}; best so far {best:.4f}"


def in_a_span(options: ChoiceOptions) -> ChoiceOptions:
    """Return how closely machines in a span are fitted that will be judged."""
    most = _SPAN_VECTORS if options.max_vectors is None else options.max_vectors
    return replace(options, tol=min(_SPAN_TOL, options.tol), max_vectors=most)


def roughly(options: ChoiceOptions) -> ChoiceOptions:
    """Return how closely exact machines and those in cells are fitted that will be judged."""
    return replace(options, tol=min(_EXACT_TOL, _FINER * options.tol))


def _ends(stop: Stop | None) -> bool:
    """Return whether a search is over that was stopped so."""
    return stop is not None and (stop.kind.by_user or stop.kind is Ended.LOST)
