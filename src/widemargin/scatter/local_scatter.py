"""Local scatter within and between classes: sums over pairs of near rows, a block at a time.

M. Sugiyama, "Dimensionality reduction of multimodal labeled data by local Fisher discriminant
analysis", JMLR 8, 2007. With s_i the weights of the rows, n_c and n their sums over a class and
over all rows, and A_ij the affinity of two rows of one class,

    S^w = ½ Σ_ij s_i s_j W^w_ij (x_i − x_j)(x_i − x_j)ᵀ,   W^w = A_ij / n_c,  or 0,
    S^b = ½ Σ_ij s_i s_j W^b_ij (x_i − x_j)(x_i − x_j)ᵀ,   W^b = A_ij (1/n − 1/n_c),  or 1/n,

for pairs of one class c, or of two. The sums over pairs of two classes need no pairs: with C_c the
scatter of a class about its mean, G_c = ½ Σ_{ij in c} s_i s_j A_ij (x_i − x_j)(x_i − x_j)ᵀ, and B
the between-class scatter of LDA,

    S^w = Σ_c G_c / n_c,        S^b = B + Σ_c (1 − n_c/n) (C_c − G_c/n_c).

C_c − G_c/n_c is the same sum with 1 − A_ij, so that S^b is positive semidefinite, term by term.
With A = 1 both are LDA's. In G_c = XᵀLX, L the Laplacian of the weights s_i s_j A_ij, the product
of a block of rows of L with X is all that is held of L.

S^w = XᵀMX is a quadratic form in the rows. Were they Gaussian, with one covariance, it would vary
as a covariance of ν = (tr M)² / tr M² rows does (Satterthwaite); for so many rows the intensity of
Ledoit and Wolf in the form of Y. Chen, A. Wiesel, Y. C. Eldar, A. O. Hero, "Shrinkage algorithms
for MMSE covariance estimation", IEEE Transactions on Signal Processing 2010, is

    ((ν − 2)/ν tr S² + (tr S)²) / ((ν + 2) (tr S² − (tr S)²/d)).

The intensity for all rows about their class means would be no guide: where classes have several
clusters that scatter may be round and the local one is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from widemargin.arrays import Matrix, Vector
from widemargin.rows import Distinct
from widemargin.scatter.class_scatter import ClassScatter, VisitFeatures
from widemargin.scatter.neighbour_graph import by_class
from widemargin.scatter.neighbours import FeatureRows, nearest_rows, squared_distances
from widemargin.threads import ordered_map

# Rows that are collected before they are multiplied: thousands of classes have few rows each.
_COLLECTED_ROWS = 1024


@dataclass(frozen=True)
class LocalScatters:
    """Local scatter matrices, divided by the sum of weights.

    Attributes
    ----------
    within, between : ndarray of shape (n_features, n_features)
        S^w and S^b, in the squared unit of the class scatter.
    freedom : float
        ν, the number of rows that S^w is worth.
    """

    within: Matrix
    between: Matrix
    freedom: float

    def intensity(self, shrinkage: float | str | None) -> float:
        """Return `shrinkage` as a number: 0 for None, that of Ledoit and Wolf for "auto"."""
        if shrinkage is None:
            return 0.0
        if not isinstance(shrinkage, str):
            return float(shrinkage)
        square = float(np.sum(self.within * self.within))
        trace2 = float(np.trace(self.within)) ** 2
        far = square - trace2 / len(self.within)
        if not far > 0:
            # A multiple of the identity: there is nothing to move.
            return 0.0
        free = max(2.0, self.freedom)
        return min(1.0, ((1.0 - 2.0 / free) * square + trace2) / ((free + 2.0) * far))


def local_scatters(
    distinct: Distinct, features: VisitFeatures, classes: ClassScatter, n_neighbors: int
) -> LocalScatters:
    """Return the local scatter matrices.

    Parameters
    ----------
    distinct : Distinct
        Distinct rows, their classes and weights.
    features : callable
        Turns a block of rows into features.
    classes : ClassScatter
        Counts and means of the classes.
    n_neighbors : int
        The neighbour at which an affinity ends.

    Returns
    -------
    LocalScatters
        The same bits for any number of threads.
    """
    share = classes.weight / classes.total
    apart = (classes.offset - share @ classes.offset) * np.sqrt(share)[:, None]
    within, between = np.zeros((classes.n_features,) * 2), apart.T @ apart
    trace = square = 0.0
    waiting: list[Matrix] = []
    for part in _class_parts(distinct, features, classes, n_neighbors):
        trace += part.trace
        square += part.square
        waiting.append(part.products)
        # A product with few rows costs as much as one with hundreds.
        if sum(rows.shape[1] for rows in waiting) >= _COLLECTED_ROWS:
            _add_products(waiting, within, between)
            waiting = []
    if waiting:
        _add_products(waiting, within, between)
    return LocalScatters(within, between, trace**2 / square if square > 0 else 0.0)


def _add_products(parts: list[Matrix], within: Matrix, between: Matrix) -> None:
    X, pulled, pushed = np.concatenate(parts, axis=1)
    within += X.T @ pulled
    between += X.T @ pushed


class _Part(NamedTuple):
    """What some rows add to the scatters.

    Attributes
    ----------
    products : ndarray of shape (3, n, n_features)
        The rows X, and their parts of MX: S^w is Xᵀ times the second, and the second term of S^b is
        Xᵀ times the third.
    trace, square : float
        Their part of tr M and tr M².
    """

    products: Matrix
    trace: float
    square: float


def _class_parts(
    distinct: Distinct, features: VisitFeatures, classes: ClassScatter, n_neighbors: int
) -> Iterator[_Part]:
    """Yield the parts of all classes, block by block."""
    unit = classes.unit if classes.unit > 0 else 1.0
    groups = by_class(distinct.code, len(classes.weight))
    for index, mean, class_weight in zip(groups, classes.mean, classes.weight, strict=True):
        # One row has no pairs.
        if len(index) < 2:
            continue
        points = FeatureRows(distinct.rows, index, features, mean, unit)
        reach = np.sqrt(nearest_rows(points, n_neighbors).squares[:, -1])
        share = distinct.weight[index] / classes.total
        visit = _LocalPart(points, share, reach, class_weight / classes.total)
        yield from ordered_map(visit, points.slices, points.threads)


@dataclass(frozen=True)
class _LocalPart:
    """The part of a slice of the rows of one class.

    Attributes
    ----------
    points : FeatureRows
        The rows of the class about their mean.
    weight : ndarray of shape (n,)
        Their shares of all weight, s_i / n.
    reach : ndarray of shape (n,)
        σ, the distance of the neighbour at which an affinity ends.
    share : float
        The share of the class, n_c / n.
    """

    points: FeatureRows
    weight: Vector
    reach: Vector
    share: float

    def __call__(self, where: slice) -> _Part:
        X = self.points.at(where)
        pull = np.zeros_like(X)
        degree, square = np.zeros(len(X)), np.zeros(len(X))
        for other in self.points.slices:
            Z = self.points.at(other)
            affinity = self._affinities(X, Z, self.reach[where], self.reach[other])
            affinity *= self.weight[other]
            degree += affinity.sum(axis=1)
            square += np.einsum("ij,ij->i", affinity, affinity)
            pull -= affinity @ Z
        pull += degree[:, None] * X
        weight = self.weight[where]
        factor = weight / self.share
        pull *= factor[:, None]
        pushed = (1.0 - self.share) * (weight[:, None] * X - pull)
        # The affinity of a row to itself is 1, and drops out of L.
        diagonal = factor * (degree - weight)
        rest = factor**2 * np.maximum(square - weight**2, 0.0)
        products = np.stack([X, pull, pushed])
        return _Part(products, float(diagonal.sum()), float((diagonal**2 + rest).sum()))

    @staticmethod
    def _affinities(X: Matrix, Z: Matrix, reach: Vector, other_reach: Vector) -> Matrix:
        squares = squared_distances(X, Z)
        product = np.outer(reach, other_reach)
        alone = product == 0
        if alone.any():
            # Different rows with the same features, more of them than neighbours count: they are
            # near each other and nothing else.
            product[alone] = 1.0
            squares[alone & (squares > 0)] = np.inf
        with np.errstate(over="ignore"):
            squares /= product
        np.negative(squares, out=squares)
        return np.exp(squares, out=squares)
