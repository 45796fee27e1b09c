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

from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize
from scipy.special import expit

from widemargin.arrays import Matrix, Vector
from widemargin.pairs.class_pairs import ClassPairs, Pairs

# Gap at the start, as a share of the bound.
_FIRST_GAP = 0.5
# Its factor from stage to stage.
_FALL = 0.2
# Stages at the most.
_STAGES = 16
# Newton steps of a stage at the most.
_STEPS = 20
# The squared decrement at which p is on the path, as a share of what would move the weights or the
# distances by the gap.
_CENTERED = 0.1
# The share of the way to the border that a step may go.
_BORDER = 0.95
# The share of the promised decrease that it must have.
_DECREASE = 0.1
# What rounding leaves of a singular matrix, relative to its largest number.
_ROUNDING = 1e-13


def filling(values: Vector, d: int, width: float) -> tuple[Vector, float]:
    """Count eigenvalues so that there are d of them.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Eigenvalues, ascending.
    d : int
        How many are counted, fewer than k.
    width : float
        Of the Fermi distribution.

    Returns
    -------
    filled : ndarray of shape (k,)
        How much of each is counted: 0 far below the level, 1 far above.
    total : float
        The smoothed sum of the d largest.
    """

    def excess(level: float) -> float:
        return float(expit((values - level) / width).sum()) - d

    low, high = float(values[0]) - 40.0 * width, float(values[-1]) + 40.0 * width
    level = optimize.brentq(excess, low, high, xtol=1e-12 * (high - low))
    above = (values - level) / width
    return expit(above), d * level + width * float(np.logaddexp(0.0, above).sum())


class Counted:
    """The eigenvalues of Σ p δδᵀ, and the sum of the d largest.

    Attributes
    ----------
    values, vectors : ndarray of shape (k,) and (k, k)
        Eigenvalues, ascending, and eigenvectors.
    filled : ndarray of shape (k,)
        How much of each is counted.
    total, bound : float
        The sum of the d largest, smoothed and as it is.
    distance : ndarray of shape (n,)
        δᵀAδ of the pairs.
    """

    def __init__(self, apart: Matrix, p: Vector, d: int, width: float) -> None:
        self.values, self.vectors = np.linalg.eigh((apart.T * p) @ apart)
        self.filled, self.total = filling(self.values, d, width)
        self.bound = float(self.values[-d:].sum())
        self.distance = ((apart @ self.vectors) ** 2) @ self.filled

    @property
    def root(self) -> Matrix:
        """A root of A."""
        return self.vectors * np.sqrt(self.filled)


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
    means = classes.means
    p = weight / weight.sum()
    best, least = np.inf, 0.0
    gap = _FIRST_GAP
    for _ in range(_STAGES):
        apart = classes.differences(pairs)
        unit = float((apart * apart).sum(axis=1) @ p) / means.shape[1] * d
        point = _Path(apart / np.sqrt(unit), d, gap).centered(p)
        p = point.p
        best = min(best, unit * point.counted.bound)
        near = classes.closest(means @ point.counted.root, classes.n_classes)
        least = max(least, float(near.distance[0]))
        if best - least <= tol * best:
            break
        # Pairs that are closer than all that are known.
        closer = near.distance < unit * float(point.counted.distance.min())
        new = near[closer & near.missing_in(pairs)]
        if len(new):
            pairs = pairs + new
            # So light that they change the bound by less than the gap.
            p = np.append(p, np.full(len(new), gap / len(new)))
            p /= p.sum()
        else:
            gap *= _FALL
    return best, least


class _Point(NamedTuple):
    """Weights, what is known there, and what is minimised."""

    p: Vector
    counted: Counted
    value: float


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
        counted = Counted(self.apart, p, self.d, self.width)
        return _Point(p, counted, counted.total - self.barrier * float(np.log(p).sum()))

    def _newton(self, point: _Point) -> tuple[Vector, float]:
        """Return the Newton step among weights of the same sum, and its squared decrement."""
        p, counted = point.p, point.counted
        values, filled = counted.values, counted.filled
        U = self.apart @ counted.vectors
        # What is counted of an eigenvalue changes by this with it.
        slope = filled * (1.0 - filled) / self.width
        i, j = np.triu_indices(len(values))
        across = values[i] - values[j]
        near = np.abs(across) < 1e-6 * self.width
        across[near] = 1.0
        # Σ_ij slope_ij (u_i u_j)(u'_i u'_j), each pair of eigenvectors once.
        share = np.where(near, slope[j], (filled[i] - filled[j]) / across)
        share *= np.where(i == j, 1.0, 2.0)
        seen = share > 1e-12 * share.max(initial=0.0)
        products = U[:, i[seen]] * U[:, j[seen]]
        H = (products * share[seen]) @ products.T
        # The level moves as well.
        if slope.sum() > 0:
            shift = (U * U) @ slope
            H -= np.outer(shift, shift) / slope.sum()
        H[np.diag_indices(len(p))] += self.barrier / p**2
        # In units of p, in which the barrier is the identity.
        H *= p
        H *= p[:, None]
        H[np.diag_indices(len(p))] += _ROUNDING * float(np.diagonal(H).max())
        factor = linalg.cho_factor(H, check_finite=False)
        downhill = self.barrier - counted.distance * p
        along, ones = linalg.cho_solve(factor, np.column_stack([downhill, p]), check_finite=False).T
        step = along - float(p @ along) / float(p @ ones) * ones
        return p * step, float(step @ (H @ step))
