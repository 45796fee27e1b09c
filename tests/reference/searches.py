"""Searches for C and gamma, with our short cuts and without."""

from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from widemargin import MarginClassifier, MarginClassifierCV

CS = [0.1, 1.0, 10.0]
GAMMAS = [0.5, 2.0]


def overlapping(n_rows=120, noise=0.3):
    return make_moons(n_rows, noise=noise, random_state=0)


def iris():
    X, y = load_iris(return_X_y=True)
    X = X[:, :2] - X[:, :2].mean(axis=0)
    # One of its rows is there twice.
    return X + 1e-3 * np.random.default_rng(0).normal(size=X.shape), y


DATA = {"two classes": overlapping, "three classes": iris}
every_data = pytest.mark.parametrize("data", DATA)


def stratified(n_splits=3):
    return StratifiedKFold(n_splits, shuffle=True, random_state=0)


def search_of(Cs=CS, gammas=GAMMAS, **parameters):
    """A search in the span of all rows: its machines are then the exact ones."""
    defaults = {"engine": "span", "max_vectors": 1000, "random_state": 0, "n_jobs": 1}
    defaults["cv"] = stratified()
    return MarginClassifierCV(Cs, gammas, **defaults | parameters)


def exact(**parameters):
    """The exact machine, with several classes against the rest as in a span."""
    defaults = {"engine": "exact", "multi_class": "ovr", "tol": 1e-8, "n_jobs": 1}
    return MarginClassifier(**defaults | parameters)


def grid_search(X, y, Cs=CS, gammas=GAMMAS, cv=None, scoring=None, **parameters):
    grid = {"C": Cs, "gamma": gammas}
    return GridSearchCV(exact(**parameters), grid, cv=cv or stratified(), scoring=scoring).fit(X, y)


@cache
def searched_by_grid(data):
    """The search without short cuts in one of the data sets, which several tests compare with."""
    return grid_search(*DATA[data]())


def scores_of(search):
    """Scores of every pair (rows) in every fold (columns)."""
    results = search.cv_results_
    n_splits = search.n_splits_
    return np.column_stack([results[f"split{k}_test_score"] for k in range(n_splits)])


# So fine that the machines of a search are the optima, for comparison.
FINELY = {"tol": 1e-9}
