"""Sparse kernel regression: choose how many vectors, then put them where they matter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin
from sklearn.metrics import r2_score
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import Matrix
from widemargin.base import parameters as check
from widemargin.base.estimator import reporting, with_callbacks
from widemargin.base.kernel_regressor import LINEAR, SQUARED, KernelRegressor, TargetScale
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.target_intervals import check_quantile
from widemargin.expansion import Fitted
from widemargin.loop import Deadline, Resources
from widemargin.problem import Problem
from widemargin.sparse import sparse_options
from widemargin.sparse.interval_marginal import Intervals
from widemargin.sparse.marginal import MarginalOfRows
from widemargin.sparse.placement import fit_sparse
from widemargin.sparse.sparse_options import (
    FittedSparse,
    SparseOptions,
    in_units,
    keep_sparse,
    options_of,
)
from widemargin.sparse.squared_marginal import Squared


@parameters
class SparseMarginRegressor(MultiOutputMixin, KernelRegressor):
    """Kernel regression with as many vectors as one says, which are placed by gradient descent.

    W(Z) is the optimum of the regression over all machines in the span of the vectors Z. Its
    gradient in Z is known once the machine is, so vectors move to where they serve the machine
    best: they need not be training rows. This is the direct method of [1]_, which names regression
    as future work. Prediction costs as many kernel values as there are vectors, for all outputs
    together.

    Parameters
    ----------
    n_vectors : int, default=50
        Vectors, shared by all outputs; no more than there are different rows.
    C : float, default=1.0
        Weight of the errors, as in `MarginRegressor`.
    loss : {"squared", "squared_epsilon_insensitive", "epsilon_insensitive", "quantile"}, \
            default="squared"
        As in `MarginRegressor`: the first two have a regularised bias about the mean of the
        targets, the other two a free one.
    epsilon : float, default=0.1
        Errors up to it cost nothing, for the losses that are named after it, in the units of y.
    quantile : float, default=0.5
        Which quantile, for ``loss="quantile"``.
    kernel : str or Kernel, default="rbf"
        As in `MarginRegressor`; it must have a gradient in its second argument.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    fit_intercept : bool, default=True
        Whether to centre the targets and to have a bias.
    init : {"kmeans", "random"} or array of shape (n_vectors, n_features), default="kmeans"
        Where vectors start: at centres of the rows, at random rows of which no two are equal, or
        there; an array says how many there are, too.
    grow : {"one", "double"}, default=None
        Start with one vector and let more join, one by one or doubling, each time moving all of
        them; `score_curve_` then tells what each number is good for.
    max_iter : int, default=200
        Steps of L-BFGS at the most, for each stage.
    tol : float, default=1e-5
        Stop when a step lowers W by less than this share.
    max_time : float, default=None
        Seconds at the most.
    memory : int or str, default="auto"
        Budget for kernel values, beside the data.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the start.
    verbose : int, default=0
        1 prints a line a step.

    Attributes
    ----------
    expansion_vectors_ : ndarray of shape (n_vectors, n_features)
        The vectors.
    coef_ : ndarray of shape (n_outputs, n_vectors)
        Their coefficients.
    intercept_ : ndarray of shape (n_outputs,)
        What is added, the mean of the targets included.
    n_vectors_ : int
        Number of vectors.
    history_ : list of ndarray
        W at the accepted steps, in one array.
    score_curve_ : dict of arrays
        With `grow`: "n_vectors", "training_score" (R²) and "W" of each stage.
    certificate_ : Certificate
        The gap of the machine within the span of its vectors, for the centred targets, all outputs
        together.
    n_outputs_ : int
        Columns of y.
    flat_ : bool
        Whether y had one dimension, and predictions have.
    n_iter_ : int
        Steps.
    gamma_ : float
        The kernel width that was used.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MarginRegressor : More vectors, rows of the data, in less time.

    References
    ----------
    .. [1] M. Wu, B. Schölkopf, G. Bakır, "A direct method for building sparse kernel learning
       algorithms", JMLR 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import SparseMarginRegressor
    >>> X = np.linspace(0.0, 6.0, 200)[:, None]
    >>> y = 100.0 + np.sin(X[:, 0])
    >>> machine = SparseMarginRegressor(4, C=10.0, gamma=1.0, random_state=0).fit(X, y)
    >>> machine.expansion_vectors_.shape, bool(machine.score(X, y) > 0.99)
    ((4, 1), True)
    """

    n_vectors: int = positional(50, check.count)
    C: float = keyword(1.0, check.positive)
    loss: str = keyword("squared", check.choice(*SQUARED, *LINEAR))
    epsilon: float = keyword(0.1, check.not_negative)
    quantile: float = keyword(0.5, check_quantile)
    kernel: Any = keyword("rbf", sparse_options.movable)
    gamma: Any = keyword("scale", check.gamma)
    fit_intercept: bool = keyword(True)
    init: Any = keyword("kmeans", sparse_options.start_without_classes)
    grow: str | None = keyword(None, check.none_or(check.choice("one", "double")))
    max_iter: int = keyword(200, check.count)
    tol: float = keyword(1e-5, check.not_negative)
    max_time: float | None = keyword(None, check.none_or(check.positive))
    verbose: int = keyword(0, check.verbosity)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> SparseMarginRegressor:
        """Fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted regressor.
        """
        with self._fitting(X) as resources:
            X, y = self._validated(X, y, multi_output=True, y_numeric=True)
            y = np.asarray(y, dtype=np.float64)
            targets = y.reshape(len(y), -1)
            problem, scale, gamma = self._stated(
                X, targets, sample_weight, resources, insensitive=self.loss == SQUARED[1]
            )
            with reporting(self, len(y), X, y) as report:
                options = self._options(replace(resources, report=report), scale)
                fitted = fit_sparse(problem, options)
        self.gamma_, self.n_outputs_, self.flat_ = gamma, targets.shape[1], y.ndim == 1
        self._keep(problem, fitted, scale)
        self._warn(fitted)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the prediction of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        with self._computing() as resources:
            values = self._values(self._rows(X, resources))
        found: NDArray[np.float64] = values[:, 0] if self.flat_ else values
        return found

    # The steps of `fit`.

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_bias()

    def _options(self, resources: Resources, scale: TargetScale) -> SparseOptions:
        """Return what the engine is to know of the parameters."""

        def function(problem: Problem, deadline: Deadline) -> MarginalOfRows:
            if self.loss in SQUARED:
                return Squared(problem, deadline)
            return Intervals(self._intervals(problem, scale, [self.quantile]), deadline)

        judge = ("training_score", training_score)
        options = options_of(self, resources, function=function, judge=judge, share_vectors=True)
        # Equal rows of different targets are different rows, but not as vectors.
        drawn = isinstance(options.init, str) and options.init == "random"
        return replace(options, init="distinct") if drawn else options

    def _keep(self, problem: Problem, fitted: Fitted, scale: TargetScale) -> None:
        assert isinstance(fitted, FittedSparse)
        super()._keep(problem, fitted, scale)
        keep_sparse(self, in_units(fitted, scale.unit**2), "score_curve_")


def training_score(problem: Problem, scores: Matrix) -> float:
    """Return R² of the scores of the training rows, the mean over outputs."""
    assert problem.regression is not None
    targets = problem.regression.of(np.arange(problem.n_problems))
    if problem.n < 2:
        return float("nan")
    return float(r2_score(targets, scores, sample_weight=problem.weight))
