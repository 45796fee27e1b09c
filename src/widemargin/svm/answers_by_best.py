"""An estimator that answers by the best of the machines that it has tried."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from widemargin.base.classifier import KernelClassifier
from widemargin.base.estimator import KernelEstimator
from widemargin.places.partitions import is_collection


class AnswersByBest(ClassifierMixin, KernelEstimator):
    """What `best_estimator_` says is what is said."""

    best_estimator_: KernelClassifier

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Return the decision function of the best machine.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Rows; their kernel values with all training rows if ``kernel="precomputed"``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Positive for the second class, or largest for the predicted one; a lazy Dask array of a
            collection.
        """
        return self.best_estimator_.decision_function(self._known(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row: the sign, or the argmax, of `decision_function`.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels; a lazy Dask array of a collection.
        """
        return self.best_estimator_.predict(self._known(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask collection of shape (n_samples, n_features)
            Rows.
        y : array-like or Dask collection of shape (n_samples,)
            Their labels.
        sample_weight : array-like or Dask collection of shape (n_samples,), default=None
            Weights.

        Returns
        -------
        float
            Between 0 and 1.
        """
        return self.best_estimator_.score(self._known(X), y, sample_weight)

    def _known(self, X: Any) -> Any:
        """Return rows that the best machine may be asked about."""
        check_is_fitted(self)
        if not is_collection(X):
            return self._validated(X, reset=False)
        self._note_columns(X, reset=False)
        return X
