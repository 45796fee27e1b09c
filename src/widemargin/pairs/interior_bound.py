"""The least sum of the d largest eigenvalues of Σ p δδᵀ over weights p of pairs, by Newton steps.

The problem is that of `relaxation`; its dual is max min_p δ_pᵀAδ_p over 0 ⪯ A ⪯ I with tr A = d.
Both are smoothed and then solved along a path. The d largest eigenvalues λ are counted by a Fermi
distribution, f_i = 1 / (1 + exp((s − λ_i)/w)) with the level s at which Σ f = d, and the weights
are kept positive by a barrier:

    minimise   d s + w Σ log(1 + exp((λ_i − s)/w))  −  μ Σ log p      over  Σ p = 1.

The first two terms are at most w k log 2 above the sum. A = Σ f_i v_iv_iᵀ is feasible in the dual
whatever p is, so each step knows both a bound and how much better any other can be. On the path all
pairs have δᵀAδ = ν + μ/p, and the gap is nμ and what the eigenvalues were smoothed by: μ and w fall
together, and a few Newton steps bring p back to the path (Boyd and Vandenberghe 2004, chapter 11).
Pairs that A keeps less apart than the others join on the way: few of all are ever needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg, optimize

from widemargin.arrays import Matrix, Vector
from widemargin.pairs.class_pairs import ClassPairs, Pairs

# Gap at the start, as a share of the bound; its factor from stage to stage; stages at the most.
_FIRST_GAP, _FALL, _STAGES = 0.5, 0.2, 16
# Newton steps of a stage at the most; the squared decrement at which p is on the path, as a share
# of what would move the weights or the distances by the gap; the share of the way to the border,
# and of the promised decrease, that a step may and must have.
_STEPS, _CENTERED, _BORDER, _DECREASE = 20, 0.1, 0.95, 0.1
# What rounding leaves of a singular matrix, relative to its largest number.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class Filling:
    """Eigenvalues, counted so that there are d of them.

    Attributes
    ----------
    filled : ndarray of shape (k,)
        How much of each is counted: 0 far below the level, 1 far above.
    total : float
        The smoothed sum of the d largest.
    """

    filled: Vector
    total: float

    @classmethod
    def of(cls, values: Vector, d: int, width: float) -> Filling:
        """Return the Fermi distribution of this width."""
        level = _level(values, d, width)
        above = (values - level) / width
        total = d * level + width * float(np.logaddexp(0.0, above).sum())
        return cls(_fermi(above), total)


def least_bound(
    classes: ClassPairs, pairs: Pairs, weight: Vector, d: int, tol: float
) -> tuple[float, float]:
    """Return the least sum of the d largest eigenvalues, and a value that none is below.

    Parameters
    ----------
    classes : ClassPairs
        Class means, of more than d dimensions.
    pairs : Pairs
        Pairs to begin with.
    weight : ndarray
        Their weights, positive.
    d : int
        How many eigenvalues.
    tol : float
        Relative gap between the two at which they are good enough.
    """
    means, c = classes.means, classes.n_classes
    first, second = pairs.first, pairs.second
    p = weight / weight.sum()
    best, least = np.inf, 0.0
    gap = _FIRST_GAP
    for _ in range(_STAGES):
        apart = means[first] - means[second]
        unit = float((apart * apart).sum(axis=1) @ p) / means.shape[1] * d
        path = _Path(apart / np.sqrt(unit), d, gap)
        point = path.centered(p)
        p = point.p
        best = min(best, unit * point.bound)
        root = point.vectors * np.sqrt(point.filled)
        near = classes.closest(means @ root, c)
        least = max(least, float(near.distance[0]))
        if best - least <= tol * best:
            break
        # Pairs that are closer than all that are known.
        known = np.isin(near.first * c + near.second, first * c + second)
        join = ~known & (near.distance < unit * float(point.distance.min()))
        if join.any():
            first = np.concatenate([first, near.first[join]])
            second = np.concatenate([second, near.second[join]])
            # So light that they change the bound by less than the gap.
            p = np.concatenate([p, np.full(int(join.sum()), gap / join.sum())])
            p /= p.sum()
        else:
            gap *= _FALL
    return best, least


@dataclass(frozen=True)
class _Point:
    """Weights, and what is known there."""

    p: Vector
    value: float
    bound: float
    vectors: Matrix
    filled: Vector
    distance: Vector
    slope: Vector


class _Path:
    """The smoothed problem for a gap, as a share of the bound.

    Parameters
    ----------
    apart : ndarray of shape (n, k)
        Differences δ, in units in which the bound is about one.
    d : int
        How many eigenvalues.
    gap : float
        Where on the path.
    """

    def __init__(self, apart: Matrix, d: int, gap: float) -> None:
        n, k = apart.shape
        self.apart, self.d, self.gap = apart, d, gap
        self.width, self.barrier = 0.5 * gap / min(k, 2 * d), 0.5 * gap / n

    def centered(self, p: Vector) -> _Point:
        """Return the point of the path, from p on."""
        point = self._at(p)
        for _ in range(_STEPS):
            step, decrement = self._newton(point)
            if decrement <= _CENTERED * min(self.barrier, self.width * self.gap**2):
                break
            size = min(1.0, _BORDER / max(1e-300, float(np.max(-step / point.p))))
            moved = self._at(point.p + size * step)
            while moved.value > point.value - _DECREASE * size * decrement and size > 1e-8:
                size *= 0.5
                moved = self._at(point.p + size * step)
            if not moved.value < point.value:
                break
            point = moved
        return point

    def _at(self, p: Vector) -> _Point:
        values, vectors = np.linalg.eigh((self.apart.T * p) @ self.apart)
        filling = Filling.of(values, self.d, self.width)
        filled = filling.filled
        distance = ((self.apart @ vectors) ** 2) @ filled
        # What is counted of an eigenvalue changes by this with it.
        slope = filled * (1.0 - filled) / self.width
        change = np.subtract.outer(filled, filled)
        across = np.subtract.outer(values, values)
        near = np.abs(across) < 1e-6 * self.width
        change[near] = np.broadcast_to(slope, change.shape)[near]
        across[near] = 1.0
        return _Point(
            p,
            filling.total - self.barrier * float(np.log(p).sum()),
            float(values[-self.d :].sum()),
            vectors,
            filled,
            distance,
            change / across,
        )

    def _newton(self, point: _Point) -> tuple[Vector, float]:
        """Return the Newton step among weights of the same sum, and its squared decrement."""
        U, p = self.apart @ point.vectors, point.p
        k = U.shape[1]
        i, j = np.triu_indices(k)
        # Σ_ij slope_ij (u_i u_j)(u'_i u'_j), each pair of eigenvectors once.
        share = point.slope[i, j] * np.where(i == j, 1.0, 2.0)
        seen = share > 1e-12 * share.max(initial=0.0)
        products = U[:, i[seen]] * U[:, j[seen]]
        H = (products * share[seen]) @ products.T
        # The level moves as well.
        own = np.diagonal(point.slope)
        if own.sum() > 0:
            shift = (U * U) @ own
            H -= np.outer(shift, shift) / own.sum()
        H[np.diag_indices(len(p))] += self.barrier / p**2
        # In units of p, in which the barrier is the identity.
        H *= p
        H *= p[:, None]
        H[np.diag_indices(len(p))] += _ROUNDING * float(np.diagonal(H).max())
        factor = linalg.cho_factor(H, check_finite=False)
        downhill = -(point.distance * p - self.barrier)
        along, ones = linalg.cho_solve(factor, np.column_stack([downhill, p]), check_finite=False).T
        step = along - float(p @ along) / float(p @ ones) * ones
        return p * step, float(step @ (H @ step))


def _level(values: Vector, d: int, width: float) -> float:
    """Return the level at which d eigenvalues lie above it, each counted by its share."""

    def excess(level: float) -> float:
        return float(_fermi((values - level) / width).sum()) - d

    low, high = float(values[0]) - 40.0 * width, float(values[-1]) + 40.0 * width
    if d >= len(values):
        return low
    return float(optimize.brentq(excess, low, high, xtol=1e-12 * (high - low)))


def _fermi(above: Vector) -> Vector:
    """Return how much is counted of eigenvalues so many widths above the level."""
    filled: Vector = 1.0 / (1.0 + np.exp(np.clip(-above, -500.0, 500.0)))
    return filled
