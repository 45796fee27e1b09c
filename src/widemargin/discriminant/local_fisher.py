"""Local Fisher discriminant analysis.

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
With A = 1 both are LDA's. In G_c = XᵀSLSX (L the Laplacian of the affinities, S the weights) the
product of a block of rows of L with X is all that is held of L.

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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.discriminant.eigenproblem import check_n_components, generalized_eigenvectors
from widemargin.discriminant.neighbours import FeatureRows, nearest_rows, squared_distances
from widemargin.discriminant.projection import ProjectionEstimator
from widemargin.discriminant.scatter import (
    ClassScatter,
    VisitFeatures,
    check_shrinkage,
    scatter_of,
)
from widemargin.parameters import check_choice, check_count
from widemargin.rows import Distinct, distinct_rows
from widemargin.threads import ordered_map, single_threaded_blas

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_EMBEDDINGS = "weighted", "plain", "orthonormalized"
# A variance below this share of the squared class means is rounding.
_ROUNDING = 1e-24
# Rows that are collected before they are multiplied: thousands of classes have few rows each.
_COLLECTED_ROWS = 1024


class LocalFisherDA(ProjectionEstimator):
    """Fisher's discriminants for classes of several clusters, as many features as one wants.

    Rows of one class are pulled together only as far as they are near each other; rows of different
    classes are pushed apart wherever they are. A class may so remain in several pieces, which LDA
    would force onto each other, and there is no limit of classes − 1 features.

    Parameters
    ----------
    n_components : int, default=None
        Features; None is as many as the space has.
    n_neighbors : int, default=7
        A_ij = exp(−‖x_i − x_j‖² / (σ_i σ_j)) with σ_i the distance from x_i to this neighbour in
        its class, or to the furthest row of a smaller class.
    embedding : {"weighted", "plain", "orthonormalized"}, default="weighted"
        Directions of unit variance within (locally) and times √λ, so that better ones weigh more in
        a distance; the same without √λ; or orthonormal ones with the same span.
    shrinkage : float in [0, 1], "auto" or None, default="auto"
        How far the local within-class scatter is moved towards its mean variance times the
        identity; "auto" is the intensity of Ledoit and Wolf for as many rows as the affinities
        leave. Without, directions in which that scatter vanishes are left out.
    kernel : str, callable, Kernel or None, default=None
        None works in the input space; otherwise in the span of `n_vectors` vectors, by `SpanMap`.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    n_vectors : int, default=500
        Vectors of the span, at the most.
    vectors : {"kmeans", "random", "leverage", "core"}, array or strategy, default="kmeans"
        Where they come from, as in `SpanMap`.
    memory : int or str, default="1GB"
        Budget for blocks of rows and for the features of one class.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the choice of vectors.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features or span features)
        The directions, the best first.
    eigenvalues_ : ndarray of shape (n_components,)
        λ: local between-class scatter over local within-class scatter along them.
    shrinkage_ : float
        The shrinkage that was used.
    mean_ : ndarray of shape (n_features or span features,)
        What `transform` subtracts first, the mean of the training rows.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    span_map_ : SpanMap or None
        The map into the span.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    LocalityPreservingProjection : Keeps neighbours together, without labels.

    Notes
    -----
    Equal rows of one class count as one neighbour, whose weight in all sums is theirs together. A
    row of weight k is then the same as k copies of it, and no σ is zero.

    Time grows with the sum of the squared class sizes, memory does not: affinities are made a block
    of rows at a time.

    References
    ----------
    .. [1] M. Sugiyama, "Dimensionality reduction of multimodal labeled data by local Fisher
       discriminant analysis", JMLR 2007.
    .. [2] L. Zelnik-Manor, P. Perona, "Self-tuning spectral clustering", NIPS 2004.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import LocalFisherDA
    >>> noise = np.random.default_rng(0).standard_normal((150, 2))
    >>> y = np.repeat([0, 1, 0], 50)  # the first class lies on both sides of the second
    >>> X = np.c_[np.repeat([-5, 0, 5], 50) + noise[:, 0], noise[:, 1]]
    >>> LocalFisherDA(1, embedding="orthonormalized").fit(X, y).components_.round(1)
    array([[ 1., -0.]])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        n_neighbors: int = 7,
        embedding: str = "weighted",
        shrinkage: float | str | None = "auto",
        kernel: Any = None,
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        kernel_params: dict[str, Any] | None = None,
        n_vectors: int = 500,
        vectors: Any = "kmeans",
        memory: int | str = "1GB",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.n_neighbors = n_neighbors
        self.embedding = embedding
        self.shrinkage = shrinkage
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.n_vectors = n_vectors
        self.vectors = vectors
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LocalFisherDA:
        """Find the directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; a kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted transformer.
        """
        self._check_parameters()
        data = self._labelled(X, y, sample_weight)
        with single_threaded_blas():
            features = self._fit_span(data)
            distinct = distinct_rows(data.rows, data.code, data.weight)
            classes = scatter_of(
                distinct.rows, distinct.code, distinct.weight, len(self.classes_), features
            )
            scatters = local_scatters(distinct, features, classes, self.n_neighbors)
            self.shrinkage_ = scatters.intensity(self.shrinkage)
            self._keep_directions(scatters, classes)
        return self

    def _check_parameters(self) -> None:
        check_count("n_components", self.n_components, none=True)
        check_count("n_neighbors", self.n_neighbors)
        check_choice("embedding", self.embedding, _EMBEDDINGS)
        check_shrinkage(self.shrinkage)
        super()._check_parameters()

    def _keep_directions(self, scatters: LocalScatters, classes: ClassScatter) -> None:
        d = classes.n_features
        within, between = scatters.within, scatters.between
        floor = _ROUNDING * np.abs(classes.offset).max(axis=0) ** 2
        if not (np.diagonal(within) > floor).any():
            # The rows of each class are all equal: what remains is to spread the classes.
            spread = float(np.trace(between))
            within = np.eye(d) * (spread if spread > 0 else 1.0)
        elif self.shrinkage_ > 0:
            variance = float(np.trace(within)) / d
            within = (1.0 - self.shrinkage_) * within + self.shrinkage_ * variance * np.eye(d)
        found = generalized_eigenvectors(between, within, floor).reversed()
        n = check_n_components(self.n_components, d, len(found.values), ", or shrinkage > 0")
        self.eigenvalues_ = np.maximum(found.values[:n], 0.0)
        vectors = found.vectors[:, :n]
        unit = classes.unit if classes.unit > 0 else 1.0
        if self.embedding == "orthonormalized":
            vectors = np.linalg.qr(vectors)[0]
        else:
            vectors = vectors / unit
            if self.embedding == "weighted":
                vectors = vectors * np.sqrt(self.eigenvalues_)
        center = classes.weight @ classes.offset / classes.total
        self._keep(vectors.T, classes.origin + classes.unit * center)


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
    for part in _collected(_class_parts(distinct, features, classes, n_neighbors)):
        within += part.X.T @ part.pulled
        between += part.X.T @ part.pushed
        trace += part.trace
        square += part.square
    return LocalScatters(within, between, trace**2 / square if square > 0 else 0.0)


@dataclass(frozen=True)
class _Part:
    """What some rows add to the scatters.

    Attributes
    ----------
    X, pulled, pushed : ndarray of shape (n, n_features)
        The rows, and their part of MX: S^w is Xᵀ times `pulled`, and the second term of S^b is Xᵀ
        times `pushed`.
    trace, square : float
        Their part of tr M and tr M².
    """

    X: Matrix
    pulled: Matrix
    pushed: Matrix
    trace: float
    square: float


def _class_parts(
    distinct: Distinct, features: VisitFeatures, classes: ClassScatter, n_neighbors: int
) -> Iterator[_Part]:
    """Yield the parts of all classes, block by block."""
    order = np.argsort(distinct.code, kind="stable")
    ends = np.cumsum(np.bincount(distinct.code, minlength=len(classes.weight)))
    unit = classes.unit if classes.unit > 0 else 1.0
    for c, (index, mean) in enumerate(zip(np.split(order, ends[:-1]), classes.mean, strict=True)):
        # One row has no pairs.
        if len(index) < 2:
            continue
        points = FeatureRows(distinct.rows, index, features, mean, unit)
        reach = np.sqrt(nearest_rows(points, n_neighbors).squares[:, -1])
        share = distinct.weight[index] / classes.total
        visit = _LocalPart(points, share, reach, classes.weight[c] / classes.total)
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
        own = self.weight[where]
        factor = own / self.share
        pull *= factor[:, None]
        pushed = (1.0 - self.share) * (own[:, None] * X - pull)
        # The affinity of a row to itself is 1, and drops out of L.
        diagonal = factor * (degree - own)
        rest = factor**2 * np.maximum(square - own**2, 0.0)
        return _Part(X, pull, pushed, float(diagonal.sum()), float((diagonal**2 + rest).sum()))

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
        squares /= product
        np.negative(squares, out=squares)
        return np.exp(squares, out=squares)


def _collected(parts: Iterator[_Part]) -> Iterator[_Part]:
    """Yield parts of many rows: a product with few rows costs as much as one with hundreds."""
    waiting: list[_Part] = []
    for part in parts:
        waiting.append(part)
        if sum(len(some.X) for some in waiting) >= _COLLECTED_ROWS:
            yield _stacked(waiting)
            waiting = []
    if waiting:
        yield _stacked(waiting)


def _stacked(parts: list[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    return _Part(
        np.concatenate([part.X for part in parts]),
        np.concatenate([part.pulled for part in parts]),
        np.concatenate([part.pushed for part in parts]),
        sum(part.trace for part in parts),
        sum(part.square for part in parts),
    )
