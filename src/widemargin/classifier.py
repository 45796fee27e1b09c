"""What the kernel classifiers share: the fit, the decision function, warm starts."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from widemargin.balls import Points
from widemargin.labelled import LabelledEstimator
from widemargin.loop import Result
from widemargin.machines import Machines
from widemargin.progress import CallbackSupportMixin, Report, reporting, with_callbacks
from widemargin.rows.base import BlockRows, IndexArray
from widemargin.threads import n_threads, single_threaded_blas


class KernelClassifier(CallbackSupportMixin, ClassifierMixin, LabelledEstimator, ABC):
    """Base of the kernel classifiers: a subclass says how the machine is found."""

    warm_start: bool
    random_state: Any

    @abstractmethod
    def _fit_points(self, points: Points, threads: int, report: Report) -> Result[Any]:
        """Find the machine, copy it out, and return how that went."""

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> KernelClassifier:
        """Fit the machine.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Training rows; a kernel matrix of shape (n_samples, n_samples) if
            ``kernel="precomputed"``. Memory-mapped files are read block by block.
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights; a row of weight k is the same as k copies of it.

        Returns
        -------
        self
            The fitted classifier.
        """
        self._check_parameters()
        X, y = self._validated(X, y, ensure_min_samples=2)
        # What an earlier fit found, before this one overwrites it.
        self._earlier_classes: Any = getattr(self, "classes_", None) if self.warm_start else None
        threads = n_threads(self.n_jobs)
        try:
            with single_threaded_blas():
                points = self._points(X, y, sample_weight, threads)
                with reporting(self, X.shape[0], self.verbose, X, y) as report:
                    result = self._fit_points(points, threads, report)
        finally:
            del self._earlier_classes
        self._keep_certificate(result)
        return self

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the signed margin of each row, one column a class if there are more than two.

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
        rows = self._rows(self._checked(X))
        with single_threaded_blas():
            values = self._decision(rows)
        return values[:, 0] if len(self.classes_) == 2 else values

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
        scores = self.decision_function(X)
        return winners(self.classes_, scores)

    def _decision(self, rows: BlockRows) -> NDArray[np.float64]:
        """Return the decision values of rows, a column for each problem."""
        machines = Machines(
            self._kernel(self.gamma_),
            self._dense_vectors(),
            np.ascontiguousarray(self.dual_coef_.T),
            self.intercept_,
            np.float64,
            rows.vectors_at_a_time,
        )
        return np.concatenate(list(rows.scan(machines, width=machines.width)))

    # The steps of `fit`.

    def _earlier_rows(self, points: Points) -> IndexArray | None:
        """Return where the vectors of an earlier fit are, if it had these classes and rows."""
        support: IndexArray | None = getattr(self, "support_", None)
        if support is None or not np.array_equal(self._earlier_classes, self.classes_):
            return None
        order = np.argsort(points.number)
        place = np.searchsorted(points.number, support, sorter=order)
        place = order[np.minimum(place, len(order) - 1)]
        if not np.array_equal(points.number[place], support):
            return None
        if not np.array_equal(points.rows.take(place), self._dense_vectors()):
            return None
        return place

    def _keep_machine(
        self,
        points: Points,
        vectors: NDArray[Any],
        index: IndexArray | None,
        coef: NDArray[np.float64],
        intercept: NDArray[np.float64],
    ) -> None:
        """Set the attributes of the decision function, vectors in the order of their rows."""
        self.support_: IndexArray | None = None
        if index is not None:
            order = np.argsort(points.number[index])
            self.support_ = points.number[index][order]
            vectors, coef = vectors[order], coef[order]
        stored = points.rows.block(slice(0, 1))
        self.support_vectors_ = sparse.csr_array(vectors) if sparse.issparse(stored) else vectors
        self.dual_coef_ = np.ascontiguousarray(coef.T)
        self.intercept_ = intercept

    def _keep_certificate(self, result: Result[Any]) -> None:
        self.certificate_ = result.certificate
        self.n_iter_ = result.certificate.n_iter
        if not result.converged:
            reached = result.certificate
            warnings.warn(
                f"{type(self).__name__} stopped before its rule was met ({reached.stopped}), "
                f"with a relative gap of {reached.gap:.2e}. The model is valid; for a better one "
                "raise the limit or lower C, or loosen tol to accept it.",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _dense_vectors(self) -> NDArray[Any]:
        vectors: Any = self.support_vectors_
        dense: NDArray[Any] = vectors.toarray() if sparse.issparse(vectors) else vectors
        return dense


def winners(classes: NDArray[Any], scores: NDArray[Any]) -> NDArray[Any]:
    """Return the labels that decision values speak for: their sign, or their argmax."""
    place = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
    labels: NDArray[Any] = classes[place]
    return labels
