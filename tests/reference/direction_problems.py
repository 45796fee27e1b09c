"""Small problems of directions, every way to solve them, and what oracles say of them."""

from functools import cache, partial

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from tests.reference import data
from tests.reference.mmda import from_kernel, from_rows
from widemargin import MaxMarginDA

GAMMA = 0.05
KERNELS = {"linear": linear_kernel, "rbf": lambda A, B: rbf_kernel(A, B, gamma=GAMMA)}
LOSSES = ["squared_hinge", "hinge"]
CONSTRAINTS = ["orthogonal", "uncorrelated"]
SOLVERS = ["deflation", "direct", "span", "core"]
# With the linear kernel "span" is the input space, and "core" the only one with vectors.
WAYS = [(kernel, solver) for kernel in KERNELS for solver in SOLVERS]
every_way = pytest.mark.parametrize(("kernel", "solver"), WAYS)
every_solver = pytest.mark.parametrize("solver", SOLVERS)
both_kernels = pytest.mark.parametrize("kernel", KERNELS)
both_losses = pytest.mark.parametrize("loss", LOSSES)
both_constraints = pytest.mark.parametrize("constraint", CONSTRAINTS)


# Data, small enough to be compared with slow oracles.


@cache
def three_digits():
    return data.digits(3, 90)


@cache
def third_of_wine():
    """Fewer features than rows: the linear kernel is not of full rank."""
    return data.wine(3)


@cache
def threes_and_eights(n_each=50):
    """As many threes as eights: the hinge, with its free bias, then has many directions."""
    X, y = data.digits(10, None)
    rows = np.concatenate([np.flatnonzero(y == digit)[:n_each] for digit in (3, 8)])
    return X[rows], y[rows]


def da(n_directions=3, **parameters):
    return MaxMarginDA(
        n_directions,
        **{"kernel": "rbf", "gamma": GAMMA, "random_state": 0, "n_jobs": 1} | parameters,
    )


def exact(solver):
    """Parameters with which a solver is as good as exact."""
    if solver == "core":
        return {"solver": "core", "epsilon": 1e-9}
    if solver == "span":
        # Vectors "random" are then all rows.
        return {"solver": "span", "vectors": "random", "max_vectors": 10_000, "tol": 1e-14}
    return {"solver": solver, "tol": 1e-13}


def signs(y, label):
    return np.where(y == label, 1.0, -1.0)


def problems_of(y):
    """The labels ±1 of each problem: one for two classes, else one for each class."""
    classes = np.unique(y)
    return [signs(y, label) for label in (classes[1:] if len(classes) == 2 else classes)]


def on_rows(model, n):
    """Coefficients of all training rows, for solvers whose vectors are rows."""
    coef = np.zeros((len(model.coef_), n))
    coef[:, model.support_] = model.coef_
    return coef


@cache
def reference_features(kernel, loss, constraint, load, C, n_directions):
    """The oracle's features of all problems, side by side."""
    X, y = load()
    found = [
        oracle_of(kernel, X)(sign, C, n_directions, loss=loss, constraint=constraint)
        for sign in problems_of(y)
    ]
    return np.hstack([problem.features for problem in found])


def oracle_of(kernel, X):
    """Deflation of the rows, or of the kernel matrix."""
    return (
        partial(from_rows, X)
        if kernel == "linear"
        else partial(from_kernel, rbf_kernel(X, gamma=GAMMA))
    )
