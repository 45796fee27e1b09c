"""Projections take arrays of a device, and answer with such."""

import pickle

import numpy as np
import pytest
import sklearn
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from widemargin import (
    KernelFisherDA,
    LocalFisherDA,
    MaxiMinDA,
    MaxMarginDA,
    PairwiseAccuracyDA,
)
from widemargin.device import DeviceRows, device_of, to_numpy
from widemargin.rows import as_rows
from widemargin.scatter.class_scatter import DenseColumns, scatter_of
from widemargin.scatter.device_scatter import scatter_anywhere

N = 400
IN_SPAN = {"kernel": "rbf", "gamma": 0.2, "random_state": 0, "n_jobs": 1}

WAYS = {
    "maxi-min": MaxiMinDA(2, random_state=0),
    "maxi-min without held-out rows": MaxiMinDA(2, sharpness=8.0, shrinkage="auto", random_state=0),
    "maxi-min with a kernel": MaxiMinDA(2, n_vectors=20, shrinkage=0.1, **IN_SPAN),
    "pairwise": PairwiseAccuracyDA(2, shrinkage="auto"),
    "pairwise with a kernel": PairwiseAccuracyDA(2, shrinkage=0.1, n_vectors=20, **IN_SPAN),
    "fisher in a span": KernelFisherDA(solver="span", n_vectors=20, **IN_SPAN),
    "fisher on all rows": KernelFisherDA(solver="kernel", regularization=0.1, **IN_SPAN),
    "margins": MaxMarginDA(2, solver="span", max_vectors=30, tol=1e-6, **IN_SPAN),
    "margins, uncorrelated": MaxMarginDA(
        2, solver="span", constraint="uncorrelated", max_vectors=30, tol=1e-6, **IN_SPAN
    ),
    "margins, across problems": MaxMarginDA(
        1, solver="span", across="all", max_vectors=30, tol=1e-6, **IN_SPAN
    ),
    "linear margins": MaxMarginDA(2, solver="span", tol=1e-8),
}


def _data(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 5))
    return X, np.digitize(np.sin(2 * X[:, 0]) + X[:, 1], [-0.3, 0.6])


@pytest.fixture(params=WAYS, ids=lambda name: name.replace(" ", "-"))
def projection(request):
    """Each way to fit a projection."""
    return clone(WAYS[request.param])


@pytest.fixture(params=[False, True], ids=["without dispatch", "with dispatch"])
def dispatch(request, monkeypatch):
    """scikit-learn's switch, which must make no difference."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=request.param):
        yield request.param


@pytest.mark.usefixtures("dispatch")
def test_features_are_those_of_this_machine_on_the_device_of_the_rows(device, projection):
    X, y = _data()
    weight = np.random.default_rng(1).integers(0, 3, size=N).astype(float)
    here = clone(projection).fit(X, y, weight)
    there = projection.fit(device.array(X), device.array(y), device.array(weight))
    found, expected = there.transform(device.array(X)), here.transform(X)
    assert device_of(found) == device and found.dtype == device.dtype(expected.dtype)
    assert_allclose(to_numpy(found), expected, atol=2e-3 * np.abs(expected).max())
    at_numpy = there.transform(X)
    assert isinstance(at_numpy, np.ndarray)
    assert_allclose(at_numpy, to_numpy(found), atol=1e-8 * np.abs(expected).max())


def test_single_precision_stays(device, projection):
    X, y = _data()
    single = X.astype(np.float32)
    here = clone(projection).fit(single, y).transform(single)
    found = projection.fit(device.array(single), y).transform(device.array(single))
    assert found.dtype == device.dtype(here.dtype)
    assert_allclose(to_numpy(found), here, atol=0.02 * np.abs(here).max())


def test_what_was_fitted_there_is_plain(device, projection):
    X, y = _data()
    projection.fit(device.array(X), device.array(y))
    expected = to_numpy(projection.transform(device.array(X)))
    stored = skops.io.dumps(projection)
    trusted = skops.io.get_untrusted_types(data=stored)
    assert all(name.startswith("widemargin.") for name in trusted)
    for loaded in (
        pickle.loads(pickle.dumps(projection)),
        skops.io.loads(stored, trusted=trusted),
    ):
        assert_allclose(loaded.transform(X), expected, atol=1e-8 * np.abs(expected).max())
        assert_array_equal(to_numpy(loaded.transform(device.array(X))), expected)


def test_a_named_device_takes_numpy_and_gives_numpy(projection):
    torch = pytest.importorskip("torch")
    name = "cuda" if torch.cuda.is_available() else "cpu:0"
    X, y = _data()
    here = clone(projection).fit(X, y).transform(X)
    found = projection.set_params(device=name).fit(X, y).transform(X)
    assert isinstance(found, np.ndarray)
    assert_allclose(found, here, atol=2e-3 * np.abs(here).max())


@pytest.mark.parametrize("memory", [10**7, 10_000])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_scatter_is_that_of_numpy(device, memory, offset):
    rng = np.random.default_rng(0)
    X, code = offset + rng.normal(size=(300, 9)), rng.integers(0, 4, size=300)
    weight = rng.integers(0, 3, size=300).astype(float)
    here = as_rows(X, memory=memory, threads=1)
    rows = DeviceRows(device.array(X), device, memory, 1)
    found = scatter_anywhere(rows, code, weight, 5, DenseColumns(9))
    expected = scatter_of(here, code, weight, 5)
    assert_allclose(found.weight, expected.weight)
    assert_allclose(found.mean, expected.mean, atol=1e-9)
    assert_allclose(found.within, expected.within, rtol=1e-9, atol=1e-7)
    assert found.intensity("auto") == pytest.approx(expected.intensity("auto"), rel=1e-6)


def test_rows_come_in_parts_from_a_device(device):
    X, y = _data()
    here, there = MaxiMinDA(2, random_state=0), MaxiMinDA(2, random_state=0)
    for part in (slice(0, 150), slice(150, N)):
        here.partial_fit(X[part], y[part], classes=[0, 1, 2])
        there.partial_fit(device.array(X[part]), device.array(y[part]), classes=[0, 1, 2])
    expected = here.transform(X)
    assert_allclose(to_numpy(there.transform(device.array(X))), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("estimator", "named"),
    [
        (MaxMarginDA(solver="direct"), "solver='direct'"),
        (MaxMarginDA(solver="core"), "solver='core'"),
        (MaxMarginDA(loss="hinge"), "loss='hinge'"),
        (MaxMarginDA(fit_intercept=False), "fit_intercept=False"),
        (MaxMarginDA(kernel=np.dot), "kernel='callable'"),
        (MaxiMinDA(kernel=np.dot), "kernel='callable'"),
        (KernelFisherDA(kernel="precomputed"), "kernel='precomputed'"),
    ],
)
def test_what_is_not_there_says_so_and_what_to_do(device, estimator, named):
    X, y = _data()
    with pytest.raises(ValueError, match=rf"{named}.*device='cpu'"):
        estimator.fit(device.array(X), y)


def test_a_projection_without_a_device_says_so(device):
    X, y = _data()
    with pytest.raises(TypeError, match=r"cannot work; pass a NumPy array"):
        LocalFisherDA().fit(device.array(X), device.array(y))


def test_directions_in_all_of_the_space_need_room_for_it(device):
    X = np.random.default_rng(0).normal(size=(60, 50))
    y = (X[:, 0] > 0).astype(int)
    with pytest.raises(ValueError, match=r"50 columns.*raise memory"):
        MaxMarginDA(solver="span", memory=20_000).fit(device.array(X), y)
