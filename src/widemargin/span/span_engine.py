"""The span engine: how large a span may be, its fit, and what it says of the full problem."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from widemargin.arrays import Matrix, Values, Vector
from widemargin.expansion import Fitted, MachineOptions
from widemargin.loop import Limits, Result, run
from widemargin.problem import Problem, Targets
from widemargin.qp.interval_newton import IntervalProgram
from widemargin.qp.margin_dual import solve_margin_dual
from widemargin.span.basis import Vectors, kernel_matrix
from widemargin.span.descent import SpanState
from widemargin.span.device_basis import DeviceBasis
from widemargin.span.device_dual import full_dual_there
from widemargin.span.landmarks import Choice, CoreVectors, Strategy
from widemargin.span.levels import SpanFit
from widemargin.span.shards import Shards
from widemargin.span.span_sizes import SpanSizes
from widemargin.threads import ordered_map

# Gaps below this ask for float64.
_FINE_TOL = 1e-4
# Share of the memory budget for matrices and kernel values; blocks of rows need the rest.
_SHARE = 0.85
# The part of it that matrices may take at the most.
_MATRICES_SHARE = 0.95
# Matrices at a time, of the size of the vectors squared.
_MATRICES = 6
# The same in a shard: a chunk of rows, their products and sums.
_SHARD_MATRICES = 3
# Bytes of what a shard keeps of a row, beside its values in each problem.
_ROW_BYTES = 60
# Vectors at the most, where the gain decides on their number: so many, and no more than this share
# of the rows, for beyond it an exact machine is as fast; and where all are drawn at once.
_MOST_AUTO = 4096
_AUTO_SHARE = 0.2
_AUTO_AT_ONCE = 1024
# Relative gap to which the full problem is solved on the vectors' rows: its bound is rarely tight
# enough for more to matter.
_FULL_GAP = 0.02
# Rounds of its solver at the most.
_FULL_ROUNDS = 20


@dataclass(frozen=True, kw_only=True)
class SpanOptions(MachineOptions):
    """How a machine is fitted in a span; `max_vectors` None leaves it to the gain.

    Attributes
    ----------
    landmarks : Strategy
        Where vectors come from.
    patience : int
        Steps without progress that count as a stall.
    prove : bool
        Prove the gap, rather than estimate it.
    span_sizes : SpanSizes
        Sizes at which the fit changes its ways.
    """

    landmarks: Strategy = field(default_factory=CoreVectors)
    patience: int = 50
    prove: bool = True
    span_sizes: SpanSizes = field(default_factory=SpanSizes)


def fit_span(problem: Problem, options: SpanOptions) -> Fitted:
    """Fit all rows inside the span of a few of them.

    Parameters
    ----------
    problem : Problem
        What is to be fitted.
    options : SpanOptions
        How.
    """
    return fit_span_with_scores(problem, options)[0]


def fit_span_with_scores(problem: Problem, options: SpanOptions) -> tuple[Fitted, Values]:
    """Return a machine in a span, and its values at all rows, of shape (n, n_problems)."""
    solver, result = solve_in_span(problem, options)
    return fitted_of(solver, result, options), solver.scores()


def fitted_of(solver: SpanFit, result: Result[SpanState], options: SpanOptions) -> Fitted:
    """Return the machine that a solver has found."""
    beta, certificate = result.state.beta, result.certificate
    with options.deadline.ends_on_interrupt():
        certificate = replace(certificate, full_dual=full_dual(solver))
    n = solver.shards.n
    wanted = min(n, vectors_wanted(n, solver.choice, options))
    if solver.max_vectors < wanted and solver.choice.drawn >= solver.max_vectors:
        room = f"memory leaves room for {solver.max_vectors:,} of {wanted:,} vectors"
        certificate = replace(certificate, stopped=f"{certificate.stopped}; {room}")
    # A second interrupt may leave vectors that have no coefficients yet.
    vectors = solver.basis.vectors[: len(beta) - 1]
    return Fitted(vectors.values, vectors.index, beta[:-1], beta[-1], certificate, result.stop)


def solve_in_span(problem: Problem, options: SpanOptions) -> tuple[SpanFit, Result[SpanState]]:
    """Return the solver of problems in a span, and how it ended."""
    solver = span_solver(problem, options)
    limits = Limits(options.max_iter, options.deadline, options.patience)
    return solver, run(solver, limits, options.report)


def span_solver(problem: Problem, options: SpanOptions) -> SpanFit:
    """Return a solver of problems in a span that fits into memory."""
    choice = options.landmarks.begin(problem.rows, problem.kernel, problem.weight, options.rng)
    return solver_of(problem, choice, span_size(problem, problem.n, choice, options), options)


@dataclass(frozen=True)
class SpanSize:
    """How large a span may be, and what is kept in memory.

    Attributes
    ----------
    vectors : int
        Vectors at the most.
    dtype : dtype
        Precision of kernel values.
    room : int
        Bytes for kernel values and factors.
    least_factors : int
        Bytes of it that are for factors in any case.
    """

    vectors: int
    dtype: np.dtype[Any]
    room: int
    least_factors: int

    def state(self, n_rows: int, n_problems: int) -> int:
        """Return the bytes of what is kept of rows: class, weight, number, key, scores."""
        return n_rows * (_ROW_BYTES + 2 * self.dtype.itemsize * n_problems)

    def room_of_shards(self, memory: int, n_rows: int, n_problems: int) -> int:
        """Return the bytes for kernel values of rows whose shards work one at a time.

        Raise if so much memory is not enough for what is kept of them.
        """
        state = self.state(n_rows, n_problems)
        if state > _SHARE * memory:
            raise ValueError(
                f"memory leaves {memory / 1e6:,.1f} MB for {n_rows:,} rows, but what is kept of "
                f"each (class, weight, number and scores, {state // max(1, n_rows)} bytes) takes "
                f"{state / 1e6:,.1f} MB; give more memory, or a cluster with more workers."
            )
        return max(0, int(_SHARE * memory) - state - 8 * _SHARD_MATRICES * self.vectors**2)


def span_size(problem: Problem, n: int, choice: Choice, options: SpanOptions) -> SpanSize:
    """Return how large a span of n rows may be."""
    room = _SHARE * options.memory
    # A factor of a Newton matrix for each problem, in float32: with fewer, steps are many.
    n_factors = 1 if problem.feels_all else len(np.unique(problem.labelling, axis=1).T)
    bytes_each = 8 * _MATRICES + 4 * n_factors
    limit = max(1, int(np.sqrt(_MATRICES_SHARE * room / bytes_each)))
    most = min(limit, vectors_wanted(n, choice, options))
    # float32 where its rounding does not matter, and its speed does.
    few = n * most <= options.span_sizes.few_values
    coarse = problem.kernel.constant_diagonal is not None and options.tol >= _FINE_TOL
    return SpanSize(
        most,
        np.dtype(np.float32 if coarse and not few else np.float64),
        int(room - 8 * _MATRICES * most**2),
        4 * n_factors * (most + 1) ** 2,
    )


def solver_of(
    problem: Problem,
    choice: Choice,
    size: SpanSize,
    options: SpanOptions,
    shards: Shards | None = None,
) -> SpanFit:
    """Return a solver of problems in a span of some size; rows may be elsewhere, in shards."""
    return SpanFit(
        problem,
        choice,
        tol=options.tol,
        max_vectors=size.vectors,
        grow=options.max_vectors is None,
        dtype=size.dtype,
        room=size.room,
        least_factors=size.least_factors,
        earlier=options.earlier,
        bounds=options.prove,
        elsewhere=shards,
        sizes=options.span_sizes,
    )


def most_vectors(n_rows: int) -> int:
    """Return how many vectors a span of so many rows may have where the gain decides."""
    return min(_MOST_AUTO, int(_AUTO_SHARE * n_rows))


def vectors_wanted(n: int, choice: Choice, options: MachineOptions) -> int:
    """Return how many vectors there may be, whatever the memory."""
    if options.max_vectors is not None:
        return options.max_vectors
    if choice.available is not None:
        return choice.available
    # Drawn at once, nobody has looked at what half of them would do.
    most = most_vectors(n) if choice.nested else 0
    return min(n, max(_AUTO_AT_ONCE, most))


def full_dual_of_targets(gram: Matrix, targets: Targets, ridge: Vector, bias: float) -> float:
    """Return the best dual value of a problem of regression on the vectors' rows."""
    program = IntervalProgram(gram, targets.values[:, targets.output], targets.epsilon, ridge, bias)
    point = program.start()
    for _ in range(_FULL_ROUNDS):
        if program.gap(point) <= _FULL_GAP:
            break
        point = program.step(point)
    return float(program.objectives(point)[1].sum())


def full_dual(solver: SpanFit) -> float | None:
    """Return a lower bound on the full problem: its best dual value on the vectors' rows.

    Dual variables that are zero elsewhere are feasible for the problem without a span. If the
    vectors are not rows, as many rows stand for them; None if no row is at hand.
    """
    problem, basis = solver.problem, solver.basis
    if not problem.n:
        return None
    if isinstance(basis, DeviceBasis) and basis.there.device.is_cuda:
        return full_dual_there(problem, basis, _FULL_GAP, _FULL_ROUNDS)
    index, gram = basis.vectors.index, basis.gram_here
    if index is None:
        index = np.arange(min(problem.n, basis.size))
        stand_in = Vectors(problem.rows.take(index), index)
        gram = kernel_matrix(problem.kernel, problem.rows, stand_in, stand_in)

    def best(p: int) -> float:
        counts = problem.counts[problem.fold[index], p]
        counted = counts > 0
        values = gram if counted.all() else np.ascontiguousarray(gram[np.ix_(counted, counted)])
        ridge = problem.ridge(p, index[counted]) / counts[counted]
        if problem.regression is not None:
            targets = problem.regression.columns(np.array([p])).subset(index[counted])
            return full_dual_of_targets(values, targets, ridge, problem.bias)
        sign = problem.sign(p, index[counted])
        point = solve_margin_dual(values, sign, ridge, gap=_FULL_GAP, max_rounds=_FULL_ROUNDS)
        return point.objectives()[1]

    return float(sum(ordered_map(best, range(problem.n_problems), problem.threads)))
