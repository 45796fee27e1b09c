"""Generalised eigenvectors at right angles to where the second matrix vanishes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.linalg import eigh
from scipy.stats import ortho_group

from tests.reference.locality import assert_same_features
from widemargin.scatter.eigenproblem import generalized_eigenvectors

# The eigenproblem.


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 8), st.integers(0, 3))
def test_the_eigenproblem_is_solved_at_right_angles_to_where_b_vanishes(seed, rank, null):
    rng = np.random.default_rng(seed)
    n = rank + null
    turn = ortho_group.rvs(n, random_state=seed) if n > 1 else np.eye(1)
    basis, beyond = turn[:, :rank], turn[:, rank:]
    root = rng.standard_normal((rank, rank)) + 3 * np.eye(rank)
    A, inner = rng.standard_normal((n, n)), root @ root.T
    A = A + A.T
    B = basis @ inner @ basis.T
    found = generalized_eigenvectors(A, B)
    values = eigh(basis.T @ A @ basis, inner, eigvals_only=True)
    assert_allclose(found.values, values, atol=1e-8 * np.abs(values).max())
    assert_allclose(found.vectors.T @ B @ found.vectors, np.eye(rank), atol=1e-8)
    assert_allclose(beyond.T @ found.vectors, 0, atol=1e-8)


@pytest.mark.parametrize("spread", [1, 10, 100])
def test_coordinates_of_very_different_size_cost_no_digits(spread):
    rng = np.random.default_rng(0)
    root, A = rng.standard_normal((6, 6)) + 3 * np.eye(6), rng.standard_normal((6, 6))
    A, B, size = A + A.T, root @ root.T, 10.0 ** np.linspace(-spread, spread, 6)
    found = generalized_eigenvectors(A * np.outer(size, size), B * np.outer(size, size))
    values, vectors = eigh(A, B)
    assert_allclose(found.values, values, rtol=1e-10)
    assert_same_features(found.vectors * size[:, None], vectors, 1e-10)
