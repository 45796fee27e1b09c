"""The exact machine of many rows, from its solution in a span.

A span of a few thousand vectors tells which rows are inside the margin, but for one in a hundred,
in a small part of the time that the exact machine takes. Where the matrix of all kernel values does
not fit into memory, or factors of the support take too long, these rows are where it begins.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from widemargin.balls import (
    earlier_of,
    factors_take_long,
    fit_exact,
    fit_exact_there,
    fit_on_set,
    fit_one_by_one,
    matrix_fits,
)
from widemargin.expansion import Fitted
from widemargin.loop import Ended
from widemargin.problem import Problem
from widemargin.span import SpanOptions, fit_span_with_scores

# The gap in the span: rows at the edge of a margin are not known better than that.
_SPAN_TOL = 1e-2
# Part of the time, where it is limited, for the span.
_TIME_IN_SPAN = 0.25
# The costs in a certificate, which are those of all parts.
_COSTS = ("n_iter", "n_passes", "n_kernel", "seconds")


def fit_exact_from_span(problem: Problem, options: SpanOptions) -> Fitted:
    """Fit the SVM itself to all rows.

    Parameters
    ----------
    problem : Problem
        Problems of one C.
    options : SpanOptions
        How exactly; and where the vectors of the span come from.

    Returns
    -------
    Fitted
        The machine; if there was no time for a better one, that of the span.
    """
    if problem.rows.device is not None:
        return fit_exact_there(problem, options)
    limit = options.max_vectors
    limited = limit is not None and limit < problem.n
    begun = options.earlier is not None or options.loss == "hinge"
    if limited or begun or (matrix_fits(problem, options) and problem.n_problems > 1):
        return fit_exact(problem, options)
    if problem.partial:
        return fit_one_by_one(problem, options, fit_exact_from_span)
    before: list[Fitted] = []
    if problem.n_problems == 1:
        on_set, expected = fit_on_set(problem, options)
        if on_set.stop.kind not in (Ended.CAPACITY, Ended.PRECISION):
            return on_set
        if matrix_fits(problem, options) and not factors_take_long(problem, options, expected):
            options = replace(options, earlier=earlier_of(on_set))
            return fit_exact(problem, options, before=on_set.certificate)
        before.append(on_set)
    inside = replace(options, tol=_SPAN_TOL, deadline=options.deadline.part(_TIME_IN_SPAN))
    in_span, scores = fit_span_with_scores(problem, inside)
    if options.deadline.passed:
        return in_span
    slack = np.maximum(0.0, 1.0 - problem.signs() * scores)
    exact = fit_exact(problem, replace(options, max_vectors=None), slack)
    known, proved = in_span.certificate, exact.certificate
    better = exact if exact.stop.converged or proved.primal <= known.primal else in_span
    parts = [known, proved, *(each.certificate for each in before)]
    costs = {name: sum(getattr(each, name) for each in parts) for name in _COSTS}
    certificate = replace(better.certificate, stopped=exact.stop.reason, **costs)
    return replace(better, certificate=certificate, stop=exact.stop)
