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

import numpy as np
from scipy import optimize

from widemargin.arrays import Matrix, Vector
from widemargin.pairs.class_pairs import ClassPairs, Pairs
from widemargin.pairs.interior_bound import Filling, least_bound

# Relative gap of the bound where it is found by Newton steps: where the square of classes times
# dimensions is no more than this, a second or less.
_GAP, _NEWTON = 0.01, 3e7
# Smoothing of the eigenvalues, relative to the bound, from stage to stage; steps of each, at the
# most, at the least, and such that none needs more operations than this.
_STAGES = 0.1, 0.03, 0.01, 0.003, 0.001
_MOST_STEPS, _LEAST_STEPS, _OPERATIONS = 60, 3, 4e9


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
    c, k = classes.means.shape
    first, second = pairs.first, pairs.second
    logits = np.log(weight / weight.sum())
    best, A_root = np.inf, None
    for share in _STAGES:
        if A_root is not None:
            # The heaviest stay, so that memory is that of twice as many as at the start.
            heavy = np.argsort(-logits, kind="stable")[: len(pairs.first)]
            first, second, logits = first[heavy], second[heavy], logits[heavy]
            near = classes.closest(classes.means @ A_root, len(pairs.first))
            join = ~np.isin(near.first * c + near.second, first * c + second)
            first = np.concatenate([first, near.first[join]])
            second = np.concatenate([second, near.second[join]])
            logits = np.concatenate([logits, np.full(int(join.sum()), logits.mean())])
        apart = classes.means[first] - classes.means[second]
        search = _Search(apart, n_components)
        search(logits, float((apart * apart).sum(axis=1).mean()) / k)
        best = min(best, search.best)
        steps = int(
            np.clip(_OPERATIONS / (k * k * (len(first) + 10 * k)), _LEAST_STEPS, _MOST_STEPS)
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
        best, A_root = min(best, search.best), search.root
    return best


class _Search:
    """The smoothed bound as a function of the logarithms of the weights."""

    def __init__(self, apart: Matrix, n_components: int) -> None:
        self.apart = apart
        self.d = n_components
        self.best = np.inf
        self.root: Matrix = np.zeros((apart.shape[1], 0))

    def __call__(self, logits: Vector, width: float) -> tuple[float, Vector]:
        """Return the bound, smoothed over `width`, and its derivative."""
        weight = np.exp(logits - logits.max())
        weight /= weight.sum()
        values, vectors = np.linalg.eigh((self.apart.T * weight) @ self.apart)
        self.best = min(self.best, float(values[-self.d :].sum()))
        filling = Filling.of(values, self.d, width)
        distance = ((self.apart @ vectors) ** 2) @ filling.filled
        self.root = vectors * np.sqrt(filling.filled)
        return filling.total, weight * (distance - float(weight @ distance))
