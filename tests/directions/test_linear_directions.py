"""Directions of the linear kernel, found in the input space."""

import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.metrics.pairwise import linear_kernel

from tests.reference.direction_problems import (
    both_constraints,
    both_losses,
    da,
    every_solver,
    exact,
    problems_of,
    third_of_wine,
    three_digits,
)
from tests.reference.mmda import from_kernel, from_rows, gram_of
from widemargin.directions.linear import LinearFinder
from widemargin.kernels import Linear
from widemargin.loop import Deadline
from widemargin.problem import Problem, one_vs_rest
from widemargin.rows import as_rows


# Where the kernel matrix is not of full rank, expansions over all rows can gather parts that it
# does not see, which grow from direction to direction until they drown the others.
@pytest.mark.parametrize("kernel", ["linear", linear_kernel], ids=["linear", "function"])
@every_solver
def test_a_kernel_of_low_rank_has_the_directions_of_the_oracle(solver, kernel):
    X, y = third_of_wine()
    model = da(4, kernel=kernel, C=10.0, **exact(solver)).fit(X, y)
    directions = model.components_ if kernel == "linear" else model.coef_ @ model.vectors_
    for p, sign in enumerate(problems_of(y)):
        own = slice(4 * p, 4 * p + 4)
        assert_allclose(directions[own] @ directions[own].T, np.eye(4), atol=1e-8)
        expected = from_rows(X, sign, 10.0, 4)
        atol = 1e-5 if solver == "core" else 1e-6
        assert_allclose(model.transform(X)[:, own], expected.features, atol=atol)


# The linear kernel: in the input space.


def _wide_data(n=80, d=1500):
    rng = np.random.default_rng(0)
    X = sparse.random_array((n, d), density=0.02, rng=rng, format="csr")
    y = (np.asarray(X[:, :200].sum(axis=1)).ravel() > X[:, :200].sum() / n).astype(int)
    return X, y


@both_constraints
@pytest.mark.parametrize("solver", ["deflation", "direct"])
def test_many_features_are_solved_by_conjugate_gradients_to_the_same_directions(solver, constraint):
    X, y = _wide_data()
    n_directions = 3 if constraint == "orthogonal" else 2
    model = da(n_directions, kernel="linear", C=10.0, constraint=constraint, **exact(solver))
    model.fit(X, y)
    dense = X.toarray()
    (sign,) = problems_of(y)
    expected = from_kernel(dense @ dense.T, sign, 10.0, n_directions, constraint=constraint)
    assert_allclose(model.transform(X), expected.features, atol=1e-6)
    assert_allclose(model.components_, expected.coef @ dense, atol=1e-6)


@both_constraints
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_conjugate_gradients_equal_newtons_matrix(as_stored, constraint):
    X, y = three_digits()
    X, y = X[y < 2], y[y < 2]
    rows = as_rows(as_stored(X), memory=10**9, threads=1)
    problem = Problem.of(rows, Linear(), y, one_vs_rest(2), np.ones(len(y)), 0.5)
    for method in ("deflation", "direct"):
        found = []
        for form in (True, False):
            finder = LinearFinder(
                problem, method=method, constraint=constraint, tol=1e-13, form=form
            )
            earlier = []
            for _ in range(4):
                (direction,) = finder.find([0], [earlier], Deadline())
                earlier.append(direction.function)
            found.append(np.array(earlier))
        formed, iterated = found
        assert_allclose(iterated, formed, atol=1e-6)
        model = da(4, kernel="linear", constraint=constraint, C=0.5, **exact(method))
        assert_allclose(model.fit(as_stored(X), y).components_, formed, atol=1e-6)


@both_losses
@pytest.mark.parametrize("solver", ["deflation", "direct"])
def test_the_linear_kernel_forms_no_matrix_of_all_rows(solver, loss):
    rng = np.random.default_rng(0)
    y = np.arange(4000) % 2
    # Without their difference, the first two columns still say something of the classes.
    X = rng.normal(size=(4000, 5))
    X[:, 1] = 2.0 * X[:, 0] + 0.3 * X[:, 1]
    X[:, 0] = 2.0 * X[:, 0] + y
    model = da(2, kernel="linear", solver=solver, loss=loss, memory="10MB")
    model.fit(X[:200], y[:200])  # what is compiled or imported at first is not counted
    tracemalloc.start()
    model.fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The matrix would take 128 MB.
    assert peak < 30e6
    assert_allclose(gram_of(model), np.eye(2), atol=1e-8)
