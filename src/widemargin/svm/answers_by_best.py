"""An estimator that answers by the best of the machines that it has tried."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from widemargin.base.classifier import KernelClassifier
from widemargin.base.frame_columns import FrameColumns
from widemargin.base.lazy_answers import LazyAnswers
from widemargin.device import is_device_array
from widemargin.places.partitions import is_collection
from widemargin.svm.probabilities import Calibration


class AnswersByBest(LazyAnswers):
    """What `best_estimator_` says is what is said."""

    best_estimator_: KernelClassifier
    preprocess_: FrameColumns | None

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
        if is_collection(X):
            lazy: NDArray[np.float64] = self._lazily(type(self).decision_function, X)
            return lazy
        X = self._known(X)
        return self.best_estimator_.decision_function(X)

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
        if is_collection(X):
            lazy: NDArray[Any] = self._lazily(type(self).predict, X)
            return lazy
        X = self._known(X)
        return self.best_estimator_.predict(X)

    def _answered(self) -> bool:
        """Return whether there are probabilities, or raise with what to do for them."""
        if not getattr(self, "probability", False):
            raise AttributeError("predict_proba needs a fit with probability=True.")
        return True

    @available_if(_answered)
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the probability of each class, where ``probability=True``.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of `classes_`; rows sum to 1. The largest may be that of another class
            than the predicted one where two are nearly as likely.
        """
        if is_collection(X):
            raise TypeError(
                "X is a Dask collection, of which there are no probabilities; pass X.compute()."
            )
        X = self._known(X)
        scores = self.best_estimator_.scores_of_classes(X)
        found = Calibration(self.calibration_margins_, self.calibration_probabilities_)
        return found(scores)

    def _known(self, X: Any) -> Any:
        """Return rows that the best machine may be asked about."""
        check_is_fitted(self)
        prepare = getattr(self, "preprocess_", None)
        if prepare is not None:
            return prepare.transform(X)
        checked = self._validated(X, reset=False)
        if is_device_array(X):
            return X
        # It knows names of columns if it was fitted to a collection that has some.
        return X if hasattr(self.best_estimator_, "feature_names_in_") else checked
