"""The metric of a margin machine: the transformer.

A. Radhakrishnan, D. Beaglehole, P. Pandit, M. Belkin, "Mechanism for feature learning in neural
networks and backpropagation-free machine learning models", Science 2024 (arXiv 2212.13881), with
the machines of this library; the rounds are in ``metric.metric_rounds``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from widemargin.arrays import Vector
from widemargin.base import parameters as check
from widemargin.base.estimator import KernelEstimator, Labelled, reporting, warn_user
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.row_maps import as_dense, check_scale, check_smooth, scaling_of
from widemargin.device import Array
from widemargin.loop import Resources
from widemargin.metric import LearnedMetric, MetricOptions, learn_metric
from widemargin.places.partitions import is_collection
from widemargin.problem import one_vs_one
from widemargin.rows import RowMap, Rows, mapped_rows
from widemargin.scatter.eigenproblem import check_n_components

# Rows of a cell where nothing else is said.
_CELL_ROWS = 300


def _share(name: str, value: Any) -> None:
    """Raise unless a value is a share of the rows below one half, or none of them."""
    if not 0.0 <= check.number(name, value) <= 0.5:
        raise ValueError(f"{name}={value!r} must be from 0 (no rows) to 0.5 (half of them).")


@parameters
class MarginMetric(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """A metric in which distances are those that a margin machine sees.

    A machine is fitted, and M is the sum of ∇f ∇fᵀ over rows and problems: directions along which
    decision values change are stretched, others shrink. Rows are multiplied with M^½ and a machine
    is fitted again, for some rounds, as long as rows that are held out are answered better. Where
    none is, M is the identity.

    Parameters
    ----------
    n_components : int, default=None
        Features: the eigenvectors of M with the largest eigenvalues, each times the root of its
        own; there is then one round at the least. None is all of them, not turned: rows times M^½.
    kind : {"full", "diagonal"}, default="full"
        Whether M is a matrix, or weights of the features only.
    n_rounds : int, default=3
        Rounds at the most.
    power : float, default=1.0
        M is this power of the gradient products.
    validation_fraction : float, default=0.2
        Share of the rows that is held out to decide on the number of rounds; these are then made
        again with all rows. With 0, or less than 10 such rows, there are `n_rounds`.
    C : float, default=1.0
        Of the machines, as in `MarginClassifier`.
    kernel : str or Kernel, default="rbf"
        One that has a gradient: "rbf", "laplacian", "exponential", "inverse_distance",
        "inverse_squared_distance", "linear", "poly" and others with a name. With the Laplacian
        kernel, whose distances depend on the axes, ``kind="diagonal"`` is the natural choice.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width. M is scaled so that the total variance of the rows stays as it is, and so
        a width means the same in every round.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Not used: a kernel that is a function has no gradient.
    scale : {"auto", None}, default="auto"
        "auto" puts columns on one scale first: less the median, over the distance of the
        quartiles, outliers bent towards four standard deviations. None takes them as they are.
    engine : {"auto", "exact", "span", "cells"}, default="auto"
        The machine: exact for up to 5,000 different rows, in cells of 300 rows for more; or as one
        likes. In cells there is one metric for all of them, in which they are cut.
    tol : float, default=1e-2
        Relative duality gap of the machines.
    max_time : float, default=None
        Seconds at the most.
    memory : int or str, default="auto"
        Budget for kernel values and matrices.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    verbose : int, default=0
        1 prints a line a round.

    Attributes
    ----------
    metric_ : ndarray of shape (n_features, n_features)
        M, of the columns after `scale`.
    components_ : ndarray of shape (n_components, n_features)
        What `transform` multiplies rows with: M^½, or leading eigenvectors.
    eigenvalues_ : ndarray of shape (n_features,)
        Eigenvalues of M, the largest first.
    feature_importances_ : ndarray of shape (n_features,)
        The diagonal of M, divided by its sum.
    mean_, factor_ : ndarray of shape (n_features,)
        What is subtracted from columns, and what they are then multiplied with.
    n_rounds_ : int
        Rounds that were made; 0 if none was better than no metric.
    validation_scores_ : ndarray of shape (n_rounds + 1,)
        Accuracy of held-out rows without a metric, and after each round that was tried.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    gamma_ : float
        The kernel width that was used.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MaxMarginDA : Directions of large margins, one after another.
    MarginClassifier : Has such a metric of its own, with ``metric="full"``.

    References
    ----------
    .. [1] A. Radhakrishnan, D. Beaglehole, P. Pandit, M. Belkin, "Mechanism for feature learning
       in neural networks and backpropagation-free machine learning models", Science 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import MarginMetric
    >>> X = np.random.default_rng(0).standard_normal((300, 6))
    >>> y = X[:, 0] * X[:, 1] > 0  # the others are noise
    >>> metric = MarginMetric(kind="diagonal", C=10).fit(X, y)
    >>> sorted(np.argsort(metric.feature_importances_)[-2:].tolist())
    [0, 1]
    >>> MarginMetric(2).fit_transform(X, y).shape
    (300, 2)
    """

    n_components: int | None = positional(None, check.count_or_none)
    kind: str = keyword("full", check.choice("full", "diagonal"))
    n_rounds: int = keyword(3, check.count)
    power: float = keyword(1.0, check.positive)
    validation_fraction: float = keyword(0.2, _share)
    C: float = keyword(1.0, check.positive)
    gamma: Any = keyword("scale", check.gamma)
    scale: str | None = keyword("auto", check_scale)
    engine: str = keyword("auto", check.choice("auto", "exact", "span", "cells"))
    tol: float = keyword(1e-2, check.positive)
    max_time: float | None = keyword(None, check.none_or(check.positive))
    verbose: int = keyword(0, check.verbosity)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MarginMetric:
        """Learn the metric.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
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
            data = self._labelled(X, y, sample_weight)
            if self.n_components is not None:
                d = self.n_features_in_
                check_n_components(self.n_components, d, d, "give at most as many as features")
            row_map, weight, found = self._learned(data, resources)
        self.classes_ = data.classes
        self._keep(row_map, weight, found)
        if not found.stop.converged:
            warn_user(
                f"MarginMetric stopped before its rounds were done ({found.stop.reason}). The "
                f"metric is that of {found.n_rounds} rounds; for more give it more time."
            )
        return self

    def _learned(self, data: Labelled, resources: Resources) -> tuple[RowMap, float, LearnedMetric]:
        """Return the map of the columns, the weight of all rows, and the metric."""
        data = replace(data, X=as_dense(data.X, resources.memory))
        distinct = self._distinct(data, resources)
        row_map = scaling_of(self.scale, distinct, centred=True)
        distinct = replace(distinct, rows=mapped_rows(distinct.rows, row_map))
        self.gamma_ = self._resolved_gamma(self.gamma, distinct)
        problem = self._problem(data, distinct, C=self.C, gamma=self.gamma_, class_weight=None)
        n_classes = len(data.classes)
        if n_classes > 2:
            problem = problem.with_signs(one_vs_one(n_classes))
        with reporting(self, len(data.y), data.X, data.y) as report:
            options = MetricOptions.with_parameters(
                replace(resources, report=report),
                self.get_params(deep=False),
                held_out=self.validation_fraction,
                # The identity has no leading eigenvectors.
                least_rounds=0 if self.n_components is None else 1,
                cells=_CELL_ROWS,
            )
            return row_map, float(distinct.weight.sum()), learn_metric(problem, options)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_smooth(self._kernel(1.0), "MarginMetric")

    def _keep(self, row_map: RowMap, weight: float, found: LearnedMetric) -> None:
        root = np.diag(found.root) if found.root.ndim == 1 else found.root
        self.metric_ = root @ root.T
        values, vectors = np.linalg.eigh(self.metric_)
        values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
        self.eigenvalues_: Vector = values
        self.components_ = root
        if self.n_components is not None:
            turned = _with_signs(vectors[:, : self.n_components])
            self.components_ = (turned * np.sqrt(values[: self.n_components])).T
        diagonal = np.diag(self.metric_)
        self.feature_importances_ = diagonal / diagonal.sum()
        self.mean_, self.factor_, self.bend_ = row_map.center, row_map.factor, row_map.bend
        self.n_rounds_, self.validation_scores_ = found.n_rounds, np.array(found.scores)
        self.n_iter_ = max(1, found.n_rounds)

    def transform(self, X: Any) -> NDArray[Any]:
        """Return rows in the metric: Euclidean distances between them are those of M.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Features; float32 if X is, and float64 otherwise. A lazy Dask array if X is a Dask
            collection.
        """
        if is_collection(X):
            lazy: NDArray[Any] = self._lazily(type(self)._transformed, X)
            return lazy
        return self._transformed(X)

    def _transformed(self, X: Any) -> NDArray[Any]:
        found: NDArray[Any] = self._features_of(X, self._mapped, self._mapped_there)
        return found

    def _mapped(self, rows: Rows) -> NDArray[Any]:
        row_map = RowMap(self.mean_, self.factor_, self.bend_, self.components_.T)
        visit = _Mapped(row_map)
        return rows.gather(visit, width=2 * self.n_features_in_, dtype=rows.dtype)

    def _mapped_there(self, rows: Rows) -> Array:
        raise TypeError(self._not_there(rows.device))

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)


class _Mapped:
    """Visitor: a block of rows after a map."""

    def __init__(self, row_map: RowMap) -> None:
        self.row_map = row_map

    def __call__(self, block: Any, where: slice) -> NDArray[Any]:
        return self.row_map(block.toarray() if hasattr(block, "toarray") else block)


def _with_signs(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return eigenvectors whose largest entry is positive."""
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(axis=0)[None], axis=0)
    return np.asarray(vectors * np.where(largest < 0, -1.0, 1.0))
