"""The exact machines of losses on intervals: those of ``SVR`` and ``OneClassSVM``.

Each problem is one dual (``qp.interval_dual``) on the kernel matrix that all share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.certificate import Certificate
from widemargin.expansion import Fitted, MachineOptions
from widemargin.intervals import IntervalProblem
from widemargin.kernel_between import KernelBetween
from widemargin.loop import Ended, Limits, Stop, run, signed_gap
from widemargin.qp.interval_dual import IntervalDual, solve_interval_dual
from widemargin.threads import ordered_map

# Share of the memory budget for the kernel matrix and factors of parts of it.
_SHARE = 0.7
# Matrices at a time: kernel values, and factors of a part of them in each thread.
_MATRICES = 2


def fits_matrix(n: int, memory: int) -> bool:
    """Return whether the kernel matrix of so many rows, and work on it, fits into memory."""
    return _MATRICES * 8 * n**2 <= _SHARE * memory


def fit_exact_intervals(problem: IntervalProblem, options: MachineOptions) -> Fitted:
    """Fit the machines to all rows.

    Parameters
    ----------
    problem : IntervalProblem
        What is to be fitted.
    options : MachineOptions
        How exactly.

    Raises
    ------
    ValueError
        If the kernel matrix does not fit into memory, or vectors are limited.
    """
    n = problem.n
    if options.max_vectors is not None and options.max_vectors < n:
        raise ValueError(
            f"max_vectors={options.max_vectors} is less than the {n:,} different rows, and "
            "engine='exact' knows no budget of vectors; use engine='span'."
        )
    if not fits_matrix(n, options.memory):
        needed = int(_MATRICES * 8 * n**2 / _SHARE / 2**20) + 1
        raise ValueError(
            f"engine='exact' needs the kernel matrix of {n:,} rows, which does not fit into "
            f"memory; give memory='{needed}MB', or use engine='span'."
        )
    solver = _Problems(problem, options)
    limits = Limits(options.max_iter, options.deadline, patience=options.max_iter)
    result = run(solver, limits, options.report)
    coef = np.column_stack([each.beta for each in result.state.found])
    index = np.flatnonzero(coef.any(axis=1))
    return Fitted(
        problem.rows.take(index),
        index,
        coef[index],
        np.array([each.intercept for each in result.state.found]),
        result.certificate,
        result.stop,
    )


@dataclass(frozen=True)
class _Solved:
    """The machines that are done, and the kernel values, once there are some."""

    found: tuple[IntervalDual, ...]
    K: NDArray[np.float64] | None = None


class _Problems:
    """Solver of all problems, for ``loop.run``; a step is some of them."""

    def __init__(self, problem: IntervalProblem, options: MachineOptions) -> None:
        self.problem, self.options = problem, options

    def start(self) -> _Solved:
        """Begin with no problem."""
        return _Solved(())

    def step(self, state: _Solved) -> _Solved:
        """Compute the kernel matrix, or solve as many problems as there are threads."""
        problem, options = self.problem, self.options
        if state.K is None:
            K = KernelBetween.of(problem.kernel, problem.rows, np.float64).matrix()
            return _Solved((), K)
        begin = len(state.found)
        spare = _SHARE * options.memory - 8.0 * problem.n**2
        threads = max(1, min(options.threads, int(spare / (8.0 * problem.n**2))))
        chosen = range(begin, min(problem.n_problems, begin + threads))
        K = state.K
        done: list[IntervalDual] = []
        with options.deadline.ends_on_interrupt():
            for found in ordered_map(
                lambda p: self._solved(K, p), chosen, threads, options.deadline.interrupt
            ):
                done.append(found)
        return _Solved((*state.found, *done), K)

    def _solved(self, K: NDArray[np.float64], p: int) -> IntervalDual:
        problem = self.problem
        return solve_interval_dual(
            K,
            problem.low[:, p],
            problem.high[:, p],
            problem.below[:, p],
            problem.above[:, p],
            pull=float(problem.pull[p]),
            tol=self.options.tol,
            deadline=self.options.deadline,
        )

    def certificate(self, state: _Solved) -> Certificate:
        """Return the sums over the problems; those that are missing count as nothing proved."""
        n_kernel = 0 if state.K is None else state.K.size
        if len(state.found) < self.problem.n_problems:
            return Certificate(float("inf"), -float("inf"), gap=1.0, n_kernel=n_kernel)
        primal = sum(each.primal for each in state.found)
        dual = sum(each.dual for each in state.found)
        used = np.any([each.beta != 0 for each in state.found], axis=0)
        return Certificate(
            primal,
            min(dual, primal),
            gap=signed_gap(primal, dual),
            n_vectors=int(used.sum()),
            n_passes=1,
            n_kernel=n_kernel,
        )

    def stopped(self, state: _Solved) -> Stop | None:
        """Return what all problems came to."""
        if len(state.found) < self.problem.n_problems:
            return None
        if all(each.gap <= self.options.tol for each in state.found):
            return Stop(Ended.SOLVED, f"gap within {self.options.tol:g}")
        if self.options.deadline.passed:
            return self.options.deadline.stop
        return Stop(Ended.PRECISION, "nothing left to refine at this precision")

    def finish(self, state: _Solved) -> _Solved:
        """Put a feasible machine in the place of problems that were not reached."""
        missing = range(len(state.found), self.problem.n_problems)
        K = np.zeros((self.problem.n, 0)) if state.K is None else state.K
        return _Solved(state.found + tuple(self._untrained(p) for p in missing), K)

    def _untrained(self, p: int) -> IntervalDual:
        """Return coefficients of one size that are feasible, with nothing proved."""
        problem = self.problem
        below, above = problem.below[:, p], problem.above[:, p]
        pull = float(problem.pull[p])
        side = below if pull >= 0 else -above
        share = pull / float(side.sum()) if pull else 0.0
        middle = 0.5 * (problem.low[:, p] + problem.high[:, p])
        bias = float(np.median(middle)) if not pull else 0.0
        return IntervalDual(share * side, bias, float("inf"), -float("inf"), 1.0, 0)
