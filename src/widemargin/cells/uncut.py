"""The machine of rows that are not cut into cells: exact where that is cheap, else in a span."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from widemargin.balls import cost_of_exact, fit_exact, targets_fit
from widemargin.expansion import Fitted
from widemargin.problem import Problem
from widemargin.span import SpanOptions, fit_span, most_vectors

# Most of the work of a span are Newton matrices, a quarter of rows times vectors² for each problem.
_NEWTON_MATRICES = 0.25
# Rows of a search by those that each of its machines sees, in five folds.
_ALL_BY_KEPT = 1.25


@dataclass(frozen=True)
class ExactSizes:
    """Sizes up to which the exact machine is taken.

    Attributes
    ----------
    always : int
        Distinct rows up to which it is.
    most : int
        Distinct rows up to which it is if few of them support it.
    most_of_many : int
        The same where it is to be fitted for every fold, width and C of a grid, to several problems
        on all rows, or for the hinge loss, whose machine takes longer.
    targets : int
        Distinct rows up to which it is for the squared loss of regression, one factor of a matrix.
    targets_if_better : int
        The same for both squared losses where it does clearly better than a span.
    work : float
        Multiplications that the machines of all problems may take (``balls.exact_cost``),
    share : float
        or as a share of the work of a span, if that is more.
    most_if_better : int
        Distinct rows up to which it is taken where it does clearly better than a span,
    work_if_better : float
        and the multiplications that it may then take.
    share_of_many : float
        The part of the work that is allowed to each machine of a grid.
    probe : int
        Rows of the sample that tells.
    """

    always: int = 5000
    most: int = 200_000
    most_of_many: int = 10_000
    targets: int = 10_000
    targets_if_better: int = 20_000
    work: float = 8e10
    share: float = 1.0
    most_if_better: int = 40_000
    work_if_better: float = 5e11
    share_of_many: float = 0.25
    probe: int = 1000


@dataclass(frozen=True, kw_only=True)
class UncutOptions(SpanOptions):
    """How a machine is fitted to rows that are not cut.

    Attributes
    ----------
    exact_sizes : ExactSizes
        Sizes up to which the exact machine is taken.
    """

    exact_sizes: ExactSizes = field(default_factory=ExactSizes)


def fit_uncut(problem: Problem, options: UncutOptions) -> Fitted:
    """Fit the exact machine, or one in a span, which has the squared hinge only."""
    exact = options.loss == "hinge" or exact_is_cheap(problem, options)
    fit = fit_exact if exact else fit_span
    return fit(problem, options)


def exact_is_cheap(
    problem: Problem, options: UncutOptions, in_search: bool = False, n_in_span: int | None = None
) -> bool:
    """Return whether the exact machine is the one to take, as far as a sample of the rows tells.

    Parameters
    ----------
    problem : Problem
        The problems of the exact machine.
    options : UncutOptions
        Sizes, and limits.
    in_search : bool, default=False
        Whether it is to be fitted for every fold, width and C of a grid.
    n_in_span : int, default=None
        Problems that a span would solve; None if they are the same.
    """
    limit, sizes = options.max_vectors, options.exact_sizes
    if limit is not None and limit < problem.n:
        return False
    if problem.regression is not None:
        # Factors of all rows, whatever the data: one, or several where there is an ε.
        most = sizes.targets if problem.feels_all else sizes.always
        return problem.n <= most and targets_fit(problem.n, options.memory)
    sizes_of = np.bincount(problem.code, minlength=len(problem.table)) @ (problem.table != 0)
    n = int(sizes_of.max())
    # Several problems on all rows need the matrix of all rows.
    whole = problem.n_problems > 1 and not problem.partial
    few = in_search or whole or options.loss == "hinge"
    if n > (sizes.most_of_many if few else sizes.most):
        return False
    # A machine of a search sees all folds but one.
    if n <= sizes.always * (_ALL_BY_KEPT if in_search else 1.0):
        return True
    allowed = work_allowed(problem, sizes, n_in_span)
    if in_search:
        allowed *= sizes.share_of_many
    return cost_of_exact(problem, sizes.probe) <= allowed


def work_allowed(problem: Problem, sizes: ExactSizes, n_in_span: int | None = None) -> float:
    """Return the multiplications that the exact machines of all problems may take.

    A part of what a span would take with as many vectors as it may have.
    """
    n = problem.n
    newton = _NEWTON_MATRICES * (n_in_span or problem.n_problems) * n * most_vectors(n) ** 2
    return max(sizes.work, sizes.share * newton)
