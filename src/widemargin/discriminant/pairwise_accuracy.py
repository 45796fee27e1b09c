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

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from widemargin.discriminant.pairs import pulled, scan_pairs
from widemargin.discriminant.projection import LabelledRows, ProjectionEstimator
from widemargin.discriminant.scatter import check_shrinkage, scatter_of
from widemargin.discriminant.whitening import leading, whitened
from widemargin.parameters import check_choice, check_count
from widemargin.threads import n_threads, single_threaded_blas

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


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
    memory : int or str, default="1GB"
        Budget for blocks of rows.
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

    def __init__(
        self,
        n_components: int | None = None,
        *,
        shrinkage: float | str | None = None,
        priors: Any = None,
        weighting: str = "accuracy",
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
        self.shrinkage = shrinkage
        self.priors = priors
        self.weighting = weighting
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PairwiseAccuracyDA:
        """Find the directions.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; a kernel matrix if ``kernel="precomputed"``.
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
        with single_threaded_blas():
            data = self._labelled(X, y, sample_weight)
            weight = self._weight(data)
            features = self._fit_span(data)
            scatter = scatter_of(data.rows, data.code, weight, len(self.classes_), features)
            self.shrinkage_ = scatter.intensity(self.shrinkage)
            space = whitened(scatter, self.shrinkage_)
            pulled = pull(space.means, self.priors_, self.weighting, n_threads(self.n_jobs))
            directions, self.criterion_ = leading(space.means, pulled, self.n_components)
            self._keep((space.matrix @ directions).T, space.mean)
        return self

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_count("n_components", self.n_components, none=True)
        check_shrinkage(self.shrinkage)
        check_choice("weighting", self.weighting, ("accuracy", "equal"))

    def _weight(self, data: LabelledRows) -> Vector:
        """Set the probabilities of the classes, and return the weights of the rows by them."""
        share = np.bincount(data.code, data.weight, len(self.classes_)) / data.weight.sum()
        self.priors_ = share if self.priors is None else given_priors(self.priors, len(share))
        weight: Vector = data.weight * (self.priors_ / share)[data.code]
        return weight


def given_priors(priors: Any, n_classes: int) -> Vector:
    """Return the user's probabilities, or say what is wrong with them."""
    try:
        given = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"priors={priors!r} must be an array of probabilities.") from error
    if given.shape != (n_classes,) or not (given > 0).all() or abs(given.sum() - 1) > 1e-6:
        raise ValueError(
            f"priors={priors!r} must hold a positive probability for each of the {n_classes} "
            "classes, in the order of classes_, and sum to 1; leave classes out with "
            "sample_weight=0."
        )
    return np.asarray(given / given.sum())


def pull(means: Matrix, priors: Vector, weighting: str, threads: int = 1) -> Matrix:
    """Return L M, the Laplacian of the weighted pairs of classes times the class means.

    Parameters
    ----------
    means : ndarray of shape (n_classes, rank)
        M, in the whitened space, about the mean of all rows.
    priors : ndarray of shape (n_classes,)
        Probabilities of the classes.
    weighting : {"accuracy", "equal"}
        Weights of the pairs.
    threads : int, default=1
        Threads; the answer does not depend on it.
    """
    if weighting == "equal":
        # Σ_j p_i p_j (m_i − m_j), for Σ_j p_j m_j is 0.
        return np.asarray(priors[:, None] * means)

    def of(rows: slice, square: Matrix) -> Matrix:
        pair = _accuracy_weights(square)
        pair *= priors[rows, None]
        pair *= priors[rows.start :]
        return pulled(pair, means, rows)

    pull_of_all = np.zeros_like(means)
    # Precisely, for the weight of a close pair is large.
    for part in scan_pairs(means, of, threads, precise=True):
        pull_of_all[-len(part) :] += part
    return pull_of_all


def _accuracy_weights(square: Matrix) -> Matrix:
    """Return erf(D / 2√2) / (2D²) for squared distances D²; 0 for equal means."""
    apart = square > 0
    square[~apart] = 1.0
    return np.where(apart, 0.5 * erf(np.sqrt(square / 8.0)) / square, 0.0)
