"""The margin classifier on a Dask collection: rows that are brought here, a span, or cells.

Few rows, for which an exact machine is a choice, are fitted here, as if they had been an array. Of
many, those with the least keys decide between a span and cells, and how large these are: they are
the rows on which a fit in memory would decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from widemargin.arrays import Matrix
from widemargin.cells.engine_choice import ChoiceOptions, Decision, choose_on_sample, sample_rows
from widemargin.cells.partition import sample_size
from widemargin.expansion import Fitted
from widemargin.places.cells_of_shards import fit_cells_of_shards
from widemargin.places.loading import Facts, Loaded, joined, together
from widemargin.places.sorted_shards import SortedShards
from widemargin.places.sources import Source
from widemargin.places.span_of_shards import Statement, fit_span_of_shards
from widemargin.problem import Problem, one_vs_one
from widemargin.rows import as_rows

# Share of the memory that rows may take to be brought here.
_HERE_SHARE = 0.25


@dataclass(frozen=True)
class FittedElsewhere:
    """A machine of rows that are not here.

    Attributes
    ----------
    engine : {"span", "cells"}
        How it was found.
    fitted : Fitted
        The machine.
    problem : Problem
        Its problems, on the rows that its vectors may be.
    """

    engine: str
    fitted: Fitted
    problem: Problem


def brought_here(facts: Facts, options: ChoiceOptions) -> bool:
    """Return whether rows are few enough to be fitted here, or raise if they must be and are not.

    Parameters
    ----------
    facts : Facts
        What is known of all rows.
    options : ChoiceOptions
        What a user wants.
    """
    room = room_here(options.memory)
    fits = facts.nbytes <= room
    exact = options.engine == "exact"
    if not fits and (exact or (options.loss == "hinge" and not options.cuttable)):
        raise ValueError(
            f"engine={options.engine!r} with loss={options.loss!r} needs rows in memory, but those "
            f"of X take {facts.nbytes:,} bytes, more than {room:,}, a quarter of memory; use "
            "engine='span' or engine='cells', or more memory."
        )
    few = facts.n <= options.exact_sizes.most
    return fits and (exact or (options.engine == "auto" and options.cuttable and few))


def room_here(memory: int) -> int:
    """Return the bytes that rows may take to be brought here."""
    return int(_HERE_SHARE * memory)


def rows_here(source: Source) -> Loaded:
    """Return all rows of a source, in this process."""
    return together(source.ask("rows", _itself))


def _itself(loaded: Loaded) -> Loaded:
    return loaded


def fit_to_collection(
    source: Source,
    facts: Sequence[Facts],
    stated: Statement,
    pairs: tuple[bool, Callable[[int], bool]],
    options: ChoiceOptions,
) -> FittedElsewhere:
    """Return a machine of rows that stay where they are.

    Parameters
    ----------
    source : Source
        What shards are made of.
    facts : sequence of Facts
        What is known of the rows of each.
    stated : Statement
        What is to be fitted, classes against the rest.
    pairs : (bool, callable)
        Whether problems are pairs of classes instead, in a span, and in cells of so many rows.
    options : ChoiceOptions
        How.
    """
    in_pairs = replace(stated, table=one_vs_one(len(stated.table)))
    in_span = in_pairs if pairs[0] else stated
    if options.engine == "span" or (options.engine == "auto" and not options.cuttable):
        return FittedElsewhere("span", *fit_span_of_shards(source, facts, in_span, options))
    shards = SortedShards(source, facts, stated, options.memory, options.threads)
    in_cells = in_pairs if pairs[1](shards.n) else stated
    decision = Decision("cells", options.cells)
    if options.engine == "auto" or not options.size_given:
        decision = _decided(shards, in_cells.table, in_span.table, options)
    if decision.engine == "cells":
        size = options.cells if options.size_given else decision.size
        found = fit_cells_of_shards(shards, in_cells, replace(options, cells=size))
        fitted, problem = _numbered(found, joined(facts), in_cells)
    else:
        fitted, problem = fit_span_of_shards(source, facts, in_span, options)
    return FittedElsewhere(decision.engine, explained(fitted, decision), problem)


def _decided(
    shards: SortedShards, in_cells: Matrix, in_span: Matrix, options: ChoiceOptions
) -> Decision:
    """Return the engine, and the size of cells, by a sample."""
    count, n = sample_rows(options.trial), shards.n
    if not options.size_given:
        # The sample of the smallest cells as well, so that rows are not looked at once more.
        shards.sample(max(count, sample_size(n, min(options.trial.cells))))
    told = replace(options, in_span=shards.problem(count, in_span), n_rows=n)
    return choose_on_sample(shards.problem(count, in_cells), told)


def _numbered(found: Fitted, facts: Facts, stated: Statement) -> tuple[Fitted, Problem]:
    """Return a machine that knows its vectors by numbers, and a problem that has them."""
    shape, dtype = (0, len(facts.mean)), np.float32 if facts.single else np.float64
    nothing = sparse.csr_array(shape, dtype=dtype) if facts.sparse else np.empty(shape, dtype)
    number = np.empty(0, dtype=np.intp) if found.index is None else found.index
    # Nobody asks for the classes and weights of the vectors of cells: they take no memory.
    code = np.broadcast_to(np.intp(0), number.shape)
    problem = Problem.of(
        as_rows(nothing, memory=1, threads=1),
        stated.kernel,
        code,
        stated.table,
        np.broadcast_to(1.0, number.shape),
        stated.C,
        number,
    )
    index = None if found.index is None else np.arange(len(number))
    return replace(found, index=index), problem


def explained(fitted: Fitted, decision: Decision) -> Fitted:
    """Return a machine whose certificate tells why this engine was chosen."""
    if not decision.reason:
        return fitted
    stopped = f"{fitted.certificate.stopped} (engine: {decision.reason})"
    return replace(fitted, certificate=replace(fitted.certificate, stopped=stopped))
