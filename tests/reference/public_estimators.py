"""Every public estimator with parameters that make its fit short."""

from functools import cache

from sklearn.base import BaseEstimator

import widemargin
from tests.reference.data import wine

SHORT = {
    "MarginClassifierCV": {"Cs": 2, "gammas": 2, "cv": 2},
    "MarginRegressorCV": {"Cs": 2, "gammas": 2, "cv": 2},
    "SparseMarginRegressor": {"n_vectors": 3},
    "SparseOneClass": {"n_vectors": 3},
    "ReducedSetClassifier": {"n_vectors": 3, "n_restarts": 2, "max_iter": 50},
    "SparseFisherClassifier": {"n_vectors": 3},
    "SparseMarginClassifier": {"n_vectors": 3},
    "ReducedSVMClassifier": {"n_vectors": 5},
}


def _is_estimator(found):
    return isinstance(found, type) and issubclass(found, BaseEstimator)


NAMES = [name for name in widemargin.__all__ if _is_estimator(getattr(widemargin, name))]
PROJECTIONS = [name for name in NAMES if hasattr(getattr(widemargin, name), "transform")]


def made(name):
    """Return an estimator by its name, not fitted."""
    estimator = getattr(widemargin, name)(**SHORT.get(name, {}))
    return estimator.set_params(random_state=0, n_jobs=1)


@cache
def _fitted(name):
    return made(name).fit(*wine())


def fitted(name):
    """Return an estimator by its name, fitted to wines; not to be changed."""
    return _fitted(name)


def answers(model, X):
    """Return all that a model says of rows."""
    names = ("decision_function", "score_samples", "predict", "transform")
    return {name: getattr(model, name)(X) for name in names if hasattr(model, name)}
