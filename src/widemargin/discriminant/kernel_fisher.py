"""Fisher's discriminants in the feature space of a kernel, for any number of classes.

Mika, Rätsch, Weston, Schölkopf and Müller (1999) for two classes, Baudat and Anouar (2000) for
more: maximise the between-class scatter of wᵀφ(x) over its within-class scatter plus a multiple of
‖w‖², without which the kernel would separate any rows.

All of it happens in the span of the φ(x), or of fewer vectors: in an orthonormal basis of the span
(a pivoted Cholesky factor of kernel values, see `span.basis`) it is plain linear discriminant
analysis with a ridge. With all rows as vectors nothing is left out.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import IndexArray
from widemargin.base import parameters as check
from widemargin.base.estimator import as_stored, dense
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.placing import check_device
from widemargin.base.projection import ProjectionEstimator, check_apart
from widemargin.device import Array
from widemargin.expansion import Expansion
from widemargin.loop import Resources
from widemargin.places.partitions import is_collection
from widemargin.rows import Distinct, Rows, distinct_rows
from widemargin.scatter.class_scatter import ClassScatter
from widemargin.scatter.device_scatter import scatter_anywhere
from widemargin.scatter.whitening import leading, whitened
from widemargin.span import Vectors, no_vectors

# Squared distance from the span of the others, relative to the largest k(x, x), below which a row
# adds nothing to it that rounding would not.
_DEPENDENT = 1e-12
# Distinct rows up to which "auto" takes all of them as vectors.
_EXACT_ROWS = 2000


@parameters
class KernelFisherDA(ProjectionEstimator):
    """Kernel Fisher discriminant analysis, with a ridge and for any number of classes.

    Parameters
    ----------
    n_components : int, default=None
        Number of directions, at most n_classes − 1. None takes all that separate class means.
    regularization : float, default=1e-3
        Ridge on the within-class covariance, as a share of the total variance: of the mean
        squared distance of the φ(x) from their mean. The same for both solvers.
    kernel : str, callable or Kernel, default="rbf"
        As in `MarginClassifier`. "precomputed" needs ``solver="kernel"``, or `vectors` that are
        rows.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    solver : {"auto", "kernel", "span"}, default="auto"
        "kernel" takes all rows as vectors, for small data; "span" takes `n_vectors` vectors, and
        its cost is linear in the rows. "auto" is "kernel" for up to 2,000 distinct rows, and "span"
        beyond, if `vectors` are given, and for Dask collections.
    n_vectors : int, default=500
        Vectors of ``solver="span"`` at the most.
    vectors : {"kmeans", "random", "leverage", "core"}, array or strategy, default="kmeans"
        Where they come from, as in `SpanMap`.
    memory : int or str, default="auto"
        Budget for kernel values and matrices, beside the data.
    device : str, default=None
        Where rows are worked on: "cpu" (NumPy), "cuda", "cuda:1" and so on (needs PyTorch); None is
        where X is. Features are what the rows are: arrays of PyTorch and CuPy stay on their device.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the choice of vectors.

    Attributes
    ----------
    solver_ : str
        The solver that was used.
    vectors_ : ndarray or CSR array of shape (n_vectors, n_features)
        Expansion vectors that the directions share; for ``kernel="precomputed"`` their row numbers.
    coef_ : ndarray of shape (n_components, n_vectors)
        Their coefficients.
    intercept_ : ndarray of shape (n_components,)
        Feature q is Σ_j coef_[q, j] k(vectors_[j], x) + intercept_[q], which has mean 0.
    support_ : ndarray of int of shape (n_vectors,) or None
        The training rows that the vectors are, if they are rows.
    components_ : ndarray of shape (n_components, n_vectors)
        The directions in an orthonormal basis of the span of the vectors.
    mean_ : ndarray of shape (n_vectors,)
        The mean of the rows in that basis.
    criterion_ : ndarray of shape (n_components,)
        Between-class variance of each direction over its within-class variance with the ridge.
    span_map_ : SpanMap or None
        The map into the span, of ``solver="span"``.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    gamma_ : float
        The kernel width that was used.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    PairwiseAccuracyDA : The criterion in which close pairs of classes count more.
    SparseFisherClassifier : Few vectors, moved to where they serve best.

    Notes
    -----
    Features are uncorrelated, and with the ridge their within-class variance is one: wᵀ(S_w + ρI)w
    = 1.

    References
    ----------
    .. [1] S. Mika, G. Rätsch, J. Weston, B. Schölkopf, K.-R. Müller, "Fisher discriminant analysis
       with kernels", Neural Networks for Signal Processing 1999.
    .. [2] G. Baudat, F. Anouar, "Generalized discriminant analysis using a kernel approach",
       Neural Computation 2000.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.neighbors import NearestCentroid
    >>> from sklearn.pipeline import make_pipeline
    >>> from widemargin import KernelFisherDA
    >>> X, y = load_digits(return_X_y=True)
    >>> model = make_pipeline(KernelFisherDA(), NearestCentroid()).fit(X[:500], y[:500])
    >>> bool(model.score(X[500:], y[500:]) > 0.93)
    True
    """

    n_components: int | None = positional(None, check.count_or_none)
    regularization: float = keyword(1e-3, check.not_negative)
    kernel: Any = keyword("rbf")
    solver: str = keyword("auto", check.choice("auto", "kernel", "span"))
    device: str | None = keyword(None, check_device)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelFisherDA:
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
            self.support_: IndexArray | None
            if is_collection(X):
                scatter, features = self._fit_collection(X, y, sample_weight, resources)
                self.vectors_: Any = features.vectors
            else:
                data = self._rows_with_classes(X, y, sample_weight, resources)
                distinct = distinct_rows(data.rows, data.code, data.weight)
                self.solver_ = self._choose_solver(len(distinct.index), resources.memory)
                if self.solver_ == "span":
                    self._fit_span(data)
                    features = self._features_of_map()
                else:
                    features, chosen = self._fit_all(distinct)
                    self.support_ = data.index[distinct.index[chosen]]
                scatter = scatter_anywhere(
                    distinct.rows, distinct.code, distinct.weight, len(self.classes_), features
                )
                self.vectors_ = as_stored(features.vectors, data.rows)
            check_apart(scatter, features)
            space = whitened(scatter, ridge=self.regularization)
            share = scatter.weight / scatter.total
            pulled = share[:, None] * space.means
            directions, self.criterion_ = leading(space.means, pulled, self.n_components)
            self._keep((space.matrix @ directions).T, space.mean)
            self.coef_ = np.ascontiguousarray(self.components_ @ features.coef.T)
            self.intercept_ = -self.components_ @ self.mean_
        return self

    def _projected(self, rows: Rows) -> NDArray[Any]:
        """Return the projections of rows: sums over the vectors."""
        return self._sums().values(rows, dtype=rows.dtype)

    def _projected_there(self, rows: Rows) -> Array:
        return rows.device.rounded(self._sums().values_there(rows), rows.dtype)

    def _sums(self) -> Expansion:
        """Return the projections as functions in the span of the vectors."""
        coef = np.ascontiguousarray(self.coef_.T)
        return Expansion(self._kernel(self.gamma_), dense(self.vectors_), coef, self.intercept_)

    # The steps of `fit`.

    def _check_parameters(self) -> None:
        super()._check_parameters()
        # None is no kernel here.
        self._kernel(1.0)

    def _fit_collection(
        self, X: Any, y: Any, sample_weight: Any, resources: Resources
    ) -> tuple[ClassScatter, Expansion]:
        """Return the scatter of features in a span of all rows of a Dask collection, and these."""
        if self.solver == "kernel":
            raise ValueError(
                "solver='kernel' needs rows in memory, but X is a Dask collection; use "
                "solver='span', or pass X.compute()."
            )
        stream = self._scatters(X, y, sample_weight, resources, partial(min, 0))
        self.solver_ = "span"
        return stream.rest, self._features_of_map()

    def _features_of_map(self) -> Expansion:
        """Return the features of the map into the span; set its width and its rows."""
        assert self.span_map_ is not None
        self.gamma_, self.support_ = self.span_map_.gamma_, self.span_map_.component_indices_
        return self.span_map_.expansion()

    def _choose_solver(self, n_distinct: int, memory: int) -> str:
        """Return the solver to use, if it fits into the memory."""
        if self.solver == "span":
            return "span"
        needed = 5 * 8 * n_distinct**2
        too_much = needed > memory
        given = not isinstance(self.vectors, str)
        large = (n_distinct > _EXACT_ROWS or too_much) and not self._precomputed()
        if self.solver == "auto" and (given or large):
            return "span"
        if too_much:
            remedy = "random" if self._precomputed() else "kmeans"
            raise ValueError(
                f"solver='kernel' keeps matrices of {n_distinct:,} rows: it takes "
                f"{needed / 1e6:,.1f} MB; raise memory={self.memory!r}, or use solver='span' with "
                f"vectors={remedy!r}."
            )
        return "kernel"

    def _fit_all(self, distinct: Distinct) -> tuple[Expansion, IndexArray]:
        """Return features in the span of all rows, and the rows that span it."""
        self.span_map_ = None
        self.gamma_ = self._resolved_gamma(self.gamma, distinct)
        kernel = self._kernel(self.gamma_)
        every = np.arange(len(distinct.index))
        vectors = Vectors(distinct.rows.take(every), every)
        basis = no_vectors(distinct.rows.device).extended(
            kernel, vectors, _DEPENDENT, distinct.rows
        )
        if not basis.size:
            raise ValueError(
                f"kernel={kernel.name!r} is zero or negative on all rows of this data, which span "
                "nothing; use another kernel or other kernel parameters."
            )
        assert basis.vectors.index is not None
        coef = np.ascontiguousarray(basis.whitened(np.eye(basis.size)).T)
        return Expansion(kernel, basis.vectors.values, coef), basis.vectors.index
