"""Factors of matrices, in place and side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from widemargin.threads import cholesky_in_place, solve_cholesky


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
