"""The margin classifier with C and the kernel width chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.validation import check_is_fitted

from widemargin.base import parameters as check
from widemargin.base.estimator import (
    CallbackSupportMixin,
    KernelEstimator,
    Labelled,
    reporting,
    warn_user,
    with_callbacks,
)
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.cells import CellOptions
from widemargin.cells.held_out import CellChoices
from widemargin.cells.uncut import UncutOptions, exact_is_cheap
from widemargin.loop import Deadline, Resources, Stop
from widemargin.problem import Folds, Problem, check_prices
from widemargin.span import SpanOptions, as_strategy
from widemargin.svm.engine_choice import TrialSizes
from widemargin.svm.exact_search import matrix_fits, scores_exact
from widemargin.svm.margin_classifier import (
    CellParameters,
    MarginClassifier,
    check_cells,
    check_cuttable,
)
from widemargin.svm.scoring import GridScores, HeldOut, Judge
from widemargin.svm.search import scores_in_cells, scores_in_span

# Seconds that the final fit has in any case: there must be an answer.
_LEAST_TIME = 1e-3
# How near its optimum an objective in a span must be for its machine to be judged, at the least.
_SPAN_TOL = 1e-3
# The same for exact machines and in cells, as a gap that is proved.
_EXACT_TOL = 1e-2
# Rows of a cell where nothing else is said.
_CELL_ROWS = TrialSizes().cells[0]


@parameters
class MarginClassifierCV(CallbackSupportMixin, ClassifierMixin, KernelEstimator):
    """`MarginClassifier` with C and gamma chosen by cross-validation, all folds in one fit.

    All values of C and all folds of one kernel width share their kernel values. On few rows these
    are one matrix, and every machine is exact, each C from the solution of the one before. On many,
    the machines are columns of the same matrix products in the span of the same vectors. The best
    pair is then fitted to all rows.

    Parameters
    ----------
    Cs : int or array-like of float, default=10
        Values of C; a number stands for that many from 0.01 to 1000, evenly on a log scale.
    gammas : array-like of {"scale", "auto", "mean_distance"} or float, default=("scale",)
        Kernel widths.
    cv : int, splitter or iterable, default=5
        Folds, as in `GridSearchCV`.
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
        How the best pair is fitted to all rows, and found: in cells for "cells", by exact machines
        where `MarginClassifier` would take those and the kernel matrix of all rows fits into half
        of `memory`, and in a span otherwise.
    cells : int, array of shape (n_cells, n_features) or "auto", default="auto"
        With ``engine="cells"``: the size or the centres of the cells; "auto" is 300 rows.
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
    memory : int or str, default="1GB"
        Budget for kernel values, scores and matrices, beside the data. Where the scores of all
        folds and all values of C do not fit, there are several rounds.
    class_weight : dict or "balanced", default=None
        Factors on the weights of the classes' rows.
    n_jobs : int, default=None
        Threads; None uses as many as BLAS would. The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of the samples.
    verbose : int, default=0
        1 prints a line a step.

    Attributes
    ----------
    best_params_ : dict
        "C" and "gamma" of the best mean score; of equals the smallest C, then the first gamma.
    best_score_ : float
        That score.
    best_index_ : int
        Its place in `cv_results_`.
    best_estimator_ : MarginClassifier
        The machine with the best pair, fitted to all rows.
    cv_results_ : dict of arrays
        As in `GridSearchCV`: "params", "param_C", "param_gamma", "split<k>_test_score",
        "mean_test_score", "std_test_score", "rank_test_score", from the smallest C to the largest
        and for each in the order of `gammas` (NaN for pairs that a search did not get to); and
        "fit_time", the seconds that all values of C and all folds of the pair's gamma took
        together.
    n_splits_ : int
        Number of folds.
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
    gammas: Any = positional(("scale",))
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
    verbose: int = keyword(0, check.verbosity)

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MarginClassifierCV:
        """Choose C and gamma, and fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; a kernel matrix if ``kernel="precomputed"``.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, in the loss and in the score.

        Returns
        -------
        self
            The fitted classifier.
        """
        with self._fitting() as resources:
            Cs, gammas = self._grid()
            data = self._labelled(X, y, sample_weight)
            if isinstance(self.cv, Integral):
                check.check_count("cv", self.cv, least=2)
            splits = check_cv(self.cv, data.y, classifier=True).split(data.X, data.y)
            folds = Folds(list(splits), data.weight)
            with reporting(self, len(data.y), data.X, data.y) as report:
                resources = replace(resources, report=report)
                best = self._searched(data, folds, Cs, gammas, resources)
        best.max_time = _seconds(resources.deadline)
        best.fit(data.X, data.y, sample_weight)
        self.best_estimator_: MarginClassifier = best
        self.classes_ = best.classes_
        self.certificate_ = best.certificate_
        self.n_iter_ = best.n_iter_
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decision function of the best machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class, or largest for the predicted one.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return self.best_estimator_.decision_function(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row: the sign, or the argmax, of `decision_function`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels.
        """
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return self.best_estimator_.predict(X)

    # The steps of `fit`.

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_cuttable(self.engine, self.kernel)
        self._grid()
        if self.scoring is not None and not isinstance(self.scoring, str | Callable):
            raise TypeError(
                f"scoring={self.scoring!r} must be None, a name or a function: one score chooses."
            )
        check_scoring(HeldOut(), scoring=self.scoring)

    def _grid(self) -> tuple[list[float], list[Any]]:
        """Return the values of C in ascending order, and the widths."""
        if isinstance(self.Cs, Integral) and not isinstance(self.Cs, bool):
            check.count("Cs", self.Cs)
            Cs = np.logspace(-2, 3, int(self.Cs)).tolist()
        else:
            Cs = sorted(check.positive("Cs", value) for value in _listed("Cs", self.Cs))
        gammas = _listed("gammas", self.gammas)
        for gamma in gammas:
            check.gamma("gamma", gamma)
        return Cs, gammas

    def _searched(
        self,
        data: Labelled,
        folds: Folds,
        Cs: list[float],
        gammas: list[Any],
        resources: Resources,
    ) -> MarginClassifier:
        """Score the grid, and return the best machine, not fitted yet."""
        judge = Judge(self.scoring, data.y, data.weight, data.classes)
        scores = np.full((len(gammas), len(Cs), folds.n), np.nan)
        finished = np.zeros(len(gammas), dtype=bool)
        seconds = np.zeros(len(gammas))
        in_cells, cells = self.engine == "cells", self.cells
        choices = CellChoices(len(Cs)) if in_cells and self.per_cell else None
        cut: Stop | None = None
        for g, gamma in enumerate(gammas):
            started = perf_counter()
            # The final fit has a share too.
            until = resources.deadline.part(1.0 / (len(gammas) - g + 1))
            part = replace(resources, deadline=until)
            found = self._scored(data, folds, Cs, gamma, judge, part, cells, choices)
            scores[g], finished[g] = found.scores, found.cut is None
            seconds[g] = perf_counter() - started
            # All widths have the same cells.
            cells = cells if found.centers is None else found.centers
            cut = cut or found.cut
            if found.cut is not None and found.cut.kind.by_user:
                break
        interrupted = cut is not None and cut.kind.by_user
        self._keep_results(Cs, gammas, scores, seconds, finished, interrupted)
        if cut is not None:
            self._warn(cut, int(finished.sum()) * len(Cs), len(Cs) * len(gammas))
        best = self._machine(**self.best_params_)
        if choices is not None:
            chosen = choices.best(Cs, scores.mean(axis=2))
            best.cells = CellParameters(choices.centers, *chosen)
        elif in_cells and isinstance(self.cells, str):
            # The pair is right for this size.
            best.cells = _CELL_ROWS
        return best

    def _scored(
        self,
        data: Labelled,
        folds: Folds,
        Cs: list[float],
        gamma: Any,
        judge: Judge,
        resources: Resources,
        cells: Any,
        choices: CellChoices | None,
    ) -> GridScores:
        """Return the scores of one kernel width."""
        problem, width = self._problem(
            data,
            resources.threads,
            C=Cs[0],
            gamma=gamma,
            class_weight=self.class_weight,
            apart=folds.kind,
        )
        check_prices(Cs[-1], problem.weight)
        limit = None if isinstance(self.max_vectors, str) else int(self.max_vectors)
        shared: dict[str, Any] = {**vars(resources), "max_iter": self.max_iter}
        stated = self._machine(Cs[0], gamma).stated(problem)
        if self.engine != "cells":
            options = UncutOptions(
                **shared, tol=min(_EXACT_TOL, 10.0 * self.tol), max_vectors=limit
            )
            if self._exactly(stated, options):
                return scores_exact(stated, np.array(Cs), folds, judge, options)
        if self.engine == "cells":
            size = _CELL_ROWS if isinstance(cells, str) else cells
            options = CellOptions(
                **shared,
                tol=min(_EXACT_TOL, 10.0 * self.tol),
                max_vectors=limit,
                cells=size,
                overlap=self.overlap,
            )
            return scores_in_cells(stated, np.array(Cs), folds, judge, options, choices, width)
        landmarks = as_strategy(self.vectors, self.n_features_in_)
        in_span = SpanOptions(
            **shared, tol=min(_SPAN_TOL, self.tol), max_vectors=limit, landmarks=landmarks
        )
        in_pairs = self.multi_class == "ovo"
        return scores_in_span(stated if in_pairs else problem, np.array(Cs), folds, judge, in_span)

    def _exactly(self, problem: Problem, options: UncutOptions) -> bool:
        """Return whether the search is one by exact machines."""
        if self.engine == "span" or not isinstance(self.vectors, str):
            return False
        if options.max_vectors is not None and options.max_vectors < problem.n:
            return False
        chosen = self.engine == "exact" or exact_is_cheap(problem, options)
        return chosen and matrix_fits(problem, options.memory)

    def _machine(self, C: float, gamma: Any) -> MarginClassifier:
        names = MarginClassifier().get_params(deep=False)
        shared = {name: getattr(self, name) for name in names if hasattr(self, name)}
        return MarginClassifier(**{**shared, "C": C, "gamma": gamma})

    def _keep_results(
        self,
        Cs: list[float],
        gammas: list[Any],
        scores: NDArray[np.float64],
        seconds: NDArray[np.float64],
        finished: NDArray[np.bool_],
        interrupted: bool,
    ) -> None:
        params = [{"C": C, "gamma": gamma} for C in Cs for gamma in gammas]
        flat = scores.swapaxes(0, 1).reshape(len(params), -1)
        mean = flat.mean(axis=1)
        results: dict[str, Any] = {
            "params": params,
            "param_C": np.ma.array([each["C"] for each in params]),
            "param_gamma": np.ma.array([each["gamma"] for each in params], dtype=object),
        }
        results |= {f"split{k}_test_score": flat[:, k] for k in range(flat.shape[1])}
        results["mean_test_score"] = mean
        results["std_test_score"] = flat.std(axis=1)
        ranked = np.where(np.isnan(mean), -np.inf, mean)
        results["rank_test_score"] = rankdata(-ranked, method="min").astype(np.int32)
        results["fit_time"] = np.tile(seconds, len(Cs))
        self.cv_results_ = results
        # Machines that are not finished are judged only where there are no others.
        judged = np.where(np.tile(finished, len(Cs)) | ~finished.any(), ranked, -np.inf)
        if not np.isfinite(judged).any():
            # By the folds that there was time for.
            known = np.isfinite(flat)
            total = np.where(known, flat, 0.0).sum(axis=1)
            judged = np.full(len(flat), -np.inf)
            np.divide(total, known.sum(axis=1), out=judged, where=known.any(axis=1))
        if interrupted and not np.isfinite(judged).any():
            raise KeyboardInterrupt("the search was interrupted before it had any score")
        self.best_index_ = int(judged.argmax())
        best = judged[self.best_index_]
        self.best_score_ = float(best if np.isfinite(best) else np.nan)
        self.best_params_ = params[self.best_index_]
        self.n_splits_ = flat.shape[1]

    def _warn(self, cut: Stop, n_finished: int, n_pairs: int) -> None:
        """Say that the search was cut short, before the final fit begins."""
        warn_user(
            f"The search of MarginClassifierCV was cut short ({cut.reason}): {n_finished} of "
            f"{n_pairs} pairs of C and gamma have been scored with machines that are finished. "
            f"{self.best_params_} is the best that is known, and is fitted now; give it more time, "
            "or a smaller grid.",
        )


def _seconds(deadline: Deadline) -> float | None:
    """Return what is left, as the `max_time` of a machine."""
    left = deadline.left()
    return None if left is None else max(_LEAST_TIME, left)


def _listed(name: str, values: Any) -> list[Any]:
    """Return the values of a list parameter, or say what is wrong with it."""
    if (
        isinstance(values, (str, bytes))
        or not hasattr(values, "__iter__")
        or getattr(values, "ndim", 1) == 0
    ):
        raise TypeError(f"{name}={values!r} must be a list of values, such as {name}=[...].")
    listed = list(values)
    if not listed:
        raise ValueError(f"{name} is empty; give at least one value.")
    return listed
