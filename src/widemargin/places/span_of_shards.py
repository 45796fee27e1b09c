"""A machine in a span, fitted to rows in shards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.expansion import Fitted
from widemargin.kernels import Kernel
from widemargin.loop import Limits, Resources, Result, run
from widemargin.places.loading import Facts, ShardPlan, joined
from widemargin.places.shard_choice import choice_of
from widemargin.places.sources import Source
from widemargin.problem import Problem
from widemargin.rows import as_rows
from widemargin.span import SpanOptions
from widemargin.span.descent import SpanState
from widemargin.span.levels import SpanFit
from widemargin.span.shards import Here, Place, Shards
from widemargin.span.span_engine import SpanSize, fitted_of, solver_of, span_size
from widemargin.span.values import rows_of_block

# What there is before rows are looked at.
_NO_SHARDS = Shards(Here([]), 1)


@dataclass(frozen=True)
class Statement:
    """What is to be fitted to all rows.

    Attributes
    ----------
    kernel : Kernel
        k.
    table : ndarray of shape (n_classes, n_problems)
        Sign of each class in each problem.
    factor : ndarray of shape (n_classes,)
        Factors on the weights of the classes' rows.
    C : float
        C.
    device : str or None
        The device of each worker that its shards lie on.
    """

    kernel: Kernel
    table: Matrix
    factor: Vector
    C: float
    device: str | None = None


def fit_span_of_shards(
    source: Source, facts: Sequence[Facts], stated: Statement, options: SpanOptions
) -> tuple[Fitted, Problem]:
    """Return a machine in a span, and the rows that were drawn for its vectors.

    Parameters
    ----------
    source : Source
        What shards are made of.
    facts : sequence of Facts
        What is known of the rows of each.
    stated : Statement
        What is to be fitted.
    options : SpanOptions
        How.
    """
    solver = solver_of_shards(source, facts, stated, options)
    result = _run(solver, options)
    return fitted_of(solver, result, replace(options, report=None)), solver.problem


def solver_of_shards(
    source: Source,
    facts: Sequence[Facts],
    stated: Statement,
    options: SpanOptions,
    *,
    last: bool = True,
) -> SpanFit:
    """Return the solver of problems in a span that fits into memory.

    Parameters
    ----------
    source, facts, stated, options
        As in `fit_span_of_shards`.
    last : bool, default=True
        Whether the source is not asked any more.
    """
    every = joined(facts)
    problem = on_no_rows(every, stated, options)

    def placed(size: SpanSize) -> Place:
        rooms = source.rooms(size, problem.n_problems)
        return source.place(plans_of(source, facts, stated, size, rooms), last=last)

    return solver_in_span_of_shards(problem, every.n, placed, options)


def plans_of(
    source: Source,
    facts: Sequence[Facts],
    stated: Statement,
    size: SpanSize,
    rooms: Sequence[int],
) -> list[ShardPlan]:
    """Return what each shard of a span fit must know beside its rows; `rooms` are for values."""
    classes = joined(facts).classes
    first = np.concatenate([[0], np.cumsum([each.n for each in facts])])
    return [
        ShardPlan(
            stated.kernel,
            classes,
            stated.table,
            stated.factor,
            stated.C,
            int(begin),
            size.dtype,
            room,
            size.vectors,
            each.memory,
            source.threads,
            device=stated.device,
        )
        for begin, each, room in zip(first, facts, rooms, strict=False)
    ]


def solve_in_span_of_shards(
    problem: Problem, n: int, placed: Callable[[SpanSize], Place], options: SpanOptions
) -> tuple[SpanFit, Result[SpanState]]:
    """Return the solver of problems in a span, and how it ended.

    Parameters are those of `solver_in_span_of_shards`.
    """
    solver = solver_in_span_of_shards(problem, n, placed, options)
    return solver, _run(solver, options)


def _run(solver: SpanFit, options: SpanOptions) -> Result[SpanState]:
    limits = Limits(options.max_iter, options.deadline, options.patience)
    return run(solver, limits, options.report)


def solver_in_span_of_shards(
    problem: Problem, n: int, placed: Callable[[SpanSize], Place], options: SpanOptions
) -> SpanFit:
    """Return the solver of problems in a span that fits into memory.

    Parameters
    ----------
    problem : Problem
        The problems, on no rows.
    n : int
        Rows of all shards.
    placed : callable
        Brings the shards into being, for a span of some size.
    options : SpanOptions
        How.
    """
    # Before there are shards: what is asked of a choice here does not depend on the rows.
    before = choice_of(options.landmarks, _NO_SHARDS, problem, options.rng)
    size = span_size(problem, n, before, options)
    each = size.dtype.itemsize * max(1, size.vectors)
    step = rows_of_block(options.memory, each, problem.n_problems)
    shards = Shards(placed(size), step)
    choice = choice_of(options.landmarks, shards, problem, options.rng)
    return solver_of(problem, choice, size, options, shards)


def on_no_rows(facts: Facts, stated: Statement, options: Resources) -> Problem:
    """Return the problems without a row."""
    dtype = np.float32 if facts.single else np.float64
    nothing = as_rows(
        np.empty((0, len(facts.mean)), dtype=dtype),
        memory=options.memory,
        threads=options.threads,
    )
    none = np.empty(0, dtype=np.intp)
    return Problem.of(
        nothing, stated.kernel, none, stated.table, np.empty(0), stated.C, none
    ).with_signs(stated.table)
