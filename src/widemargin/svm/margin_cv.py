"""The margin classifier with C and the kernel width chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import ClassifierMixin
from sklearn.metrics import check_scoring
from sklearn.model_selection import check_cv
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from widemargin.deadline import Deadline
from widemargin.estimator import KernelEstimator
from widemargin.labelled import encoded
from widemargin.parameters import check_count, check_gamma, check_positive
from widemargin.progress import CallbackSupportMixin, reporting, with_callbacks
from widemargin.svm.engines import SIZES
from widemargin.svm.folds import Folds, HeldOut, Judge
from widemargin.svm.folds_in_cells import CellChoices
from widemargin.svm.grid import scores_in_cells, scores_in_span
from widemargin.svm.margin import MarginClassifier

# Seconds that a part of the search has in any case: there must be an answer.
_LEAST_TIME = 1e-3


class MarginClassifierCV(CallbackSupportMixin, ClassifierMixin, KernelEstimator):
    """`MarginClassifier` with C and gamma chosen by cross-validation, all folds in one fit.

    All values of C and all folds of one kernel width are fitted together, as columns of the same
    matrix products in the span of the same vectors: each kernel value is computed once for all of
    them. The best pair is then fitted to all rows.

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
        How the best pair is fitted to all rows. The search is done in cells for "cells", and in a
        span otherwise.
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
    vectors : {"core", "random", "kmeans", "leverage"}, array or strategy, default="core"
        Where the vectors of the span come from. They are chosen once for each gamma, from all
        rows.
    max_vectors : int or "auto", default="auto"
        Vectors at the most.
    tol : float, default=1e-3
        Relative duality gap of the final fit.
    max_iter : int, default=10000
        Steps at the most, in the search for each gamma and in the final fit.
    max_time : float, default=None
        Seconds at the most, for all of it.
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
        and for each in the order of `gammas`; and "fit_time", the seconds that all values of C and
        all folds of the pair's gamma took together.
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

    def __init__(
        self,
        Cs: Any = 10,
        gammas: Any = ("scale",),
        *,
        cv: Any = 5,
        scoring: Any = None,
        kernel: Any = "rbf",
        degree: int = 3,
        coef0: float = 0.0,
        kernel_params: dict[str, Any] | None = None,
        engine: str = "auto",
        cells: Any = "auto",
        overlap: float = 0.3,
        blend: float = 0.2,
        per_cell: bool = False,
        vectors: Any = "core",
        max_vectors: int | str = "auto",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        max_time: float | None = None,
        memory: int | str = "1GB",
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.kernel_params = kernel_params
        self.engine = engine
        self.cells = cells
        self.overlap = overlap
        self.blend = blend
        self.per_cell = per_cell
        self.vectors = vectors
        self.max_vectors = max_vectors
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.memory = memory
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

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
        deadline = Deadline.after(self.max_time)
        Cs, gammas = self._grid()
        self._machine(Cs[0], gammas[0])._check_parameters()
        X, y = self._validated(X, y, ensure_min_samples=2)
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        classes = self._encode_check(y, weight)
        self._check_scoring()
        if isinstance(self.cv, Integral):
            check_count("cv", self.cv, least=2)
        folds = Folds(list(check_cv(self.cv, y, classifier=True).split(X, y)), weight)
        judge = Judge(self.scoring, y, weight, classes)
        scores = np.empty((len(gammas), len(Cs), folds.n))
        seconds = np.empty(len(gammas))
        in_cells, cells = self.engine == "cells", self.cells
        choices = CellChoices(len(Cs)) if in_cells and self.per_cell else None
        with reporting(self, X.shape[0], self.verbose, X, y) as report:
            for g, gamma in enumerate(gammas):
                started = perf_counter()
                machine = self._machine(Cs[0], gamma)
                # The final fit has a share too.
                machine.max_time = _seconds(deadline.part(1.0 / (len(gammas) - g + 1)))
                if in_cells:
                    machine.cells = cells
                    # All widths have the same cells.
                    scores[g], cells = scores_in_cells(machine, Cs, folds, X, judge, choices)
                else:
                    scores[g] = scores_in_span(machine, Cs, folds, X, judge, report)
                seconds[g] = perf_counter() - started
        self._keep_results(Cs, gammas, scores, seconds)
        best = self._machine(**self.best_params_)
        best.max_time = _seconds(deadline)
        if choices is not None:
            best.cells = choices.centers
            best._cell_params = choices.best(Cs, scores.mean(axis=2))
        elif in_cells and isinstance(self.cells, str):
            # The pair is right for this size.
            best.cells = SIZES[0]
        best.fit(X, y, sample_weight)
        # They belong to these rows; another fit of the machine would have other cells.
        best._cell_params = None
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
        X = self._checked(X)
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
        X = self._checked(X)
        return self.best_estimator_.predict(X)

    # The steps of `fit`.

    def _encode_check(self, y: NDArray[Any], weight: NDArray[np.float64]) -> NDArray[Any]:
        """Return the classes, or raise what a fit would raise about labels, before any work."""
        check_classification_targets(y)
        classes, _ = encoded(y, weight)
        return classes

    def _check_scoring(self) -> None:
        """Raise what is wrong with the score, before any work is done."""
        if self.scoring is not None and not isinstance(self.scoring, str | Callable):
            raise TypeError(
                f"scoring={self.scoring!r} must be None, a name or a function: one score chooses."
            )
        check_scoring(HeldOut(), scoring=self.scoring)

    def _grid(self) -> tuple[list[float], list[Any]]:
        """Return the values of C in ascending order, and the widths."""
        if isinstance(self.Cs, Integral) and not isinstance(self.Cs, bool):
            check_count("Cs", self.Cs)
            Cs = np.logspace(-2, 3, int(self.Cs)).tolist()
        else:
            Cs = sorted(check_positive("Cs", value) for value in _listed("Cs", self.Cs))
        gammas = _listed("gammas", self.gammas)
        for gamma in gammas:
            check_gamma(gamma)
        return Cs, gammas

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
        self.best_index_ = int(ranked.argmax())
        self.best_score_ = float(mean[self.best_index_])
        self.best_params_ = params[self.best_index_]
        self.n_splits_ = flat.shape[1]


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
