"""Regression with squared losses, by the engine that is wanted or by the one that does best.

On up to 10,000 rows the squared loss is one Cholesky factor, and the machine is exact. On more,
held-out rows of a sample choose among a span, cells and, up to 20,000, the exact machine
(``cells.engine_choice``). A sample does not tell all: where rows have little to do with each other,
nobody learns anything from 2,000 of them. So a span that was chosen is judged once more by rows
that are left out of it (``span.left_out``), and where it does not pass, the exact machine takes its
place if it can be had, or there is a warning.
"""

from __future__ import annotations

from dataclasses import replace

from widemargin.balls import fit_exact, targets_fit
from widemargin.cells import fit_cells
from widemargin.cells.engine_choice import ChoiceOptions, Decision, choose_engine
from widemargin.expansion import Fitted
from widemargin.problem import Problem
from widemargin.regression.regression_fit import RegressionFit
from widemargin.span import LeftOut, fit_span_and_judge

_REMEDY = (
    ". Use engine='exact' if memory has room for the kernel matrix, a larger max_vectors, or "
    "another C or gamma."
)


def fit_squares(problem: Problem, options: ChoiceOptions) -> RegressionFit:
    """Fit problems of regression by the engine that is wanted, or chosen.

    Parameters
    ----------
    problem : Problem
        Problems of one C, with targets.
    options : ChoiceOptions
        Which engine, and how.
    """
    decision = Decision(options.engine, 0)
    if options.engine == "auto" or (options.engine == "cells" and not options.size_given):
        decision = choose_engine(problem, options)
    if decision.engine == "cells":
        size = options.cells if options.size_given else decision.size
        return _by(decision, fit_cells(problem, replace(options, cells=size)))
    if decision.engine == "exact":
        return _by(decision, fit_exact(problem, options))
    fitted, found = fit_span_and_judge(problem, options)
    if found is None or not found.poor:
        return _by(decision, fitted)
    if options.engine == "auto" and _exact_can_be_had(problem, options):
        return _by(
            replace(decision, engine="exact", reason=_said(found)), fit_exact(problem, options)
        )
    return _by(decision, fitted, _said(found), _REMEDY)


def _exact_can_be_had(problem: Problem, options: ChoiceOptions) -> bool:
    """Return whether the exact machine fits, and nothing is said against it."""
    budget = options.max_vectors is not None and options.max_vectors < problem.n
    wanted = not budget and not options.in_a_span
    few = problem.n <= options.exact_sizes.targets_if_better
    return wanted and few and targets_fit(problem.n, options.memory)


def _said(found: LeftOut) -> str:
    return (
        f"the span explains {100 * found.seen:.1f} % of the targets' variance on rows that it has "
        f"seen, {100 * found.unseen:.1f} % on rows that were left out"
    )


def _by(decision: Decision, fitted: Fitted, doubt: str = "", remedy: str = "") -> RegressionFit:
    """Return the machine, whose certificate says why it is of this engine."""
    said = fitted.certificate.stopped
    if decision.reason:
        said = f"{said}; {decision.engine}: {decision.reason}"
    if doubt:
        said = f"{said}; {doubt}"
    certificate = replace(fitted.certificate, stopped=said)
    return RegressionFit(decision.engine, replace(fitted, certificate=certificate), doubt + remedy)
