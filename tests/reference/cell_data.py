"""Rows that are easier to learn in cells, and machines by hand to compare them with."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from sklearn.model_selection import StratifiedKFold

from tests.reference import cells as reference
from tests.reference.data import moons
from widemargin import MarginClassifier, MarginClassifierCV
from widemargin.cells import ExactSizes
from widemargin.cells.engine_choice import TrialSizes

CENTERS = np.array([[-1.0, 0.6], [0.0, -0.6], [0.4, 0.9], [1.6, -0.3], [2.2, 0.6]])
HALVES = np.array([[-5.5, 0.0], [5.5, 0.0]])


def two_classes(n=300, noise=0.25):
    return moons(n, noise)


def three_classes(n=300):
    X, y = two_classes(n)
    return X, np.where(X[:, 1] > 0.7, 2, y)


def board(n=2000, squares=6):
    """A chessboard: a boundary that needs many vectors."""
    X = np.random.default_rng(0).uniform(size=(n, 2))
    return X, (np.floor(squares * X).sum(axis=1) % 2).astype(int)


def two_halves(n=600):
    """A chessboard on the left, a noisy line on the right."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(n, 2))
    fine = (np.floor(5 * X).sum(axis=1) % 2).astype(int)
    line = (X[:, 1] + 0.5 * rng.normal(size=n) > 0).astype(int)
    return X + np.where(X[:, :1] < 0, [-5.0, 0.0], [5.0, 0.0]), np.where(X[:, 0] < 0, fine, line)


DATA = {"two classes": two_classes, "three classes": three_classes}
# Each class against the rest, or pairs of classes with their own values.
AGAINST_REST = {"multi_class": "ovr"}
IN_PAIRS = {"multi_class": "ovo", "decision_function_shape": "ovo"}
WAYS = {
    "two classes": (two_classes, {}),
    "three classes": (three_classes, AGAINST_REST),
    "three classes in pairs": (three_classes, IN_PAIRS),
}


def in_cells_of(kind=MarginClassifier, **parameters):
    """A classifier in cells, by default of 40 rows."""
    defaults = {"engine": "cells", "cells": 40, "gamma": 2.0, "random_state": 0, "n_jobs": 1}
    return kind(**defaults | parameters)


def own_cell(X, centers):
    return reference.distances(X, centers).argmin(axis=1)


def pairs_by_hand(X, y, weight, classes, C, gamma, **parameters):
    """Decision values by independent machines for the pairs of classes in a cell, a column each."""
    columns = []
    for a, b in combinations(classes, 2):
        here = (y == a) | (y == b)
        if here.any():
            # Of two classes, the second is positive.
            known = X[here], y[here], weight[here], np.array([b, a]), C, gamma
            if len(np.unique(y[here])) == 2:
                known = X[here], np.where(y[here] == a, 1, 0), weight[here], np.arange(2), C, gamma
            columns.append(machine_by_hand(*known, **parameters))
        else:
            columns.append(lambda A: np.zeros((len(A), 1)))
    return lambda A: np.hstack([column(A) for column in columns])


def machine_by_hand(X, y, weight, classes, C, gamma, **parameters):
    """Decision values by an independent machine for the rows of a cell, a column a problem."""
    parameters = {"engine": "exact", "tol": 1e-12, "C": C, "gamma": gamma} | parameters
    if len(classes) > 2 and parameters.pop("decision_function_shape", "ovr") == "ovo":
        parameters.pop("multi_class")
        return pairs_by_hand(X, y, weight, classes, **parameters)
    present = np.unique(y)
    n_problems = 1 if len(classes) == 2 else len(classes)
    total = 2.0 * C * weight.sum()
    constant = total / (1.0 + total)
    if len(present) == 1:
        signs = np.where(classes == present[0], 1.0, -1.0)
        values = constant * (signs[1:] if n_problems == 1 else signs)
        return lambda A: np.tile(values, (len(A), 1))
    hand = MarginClassifier(**parameters).fit(X, y, weight)

    def decide(A):
        f = hand.decision_function(A)
        if n_problems == 1:
            return f[:, None]
        values = np.full((len(A), n_problems), -constant)
        place = np.searchsorted(classes, present)
        values[:, place] = np.stack([-f, f], axis=1) if f.ndim == 1 else f
        return values

    return decide


def machines_by_hand(X, y, centers, weight=None, C=1.0, gamma=2.0, overlap=0.0, **parameters):
    weight = np.ones(len(y)) if weight is None else weight
    members = [np.array(sorted(rows)) for rows in reference.members(X, centers, overlap)]
    return [
        machine_by_hand(X[m], y[m], weight[m], np.unique(y), C, gamma, **parameters)
        for m in members
    ]


def search_in_cells(Cs=(0.1, 1.0, 20.0), gammas=(0.5, 5.0), **parameters):
    defaults = {
        "engine": "cells",
        "cells": CENTERS,
        "cv": StratifiedKFold(3, shuffle=True, random_state=0),
        "random_state": 0,
        "n_jobs": 1,
    }
    return MarginClassifierCV(Cs, gammas, **defaults | parameters)


# As if 500 rows were many, and 100 vectors a lot.
MANY = {
    "exact_sizes": ExactSizes(always=300, most=400, most_of_many=400, most_if_better=400),
    "trial": TrialSizes(least_rows=500, learn=600, judge=600, vectors=40, cell=40, cells=(60, 200)),
}
