"""The span as a transformer: φ_z(x), the projection of φ(x) onto the span of a few vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import IndexArray
from widemargin.base import parameters as check
from widemargin.base.estimator import KernelEstimator
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.placing import check_device, stand_in
from widemargin.device import Array, Device, check_on_device, is_device_array, to_numpy
from widemargin.expansion import Expansion
from widemargin.kernels import Kernel
from widemargin.loop import Resources
from widemargin.places.opened import Opened
from widemargin.places.partitions import is_collection
from widemargin.places.span_vectors import core_vectors, drawn_vectors
from widemargin.problem import Problem, encoded, one_vs_rest
from widemargin.rows import Distinct, Rows, distinct_rows
from widemargin.span import (
    CoreVectors,
    SpanOptions,
    Vectors,
    as_strategy,
    no_vectors,
    solve_in_span,
)

# Relative gap of the machine whose vectors are "core": where its margin lies, roughly.
_CORE_TOL = 1e-2


@parameters
class SpanMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, KernelEstimator):
    """Features whose inner product is the kernel, projected onto the span of a few vectors.

    Every linear method becomes a kernel method behind this map. It is `Nystroem` of scikit-learn
    with better vectors to choose from, a Cholesky factor in place of an SVD, and redundant vectors
    left out.

    Parameters
    ----------
    n_vectors : int, default=100
        Vectors at the most.
    vectors : {"kmeans", "random", "leverage", "core"}, array or strategy, default="kmeans"
        Where they come from: centres of k-means, random rows, rows by their distance from the span
        of the others, rows near the margin of a machine (needs `y`), an array of
        vectors, or an object of ``widemargin.span``.
    kernel : str, callable or Kernel, default="rbf"
        As in `MarginClassifier`.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    tol : float, default=1e-9
        Vectors whose squared distance from the span of the others is at most this, relative to the
        largest k(z, z), are left out.
    memory : int or str, default="auto"
        Budget for blocks of rows.
    device : str, default=None
        Where rows are mapped: "cpu" (NumPy), "cuda", "cuda:1" and so on (needs PyTorch); None is
        where X is. Features are what the rows are: arrays of PyTorch and CuPy stay on their device.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the choice.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The vectors that were kept.
    component_indices_ : ndarray of shape (n_components,) or None
        Their row numbers, if they are training rows.
    normalization_ : ndarray of shape (n_components, n_components)
        T with φ_z(x) = T k(Z, x), lower triangular.
    gamma_ : float
        The kernel width that was used.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    ⟨φ_z(x), φ_z(x')⟩ = k(x, Z) K_z⁻¹ k(Z, x') is the kernel (40) of [1]_; a linear machine on these
    features is the kernel machine whose weight vector lies in the span of φ(Z).

    References
    ----------
    .. [1] M. Wu, B. Schölkopf, G. Bakır, "A direct method for building sparse kernel learning
       algorithms", JMLR 2006.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> from widemargin import SpanMap
    >>> X, y = load_digits(return_X_y=True)
    >>> machine = make_pipeline(SpanMap(200, random_state=0), LinearSVC()).fit(X[:1000], y[:1000])
    >>> bool(machine.score(X[1000:], y[1000:]) > 0.9)
    True
    """

    n_vectors: int = positional(100, check.count)
    vectors: Any = keyword("kmeans", check.landmarks)
    gamma: Any = keyword("scale", check.gamma)
    tol: float = keyword(1e-9, check.not_negative)
    device: str | None = keyword(None, check_device)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SpanMap:
        """Choose the vectors.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Training rows; a kernel matrix if ``kernel="precomputed"``.
        y : array-like or Dask collection of shape (n_samples,), default=None
            Labels; only ``vectors="core"`` looks at them.
        sample_weight : array-like or Dask collection of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted map.
        """
        if is_collection(X):
            return self._fit_collection(X, y, sample_weight)
        with self._fitting(X) as resources:
            X = self._validated(X)
            weight = self._weights(X, sample_weight)
            if not weight.any():
                raise ValueError("sample_weight is zero for every row; at least one must count.")
            strategy = as_strategy(self.vectors, self.n_features_in_)
            rows = self._rows(X, resources)
            distinct = distinct_rows(rows, np.zeros(X.shape[0], dtype=np.intp), weight)
            self.gamma_ = self._resolved_gamma(self.gamma, distinct)
            kernel = self._kernel(self.gamma_)
            if isinstance(strategy, CoreVectors):
                distinct = self._core_rows(rows, kernel, y, weight, resources)
                every = np.arange(len(distinct.index))
                vectors = Vectors(distinct.rows.take(every), every)
            else:
                choice = strategy.begin(distinct.rows, kernel, distinct.weight, resources.rng)
                vectors = choice.draw(self.n_vectors, None)
            self._fit_basis(distinct.rows, distinct.index, kernel, vectors)
        return self

    def _fit_collection(self, X: Any, y: Any, sample_weight: Any) -> SpanMap:
        """Choose the vectors from the rows of a Dask collection."""
        named = isinstance(self.vectors, str) and self.vectors == "core"
        core = named or isinstance(self.vectors, CoreVectors)
        self._check_parameters()
        with self._computing() as resources:
            opened = self._opened(X, _required(y) if core else None, sample_weight, resources)
        self.fit_opened(opened)
        self._note_columns(X, reset=True)
        return self

    def fit_opened(self, opened: Opened) -> SpanMap:
        """Choose the vectors from a Dask collection whose rows were all looked at.

        Estimators that stand on this map have done so.

        Parameters
        ----------
        opened : Opened
            The collection.

        Returns
        -------
        self
            The fitted map.
        """
        with self._fitting() as resources:
            strategy = as_strategy(self.vectors, opened.n_features)
            gamma = self._gamma_of(self.gamma, opened.every)
            kernel = self._kernel(gamma)
            if isinstance(strategy, CoreVectors):
                problem, vectors = core_vectors(opened, kernel, self._core_options(resources))
            else:
                problem, vectors = drawn_vectors(
                    opened, kernel, strategy, self.n_vectors, resources
                )
            self._fit_basis(problem.rows, problem.number, kernel, vectors)
            self.gamma_ = gamma
            self._note_columns(np.empty((0, opened.n_features)), reset=True)
        return self

    def _fit_basis(self, rows: Rows, number: IndexArray, kernel: Kernel, vectors: Vectors) -> None:
        """Set the attributes of the map; rows have numbers among those of the user."""
        basis = no_vectors(rows.device).extended(kernel, vectors, self.tol, rows)
        if not basis.size:
            raise ValueError(
                f"kernel={kernel.name!r} is zero or negative on all vectors of this data, which "
                "span nothing; use another kernel or other kernel parameters."
            )
        index = basis.vectors.index
        self.components_ = basis.vectors.values
        self.component_indices_ = None if index is None else number[index]
        self.normalization_ = basis.whitened(np.eye(basis.size))

    def _core_rows(
        self,
        rows: Rows,
        kernel: Kernel,
        y: Any,
        weight: NDArray[np.float64],
        resources: Resources,
    ) -> Distinct:
        """Return the rows that are vectors of a machine fitted to the labels."""
        required = _required(y)
        labels = column_or_1d(to_numpy(required) if is_device_array(required) else required)
        check_consistent_length(stand_in(rows.X), labels)
        classes, code = encoded(labels, weight)
        check_classification_targets(labels)
        distinct = distinct_rows(rows, code, weight)
        table = one_vs_rest(len(classes))
        problem = Problem.of(
            distinct.rows, kernel, code[distinct.index], table, distinct.weight, 1.0
        )
        solver, _ = solve_in_span(problem, self._core_options(resources))
        index = solver.basis.vectors.index
        assert index is not None
        support = distinct.index[index]
        # In an order that does not depend on that of the rows.
        label = np.zeros(len(support), dtype=np.intp)
        chosen = distinct_rows(rows.subset(support), label, np.ones(len(support)))
        return replace(chosen, index=support[chosen.index])

    def _core_options(self, resources: Resources) -> SpanOptions:
        return SpanOptions(**vars(resources), max_vectors=self.n_vectors, tol=_CORE_TOL)

    def transform(self, X: Any) -> NDArray[Any]:
        """Return φ_z of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

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
        features: NDArray[Any] = self._features_of(X, self._here, self._there)
        return features

    def _here(self, rows: Rows) -> NDArray[Any]:
        return self.expansion().values(rows, dtype=rows.dtype)

    def _there(self, rows: Rows) -> Array:
        return rows.device.rounded(self.expansion().values_there(rows), rows.dtype)

    def _check_on_device(self, device: Device) -> None:
        check_on_device(self._kernel(1.0), device)

    def expansion(self) -> Expansion:
        """Return the features as functions in the span of the vectors."""
        check_is_fitted(self)
        coef = np.ascontiguousarray(self.normalization_.T)
        # In float64: the map may enlarge the rounding of kernel values, and features are kept.
        vectors = self.components_.astype(np.float64, copy=False)
        return Expansion(self._kernel(self.gamma_), vectors, coef)

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _required(y: Any) -> Any:
    """Return the labels, or raise if there are none."""
    if y is None:
        raise ValueError(
            "vectors='core' chooses rows near a margin and needs labels: pass y, or use "
            "vectors='kmeans'."
        )
    return y
