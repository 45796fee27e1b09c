"""Max-margin directions of the rows of a Dask collection, which stay in their shards."""

from __future__ import annotations

from typing import Any

from widemargin.directions.direction_engine import (
    DirectionOptions,
    Elsewhere,
    check_all_columns,
    find_directions,
    of_unit_vectors,
)
from widemargin.directions.rounds import Found
from widemargin.loop import Result
from widemargin.places.opened import Opened
from widemargin.places.span_of_shards import Statement, on_no_rows, solver_of_shards
from widemargin.problem import Problem
from widemargin.span import Basis, SpanFit, SpanOptions


def find_directions_of_shards(
    opened: Opened, stated: Statement, options: DirectionOptions
) -> tuple[Result[Found[Any]], Basis | None, Problem]:
    """Find directions in a span of the rows, or in all of the input space.

    Parameters
    ----------
    opened : Opened
        The collection.
    stated : Statement
        What is to be fitted.
    options : DirectionOptions
        How. If it is to be in the input space, that is the span of its unit vectors.

    Returns
    -------
    Result, Basis or None, Problem
        As of ``find_directions``.
    """
    every, linear = opened.every, options.linear
    if linear:
        options = of_unit_vectors(options, opened.n_features)

    def begin(span: SpanOptions) -> SpanFit:
        solver = solver_of_shards(opened.source, opened.facts, stated, span)
        return check_all_columns(solver, opened.n_features, span.memory) if linear else solver

    elsewhere = Elsewhere(begin, every.weights * stated.factor, "full" if linear else "span")
    return find_directions(on_no_rows(every, stated, options), options, elsewhere)
