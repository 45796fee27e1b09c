"""How far apart the closest classes can be in d dimensions: an upper bound.

For orthonormal W of d columns, A = WWᵀ satisfies 0 ⪯ A ⪯ I and tr A = d. Over all such A,

    max min_p δ_pᵀAδ_p  =  min over weights p of  λ_1 + … + λ_d of  Σ_p p δ_pδ_pᵀ,

p ≥ 0 with the sum 1: the largest mean distance that d dimensions can hold (Ky Fan). So *every* p
bounds what any projection can reach, and the best p minimises a convex function. For up to some
tens of classes it is found to 1 % (`interior`). For more, L-BFGS searches among the logarithms of
the weights, with the d largest eigenvalues smoothed as there; from stage to stage pairs join that
are close for the A of the last. Another bound is for free: the distance of the closest pair in all
dimensions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize

from widemargin.arrays import Matrix, Vector
from widemargin.pairs.class_pairs import ClassPairs, Pairs
from widemargin.pairs.interior_bound import Counted, least_bound

# Relative gap of the bound where it is found by Newton steps.
_GAP = 0.01
# The square of classes times dimensions up to which it is: a second or less.
_NEWTON = 3e7
# Smoothing of the eigenvalues, relative to the bound, from stage to stage.
_STAGES = (0.1, 0.03, 0.01, 0.003, 0.001)
# Steps of a stage at the most.
_MOST_STEPS = 60
# And at the least.
_LEAST_STEPS = 3
# Operations that a stage may take, where it has more than the least steps.
_OPERATIONS = 4e9


def upper_bound(
    classes: ClassPairs,
    pairs: Pairs,
    weight: Vector,
    n_components: int,
    *,
    most_by_newton: float = _NEWTON,
) -> float:
    """Return a bound on the smallest squared distance in `n_components` dimensions.

    Parameters
    ----------
    classes : ClassPairs
        Class means.
    pairs : Pairs
        The pairs that may have a weight: the bound holds for any, and is best for those that are
        hard to keep apart.
    weight : ndarray
        Weights to start from; not all zero.
    n_components : int
        d.
    most_by_newton : float, optional
        The square of classes times dimensions up to which Newton steps find the bound.
    """
    closest = float(classes.closest(classes.means, 1).distance[0])
    c, k = classes.means.shape
    if n_components >= k:
        return closest
    weight = np.maximum(weight / weight.sum(), 1e-6 / len(weight))
    if float(c * k) ** 2 <= most_by_newton:
        return min(closest, least_bound(classes, pairs, weight, n_components, _GAP)[0])
    return min(closest, _searched(classes, pairs, weight, n_components))


def _searched(classes: ClassPairs, pairs: Pairs, weight: Vector, n_components: int) -> float:
    """Return the best bound that a few steps of L-BFGS find."""
    k, count = classes.means.shape[1], len(pairs)
    logits = np.log(weight / weight.sum())
    best, root = np.inf, None
    for share in _STAGES:
        if root is not None:
            # The heaviest stay, so that memory is that of twice as many as at the start.
            heavy = np.argsort(-logits, kind="stable")[:count]
            pairs, logits = pairs[heavy], logits[heavy]
            near = classes.closest(classes.means @ root, count)
            new = near[near.missing_in(pairs)]
            pairs = pairs + new
            logits = np.append(logits, np.full(len(new), logits.mean()))
        apart = classes.differences(pairs)
        search = _Search(apart, n_components)
        search(logits, float((apart * apart).sum(axis=1).mean()) / k)
        best = min(best, search.best)
        steps = int(
            np.clip(_OPERATIONS / (k * k * (len(pairs) + 10 * k)), _LEAST_STEPS, _MOST_STEPS)
        )
        found = optimize.minimize(
            search,
            logits,
            args=(share * best / n_components,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps},
        )
        logits = found.x - found.x.max()
        best, root = min(best, search.best), search.root
    return best


@dataclass
class _Search:
    """The smoothed bound as a function of the logarithms of the weights.

    The least bound and the last A = root rootᵀ are kept.
    """

    apart: Matrix
    d: int
    best: float = np.inf
    root: Matrix | None = None

    def __call__(self, logits: Vector, width: float) -> tuple[float, Vector]:
        """Return the bound, smoothed over `width`, and its derivative."""
        weight = np.exp(logits - logits.max())
        weight /= weight.sum()
        counted = Counted(self.apart, weight, self.d, width)
        self.best, self.root = min(self.best, counted.bound), counted.root
        distance = counted.distance
        return counted.total, weight * (distance - float(weight @ distance))
