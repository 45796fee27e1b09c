"""Kernel regression: exact on few rows, in a span or in cells on many."""

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
from widemargin.base.estimator import (
    reporting,
    warn_user,
    with_callbacks,
)
from widemargin.base.kept_cells import keep_cells, kept_machines
from widemargin.base.kernel_regressor import LINEAR, SQUARED, KernelRegressor, TargetScale
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.row_maps import check_scale, kept_map, seen
from widemargin.base.seen_rows import check_map, check_metric, is_mapped, learned_root
from widemargin.base.target_intervals import check_quantile, check_quantiles
from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.expansion import Fitted
from widemargin.loop import Resources
from widemargin.problem import Problem
from widemargin.regression.calibration import check_calibration
from widemargin.regression.interval_losses import PiecewiseLoss, fit_pieces
from widemargin.regression.regression_fit import RegressionFit
from widemargin.regression.squared_losses import fit_squares
from widemargin.rows import Rows
from widemargin.span import as_strategy


def check_loss(machine: Any, precomputed: bool) -> None:
    """Raise where parameters of a regressor do not go together.

    Parameters
    ----------
    machine : MarginRegressor or MarginRegressorCV
        Whose parameters.
    precomputed : bool
        Whether kernel values are given.
    """
    if machine.engine == "cells" and precomputed:
        raise ValueError(
            "engine='cells' cuts the space of the rows, which kernel='precomputed' does not "
            "tell; give the rows and a kernel by name, or use engine='span'."
        )
    if machine.loss in LINEAR and not machine.fit_intercept:
        raise ValueError(
            f"loss={machine.loss!r} has a free bias; fit_intercept=False is not there for it. Use "
            "fit_intercept=True, or loss='squared_epsilon_insensitive'."
        )
    if machine.loss != "quantile" and machine.calibration not in ("auto", None):
        raise ValueError(
            f"calibration={machine.calibration!r} is for loss='quantile', not "
            f"loss={machine.loss!r}; leave it at 'auto'."
        )
    if machine.quantiles is not None and machine.loss != "quantile":
        raise ValueError(
            f"quantiles={machine.quantiles!r} are for loss='quantile', not loss={machine.loss!r}."
        )


def check_outputs(quantiles: Any, y: NDArray[np.float64]) -> None:
    """Raise where several quantiles are wanted of several outputs."""
    if quantiles is not None and y.ndim > 1 and y.shape[1] > 1:
        raise ValueError(f"quantiles need one output, but y has {y.shape[1]}; fit each alone.")


@parameters
class MarginRegressor(MultiOutputMixin, KernelRegressor):
    """Kernel regression for data of any size, with a certificate of how good the answer is.

    It minimises ½‖w‖² + ½b² + C Σ s r², where r is how far f(x) = w·φ(x) + b is from the target, or
    from within ε of it. Targets are centred by their weighted mean before, which the answer has in
    it again: what b² costs does not depend on where the targets lie. On few rows the answer is the
    exact machine. On many, w is sought in the span of a number of vectors, with every row in the
    loss, or the space is cut into cells with a machine each.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors. ``KernelRidge(alpha=1 / (2 * C))`` is the same machine for the squared
        loss without an intercept.
    loss : {"squared", "squared_epsilon_insensitive", "epsilon_insensitive", "quantile"}, \
            default="squared"
        The squared error; the square of its excess over `epsilon`, which leaves rows within
        `epsilon` of their target without a coefficient; that excess itself, the loss of ``SVR``; or
        the loss of a quantile. The last two have a free bias. The squared error is the default: a
        prediction is then a mean, nothing is to be chosen beside C, and all outputs share the work.
    epsilon : float, default=0.1
        Errors up to it cost nothing, for the losses that are named after it, in the units of y.
    quantile : float, default=0.5
        Which quantile, for ``loss="quantile"``.
    quantiles : array-like of float, default=None
        Several of them, for ``loss="quantile"`` and one output: predictions have a column for each,
        from the smallest to the largest, and are sorted, so that they never cross.
    calibration : "auto", int, float or None, default="auto"
        How each quantile is moved so that its share of rows is right on rows that its machine has
        not seen: an int holds out each row once, in so many folds, and fits all rows; a float holds
        out that share of the rows for good, and the shares are guaranteed. "auto" takes 5 folds,
        10 on up to 2,000 rows, where there are several `quantiles`: intervals are nothing without
        their shares. None leaves quantiles as they are.
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
    metric : {"diagonal", "full"}, array or None, default=None
        In which metric distances are measured: rows are multiplied with the root of M. "diagonal"
        and "full" learn M from the gradients of a machine with these parameters, for losses that
        are squares, in up to three rounds, as many as held-out rows ask for (as `MarginMetric`
        does); an array of shape (n_features, n_features), or a diagonal of shape (n_features,), is
        M itself. Columns that tell nothing of the target hardly count then.
    scale : {"auto", None}, default=None
        "auto" puts columns on one scale inside the fit: less the median, over the distance of the
        quartiles, outliers bent towards four standard deviations. Sparse rows and kernel matrices
        are taken as they are, and so are all rows with None.
    fit_intercept : bool, default=True
        Whether to centre the targets and to have b; without, f(x) = w·φ(x).
    engine : {"auto", "exact", "span", "cells"}, default="auto"
        The exact machine; the span fit; a machine for each cell of a partition; or, for "auto", the
        first for up to 5,000 different rows, 10,000 with the squared loss, if the matrix fits into
        `memory`; otherwise what held-out rows speak for; with losses in linear pieces, the span.
        `engine_` tells which it was.
    cells : int, array of shape (n_cells, n_features) or "auto", default="auto"
        With ``engine="cells"``: about how many rows a cell has, or the centres of the cells. "auto"
        chooses the size on held-out rows.
    overlap : float, default=0.3
        Rows from just outside a cell that train its machine too, as a share of its own.
    blend : float, default=0.2
        Where rows are nearly as near to another cell, both cells' predictions are averaged: as
        long as the distance from the second centre exceeds that from the first by less than this
        share of it.
    vectors : {"core", "random", "kmeans", "leverage"}, array or strategy, default="core"
        Where the vectors of the span come from: rows that the machine feels, random rows, centres
        of k-means, rows by their distance from the span of the others, an array of vectors, or an
        object of ``widemargin.span``.
    max_vectors : int or "auto", default="auto"
        Vectors at the most, of all cells together. "auto" doubles them, up to a fifth of the
        rows or 4,096, until the objective falls by less than 1 % for a doubling. With losses in
        linear pieces up to 1,024, until it falls by less than 2 %.
    tol : float, default=1e-3
        Stop at this relative duality gap.
    max_iter : int, default=10000
        Steps of the outer loop at the most.
    max_time : float, default=None
        Seconds at the most for the whole fit, looked at between steps.
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
    engine_ : {"exact", "span", "cells"}
        How the machine was found.
    support_ : ndarray of shape (n_vectors,) or None
        Training rows that are vectors of the machine; None if vectors are not rows.
    support_vectors_ : ndarray or CSR array of shape (n_vectors, n_features)
        The vectors; row numbers if the kernel is precomputed. With `scale` they, and the centres of
        cells, are rows after it.
    dual_coef_ : ndarray of shape (n_outputs, n_vectors)
        Coefficient of each vector for each output.
    intercept_ : ndarray of shape (n_outputs,)
        What is added, the mean of the targets included; of shape (n_cells, n_outputs) in cells.
    offsets_ : ndarray of shape (n_outputs,)
        What calibration adds to predictions, beside `intercept_`.
    cell_centers_ : ndarray of shape (n_cells, n_features)
        Centres of the cells, in cells only.
    cell_offsets_ : ndarray of int of shape (n_cells + 1,)
        Where the vectors of each cell begin among the vectors, in cells only.
    cell_middles_, cell_middle_offsets_ : ndarray
        Middles of groups of centres, and where their centres begin, in more than 2,048 cells only.
    n_outputs_ : int
        Columns of y.
    flat_ : bool
        Whether y had one dimension, and predictions have.
    several_ : bool
        Whether predictions are several quantiles.
    gamma_ : float
        The kernel width that was used.
    metric_ : ndarray of shape (n_features, n_features) or (n_features,)
        M, or its diagonal, of the columns after `scale`; where there is a `metric`.
    metric_root_ : ndarray of the same shape
        Its root, which rows are multiplied with.
    column_centers_, column_factors_ : ndarray of shape (n_features,)
        What columns are less, and what they are then multiplied with; where there is `scale` or
        `metric`.
    column_bend_ : float
        b of z / √(1 + (z / b)²), by which outliers are bent.
    n_iter_ : int
        Steps of the outer loop.
    certificate_ : Certificate
        What the fit can prove, for the centred targets, all outputs together.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MarginClassifier : The classifier on the same engines.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import MarginRegressor
    >>> X = np.linspace(0.0, 6.0, 200)[:, None]
    >>> machine = MarginRegressor(C=10.0, gamma=1.0).fit(X, 100.0 + np.sin(X[:, 0]))
    >>> machine.engine_, bool(machine.score(X, 100.0 + np.sin(X[:, 0])) > 0.999)
    ('exact', True)
    >>> bool(machine.certificate_.gap < 1e-3)
    True
    """

    C: float = positional(1.0, check.positive)
    loss: str = keyword("squared", check.choice(*SQUARED, *LINEAR))
    epsilon: float = keyword(0.1, check.not_negative)
    quantile: float = keyword(0.5, check_quantile)
    quantiles: Any = keyword(None, check_quantiles)
    calibration: Any = keyword("auto", check_calibration)
    gamma: Any = keyword("scale", check.gamma)
    metric: Any = keyword(None, check_metric)
    scale: str | None = keyword(None, check_scale)
    fit_intercept: bool = keyword(True)
    engine: str = keyword("auto", check.choice("auto", "exact", "span", "cells"))
    cells: Any = keyword("auto", check.size_or_rows)
    overlap: float = keyword(0.3, check.not_negative)
    blend: float = keyword(0.2, check.not_negative)
    vectors: Any = keyword("core", check.landmarks)
    tol: float = keyword(1e-3, check.not_negative)
    max_iter: int = keyword(10_000, check.count)
    max_vectors: int | str = keyword("auto", check.word_or(("auto",), check.count))
    max_time: float | None = keyword(None, check.none_or(check.positive))
    verbose: int = keyword(0, check.verbosity)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MarginRegressor:
        """Fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; a kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``.
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
            check_outputs(self.quantiles, y)
            problem, scale, gamma = self._stated(
                X, targets, sample_weight, resources, insensitive=self.loss == SQUARED[1]
            )
            with reporting(self, len(y), X, y) as report:
                found = self._fitted(problem, replace(resources, report=report), scale)
        self.several_ = self.quantiles is not None
        self.gamma_, self.n_outputs_, self.flat_ = gamma, targets.shape[1], y.ndim == 1
        self.engine_ = found.engine
        self._keep(problem, found.fitted, scale)
        self.offsets_ = np.zeros(len(self.dual_coef_))
        if found.offsets is not None:
            self.offsets_ = found.offsets * scale.unit
        self._warn(found.fitted)
        if found.doubt:
            warn_user(f"{type(self).__name__}: {found.doubt}")
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the prediction of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        with self._computing() as resources:
            values = self._values(self._rows(X, resources))
        if self.several_:
            return np.sort(np.sort(values, axis=1) + self.offsets_, axis=1)
        values = values + self.offsets_
        found: NDArray[np.float64] = values[:, 0] if self.flat_ else values
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² of the predictions; with several quantiles, of that nearest to the median.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights.

        Returns
        -------
        float
            R², at most 1.
        """
        found = self.predict(X)
        if self.several_:
            levels = np.sort(np.asarray(self.quantiles, dtype=np.float64))
            found = found[:, int(np.abs(levels - 0.5).argmin())]
        return float(r2_score(y, found, sample_weight=sample_weight))

    def _values(self, rows: Rows) -> Matrix:
        """Return the predictions of rows, a column for each output."""
        if self.engine_ != "cells":
            return super()._values(rows)
        machines = kept_machines(self, self._kernel(self.gamma_), self.intercept_)
        return machines.values(seen(rows, kept_map(self)))

    # The steps of `fit`.

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_loss(self, self._precomputed())
        if isinstance(self.metric, str) and self.loss in LINEAR:
            raise ValueError(
                f"metric={self.metric!r} is learned from machines with a squared loss, not "
                f"loss={self.loss!r}; give the metric_ of such a machine as an array."
            )
        if is_mapped(self):
            check_map(self, self._kernel(1.0))

    def _learned_root(self, problem: Problem, resources: Resources) -> NDArray[np.float64]:
        """Return the root of the metric of a problem."""
        return learned_root(problem, self.metric, self._options(resources))

    def _options(self, resources: Resources) -> ChoiceOptions:
        """Return what the engines are to know of the parameters."""
        limit = None if isinstance(self.max_vectors, str) else int(self.max_vectors)
        named = isinstance(self.vectors, str)
        return ChoiceOptions(
            **vars(resources),
            tol=self.tol,
            max_iter=self.max_iter,
            max_vectors=limit,
            landmarks=as_strategy(self.vectors, self.n_features_in_),
            cells=self.cells,
            overlap=self.overlap,
            blend=self.blend,
            engine=self.engine,
            size_given=not isinstance(self.cells, str),
            cuttable=named and limit is None and not self._precomputed(),
            in_a_span=not named,
        )

    def _fitted(self, problem: Problem, resources: Resources, scale: TargetScale) -> RegressionFit:
        """Return the machine by the engine that is wanted, or chosen."""
        options = self._options(resources)
        if self.loss not in LINEAR:
            return fit_squares(problem, options)
        price = self._price(scale)
        if self.loss == "epsilon_insensitive":
            return fit_pieces(problem, PiecewiseLoss(price, self.epsilon / scale.unit), options)
        several = self.quantiles is not None
        levels = tuple(self.quantiles) if several else (self.quantile,)
        loss = PiecewiseLoss(price, None, levels, several, self.calibration)
        return fit_pieces(problem, loss, options)

    def _keep(self, problem: Problem, fitted: Fitted, scale: TargetScale) -> None:
        """Set the attributes of the prediction, those of cells too."""
        super()._keep(problem, fitted, scale)
        keep_cells(self, fitted)
