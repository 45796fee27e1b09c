"""Bases, kernel values and Cholesky factors of a span fit against plain NumPy."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tests.reference import kernels as plain_kernels
from tests.reference import span as reference
from widemargin.kernels import make_kernel
from widemargin.linalg import cholesky_in_place, solve_cholesky
from widemargin.rows import as_rows
from widemargin.span import (
    Basis,
    Vectors,
)
from widemargin.span.values import KernelValues

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


# ---------------------------------------------------------------- basis


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


# ---------------------------------------------------------------- kernel values


def small_values(kind, room, dtype=np.float64, threads=1):
    """Rows in blocks of 16 against 5 + 4 vectors that join one after the other."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    X[rng.random(X.shape) < 0.3] = 0.0
    expected, Z = plain("rbf", X, X[:9]), X[:9]
    stored, kernel = X, make_kernel("rbf", **PARAMETERS)
    if kind == "csr":
        stored = sparse.csr_array(X)
    if kind == "precomputed":
        stored, kernel = plain("rbf", X, X), make_kernel("precomputed")
        Z = np.arange(9.0)[:, None]
    rows = rows_of(stored, 16, threads, kind == "precomputed")
    values = KernelValues(rows, kernel, dtype, room, 9)
    assert values.step == 16
    values.add(Z[:5])
    values.add(Z[5:])
    return values, expected


def scanned(values, first, stop):
    """What a scan shows of the rows from `first` to `stop`, in one matrix."""
    seen = list(values.scan(lambda pieces, where: (where, np.hstack(pieces).copy()), first, stop))
    assert [where.start for where, _ in seen][1:] == [where.stop for where, _ in seen][:-1]
    assert (seen[0][0].start, seen[-1][0].stop) == (first, stop)
    return np.vstack([block for _, block in seen])


# Bytes for nothing, some rows, almost all of them, and everything.
ROOMS = [0, 8 * 9 * 50, 8 * 9 * 148, 10**6]


@pytest.mark.parametrize("kind", ["dense", "csr", "precomputed"])
@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_scan_shows_the_kernel_whether_values_are_kept_or_not(kind, room, threads):
    values, expected = small_values(kind, room, threads=threads)
    for first, stop in [(0, 48), (0, 150), (48, 150), (0, 150)]:
        np.testing.assert_allclose(scanned(values, first, stop), expected[first:stop], atol=1e-14)
    assert values.complete == (room == 10**6)
    assert values.n_passes == 2 and values.size == 9


@pytest.mark.parametrize("room", ROOMS)
def test_a_scan_may_begin_and_end_inside_a_block(room):
    values, expected = small_values("dense", room)
    for first, stop in [(0, 39), (39, 41), (41, 150), (7, 7 + 16), (0, 150), (3, 149)]:
        np.testing.assert_allclose(scanned(values, first, stop), expected[first:stop], atol=1e-14)
    assert list(values.scan(lambda pieces, where: where, 0, 0)) == []


@pytest.mark.parametrize("room", ROOMS)
def test_kernel_values_are_counted_once_if_kept_and_each_time_if_not(room):
    values, _ = small_values("dense", room)
    for n_scans in range(1, 4):
        scanned(values, 0, 150)
        again = 9 * (150 - values.kept_rows)
        assert values.n_kernel == 9 * 150 + (n_scans - 1) * again
    held = sum(panel.kept.nbytes for panel in values._panels)
    assert held == 8 * 9 * values.kept_rows <= room
    # There was no room for another block.
    assert values.kept_rows == 150 or held + 8 * 9 * 16 > room


@pytest.mark.parametrize("room", ROOMS)
@pytest.mark.parametrize("looked_at", [0, 64, 150])
def test_single_rows_are_the_same_before_and_after_a_scan(room, looked_at):
    values, expected = small_values("dense", room)
    if looked_at:
        scanned(values, 0, looked_at)
    index = np.random.default_rng(1).permutation(150)[:90]
    for some in (index, index[:1], index[:0]):
        out = np.full((len(some), 9), np.nan)
        values.take(some, out)
        np.testing.assert_allclose(out, expected[some], atol=1e-14)


def test_single_precision_is_the_kernel_rounded():
    values, expected = small_values("dense", 4 * 9 * 50, np.float32)
    seen = scanned(values, 0, 150)
    assert seen.dtype == np.float32
    np.testing.assert_allclose(seen, expected, atol=1e-6)
    assert np.abs(seen - expected).max() > 1e-12


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_change_places_with_their_values(threads):
    values, expected = small_values("dense", 10**6, threads=threads)
    scanned(values, 0, 150)
    order = np.arange(150)
    for seed in (0, 1):  # the second time on top of the first
        pairs = np.random.default_rng(seed).permutation(150)[:80]
        left, right = pairs[:40], pairs[40:]
        values.swap(left, right)
        order[left], order[right] = order[right], order[left]
    counted = values.n_kernel
    np.testing.assert_allclose(scanned(values, 0, 150), expected[order], atol=1e-14)
    assert values.n_kernel == counted
    fresh = KernelValues(values.rows, values.kernel, np.float64, 0, 9)
    fresh.add(np.vstack([panel.vectors for panel in values._panels]))
    np.testing.assert_allclose(scanned(fresh, 0, 150), expected[order], atol=1e-14)


# ---------------------------------------------------------------- Cholesky factors


def positive_definite(rng, n, dtype):
    A = rng.normal(size=(n, 2 * n))
    return (A @ A.T / n + np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_cholesky_in_place_and_its_solve_agree_with_numpy(dtype, order):
    rng = np.random.default_rng(0)
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    for n in [1, 2, 3, 10, 65, 200]:
        matrix = positive_definite(rng, n, dtype)
        right = rng.normal(size=(n, 3))
        factor = np.array(matrix, order=order)
        assert cholesky_in_place(factor)
        triangle = np.tril(factor) if order == "F" else np.triu(factor).T
        np.testing.assert_allclose(triangle, np.linalg.cholesky(matrix), atol=tolerance)
        other = np.tril_indices(n, -1) if order == "C" else np.triu_indices(n, 1)
        np.testing.assert_array_equal(factor[other], matrix[other])
        for some in (right, right[:, :1], np.asfortranarray(right), right[:, ::2]):
            before = some.copy()
            found = solve_cholesky(factor, some)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, np.linalg.solve(matrix, some), atol=tolerance)
            np.testing.assert_array_equal(some, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_indefinite_matrix_has_no_cholesky_factor(dtype):
    rng = np.random.default_rng(0)
    for n in [1, 5, 100]:
        matrix = positive_definite(rng, n, dtype)
        matrix[n // 2, n // 2] = -1.0
        assert not cholesky_in_place(matrix)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_factorise_side_by_side_and_to_the_same_bits(dtype):
    matrices = [positive_definite(np.random.default_rng(i), 90 + i, dtype) for i in range(24)]

    def solved(matrix):
        factor = matrix.copy()
        assert cholesky_in_place(factor)
        return solve_cholesky(factor, np.eye(len(matrix)))

    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(solved, matrices))
    for matrix, found in zip(matrices, together, strict=True):
        np.testing.assert_array_equal(found, solved(matrix))


def test_arrays_that_lapack_would_misread_are_refused():
    matrix = np.eye(6)
    for wrong in (matrix[::2, ::2], matrix[:4], matrix[:3, :3]):
        with pytest.raises(ValueError, match="square and contiguous"):
            cholesky_in_place(wrong)
    for right in (np.ones(6), np.ones((5, 2))):
        with pytest.raises(ValueError, match="6 rows"):
            solve_cholesky(matrix, right)
