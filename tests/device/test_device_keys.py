"""Keys of rows on a device are those of this machine."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from widemargin.device import DeviceRows
from widemargin.device.device_keys import sorted_places
from widemargin.rows import as_rows, distinct_rows, row_keys


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_keys_have_the_same_bits(device, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5)).astype(dtype)
    X[3], X[4] = 0.0, -0.0
    X[5:8] = rng.integers(-5, 5, size=(3, 5))
    code = rng.integers(3, size=200)
    there = DeviceRows(device.array(X), device, 10**6, 1)
    here = as_rows(X, memory=10**6, threads=1)
    assert_array_equal(row_keys(there, code), row_keys(here, code))
    some = rng.permutation(200)[:50]
    assert_array_equal(row_keys(there, code[some], some), row_keys(here, code[some], some))


def test_copies_are_merged_in_the_same_order(device):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3))[rng.integers(90, size=300)]
    code, weight = rng.integers(2, size=300), rng.integers(0, 3, size=300).astype(float)
    here = distinct_rows(as_rows(X, memory=10**6, threads=1), code, weight)
    there = distinct_rows(DeviceRows(device.array(X), device, 10**6, 1), code, weight)
    for name in ("index", "code", "weight", "place"):
        assert_array_equal(getattr(there, name), getattr(here, name))
    assert_array_equal(there.rows.keys, here.rows.keys)


def test_keys_are_sorted_as_unsigned_numbers(device):
    if not device.is_torch:
        pytest.skip("there is no sort of 64 bits")
    keys = np.random.default_rng(2).integers(2**64, size=1000, dtype=np.uint64)
    assert_array_equal(sorted_places(keys, device), np.argsort(keys))
