"""A lower bound on the full problem from the vectors of a span, on a device."""

from __future__ import annotations

import numpy as np

from widemargin.device import Array, DeviceKernel
from widemargin.problem import Problem
from widemargin.qp.device_matrices import OneMatrix
from widemargin.qp.margin_batch import solve_margin_batch
from widemargin.span.device_basis import DeviceBasis

# Share of the memory budget for the matrices of machines that are solved at a time,
_SHARE = 0.125
# of which each takes so many of its size.
_MATRICES = 4


def full_dual_there(problem: Problem, basis: DeviceBasis, gap: float, max_rounds: int) -> float:
    """Return the sum of the best dual values of all problems on the vectors' rows.

    Parameters
    ----------
    problem : Problem
        The problems.
    basis : DeviceBasis
        The vectors. If they are not rows, as many rows stand for them.
    gap : float
        Relative gap to which each is solved.
    max_rounds : int
        Rounds at the most.
    """
    device, index = basis.there.device, basis.vectors.index
    if index is None:
        index = np.arange(min(problem.n, basis.size))
    sign = problem.signs(index).T
    counts = problem.counts[problem.fold[index]].T
    sign = np.where(counts > 0, sign, 0.0)
    price = 2.0 * problem.C[:, None] * problem.weight[index] * counts
    ridge = 1.0 / np.where(price > 0, price, 1.0)
    values = device.xp.astype(_gram(problem, basis, index), device.xp.float32)
    each = 4 * _MATRICES * len(index) ** 2
    at_a_time = max(1, int(_SHARE * problem.rows.memory / each))
    point = solve_margin_batch(
        OneMatrix.of_all(device, values, problem.n_problems),
        device.array(sign),
        device.array(ridge),
        tol=gap,
        max_rounds=max_rounds,
        most_numbers=at_a_time * len(index) ** 2,
    )
    return float(np.nan_to_num(point.dual).sum())


def _gram(problem: Problem, basis: DeviceBasis, index: np.ndarray) -> Array:
    if basis.vectors.index is not None:
        return basis.there.gram
    device, rows = basis.there.device, problem.rows.take(index)
    kernel = DeviceKernel.about(problem.kernel, device, rows, np.float64)
    return kernel.block(device.array(np.asarray(rows, dtype=np.float64)), rows)
