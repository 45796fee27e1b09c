"""What a classifier says of the rows of a Dask collection: lazily, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from widemargin.base.estimator import KernelEstimator
from widemargin.device import is_device_array, to_numpy
from widemargin.places.partitions import is_collection


class LazyAnswers(ClassifierMixin, KernelEstimator):
    """A classifier that may be asked about the rows of a Dask collection."""

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
        if not is_collection(X):
            found, given = to_numpy(self.predict(X)), (y, sample_weight)
            truth, weight = (to_numpy(a) if is_device_array(a) else a for a in given)
            return float(accuracy_score(truth, found, sample_weight=weight))
        import dask

        # Labels of all rows are computed, the rows themselves block by block. One after the other:
        # Dask does not like arrays and series together.
        (predicted,) = dask.compute(self.predict(X))
        labels, weight = dask.compute(y, sample_weight)
        return float(accuracy_score(np.asarray(labels), predicted, sample_weight=weight))
