"""The span of losses on intervals: how many vectors, which, and the fit of all rows in it.

As with squared losses (``levels``) a fit starts small: few vectors and a sample of the rows, then
twice as many vectors, and so on, each from the solution before (``interval_descent``), as long as
a doubling lowers the objective by a share of it that is worth it. Vectors of a core are rows that
the machine so far feels, in proportion to their dual variables. Then come all rows, in the span of
the vectors that were found.

Kernel values are float32 where that is enough. If the gap is not met when primal and dual are
stated in float64, the fit goes on in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.certificate import Certificate
from widemargin.expansion import Fitted, MachineOptions
from widemargin.intervals import IntervalProblem
from widemargin.loop import Ended, Limits, run
from widemargin.span.basis import Basis, Vectors
from widemargin.span.interval_descent import IntervalFit, IntervalState
from widemargin.span.landmarks import Choice, RandomVectors, Strategy
from widemargin.span.levels import TOLERANCE
from widemargin.span.span_engine import SpanOptions, vectors_wanted
from widemargin.span.span_sizes import SpanSizes
from widemargin.span.values import KernelValues

# Share of the memory budget for kernel values and matrices.
_SHARE = 0.7
# Matrices at a time, of the size of the vectors squared.
_MATRICES = 6
# Gaps below this ask for float64.
_FINE_TOL = 1e-4
# Rows in multiples of the vectors that are fitted first, and at the least.
_SAMPLE_ROWS = 16
_LEAST_SAMPLE = 8192
# What a doubling of the vectors must lower the objective by: more than with squared losses, for
# zones that shrink ask for many more Newton matrices.
_WORTH_DOUBLING = 2e-2
# The gap of a number of vectors that more will follow.
_LEVEL_TOL = 5e-3
# A level is a start for the next one if the objective fell by no more than this share with it.
_NEAR = 0.2
# Steps after which it is left in any case.
_MOST_STEPS = 30
# Ends after which float64 may find more.
_PRECISE = (Ended.SOLVED, Ended.PRECISION)


@dataclass(frozen=True, kw_only=True)
class IntervalSpanOptions(MachineOptions):
    """How machines are fitted in a span; `max_vectors` None leaves it to the gain.

    Attributes
    ----------
    landmarks : Strategy
        Where vectors come from.
    patience : int
        Steps without progress that count as a stall.
    span_sizes : SpanSizes
        Sizes at which the fit changes its ways.
    most_auto : int
        Vectors at the most, where the gain decides on their number.
    """

    landmarks: Strategy = field(default_factory=RandomVectors)
    patience: int = 200
    span_sizes: SpanSizes = field(default_factory=SpanSizes)
    most_auto: int = 1024

    @classmethod
    def of(cls, options: SpanOptions) -> IntervalSpanOptions:
        """Return what options of a span say."""
        known = {each.name for each in fields(cls)} - {"patience"}
        return cls(**{name: value for name, value in vars(options).items() if name in known})

    @property
    def limits(self) -> Limits:
        """When a loop ends."""
        return Limits(self.max_iter, self.deadline, self.patience)


def fit_interval_span(problem: IntervalProblem, options: IntervalSpanOptions) -> Fitted:
    """Fit all rows inside the span of a few of them.

    Parameters
    ----------
    problem : IntervalProblem
        What is to be fitted, rows in random order.
    options : IntervalSpanOptions
        How.
    """
    choice = options.landmarks.begin(problem.rows, problem.kernel, problem.weight, options.rng)
    wanted = min(problem.n, vectors_wanted(problem.n, choice, options))
    if options.max_vectors is None and choice.available is None:
        wanted = min(wanted, options.most_auto)
    room = int(_SHARE * options.memory)
    most = max(1, min(wanted, int(np.sqrt(0.5 * room / (8 * _MATRICES)))))
    coarse = problem.kernel.constant_diagonal is not None and options.tol >= _FINE_TOL
    levels = _Levels(problem, options, choice, most, np.dtype(np.float32 if coarse else np.float64))
    levels.grow()
    solver = levels.of_all_rows()
    result = run(solver, options.limits, options.report)
    if coarse and result.stop.kind in _PRECISE and not solver.solved(result.state):
        # What float32 called solved is not.
        left = max(1, options.max_iter - result.certificate.n_iter)
        start, before = replace(result.state, delta=0.25 * result.state.delta), result.certificate
        solver = levels.precise(start)
        result = run(solver, replace(options.limits, max_iter=left), options.report)
        result = replace(result, certificate=_together(before, result.certificate))
    state, vectors, certificate = result.state, levels.basis.vectors, result.certificate
    if most < wanted and choice.drawn >= most:
        said = f"memory leaves room for {most:,} of {wanted:,} vectors"
        certificate = replace(certificate, stopped=f"{certificate.stopped}; {said}")
    return Fitted(vectors.values, vectors.index, state.coef, state.bias, certificate, result.stop)


class _Levels:
    """Vectors that join as long as they are worth it, on a sample of the rows."""

    def __init__(
        self,
        problem: IntervalProblem,
        options: IntervalSpanOptions,
        choice: Choice,
        most: int,
        dtype: np.dtype[Any],
    ) -> None:
        self.problem, self.options, self.choice, self.most = problem, options, choice, most
        self.dtype = dtype
        self.room = max(0, int(_SHARE * options.memory) - 8 * _MATRICES * most**2)
        size = max(_LEAST_SAMPLE, _SAMPLE_ROWS * most)
        self.sample = problem if problem.n <= 2 * size else problem.subset(np.arange(size))
        self.values = self._values(self.sample, dtype)
        self.basis = Basis.empty()
        self.state: IntervalState | None = None

    def grow(self) -> None:
        """Add vectors, and fit the sample each time but the last, if that is all rows."""
        options, choice, before = self.options, self.choice, np.inf
        # With none but random rows to come, and as many as there may be, no look is needed.
        at_once = not choice.nested or (
            options.max_vectors is not None and isinstance(options.landmarks, RandomVectors)
        )
        first = self.most if at_once else min(self.most, options.span_sizes.first_vectors)
        self._join(choice.draw(first, None))
        while True:
            last = choice.drawn >= self.most or choice.exhausted
            if last and self.sample is self.problem:
                return
            tol = 3.0 * options.tol if last else max(3.0 * options.tol, _LEVEL_TOL)
            steps = options.max_iter if last else min(_MOST_STEPS, options.max_iter)
            limits = replace(options.limits, max_iter=steps)
            result = run(self._solver(self.sample, tol), limits)
            reached = float(result.state.primal.sum())
            worth = reached < before - _WORTH_DOUBLING * abs(reached)
            self.state = result.state
            if last or options.deadline.passed or not (worth or options.max_vectors is not None):
                return
            # Zones of another span, where the objective is far away, are too narrow for the next.
            near = before - reached <= _NEAR * abs(reached)
            self.state = result.state if near and result.converged else None
            before = reached
            count = min(2 * choice.drawn, self.most) - choice.drawn
            self._join(choice.draw(count, _Felt(self.problem.n, result.state.alpha)))

    def of_all_rows(self) -> IntervalFit:
        """Return the solver of all rows in the span of the vectors."""
        if self.sample is not self.problem:
            self.values = self._values(self.problem, self.dtype)
            self.values.add(self.basis.vectors.values)
        return self._solver(self.problem, self.options.tol, exact=True)

    def precise(self, start: IntervalState) -> IntervalFit:
        """Return the solver of all rows in float64."""
        self.values = self._values(self.problem, np.dtype(np.float64))
        self.values.add(self.basis.vectors.values)
        self.state = start
        return self._solver(self.problem, self.options.tol)

    def _solver(self, problem: IntervalProblem, tol: float, exact: bool = False) -> IntervalFit:
        return IntervalFit(problem, self.basis, self.values, tol, self.state, exact)

    def _join(self, vectors: Vectors) -> None:
        old, problem = self.basis.size, self.problem
        tolerance = TOLERANCE[self.dtype]
        self.basis = self.basis.extended(problem.kernel, vectors, tolerance, problem.rows)
        if self.basis.size > old:
            self.values.add(self.basis.vectors.values[old:])

    def _values(self, problem: IntervalProblem, dtype: np.dtype[Any]) -> KernelValues:
        width = self.basis.size if hasattr(self, "basis") else self.most
        given = problem.rows, problem.kernel, dtype, self.room, width, problem.n_problems
        return KernelValues(*given)


@dataclass(frozen=True)
class _Felt:
    """How much rows are felt: the size of their dual variables, of all problems together."""

    n: int
    alpha: Any

    @property
    def n_rows(self) -> int:
        """Rows that were looked at."""
        return len(self.alpha)

    def __call__(self) -> Vector:
        """Return it for all rows; those that were not looked at are not felt."""
        felt = np.zeros(self.n)
        felt[: len(self.alpha)] = np.abs(self.alpha).sum(axis=1)
        return felt


def _together(before: Certificate, after: Certificate) -> Certificate:
    """Return what was proved at last, with the cost of all."""
    return replace(
        after,
        n_iter=before.n_iter + after.n_iter,
        n_passes=before.n_passes + after.n_passes,
        n_kernel=before.n_kernel + after.n_kernel,
        seconds=before.seconds + after.seconds,
    )
