"""Factors of matrices, in place and side by side, by SciPy's LAPACK."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from widemargin.factors import check_lapack, cholesky_in_place, solve_cholesky


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
    for n in [1, 5, 100, 1200]:
        matrix = positive_definite(rng, n, dtype)
        matrix[n // 2, n // 2] = -1.0
        assert not cholesky_in_place(matrix, threads=2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [1024, 1281, 1500])
def test_a_large_matrix_is_factorised_to_the_same_bits_by_any_number_of_threads(dtype, order, n):
    matrix = positive_definite(np.random.default_rng(n), n, dtype)
    factors = [np.array(matrix, order=order) for _ in range(3)]
    for threads, factor in zip((1, 2, 5), factors, strict=True):
        assert cholesky_in_place(factor, threads)
        np.testing.assert_array_equal(factor, factors[0])
    triangle = np.tril(factors[0]) if order == "F" else np.triu(factors[0]).T
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(triangle, np.linalg.cholesky(matrix), atol=tolerance)
    other = np.tril_indices(n, -1) if order == "C" else np.triu_indices(n, 1)
    np.testing.assert_array_equal(factors[0][other], matrix[other])


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


FACTORISE = "void (char *, int *, {0} *, int *, int *)"
SOLVE = "void (char *, int *, int *, {0} *, int *, {0} *, int *, int *)"


def test_the_lapack_that_is_installed_takes_what_we_pass():
    for name in ("double", "float", "__pyx_t_5scipy_6linalg_13cython_lapack_d"):
        check_lapack(FACTORISE.format(name), "ciaii")
        check_lapack(SOLVE.format(name), "ciiaiaii")


@pytest.mark.parametrize("integer", ["int64_t", "long", "npy_int64", "__pyx_t_int64"])
def test_a_lapack_with_integers_of_64_bits_is_refused_with_the_remedy(integer):
    for signature, arguments in ((FACTORISE, "ciaii"), (SOLVE, "ciiaiaii")):
        wide = signature.format("double").replace("int *", f"{integer} *")
        with pytest.raises(ImportError, match=r"32-bit.*install a SciPy") as caught:
            check_lapack(wide, arguments)
        assert integer in str(caught.value)


@pytest.mark.parametrize(
    "signature",
    [
        "void (char *, int *, double *, int *)",
        "void (char *, int *, double *, int *, int *, int *)",
        "void (char *, int, double *, int *, int *)",
        "void (char *, int *, double, int *, int *)",
        "void (void)",
    ],
)
def test_a_lapack_with_other_arguments_is_refused(signature):
    with pytest.raises(ImportError, match="signature"):
        check_lapack(signature, "ciaii")
