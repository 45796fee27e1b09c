"""The engine of MaxMarginDA: the finder of a solver, and its rounds of directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.balls import CoreOptions
from widemargin.directions.core_sets import CoreSetFinder
from widemargin.directions.deflation import Deflation
from widemargin.directions.direct import Direct
from widemargin.directions.in_span import SpanFinder
from widemargin.directions.linear import LinearFinder
from widemargin.directions.linear_hinge import LinearHingeFinder
from widemargin.directions.rounds import Direction, Extraction, Found, constant_objectives
from widemargin.loop import Limits, Resources, Result, run
from widemargin.problem import Problem
from widemargin.span import (
    Basis,
    CoreVectors,
    GivenVectors,
    SpanFit,
    SpanOptions,
    SpanSizes,
    Strategy,
    span_solver,
)


@dataclass(frozen=True, kw_only=True)
class DirectionOptions(Resources):
    """How directions are found; see `MaxMarginDA` for what is not said here.

    Attributes
    ----------
    linear : bool
        Whether directions are sought in the input space.
    each_step : bool
        Whether steps within a round are reported too.
    """

    solver: str
    linear: bool
    n_directions: int
    across: bool
    loss: str
    constraint: str
    tol: float
    epsilon: float
    inner: str
    sample_size: int | None
    fit_intercept: bool
    early_end: bool
    max_iter: int
    max_vectors: int | None
    landmarks: Strategy = field(default_factory=CoreVectors)
    each_step: bool = True
    span_sizes: SpanSizes = field(default_factory=SpanSizes)


@dataclass(frozen=True)
class Elsewhere:
    """Rows that are not in memory, and a span that they are fitted in.

    Attributes
    ----------
    begin : callable
        Returns the solver of all problems.
    class_weight : ndarray of shape (n_classes,)
        Weight of the rows of each class.
    scope : {"span", "full"}
        Whether there are directions outside of the span.
    """

    begin: Callable[[SpanOptions], SpanFit]
    class_weight: Vector
    scope: str


def find_directions(
    problem: Problem, options: DirectionOptions, elsewhere: Elsewhere | None = None
) -> tuple[Result[Found[Any]], Basis | None, Problem]:
    """Find one round of directions after another.

    Parameters
    ----------
    problem : Problem
        What is to be fitted.
    options : DirectionOptions
        How.
    elsewhere : Elsewhere, default=None
        The rows, if `problem` has none.

    Returns
    -------
    Result, Basis or None, Problem
        The directions, the span they are in, and the problem with the rows that the span is of.
    """
    finder = _finder(problem, options, elsewhere)
    # A ball within ε says less of the objective than a gap of that size does.
    tol = 0.01 * options.epsilon if options.solver == "core" else options.tol
    if elsewhere is None:
        weights: Vector = np.bincount(problem.code, problem.weight).astype(np.float64)
        total = float(problem.weight.sum())
    else:
        weights, total = elsewhere.class_weight, float(elsewhere.class_weight.sum())
    constant = constant_objectives(
        float(problem.C[0]),
        total,
        weights @ problem.table,
        options.loss,
        bias=options.fit_intercept,
    )
    extraction: Extraction[Any] = Extraction(
        finder,
        constant,
        options.n_directions,
        options.across,
        tol,
        options.deadline,
        options.early_end,
    )
    # Each round is a success of its own: there is no stall.
    limits = Limits(deadline=options.deadline, patience=len(extraction.rounds) + 1)
    result = run(extraction, limits, options.report)
    if isinstance(finder, SpanFinder):
        return result, finder.basis, finder.problem
    return result, None, problem


def of_unit_vectors(options: DirectionOptions, n_features: int) -> DirectionOptions:
    """Return options of a span that is all of the input space."""
    unit_vectors = GivenVectors(np.eye(n_features))
    return replace(options, linear=False, landmarks=unit_vectors, max_vectors=None)


def check_all_columns(solver: SpanFit, n_features: int, memory: int) -> SpanFit:
    """Return a solver in the span of all unit vectors, or raise if there is no room for them."""
    if solver.max_vectors < n_features:
        raise ValueError(
            f"X has {n_features:,} columns, but memory of {memory / 1e6:,.1f} MB has room for "
            f"matrices of {solver.max_vectors:,} of them squared; raise memory, or pass all rows "
            "as one NumPy array."
        )
    return solver


def _on_device(problem: Problem) -> Elsewhere:
    """Return the rows of a problem as those on a device are fitted: in all of the input space."""

    def begin(span: SpanOptions) -> SpanFit:
        return check_all_columns(span_solver(problem, span), problem.rows.shape[1], span.memory)

    return Elsewhere(begin, np.bincount(problem.code, problem.weight).astype(np.float64), "full")


def _finder(problem: Problem, options: DirectionOptions, elsewhere: Elsewhere | None) -> Any:
    """Return what finds the directions."""
    solver, constraint, tol = options.solver, options.constraint, options.tol
    if options.linear and options.loss == "hinge":
        return LinearHingeFinder(problem, solver, constraint, tol, options.memory)
    if options.linear and elsewhere is None and problem.rows.device is not None:
        # Newton's steps in the input space read rows here; those in a span are taken there.
        elsewhere = _on_device(problem)
        options = of_unit_vectors(options, problem.rows.shape[1])
    if options.linear:
        # All of the input space is spanned by its unit vectors.
        method = "direct" if solver == "span" else solver
        biased = options.fit_intercept
        return LinearFinder(problem, method, constraint, tol, options.max_iter, biased)
    if solver in ("deflation", "direct"):
        kind = Deflation if solver == "deflation" else Direct
        biased = options.fit_intercept
        return kind(problem, options.loss, constraint, tol, options.threads, biased)
    # Lines of the steps would hide those of the rounds.
    known = {name: getattr(options, name) for name in Resources.__dataclass_fields__}
    known |= {"report": options.report if options.each_step else None, "max_iter": options.max_iter}
    if solver == "core":
        core = CoreOptions(
            **known,
            by_ball=True,
            growth="one",
            sample_size=options.sample_size,
            # The gap is no measure of a ball's progress, so it must not end it.
            patience=options.max_iter,
        )
        return CoreSetFinder(problem, constraint, options.epsilon, core, options.inner)
    span = SpanOptions(
        **known,
        landmarks=options.landmarks,
        max_vectors=options.max_vectors,
        tol=tol,
        span_sizes=options.span_sizes,
    )
    if elsewhere is None:
        return SpanFinder(problem, constraint, span)
    return SpanFinder(problem, constraint, span, elsewhere.begin, elsewhere.scope)


def why_nothing(state: Found[Any]) -> str:
    """Return why there is no direction."""
    if state.cut:
        return (
            f"MaxMarginDA was stopped before it had found a direction ({state.cut.reason}); give "
            "it more time or steps."
        )
    return (
        "X holds no direction that separates the classes better than a constant does; are its rows "
        "all equal, or C too small?"
    )


def direction_table(
    directions: Sequence[Direction[Any]], names: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """Return the columns of a table with a line for each direction, given the problems' names."""

    def column(name: str) -> NDArray[Any]:
        return np.array([getattr(direction, name) for direction in directions])

    primal, dual = column("primal"), column("dual")
    return {
        "problem": names[column("problem")],
        "order": column("order"),
        "margin": 1.0 / column("norm"),
        "training_error": column("error"),
        "primal": primal,
        "dual": dual,
        "gap": np.maximum(0.0, primal - dual) / primal,
        "n_vectors": column("n_vectors"),
        "seconds": column("seconds"),
        "stopped": np.array([direction.stop.reason for direction in directions]),
    }
