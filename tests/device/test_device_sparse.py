"""Sparse machines of rows on a device are those of this machine."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from widemargin import MarginClassifier, SparseMarginClassifier
from widemargin.device import DeviceRows, device_of, pulled_there, to_numpy
from widemargin.kernels import make_kernel
from widemargin.problem import Problem, one_vs_rest
from widemargin.rows import as_rows
from widemargin.sparse.marginal import VectorSpan
from widemargin.sparse.squared_marginal import Squared

KERNELS = {
    "rbf": {"gamma": 0.4},
    "inverse_squared_distance": {"gamma": 0.4},
    "linear": {},
    "poly": {"gamma": 0.3, "coef0": 1.0, "degree": 3},
    "sigmoid": {"gamma": 0.3, "coef0": 0.5},
}


def _data(n=240, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)) + 2.0
    bends = np.sin(2.0 * X[:, 0]) + X[:, 1] - 2.0
    return X, np.digitize(bends, [0.0, 0.7][: n_classes - 1])


def _problem(rows, y, kernel):
    table = one_vs_rest(int(y.max()) + 1)
    return Problem.of(rows, kernel, y, table, np.linspace(0.5, 1.5, len(y)), 3.0)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("memory", [10**7, 10**4], ids=["at once", "in blocks"])
def test_the_gradient_is_that_of_the_kernel(device, name, memory):
    rng, kernel = np.random.default_rng(1), make_kernel(name, **KERNELS[name])
    X, Z, beta = _data()[0], rng.normal(size=(5, 3)) + 2.0, rng.normal(size=(5, 2))
    pull = rng.normal(size=(len(X), 2))
    active = np.arange(3, len(X), 2)
    rows = DeviceRows(device.array(X), device, memory, 1)
    found = pulled_there(rows, kernel, Z, beta, pull, active)
    expected = kernel.gradient(X[active], Z, pull[active] @ beta.T)
    assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("memory", [10**7, 10**4], ids=["kept", "made again"])
def test_features_are_those_of_this_machine(device, memory):
    X = _data()[0]
    kernel, Z = make_kernel("rbf", gamma=0.4), X[:6]
    here = VectorSpan(as_rows(X, memory=10**7, threads=1), kernel).whitened(Z, with_one=True)
    rows = DeviceRows(device.array(X), device, memory, 1)
    there = VectorSpan(rows, kernel).whitened(Z, with_one=True)
    rng, some = np.random.default_rng(2), np.array([5, 1, 200])
    points, weight = rng.normal(size=(2, 7)), rng.uniform(size=(2, len(X)))
    ours, theirs = here.features, there.features
    assert (theirs.whole() is None) == (memory == 10**4)
    assert theirs.shape == ours.shape
    assert_allclose(theirs.products(points), ours.products(points), atol=1e-9)
    assert_allclose(theirs.sums(weight), ours.sums(weight), atol=1e-9)
    assert_allclose(theirs.here(some), ours.here(some), atol=1e-10)
    assert_allclose(
        to_numpy(theirs.some(theirs.block(some), np.array([2, 0]))),
        ours.here(some)[[2, 0]],
        atol=1e-10,
    )
    assert_allclose(
        theirs.curved(theirs.block(some), weight[0, :3]),
        ours.curved(ours.block(some), weight[0, :3]),
        atol=1e-10,
    )
    if memory == 10**7:
        assert_allclose(theirs.whole(), ours.whole(), atol=1e-10)


@pytest.mark.parametrize("name", [name for name in KERNELS if name != "sigmoid"])
def test_the_marginal_function_and_its_gradient_are_those_of_this_machine(device, name):
    X, y = _data(n_classes=3)
    kernel = make_kernel(name, **KERNELS[name])
    Z = X[:4] + 0.1
    here = Squared(_problem(as_rows(X, memory=10**7, threads=1), y, kernel))(Z)
    there = Squared(_problem(DeviceRows(device.array(X), device, 10**7, 1), y, kernel))(Z)
    assert there.value == pytest.approx(here.value, rel=1e-8)
    assert there.dual == pytest.approx(here.dual, rel=1e-8)
    size = np.abs(here.gradient).max()
    assert_allclose(there.gradient, here.gradient, rtol=1e-5, atol=1e-5 * size)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize(
    "others",
    [
        {"n_vectors": 4},
        {"n_vectors": 4, "share_vectors": True, "n_classes": 3},
        {"n_vectors": 4, "grow": "double"},
        {"n_vectors": 0.1},
        {"n_vectors": 4, "init": "reduced_set"},
        {"n_vectors": 4, "init": "random", "kernel": "poly", "degree": 2, "coef0": 1.0},
    ],
    ids=str,
)
def test_a_sparse_machine_is_as_good_as_here_and_answers_where_rows_are(device, loss, others):
    others = dict(others)
    X, y = _data(n_classes=others.pop("n_classes", 2))
    machine = SparseMarginClassifier(loss=loss, tol=1e-3, random_state=0, n_jobs=1, **others)
    here, there = clone(machine).fit(X, y), machine.fit(device.array(X), device.array(y))
    # The steps of both differ by rounding, and rounding grows from step to step.
    assert there.certificate_.primal == pytest.approx(here.certificate_.primal, rel=2e-2)
    assert_allclose(there.history_[0][0], here.history_[0][0], rtol=1e-5)
    assert there.certificate_.gap <= 1e-5
    assert isinstance(there.expansion_vectors_, np.ndarray)
    answers = there.decision_function(device.array(X))
    assert device_of(answers) == device
    assert_allclose(to_numpy(answers), there.decision_function(X), atol=1e-8)
    again = pickle.loads(pickle.dumps(there))
    assert_array_equal(again.predict(X), to_numpy(there.predict(device.array(X))))
    if machine.grow:
        assert list(there.accuracy_curve_["n_vectors"]) == list(here.accuracy_curve_["n_vectors"])


def test_a_machine_that_has_no_time_is_a_valid_one(device):
    X, y = _data()
    machine = SparseMarginClassifier(5, max_time=1e-9, random_state=0)
    with pytest.warns(Warning, match="max_time"):
        machine.fit(device.array(X), y)
    assert np.isfinite(to_numpy(machine.decision_function(device.array(X)))).all()


@pytest.mark.parametrize("kernel", ["laplacian", "normalized_poly"])
def test_a_kernel_without_a_gradient_there_is_refused_by_name(device, kernel):
    X, y = _data()
    with pytest.raises(ValueError, match=rf"kernel='{kernel}'.*device='cpu'"):
        SparseMarginClassifier(3, kernel=kernel).fit(device.array(X), y)


def test_fewer_vectors_come_near_a_machine_of_many(device):
    X, y = _data(800)
    there = device.array(X)
    few = SparseMarginClassifier(8, C=10.0, loss="squared_hinge", random_state=0).fit(there, y)
    many = MarginClassifier(C=10.0, engine="span", max_vectors=200, random_state=0).fit(there, y)
    assert few.score(there, y) > many.score(there, y) - 0.03
