"""The exact machine on a device is that of this machine."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from widemargin import MarginClassifier
from widemargin.balls import device_exact, device_squares
from widemargin.device import is_device_array, to_numpy
from widemargin.qp import margin_batch

N = 500


def _data(n_classes=2, n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    noisy = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=n)
    return X, np.digitize(noisy, [0.0, 0.7, 1.2][: n_classes - 1])


def _machine(**others):
    given = {"engine": "exact", "C": 3.0, "decision_function_shape": "ovo", "n_jobs": 1}
    return MarginClassifier(**given | others)


@pytest.fixture(params=["shared", "batches", "one by one"])
def way(request, monkeypatch):
    """How problems are solved: on values of all rows, or of two classes, in batches or not."""
    if request.param != "shared":
        init = device_exact.DeviceExact.__init__

        def alone(self, *arguments):
            init(self, *arguments)
            self.shared = False
            self.groups = self._groups()

        monkeypatch.setattr(device_exact.DeviceExact, "__init__", alone)
    if request.param == "one by one":
        monkeypatch.setattr(device_exact, "_SMALL", 10)
        monkeypatch.setattr(margin_batch, "_WORTH_A_START", 100)
    return request.param


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("multi_class", ["auto", "ovr"])
@pytest.mark.usefixtures("way")
def test_machines_are_those_of_this_machine(device, n_classes, multi_class):
    X, y = _data(n_classes)
    here = _machine(multi_class=multi_class, tol=1e-11).fit(X, y)
    for tol, primal, values in ((1e-3, 1e-3, 0.1), (1e-8, 1e-8, 1e-5)):
        there = _machine(multi_class=multi_class, tol=tol)
        there.fit(device.array(X), device.array(y))
        assert there.engine_ == "exact" and there.multi_class_ == here.multi_class_
        found = there.decision_function(device.array(X))
        assert is_device_array(found)
        assert_allclose(to_numpy(found), here.decision_function(X), atol=values)
        assert_allclose(there.decision_function(X), to_numpy(found), atol=1e-9)
        proved = there.certificate_
        assert proved.gap <= tol and proved.scope == "full"
        assert_allclose(proved.primal, here.certificate_.primal, rtol=primal)
        assert proved.dual <= here.certificate_.primal * (1 + 1e-5)
        assert proved.n_vectors == len(there.support_)
        assert_array_equal(there.support_vectors_, X[there.support_])
    assert_array_equal(there.support_, here.support_)
    assert_allclose(there.dual_coef_, here.dual_coef_, atol=1e-4)
    assert_allclose(there.intercept_, here.intercept_, atol=1e-5)
    if n_classes > 2 and multi_class == "auto":
        assert_array_equal(there.n_support_, here.n_support_)


@pytest.mark.usefixtures("way")
def test_weights_copies_and_class_weights_count(device):
    X, y = _data(3)
    rng = np.random.default_rng(1)
    copies = np.repeat(np.arange(N), rng.integers(0, 3, size=N))
    X, y = X[copies], y[copies]
    weight = rng.uniform(0.1, 2.0, size=len(X)) * (rng.uniform(size=len(X)) > 0.1)
    given = {"tol": 1e-9, "class_weight": {0: 2.0, 1: 0.5, 2: 1.0}}
    here = _machine(**given).fit(X, y, weight)
    there = _machine(**given).fit(device.array(X), y, device.array(weight))
    assert_allclose(there.decision_function(X), here.decision_function(X), atol=1e-4)
    assert_allclose(there.certificate_.primal, here.certificate_.primal, rtol=1e-8)


@pytest.mark.parametrize(
    ("kernel", "others"),
    [
        ("linear", {}),
        ("poly", {"coef0": 1.0, "degree": 2}),
        ("laplacian", {}),
        ("exponential", {"gamma": 0.3}),
    ],
)
def test_kernels(device, kernel, others):
    X, y = _data(3)
    here = _machine(kernel=kernel, tol=1e-9, **others).fit(X, y)
    there = _machine(kernel=kernel, tol=1e-9, **others).fit(device.array(X), y)
    assert_allclose(there.decision_function(X), here.decision_function(X), atol=1e-4)


def test_rows_of_float32_are_solved_in_float32(device):
    X, y = _data(3)
    X = X.astype(np.float32)
    here = _machine(C=0.1).fit(X, y)
    there = _machine(C=0.1).fit(device.array(X), y)
    assert there.support_vectors_.dtype == np.float32
    assert there.certificate_.gap <= 1e-3
    assert_allclose(there.certificate_.primal, here.certificate_.primal, rtol=1e-3)
    assert_allclose(there.decision_function(X), here.decision_function(X), atol=2e-2)


@pytest.mark.usefixtures("way")
def test_what_float32_hides_is_found_in_float64(device):
    X, y = _data(3)
    there = _machine(C=1e4, tol=1e-4).fit(device.array(X), y)
    here = _machine(C=1e4, tol=1e-8).fit(X, y)
    assert there.certificate_.gap <= 1e-4
    assert_allclose(there.certificate_.primal, here.certificate_.primal, rtol=1e-4)


def test_no_room_for_float64_is_said(device):
    X, y = _data(2)
    # Room for the kernel values and factors of float32 only.
    with pytest.warns(ConvergenceWarning, match="precision"):
        there = _machine(C=1e5, memory=int(4 * 3.1 * N**2 / 0.9)).fit(device.array(X), y)
    assert there.certificate_.gap > 1e-3 and there.engine_ == "exact"


def test_a_start_leaves_little_to_do(device):
    X, y = _data(3)
    there = _machine(warm_start=True, tol=1e-8).fit(device.array(X), y)
    values = there.decision_function(X)
    there.set_params(C=3.1).fit(device.array(X), y)
    here = _machine(C=3.1, tol=1e-10).fit(X, y)
    assert np.abs(there.decision_function(X) - values).max() > 1e-4
    assert_allclose(there.decision_function(X), here.decision_function(X), atol=1e-4)


def test_memory_that_is_too_small_says_so(device):
    X, y = _data(2)
    machine = _machine(memory="1MB")
    with pytest.raises(ValueError, match=r"engine='exact' needs .* 500 rows .*engine='span'"):
        machine.fit(device.array(X), y)
    assert not hasattr(machine, "engine_") and not hasattr(machine, "support_")


def test_memory_for_pairs_only(device, monkeypatch):
    X, y = _data(4)
    made = []
    whole = device_squares.DeviceSquares.make_whole
    monkeypatch.setattr(
        device_squares.DeviceSquares, "make_whole", lambda self: made.append(whole(self))
    )
    here = _machine(tol=1e-9).fit(X, y)
    size = np.sort(np.bincount(y))[-2:].sum()
    there = _machine(tol=1e-9, memory=int(8 * 3.2 * size**2 / 0.9)).fit(device.array(X), y)
    assert not made
    assert_allclose(there.decision_function(X), here.decision_function(X), atol=1e-4)


def test_limits_leave_a_valid_machine(device, way):
    X, y = _data(4)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        there = _machine(max_time=1e-9).fit(device.array(X), y)
    assert there.certificate_.gap == 1.0
    assert there.decision_function(X).shape == (N, 6)
    if way != "one by one":
        return
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        there = _machine(max_iter=1).fit(device.array(X), y)
    assert there.decision_function(X).shape == (N, 6) and there.certificate_.gap == 1.0


def test_an_interrupt_leaves_what_is_there(device, monkeypatch):
    X, y = _data(4)
    # A problem a step.
    monkeypatch.setattr(device_exact, "_SHARE_OF_ROWS", 1e-12)
    calls, solve = [], device_exact.solve_margin_batch

    def interrupted(*args, **others):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return solve(*args, **others)

    monkeypatch.setattr(device_exact, "solve_margin_batch", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        there = _machine(C=0.1).fit(device.array(X), y)
    assert (there.intercept_ != 0).sum() == 3 and there.certificate_.stopped == "interrupted"


def test_verbose_prints_a_line_a_step(device, capsys):
    X, y = _data(4)
    _machine(verbose=1).fit(device.array(X), y)
    assert len(capsys.readouterr().out.splitlines()) >= 2


def test_a_budget_of_vectors_is_not_there(device):
    X, y = _data()
    with pytest.raises(ValueError, match=r"max_vectors=20.*engine='span'"):
        _machine(max_vectors=20).fit(device.array(X), y)
