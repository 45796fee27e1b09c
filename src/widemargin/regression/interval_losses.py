"""Regression with losses in linear pieces: which engine, and its fit.

``base.target_intervals`` states them, with a free bias. Few rows have the exact machine
(``balls.exact_intervals``), many are fitted in a span (``span.interval_fit``), all outputs and
quantiles in one, on the same vectors, or in cells (``cells.interval_cells``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.balls.exact_intervals import fit_exact_intervals, fits_matrix
from widemargin.base.target_intervals import insensitive, of_quantiles
from widemargin.cells import FittedCells
from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.cells.interval_cells import fit_interval_cells, machines_of, size_of_interval_cells
from widemargin.expansion import Expansion, Fitted
from widemargin.intervals import IntervalProblem
from widemargin.problem import Problem
from widemargin.regression.calibration import Offsets, calibrated, folds_of_rows, offsets_of
from widemargin.regression.left_out_quantiles import (
    LeftOutExactly,
    LeftOutOfSpan,
)
from widemargin.regression.regression_fit import RegressionFit
from widemargin.span.interval_fit import IntervalSpanOptions, fit_interval_span

# Rows up to which engine="auto" is exact.
_EXACT_ROWS = 5000
# Part of the time, where it is limited, for machines whose quantiles are calibrated by folds.
_TIME_TO_FIT = 0.5


def engine_for(problem: IntervalProblem, options: ChoiceOptions) -> str:
    """Return the engine that is wanted; for "auto", "exact" on few rows if it can be had."""
    if options.engine != "auto":
        return options.engine
    few = problem.n <= _EXACT_ROWS and fits_matrix(problem.n, options.memory)
    budget = options.max_vectors is not None and options.max_vectors < problem.n
    return "exact" if few and not budget and not options.in_a_span else "span"


def fit_intervals(problem: IntervalProblem, engine: str, options: ChoiceOptions) -> Fitted:
    """Fit all problems by the exact machine, in one span, or in cells."""
    if engine == "exact":
        return fit_exact_intervals(problem, options)
    if engine == "cells":
        size, trial = options.cells, options.trial
        if not options.size_given:
            size = size_of_interval_cells(problem, options, trial.cells, trial.learn, options.blend)
        return fit_interval_cells(problem, replace(options, cells=size))
    return fit_interval_span(problem, IntervalSpanOptions.of(options))


@dataclass(frozen=True)
class PiecewiseLoss:
    """A loss in linear pieces.

    Attributes
    ----------
    C : float
        Price of errors, in the units of the problem's targets.
    epsilon : float or None
        Errors that cost nothing; None for quantiles.
    quantiles : tuple of float
        Which, where it is their loss.
    several : bool
        Whether they belong together, and are sorted.
    calibration : "auto", int, float or None
        Folds, or the share of rows, that are held out to make their shares right.
    """

    C: float
    epsilon: float | None = None
    quantiles: tuple[float, ...] = ()
    several: bool = False
    calibration: Any = None

    @property
    def calibrated(self) -> bool:
        """Whether quantiles are to be moved: "auto" does where several make an interval."""
        if isinstance(self.calibration, str):
            return len(self.quantiles) > 1
        return self.calibration is not None

    def stated(self, problem: Problem) -> IntervalProblem:
        """Return the losses of the rows of a problem."""
        if self.epsilon is not None:
            return insensitive(problem, self.epsilon, self.C)
        return of_quantiles(problem, self.quantiles, self.C)


def fit_pieces(problem: Problem, loss: PiecewiseLoss, options: ChoiceOptions) -> RegressionFit:
    """Fit problems of regression by the engine that is wanted, or chosen.

    Parameters
    ----------
    problem : Problem
        The rows, with their weights and targets.
    loss : PiecewiseLoss
        The loss.
    options : ChoiceOptions
        Which engine, and how.
    """
    stated = loss.stated(problem)
    engine = engine_for(stated, options)
    if not loss.calibrated:
        return RegressionFit(engine, fit_intervals(stated, engine, options))
    fit = _held_out_for_good if isinstance(loss.calibration, float) else _in_folds
    fitted, found = fit(problem, stated, loss, engine, options)
    if found is None:
        doubt = (
            "quantiles are not calibrated, for there was no time, or no other row, to hold out. "
            "Give more time or more rows, or calibration=None to accept it."
        )
        return RegressionFit(engine, fitted, doubt)
    doubt = ""
    if found.lacking:
        doubt = (
            f"rows of weight {found.weight:g} were held out, too few to calibrate quantiles "
            f"{loss.quantiles}, which takes {found.lacking:g}; the outermost error is taken. Give "
            "more rows, or quantiles nearer to 0.5."
        )
    return RegressionFit(engine, fitted, doubt, found.values)


def _in_folds(
    problem: Problem,
    stated: IntervalProblem,
    loss: PiecewiseLoss,
    engine: str,
    options: ChoiceOptions,
) -> tuple[Fitted, Offsets | None]:
    """Fit all rows, and find what moves quantiles to their shares on rows that folds hold out."""
    # The folds need time, too.
    part = replace(options, deadline=options.deadline.part(_TIME_TO_FIT))
    fitted = fit_intervals(stated, engine, part)
    machines: LeftOutExactly | LeftOutOfSpan | _LeftOutOfCells
    if engine == "cells":
        machines = _LeftOutOfCells(stated, options)
    else:
        left_out = LeftOutExactly if engine == "exact" else LeftOutOfSpan
        machines = left_out(stated, fitted, options)

    def answered(kept: IndexArray, held: IndexArray) -> Matrix | None:
        found = machines.answered(kept, held)
        return np.sort(found, axis=1) if found is not None and loss.several else found

    fold, levels = folds_of_rows(problem.n, loss.calibration), _levels(loss, stated)
    return fitted, calibrated(fold, stated.low, problem.weight, levels, answered)


def _held_out_for_good(
    problem: Problem,
    stated: IntervalProblem,
    loss: PiecewiseLoss,
    engine: str,
    options: ChoiceOptions,
) -> tuple[Fitted, Offsets | None]:
    """Fit some of the rows, and find what moves quantiles to their shares on the others."""
    fold = folds_of_rows(problem.n, loss.calibration)
    kept, held = np.flatnonzero(fold), np.flatnonzero(fold == 0)
    if not len(kept):
        return fit_intervals(stated, engine, options), None
    fitted = fit_intervals(stated.part(kept), engine, options)
    fitted = replace(fitted, index=None if fitted.index is None else kept[fitted.index])
    answer = _values(fitted, stated, held, options)
    errors = stated.low[held] - (np.sort(answer, axis=1) if loss.several else answer)
    return fitted, offsets_of(errors, problem.weight[held], _levels(loss, stated))


@dataclass(frozen=True)
class _LeftOutOfCells:
    """Machines in cells without some rows: each fold is cut and fitted anew."""

    problem: IntervalProblem
    options: ChoiceOptions

    def answered(self, kept: IndexArray, held: IndexArray) -> Matrix | None:
        """Return predictions of rows by machines of others; None if there was no time."""
        problem, options = self.problem, replace(self.options, report=None)
        if options.deadline.passed:
            return None
        fitted = fit_intervals(problem.part(kept), "cells", options)
        if options.deadline.passed:
            return None
        return _values(fitted, problem, held, options)


def _values(
    fitted: Fitted, problem: IntervalProblem, index: IndexArray, options: ChoiceOptions
) -> Matrix:
    """Return what machines say of some rows."""
    rows = problem.rows.subset(index)
    if isinstance(fitted, FittedCells):
        return machines_of(fitted, problem, options.blend).values(rows)
    return Expansion(problem.kernel, fitted.vectors, fitted.coef, fitted.intercept).values(rows)


def _levels(loss: PiecewiseLoss, stated: IntervalProblem) -> Vector:
    """Return which quantile each problem is."""
    levels = np.sort(np.asarray(loss.quantiles, dtype=np.float64))
    return np.tile(levels, stated.n_problems // len(levels))
