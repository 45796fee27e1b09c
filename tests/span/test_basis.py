"""The basis of a span."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import kernels as plain_kernels
from tests.reference import span as reference
from widemargin.kernels import make_kernel
from widemargin.rows import as_rows
from widemargin.span import (
    Basis,
    Vectors,
)

N_PROBLEMS = 120
KERNELS = ["rbf", "linear", "poly", "laplacian", "inverse_squared_distance"]
PARAMETERS = {"gamma": 0.5, "degree": 2, "coef0": 1.0}


def plain(name, A, B, **changes):
    return plain_kernels.block(name, A, B, **(PARAMETERS | changes))


def rows_of(X, memory=10**8, threads=1, precomputed=False):
    return as_rows(X, memory=memory, threads=threads, precomputed=precomputed)


def basis_of(name, Z, tolerance=1e-10, start=None, **changes):
    kernel = make_kernel(name, **(PARAMETERS | changes))
    begun = Basis.empty() if start is None else start
    return begun.extended(kernel, Vectors(Z, None), tolerance, rows_of(np.zeros((1, Z.shape[1]))))


@settings(max_examples=N_PROBLEMS, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(KERNELS), copies=st.integers(0, 3))
def test_the_factor_is_a_triangle_whose_square_is_the_kernel_of_what_was_kept(seed, name, copies):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(int(rng.integers(1, 15)), int(rng.integers(1, 4))))
    Z = np.vstack([Z, Z[rng.integers(0, len(Z), copies)]])
    basis = basis_of(name, Z)
    kept = plain(name, basis.vectors.values, basis.vectors.values)
    scale = np.abs(kept).max(initial=0.0)
    np.testing.assert_allclose(basis.gram, kept, atol=1e-13 * scale)
    np.testing.assert_allclose(basis.factor @ basis.factor.T, kept, atol=1e-13 * scale)
    assert (np.triu(basis.factor, 1) == 0).all() and (np.diagonal(basis.factor) > 0).all()
    assert len(np.unique(basis.vectors.values, axis=0)) == basis.size


@settings(max_examples=N_PROBLEMS, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), tolerance=st.sampled_from([1e-8, 1e-4, 1e-2, 0.3]))
def test_what_is_left_out_lies_within_the_tolerance_and_what_joins_does_not(seed, tolerance):
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(20, 2)) * rng.choice([0.1, 1.0, 3.0])
    basis = basis_of("rbf", Z, tolerance)
    # Squared distance of each vector from the span, by an eigen-decomposition of its own.
    T = reference.orthonormal(plain("rbf", basis.vectors.values, basis.vectors.values), 1e-15)
    inside = plain("rbf", Z, basis.vectors.values) @ T.T
    distance = 1.0 - (inside**2).sum(axis=1)
    assert distance.max() <= tolerance + 1e-7
    assert (np.diagonal(basis.factor) ** 2 > tolerance).all()


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_the_first_of_vectors_that_are_equally_long_comes_first(name):
    # Computed from products, the distance of a far row from itself is not quite zero.
    for seed in range(20):
        Z = np.random.default_rng(seed).normal(size=(12, 5)) + 7.0
        basis = basis_of(name, Z)
        np.testing.assert_array_equal(basis.vectors.values[0], Z[0])
        np.testing.assert_array_equal(np.diagonal(basis.gram), 1.0)


@pytest.mark.parametrize("tolerance", [0.0, 1e-10, 1e-4])
def test_copies_of_the_vectors_do_not_join_later(tolerance):
    rng = np.random.default_rng(0)
    for _ in range(20):
        basis = basis_of("rbf", rng.normal(size=(8, 3)), tolerance)
        again = basis_of("rbf", basis.vectors.values[rng.permutation(8)], tolerance, start=basis)
        assert basis.size == again.size == 8
        once = basis_of("rbf", np.repeat(basis.vectors.values, 4, axis=0), tolerance)
        assert once.size == 8


def test_a_vector_within_the_tolerance_does_not_join_even_if_it_comes_alone():
    basis = basis_of("rbf", np.zeros((1, 2)), 1e-2)
    near = np.array([[0.09, 0.0]])  # 1 − exp(−2 · 0.5 · 0.0081) < 1e-2
    far = np.array([[0.2, 0.0]])
    assert basis_of("rbf", near, 1e-2, start=basis).size == 1
    assert basis_of("rbf", far, 1e-2, start=basis).size == 2


def test_a_tiny_gamma_leaves_one_vector_and_a_large_one_all():
    Z = np.random.default_rng(0).normal(size=(30, 3))
    assert basis_of("rbf", Z, gamma=1e-14).size == 1
    assert basis_of("rbf", Z, gamma=1e3).size == 30


@pytest.mark.parametrize("start", [None, "something"])
def test_vectors_without_a_feature_span_nothing(start):
    begun = None if start is None else basis_of("linear", np.eye(3)[:2])
    size = 0 if begun is None else 2
    basis = basis_of("linear", np.zeros((4, 3)), start=begun)
    assert basis.size == size and basis.factor.shape == (size, size)
    assert basis_of("linear", np.zeros((0, 3)), start=begun).size == size


def test_the_span_of_a_linear_kernel_has_the_rank_of_its_vectors():
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 7))
    assert basis_of("linear", Z).size == 2


@settings(max_examples=N_PROBLEMS, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(KERNELS))
def test_a_basis_that_grew_spans_what_one_of_all_vectors_does(seed, name):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(25, 3))
    cut = int(rng.integers(1, 9))
    first = basis_of(name, X[:cut])
    grown = basis_of(name, X[cut:10], start=first)
    whole = basis_of(name, X[:10])
    # Former coordinates stay as they are.
    np.testing.assert_array_equal(grown.factor[: first.size, : first.size], first.factor)
    np.testing.assert_array_equal(grown.vectors.values[: first.size], first.vectors.values)
    projected = []
    for basis in (grown, whole):
        F = basis.whitened(plain(name, X, basis.vectors.values).T)
        projected.append(F.T @ F)
    scale = np.abs(plain(name, X, X)).max()
    np.testing.assert_allclose(projected[0], projected[1], atol=2e-6 * scale)


@settings(max_examples=N_PROBLEMS, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), name=st.sampled_from(["rbf", "laplacian"]))
def test_whitened_products_have_the_kernel_of_the_projection(seed, name):
    rng = np.random.default_rng(seed)
    Z, X = rng.normal(size=(8, 3)) * 2.0, rng.normal(size=(12, 3)) * 2.0
    basis = basis_of(name, Z)
    kzx = plain(name, basis.vectors.values, X)
    F = basis.whitened(kzx)
    expected = kzx.T @ np.linalg.solve(basis.gram, kzx)
    np.testing.assert_allclose(F.T @ F, expected, atol=1e-9)
    # Coordinates of coefficients and back: wᵀφ_z(x) = k(x, Z) β, and ‖w‖² = βᵀK_zβ.
    w = rng.normal(size=(basis.size, 2))
    beta = basis.coefficients(w)
    np.testing.assert_allclose(kzx.T @ beta, F.T @ w, atol=1e-9)
    np.testing.assert_allclose(beta.T @ basis.gram @ beta, w.T @ w, atol=1e-9)


def test_row_numbers_stay_with_their_vectors():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    rows, kernel = rows_of(X), make_kernel("rbf", gamma=0.5)
    basis = Basis.empty()
    for index in (rng.permutation(30)[:7], rng.permutation(30)[:12]):
        basis = basis.extended(kernel, Vectors(X[index], index), 1e-10, rows)
    np.testing.assert_array_equal(X[basis.vectors.index], basis.vectors.values)
    assert basis.size == len(np.unique(basis.vectors.index))
    mixed = basis.extended(kernel, Vectors(rng.normal(size=(2, 3)), None), 1e-10, rows)
    assert mixed.vectors.index is None and mixed.size == basis.size + 2
