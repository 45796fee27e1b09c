"""The vectors of a map into a span, chosen from the rows of a collection."""

from __future__ import annotations

import numpy as np

from widemargin.kernels import Kernel
from widemargin.loop import Ended, Limits, PlaceLost, Resources, run
from widemargin.places.opened import Opened, RowDraws
from widemargin.places.shard_choice import choice_of
from widemargin.places.span_of_shards import Statement, on_no_rows, solver_of_shards
from widemargin.problem import Problem, encoded, one_vs_rest
from widemargin.rows import distinct_rows
from widemargin.span import SpanOptions, Strategy, Vectors


def drawn_vectors(
    opened: Opened, kernel: Kernel, strategy: Strategy, count: int, resources: Resources
) -> tuple[Problem, Vectors]:
    """Return vectors that a strategy draws, whatever the labels, and the rows that they are from.

    Parameters
    ----------
    opened : Opened
        The collection.
    kernel : Kernel
        k.
    strategy : Strategy
        How they are chosen.
    count : int
        Vectors at the most.
    resources : Resources
        Memory, threads and the seed.
    """
    stated = Statement(kernel, np.ones((1, 1)), np.ones(1), 1.0)
    nothing = on_no_rows(opened.every, stated, resources)
    choice = choice_of(strategy, RowDraws(opened), nothing, resources.rng)
    vectors = choice.draw(count, None)
    assert choice.problem is not None
    return choice.problem, vectors


def core_vectors(opened: Opened, kernel: Kernel, options: SpanOptions) -> tuple[Problem, Vectors]:
    """Return the rows that are vectors of a machine fitted to the labels.

    Parameters
    ----------
    opened : Opened
        The collection, with labels.
    kernel : Kernel
        k.
    options : SpanOptions
        How the machine is fitted.
    """
    classes, _ = encoded(opened.every.classes, opened.every.weights)
    stated = Statement(kernel, one_vs_rest(len(classes)), np.ones(len(classes)), 1.0)
    solver = solver_of_shards(opened.source, opened.facts, stated, options, last=False)
    limits = Limits(options.max_iter, options.deadline, options.patience)
    stop = run(solver, limits, options.report).stop
    if stop.kind is Ended.LOST:
        raise PlaceLost(stop.reason)
    index = solver.basis.vectors.index
    assert index is not None
    drawn = solver.problem.subset(index)
    # In an order that does not depend on that of the rows.
    alike = np.zeros(drawn.n, dtype=np.intp)
    chosen = drawn.subset(distinct_rows(drawn.rows, alike, np.ones(drawn.n)).index)
    every = np.arange(chosen.n)
    return chosen, Vectors(chosen.rows.take(every), every)
