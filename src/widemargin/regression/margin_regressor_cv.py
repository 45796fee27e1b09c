"""The margin regressor with C, ε and the kernel width chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.metrics import check_scoring
from sklearn.utils.validation import check_is_fitted, validate_data

from widemargin.arrays import IndexArray, Matrix, Vector
from widemargin.base import parameters as check
from widemargin.base.estimator import KernelEstimator, warn_user
from widemargin.base.found import Found
from widemargin.base.frame_columns import numbers_of_frame
from widemargin.base.kernel_regressor import LINEAR, SQUARED, TargetScale, numbered_targets
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.placing import stand_in
from widemargin.base.progress import ProgressBar
from widemargin.base.row_maps import check_scale, seen
from widemargin.base.seen_rows import has_gradient, kinds_of
from widemargin.base.target_intervals import check_quantile, check_quantiles
from widemargin.base.views import Views
from widemargin.base.widths import Width, kernels_to_search
from widemargin.cells.engine_choice import ChoiceOptions
from widemargin.folds import Folds, splits_of
from widemargin.kernels import Kernel
from widemargin.loop import Resources
from widemargin.problem import Problem, check_prices
from widemargin.regression.calibration import check_calibration
from widemargin.regression.held_out_targets import (
    FoldSearch,
    HeldOutTargets,
    TargetJudge,
    most_rows,
)
from widemargin.regression.margin_regressor import (
    MarginRegressor,
    check_loss,
    check_outputs,
)
from widemargin.regression.piece_search import PieceSearch
from widemargin.regression.regression_grid import RegressionGrid
from widemargin.regression.target_search import TargetSearch, scored
from widemargin.rows import Distinct, Rows, distinct_rows
from widemargin.span import as_strategy

# Different rows that the search looks at, at the most.
_SEARCHED_ROWS = 2000
# The same with losses in linear pieces, whose machines take longer.
_SEARCHED_IN_PIECES = 1000
# Part of the time, where it is limited, for the search.
_TIME_TO_SEARCH = 0.75
# Seconds that the final fit has in any case: there must be an answer.
_LEAST_TIME = 1e-3


@parameters
class MarginRegressorCV(RegressorMixin, MultiOutputMixin, KernelEstimator):
    """`MarginRegressor` with C, gamma, the kernel and epsilon chosen by cross-validation.

    All values of C and all folds of one kernel width share one kernel matrix, and for the squared
    loss all values of C share one eigendecomposition in each fold. Every machine of the search is
    exact. It looks at up to 2,000 different rows, 1,000 with losses in linear pieces, or as many as
    have room in `memory`: of more, at a sample. The best combination is then fitted to all rows.

    With default parameters the scale of the columns, the kernel and a metric are chosen as well: a
    third of those rows chooses the two best scales and kernels, all of them decide between these,
    and metrics are learned from the best.

    Parameters
    ----------
    Cs : int or array-like of float, default=15
        Values of C; a number stands for that many from 0.01 to 100,000, evenly on a log scale, or
        with losses in linear pieces from 0.01 to 1000 standard deviations of the targets.
    gammas : int or array-like of {"scale", "auto", "mean_distance"} or float, default=5
        Kernel widths; a number stands for that many, from a sixteenth to sixteen times the usual
        one, which is one over the sum of the columns' variances, for the Laplacian kernel of their
        standard deviations.
    kernels : "auto", array-like of kernels or None, default="auto"
        Kernels to choose from, each with all widths if it has any; None is `kernel` alone. So is
        "auto", unless `kernel` is "rbf" and `gammas` a number: then it is the Gaussian and the
        Laplacian kernel, or the exponential one for more than 100 features.
    epsilons : int or array-like of float, default=3
        Values of epsilon for the losses that are named after it, in the units of y; a number
        stands for that many from 0.01 to 0.5 standard deviations of the targets.
    metrics : "auto", array-like of {None, "diagonal", "full"} or None, default="auto"
        Metrics to choose from, for losses that are squares. They are learned from the gradients of
        the best machine without one, for each fold from its own rows; no metric is always one of
        the choices. None is none. "auto" is all, where `gammas` is a number and rows are dense and
        in memory.
    scale : {"auto", None}, default="auto"
        "auto" decides on held-out rows whether columns are put on one scale, as in
        `MarginRegressor`, where `gammas` is a number and rows are dense and in memory: widths that
        a user gives are for rows as they are. None takes them as they are.
    cv : int, splitter or iterable, default=5
        Folds. A number stands for that many of rows in random order: files are often sorted. Give a
        splitter for rows that follow each other in time, or that belong together.
    scoring : str or callable, default=None
        As in `GridSearchCV`; None is R², or minus the mean quantile loss of all quantiles. Scores
        are weighted by `sample_weight` where they can be. Only predictions are there to be scored.
    loss : {"squared", "squared_epsilon_insensitive", "epsilon_insensitive", "quantile"}, \
            default="squared"
        As in `MarginRegressor`, and so are the parameters that follow.
    quantile : float, default=0.5
        Which quantile, for ``loss="quantile"``.
    quantiles : array-like of float, default=None
        Several of them.
    calibration : "auto", int, float or None, default="auto"
        How the quantiles of the final fit are moved to their shares.
    kernel : str, callable or Kernel, default="rbf"
        The kernel, where it is not searched for.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    fit_intercept : bool, default=True
        Whether to centre the targets, those of each fold by their own mean, and to have b.
    engine : {"auto", "exact", "span", "cells"}, default="auto"
        Of the final fit.
    cells : int, array of shape (n_cells, n_features) or "auto", default="auto"
        Of the final fit, with ``engine="cells"``.
    overlap : float, default=0.3
        Of the final fit, in cells.
    blend : float, default=0.2
        Of the final fit, in cells.
    vectors : {"core", "random", "kmeans", "leverage"}, array or strategy, default="core"
        Of the final fit, in a span.
    max_vectors : int or "auto", default="auto"
        Vectors of the final fit at the most.
    tol : float, default=1e-3
        Relative duality gap of the final fit.
    max_iter : int, default=10000
        Steps at the most, of each machine.
    max_time : float, default=None
        Seconds at the most, for all of it. A search that is cut short says so, and of what it has
        scored the best is fitted; so it is after an interrupt, a second one of which ends the final
        fit. Time is looked at between folds.
    memory : int or str, default="auto"
        Budget for kernel values and matrices, beside the data.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    verbose : int, default=0
        1 shows a bar for the search and prints a line a step of the final fit.

    Attributes
    ----------
    best_params_ : dict
        "C" and "gamma" of the best mean score, "epsilon" where the loss has one, "kernel" where
        there are `kernels`, "scale" and "metric" where these are searched for; of equals the
        smallest C, then the smallest epsilon.
    best_score_ : float
        That score.
    best_index_ : int
        Its place in `cv_results_`.
    best_estimator_ : MarginRegressor
        The machine with the best parameters, fitted to all rows.
    cv_results_ : dict of arrays
        As in `GridSearchCV`: "params", "param_C", "param_gamma" ("param_kernel", "param_epsilon"),
        "split<k>_test_score", "mean_test_score", "std_test_score", "rank_test_score" (NaN for
        combinations that a search did not get to); and "fit_time", the seconds that all folds of a
        width took together. With more than two scales and kernels to choose from, only of the
        combinations that went on from a sample.
    preprocess_ : FrameColumns or None
        What makes numbers of the columns of a data frame that has others; None for other rows.
    n_splits_ : int
        Number of folds.
    n_searched_ : int
        Different rows that the search has looked at.
    certificate_ : Certificate
        Of the final fit.
    n_iter_ : int
        Steps of the final fit.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MarginRegressor : The machine itself.

    Notes
    -----
    Words for gamma are worked out from all rows, not in each fold. Where the search looks at a
    sample, the rows that a fold trains on and holds out are those of it that are in the sample.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import MarginRegressorCV
    >>> X = np.random.default_rng(0).uniform(-3.0, 3.0, size=(200, 1))
    >>> y = 10.0 + np.sin(2.0 * X[:, 0])
    >>> search = MarginRegressorCV(Cs=[0.01, 1.0, 100.0], gammas=[0.01, 1.0]).fit(X, y)
    >>> search.best_params_
    {'C': 100.0, 'gamma': 1.0}
    >>> bool(search.best_score_ > 0.99), bool(search.score(X, y) > 0.99)
    (True, True)
    """

    Cs: Any = positional(15)
    gammas: Any = positional(5)
    kernels: Any = keyword("auto")
    epsilons: Any = keyword(3)
    metrics: Any = keyword("auto")
    scale: Any = keyword("auto", check_scale)
    cv: Any = keyword(5)
    scoring: Any = keyword(None)
    loss: str = keyword("squared", check.choice(*SQUARED, *LINEAR))
    quantile: float = keyword(0.5, check_quantile)
    quantiles: Any = keyword(None, check_quantiles)
    calibration: Any = keyword("auto", check_calibration)
    fit_intercept: bool = keyword(True)
    engine: str = keyword("auto", check.choice("auto", "exact", "span", "cells"))
    cells: Any = keyword("auto", check.size_or_rows)
    overlap: float = keyword(0.3, check.not_negative)
    blend: float = keyword(0.2, check.not_negative)
    vectors: Any = keyword("core", check.landmarks)
    max_vectors: int | str = keyword("auto", check.word_or(("auto",), check.count))
    tol: float = keyword(1e-3, check.not_negative)
    max_iter: int = keyword(10_000, check.count)
    max_time: float | None = keyword(None, check.none_or(check.positive))
    verbose: int = keyword(0, check.verbosity)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MarginRegressorCV:
        """Choose the parameters, and fit the machine.

        Parameters
        ----------
        X : array-like, sparse matrix or frame of shape (n_samples, n_features)
            Training rows; a kernel matrix if ``kernel="precomputed"``. A data frame of pandas or
            Polars may have columns of categories and missing values.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Targets.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the loss and in the score.

        Returns
        -------
        self
            The fitted regressor.
        """
        named = X
        self.preprocess_, X = numbers_of_frame(X, sample_weight)
        with self._fitting(X) as resources:
            X, y = self._validated(X, y, multi_output=True, y_numeric=True, ensure_min_samples=2)
            y = np.asarray(y, dtype=np.float64)
            check_outputs(self.quantiles, y)
            weight = self._weights(X, sample_weight)
            as_strategy(self.vectors, self.n_features_in_)
            found, metric = self._searched(X, y, weight, resources)
        index, score = found.best()
        results = found.results()
        left = resources.deadline.left()
        best = self._machine(**results["params"][index] | {"metric": metric})
        best.max_time = None if left is None else max(_LEAST_TIME, left)
        best.fit(X, y, sample_weight)
        self.cv_results_, self.best_index_, self.best_score_ = results, index, score
        self.best_params_ = results["params"][index]
        self.n_splits_ = found.scores.shape[2]
        self.best_estimator_: MarginRegressor = best
        self.certificate_, self.n_iter_ = best.certificate_, best.n_iter_
        if self.preprocess_ is not None:
            # Users know the columns of their frame.
            validate_data(self, named, skip_check_array=True)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the predictions of the best machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Predictions.
        """
        X = self._known(X)
        return self.best_estimator_.predict(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return `scoring` of the predictions of the best machine, R² where there is none.

        With several quantiles it is R² of the one that is nearest to the median.

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
            The score.
        """
        if self.scoring is None:
            X = self._known(X)
            return self.best_estimator_.score(X, y, sample_weight)
        y = np.asarray(y, dtype=np.float64)
        weight = np.ones(len(y)) if sample_weight is None else np.asarray(sample_weight)
        return self._judged(y, weight).score(np.arange(len(y)), self.predict(X))

    def _known(self, X: Any) -> Any:
        """Return rows that the best machine may be asked about."""
        check_is_fitted(self)
        if self.preprocess_ is not None:
            return self.preprocess_.transform(X)
        return self._validated(X, reset=False)

    # The steps of `fit`.

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._grid()
        check_loss(self, self._precomputed())
        kinds_of(self.metrics)
        if isinstance(self.cv, Integral):
            check.check_count("cv", self.cv, least=2)
        if self.scoring is not None and not isinstance(self.scoring, str | Callable):
            raise TypeError(
                f"scoring={self.scoring!r} must be None, a name or a function: one score chooses."
            )
        check_scoring(HeldOutTargets(), scoring=self.scoring)

    def _grid(self, deviation: float = 1.0) -> RegressionGrid:
        n_features = getattr(self, "n_features_in_", 1)
        kernels = kernels_to_search(self.kernels, self.kernel, self.gammas, n_features)
        epsilons = self.epsilons if "epsilon" in self.loss else None
        return RegressionGrid.of(
            self.Cs,
            epsilons,
            self.gammas,
            kernels,
            self.kernel,
            deviation,
            squared=self.loss in SQUARED,
        )

    def _levels(self) -> tuple[float, ...]:
        """Return the quantiles, none for other losses."""
        if self.loss != "quantile":
            return ()
        return (self.quantile,) if self.quantiles is None else tuple(self.quantiles)

    def _judged(self, y: NDArray[np.float64], weight: Vector) -> TargetJudge:
        several = self.quantiles is not None
        return TargetJudge(self.scoring, y, weight, self._levels(), several)

    def _precomputed(self) -> bool:
        named = self.kernels if isinstance(self.kernels, (list, tuple)) else [self.kernel]
        return any(isinstance(each, str) and each == "precomputed" for each in named)

    def _machine(self, **found: Any) -> MarginRegressor:
        names = MarginRegressor().get_params(deep=False)
        shared = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return MarginRegressor(**shared | {"scale": None, "metric": None} | found)

    def _searched(
        self, X: Any, y: NDArray[np.float64], weight: Vector, resources: Resources
    ) -> tuple[Found, Any]:
        """Score the grid, or as much of it as there is time for; return the best metric too."""
        targets = y.reshape(len(y), -1)
        folds = Folds(splits_of(self.cv, stand_in(X), y, classifier=False), weight)
        code = numbered_targets(targets, weight)
        code = code + (int(code.max()) + 1) * folds.kind
        distinct = distinct_rows(self._rows(X, resources), code, weight)
        views = Views(distinct)
        grid = self._grid_of(views, _deviation(targets[distinct.index], distinct.weight))
        for C in (grid.Cs[0], grid.Cs[-1]):
            check_prices(C, distinct.weight)
        problem = self._stated(distinct, targets, folds, resources)
        self.n_searched_ = problem.n
        shared = problem, folds, grid.pairs, self._judged(y, weight)
        search: FoldSearch | PieceSearch
        if self.loss in LINEAR:
            search = PieceSearch(*shared, self._levels(), self.quantiles is not None)
        else:
            search = FoldSearch(*shared, bool(self.fit_intercept))
        rows: dict[str | None, Rows] = {None: problem.rows}
        if "scale" in grid.of_rows:
            rows["auto"] = seen(problem.rows, views.of("auto").rows.row_map)

        def kernel(width: Width) -> Kernel:
            seen_so = views.of(width.scale)
            gamma = 1.0 if width.gamma is None else self._resolved_gamma(width.gamma, seen_so)
            return self._kernel(gamma, width.kernel)

        # Machines whose gradients a metric is made of are exact: rows are few.
        timed = replace(resources, deadline=resources.deadline.part(_TIME_TO_SEARCH))
        options = ChoiceOptions(**vars(timed), tol=self.tol, max_iter=self.max_iter, engine="exact")
        bar = ProgressBar(type(self).__name__, len(grid.widths), shown=self.verbose > 0)
        kinds = self._kinds() if "metric" in grid.of_rows else ()
        walk = TargetSearch(search, grid, rows, kernel, options, bar, kinds)
        found = walk.run()
        cut = None if walk.cut is None else walk.cut.reason
        self._judge(found, cut, resources.deadline.interrupted)
        width = walk.grid.widths[found.best()[0] % len(walk.grid.widths)]
        return found, walk.metric_of(width)

    def _kinds(self) -> tuple[str, ...]:
        """Return the kinds of metrics to try, for losses that one can be learned with."""
        widths = self._grid().widths
        learned = self.loss in SQUARED and all(has_gradient(each.kernel) for each in widths)
        return kinds_of(self.metrics) if learned else ()

    def _grid_of(self, views: Views, deviation: float) -> RegressionGrid:
        """Return the grid with widths as numbers, for rows as they are and perhaps scaled."""
        grid = self._grid(deviation)
        # A user who gives widths, vectors or centres has rows as they are in mind.
        ours = isinstance(self.gammas, Integral) and isinstance(self.vectors, str)
        named = grid.of_kernels or (isinstance(self.kernel, str) and self.kernel == "rbf")
        ours = ours and named and not np.ndim(self.cells)
        ours = ours and views.mappable
        both = self.scale is not None and ours
        # Metrics that a user names are learned for any rows that can be mapped.
        named = not isinstance(self.metrics, str) and views.mappable
        searched = (("scale", both), ("metric", (ours or named) and bool(self._kinds())))
        widths: list[Width] = []
        for scale in (None, "auto") if both else (None,):
            variance = views.variance(scale)
            widths.extend(replace(each.on(variance), scale=scale) for each in grid.widths)
        of_rows = tuple(name for name, there in searched if there)
        return replace(grid, widths=tuple(widths), of_rows=of_rows)

    def _stated(
        self, distinct: Distinct, targets: Matrix, folds: Folds, resources: Resources
    ) -> Problem:
        """Return the rows that the search looks at, with their targets."""
        n, wanted = len(distinct.index), _SEARCHED_ROWS
        if self.loss in LINEAR:
            wanted = _SEARCHED_IN_PIECES
        most = min(wanted, most_rows(resources.memory))
        stated = Problem.of(
            distinct.rows,
            self._kernel(1.0),
            distinct.code,
            np.ones((1, 1)),
            distinct.weight,
            1.0,
            distinct.index,
            distinct.place,
        ).with_targets(targets[distinct.index], 0.0, float(bool(self.fit_intercept)))
        if n <= most:
            return stated
        chosen: IndexArray = np.sort(resources.rng.choice(n, most, replace=False))
        where = np.full(n + 1, -1)
        where[chosen] = np.arange(most)
        # Rows that are left out have the place −1, which is the last.
        problem = replace(stated.subset(chosen), place=where[distinct.place])
        kind = folds.kind[problem.number]
        unseen = ~(folds.counts[kind].any(axis=0) & folds.held[kind].any(axis=0))
        if unseen.any():
            raise ValueError(
                f"{int(unseen.sum())} of {folds.n} folds of cv have no row in the sample of "
                f"{most:,} rows that the search looks at; use fewer folds, such as cv=5, or more "
                "memory."
            )
        return problem

    def _judge(self, found: Found, cut: str | None, interrupted: bool) -> None:
        """Raise if there is no score, and say so if a search was cut short."""
        index, score = found.best()
        if np.isnan(score) and interrupted:
            raise KeyboardInterrupt("the search was interrupted before it had any score")
        if np.isnan(score) and cut is None:
            raise ValueError(
                f"scoring={self.scoring!r} is not a number for any combination; R² needs two rows "
                "in each fold: use fewer folds, or scoring='neg_mean_squared_error'."
            )
        if cut is None and not interrupted:
            return
        params = found.grid.params
        # Before the final fit begins.
        warn_user(
            f"The search of MarginRegressorCV was cut short ({cut or 'interrupted'}): "
            f"{scored(found)} of {len(params)} combinations have been scored in all folds. "
            f"{params[index]} is the best that is known, and is fitted now; give it more time, or "
            "a smaller grid."
        )


def _deviation(targets: Matrix, weight: Vector) -> float:
    """Return the standard deviation of targets, over all outputs, safe from overflow."""
    if not len(weight):
        return 0.0
    scale = TargetScale.of(targets, weight, centred=True)
    scaled = (targets - scale.offset) / scale.unit
    return float(scale.unit * np.sqrt(np.average(scaled**2, axis=0, weights=weight).mean()))
