"""Kernel values of rows with each other, beside double loops in float64."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from tests.reference.kernels import block as plain_block
from widemargin.kernel_between import KernelBetween, kernel_values
from widemargin.kernels import make_kernel
from widemargin.rows import as_rows

RADIAL = ("rbf", "laplacian", "exponential", "inverse_distance", "inverse_squared_distance")


def rows_of(X, memory=10**8, threads=1):
    return as_rows(X, memory=memory, threads=threads)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("memory", [100, 10**8])
def test_kernel_values_are_written_where_they_belong(threads, memory):
    X = np.random.default_rng(0).normal(size=(40, 3))
    kernel = make_kernel("rbf", gamma=0.5)
    expected = plain_block("rbf", X, X[:7], gamma=0.5)
    for index in (None, np.array([30, 2, 17])):
        wanted = expected if index is None else expected[index]
        out = np.full((len(wanted), 9), np.nan)
        kernel_values(kernel, rows_of(X, memory, threads), X[:7], out[:, 1:8], index)
        assert_allclose(out[:, 1:8], wanted, atol=1e-14)
        assert np.isnan(out[:, [0, 8]]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("stored", [np.float32, np.float64, np.int8, "csr"])
@pytest.mark.parametrize("name", [*RADIAL, "linear", "poly"])
def test_blocks_and_the_matrix_are_the_kernel_of_the_rows(name, stored, dtype):
    X = np.random.default_rng(1).normal(size=(60, 5)) * 3.0
    X = X.astype(np.float64 if stored == "csr" else stored)
    # Equal rows, where a distance is nothing but rounding.
    X[7] = X[3]
    given = sparse.csr_array(X) if stored == "csr" else X
    between = KernelBetween.of(make_kernel(name, gamma=0.1), rows_of(given), dtype)
    assert (between.centred is not None) == (
        name in RADIAL and dtype == np.float32 and stored != "csr"
    )
    expected = plain_block(name, X.astype(float), X.astype(float), gamma=0.1)
    error = {"rtol": 2e-5, "atol": 3e-6} if dtype == np.float32 else {"rtol": 1e-11, "atol": 1e-11}
    assert_allclose(between.matrix(), expected, **error)
    left, right = np.array([9, 3, 40]), slice(2, 31)
    out = np.full((3, 31), np.nan, dtype=dtype)
    between.values(left, right, out[:, 1:30])
    assert_allclose(out[:, 1:30], expected[left][:, right], **error)
    assert np.isnan(out[:, [0, 30]]).all()
    some = np.array([50, 7, 3, 20])
    out = np.empty((2, 4), dtype=dtype)
    between.subset(some).values(slice(1, 3), slice(0, 4), out)
    assert_allclose(out, expected[some][1:3][:, some], **error)


def test_rows_far_from_the_origin_lose_nothing():
    rng = np.random.default_rng(2)
    X = 1e4 + rng.normal(size=(50, 4))
    between = KernelBetween.of(make_kernel("rbf", gamma=0.5), rows_of(X), np.float32)
    assert between.centred is not None
    assert_allclose(between.matrix(), plain_block("rbf", X, X, gamma=0.5), atol=2e-6)


@pytest.mark.parametrize("name", RADIAL)
def test_a_kernel_far_narrower_than_the_rows_are_wide_is_as_exact(name):
    rng = np.random.default_rng(3)
    # Two clusters far apart, each as wide as the kernel.
    X = np.concatenate([rng.normal(size=(30, 3)), 1e4 + rng.normal(size=(30, 3))])
    between = KernelBetween.of(make_kernel(name, gamma=0.5), rows_of(X), np.float32)
    assert_allclose(between.matrix(), plain_block(name, X, X, gamma=0.5), atol=3e-3)


@pytest.mark.parametrize("name", RADIAL)
def test_huge_rows_are_refused_or_right(name):
    X = np.random.default_rng(4).normal(size=(20, 3)) * 1e25
    between = KernelBetween.of(make_kernel(name, gamma=1e-50), rows_of(X), np.float32)
    try:
        K = between.matrix()
    except ValueError as error:
        assert "scale X" in str(error)
    else:
        assert_allclose(K, plain_block(name, X, X, gamma=1e-50), atol=1e-3)


def test_rows_that_do_not_fit_into_memory_twice_are_not_copied():
    X = np.random.default_rng(5).normal(size=(400, 50))
    kernel = make_kernel("rbf", gamma=0.02)
    small = KernelBetween.of(kernel, rows_of(X, memory=100_000), np.float32)
    assert small.centred is None
    large = KernelBetween.of(kernel, rows_of(X), np.float32)
    assert_allclose(small.matrix(), large.matrix(), atol=1e-6)


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_bits_do_not_depend_on_threads(name):
    X = np.random.default_rng(6).normal(size=(3000, 40))
    kernel = make_kernel(name, gamma=0.02)
    found = []
    for threads in (1, 2, 3, 4):
        between = KernelBetween.of(kernel, rows_of(X, threads=threads), np.float32)
        out = np.empty((700, 2500), dtype=np.float32)
        between.values(np.arange(0, 2100, 3), slice(500, 3000), out, threads)
        found.append((between.matrix(), out))
    for K, out in found[1:]:
        assert_array_equal(K, found[0][0])
        assert_array_equal(out, found[0][1])
