"""How regression in a span does on rows that it has not seen, with the vectors that it has.

The gap of a fit in a span is about the span: it says nothing of what all rows would allow, nor of
rows that are not there yet. So a share of the rows is left out of the losses, the problems are
solved again on the same vectors and kernel values, with the Newton matrices of the fit, and the
rows that were left out judge. That is a few passes over the kernel values.

Where there are many rows for each vector a fit cannot be far better on its rows than on others, and
nothing is solved again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from widemargin.arrays import IndexArray
from widemargin.expansion import Fitted
from widemargin.loop import Limits, run
from widemargin.problem import Problem
from widemargin.span.levels import SpanFit
from widemargin.span.span_engine import SpanOptions, fitted_of, solve_in_span

# Rows for each vector from which there is nothing to ask.
_MANY_ROWS = 40
# One in so many rows is left out, and at the most and at the least so many.
_ONE_IN = 8
_MOST_ROWS = 4000
_LEAST_ROWS = 200
# Gap of the fit without them.
_TOL = 1e-2
# Steps of it at the most.
_STEPS = 50
# A machine that explains this share of the variance of its own rows,
_SEEN = 0.03
# and of that less than this share on others, has not found what they have in common.
_KEPT = 1 / 3


@dataclass(frozen=True)
class LeftOut:
    """What a machine explains of the targets' variance.

    Attributes
    ----------
    seen : float
        On the rows that it was fitted to.
    unseen : float
        On rows that were left out.
    """

    seen: float
    unseen: float

    @property
    def poor(self) -> bool:
        """Whether next to nothing of what is explained is more than a fit to single rows."""
        return self.seen >= _SEEN and self.unseen < _KEPT * self.seen


def fit_span_and_judge(problem: Problem, options: SpanOptions) -> tuple[Fitted, LeftOut | None]:
    """Fit problems of regression in a span, and see how they do on rows that are left out.

    Parameters
    ----------
    problem : Problem
        Problems of one C, with targets.
    options : SpanOptions
        How.

    Returns
    -------
    Fitted
        The machine, of all rows.
    LeftOut or None
        None where there are too few rows to judge by, so many that they need not be asked, or no
        time.
    """
    solver, result = solve_in_span(problem, options)
    fitted = fitted_of(solver, result, options)
    judges = _judges(problem, solver)
    if not len(judges) or options.deadline.passed:
        return fitted, None
    return fitted, _judged(problem, solver, judges, options)


def _judges(problem: Problem, solver: SpanFit) -> IndexArray:
    """Return the rows to leave out, none where they are too few or not needed."""
    nobody: IndexArray = np.zeros(0, dtype=np.intp)
    if problem.n >= _MANY_ROWS * solver.basis.size or problem.rows.device is not None:
        return nobody
    # Rows come in the order of a hash: the last ones are a sample. Vectors may be among them, for
    # only their targets would give them away; without them, rows would be left that are easier.
    n_judges = min(problem.n // _ONE_IN, _MOST_ROWS)
    return np.arange(problem.n - n_judges, problem.n) if n_judges >= _LEAST_ROWS else nobody


def _judged(
    problem: Problem, solver: SpanFit, judges: IndexArray, options: SpanOptions
) -> LeftOut | None:
    """Return what is explained on the judges' rows with and without them in the fit."""
    assert problem.regression is not None
    targets, weight = problem.regression.subset(judges), problem.weight[judges]
    outputs = np.arange(problem.n_problems)
    targets = replace(targets, values=targets.of(outputs))
    seen = targets.explained(solver.scores()[judges], weight)
    kind = np.zeros(problem.n, dtype=np.intp)
    kind[judges] = 1
    stated = problem.in_kinds(kind, np.array([[1.0], [0.0]]), problem.C[:1])
    again = solver.again(stated, None, max(_TOL, options.tol))
    with options.deadline.ends_on_interrupt():
        run(again, Limits(min(_STEPS, options.max_iter), options.deadline, options.patience))
    if options.deadline.passed:
        return None
    return LeftOut(seen, targets.explained(again.scores()[judges], weight))
