"""Locality preserving projections.

X. He, P. Niyogi, "Locality preserving projections", NIPS 2003. Rows are joined with their nearest
neighbours by edges of weight W_ij; with D the sums of the rows of W and L = D − W, the directions
are those of the smallest λ in

    Xᵀ L X a = λ Xᵀ D X a,      aᵀXᵀLXa = ½ Σ_ij W_ij (aᵀx_i − aᵀx_j)²,

for rows about their mean with the weights D: the functions aᵀx are then orthogonal to the
constants, of which λ = 0 says nothing. Directions in which the rows do not vary are left out first,
as the papers do by a PCA.

A row of weight s is s rows in one place, so its edges to a row of weight t count s·t times.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, sparse

from widemargin.base import parameters as check
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.projection import ProjectionEstimator
from widemargin.discriminant import direction_parameters
from widemargin.loop import Resources
from widemargin.rows import distinct_rows
from widemargin.scatter.class_scatter import LabelledRows, per_unit, scatter_of
from widemargin.scatter.eigenproblem import (
    Eigenvectors,
    check_n_components,
    generalized_eigenvectors,
)
from widemargin.scatter.neighbour_graph import (
    Edges,
    GraphMoments,
    graph_moments,
    joined_neighbours,
)
from widemargin.scatter.neighbours import FeatureRows

# A variance below this share of the squared mean is rounding.
_ROUNDING = 1e-24


@parameters
class LocalityPreservingProjection(ProjectionEstimator):
    """Linear features that keep neighbours together: Laplacian eigenmaps for new rows too.

    Parameters
    ----------
    n_components : int, default=2
        Features; None is as many as the rows have directions.
    n_neighbors : int, default=5
        Two rows are joined if one is among so many nearest rows of the other.
    affinity : {"heat", "binary"}, default="heat"
        Weight of an edge: exp(−‖x_i − x_j‖² / bandwidth), or 1.
    bandwidth : float or "auto", default="auto"
        "auto" is the mean squared length of the edges.
    supervised : bool, default=False
        Join rows of the same class only; otherwise labels are not looked at.
    variance : float in (0, 1], default=1.0
        Share of the variance that the PCA before keeps: with fewer rows than features nearly any
        function of the training rows is linear, and some such limit is needed.
    kernel : str, callable, Kernel or None, default=None
        None works in the input space; otherwise in the span of `n_vectors` vectors, by `SpanMap`.
        Neighbours are those in that space.
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
        Where they come from, as in `SpanMap`; "core" needs ``supervised=True``.
    memory : int or str, default="auto"
        Budget for blocks of rows and for features; the graph, of some n · n_neighbors edges, comes
        on top.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the choice of vectors.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features or span features)
        The directions, the smallest λ first. The variance along each is one, where a row counts as
        much as its edges weigh.
    eigenvalues_ : ndarray of shape (n_components,)
        λ, from 0 (neighbours coincide) to 2.
    bandwidth_ : float
        The bandwidth that was used; NaN with ``affinity="binary"``.
    mean_ : ndarray of shape (n_features or span features,)
        What `transform` subtracts first: the mean of the rows with the weights of their edges.
    classes_ : ndarray of shape (n_classes,)
        Labels, with ``supervised=True`` only.
    span_map_ : SpanMap or None
        The map into the span.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    LocalFisherDA : Keeps neighbours of one class together and pushes classes apart.

    Notes
    -----
    Equal rows are one row whose weight is theirs together, so that a row of weight k is the same as
    k copies of it. Of rows that are equally near as the last neighbour, a hash of their content
    decides which one is taken, and the order of the rows does not.

    References
    ----------
    .. [1] X. He, P. Niyogi, "Locality preserving projections", NIPS 2003.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from widemargin import LocalityPreservingProjection
    >>> X, _ = load_digits(return_X_y=True)
    >>> LocalityPreservingProjection(n_components=3).fit_transform(X[:300]).shape
    (300, 3)
    """

    n_components: int | None = positional(2, check.count_or_none)
    n_neighbors: int = keyword(5, check.count)
    affinity: str = keyword("heat", check.choice("heat", "binary"))
    bandwidth: float | str = keyword("auto", check.word_or(("auto",), check.positive))
    supervised: bool = keyword(False, direction_parameters.truth)
    variance: float = keyword(1.0, direction_parameters.share)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = bool(self.supervised)
        return tags

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LocalityPreservingProjection:
        """Find the directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; a kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``.
        y : array-like of shape (n_samples,), default=None
            Labels of any type; looked at with ``supervised=True`` only.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted transformer.
        """
        with self._fitting() as resources:
            if self.supervised:
                data = self._rows_with_classes(X, y, sample_weight, resources)
            else:
                data = self._unlabelled(X, sample_weight, resources)
            features = self._fit_span(data)
            distinct = distinct_rows(data.rows, data.code, data.weight)
            scatter = scatter_of(
                distinct.rows, np.zeros_like(distinct.code), distinct.weight, 1, features
            )
            unit = scatter.unit if scatter.unit > 0 else 1.0
            edges = joined_neighbours(distinct, features, scatter.mean[0], unit, self.n_neighbors)
            graph = self._graph(edges, distinct.weight, unit)
            everything = np.arange(len(distinct.index))
            points = FeatureRows(distinct.rows, everything, features, scatter.mean[0], unit)
            moments = graph_moments(points, graph)
            found = self._directions(moments)
            n = check_n_components(self.n_components, features.width, len(found.values), "")
        self.eigenvalues_ = np.clip(found.values[:n], 0.0, 2.0)
        self._keep(per_unit(found.vectors[:, :n].T, unit), scatter.mean[0] + unit * moments.mean)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(self.vectors, str) and self.vectors == "core" and not self.supervised:
            raise ValueError(
                "vectors='core' chooses rows near a margin and needs labels: set supervised=True, "
                "or use vectors='kmeans'."
            )

    def _unlabelled(self, X: Any, sample_weight: Any, resources: Resources) -> LabelledRows:
        X = self._validated(X, ensure_min_samples=2)
        weight = self._weights(X, sample_weight)
        if not weight.any():
            raise ValueError("sample_weight is zero for every row; at least two must count.")
        return self._counted(X, np.zeros(X.shape[0], dtype=np.intp), weight, resources)

    def _graph(self, edges: Edges, weight: NDArray[np.float64], unit: float) -> Any:
        """Return W, symmetric and sparse."""
        weight = weight / weight.max()
        pairs = weight[edges.first] * weight[edges.second]
        total = float(pairs.sum())
        if not total > 0:
            raise ValueError(
                "There are no two different rows to join as neighbours"
                + (" in any class" if self.supervised else "")
                + "; X must have some with positive sample_weight."
            )
        values = pairs / total
        self.bandwidth_ = float("nan")
        if self.affinity == "heat":
            mean_square = float(values @ edges.squares)
            wide = mean_square if isinstance(self.bandwidth, str) else self.bandwidth / unit / unit
            self.bandwidth_ = wide * unit * unit
            with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                # Rows in one place have the weight 1 whatever the bandwidth.
                exponent = np.where(edges.squares > 0, edges.squares / wide, 0.0)
            values = values * np.exp(-exponent)
            if not values.any():
                raise ValueError(
                    f"bandwidth={self.bandwidth!r} gives all edges the weight zero; the mean "
                    f"squared length of an edge is {mean_square * unit * unit:.3g}: give a "
                    "bandwidth of that size, or 'auto'."
                )
        n = len(weight)
        half = sparse.csr_array((values, (edges.first, edges.second)), shape=(n, n))
        return (half + half.T).tocsr()

    def _directions(self, moments: GraphMoments) -> Eigenvectors:
        """Solve the eigenproblem, in the space that a PCA keeps."""
        if self.variance == 1.0:
            floor = _ROUNDING * moments.mean**2
            return generalized_eigenvectors(moments.smoothness, moments.covariance, floor)
        variances, axes = linalg.eigh(moments.covariance, check_finite=False)
        share = np.cumsum(variances[::-1]) / variances.sum()
        kept = axes[:, ::-1][:, : int(np.searchsorted(share, self.variance)) + 1]
        found = generalized_eigenvectors(
            kept.T @ moments.smoothness @ kept, kept.T @ moments.covariance @ kept
        )
        return Eigenvectors(found.values, kept @ found.vectors)
