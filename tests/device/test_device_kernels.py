"""Kernel values on a device are those of NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from widemargin.device import DeviceKernel, DeviceRows, block_on_device, to_numpy
from widemargin.kernels import CallableKernel, make_kernel
from widemargin.rows import as_rows

NAMES = (
    "linear",
    "poly",
    "normalized_poly",
    "cosine_power",
    "rbf",
    "laplacian",
    "exponential",
    "sigmoid",
    "inverse_distance",
    "inverse_squared_distance",
)


def _rows(offset=0.0, dtype=np.float64, scale=1.0):
    rng = np.random.default_rng(0)
    X = (offset + scale * rng.normal(size=(50, 6))).astype(dtype)
    X[7] = 0.0
    # A row that is a vector too: its distance is nothing but rounding.
    return X, np.concatenate([X[3:9], X[20:25] + 0.1]).astype(dtype)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_are_those_of_numpy(device, name, dtype):
    X, Z = _rows(dtype=dtype)
    kernel = make_kernel(name, gamma=0.3, coef0=0.5)
    expected = kernel.block(X.astype(np.float64), Z.astype(np.float64))
    there = DeviceKernel.about(kernel, device, X, dtype)
    found = there.block(device.array(X), Z)
    assert found.dtype == device.dtype(dtype)
    tolerance = 2e-6 if dtype == np.float32 else 1e-7
    assert_allclose(to_numpy(found), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "exponential", "inverse_squared_distance"])
def test_rows_far_from_the_origin_lose_no_digits(device, name):
    X, Z = _rows(offset=1e4)
    X[7] = X[8]
    kernel = make_kernel(name, gamma=0.3)
    found = DeviceKernel.about(kernel, device, X, np.float32).block(device.array(X), Z)
    assert_allclose(to_numpy(found), kernel.block(X, Z), atol=5e-6)


def test_a_kernel_far_narrower_than_the_data_is_computed_in_float64(device):
    X, Z = _rows(scale=1e3)
    kernel = make_kernel("rbf", gamma=0.1)
    there = DeviceKernel.about(kernel, device, X, np.float32)
    assert there.wide and there.operand_dtype == np.float64
    found = there.block(device.array(X), Z)
    assert found.dtype == device.xp.float32
    assert_allclose(to_numpy(found), kernel.block(X, Z), atol=1e-6)


@pytest.mark.parametrize("name", ["rbf", "laplacian", "exponential", "poly"])
def test_values_are_written_where_they_are_wanted(device, name):
    X, Z = _rows()
    there = DeviceKernel.about(make_kernel(name, gamma=0.3), device, X, np.float32)
    rows, vectors = there.rows(device.array(X)), there.vectors(Z)
    out = device.zeros((50, 11), np.float32)
    found = there.values(rows, vectors, out)
    assert found is out
    assert_allclose(to_numpy(out), to_numpy(there.values(rows, vectors)))


@pytest.mark.parametrize("kernel", [make_kernel("precomputed"), CallableKernel(np.dot)])
def test_a_kernel_that_is_not_there_says_so(device, kernel):
    with pytest.raises(ValueError, match=r"not computed on a device.*device='cpu'"):
        DeviceKernel.about(kernel, device, np.ones((3, 2)), np.float32)


def test_csr_rows_come_in_dense_blocks(device):
    X, _ = _rows()
    rows = as_rows(sparse.csr_array(X), memory=10**7, threads=1)
    found = block_on_device(rows, device, slice(5, 20))
    assert_allclose(to_numpy(found), X[5:20])


def test_rows_of_a_device_are_read_as_others_are(device):
    X, _ = _rows()
    rows = DeviceRows(device.array(X), device, 10**7, 1)
    order = np.random.default_rng(1).permutation(50)
    view = rows.subset(order)
    assert_allclose(view.take(np.arange(4)), X[order[:4]])
    assert_allclose(view.block(slice(3, 8)), X[order[3:8]])
    assert_allclose(to_numpy(block_on_device(view, device, slice(3, 8))), X[order[3:8]])
    assert_allclose(to_numpy(block_on_device(rows, device, slice(3, 8))), X[3:8])
    assert view.shape == (50, 6) and not view.sparse
