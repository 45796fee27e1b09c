"""Pairs of classes, each fitted by an engine of its own, and joined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from widemargin.certificate import Certificate
from widemargin.expansion import Earlier, Fitted, MachineOptions
from widemargin.loop import bounds
from widemargin.problem import Problem

# Vectors that the machine of a pair needs at the least.
_LEAST_VECTORS = 2


def fit_one_by_one(
    problem: Problem,
    options: MachineOptions,
    fit: Callable[[Problem, MachineOptions], Fitted],
) -> Fitted:
    """Fit every pair of classes by itself.

    Parameters
    ----------
    problem : Problem
        Pairs of classes, of one C.
    options : MachineOptions
        How; budgets of vectors and time are shared out among the pairs.
    fit : callable
        Returns the machine of one problem.
    """
    count, limit = problem.n_problems, options.max_vectors
    if limit is not None and limit < min(problem.n, _LEAST_VECTORS * count):
        raise ValueError(
            f"max_vectors={limit} is less than {_LEAST_VECTORS} for each of {count:,} pairs of "
            f"classes; give {_LEAST_VECTORS * count:,} or more, or multi_class='ovr'."
        )
    each = None if limit is None or limit >= problem.n else limit // count
    coef = np.zeros((problem.n, count))
    intercept = np.zeros(count)
    parts: list[Fitted] = []
    for pair in range(count):
        members = problem.members(pair)
        inner = replace(
            options,
            max_vectors=each,
            deadline=options.deadline.part(1.0 / (count - pair)),
            earlier=_earlier_of(options.earlier, members, pair),
        )
        found = fit(problem.alone(pair), inner)
        assert found.index is not None
        coef[members[found.index], pair] = found.coef[:, 0]
        intercept[pair] = found.intercept[0]
        parts.append(found)
    index = np.flatnonzero(coef.any(axis=1))
    # The first pair that could be better speaks for all.
    stop = next((part.stop for part in parts if not part.stop.converged), parts[-1].stop)
    if options.deadline.passed and not stop.converged:
        stop = options.deadline.stop
    certificate = _joined([part.certificate for part in parts], len(index), stop.reason)
    return Fitted(
        problem.rows.take(index), index, coef[index], intercept, certificate, stop, of_pairs=True
    )


def _earlier_of(earlier: Earlier | None, members: np.ndarray, pair: int) -> Earlier | None:
    """Return the part of an earlier solution that belongs to a pair."""
    if earlier is None:
        return None
    here = np.flatnonzero(earlier.coef[:, pair])
    place = np.searchsorted(members, earlier.index[here])
    coef = np.ascontiguousarray(earlier.coef[here][:, [pair]])
    return Earlier(place, coef, earlier.intercept[[pair]])


def _joined(parts: list[Certificate], n_vectors: int, reason: str) -> Certificate:
    """Return the sums of what is proved of the pairs."""
    primal, dual = sum(part.primal for part in parts), sum(part.dual for part in parts)
    gap = sum(part.gap * part.primal for part in parts) / primal if primal > 0 else 0.0
    costs = {
        name: sum(getattr(part, name) for part in parts)
        for name in ("n_iter", "n_passes", "n_kernel", "seconds")
    }
    return bounds(primal, dual, gap=gap, n_vectors=n_vectors, stopped=reason, **costs)
