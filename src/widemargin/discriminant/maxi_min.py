"""Maxi-Min discriminant analysis: the transformer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from widemargin.base import parameters as check
from widemargin.base.estimator import reporting, warn_user
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.placing import check_device
from widemargin.base.projection import ProjectionEstimator, check_apart
from widemargin.device import Array
from widemargin.discriminant import direction_parameters
from widemargin.loop import Resources
from widemargin.pairs.class_pairs import ClassPairs
from widemargin.pairs.maxi_min_engine import MaxiMinOptions, fit_maxi_min
from widemargin.pairs.pairwise_accuracy_weights import given_priors
from widemargin.places.partitions import is_collection
from widemargin.problem import codes_among, distinct_labels
from widemargin.rows import Rows
from widemargin.scatter.stream import Stream

# Rows that can be held out at the most.
_HELD_OUT = 20_000
# One over their share of the memory.
_MEMORY_PARTS = 8
# The share of the smallest distance that n_components="auto" keeps.
_KEEP = 0.9
# Pairs at up to this times the smallest distance are called active.
_ACTIVE = 1.01
# Pairs that are looked at for that at the least.
_LEAST_PAIRS = 64
# What is wrong with a label that was not announced.
_UNKNOWN_CLASS = (
    "which is not among the classes of the first call of partial_fit; give all labels there, as "
    "classes=."
)
# What is known before the directions are.
_KNOWN_BEFORE = ("classes_", "feature_names_in_", "n_features_in_", "span_map_")


@parameters
class MaxiMinDA(ProjectionEstimator):
    """Discriminant analysis that pushes the closest classes apart, for ten classes or thousands.

    LDA maximises the mean distance between classes; in few dimensions it spends them on classes
    that are far apart already, and lets close ones merge. Here the closest pairs decide, as much
    as `sharpness` says: from the mean distance (LDA) over a soft minimum to the smallest distance.

    Only counts, means and within-class scatter of the rows are needed, so that rows of any number
    stream through `partial_fit`; `finalize` then finds the directions, and so does the first call
    of `transform`.

    Parameters
    ----------
    n_components : int, float, "auto" or None, default=None
        Number of directions, at most n_classes − 1; None takes as many. A share between 0 and 1
        takes as few as can keep this share of the smallest squared distance between classes in all
        dimensions (and do keep it with infinite sharpness); "auto" is 0.9.
    sharpness : float or "auto", default="auto"
        0 is the mean distance, ``float("inf")`` the smallest one, and 1 minimises the sum over the
        pairs of Bhattacharyya's bound on their error. "auto" chooses by the accuracy of the nearest
        class mean on rows that are held out.
    shrinkage : float in [0, 1], "cv", "auto" or None, default="cv"
        How far the within-class covariance is moved towards its mean variance times the identity.
        "auto" is the intensity of Ledoit and Wolf; "cv" chooses on rows that are held out, with the
        sharpness. Columns should be of similar scale, or the shrinkage 0.
    solver : {"exact", "online", "sdp"}, default="exact"
        How the convex relaxation of [1]_ is solved: exactly, as a quadratic program over the
        closest pairs; by Algorithm 1, stochastic subgradients; or as a semidefinite program through
        CVXPY, for comparison.
    rounding : {"refine", "eigen"}, default="refine"
        "eigen" takes the first eigenvectors of the relaxation's solution, as [1]_ does, whatever
        the sharpness. "refine" maximises the criterion itself, over all directions; the solution
        of the relaxation is one of its starts, with up to 100 classes and infinite sharpness.
    C : float, default=inf
        Weight of the errors in the relaxation (11), one over λ there; infinite for (7), no errors.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Whether these errors count plainly or squared.
    lam : float, default=None
        λ of Algorithm 1, for the mean over the pairs. None is one over C times the number of
        pairs or, where C is infinite, small enough for a hundredth of the loss.
    n_updates : int, default=10000
        T of Algorithm 1.
    average : bool, default=False
        Whether Algorithm 1 returns the mean of its steps instead of the last.
    n_init : int or "auto", default="auto"
        Starts of "refine" beside LDA: random ones. "auto" is 10 for up to 100 classes, else none.
    priors : array of shape (n_classes,), default=None
        Weights of the classes, of which a pair has the product; None takes those of their rows.
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
    tol : float, default=1e-6
        Relative change at which a search of "refine" ends.
    max_time : float, default=None
        Seconds at the most for finding directions; half of them for the choice by held-out rows.
    memory : int or str, default="auto"
        Budget for blocks of rows and the rows that can be held out.
    device : str, default=None
        Where rows are worked on: "cpu" (NumPy), "cuda", "cuda:1" and so on (needs PyTorch); None is
        where X is. Features are what the rows are: arrays of PyTorch and CuPy stay on their device.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the starts, of Algorithm 1 and of the vectors.
    verbose : int, default=0
        1 prints a line a step.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features or n_vectors)
        The directions, the one with the largest spread of the classes first. Projections have the
        identity as (shrunk) within-class covariance.
    mean_ : ndarray of shape (n_features or n_vectors,)
        The mean of the rows (or of their features in the span), which is subtracted first.
    class_means_ : ndarray of shape (n_classes, n_components)
        Projections of the class means; NaN for classes without rows.
    min_distance_ : float
        The smallest squared distance between two of them.
    active_pairs_ : dict of arrays
        The closest pairs of classes, within 1 % of the smallest distance: "first" and "second"
        (labels) and "distance" (squared). ``closest_pairs`` gives more of them.
    upper_bound_ : float
        No projection of so many dimensions has a larger smallest squared distance.
    certificate_ : Certificate
        One over the smallest squared distance as primal, one over its upper bound as dual.
    relaxation_ : Certificate or None
        Of the relaxation, where it was solved.
    sharpness_, shrinkage_ : float
        What was used.
    cv_accuracy_ : dict of arrays
        What the choice was made by: "shrinkage", "sharpness" and "accuracy" on held-out rows.
    n_components_ : int
        Number of directions.
    priors_ : ndarray of shape (n_classes,)
        Weights of the classes.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    span_map_ : SpanMap or None
        The map into the span, with a kernel.
    n_iter_ : int
        Steps of the refinement (starts), or of the relaxation.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    PairwiseAccuracyDA : Close pairs count more, by a fixed weight.
    MaxMarginDA : As many directions as one wants, by margins.

    Notes
    -----
    Memory is that of the within-class scatter, the class means, and the rows that can be held out
    (20,000 at the most); it does not grow with the rows or the pairs of classes.

    References
    ----------
    .. [1] B. Xu, K. Huang, C.-L. Liu, "Maxi-Min discriminant analysis via online learning", Neural
       Networks 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.neighbors import NearestCentroid
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin import MaxiMinDA
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(MaxiMinDA(3, random_state=0), NearestCentroid())
    >>> bool(model.fit(X[:1000], y[:1000]).score(X[1000:], y[1000:]) > 0.75)
    True
    """

    n_components: int | float | str | None = positional(
        None, direction_parameters.number_of_directions
    )
    sharpness: float | str = keyword(
        "auto", check.word_or(("auto",), direction_parameters.sharpness)
    )
    shrinkage: float | str | None = keyword("cv", check.word_or(("cv", "auto"), check.shrinkage))
    solver: str = keyword("exact", check.choice("exact", "online", "sdp"))
    rounding: str = keyword("refine", check.choice("refine", "eigen"))
    C: float = keyword(float("inf"), direction_parameters.weight_of_errors)
    loss: str = keyword("hinge", check.choice("hinge", "squared_hinge"))
    lam: float | None = keyword(None, check.none_or(check.positive))
    n_updates: int = keyword(10_000, check.count)
    average: bool = keyword(False)
    n_init: int | str = keyword("auto", check.word_or(("auto",), check.at_least(0)))
    priors: Any = keyword(None)
    tol: float = keyword(1e-6, check.positive)
    max_time: float | None = keyword(None, check.none_or(check.positive))
    verbose: int = keyword(0, check.verbosity)
    device: str | None = keyword(None, check_device)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MaxiMinDA:
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
                stream = self._scatters(X, y, sample_weight, resources, self._capacity)
            else:
                data = self._rows_with_classes(X, y, sample_weight, resources)
                features = self._fit_span(data)
                capacity = self._capacity(features.width, resources.memory)
                stream = Stream.empty(len(self.classes_), features.width, capacity)
                stream.add(data, features)
            self._solve(stream, resources)
            # The scatter is all that is needed to go on; the rows would make the model large.
            self._stream = stream.without_rows().state()
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> MaxiMinDA:
        """Take rows in; `finalize`, or the next `transform`, finds the directions.

        Blocks may come in any order. Rows of an earlier `fit` count as well, but are not among
        those that can be held out. With a kernel, its vectors are chosen from the first block.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that will occur, in the first call; None takes those of its rows.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights.

        Returns
        -------
        self
            The transformer.
        """
        first = not hasattr(self, "_stream")
        with self._fitting(X) as resources:
            if self._precomputed():
                raise ValueError("kernel='precomputed' does not stream; use fit instead.")
            X, y = self._validated(X, y, reset=first)
            found = distinct_labels(y)
            check_classification_targets(y)
            weight = self._weights(X, sample_weight)
            if classes is not None:
                distinct_labels(np.asarray(classes, dtype=object), "classes")
                found = np.unique(classes)
            known = found if first else self.classes_
            if classes is not None and not np.array_equal(found, known):
                raise ValueError("classes differs from that of the first call of partial_fit.")
            code = codes_among(known, y, np.ones(len(y)), _UNKNOWN_CLASS)
            data = self._counted(X, code, weight, resources)
            if first:
                self.classes_ = known
                width = self._fit_span(data).width
                stream = Stream.empty(len(known), width, self._capacity(width, resources.memory))
            else:
                stream = Stream.of_state(self._stream)
            stream.add(data, self._features())
            found_before = [name for name in vars(self) if name.endswith("_")]
            self._drop(*(name for name in found_before if name not in _KNOWN_BEFORE))
            self._stream = stream.state()
        return self

    def finalize(self) -> MaxiMinDA:
        """Find the directions of all rows that `partial_fit` has taken in.

        Returns
        -------
        self
            The fitted transformer; it can take in more rows, and be finalized again, also with
            other parameters.
        """
        check_is_fitted(self)
        stream = Stream.of_state(self._stream)
        if hasattr(self, "components_") and stream.capacity and not len(stream.sample):
            # `fit` had rows to choose by, which are not kept: nothing could be chosen better now.
            return self
        with self._fitting() as resources:
            self._solve(stream, resources)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether rows have been taken in."""
        return hasattr(self, "_stream")

    def _projected(self, rows: Rows) -> NDArray[Any]:
        """Return the projections of rows, after `finalize` where that is still to be done."""
        if not hasattr(self, "components_"):
            self.finalize()
        return super()._projected(rows)

    def _projected_there(self, rows: Rows) -> Array:
        if not hasattr(self, "components_"):
            self.finalize()
        return super()._projected_there(rows)

    def closest_pairs(self, n_pairs: int = 10) -> dict[str, NDArray[Any]]:
        """Return the pairs of classes that the projection keeps least apart.

        Parameters
        ----------
        n_pairs : int, default=10
            How many, at the most.

        Returns
        -------
        dict of arrays
            "first" and "second" (labels), and "distance" (squared), ascending.
        """
        check.count("n_pairs", n_pairs)
        if not hasattr(self, "class_means_"):
            self.finalize()
        there = np.flatnonzero(np.isfinite(self.class_means_).all(axis=1))
        means = self.class_means_[there]
        pairs = ClassPairs(means, np.ones(len(means))).closest(means, n_pairs)
        labels = self.classes_[there]
        return {
            "first": labels[pairs.first],
            "second": labels[pairs.second],
            "distance": pairs.distance,
        }

    # The steps of `fit`.

    def _capacity(self, width: int, memory: int) -> int:
        """Return how many rows shall be kept to be held out."""
        chosen = self.shrinkage == "cv" or (self.sharpness == "auto" and self.rounding == "refine")
        fit = memory // (_MEMORY_PARTS * 8 * max(1, width))
        return min(_HELD_OUT, int(fit)) if chosen else 0

    def _solve(self, stream: Stream, resources: Resources) -> None:
        """Find the directions of all rows of a stream."""
        scatter = stream.scatter()
        n_classes = int((scatter.weight > 0).sum())
        if n_classes < 2:
            raise ValueError(f"y must hold at least two classes, but {n_classes} class has rows.")
        self.priors_ = scatter.weight / scatter.total
        if self.priors is not None:
            self.priors_ = given_priors(self.priors, len(self.priors_))
        check_apart(scatter, self._features())
        with reporting(self, int(scatter.total)) as report:
            options = self._options(replace(resources, report=report))
            found = fit_maxi_min(stream, scatter, options)
        for message, category in found.warnings():
            warn_user(message, category)
        self._keep(found.components, found.mean)
        # Signs are settled by `_keep`.
        same = (self.components_ == found.components).all(axis=1)
        self.class_means_ = found.class_means * np.where(same, 1.0, -1.0)
        self.shrinkage_, self.sharpness_ = found.choice.shrinkage, found.choice.sharpness
        self.cv_accuracy_, self.n_components_ = found.choice.accuracy, len(found.components)
        solution = found.solution
        self.min_distance_, self.upper_bound_ = solution.reached, solution.bound
        self.certificate_, self.relaxation_ = solution.certificate, solution.relaxation
        self.n_iter_ = solution.certificate.n_iter
        near = self.closest_pairs(max(_LEAST_PAIRS, len(self.classes_)))
        active = near["distance"] <= _ACTIVE * near["distance"][0]
        self.active_pairs_ = {name: column[active] for name, column in near.items()}

    def _options(self, resources: Resources) -> MaxiMinOptions:
        refine = self.rounding == "refine"
        sharpness: float | None = None if refine else float("inf")
        if not isinstance(self.sharpness, str):
            sharpness = float(self.sharpness)
        return MaxiMinOptions.with_parameters(
            resources,
            self.get_params(deep=False),
            n_components=_KEEP if isinstance(self.n_components, str) else self.n_components,
            sharpness=sharpness,
            refine=refine,
            squared=self.loss == "squared_hinge",
            n_init=None if isinstance(self.n_init, str) else int(self.n_init),
            priors=None if self.priors is None else self.priors_,
        )
