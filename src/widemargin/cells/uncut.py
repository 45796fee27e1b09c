"""The machine of rows that are not cut into cells: exact where that is cheap, else in a span."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.balls import fit_exact
from widemargin.expansion import Fitted
from widemargin.kernel_between import KernelBetween
from widemargin.problem import Problem
from widemargin.qp.margin_dual import solve_margin_dual
from widemargin.span import SpanOptions, fit_span

# Gap of the machines that are fitted to samples.
_PROBE_GAP = 1e-2
# The sample has at the most one in so many rows.
_PROBE_PART = 10
# Vectors that a span may have: a share of the rows, and a number. Most of its work are Newton
# matrices, a quarter of rows times vectors² for each problem.
_SPAN_SHARE = 0.2
_SPAN_VECTORS = 4096
_NEWTON_MATRICES = 0.25


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
    work : float
        Multiplications that a factor of the support of all problems may take,
    share : float
        or as a share of the work of a span, if that is more.
    probe : int
        Rows of the sample that tells.
    """

    always: int = 5000
    most: int = 200_000
    most_of_many: int = 10_000
    work: float = 2e10
    share: float = 0.25
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
    sizes_of = np.bincount(problem.code, minlength=len(problem.table)) @ (problem.table != 0)
    largest, n = int(np.argmax(sizes_of)), int(sizes_of.max())
    # Several problems on all rows need the matrix of all rows.
    whole = problem.n_problems > 1 and not problem.partial
    few = in_search or whole or options.loss == "hinge"
    if n > (sizes.most_of_many if few else sizes.most):
        return False
    if n <= sizes.always:
        return True
    allowed = work_allowed(problem, sizes, n_in_span)
    if not problem.partial:
        return support_work(problem, sizes.probe) <= allowed
    # The largest pair speaks for all.
    return problem.n_problems * support_work(problem.alone(largest), sizes.probe) <= allowed


def work_allowed(problem: Problem, sizes: ExactSizes, n_in_span: int | None = None) -> float:
    """Return the multiplications that a factor of the support of all problems may take.

    A part of what a span would take with as many vectors as it may have.
    """
    n = problem.n
    vectors = min(_SPAN_SHARE * n, _SPAN_VECTORS)
    newton = _NEWTON_MATRICES * (n_in_span or problem.n_problems) * n * vectors**2
    return max(sizes.work, sizes.share * newton)


def support_work(problem: Problem, probe: int) -> float:
    """Return an estimate of what it takes to factorise the support of all problems.

    Support vectors of a sample and of half of it tell with which power of the rows they grow: it is
    1 for classes that overlap, and less where the margin gets crowded.
    """
    n = problem.n
    # To ask must cost little beside the answer.
    probe = min(probe, max(2, n // _PROBE_PART))
    sample = problem.rows.subset(np.arange(probe))
    gram = KernelBetween.of(problem.kernel, sample, np.float32).matrix()
    work = 0.0
    for p in range(problem.n_problems):
        small, large = (_support_size(gram[:m, :m], problem, p) for m in (probe // 2, probe))
        power = min(1.0, max(0.0, float(np.log2(large / small))))
        work += (large * (n / probe) ** power) ** 3 / 3
    return work


def _support_size(gram: NDArray[Any], problem: Problem, p: int) -> int:
    """Return the number of support vectors among the first rows, at least one."""
    first = slice(len(gram))
    sign, ridge = problem.sign(p, first), problem.ridge(p, first)
    point = solve_margin_dual(np.ascontiguousarray(gram), sign, ridge, gap=_PROBE_GAP)
    return max(1, int(np.count_nonzero(point.alpha)))
