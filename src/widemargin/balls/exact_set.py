"""The exact machine of one problem with few support vectors, found on a set of rows that grows.

Where few rows support the machine, only their kernel values are made (``growing_set``), however
many rows there are. Where most do, this ends early, and says so.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from widemargin.balls.ball import Precision, certificate_of, earlier_alpha
from widemargin.balls.growing_set import GapOf, GrowingSet
from widemargin.certificate import Certificate
from widemargin.expansion import MachineOptions
from widemargin.kernel_between import KernelBetween
from widemargin.loop import Ended, Stop, relative_gap
from widemargin.problem import Problem

# Share of the memory budget for the kernel values of support vectors with all rows.
_VALUES_SHARE = 0.5


class ExactSet:
    """Solve one problem on a set of rows: a solver for ``loop.run`` with a single step.

    Parameters
    ----------
    problem : Problem
        One problem.
    precision : Precision
        Of the kernel values.
    options : MachineOptions
        How exactly.
    work : float, default=inf
        Multiplications that a factor of the support may take.

    Attributes
    ----------
    expected : float
        How many support vectors there were or will be, as far as one could tell at the end.
    """

    def __init__(
        self,
        problem: Problem,
        precision: Precision,
        options: MachineOptions,
        work: float = math.inf,
    ) -> None:
        self.problem = problem
        self.precision = precision
        self.options = options
        self.n_kernel = 0
        self.work = work
        self.tried = False
        self.expected = math.inf

    def start(self) -> GapOf:
        """Begin at zero, or at an earlier solution."""
        alpha = earlier_alpha(self.problem, self.options.earlier)[0]
        loss = float((0.5 / self.problem.ridge(0)).sum())
        # That of the function zero: of another nothing is known before the first pass.
        return GapOf(alpha, loss, 0.0, 1.0)

    def step(self, state: GapOf) -> GapOf:
        """Let the set grow until it has all rows that matter, or would have too many."""
        problem, options = self.problem, self.options
        room = _VALUES_SHARE * options.memory / np.dtype(self.precision.dtype).itemsize
        growing = GrowingSet(
            KernelBetween.of(problem.kernel, problem.rows, self.precision.dtype),
            np.arange(problem.n),
            problem.sign(0),
            problem.ridge(0),
            self.precision,
            options.tol,
            threads=options.threads,
            most=int(room / problem.n),
            work=self.work,
        )
        found = growing.solved(state.alpha, options.deadline)
        self.n_kernel += growing.n_kernel
        self.tried, self.expected = True, growing.expected
        return found if np.isfinite(found.primal) else state

    def certificate(self, state: GapOf) -> Certificate:
        """Return primal and dual."""
        return certificate_of(
            [(state.primal, state.dual)],
            [state.gap],
            n_vectors=int(np.count_nonzero(state.alpha)),
            n_passes=1,
            n_kernel=self.n_kernel,
        )

    def stopped(self, state: GapOf) -> Stop | None:
        """Return what the set came to, once there has been one."""
        if state.gap <= self.options.tol:
            return Stop(Ended.SOLVED, f"gap within {self.options.tol:g}")
        if not self.tried:
            return None
        if self.options.deadline.passed:
            return self.options.deadline.stop
        if relative_gap(state.primal, state.dual) <= self.options.tol:
            return Stop(Ended.PRECISION, "nothing left to refine at this precision")
        return Stop(Ended.CAPACITY, "too many rows support the machine for a set of them")

    def finish(self, state: GapOf) -> GapOf:
        """Return the state as it is: it speaks of all rows."""
        return state

    def alpha(self, state: GapOf) -> NDArray[np.float64]:
        """Return the dual variables, of shape (1, n)."""
        return state.alpha[None]
