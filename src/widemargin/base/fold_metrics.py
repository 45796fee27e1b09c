"""Metrics of the folds of a search: each is learned from the rows that its fold trains on.

A metric that has seen the labels of held-out rows would be judged too well: on random labels it
would seem to help. So every fold has a root of its own, and one of all rows, for the final fit, is
learned in the same way: the same kind, the same rounds, from machines with the same C and width.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.base.widths import Width
from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.folds import Folds
from widemargin.metric import MetricOptions, next_root
from widemargin.problem import Problem
from widemargin.rows import RowMap, mapped_rows

# The gap of machines whose gradients are wanted.
_TOL = 1e-2
# Rows that a metric is learned from, where the engine is left to us, by an exact machine,
_MOST_ROWS = 5000
# and in cells where that takes long.
_MOST_IN_CELLS = 20_000
# Rows of each class that are among them in any case.
_OF_EACH_CLASS = 10

Stated = Callable[[Width], tuple[Problem, Problem]]


@dataclass(frozen=True)
class Step:
    """What a round of a metric is learned from.

    Attributes
    ----------
    width : Width
        The best one before it, of rows without a metric or in that of the round before.
    C : float
        And the best C.
    """

    width: Width
    C: float


@dataclass
class FoldMetrics:
    """The roots of all folds and of all rows, each learned when it is asked for.

    Attributes
    ----------
    stated : callable
        Gives the problems of a width without its metric.
    folds : Folds
        The folds.
    options : ChoiceOptions
        How machines are fitted.
    in_cells : bool
        Whether machines are in cells where the engine is left to us: exact ones take long.
    steps : dict
        What each round of each kind is learned from.
    """

    stated: Stated
    folds: Folds
    options: ChoiceOptions
    in_cells: bool = False
    steps: dict[tuple[str, int], Step] = field(default_factory=dict)
    roots: dict[Any, NDArray[np.float64]] = field(default_factory=dict)

    def begin(self, kind: str, rounds: int, step: Step) -> None:
        """Say what a round is learned from."""
        self.steps[kind, rounds] = step

    def problems(self, width: Width, fold: int | None) -> tuple[Problem, Problem]:
        """Return the problems of a width in the metric of a fold, or in that of all rows."""
        row_map = RowMap.linear(self.root(width, fold))
        pairs, others = self.stated(width)
        rows = mapped_rows(pairs.rows, row_map)
        return replace(pairs, rows=rows), replace(others, rows=rows)

    def root(self, width: Width, fold: int | None) -> NDArray[np.float64]:
        """Return the root of the metric of a width, learned from the rows of a fold or from all."""
        assert width.metric is not None
        key = (width.metric, width.rounds, fold)
        if key not in self.roots:
            self.roots[key] = self._learned(width.metric, width.rounds, fold)
        return self.roots[key]

    def _learned(self, kind: str, rounds: int, fold: int | None) -> NDArray[np.float64]:
        step = self.steps[kind, rounds]
        before = None if step.width.metric is None else self.root(step.width, fold)
        problem, _ = self.stated(step.width)
        if fold is not None:
            count = self.folds.counts[self.folds.kind[problem.number], fold]
            train = np.flatnonzero(count > 0)
            problem = problem.subset(train)
            problem = replace(problem, weight=problem.weight * count[train])
        most = _MOST_IN_CELLS if self.in_cells else _MOST_ROWS
        if self.options.engine == "auto" and problem.n > most:
            problem = problem.subset(_some_of_every_class(problem.code, most))
        labelled = problem.regression is None
        if labelled and len(np.unique(problem.code)) < len(problem.table):
            # A class is missing: there is nothing that all problems could say.
            d = problem.rows.shape[1]
            nothing = np.ones(d) if kind == "diagonal" else np.eye(d)
            return nothing if before is None else before
        return next_root(problem.with_C(step.C), self._told(kind), before)

    def _told(self, kind: str) -> MetricOptions:
        known = {each.name: getattr(self.options, each.name) for each in fields(self.options)}
        others = {"report": None, "max_vectors": None, "tol": max(_TOL, self.options.tol)}
        exact = 0 if self.in_cells else _MOST_ROWS
        return MetricOptions(**known | others, kind=kind, held_out=0.0, exact_rows=exact)


def _some_of_every_class(code: NDArray[Any], size: int) -> NDArray[np.intp]:
    """Return the first rows, which are a sample, and the first of each class."""
    order = np.argsort(code, kind="stable")
    begins = np.searchsorted(code[order], np.arange(int(code.max()) + 1))
    rank = np.empty(len(code), dtype=np.intp)
    rank[order] = np.arange(len(code)) - begins[code[order]]
    return np.flatnonzero((np.arange(len(code)) < size) | (rank < _OF_EACH_CLASS))
