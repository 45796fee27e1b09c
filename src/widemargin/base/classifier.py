"""The base of the kernel classifiers: state the problem, call an engine, copy the machine out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import IndexArray, Matrix
from widemargin.base import parameters as check
from widemargin.base.estimator import (
    CallbackSupportMixin,
    Labelled,
    as_stored,
    dense,
    reporting,
    warn_user,
    with_callbacks,
)
from widemargin.base.lazy_answers import LazyAnswers
from widemargin.base.parameters import keyword, parameters, positional
from widemargin.device import (
    Array,
    Device,
    check_on_device,
    given_back,
    to_numpy,
)
from widemargin.expansion import Earlier, Expansion, Fitted
from widemargin.loop import Resources
from widemargin.places.partitions import is_collection
from widemargin.problem import (
    Problem,
    class_scores,
    differences,
    labels_at,
    one_vs_one,
    places_of_winners,
)
from widemargin.rows import Distinct, Rows


@parameters
class KernelClassifier(CallbackSupportMixin, LazyAnswers):
    """A kernel classifier: a subclass says which engine finds its machine."""

    C: float = positional(1.0, check.positive)
    gamma: Any = keyword("scale", check.gamma)
    max_time: float | None = keyword(None, check.none_or(check.positive))
    class_weight: Any = keyword(None)
    verbose: int = keyword(0, check.verbosity)

    @abstractmethod
    def _fit(self, problem: Problem, resources: Resources, earlier: Earlier | None) -> Fitted:
        """Return the machines of the problems, from an earlier solution if there is one."""

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelClassifier:
        """Fit the machine.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Training rows; a kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``. Memory-mapped files are read block by block.
            `MarginClassifier` takes Dask arrays and data frames too.
        y : array-like or Dask collection of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like or Dask collection of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted classifier.
        """
        if self.comes_in_parts(X):
            return self._fit_in_parts(X, y, sample_weight)
        with self._fitting(X) as resources:
            fitted = self._fit_rows(X, y, sample_weight, resources)
        self._warn(fitted)
        return self

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any, resources: Resources) -> Fitted:
        """Fit the machine to rows that are here."""
        data = self._labelled(X, y, sample_weight)
        data, distinct, gamma = self._seen(data, resources)
        problem = self._problem(
            data, distinct, C=self.C, gamma=gamma, class_weight=self.class_weight
        )
        earlier = self._earlier(problem, data.classes)
        with reporting(self, len(data.y), data.X, data.y) as report:
            fitted = self._fit(problem, replace(resources, report=report), earlier)
        self.classes_, self.gamma_ = data.classes, gamma
        self._keep(problem, fitted)
        return fitted

    def _seen(self, data: Labelled, resources: Resources) -> tuple[Labelled, Distinct, float]:
        """Return the rows, each different one once as the machine sees them, and the width."""
        distinct = self._distinct(data, resources)
        return data, distinct, self._resolved_gamma(self.gamma, distinct)

    def comes_in_parts(self, X: Any) -> bool:
        """Return whether rows are to be looked at in parts, where they lie."""
        return is_collection(X)

    def _fit_in_parts(self, X: Any, y: Any, sample_weight: Any) -> KernelClassifier:
        """Fit the machine to rows that come in parts, such as a Dask collection."""
        raise TypeError(
            f"X is a Dask collection, which {type(self).__name__} cannot be fitted to; use "
            "MarginClassifier, or pass X.compute() if the rows fit into memory."
        )

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the signed margin of each row, one column a class if there are more than two.

        Where the machine is one of pairs of classes, the score of a class is the number of pairs
        that it wins, and a part of a vote for how clearly. With
        ``decision_function_shape="ovo"`` there is one column for each pair, positive for its first
        class: the pairs' own values, or differences of the classes' values.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_pairs)
            Positive for the second class, or largest for the predicted one.
        """
        if is_collection(X):
            lazy: NDArray[np.float64] = self._lazily(type(self).decision_function, X)
            return lazy
        if self._device(X) is not None:
            there: NDArray[np.float64] = given_back(self._shaped(self._values_there(X)), X)
            return there
        answer: NDArray[np.float64] = given_back(self._shaped(self._values_at(X)), X)
        return answer

    def scores_of_classes(self, X: Any) -> NDArray[np.float64]:
        """Return `decision_function` with one column a class, whatever its shape is to be.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class, or largest for the predicted one.
        """
        values = to_numpy(self._values_there(X)) if self._device(X) else self._values_at(X)
        return values[:, 0] if len(self.classes_) == 2 else self._class_scores(values)

    def _shaped(self, values: Any) -> Any:
        """Return the columns that a user wants of the values of all problems."""
        if len(self.classes_) == 2:
            return values[:, 0]
        if getattr(self, "decision_function_shape", "ovr") == "ovr":
            return self._class_scores(values)
        return values if self._in_pairs() else differences(values, len(self.classes_))

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
        if is_collection(X):
            lazy: NDArray[Any] = self._lazily(type(self).predict, X)
            return lazy
        there = self._device(X) is not None
        values = self._values_there(X) if there else self._values_at(X)
        two = len(self.classes_) == 2
        place = places_of_winners(values[:, 0] if two else self._class_scores(values))
        if self.classes_.dtype.kind not in "biuf":
            # Only NumPy has arrays of text.
            text: NDArray[Any] = self.classes_[to_numpy(place)]
            return text
        labels: NDArray[Any] = given_back(labels_at(self.classes_, place), X)
        return labels

    def _values_at(self, X: Any) -> Matrix:
        """Return the decision values of a user's rows, a column for each problem."""
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        with self._computing() as resources:
            return self._decision(self._rows(X, resources))

    def _values_there(self, X: Any) -> Array:
        """Return the decision values of rows on a device, a column for each problem."""
        check_is_fitted(self)
        device = self._device(X)
        assert device is not None
        X = self._validated(X, reset=False)
        self._check_answers_on(device)
        with self._computing(device) as resources:
            return self._decision_there(self._rows(X, resources))

    def _decision_there(self, rows: Rows) -> Array:
        """Return the decision values of rows on a device, a column for each problem."""
        return self._expansion().values_there(rows)

    def _check_answers_on(self, device: Device) -> None:
        """Raise if the machine has no decision values on a device."""
        check_on_device(self._kernel(self.gamma_), device)

    def _decision(self, rows: Rows) -> Matrix:
        """Return the decision values of rows, a column for each problem."""
        return self._expansion().values(rows)

    def _expansion(self) -> Expansion:
        """Return the functions of all problems."""
        coef = np.ascontiguousarray(self.dual_coef_.T)
        vectors, kernel = dense(self.support_vectors_), self._kernel(self.gamma_)
        counts = getattr(self, "n_support_", None)
        if counts is None:
            return Expansion(kernel, vectors, coef, self.intercept_)
        # The vectors of a class have coefficients in its own pairs only.
        ends, table = np.cumsum(counts), one_vs_one(len(counts))
        groups = [
            (slice(end - count, end), np.flatnonzero(signs))
            for end, count, signs in zip(ends, counts, table, strict=True)
        ]
        return Expansion(kernel, vectors, coef, self.intercept_, groups=groups)

    def _in_pairs(self) -> bool:
        """Return whether the machine is one of pairs of classes."""
        return getattr(self, "multi_class_", "ovr") == "ovo"

    def _class_scores(self, values: Matrix) -> Matrix:
        """Return the scores of the classes from the values of all problems."""
        return class_scores(values, len(self.classes_)) if self._in_pairs() else values

    # The first and the last steps of `fit`.

    def _earlier(self, problem: Problem, classes: NDArray[Any]) -> Earlier | None:
        """Return what an earlier fit found, if it is wanted and had these classes and rows."""
        support: IndexArray | None = getattr(self, "support_", None)
        if not getattr(self, "warm_start", False) or support is None:
            return None
        if not np.array_equal(self.classes_, classes) or self.intercept_.ndim > 1:
            return None
        order = np.argsort(problem.number)
        place = np.searchsorted(problem.number, support, sorter=order)
        place = order[np.minimum(place, len(order) - 1)]
        if not np.array_equal(problem.number[place], support):
            return None
        if not np.array_equal(problem.rows.take(place), dense(self.support_vectors_)):
            return None
        return Earlier(place, np.ascontiguousarray(self.dual_coef_.T), self.intercept_)

    def _keep(self, problem: Problem, fitted: Fitted) -> None:
        """Set the attributes of the decision function."""
        self.support_: IndexArray | None = None
        self._drop("n_support_")
        vectors, coef = fitted.vectors, fitted.coef
        if fitted.index is not None:
            # In the order of the user's rows; the vectors of cells, cell after cell, and those of
            # pairs of classes, class after class.
            self.support_ = number = problem.number[fitted.index]
            code = problem.code[fitted.index]
            if fitted.intercept.ndim == 1:
                order = np.lexsort((number, code)) if fitted.of_pairs else np.argsort(number)
                self.support_, vectors, coef = number[order], vectors[order], coef[order]
            if fitted.of_pairs:
                self.n_support_ = np.bincount(code, minlength=len(problem.table))
        self.support_vectors_ = as_stored(vectors, problem.rows)
        self.dual_coef_ = np.ascontiguousarray(coef.T)
        self.intercept_ = fitted.intercept
        self.certificate_ = fitted.certificate
        self.n_iter_ = fitted.certificate.n_iter

    def _warn(self, fitted: Fitted) -> None:
        """Say that the machine could be better."""
        if not fitted.stop.converged:
            reached = fitted.certificate
            warn_user(
                f"{type(self).__name__} stopped before its rule was met ({reached.stopped}), "
                f"with a relative gap of {reached.gap:.2e}. The model is valid; for a better one "
                "raise the limit or lower C, or loosen tol to accept it.",
            )
