"""Core vector regression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, column_or_1d

from widemargin.balls import CoreOptions
from widemargin.balls.core_regression import fit_core_regression
from widemargin.base import parameters as check
from widemargin.base.estimator import reporting, with_callbacks
from widemargin.base.kernel_regressor import KernelRegressor
from widemargin.base.parameters import keyword, parameters, positional


@parameters
class CoreVectorRegressor(KernelRegressor):
    """Kernel regression through a centre-constrained ball and a core set (CVR).

    It minimises ½‖w‖² + ½b² + C Σ s r², where r is how far f(x) = w·φ(x) + b is beyond `epsilon`
    from the target, on a set of rows that grows until the rows outside it change nothing. Targets
    are centred by their weighted mean before, which the answer has in it again.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors, as in `MarginRegressor`.
    epsilon : float, default=0.1
        Errors up to it cost nothing, in the units of y.
    kernel : str, callable or Kernel, default="rbf"
        As in `MarginClassifier`.
    gamma : {"scale", "auto", "mean_distance"} or float, default="scale"
        Kernel width; "mean_distance" is one over the mean squared distance between training rows.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    fit_intercept : bool, default=True
        Whether to centre the targets and to have b.
    growth : {"batch", "one"}, default="batch"
        How the core set grows: by many rows at once, or by one row at a time.
    sample_size : int or None, default=59
        With ``growth="one"``: the furthest of this many random rows joins; None takes the furthest
        of all.
    stopping : {"gap", "ball"}, default="gap"
        Stop at a relative duality gap of `tol`, or when all points lie within (1 + `eps`) of the
        ball's radius (the papers' rule).
    eps : float, default=1e-4
        See `stopping`.
    tol : float, default=1e-3
        See `stopping`.
    max_iter : int, default=10000
        Steps of the outer loop at the most.
    max_vectors : int, default=None
        Core vectors at the most; None leaves it to `memory`.
    max_time : float, default=None
        Seconds at the most, looked at between steps.
    memory : int or str, default="auto"
        Budget for kernel values and matrices, beside the data: bytes, or text such as "1GB".
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    verbose : int, default=0
        1 prints a line a step.

    Attributes
    ----------
    support_ : ndarray of shape (n_vectors,)
        Training rows that are vectors of the machine.
    support_vectors_ : ndarray or CSR array of shape (n_vectors, n_features)
        Those rows; their numbers if the kernel is precomputed.
    dual_coef_ : ndarray of shape (1, n_vectors)
        Coefficient of each vector.
    intercept_ : ndarray of shape (1,)
        What is added, the mean of the targets included.
    gamma_ : float
        The kernel width that was used.
    n_iter_ : int
        Steps of the outer loop.
    certificate_ : Certificate
        What the fit can prove, for the centred targets: primal, dual, relative gap, ball, cost.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MarginRegressor : The same loss on other engines.

    References
    ----------
    .. [1] I. W. Tsang, J. T. Kwok, K. T. Lai, "Core vector regression for very large regression
       problems", ICML 2005.
    .. [2] I. W. Tsang, J. T. Kwok, J. M. Zurada, "Generalized core vector machines", IEEE
       Transactions on Neural Networks, 2006.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import CoreVectorRegressor
    >>> X = np.linspace(0.0, 6.0, 2000)[:, None]
    >>> y = 100.0 + np.sin(X[:, 0])
    >>> machine = CoreVectorRegressor(C=10.0, epsilon=0.05, gamma=1.0, random_state=0).fit(X, y)
    >>> bool(machine.score(X, y) > 0.99), bool(machine.certificate_.gap <= 1e-3)
    (True, True)
    """

    C: float = positional(1.0, check.positive)
    epsilon: float = keyword(0.1, check.not_negative)
    gamma: Any = keyword("scale", check.gamma)
    fit_intercept: bool = keyword(True)
    growth: str = keyword("batch", check.choice("batch", "one"))
    sample_size: int | None = keyword(59, check.count_or_none)
    stopping: str = keyword("gap", check.choice("gap", "ball"))
    eps: float = keyword(1e-4, check.positive)
    tol: float = keyword(1e-3, check.not_negative)
    max_iter: int = keyword(10_000, check.count)
    max_vectors: int | None = keyword(None, check.at_least(2, none=True))
    max_time: float | None = keyword(None, check.none_or(check.positive))
    verbose: int = keyword(0, check.verbosity)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> CoreVectorRegressor:
        """Fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; a kernel matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
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
            if y.ndim == 2 and y.shape[1] > 1:
                raise ValueError(
                    f"y has {y.shape[1]} outputs, but CoreVectorRegressor fits one; fit each "
                    "alone, or use MarginRegressor(loss='squared_epsilon_insensitive')."
                )
            targets = column_or_1d(y, dtype=np.float64, warn=True)[:, None]
            problem, scale, gamma = self._stated(
                X, targets, sample_weight, resources, insensitive=True
            )
            with reporting(self, len(targets), X, y) as report:
                options = CoreOptions(
                    **vars(replace(resources, report=report)),
                    tol=self.tol,
                    growth=self.growth,
                    sample_size=self.sample_size,
                    max_vectors=self.max_vectors,
                    max_iter=self.max_iter,
                )
                eps = self.eps if self.stopping == "ball" else None
                fitted = fit_core_regression(problem, options, eps)
        self.gamma_ = gamma
        self._keep(problem, fitted, scale)
        self._warn(fitted)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the prediction of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predictions.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        with self._computing() as resources:
            found: NDArray[np.float64] = self._values(self._rows(X, resources))[:, 0]
        return found
