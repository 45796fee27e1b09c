"""Vectors that start as a reduced set of the exact SVM, made of clusters.

The exact SVM is w = Σ_i y_i α_i φ(x_i) with Σ_i y_i α_i = 0: both sides weigh the same. So half of
the vectors are the means of clusters of the positive support vectors and half those of the negative
ones, found by k-means with the weights α: a cluster's terms together are about a multiple of its
mean's image. Then all of them move to lessen

    ‖w − Σ_j β_j φ(z_j)‖²                                                                       (4)

of SLMC with the best β, which costs far less than W: support vectors only, and no machine to fit.

Why: W has many local minima, and L-BFGS goes to one near its start. Centres of all rows say where
rows are; these say where the machine is. On USPS (ten machines, 10 % of their support vectors) W
is at the start 10 times that of the exact SVM from centres of all rows and 1.8 times from here, and
after 200 steps 1.9 times and 1.4 times; where rows have few features, the ends differ little.

Clusters stay where they are if their span has next to nothing of w, as with few vectors for a large
C: (4) then takes them to the largest terms of w, and W from there to a worse end (Rätsch's image).
"""

from __future__ import annotations

import numpy as np

from widemargin.arrays import Matrix
from widemargin.loop import Deadline
from widemargin.rows import as_rows
from widemargin.span import KMeansVectors
from widemargin.sparse.marginal import NoSpan
from widemargin.sparse.pre_image import Combination, Distance
from widemargin.sparse.vector_search import minimise

# Relative change of (4) at which its search ends.
_TOL = 1e-5
# Iterations of k-means: support vectors are few enough to let it end.
_ITERATIONS = 50
# A machine shorter than this, relative to its terms, is nothing that vectors could come near to.
_NOTHING = 1e-14
# Bytes for blocks of the support vectors.
_MEMORY = 1 << 28


def reduced_set(
    machine: Combination,
    count: int,
    rng: np.random.Generator,
    *,
    max_iter: int = 100,
    most_left: float = 0.85,
    deadline: Deadline | None = None,
) -> Matrix:
    """Return vectors in whose span a machine nearly is.

    Parameters
    ----------
    machine : Combination
        w, with the coefficients y α.
    count : int
        Vectors; if w has no more of its own, those are returned.
    rng : Generator
        Draws the centres to start from.
    max_iter : int, default=100
        Steps on (4) at the most: more do not lower W any further.
    most_left : float, default=0.85
        What (4) may be at the clusters, as a share of ‖w‖², for them to move.
    deadline : Deadline, default=None
        When to leave it at the steps that are done.
    """
    if count >= len(machine.vectors):
        return machine.vectors
    Z = _clusters(machine, count, rng)
    _, square, size = machine.squares()
    if not (np.isfinite(square) and square > _NOTHING * size):
        return Z
    try:
        function = Distance(machine, square)
        if 2.0 * function(Z).value > most_left * square:
            return Z
        length = machine.spread
        found = minimise(function, Z, max_iter=max_iter, tol=_TOL, length=length, deadline=deadline)
        return found.vectors
    except NoSpan:
        # A kernel that is not Mercer's, at vectors where that shows.
        return Z


def _clusters(machine: Combination, count: int, rng: np.random.Generator) -> Matrix:
    """Return centres of both sides, as many of each where there are as many vectors."""
    sides = [np.flatnonzero(machine.coef > 0), np.flatnonzero(machine.coef < 0)]
    first = min(len(sides[0]), max(count - len(sides[1]), (count + 1) // 2))
    centres = []
    for side, share in zip(sides, (first, count - first), strict=True):
        if share:
            rows = as_rows(machine.vectors[side], memory=_MEMORY, threads=1)
            weight = np.abs(machine.coef[side])
            choice = KMeansVectors(n_iter=_ITERATIONS).begin(rows, machine.kernel, weight, rng)
            centres.append(np.asarray(choice.draw(share, None).values, dtype=np.float64))
    return np.concatenate(centres)
