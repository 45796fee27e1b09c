"""Local Fisher discriminant analysis: the transformer.

M. Sugiyama, "Dimensionality reduction of multimodal labeled data by local Fisher discriminant
analysis", JMLR 8, 2007: the directions of the largest λ in S^b v = λ S^w v, with the scatters of
`local_scatter`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from widemargin.base import parameters as check
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.projection import ProjectionEstimator
from widemargin.rows import distinct_rows
from widemargin.scatter.class_scatter import ClassScatter, per_unit, scatter_of
from widemargin.scatter.eigenproblem import check_n_components, generalized_eigenvectors
from widemargin.scatter.local_scatter import LocalScatters, local_scatters

# Share of the squared size of the class means below which a variance is rounding.
_ROUNDING = 1e-24


@parameters
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
    memory : int or str, default="auto"
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

    n_components: int | None = positional(None, check.count_or_none)
    n_neighbors: int = keyword(7, check.count)
    embedding: str = keyword("weighted", check.choice("weighted", "orthonormalized", "plain"))
    shrinkage: float | str | None = keyword("auto", check.shrinkage)

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
        with self._fitting() as resources:
            data = self._rows_with_classes(X, y, sample_weight, resources)
            features = self._fit_span(data)
            distinct = distinct_rows(data.rows, data.code, data.weight)
            classes = scatter_of(
                distinct.rows, distinct.code, distinct.weight, len(self.classes_), features
            )
            scatters = local_scatters(distinct, features, classes, self.n_neighbors)
            self.shrinkage_ = scatters.intensity(self.shrinkage)
            self._keep_directions(scatters, classes)
        return self

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
        found = generalized_eigenvectors(between, within, floor)
        n = check_n_components(self.n_components, d, len(found.values), ", or shrinkage > 0")
        # The largest first.
        self.eigenvalues_ = np.maximum(found.values[::-1][:n], 0.0)
        vectors = found.vectors[:, ::-1][:, :n]
        if self.embedding == "orthonormalized":
            vectors = np.linalg.qr(vectors)[0]
        else:
            if self.embedding == "weighted":
                vectors = vectors * np.sqrt(self.eigenvalues_)
            vectors = per_unit(vectors, classes.unit)
        center = classes.weight @ classes.offset / classes.total
        self._keep(vectors.T, classes.origin + classes.unit * center)
