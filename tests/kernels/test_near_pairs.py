"""Kernels of the distance where rows lie far wider apart than the kernel reaches."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from widemargin.kernels import make_kernel

NAMES = ["rbf", "inverse_squared_distance", "inverse_distance", "exponential", "laplacian"]
OF_SQUARES = NAMES[:4]
LAYOUTS = ["C", "F", "csr", "thin csr"]
DTYPES = [np.float32, np.float64]


def exact(name, X, Z, gamma):
    """Values from differences in float64, of the rows as they are stored."""
    dense = [(A.toarray() if sparse.issparse(A) else A).astype(np.float64) for A in (X, Z)]
    apart = dense[0][:, None] - dense[1][None]
    if name == "laplacian":
        return np.exp(-gamma * np.abs(apart).sum(axis=2))
    squares = gamma * (apart**2).sum(axis=2)
    if name in ("rbf", "exponential"):
        return np.exp(-squares if name == "rbf" else -np.sqrt(squares))
    return 1.0 / ((squares if name == "inverse_squared_distance" else np.sqrt(squares)) + 1.0)


def wide_rows(layout, dtype, gamma=1.0, spread=1e7, seed=0):
    """Rows far apart with near neighbours: copies, and rows within the reach of the kernel."""
    rng = np.random.default_rng(seed)
    features = 200 if layout == "thin csr" else 6
    X = spread * rng.normal(size=(60, features))
    if "csr" in layout:
        X *= rng.random(X.shape) < (0.03 if layout == "thin csr" else 0.4)
        X[0, 0] = spread
    X = X.astype(dtype)
    Z = X[:25].copy()
    # The steps of float32 at 1e7 are as large as the kernel: some neighbours are a step away.
    moved = rng.normal(size=(15, features)) * (Z[10:] != 0) / np.sqrt(gamma * features)
    Z[10:] = (Z[10:] + moved).astype(dtype)
    if "csr" in layout:
        return sparse.csr_array(X), Z
    return np.asarray(X, order=layout), Z


@pytest.mark.parametrize("gamma", [1.0, 0.3, 7.0])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NAMES)
def test_rows_times_ten_million_have_the_values_of_their_differences(name, layout, dtype, gamma):
    X, Z = wide_rows(layout, dtype, gamma)
    values = make_kernel(name, gamma=gamma).block(X, Z)
    expected = exact(name, X, Z, gamma)
    assert values.dtype == dtype
    assert ((expected > 1e-4) & (expected < 0.99)).any() or (gamma > 1 and dtype == np.float32)
    # Of sparse rows the 1-norm is a difference of sums around 1e8.
    rough = dtype == np.float32 or (name == "laplacian" and "csr" in layout)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-6 if rough else 1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if make_kernel(name).sparse_vectors])
def test_near_pairs_of_sparse_vectors_are_measured_too(name):
    X, Z = wide_rows("thin csr", np.float64)
    values = make_kernel(name).block(X, sparse.csr_array(Z))
    np.testing.assert_allclose(values, exact(name, X, Z, 1.0), rtol=0, atol=1e-12)


@pytest.mark.parametrize("gamma", [1.0, 0.3])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OF_SQUARES)
def test_equal_rows_have_the_value_one_exactly_however_wide_the_data(name, layout, dtype, gamma):
    for spread in (1e7, 1e12):
        X, Z = wide_rows(layout, dtype, gamma, spread)
        values = make_kernel(name, gamma=gamma).block(X, Z)
        np.testing.assert_array_equal(values[np.arange(10), np.arange(10)], 1.0)
        assert (values <= 1.0).all()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_type_of_the_result_may_differ_from_that_of_the_rows(name, layout):
    for dtype, of_result in ((np.float64, np.float32), (np.float32, np.float64)):
        X, Z = wide_rows(layout, dtype)
        out = np.empty((X.shape[0], len(Z)), dtype=of_result)
        make_kernel(name, gamma=1.0).block(X, Z, out=out)
        # Rows in float64 are told apart even where the values are float32.
        np.testing.assert_allclose(out, exact(name, X, Z, 1.0), rtol=0, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.floats(0.0, 10.0),
    st.sampled_from(OF_SQUARES),
    st.sampled_from(DTYPES),
    st.booleans(),
)
def test_values_are_as_exact_as_the_kernel_says_at_any_width(seed, exponent, name, dtype, csr):
    rng = np.random.default_rng(seed)
    X = 10.0**exponent * rng.normal(size=(40, 5))
    X[20:] = X[:20] + rng.normal(size=(20, 5)) * rng.choice([0.1, 0.5, 3.0])
    X = X.astype(dtype)
    kernel = make_kernel(name, gamma=1.0)
    values = kernel.block(sparse.csr_array(X) if csr else X, X)
    error = np.abs(values - exact(name, X, X, 1.0))
    spread = float(X.astype(np.float64).var(axis=0).sum())
    # It speaks of rows that are as far out as most; others have norms² ten times as large.
    assert np.sqrt((error**2).mean()) <= kernel.rounding(spread, dtype)
    assert error.max() <= 30.0 * kernel.rounding(spread, dtype)


@pytest.mark.parametrize("name", OF_SQUARES)
def test_rounding_is_the_roundoff_of_narrow_rows_and_bounded_for_wide_ones(name):
    kernel = make_kernel(name, gamma=0.5)
    for dtype, most in ((np.float32, 2e-3), (np.float64, 2e-9)):
        unit = np.finfo(dtype).eps / 2
        errors = [kernel.rounding(spread, dtype) for spread in (0.0, 1e-2, 1.0, 1e4, 1e10, 1e300)]
        assert errors[0] == unit
        assert errors == sorted(errors) and errors[-1] <= most
    assert make_kernel("linear").rounding(1e9, np.float32) == np.finfo(np.float32).eps / 2


def test_gradients_of_wide_rows_are_those_of_their_differences():
    X, Z = wide_rows("C", np.float64)
    weight = np.random.default_rng(1).normal(size=(60, 25))
    apart = X[:, None] - Z[None]
    pull = 2.0 * exact("rbf", X, Z, 1.0) * weight
    expected = (pull[:, :, None] * apart).sum(axis=0)
    found = make_kernel("rbf", gamma=1.0).gradient(X, Z, weight)
    # The sums are of numbers around 1e7.
    np.testing.assert_allclose(found, expected, atol=1e-7)
