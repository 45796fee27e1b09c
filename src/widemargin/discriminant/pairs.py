"""All pairs of classes, without a list of them.

Class means stand in coordinates of the span of their differences, in the space where the
within-class covariance is the identity: D_ij = ‖y_i − y_j‖² is then the squared Mahalanobis
distance of two classes. There may be millions of pairs, so they are gone through by blocks of rows
of the matrix D, one product a block; nothing of the size of D is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from widemargin.threads import ordered_map

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Codes = NDArray[np.intp]

# Numbers of D in a block: fixed, so that threads do not change the sums.
_BLOCK = 1 << 18
# Share of the largest squared distance from the mean, or of the within-class variance, below which
# two means are one.
_SAME = 1e-22
# Singular values, relative to the largest, of directions in which the means differ at all.
_FLAT = 1e-12


@dataclass(frozen=True)
class Pairs:
    """Some pairs of classes.

    Attributes
    ----------
    first, second : ndarray of int
        Their numbers, the smaller first.
    distance : ndarray
        D of each pair, ascending.
    """

    first: Codes
    second: Codes
    distance: Vector


@dataclass(frozen=True)
class ClassPairs:
    """The pairs of classes with means `means`.

    Attributes
    ----------
    means : ndarray of shape (c, k)
        Class means.
    prior : ndarray of shape (c,)
        Weights of the classes; a pair has the weight of their product.
    threads : int
        Threads; the answer does not depend on it.
    """

    means: Matrix
    prior: Vector
    threads: int = 1

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.means)

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return len(self.means) * (len(self.means) - 1) // 2

    def mean_scatter(self) -> Matrix:
        """Return the weighted mean of δδᵀ over the pairs, δ the difference of two means."""
        share = self.prior / self.prior.sum()
        apart = self.means - share @ self.means
        scatter: Matrix = 2.0 * (apart.T * share) @ apart / (1.0 - float(share @ share))
        return scatter

    def closest(self, Y: Matrix, count: int) -> Pairs:
        """Return the pairs at the smallest distances between rows of Y, `count` at the most."""

        def of(rows: slice) -> tuple[Codes, Codes, Vector]:
            D = _distances(Y, rows)
            # Each pair once: those behind the diagonal.
            D[np.arange(len(Y)) <= np.arange(rows.start, rows.stop)[:, None]] = np.inf
            flat = D.ravel()
            kept = np.argpartition(flat, min(count, flat.size) - 1)[:count]
            kept = kept[np.isfinite(flat[kept])]
            i, j = np.divmod(kept, len(Y))
            return i + rows.start, j, flat[kept]

        parts = list(ordered_map(of, _blocks(len(Y)), self.threads))
        first, second, near = (np.concatenate(each) for each in zip(*parts, strict=True))
        order = np.lexsort((second, first, near))[:count]
        first, second = first[order], second[order]
        # Differences keep the digits that the product of a block loses.
        distance = ((Y[first] - Y[second]) ** 2).sum(axis=1)
        order = np.argsort(distance, kind="stable")
        return Pairs(first[order], second[order], distance[order])

    def soft_minimum(self, Y: Matrix, rates: Vector, shares: Vector) -> tuple[float, Matrix]:
        """Return a sum of soft minima of the distances between rows of Y, and its derivative.

        A soft minimum is  −(1/s) log Σ w_ij exp(−s D_ij), w the weights of the pairs with sum 1:
        the weighted mean for s → 0, the smallest distance for s → ∞.

        Parameters
        ----------
        Y : ndarray of shape (c, d)
            Projected means.
        rates, shares : ndarray
            s of each soft minimum, and its factor in the sum.

        Returns
        -------
        float
            The sum.
        ndarray of shape (c, d)
            Its derivative by Y.
        """
        tiny = np.finfo(float).tiny
        weight = np.log(np.maximum(self.prior / self.prior.sum(), tiny))

        def of(rows: slice) -> list[_Soft]:
            D = _distances(Y, rows)
            E = np.empty_like(D)
            own = np.arange(rows.start, rows.stop)
            parts = []
            for rate in rates:
                np.multiply(D, -rate, out=E)
                E += weight[rows, None] + weight
                E[own - rows.start, own] = -np.inf
                most = float(E.max())
                E -= most
                np.exp(E, out=E)
                sums = E.sum(axis=1)
                parts.append(_Soft(most, float(sums.sum()), sums[:, None] * Y[rows] - E @ Y))
            return parts

        blocks = list(ordered_map(of, _blocks(len(Y)), self.threads))
        share = self.prior / self.prior.sum()
        all_weight = np.log(1.0 - float(share @ share))
        value, slope = 0.0, np.zeros_like(Y)
        for k, (rate, factor) in enumerate(zip(rates, shares, strict=True)):
            most = max(parts[k].most for parts in blocks)
            scale = [np.exp(parts[k].most - most) for parts in blocks]
            total = sum(z * parts[k].total for z, parts in zip(scale, blocks, strict=True))
            pull = np.concatenate([z * p[k].pull for z, p in zip(scale, blocks, strict=True)])
            value -= factor * (most + np.log(total) - all_weight) / rate
            slope += (4.0 * factor / total) * pull
        return value, slope

    def shortfall(self, Y: Matrix, power: int) -> float:
        """Return Σ max(0, 1 − D)^power over the pairs, D the distances between rows of Y."""

        def of(rows: slice) -> float:
            D = _distances(Y, rows)
            D[np.arange(len(Y)) <= np.arange(rows.start, rows.stop)[:, None]] = np.inf
            short = 1.0 - D[D < 1.0]
            return float((short**power).sum())

        return sum(ordered_map(of, _blocks(len(Y)), self.threads))

    def scatter_of(self, pairs: Pairs, weight: Vector) -> Matrix:
        """Return Σ weight δδᵀ over some pairs."""
        apart = self.differences(pairs)
        scatter: Matrix = (apart.T * weight) @ apart
        return scatter

    def differences(self, pairs: Pairs) -> Matrix:
        """Return δ of some pairs."""
        apart: Matrix = self.means[pairs.first] - self.means[pairs.second]
        return apart

    def merged(self) -> tuple[ClassPairs, Codes]:
        """Return the pairs of different means, and which of them the mean of each class is.

        Classes whose means are the same cannot be told apart by any projection of them.
        """
        c = self.n_classes
        center = self.means.mean(axis=0)
        # Within-class deviations are 1 here: far below that, only rounding is different.
        largest = max(1.0, float(((self.means - center) ** 2).sum(axis=1).max()))
        count = c
        while True:
            pairs = self.closest(self.means, count)
            same = pairs.distance <= _SAME * largest
            if not same.all() or count >= self.n_pairs:
                break
            count *= 4
        if not same.any():
            return self, np.arange(c)
        joined = (np.ones(int(same.sum())), (pairs.first[same], pairs.second[same]))
        n, label = connected_components(sparse.coo_array(joined, shape=(c, c)), directed=False)
        group = label.astype(np.intp)
        leader = np.unique(group, return_index=True)[1]
        prior: Vector = np.zeros(n)
        np.add.at(prior, group, self.prior)
        return replace(self, means=self.means[leader], prior=prior), group


def spanned(means: Matrix) -> Matrix:
    """Return an orthonormal basis, as columns, of the span of the differences of means."""
    apart = means - means.mean(axis=0)
    size = float(np.abs(apart).max(initial=0.0))
    if not size > 0:
        return np.zeros((means.shape[1], 0))
    apart /= size
    if len(means) > means.shape[1]:
        # As a rule they span everything, and the smaller problem is enough to see it.
        value, vector = np.linalg.eigh(apart.T @ apart)
        return np.ascontiguousarray(vector[:, value > _FLAT * value[-1]])
    _, value, vector = np.linalg.svd(apart, full_matrices=False)
    basis: Matrix = vector[value > _FLAT * value[0]].T
    return basis


@dataclass(frozen=True)
class _Soft:
    """What a block adds to a soft minimum: sums of exp(e − most)."""

    most: float
    total: float
    pull: Matrix


def _blocks(c: int) -> Iterator[slice]:
    step = max(1, _BLOCK // c)
    return (slice(first, min(c, first + step)) for first in range(0, c, step))


def _distances(Y: Matrix, rows: slice) -> NDArray[Any]:
    """Return D between some rows of Y and all."""
    size = (Y * Y).sum(axis=1)
    D = Y[rows] @ Y.T
    D *= -2.0
    D += size[rows, None]
    D += size
    np.maximum(D, 0.0, out=D)
    return D
