"""What the exact machine will cost, told by samples of the rows.

The small machine (``qp.margin_dual``) counts its work. It takes updates alone where kernel values
are nearly those of rows that have nothing to do with each other, or where the ridge 1 / (2 C) is
large, and factors of the support where both is not so: the first grows with the square of the rows,
the other with their cube. A sample and half of it show which of the two it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.kernel_between import KernelBetween
from widemargin.problem import Problem
from widemargin.qp.margin_dual import solve_margin_dual

# Gap of the machines that are fitted to samples.
_PROBE_GAP = 1e-2
# The sample has at the most one in so many rows: to ask must cost little beside the answer.
_PROBE_PART = 5
# What a kernel value costs beside its features, in multiplications.
_VALUE_COST = 64
# Powers of the rows with which the work may grow.
_LEAST_POWER = 2.0
_MOST_POWER = 3.0


def cost_of_exact(problem: Problem, probe: int) -> float:
    """Return an estimate of the multiplications that the exact machines of all problems take.

    Those of their kernel values are among them.

    Parameters
    ----------
    problem : Problem
        Problems of one C. Where they are pairs of classes, the largest speaks for all.
    probe : int
        Rows of the sample, at the most.
    """
    if problem.partial:
        sizes = np.bincount(problem.code, minlength=len(problem.table)) @ (problem.table != 0)
        return problem.n_problems * cost_of_exact(problem.alone(int(np.argmax(sizes))), probe)
    probe = min(probe, max(2, problem.n // _PROBE_PART))
    rows = problem.rows
    gram = KernelBetween.of(problem.kernel, rows.subset(np.arange(probe)), np.float32).matrix()
    more = problem.n / probe
    cost = 0.0
    for p in range(problem.n_problems):
        (of_half, few), (of_all, many) = (
            _cost_and_support(gram[:m, :m], problem, p) for m in (probe // 2, probe)
        )
        power = min(_MOST_POWER, max(_LEAST_POWER, float(np.log2(of_all / of_half))))
        support = many * more ** min(1.0, max(0.0, float(np.log2(many / few))))
        # Values of the support with all rows, if that is less than half of the matrix.
        values = min(0.5 * problem.n, support) * problem.n
        cost += of_all * more**power + values * (rows.values_per_row + _VALUE_COST)
    return cost


def _cost_and_support(gram: NDArray[Any], problem: Problem, p: int) -> tuple[float, float]:
    """Return the work of the machine of the first rows, and its support vectors.

    Work is at least one look at each value, and there is a vector at least.
    """
    first = slice(len(gram))
    sign, ridge = problem.sign(p, first), problem.ridge(p, first)
    point = solve_margin_dual(np.ascontiguousarray(gram), sign, ridge, gap=_PROBE_GAP)
    return max(float(gram.size), point.cost), max(1.0, float(np.count_nonzero(point.alpha)))
