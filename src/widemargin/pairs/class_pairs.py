"""All pairs of classes, without a list of them.

Class means stand in coordinates of the span of their differences, in the space where the
within-class covariance is the identity: D_ij = ‖y_i − y_j‖² is then the squared Mahalanobis
distance of two classes. There may be millions of pairs, so they are gone through by blocks of rows
of the matrix D, one product a block (`scan_pairs`); nothing of the size of D is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Codes, IndexArray, Matrix, Vector
from widemargin.scatter.neighbours import squared_distances
from widemargin.threads import ordered_map

Answer = TypeVar("Answer")

# Numbers of D in a block: fixed, so that threads do not change the sums.
BLOCK = 1 << 18
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

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.first)

    def __getitem__(self, chosen: NDArray[Any]) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.first[chosen], self.second[chosen], self.distance[chosen])

    def __add__(self, others: Pairs) -> Pairs:
        """Return these pairs and others behind them."""
        return Pairs(
            np.append(self.first, others.first),
            np.append(self.second, others.second),
            np.append(self.distance, others.distance),
        )

    def missing_in(self, others: Pairs) -> NDArray[np.bool_]:
        """Return which of the pairs are not among others."""
        found, known = ((each.first << 32) + each.second for each in (self, others))
        return ~np.isin(found, known)


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
    block : int
        Numbers of D in a block.
    """

    means: Matrix
    prior: Vector
    threads: int = 1
    block: int = BLOCK

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

        def of(rows: slice, D: Matrix) -> tuple[Codes, Codes, Vector]:
            _count_once(D)
            flat = D.ravel()
            kept = np.argpartition(flat, min(count, flat.size) - 1)[:count]
            kept = kept[np.isfinite(flat[kept])]
            i, j = np.divmod(kept, D.shape[1])
            return i + rows.start, j + rows.start, flat[kept]

        parts = list(scan_pairs(Y, of, self.threads, self.block))
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
        share = self.prior / self.prior.sum()
        weight = np.log(np.maximum(share, np.finfo(float).tiny))
        least, most = self._least(Y), float(weight.max())

        def of(rows: slice, D: Matrix) -> list[tuple[float, Matrix]]:
            np.fill_diagonal(D, np.inf)
            D -= least
            E = np.empty_like(D)
            parts = []
            for rate in rates:
                np.multiply(D, -rate, out=E)
                E += (weight[rows, None] - most) + (weight[rows.start :] - most)
                np.exp(E, out=E)
                # Pairs within the block are there twice.
                twice = float(E.sum() + E[:, len(E) :].sum())
                parts.append((twice, pulled(E, Y, rows)))
            return parts

        totals, pulls = np.zeros(len(rates)), np.zeros((len(rates), *Y.shape))
        for parts in scan_pairs(Y, of, self.threads, self.block):
            for r, (total, pull) in enumerate(parts):
                totals[r] += total
                pulls[r, -len(pull) :] += pull
        total_weight = 1.0 - float(share @ share)
        soft = least - (2.0 * most + np.log(totals / total_weight)) / rates
        slope: Matrix = np.tensordot(4.0 * shares / totals, pulls, axes=1)
        return float(shares @ soft), slope

    def _least(self, Y: Matrix) -> float:
        """Return the smallest distance, as the product of a block has it."""

        def of(rows: slice, D: Matrix) -> float:
            np.fill_diagonal(D, np.inf)
            return float(D.min())

        return min(scan_pairs(Y, of, self.threads, self.block))

    def shortfall(self, Y: Matrix, power: int) -> float:
        """Return Σ max(0, 1 − D)^power over the pairs, D the distances between rows of Y."""

        def of(rows: slice, D: Matrix) -> float:
            _count_once(D)
            short = 1.0 - D[D < 1.0]
            return float((short**power).sum())

        return sum(scan_pairs(Y, of, self.threads, self.block))

    def differences(self, pairs: Pairs) -> Matrix:
        """Return δ of some pairs."""
        return self.means[pairs.first] - self.means[pairs.second]

    def merged(self) -> tuple[ClassPairs, Codes]:
        """Return the pairs of different means, and which of them the mean of each class is.

        Classes whose means are the same cannot be told apart by any projection of them.
        """
        center = self.means.mean(axis=0)
        # Within-class deviations are 1 here: far below that, only rounding is different.
        limit = _SAME * max(1.0, float(((self.means - center) ** 2).sum(axis=1).max()))
        leader = np.arange(self.n_classes)

        def equal(rows: slice, D: Matrix) -> tuple[IndexArray, IndexArray]:
            i, j = np.nonzero(limit >= D)
            return i + rows.start, j + rows.start

        for i, j in scan_pairs(self.means, equal, self.threads, self.block, precise=True):
            np.minimum.at(leader, j, leader[i])
        kept, group = np.unique(leader, return_inverse=True)
        prior = np.bincount(group, weights=self.prior).astype(np.float64)
        return replace(self, means=self.means[kept], prior=prior), group


def scan_pairs(
    Y: Matrix,
    visit: Callable[[slice, Matrix], Answer],
    threads: int,
    block: int,
    *,
    precise: bool = False,
) -> Iterator[Answer]:
    """Yield visit(rows, D) for blocks of the matrix of squared distances between rows of Y.

    The matrix is symmetric: D are the distances of some rows to themselves and to those after them.

    Parameters
    ----------
    Y : ndarray of shape (c, d)
        Class means, or their projections.
    visit : callable
        Takes the rows of a block and D, of shape (stop - start, c - start), which it may overwrite.
    threads : int
        Threads; the answers do not depend on it.
    block : int
        Numbers of D in a block: sums over the blocks depend on it in their last digits.
    precise : bool, default=False
        Whether close pairs shall keep the digits that a product loses.

    Examples
    --------
    >>> import numpy as np
    >>> Y = np.array([[0.0], [1.0], [3.0]])
    >>> [D.tolist() for D in scan_pairs(Y, lambda rows, D: D, 1, 100)]
    [[[0.0, 1.0, 9.0], [1.0, 0.0, 4.0], [9.0, 4.0, 0.0]]]
    """
    size = (Y * Y).sum(axis=1)

    def of(rows: slice) -> Answer:
        others = slice(rows.start, None)
        if precise:
            return visit(rows, squared_distances(Y[rows], Y[others]))
        D = Y[rows] @ Y[others].T
        D *= -2.0
        D += size[rows, None]
        D += size[others]
        return visit(rows, np.maximum(D, 0.0, out=D))

    return ordered_map(of, _blocks(len(Y), block), threads)


def pulled(E: Matrix, Y: Matrix, rows: slice) -> Matrix:
    """Return what a block of weights of pairs adds to L Y, L the Laplacian of all of them.

    Parameters
    ----------
    E : ndarray of shape (stop - start, c - start)
        Weights in a block of `scan_pairs`, zero on the diagonal.
    Y : ndarray of shape (c, d)
        What is multiplied.
    rows : slice
        The rows of the block.

    Returns
    -------
    ndarray of shape (c - start, d)
        Σ_j E_ij (y_i − y_j) for the rows of the block and those after it, which have it by
        symmetry; nothing is added to those before.
    """
    here, after = Y[rows], Y[rows.stop :]
    beyond = E[:, len(E) :]
    pull = np.empty((E.shape[1], Y.shape[1]))
    np.subtract(E.sum(axis=1)[:, None] * here, E @ Y[rows.start :], out=pull[: len(E)])
    np.subtract(beyond.sum(axis=0)[:, None] * after, beyond.T @ here, out=pull[len(E) :])
    return pull


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


def _blocks(c: int, block: int) -> Iterator[slice]:
    """Yield rows with about as many pairs in each block; the last row has none of its own."""
    first = 0
    while first < max(1, c - 1):
        step = max(1, block // (c - first))
        yield slice(first, min(c, first + step))
        first += step


def _count_once(D: Matrix) -> None:
    """Leave each pair of a block once: infinity on the diagonal and below it."""
    D[np.tril_indices(len(D))] = np.inf
