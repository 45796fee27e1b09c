"""Directions by which each pair of classes is told apart: the weighted pairwise Fisher criterion.

Fisher's between-class matrix is a sum over all pairs of classes, S_b = Σ p_i p_j δ_ij δ_ijᵀ with
δ_ij = m_i − m_j, so a pair that lies far apart already draws the directions to itself. Loog, Duin
and Haeb-Umbach (2001) weigh each pair by w(D) = erf(D / 2√2) / (2D²), with D its
Mahalanobis distance: up to a constant, the criterion is then the mean accuracy of the Bayes
classifiers of two classes each, as long as directions are aligned with δ ("approximate pairwise
accuracy criterion", aPAC).

In the whitened space S_b = Mᵀ L M with M the class means and L the Laplacian of the graph of the
classes with weights p_i p_j w(D_ij), of which a block of rows is made at a time (`pairs`).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.base import parameters as check
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.placing import check_device
from widemargin.base.projection import ProjectionEstimator, check_apart
from widemargin.pairs.pairwise_accuracy_weights import given_priors, pull
from widemargin.places.partitions import is_collection
from widemargin.scatter.device_scatter import scatter_anywhere
from widemargin.scatter.whitening import leading, whitened


@parameters
class PairwiseAccuracyDA(ProjectionEstimator):
    """Discriminant analysis by the accuracy on pairs of classes (aPAC).

    Linear discriminant analysis in which close pairs of classes count more than far ones. With two
    classes, or with ``n_components=n_classes - 1``, it spans the same space as that; with fewer
    components it keeps classes apart that the other merges.

    Parameters
    ----------
    n_components : int, default=None
        Number of directions, at most n_classes − 1. None takes all that separate class means.
    shrinkage : float in [0, 1], "auto" or None, default=None
        How far the within-class covariance is moved towards its mean variance times the identity;
        "auto" is the intensity of Ledoit and Wolf. Columns should then be of similar scale. Use it
        with few rows for each column, or with a kernel.
    priors : array of shape (n_classes,), default=None
        Probabilities of the classes, in the order of `classes_`; None takes their share of the
        weights. The within-class covariance is weighted by them too.
    weighting : {"accuracy", "equal"}, default="accuracy"
        Weights of the pairs; "equal" is linear discriminant analysis.
    kernel : str, callable or Kernel, default=None
        None works in the input space; otherwise in the span of `n_vectors` vectors in the
        kernel's feature space, see `SpanMap`.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    n_vectors : int, default=500
        Vectors at the most, with a kernel.
    vectors : {"kmeans", "random", "leverage", "core"}, array or strategy, default="kmeans"
        Where they come from, as in `SpanMap`.
    memory : int or str, default="auto"
        Budget for blocks of rows.
    device : str, default=None
        Where rows are worked on: "cpu" (NumPy), "cuda", "cuda:1" and so on (needs PyTorch); None is
        where X is. Features are what the rows are: arrays of PyTorch and CuPy stay on their device.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the choice of vectors.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features or n_vectors)
        The directions. Projections have the identity as within-class covariance, where it is not
        shrunk.
    mean_ : ndarray of shape (n_features or n_vectors,)
        The mean of the rows (or of their features in the span), which is subtracted first.
    criterion_ : ndarray of shape (n_components,)
        What each direction adds to the criterion, in descending order.
    shrinkage_ : float
        The intensity that was used.
    priors_ : ndarray of shape (n_classes,)
        The probabilities that were used.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    span_map_ : SpanMap or None
        The map into the span, with a kernel.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MaxMarginDA : More than n_classes − 1 directions.
    KernelFisherDA : Fisher's criterion with a kernel.

    Notes
    -----
    Memory is that of a d × d matrix, the class means, and a block of rows or pairs; rows are read
    once. Directions in which the within-class covariance vanishes are left out, unless `shrinkage`
    gives them a variance.

    References
    ----------
    .. [1] M. Loog, R. P. W. Duin, R. Haeb-Umbach, "Multiclass linear dimension reduction by
       weighted pairwise Fisher criteria", IEEE Transactions on Pattern Analysis and Machine
       Intelligence 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.neighbors import NearestCentroid
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin import PairwiseAccuracyDA
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(PairwiseAccuracyDA(3), NearestCentroid()).fit(X[:1000], y[:1000])
    >>> bool(model.score(X[1000:], y[1000:]) > 0.75)
    True
    """

    n_components: int | None = positional(None, check.count_or_none)
    shrinkage: float | str | None = keyword(None, check.shrinkage)
    priors: Any = keyword(None)
    weighting: str = keyword("accuracy", check.choice("accuracy", "equal"))
    device: str | None = keyword(None, check_device)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PairwiseAccuracyDA:
        """Find the directions.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Training rows; a kernel matrix if ``kernel="precomputed"``.
        y : array-like or Dask collection of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like or Dask collection of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted transformer.
        """
        with self._fitting(X) as resources:
            if is_collection(X):
                none = partial(min, 0)
                stream = self._scatters(X, y, sample_weight, resources, none, self._factors)
                scatter, features = stream.rest, self._features()
            else:
                data = self._rows_with_classes(X, y, sample_weight, resources)
                share = np.bincount(data.code, data.weight, len(self.classes_)) / data.weight.sum()
                weight = data.weight * self._factors(share)[data.code]
                features = self._fit_span(data)
                scatter = scatter_anywhere(
                    data.rows, data.code, weight, len(self.classes_), features
                )
            check_apart(scatter, features)
            self.shrinkage_ = scatter.intensity(self.shrinkage)
            space = whitened(scatter, self.shrinkage_)
            pulled = pull(space.means, self.priors_, self.weighting, resources.threads)
            directions, self.criterion_ = leading(space.means, pulled, self.n_components)
            self._keep((space.matrix @ directions).T, space.mean)
        return self

    def _factors(self, share: Vector) -> Vector:
        """Set the probabilities of the classes, and return the factors on their rows' weights."""
        self.priors_ = share if self.priors is None else given_priors(self.priors, len(share))
        factors: Vector = self.priors_ / share
        return factors
