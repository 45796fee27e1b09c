"""The machine whose gradients are wanted: exact on few rows, in cells or in a span on many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from widemargin.arrays import Matrix
from widemargin.balls import fit_exact
from widemargin.cells import CellMachines, FittedCells, Partition, fit_cells
from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.expansion import Expansion, Fitted
from widemargin.problem import Problem, class_scores, winners
from widemargin.span import fit_span


def fit_machine(
    problem: Problem, options: ChoiceOptions, exact_rows: int
) -> Expansion | CellMachines:
    """Return the machine of a problem: exact on few rows, in cells or in a span on many."""
    engine = options.engine
    if engine == "auto":
        engine = "exact" if problem.n <= exact_rows else "cells"
    told = replace(options, report=None, earlier=None)
    if engine == "cells":
        return _machines(problem, fit_cells(problem, told), options.blend)
    fit: Callable[[Problem, Any], Fitted] = fit_exact if engine == "exact" else fit_span
    fitted = fit(problem, told)
    return Expansion(problem.kernel, fitted.vectors, fitted.coef, fitted.intercept)


def _machines(problem: Problem, fitted: FittedCells, blend: float) -> CellMachines:
    return CellMachines(
        Partition(fitted.centers, fitted.groups),
        problem.kernel,
        fitted.vectors,
        fitted.coef,
        fitted.offsets,
        fitted.intercept,
        blend,
    )


def accuracy(values: Matrix, judge: Problem) -> float:
    """Return the share of the weight of rows that are answered right; R² of targets."""
    if judge.regression is not None:
        return judge.regression.explained(values, judge.weight)
    n_classes = len(judge.table)
    scores = class_scores(values, n_classes) if judge.partial else values
    answer = winners(np.arange(n_classes), scores[:, 0] if scores.shape[1] == 1 else scores)
    return float(judge.weight[answer == judge.code].sum() / judge.weight.sum())
