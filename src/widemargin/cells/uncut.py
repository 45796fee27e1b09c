"""The machine of rows that are not cut into cells: exact where that is cheap, else in a span."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from widemargin.balls import fit_exact
from widemargin.expansion import Fitted
from widemargin.problem import Problem
from widemargin.qp.margin_dual import solve_margin_dual
from widemargin.span import SpanOptions, fit_span
from widemargin.span.basis import Vectors, kernel_matrix

# Rows of the two samples that tell how the support grows: the second is twice the first.
_PROBE = 500
# Gap of the machines that are fitted to them.
_PROBE_GAP = 1e-2


@dataclass(frozen=True)
class ExactSizes:
    """Sizes up to which the exact machine is taken.

    Attributes
    ----------
    always : int
        Distinct rows up to which it is.
    most : int
        Distinct rows up to which it is if few of them will support it.
    work : float
        Operations that a factorisation of the support of all problems may then take.
    probe : int
        Rows of the sample that tells.
    """

    always: int = 5000
    most: int = 10_000
    work: float = 2e10
    probe: int = _PROBE


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


def exact_is_cheap(problem: Problem, options: UncutOptions) -> bool:
    """Return whether the exact machine is the one to take."""
    limit, sizes = options.max_vectors, options.exact_sizes
    if limit is not None and limit < problem.n:
        return False
    sizes_of = np.bincount(problem.code, minlength=len(problem.table)) @ (problem.table != 0)
    largest, n = int(np.argmax(sizes_of)), int(sizes_of.max())
    if n > sizes.most:
        return False
    if n <= sizes.always:
        return True
    if not problem.partial:
        return support_work(problem, sizes.probe) <= sizes.work
    # The largest pair speaks for all.
    return problem.n_problems * support_work(problem.alone(largest), sizes.probe) <= sizes.work


def support_work(problem: Problem, probe: int = _PROBE) -> float:
    """Return an estimate of what it takes to factorise the support of all problems.

    Support vectors of two samples tell with which power of the rows they grow: it is 1 for classes
    that overlap, and less where the margin gets crowded.
    """
    probe = min(probe, problem.n)
    index = np.arange(probe)
    sample = Vectors(problem.rows.take(index), index)
    gram = kernel_matrix(problem.kernel, problem.rows, sample, sample)
    work = 0.0
    for p in range(problem.n_problems):
        small, large = (_support_size(gram[:m, :m], problem, p) for m in (probe // 2, probe))
        power = min(1.0, max(0.0, float(np.log2(large / small))))
        work += (large * (problem.n / probe) ** power) ** 3 / 3
    return work


def _support_size(gram: NDArray[np.float64], problem: Problem, p: int) -> int:
    """Return the number of support vectors among the first rows, at least one."""
    first = slice(len(gram))
    sign, ridge = problem.sign(p, first), problem.ridge(p, first)
    point = solve_margin_dual(np.ascontiguousarray(gram), sign, ridge, gap=_PROBE_GAP)
    return max(1, int(np.count_nonzero(point.alpha)))
