"""`MarginOneClass`: the ν-one-class machine, for few rows and for many.

Schölkopf, Platt, Shawe-Taylor, Smola and Williamson (2001), "Estimating the support of a
high-dimensional distribution": the hyperplane that separates most rows from the origin of the
feature space with the largest margin,

    min ½‖w‖² − ν n ρ + Σ_i s_i max(0, ρ − wᵀφ(x_i)),        n = Σ s.

It is solved exactly on the kernel matrix (``qp.interval_dual``), or for all rows inside the span of
a few (``span.interval_fit``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import Vector
from widemargin.balls.exact_intervals import fit_exact_intervals, fits_matrix
from widemargin.base import parameters as check
from widemargin.base.estimator import (
    CallbackSupportMixin,
    KernelEstimator,
    as_stored,
    dense,
    reporting,
    warn_user,
    with_callbacks,
)
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.expansion import Expansion, Fitted, MachineOptions
from widemargin.intervals import IntervalProblem, one_class
from widemargin.loop import Resources
from widemargin.outliers.unlabelled import ColumnScale, median_distance_gamma, offset_of_share
from widemargin.rows import Distinct, Rows, distinct_rows
from widemargin.span.interval_fit import IntervalSpanOptions, fit_interval_span
from widemargin.span.landmarks import as_strategy

# Rows up to which engine="auto" is exact.
_EXACT_ROWS = 3000
# Rows on the border are inside, whatever the rounding of their scores: a share of the offset.
_BORDER = 1e-8

_gamma = check.word_or(("median_distance", "scale", "auto", "mean_distance"), check.positive)


def _share(name: str, value: Any) -> None:
    if not 0.0 < check.number(name, value) <= 1.0:
        raise ValueError(f"{name}={value!r} must be a share of the rows, above 0 and at most 1.")


def _half(name: str, value: Any) -> None:
    if not 0.0 < check.number(name, value) <= 0.5:
        raise ValueError(f"{name}={value!r} must be 'auto', or a share above 0 and at most 0.5.")


@parameters
class MarginOneClass(CallbackSupportMixin, OutlierMixin, KernelEstimator):
    """Detect outliers by the ν-one-class machine, on few rows or on millions.

    Parameters
    ----------
    nu : float, default=0.5
        At most this share of the rows is outside, and at least this share supports the machine. A
        large one makes an average over many rows of the score; `contamination` then decides how
        many are called outliers.
    kernel : str, callable or Kernel, default="rbf"
        The kernel.
    gamma : str or float, default="median_distance"
        Its width: a number, "scale", "auto", "mean_distance", or "median_distance", which is 4 / m
        with m the median squared distance between rows after `scale`: at half the median distance
        the kernel falls to 1/e.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    scale : {"auto", "robust", "standard", "none"}, default="auto"
        What is done to columns first: medians and quartiles, with values cut at ten of them
        ("robust"), means and standard deviations ("standard"), or nothing. "auto" is "robust"
        for arrays, and nothing for sparse rows and kernel matrices.
    engine : {"auto", "exact", "span"}, default="auto"
        "exact" needs the kernel matrix, "span" fits all rows in the span of `max_vectors` of them.
        "auto" is exact up to 3,000 different rows.
    contamination : "auto" or float, default="auto"
        Share of the training rows that are outliers. "auto" leaves the offset to the machine.
    vectors : str, array or strategy, default="random"
        Where the vectors of the span come from.
    max_vectors : int, default=None
        Vectors of the span at the most; None for 512.
    tol : float, default=1e-3
        Relative duality gap to stop at.
    max_iter : int, default=10000
        Steps at the most.
    max_time : float, default=None
        Seconds at the most.
    memory : int or str, default="auto"
        Budget for arrays.
    n_jobs : int, default=None
        Threads; the answer does not depend on them.
    random_state : int, RandomState or None, default=None
        Decides which rows the vectors of a span are.
    verbose : int, default=0
        Whether to print a line a step.

    Attributes
    ----------
    offset_ : float
        ``decision_function = score_samples - offset_``.
    support_vectors_ : ndarray or CSR matrix of shape (n_vectors, n_features)
        Vectors of the machine, scaled.
    support_ : ndarray of int or None
        The training rows that they are.
    dual_coef_ : ndarray of shape (1, n_vectors)
        Their coefficients.
    intercept_ : ndarray of shape (1,)
        −ρ, the offset of the machine itself.
    center_, spread_ : ndarray of shape (n_features,) or None
        What columns are scaled by.
    clip_ : float or None
        Where scaled values end.
    gamma_ : float
        The kernel's width.
    engine_ : str
        The engine that was used.
    certificate_ : Certificate
        What was proved. The optimum is negative: the gap is relative to its modulus.
    n_iter_ : int
        Steps.

    See Also
    --------
    sklearn.svm.OneClassSVM : the same machine up to the number of rows that it can take.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import MarginOneClass
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> detector = MarginOneClass(contamination=0.05).fit(X)
    >>> detector.predict([[0.0, 0.0], [6.0, -6.0]])
    array([ 1, -1])
    """

    nu: float = positional(0.5, _share)
    gamma: Any = keyword("median_distance", _gamma)
    scale: str = keyword("auto", check.choice("auto", "robust", "standard", "none"))
    engine: str = keyword("auto", check.choice("auto", "exact", "span"))
    contamination: Any = keyword("auto", check.word_or(("auto",), _half))
    vectors: Any = keyword("random", check.landmarks)
    max_vectors: int | None = keyword(None, check.count_or_none)
    tol: float = keyword(1e-3, check.not_negative)
    max_iter: int = keyword(10_000, check.count)
    max_time: float | None = keyword(None, check.none_or(check.positive))
    verbose: int = keyword(0, check.verbosity)

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.scale in ("auto", "none")
        return tags

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MarginOneClass:
        """Fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; a kernel matrix if ``kernel="precomputed"``.
        y : ignored
            There are no labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted detector.
        """
        with self._fitting(X) as resources:
            X = self._validated(X, ensure_min_samples=2)
            weight = self._weights(X, sample_weight)
            if not weight.any():
                raise ValueError("sample_weight is zero for every row; give some a weight.")
            code = np.zeros(len(weight), dtype=np.intp)
            distinct = distinct_rows(self._rows(X, resources), code, weight)
            rows = self._scaled(distinct, resources)
            self.gamma_ = self._width(distinct, rows)
            problem = one_class(rows, self._kernel(self.gamma_), distinct.weight, self.nu)
            with reporting(self, len(weight), X) as report:
                fitted = self._solved(problem, replace(resources, report=report))
            self._keep(problem, distinct, fitted)
        self._warn(fitted)
        return self

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Return how normal rows are: large inside, small outside.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            wᵀφ(x).
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        with self._computing() as resources:
            return self._scores(self._rows(self._to_scale(X), resources))

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the signed distance from the border: negative for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            `score_samples` minus `offset_`.
        """
        return self.score_samples(X) - self.offset_

    def predict(self, X: Any) -> NDArray[np.intp]:
        """Return 1 for rows inside and −1 for outliers.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            The sign of `decision_function`.
        """
        return np.where(self.decision_function(X) >= 0, 1, -1)

    # Columns and widths.

    def _scaled(self, distinct: Distinct, resources: Resources) -> Rows:
        """Return the different rows, their columns scaled."""
        self.center_: Vector | None = None
        self.spread_: Vector | None = None
        self.clip_: float | None = None
        unscaled = distinct.rows.sparse or self._precomputed()
        if self.scale == "none" or (unscaled and self.scale == "auto"):
            return distinct.rows
        if unscaled:
            raise ValueError(
                f"scale={self.scale!r} would make sparse rows or a kernel matrix another; use "
                "scale='none', or scale them first, for example by MaxAbsScaler."
            )
        X = distinct.rows.take(np.arange(len(distinct.weight)))
        kind = "robust" if self.scale == "auto" else self.scale
        found = ColumnScale.of(kind, X, distinct.weight)
        self.center_, self.spread_, self.clip_ = found.center, found.spread, found.most
        return self._rows(found(X), resources)

    def _to_scale(self, X: Any) -> Any:
        if self.center_ is None or self.spread_ is None or self.clip_ is None:
            return X
        X = X.toarray() if sparse.issparse(X) else X
        return ColumnScale(self.center_, self.spread_, self.clip_)(X)

    def _width(self, distinct: Distinct, rows: Rows) -> float:
        if self._precomputed() or self.gamma != "median_distance":
            scaled = replace(distinct, rows=rows)
            return self._resolved_gamma(self.gamma, scaled)
        few = rows.take(np.arange(min(rows.shape[0], 1000)))
        return median_distance_gamma(few, distinct.weight)

    # The machine.

    def _solved(self, problem: IntervalProblem, resources: Resources) -> Fitted:
        parameters = self.get_params(deep=False)
        few = problem.n <= _EXACT_ROWS and fits_matrix(problem.n, resources.memory)
        budget = self.max_vectors is not None and self.max_vectors < problem.n
        exact = self.engine == "exact" or (self.engine == "auto" and few and not budget)
        self.engine_ = "exact" if exact else "span"
        if exact:
            return fit_exact_intervals(
                problem, MachineOptions.with_parameters(resources, parameters)
            )
        strategy = as_strategy(self.vectors, problem.rows.shape[1])
        options = IntervalSpanOptions.with_parameters(resources, parameters, landmarks=strategy)
        return fit_interval_span(problem, options)

    def _keep(self, problem: IntervalProblem, distinct: Distinct, fitted: Fitted) -> None:
        """Set the attributes of the decision function."""
        self.support_ = None if fitted.index is None else distinct.index[fitted.index]
        self.support_vectors_ = as_stored(fitted.vectors, problem.rows)
        self.dual_coef_ = np.ascontiguousarray(fitted.coef.T)
        self.intercept_ = fitted.intercept
        self.certificate_, self.n_iter_ = fitted.certificate, fitted.certificate.n_iter
        self.offset_ = -float(fitted.intercept[0]) - _BORDER * abs(float(fitted.intercept[0]))
        if self.contamination != "auto":
            scores = self._scores(problem.rows)
            self.offset_ = offset_of_share(scores, distinct.weight, float(self.contamination))

    def _scores(self, rows: Rows) -> NDArray[np.float64]:
        coef = np.ascontiguousarray(self.dual_coef_.T)
        kernel, vectors = self._kernel(self.gamma_), dense(self.support_vectors_)
        scores: NDArray[np.float64] = Expansion(kernel, vectors, coef).values(rows)[:, 0]
        return scores

    def _warn(self, fitted: Fitted) -> None:
        if not fitted.stop.converged:
            reached = fitted.certificate
            warn_user(
                f"{type(self).__name__} stopped before its rule was met ({reached.stopped}), with "
                f"a relative gap of {reached.gap:.2e}. The model is valid; for a better one raise "
                "the limit, or loosen tol to accept it."
            )
