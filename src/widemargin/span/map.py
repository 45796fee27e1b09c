"""The span as a transformer: φ_z(x), the projection of φ(x) onto the span of a few vectors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from widemargin.estimator import KernelEstimator
from widemargin.kernels import Kernel
from widemargin.kernels.bandwidth import resolve_gamma
from widemargin.labelled import encoded, one_vs_rest
from widemargin.loop import Limits, run
from widemargin.parameters import check_count, check_not_negative
from widemargin.rows import distinct_rows, weighted_moments
from widemargin.rows.base import BlockRows
from widemargin.rows.distinct import Distinct
from widemargin.span.basis import Basis, Vectors
from widemargin.span.choice import CoreVectors, as_strategy
from widemargin.span.problems import Problems
from widemargin.span.sizes import span_fit
from widemargin.threads import single_threaded_blas

# Relative gap of the machine whose vectors are "core": where its margin lies, roughly.
_CORE_TOL = 1e-2


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
    memory : int or str, default="1GB"
        Budget for blocks of rows.
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

    def __init__(
        self,
        n_vectors: int = 100,
        *,
        vectors: Any = "kmeans",
        kernel: Any = "rbf",
        gamma: Any = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        kernel_params: dict[str, Any] | None = None,
        tol: float = 1e-9,
        memory: int | str = "1GB",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_vectors = n_vectors
        self.vectors = vectors
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.tol = tol
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SpanMap:
        """Choose the vectors.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; a kernel matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_samples,), default=None
            Labels; only ``vectors="core"`` looks at them.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted map.
        """
        self._check_parameters()
        X = self._validated(X)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("sample_weight is zero for every row; at least one must count.")
        self._check_square(X)
        strategy = as_strategy(self.vectors, self.n_features_in_)
        rows = self._rows(X)
        with single_threaded_blas():
            distinct = distinct_rows(rows, np.zeros(X.shape[0], dtype=np.intp), weight)
            self.gamma_ = 1.0
            if not self._precomputed():
                moments = weighted_moments(distinct.rows, distinct.weight)
                self.gamma_ = resolve_gamma(self.gamma, moments.mean, moments.variance)
            kernel = self._kernel(self.gamma_)
            if isinstance(strategy, CoreVectors):
                distinct = self._core_rows(rows, kernel, y, weight)
                every = np.arange(len(distinct.index))
                vectors = Vectors(distinct.rows.take(every), every)
            else:
                choice = strategy.begin(distinct.rows, kernel, distinct.weight, self._rng())
                vectors = choice.draw(self.n_vectors, None)
            self._fit_basis(distinct, kernel, vectors)
        return self

    def _fit_basis(self, distinct: Distinct, kernel: Kernel, vectors: Vectors) -> None:
        basis = Basis.of(kernel, vectors, self.tol, distinct.rows)
        if not basis.size:
            raise ValueError(
                f"kernel={kernel.name!r} is zero or negative on all vectors of this data, which "
                "span nothing; use another kernel or other kernel parameters."
            )
        index = basis.vectors.index
        self.components_ = basis.vectors.values
        self.component_indices_ = None if index is None else distinct.index[index]
        self.normalization_ = basis.whitened(np.eye(basis.size))

    def _core_rows(
        self, rows: BlockRows, kernel: Kernel, y: Any, weight: NDArray[np.float64]
    ) -> Distinct:
        """Return the rows that are vectors of a machine fitted to the labels."""
        if y is None:
            raise ValueError(
                "vectors='core' chooses rows near a margin and needs labels: pass y, or use "
                "vectors='kmeans'."
            )
        labels = column_or_1d(y)
        check_consistent_length(rows.X, labels)
        check_classification_targets(labels)
        classes, code = encoded(labels, weight)
        points = distinct_rows(rows, code, weight)
        table = one_vs_rest(len(classes))
        problems = Problems.of(code[points.index], table, points.weight, 1.0, rows.threads)
        solver = span_fit(
            points.rows,
            kernel,
            problems,
            CoreVectors(),
            limit=self.n_vectors,
            tol=_CORE_TOL,
            memory=rows.memory,
            rng=self._rng(),
        )
        run(solver, Limits())
        index = solver.basis.vectors.index
        assert index is not None
        support = points.index[index]
        # In an order that does not depend on that of the rows.
        label = np.zeros(len(support), dtype=np.intp)
        chosen = distinct_rows(rows.subset(support), label, np.ones(len(support)))
        return replace(chosen, index=support[chosen.index])

    def transform(self, X: Any) -> NDArray[Any]:
        """Return φ_z of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
            Features; float32 if X is, and float64 otherwise.
        """
        check_is_fitted(self)
        X = self._checked(X)
        rows = self._rows(X)
        features = np.empty((X.shape[0], self._n_features_out), dtype=rows.dtype)
        visit = _Features(
            self._kernel(self.gamma_), self.components_, self.normalization_.T, features
        )
        with single_threaded_blas():
            for _ in rows.scan(visit, width=self._n_features_out):
                pass
        return features

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check_parameters(self) -> None:
        check_count("n_vectors", self.n_vectors)
        check_not_negative("tol", self.tol)
        self._check_kernel()


@dataclass(frozen=True)
class _Features:
    """Visitor: T k(Z, x) of a block of rows."""

    kernel: Kernel
    vectors: NDArray[Any]
    normalization: NDArray[np.float64]
    out: NDArray[Any]

    def __call__(self, block: Any, where: slice) -> None:
        # In float64: the map may enlarge the rounding of kernel values, and features are kept.
        dense = block.astype(np.float64)
        values = self.kernel.block(dense, self.vectors.astype(np.float64))
        self.out[where] = values @ self.normalization
