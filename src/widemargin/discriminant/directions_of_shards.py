"""Max-margin directions of the rows of a Dask collection, which stay in their shards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from widemargin.directions.direction_engine import DirectionOptions, Elsewhere, find_directions
from widemargin.directions.rounds import Found
from widemargin.loop import Result
from widemargin.places.opened import Opened
from widemargin.places.span_of_shards import Statement, on_no_rows, solver_of_shards
from widemargin.problem import Problem
from widemargin.span import Basis, GivenVectors, SpanFit, SpanOptions


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
        unit_vectors = GivenVectors(np.eye(opened.n_features))
        options = replace(options, linear=False, landmarks=unit_vectors, max_vectors=None)

    def begin(span: SpanOptions) -> SpanFit:
        solver = solver_of_shards(opened.source, opened.facts, stated, span)
        if linear and solver.max_vectors < opened.n_features:
            raise ValueError(
                f"X has {opened.n_features:,} columns, but memory of {span.memory / 1e6:,.1f} MB "
                f"has room for matrices of {solver.max_vectors:,} of them squared; raise memory, "
                "or pass X.compute()."
            )
        return solver

    elsewhere = Elsewhere(begin, every.weights * stated.factor, "full" if linear else "span")
    return find_directions(on_no_rows(every, stated, options), options, elsewhere)
