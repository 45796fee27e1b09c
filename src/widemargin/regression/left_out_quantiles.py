"""Predictions of rows by machines that have not seen them, for losses in linear pieces.

The exact machines of all folds are solved on one kernel matrix, where rows that are held out have
the price 0, from the coefficients of the machine of all rows. In a span they have its vectors, and
begin with its coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cholesky

from widemargin.arrays import IndexArray, Matrix
from widemargin.expansion import Expansion, Fitted, MachineOptions
from widemargin.intervals import IntervalProblem
from widemargin.kernel_between import KernelBetween
from widemargin.loop import Limits, run
from widemargin.qp.interval_dual import IntervalDual, solve_interval_dual
from widemargin.span.basis import Basis, Vectors, kernel_matrix
from widemargin.span.interval_descent import IntervalFit, IntervalState
from widemargin.span.values import KernelValues
from widemargin.threads import ordered_map

# Zones of rounded kinks to begin with, over the deviation of the errors.
_FIRST_ZONE = 0.01
# Share of the memory budget for kernel values of a span.
_SHARE = 0.5
# Gaps below this ask for float64.
_FINE_TOL = 1e-4
# Steps without progress that count as a stall.
_PATIENCE = 200


@dataclass(frozen=True)
class LeftOutExactly:
    """Exact machines without some rows.

    Attributes
    ----------
    problem : IntervalProblem
        All rows.
    fitted : Fitted
        The machines of all rows.
    options : MachineOptions
        How exactly.
    """

    problem: IntervalProblem
    fitted: Fitted
    options: MachineOptions

    @cached_property
    def matrix(self) -> Matrix:
        """Kernel values of all rows with each other."""
        return KernelBetween.of(self.problem.kernel, self.problem.rows, np.float64).matrix()

    def answered(self, kept: IndexArray, held: IndexArray) -> Matrix | None:
        """Return predictions of rows by machines of others; None if there was no time."""
        problem, deadline = self.problem, self.options.deadline
        if deadline.passed:
            return None
        counted = np.zeros(problem.n)
        counted[kept] = 1.0
        start = np.zeros((problem.n, problem.n_problems))
        start[self.fitted.index] = self.fitted.coef
        start *= counted[:, None]

        def solved(p: int) -> IntervalDual:
            return solve_interval_dual(
                self.matrix,
                problem.low[:, p],
                problem.high[:, p],
                problem.below[:, p] * counted,
                problem.above[:, p] * counted,
                pull=float(problem.pull[p]),
                start=start[:, p],
                tol=self.options.tol,
                deadline=deadline,
            )

        with deadline.ends_on_interrupt():
            # One at a time: a thread more would need a matrix more.
            every = range(problem.n_problems)
            found = list(ordered_map(solved, every, 1, deadline.interrupt))
        if deadline.passed:
            return None
        coef = np.column_stack([each.beta for each in found])
        bias = np.array([each.intercept for each in found])
        answer: Matrix = self.matrix[held] @ coef + bias
        return answer


@dataclass(frozen=True)
class LeftOutOfSpan:
    """Machines without some rows, in the span of the vectors of a fit.

    Attributes
    ----------
    problem : IntervalProblem
        All rows.
    fitted : Fitted
        Machines in a span.
    options : MachineOptions
        How exactly.
    """

    problem: IntervalProblem
    fitted: Fitted
    options: MachineOptions

    @cached_property
    def basis(self) -> Basis:
        """The vectors, in the order of their coefficients; they are independent."""
        vectors = Vectors(self.fitted.vectors, self.fitted.index)
        gram = kernel_matrix(self.problem.kernel, self.problem.rows, vectors, vectors)
        return Basis(vectors, gram, cholesky(gram, lower=True))

    def answered(self, kept: IndexArray, held: IndexArray) -> Matrix | None:
        """Return predictions of rows by machines of others; None if there was no time."""
        problem, options = self.problem, self.options
        if options.deadline.passed:
            return None
        part = problem.part(kept)
        room = int(_SHARE * options.memory)
        warm = self._start(part)
        coarse = problem.kernel.constant_diagonal is not None and options.tol >= _FINE_TOL
        dtype = np.dtype(np.float32 if coarse else np.float64)
        values = KernelValues(part.rows, part.kernel, dtype, room, self.basis.size, part.n_problems)
        values.add(self.basis.vectors.values)
        solver = IntervalFit(part, self.basis, values, options.tol, warm)
        limits = Limits(options.max_iter, options.deadline, _PATIENCE)
        with options.deadline.ends_on_interrupt():
            state = run(solver, limits).state
        if options.deadline.passed:
            return None
        machine = Expansion(problem.kernel, self.fitted.vectors, state.coef, state.bias)
        return machine.values(problem.rows.subset(held))

    def _start(self, part: IntervalProblem) -> IntervalState:
        """Return the machines of all rows as a point to start from, with narrow zones."""
        coef, bias = self.fitted.coef, self.fitted.intercept
        nothing, none = np.zeros((0, len(bias))), np.zeros(len(bias))
        middle = 0.5 * (part.low + part.high)
        machine = Expansion(part.kernel, self.fitted.vectors, coef, bias)
        spread = np.std(middle - machine.values(part.rows), axis=0)
        delta = _FIRST_ZONE * np.where(spread > 0, spread, 1.0)
        return IntervalState(coef, bias, nothing, nothing, delta, none, none, none, none, nothing)
