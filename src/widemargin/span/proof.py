"""What a span fit can say of itself beside its gap: rounding, and the full problem."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin.kernels import Kernel
from widemargin.qp import solve_margin_dual
from widemargin.rows.base import BlockRows, IndexArray
from widemargin.span.basis import Basis, Vectors, kernel_matrix
from widemargin.span.problems import Problems, Scores
from widemargin.threads import ordered_map

# Rows on which rounding is measured: as many as this many multiplications are good for, within
# these limits.
_MULTIPLICATIONS, _LEAST, _MOST = 2e9, 1024, 8192
# Relative gap to which the full problem is solved on the vectors' rows: its bound is rarely tight
# enough for more to matter.
_GAP = 0.02


def rounding(
    rows: BlockRows,
    kernel: Kernel,
    basis: Basis,
    problems: Problems,
    beta: NDArray[np.float64],
    scores: Scores,
) -> float:
    """Return how far rounded kernel values may move primal − dual, as measured on some rows.

    If scores are off by e, the loss C Σ s ξ² moves by 2C Σ s ξ y e + C Σ s e² at the most, and so
    does the dual, whose slope is the same. Errors have both signs and all but cancel, so the first
    sum is what it is on a sample in float64, and three standard errors more.
    """
    if scores.dtype == np.float64:
        return 0.0
    n = problems.n
    affordable = int(_MULTIPLICATIONS / max(1, basis.vectors.values.size))
    size = min(n, max(_LEAST, min(_MOST, affordable)))
    index = np.unique(np.linspace(0, n - 1, size).astype(np.intp))
    exact = kernel_matrix(kernel, rows, Vectors(rows.take(index), index), basis.vectors)
    error = scores[index] - (exact @ beta[:-1] + beta[-1])
    sign = problems.table[problems.code[index]]
    weight = problems.weight[index, None] * problems.C * problems.counts[problems.fold[index]]
    slope = 2.0 * weight * np.maximum(0.0, 1.0 - sign * scores[index]) * sign * error
    standard_error = slope.std(axis=0) / np.sqrt(len(index))
    # Never more than if no errors cancelled.
    moved = np.minimum(
        np.abs(slope.mean(axis=0)) + 3.0 * standard_error, np.abs(slope).mean(axis=0)
    )
    moved += (weight * error * error).mean(axis=0)
    return 2.0 * n * float(moved.sum())


def full_dual(
    rows: BlockRows, kernel: Kernel, basis: Basis, problems: Problems, place: IndexArray
) -> float:
    """Return a lower bound on the full problem: its best dual value on the vectors' rows.

    Dual variables that are zero elsewhere are feasible for the problem without a span. If the
    vectors are not rows, as many rows stand for them.

    Parameters
    ----------
    rows : BlockRows
        All rows in their first order.
    kernel : Kernel
        Their kernel.
    basis : Basis
        The span.
    problems : Problems
        The problems, whose rows may have changed places.
    place : ndarray of int of shape (n,)
        Where each row is among those of `problems`.
    """
    index, gram = basis.vectors.index, basis.gram
    if index is None:
        index = np.arange(min(problems.n, basis.size))
        some = Vectors(rows.take(index), index)
        gram = kernel_matrix(kernel, rows, some, some)
    there = place[index]

    def best(p: int) -> float:
        counted = problems.counts[problems.fold[there], p] > 0
        ridge = 1.0 / (2.0 * problems.C[p] * problems.weight[there][counted])
        values = gram if counted.all() else np.ascontiguousarray(gram[np.ix_(counted, counted)])
        sign = problems.sign(p, there[counted])
        point = solve_margin_dual(values, sign, ridge, gap=_GAP, max_rounds=20)
        return point.objectives()[1]

    return float(sum(ordered_map(best, range(problems.n_problems), problems.threads)))
