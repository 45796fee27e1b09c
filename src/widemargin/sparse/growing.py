"""Vectors that join one after another: the greedy variant that SLMC names as future work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from widemargin.expansion import Expansion
from widemargin.problem import Problem
from widemargin.sparse.marginal import Marginal


def stages(n_vectors: int, grow: str | None) -> list[int]:
    """Return the numbers of vectors to pass through, the last being `n_vectors`.

    Parameters
    ----------
    n_vectors : int
        Vectors at the end.
    grow : {"one", "double"} or None
        One more each time, twice as many each time, or all at once.

    Examples
    --------
    >>> stages(6, "double"), stages(3, "one"), stages(6, None)
    ([1, 2, 4, 6], [1, 2, 3], [6])
    """
    if grow is None:
        return [n_vectors]
    if grow == "one":
        return list(range(1, n_vectors + 1))
    powers = [2**k for k in range(n_vectors.bit_length()) if 2**k < n_vectors]
    return [*powers, n_vectors]


def newcomers(
    problem: Problem,
    Z: NDArray[np.float64],
    marginal: Marginal,
    count: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:
    """Return rows that the machine so far gets wrong, drawn by how wrong it gets them.

    Parameters
    ----------
    problem : Problem
        The rows, and the problems that share the vectors.
    Z : ndarray of shape (t, d)
        The vectors so far.
    marginal : Marginal
        The machine on them.
    count : int
        Vectors to join.
    rng : numpy.random.Generator
        For the draw.
    """
    scores = Expansion(problem.kernel, Z, marginal.beta, marginal.intercept).values(problem.rows)
    slack = np.maximum(0.0, 1.0 - problem.signs() * scores)
    felt = problem.weight * slack.sum(axis=1)
    # Rows outside every margin may join where too few are left inside.
    felt += 1e-9 * problem.weight * max(1.0, float(felt.max()))
    index = rng.choice(problem.n, min(count, problem.n), replace=False, p=felt / felt.sum())
    return problem.rows.take(np.sort(index)).astype(np.float64)
