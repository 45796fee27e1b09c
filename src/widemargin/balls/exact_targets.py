"""The exact machine of regression with squared losses, on the whole kernel matrix."""

from __future__ import annotations

import numpy as np

from widemargin.arrays import Matrix
from widemargin.certificate import Certificate
from widemargin.expansion import Fitted, MachineOptions
from widemargin.kernel_between import KernelBetween
from widemargin.loop import Ended, Limits, Stop, bounds, relative_gap, run
from widemargin.problem import Problem
from widemargin.qp.interval_newton import IntervalPoint, IntervalProgram

# Matrices at a time: kernel values, those of the rows outside their intervals, and a factor.
_MATRICES = 3
# Share of the memory budget that they may take.
_MATRICES_SHARE = 0.9
# A step that lowers the objective by less than this share gains nothing.
_DIGITS = 1e-13
# Machines are solved to this gap at the least: a step more costs little, and squared losses end in
# the exact answer.
_FINE = 1e-9


def targets_fit(n: int, memory: int) -> bool:
    """Return whether the matrices of the exact machine of so many rows fit into memory."""
    return _MATRICES * 8 * n**2 <= _MATRICES_SHARE * memory


def fit_exact_targets(problem: Problem, options: MachineOptions) -> Fitted:
    """Fit problems of regression to all rows.

    Parameters
    ----------
    problem : Problem
        Problems of one C, with targets.
    options : MachineOptions
        How exactly.
    """
    n, limit = problem.n, options.max_vectors
    if limit is not None and limit < n:
        raise ValueError(
            f"max_vectors={limit} is less than the {n:,} different rows, and the exact machine of "
            "regression has no budget of vectors; use engine='span'."
        )
    if not targets_fit(n, options.memory):
        needed = int(_MATRICES * 8 * n**2 / _MATRICES_SHARE / 2**20) + 1
        raise ValueError(
            f"engine='exact' needs the kernel matrix of {n:,} rows, which does not fit into "
            f"memory; give memory='{needed}MB', engine='span' or engine='cells'."
        )
    solver = ExactTargets(problem, options)
    limits = Limits(options.max_iter, options.deadline, patience=options.max_iter)
    result = run(solver, limits, options.report)
    alpha = result.state.alpha
    index = np.flatnonzero(alpha.any(axis=1))
    return Fitted(
        problem.rows.take(index),
        index,
        alpha[index],
        problem.bias * alpha.sum(axis=0),
        result.certificate,
        result.stop,
    )


class ExactTargets:
    """Solver of all problems on one kernel matrix, for ``loop.run``; a step is one of Newton's.

    Parameters
    ----------
    problem : Problem
        Problems of one C, with targets.
    options : MachineOptions
        How exactly.
    matrix : ndarray of shape (n, n), default=None
        The kernel values, where they are known.
    """

    def __init__(
        self, problem: Problem, options: MachineOptions, matrix: Matrix | None = None
    ) -> None:
        assert problem.regression is not None
        self.problem, self.options = problem, options
        if matrix is None:
            matrix = KernelBetween.of(problem.kernel, problem.rows, np.float64).matrix()
        targets = problem.regression
        self.program = IntervalProgram(
            np.asarray(matrix, dtype=np.float64),
            targets.of(np.arange(problem.n_problems)),
            targets.epsilon,
            problem.ridge(0),
            problem.bias,
            options.threads,
        )
        self._last = np.inf

    def start(self) -> IntervalPoint:
        """Return the zero function."""
        return self.program.start()

    def step(self, state: IntervalPoint) -> IntervalPoint:
        """Return the point after a step of Newton's."""
        self._last = float(self.program.objectives(state)[0].sum())
        return self.program.step(state)

    def certificate(self, state: IntervalPoint) -> Certificate:
        """Return primal and dual of all problems together."""
        primal, dual = (float(each.sum()) for each in self.program.objectives(state))
        return bounds(
            primal,
            dual,
            n_vectors=int(state.alpha.any(axis=1).sum()),
            n_passes=1,
            n_kernel=self.problem.n**2,
        )

    def stopped(self, state: IntervalPoint) -> Stop | None:
        """Return whether the gap is met, or nothing more is gained."""
        primal, dual = (float(each.sum()) for each in self.program.objectives(state))
        gap = relative_gap(primal, dual)
        if gap <= min(self.options.tol, _FINE):
            return Stop(Ended.SOLVED, f"gap within {self.options.tol:g}")
        if state.solvable and self._last - primal > _DIGITS * primal:
            return None
        if gap <= self.options.tol:
            return Stop(Ended.SOLVED, f"gap within {self.options.tol:g}")
        return Stop(Ended.PRECISION, "nothing left to gain at this precision")

    def finish(self, state: IntervalPoint) -> IntervalPoint:
        """Return the state as it is."""
        return state
