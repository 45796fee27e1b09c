"""The margin classifier with C and the kernel width chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils.validation import validate_data

from widemargin.base import parameters as check
from widemargin.base.estimator import (
    CallbackSupportMixin,
    Labelled,
    reporting,
    warn_user,
    with_callbacks,
)
from widemargin.base.found import Found
from widemargin.base.frame_columns import numbers_of_frame
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.base.placing import check_device, check_no_device, stand_in
from widemargin.base.progress import ProgressBar
from widemargin.base.row_maps import check_scale
from widemargin.base.seen_rows import has_gradient, kinds_of
from widemargin.base.views import Views
from widemargin.base.widths import Width, kernels_to_search
from widemargin.cells.engine_choice import ChoiceOptions, TrialSizes
from widemargin.device import Device
from widemargin.folds import Folds, splits_of
from widemargin.kernels import Kernel
from widemargin.loop import Deadline, Resources
from widemargin.places.collection import Collection
from widemargin.places.labels import gathered_labels
from widemargin.problem import Problem
from widemargin.rows import Distinct
from widemargin.svm.answers_by_best import AnswersByBest
from widemargin.svm.collection_search import CollectionSearch, is_gathered
from widemargin.svm.grid import Grid
from widemargin.svm.grid_search import GridSearch
from widemargin.svm.grid_walk import GridWalk
from widemargin.svm.margin_classifier import (
    CellParameters,
    MarginClassifier,
    check_cells,
    check_cuttable,
)
from widemargin.svm.metric_search import MetricSearch
from widemargin.svm.on_device import check_machine_there
from widemargin.svm.probabilities import calibrated
from widemargin.svm.scoring import HeldOut, Judge
from widemargin.svm.stages import StageSizes, search_in_stages

# Seconds that the final fit has in any case: there must be an answer.
_LEAST_TIME = 1e-3
# Rows of a cell where nothing else is said.
_CELL_ROWS = TrialSizes().cells[0]


@parameters
class MarginClassifierCV(CallbackSupportMixin, AnswersByBest):
    """`MarginClassifier` with C and gamma chosen by cross-validation, all folds in one fit.

    All values of C and all folds of one kernel width share their kernel values. On few rows these
    are one matrix, and every machine is exact, each C from the solution of the next. On many,
    the machines are columns of the same matrix products in the span of the same vectors. The best
    pair is then fitted to all rows.

    With default parameters the scale of the columns, the kernel and a metric are chosen as well; of
    more than 5,000 rows some choose those, then more and more, and all decide about the rest.

    Parameters
    ----------
    Cs : int or array-like of float, default=10
        Values of C; a number stands for that many from 0.01 to 1000, evenly on a log scale.
    gammas : int or array-like of {"scale", "auto", "mean_distance"} or float, default=5
        Kernel widths; a number stands for that many, from a sixteenth to sixteen times the usual
        one, which is one over the sum of the columns' variances, for the Laplacian kernel of their
        standard deviations; and for further ones where the last is the best, unless `scale` and
        `metrics` are None.
    kernels : "auto", array-like of kernels or None, default="auto"
        Kernels to choose from, such as ``("rbf", "laplacian", "exponential")``, each with all
        widths if it has any; None is `kernel` alone. So is "auto", unless `kernel` is "rbf" and
        `gammas` a number: then it is the Gaussian, the exponential and the Laplacian kernel,
        without the last for more than 100 features, where its values take long. (Of a Dask
        collection and on a device it is the Gaussian kernel and one other.)
    metrics : "auto", array-like of {None, "diagonal", "full"} or None, default="auto"
        Metrics to choose from, which are learned from the gradients of the best machine without
        one, for each fold from its own rows (`MarginMetric`); no metric is always one of the
        choices. None is none. "auto" is all, where `gammas` is a number and rows are dense and in
        memory.
    scale : {"auto", None}, default="auto"
        "auto" decides on held-out rows whether columns are put on one scale, as in
        `MarginClassifier`, where `gammas` is a number and rows are dense and in memory: widths that
        a user gives are for rows as they are. None takes them as they are.
    cv : int, splitter or iterable, default=5
        Folds. A number stands for that many of rows in random order, with all classes in each, for
        files are often sorted. Give a splitter for rows that follow each other in time, or that
        belong together; it gets the labels of a Dask collection, and zeros for its rows.
    scoring : str or callable, default=None
        As in `GridSearchCV`; None is the accuracy, weighted by `sample_weight`. Only the decision
        function and predictions are there to be scored.
    kernel : str, callable or Kernel, default="rbf"
        As in `MarginClassifier`, and so are the parameters that follow.
    degree : int, default=3
        Degree of "poly" and "normalized_poly", power of "cosine_power".
    coef0 : float, default=0.0
        Constant of "poly", "normalized_poly" and "sigmoid".
    kernel_params : dict, default=None
        Passed to a callable kernel.
    engine : {"auto", "exact", "span", "cells"}, default="auto"
        How the best pair is found, and fitted to all rows: "auto" is by exact machines where
        `MarginClassifier` would take those and the kernel matrix of all rows fits into half of
        `memory`, and otherwise in a span or in cells, whichever does better on held-out rows of a
        sample, each with its own best pair. The final machine is exact, too, where it does clearly
        better there than what the search can afford. A Dask collection is searched in
        memory if it has up to 10,000 rows, and in a span if there is `scoring` and it has more.
    cells : int, array of shape (n_cells, n_features) or "auto", default="auto"
        Size or centres of the cells; "auto" is 300 rows, or larger cells of many rows where those
        do better on held-out rows.
    overlap : float, default=0.3
        Rows from just outside a cell that train its machine too, as a share of its own.
    blend : float, default=0.2
        How far from an edge two cells' decision values are averaged; not in the search.
    per_cell : bool, default=False
        Whether each cell gets the pair that is best for its own rows, by `scoring` of those that
        are held out (the mean over folds, weighted by the rows). Where a score other than the
        accuracy has rows of one class only to judge by, the pair that is best in all cells counts.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Of the final fit; the search is done with the squared hinge.
    multi_class : {"auto", "ovr", "ovo"}, default="auto"
        One class against the rest, or pairs of classes, in the search by exact machines and in the
        final fit. A search in a span or in cells is one against the rest.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Columns of `decision_function` for more than two classes.
    vectors : {"core", "random", "kmeans", "leverage"}, array or strategy, default="core"
        Where the vectors of the span come from. They are chosen once for each gamma, from all
        rows.
    max_vectors : int or "auto", default="auto"
        Vectors at the most.
    tol : float, default=1e-3
        Relative duality gap of the final fit. Machines of the search are fitted to 0.01 (in a span
        to 0.001), or as much more finely as this is smaller than the default.
    max_iter : int, default=10000
        Steps at the most, in the search for each gamma and in the final fit.
    max_time : float, default=None
        Seconds at the most, for all of it. A search that is cut short says so, and of the pairs
        that it has scored the best is fitted; so it is after an interrupt, a second one of which
        ends the final fit.
    memory : int or str, default="auto"
        Budget for kernel values, scores and matrices, beside the data. Where the scores of all
        folds and all values of C do not fit, there are several rounds.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows.
    probability : bool, default=False
        Whether there is `predict_proba`, from the decision values that rows got when they were held
        out with the best pair: by Platt's sigmoid, or from 1,000 rows on by isotonic regression.
        The final machine is fitted once; the folds of the best pair are solved a second time. Needs
        rows in memory and the squared hinge.
    device : str, default=None
        Where machines are fitted and asked, as in `MarginClassifier`; on a device all are in a
        span.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    verbose : int, default=0
        1 shows a bar for the search and prints a line a step of the final fit, 2 also those of
        the search.

    Attributes
    ----------
    best_params_ : dict
        "C" and "gamma" of the best mean score, "kernel" where there are `kernels`, and "scale" and
        "metric" where those are searched for; of equals the smallest C, then the first gamma.
    best_score_ : float
        That score.
    best_index_ : int
        Its place in `cv_results_`.
    best_estimator_ : MarginClassifier
        The machine with the best pair, fitted to all rows.
    cv_results_ : dict of arrays
        As in `GridSearchCV`: "params", "param_C", "param_gamma" ("param_kernel"),
        "split<k>_test_score", "mean_test_score", "std_test_score", "rank_test_score", from the
        smallest C to the largest and for each in the order of `kernels` and `gammas` (NaN for pairs
        that a search did not get to). With `scale` or `metrics` there are "param_scale" and
        "param_metric", and only pairs that went on from the sample are listed. And
        "fit_time", the seconds that all values of C and all folds of the pair's gamma took
        together.
    n_splits_ : int
        Number of folds.
    preprocess_ : FrameColumns or None
        What turns a data frame with categories or missing values into rows of numbers: categories
        into columns, missing numbers into medians beside a column that tells; None for other rows.
    calibration_margins_, calibration_probabilities_ : ndarray of shape (n_points,)
        Points of the function by which `predict_proba` makes probabilities of margins; with
        ``probability=True``.
    classes_ : ndarray of shape (n_classes,)
        Labels.
    certificate_ : Certificate
        Of the final fit.
    n_iter_ : int
        Steps of the final fit.
    n_features_in_ : int
        Number of features.

    See Also
    --------
    MarginClassifier : The machine itself.

    Notes
    -----
    Rows that are held out do not enter the loss, but they may be among the vectors, and labels of
    all rows have a say in which rows those are with ``vectors="core"``. The scores of a pair are
    those of machines whose objective is estimated to be within 0.1 % of its optimum;
    `GridSearchCV` over `MarginClassifier` gives the same up to that, at a multiple of the cost.
    Words for gamma and balanced weights are worked out from all rows, not in each fold. With
    `scoring`, weights enter the loss only.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from widemargin import MarginClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> search = MarginClassifierCV(Cs=[0.1, 1, 10], gammas=[0.01, "scale"]).fit(scale(X), y)
    >>> sorted(search.best_params_), bool(search.best_score_ > 0.96)
    (['C', 'gamma'], True)
    >>> len(search.cv_results_["params"])
    6
    """

    Cs: Any = positional(10)
    gammas: Any = positional(5)
    kernels: Any = keyword("auto")
    metrics: Any = keyword("auto")
    scale: str | None = keyword("auto", check_scale)
    cv: Any = keyword(5)
    scoring: Any = keyword(None)
    engine: str = keyword("auto", check.choice("auto", "exact", "span", "cells"))
    cells: Any = keyword("auto", check_cells)
    overlap: float = keyword(0.3, check.not_negative)
    blend: float = keyword(0.2, check.not_negative)
    per_cell: bool = keyword(False)
    loss: str = keyword("squared_hinge", check.choice("squared_hinge", "hinge"))
    multi_class: str = keyword("auto", check.choice("auto", "ovr", "ovo"))
    decision_function_shape: str = keyword("ovr", check.choice("ovr", "ovo"))
    vectors: Any = keyword("core", check.landmarks)
    max_vectors: int | str = keyword("auto", check.word_or(("auto",), check.count))
    tol: float = keyword(1e-3, check.not_negative)
    max_iter: int = keyword(10_000, check.count)
    max_time: float | None = keyword(None, check.none_or(check.positive))
    class_weight: Any = keyword(None)
    probability: bool = keyword(False)
    device: str | None = keyword(None, check_device)
    verbose: int = keyword(0, check.verbosity)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MarginClassifierCV:
        """Choose C and gamma, and fit the machine.

        Parameters
        ----------
        X : array-like, sparse matrix, frame or Dask collection of shape (n_samples, n_features)
            Training rows; a kernel matrix if ``kernel="precomputed"``. A data frame of pandas or
            Polars may have columns of categories and missing values.
        y : array-like or Dask collection of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like or Dask collection of shape (n_samples,), default=None
            Weights of the rows, in the loss and in the score.

        Returns
        -------
        self
            The fitted classifier.
        """
        named = X
        self.preprocess_, X = numbers_of_frame(X, sample_weight)
        with self._fitting(X) as resources:
            collection: Collection | None = None
            if self._machine().comes_in_parts(X):
                check_no_device(self.device)
                collection = Collection.of(X, y, sample_weight, self.memory, resources)
                special = {"scored": self.scoring is not None, "precomputed": self._precomputed()}
                if is_gathered(collection.every, self._machine(), resources.memory, **special):
                    (X, y, sample_weight), collection = collection.in_memory(), None
            if collection is None:
                data = self._labelled(X, y, sample_weight)
                X, y = data.X, data.y
                best, found = self._searched(data, resources)
            else:
                best, found = self._searched_in_places(collection, resources)
        # Whatever the search has kept of the rows is gone before the final fit begins.
        collection = None
        best.max_time = _seconds(resources.deadline)
        best.fit(X, y, sample_weight)
        self._keep(found)
        self.best_estimator_: MarginClassifier = best
        self.classes_ = best.classes_
        self.certificate_ = best.certificate_
        self.n_iter_ = best.n_iter_
        if self.preprocess_ is not None:
            # Users know the columns of their frame.
            validate_data(self, named, skip_check_array=True)
        return self

    # The steps of `fit`.

    def _check_on_device(self, device: Device) -> None:
        check_machine_there(self, device)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        grid = self._grid()
        for width in grid.widths:
            check_cuttable(self.engine, width.kernel)
        if self.per_cell and len({id(width.kernel) for width in grid.widths}) > 1:
            raise ValueError(
                "per_cell=True chooses C and gamma for each cell, with one kernel for all; give "
                "one kernel, or per_cell=False."
            )
        if self.scoring is not None and not isinstance(self.scoring, str | Callable):
            raise TypeError(
                f"scoring={self.scoring!r} must be None, a name or a function: one score chooses."
            )
        check_scoring(HeldOut(), scoring=self.scoring)
        kinds_of(self.metrics)
        if self.probability and self.loss == "hinge":
            raise ValueError(
                "probability=True is there for loss='squared_hinge', which the search is done "
                "with; use CalibratedClassifierCV for loss='hinge'."
            )

    def _grid(self, *, wide: bool = False) -> Grid:
        return Grid.of(self.Cs, self.gammas, self._kernels(wide), self.kernel)

    def _kernels(self, wide: bool) -> Any:
        """Return the kernels to choose from, more if `wide`, or None for the one that is given."""
        auto = isinstance(self.kernels, str) and self.kernels == "auto"
        if self.per_cell and auto:
            return None
        n_features = getattr(self, "n_features_in_", 1)
        found = kernels_to_search(self.kernels, self.kernel, self.gammas, n_features)
        return (
            found
            if found is None or not (auto and wide)
            else dict.fromkeys((*found, "exponential"))
        )

    def _precomputed(self) -> bool:
        named = self.kernels if isinstance(self.kernels, (list, tuple)) else [self.kernel]
        return any(isinstance(each, str) and each == "precomputed" for each in named)

    def _searched(self, data: Labelled, resources: Resources) -> tuple[MarginClassifier, Found]:
        """Score the grid on rows in memory."""
        self._check_cv()
        splits = splits_of(self.cv, stand_in(data.X), data.y, classifier=True)
        folds = Folds(splits, data.weight)
        distinct = self._distinct(data, resources, apart=folds.kind)
        views = Views(distinct)
        grid = self._grid_of(views)
        problem = self._problem(
            data, distinct, C=grid.Cs[0], gamma=1.0, class_weight=self.class_weight
        )

        def gamma(width: Width) -> float:
            if width.gamma is None:
                return 1.0
            return self._resolved_gamma(width.gamma, views.of(width.scale))

        machine = self._machine()

        def stated(width: Width) -> tuple[Problem, Problem]:
            rows = views.of(width.scale).rows
            own = replace(problem, rows=rows, kernel=self._kernel(gamma(width), width.kernel))
            pairs = machine.stated(own)
            return pairs, pairs if self.multi_class == "ovo" else own

        judge = Judge(self.scoring, data.code, data.weight, data.classes)
        per_cell = self.per_cell and self.engine == "cells"
        with self._reporting(len(data.y), resources, data.X, data.y) as options:
            if distinct.rows.device is not None:
                options = replace(options, engine="span")
            shown = (grid, folds.n, options, self._bar(grid))
            told = (*shown, folds, judge, stated, gamma, per_cell)
            if not self._in_stages(grid, distinct):
                return self._walked(GridSearch(*told))
            staged = MetricSearch(*told, kinds=self._kinds(distinct))
            return self._walked(staged, partial(search_in_stages, staged, self._sizes()))

    def _grid_of(self, views: Views) -> Grid:
        """Return the grid of rows in memory, with widths as numbers."""
        grid = self._grid(wide=views.mappable)
        scales: tuple[str | None, ...] = (None,)
        if self._automatic(self.scale) and views.mappable:
            scales = (None, "auto")
        widths: list[Width] = []
        for scale in scales:
            variance = views.variance(scale)
            widths.extend(replace(each.on(variance), scale=scale) for each in grid.widths)
        searched = (("scale", len(scales) > 1), ("metric", bool(self._kinds(views.distinct))))
        of_rows = tuple(name for name, there in searched if there)
        return replace(grid, widths=tuple(widths), of_rows=of_rows)

    def _in_stages(self, grid: Grid, distinct: Distinct) -> bool:
        """Return whether not all of a grid is scored on all rows: where it is our own."""
        several = grid.of_kernels and distinct.rows.device is None
        return bool(grid.of_rows) or (several and self._automatic(self.kernels))

    def _sizes(self) -> StageSizes:
        """Return the sizes of the stages of a search."""
        return StageSizes()

    def _kinds(self, distinct: Distinct) -> tuple[str, ...]:
        """Return the kinds of metrics to try."""
        widths = self._grid().widths
        learned = Views(distinct).mappable and not self.per_cell
        learned = learned and all(has_gradient(each.kernel) for each in widths)
        if isinstance(self.metrics, str) and not self._automatic(self.metrics):
            return ()
        return kinds_of(self.metrics) if learned else ()

    def _automatic(self, value: Any) -> bool:
        """Return whether "auto" is to decide: a user who gives widths has rows in mind."""
        ours = isinstance(self.gammas, Integral) and not self.per_cell
        ours = ours and isinstance(self.vectors, str)
        named = self._grid().of_kernels or (isinstance(self.kernel, str) and self.kernel == "rbf")
        return isinstance(value, str) and ours and named and not np.ndim(self.cells)

    def _searched_in_places(
        self, collection: Collection, resources: Resources
    ) -> tuple[MarginClassifier, Found]:
        """Score the grid on rows that stay where they are."""
        self._check_cv()
        columns = 0 if self.scoring is None else len(collection.classes)
        labels = gathered_labels(collection.source, collection.n, resources.memory, columns)
        folds = labels.folds(self.cv)
        # Not before all rows were found to be good: nothing shall be half fitted.
        self._note_columns(collection.given[0], reset=True)
        grid = self._grid().on(collection.every.variance)

        def kernel(width: Width) -> Kernel:
            gamma = 1.0 if width.gamma is None else collection.gamma(width.gamma)
            return self._kernel(gamma, width.kernel)

        per_cell = self.per_cell and self.engine == "cells"
        given = (grid, self._machine(), kernel, self.scoring, per_cell)
        search = CollectionSearch(collection, labels, folds, *given)
        with self._reporting(collection.n, resources) as options:
            return self._walked(search.walk(options, self._bar(grid)))

    def _check_cv(self) -> None:
        if isinstance(self.cv, Integral):
            check.check_count("cv", self.cv, least=2)

    def _bar(self, grid: Grid) -> ProgressBar:
        return ProgressBar(type(self).__name__, len(grid.widths), shown=self.verbose > 0)

    @contextmanager
    def _reporting(self, n: int, resources: Resources, *data: Any) -> Iterator[ChoiceOptions]:
        """Yield how machines are fitted, each step of which is told."""
        with reporting(self, n, *data, verbose=self.verbose > 1) as report:
            yield self._options(replace(resources, report=report))

    def _walked(
        self, search: GridWalk, run: Callable[[], None] | None = None
    ) -> tuple[MarginClassifier, Found]:
        """Go through the grid; return the best machine, not fitted yet, and all scores."""
        (search.run if run is None else run)()
        search.bar.close()
        index = search.best()
        if search.cut is not None:
            # Before the final fit begins.
            warn_user(search.said_of_cut(index))
        if self.probability:
            self._calibrate(search, index)
        return self._best_machine(search, index), search.found

    def _calibrate(self, search: GridWalk, index: int) -> None:
        """Find what makes probabilities of decision values."""
        if not isinstance(search, GridSearch):
            raise TypeError(
                "probability=True needs rows in memory, but X is a Dask collection; pass "
                "X.compute() if the rows fit, or use CalibratedClassifierCV."
            )
        judge = search.judge
        found = calibrated(search.held_values(index), judge.code, judge.weight)
        self.calibration_margins_ = found.margin
        self.calibration_probabilities_ = found.probability

    def _options(self, resources: Resources) -> ChoiceOptions:
        """Return what a search is to know of the parameters."""
        machine = self._machine()
        machine.n_features_in_ = self.n_features_in_
        chosen = machine.options(resources)
        size = _CELL_ROWS if isinstance(self.cells, str) else self.cells
        return replace(chosen, cells=size, loss="squared_hinge")

    def _machine(self, **found: Any) -> MarginClassifier:
        names = MarginClassifier().get_params(deep=False)
        shared = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return MarginClassifier(**shared | {"scale": None} | found)

    def _best_machine(self, search: GridWalk, index: int) -> MarginClassifier:
        """Return the machine with the best parameters, in the engine that they were found in."""
        params = search.grid.params[index]
        if params.get("metric") is not None:
            # The one of all rows, learned as those of the folds were.
            params = params | {"metric": search.metric_of(index)}
        best = self._machine(**params)
        engine = search.engines[index % len(search.grid.widths)]
        if self.engine == "auto":
            best.engine = search.promoted or engine
        if search.choices is not None:
            everywhere = search.found.scores.mean(axis=2)
            chosen = search.choices.best(list(search.grid.Cs), everywhere)
            best.cells = CellParameters(search.choices.centers, *chosen)
        elif engine == "cells" and isinstance(self.cells, str):
            # The pair is right for this size.
            best.cells = search.options.cells
        return best

    def _keep(self, found: Found) -> None:
        self.cv_results_ = found.results()
        self.best_index_, self.best_score_ = found.best()
        self.best_params_ = self.cv_results_["params"][self.best_index_]
        self.n_splits_ = found.scores.shape[2]


def _seconds(deadline: Deadline) -> float | None:
    """Return what is left, as the `max_time` of a machine."""
    left = deadline.left()
    return None if left is None else max(_LEAST_TIME, left)
