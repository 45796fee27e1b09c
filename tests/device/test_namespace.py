"""Arrays that move to a device and back."""

import array_api_strict
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from widemargin.device import (
    DeviceRows,
    device_of,
    given_back,
    is_device_array,
    moments,
    named_device,
    to_numpy,
)
from widemargin.device.copies import block_sent
from widemargin.rows import as_rows, weighted_moments


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int32])
def test_an_array_comes_back_as_it_went(device, dtype):
    values = np.arange(12).reshape(3, 4).astype(dtype)[:, ::-1]
    values.flags.writeable = False
    there = device.array(values)
    assert is_device_array(there)
    assert device_of(there) == device
    found = to_numpy(there)
    assert found.dtype == dtype
    assert_array_equal(found, values)


def test_a_copy_shares_no_memory(device):
    values = np.ones((3, 2))
    there = device.array(values)
    there[...] = 2.0
    assert (values == 1.0).all()


def test_an_answer_is_what_the_user_passed(device):
    like = device.array(np.ones(3))
    answer = given_back(np.arange(3.0), like)
    assert device_of(answer) == device
    assert given_back(answer, like) is answer
    assert isinstance(given_back(answer, np.ones(3)), np.ndarray)


@pytest.mark.parametrize("X", [np.ones(3), [1.0], sparse.csr_array(np.eye(2)), None, "text"])
def test_others_are_not_of_a_device(X):
    assert not is_device_array(X)


def test_moments_are_those_of_numpy(device):
    rng = np.random.default_rng(0)
    X, weight = 100.0 + rng.normal(size=(70, 3)), rng.uniform(size=70)
    order = rng.permutation(70)[:60]
    rows = DeviceRows(device.array(X), device, 10**7, 1).subset(order)
    found = moments(rows, weight[:60])
    expected = weighted_moments(as_rows(X[order], memory=10**7, threads=1), weight[:60])
    assert_allclose(found.mean, expected.mean)
    assert_allclose(found.variance, expected.variance)


def test_a_device_that_is_not_there_says_so():
    torch = pytest.importorskip("torch")
    for name in ("nonsense", "mps", f"cuda:{torch.cuda.device_count()}"):
        with pytest.raises(ValueError, match="device="):
            named_device(name)


def test_without_torch_a_device_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"widemargin\[gpu\]"):
        named_device("cuda")


def test_the_namespace_of_an_array_is_its_own():
    X = array_api_strict.asarray([1.0])
    assert device_of(X).xp is array_api_strict


def test_blocks_that_are_sent_one_after_another_arrive_as_they_were(device):
    rng = np.random.default_rng(0)
    blocks = [rng.normal(size=(700, 300)) for _ in range(6)]
    sums = []
    for block in blocks:
        there = block_sent(device, block.copy())
        sums.append(device.xp.sum(there @ there.mT))
    found = [float(each) for each in sums]
    assert_allclose(found, [(b @ b.T).sum() for b in blocks], rtol=1e-9)
    frozen = blocks[0].copy()
    frozen.flags.writeable = False
    assert_array_equal(to_numpy(block_sent(device, frozen)), frozen)
    turned = np.asfortranarray(blocks[1])
    assert_array_equal(to_numpy(block_sent(device, turned)), turned)
