"""How far apart the closest classes can be in d dimensions: an upper bound.

For orthonormal W of d columns, A = WWᵀ satisfies 0 ⪯ A ⪯ I and tr A = d. Over all such A,

    max min_p δ_pᵀAδ_p  =  min over weights p of  λ_1 + … + λ_d of  Σ_p p δ_pδ_pᵀ,

p ≥ 0 with the sum 1: the largest mean distance that d dimensions can hold (Ky Fan). So *every* p
bounds what any projection can reach, and the best p is found by minimising a convex function, whose
d largest eigenvalues are smoothed (a Fermi distribution of them) as long as the search goes on. Two
more bounds are for free: the distance of the closest pair in all dimensions, and √d / ‖Q‖_F of (7).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import optimize

from widemargin.discriminant.pairs import ClassPairs, Pairs

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

# Smoothing of the eigenvalues, relative to the bound, from stage to stage; steps of each, at the
# most, at the least, and such that none needs more operations than this.
_STAGES = 0.1, 0.03, 0.01, 0.003, 0.001
_MOST_STEPS, _LEAST_STEPS, _OPERATIONS = 60, 3, 4e9


def upper_bound(classes: ClassPairs, pairs: Pairs, weight: Vector, n_components: int) -> float:
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
    """
    apart = classes.differences(pairs)
    closest = float(classes.closest(classes.means, 1).distance[0])
    weight = np.maximum(weight / weight.sum(), 1e-6 / len(weight))
    search = _Search(apart, n_components)
    logits = np.log(weight / weight.sum())
    n, k = apart.shape
    search(logits, float(np.trace((apart.T * weight) @ apart)) / k)
    steps = int(np.clip(_OPERATIONS / (k * k * (n + 10 * k)), _LEAST_STEPS, _MOST_STEPS))
    for share in _STAGES:
        found = optimize.minimize(
            search,
            logits,
            args=(share * search.best / n_components,),
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": steps},
        )
        logits = found.x - found.x.max()
    return min(search.best, closest)


class _Search:
    """The smoothed bound as a function of the logarithms of the weights."""

    def __init__(self, apart: Matrix, n_components: int) -> None:
        self.apart = apart
        self.d = n_components
        self.best = np.inf

    def __call__(self, logits: Vector, width: float) -> tuple[float, Vector]:
        """Return the bound, smoothed over `width`, and its derivative."""
        weight = np.exp(logits - logits.max())
        weight /= weight.sum()
        values, vectors = np.linalg.eigh((self.apart.T * weight) @ self.apart)
        self.best = min(self.best, float(values[-self.d :].sum()))
        level = _level(values, self.d, width)
        filled = 1.0 / (1.0 + np.exp(np.clip((level - values) / width, -500.0, 500.0)))
        bound = self.d * level + width * float(np.logaddexp(0.0, (values - level) / width).sum())
        distance = ((self.apart @ vectors) ** 2) @ filled
        return bound, weight * (distance - float(weight @ distance))


def _level(values: Vector, d: int, width: float) -> float:
    """Return the level at which d eigenvalues lie above it, each counted by its share."""

    def excess(level: float) -> float:
        return float((1.0 / (1.0 + np.exp(np.clip((level - values) / width, -500, 500)))).sum()) - d

    low, high = float(values[0]) - 40.0 * width, float(values[-1]) + 40.0 * width
    if d >= len(values):
        return low
    return float(optimize.brentq(excess, low, high, xtol=1e-12 * (high - low)))
