"""Estimators take arrays of a device, and answer with such."""

import pickle
import tempfile

import numpy as np
import pytest
import sklearn
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from widemargin import (
    CoreVectorClassifier,
    LocalFisherDA,
    MarginClassifier,
    MarginClassifierCV,
    SpanMap,
)
from widemargin.cells import ExactSizes
from widemargin.cells.engine_choice import ChoiceOptions, TrialSizes, choose_engine
from widemargin.device import DeviceRows, device_of, is_device_array, to_numpy
from widemargin.kernels import RBF
from widemargin.problem import Problem, one_vs_rest
from widemargin.rows import as_rows

N = 600


def _data(n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 4))
    return X, np.digitize(np.sin(2 * X[:, 0]) + X[:, 1], [0.0, 0.7][: n_classes - 1])


def _machine(**others):
    given = {"engine": "span", "max_vectors": 40, "C": 10.0, "random_state": 0, "n_jobs": 1}
    return MarginClassifier(**given | others)


@pytest.fixture(params=[False, True], ids=["without dispatch", "with dispatch"])
def dispatch(request, monkeypatch):
    """scikit-learn's switch, which must make no difference."""
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=request.param):
        yield request.param


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.usefixtures("dispatch")
def test_answers_are_those_of_this_machine_on_the_device_of_the_rows(
    device, n_classes, multi_class
):
    X, y = _data(n_classes)
    X_there, y_there = device.array(X), device.array(y)
    for shape in ("ovr", "ovo"):
        there = _machine(multi_class=multi_class, decision_function_shape=shape)
        here = clone(there).fit(X, y)
        there.fit(X_there, y_there)
        for method in ("decision_function", "predict"):
            expected, found = getattr(here, method)(X), getattr(there, method)(X_there)
            assert device_of(found) == device
            assert found.dtype == device.dtype(expected.dtype)
            assert_allclose(to_numpy(found), expected, atol=0.02)
        assert there.score(X_there, y_there) == pytest.approx(here.score(X, y), abs=0.005)
        assert_array_equal(there.support_, here.support_)
        assert there.certificate_.gap <= 1e-3


@pytest.mark.parametrize("engine", ["span", "exact", "cells"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_certificate_is_that_of_this_machine(device, engine, dtype, n_classes):
    X, y = _data(n_classes)
    X = X.astype(dtype)
    limits = {"max_vectors": 40 if engine == "span" else "auto", "cells": 150}
    machine = _machine(engine=engine, tol=2e-5, multi_class="ovr", **limits)
    here, there = clone(machine).fit(X, y), machine.fit(device.array(X), y)
    for name in ("primal", "dual"):
        expected, found = (getattr(each.certificate_, name) for each in (here, there))
        assert_allclose(found, expected, rtol=1e-4)


def test_decision_values_of_one_machine_are_the_same_everywhere(device):
    X, y = _data(3)
    machine = _machine().fit(X, y)
    expected = machine.decision_function(X)
    assert_allclose(to_numpy(machine.decision_function(device.array(X))), expected, atol=1e-9)
    single = to_numpy(machine.decision_function(device.array(X.astype(np.float32))))
    assert_allclose(single, machine.decision_function(X.astype(np.float32)), atol=1e-5)


def test_what_was_fitted_there_answers_here(device):
    X, y = _data()
    machine = _machine().fit(device.array(X), device.array(y))
    expected = to_numpy(machine.decision_function(device.array(X)))
    stored = skops.io.dumps(machine)
    trusted = skops.io.get_untrusted_types(data=stored)
    assert all(name.startswith("widemargin.") for name in trusted)
    for loaded in (pickle.loads(pickle.dumps(machine)), skops.io.loads(stored, trusted=trusted)):
        assert isinstance(loaded.support_vectors_, np.ndarray)
        found = loaded.decision_function(X)
        assert isinstance(found, np.ndarray)
        assert_allclose(found, expected, atol=1e-9)
        assert_allclose(to_numpy(loaded.decision_function(device.array(X))), expected, atol=1e-9)


def test_labels_of_text_stay_numpy(device):
    X, y = _data()
    machine = _machine().fit(device.array(X), np.array(["no", "yes"])[y])
    found = machine.predict(device.array(X))
    assert isinstance(found, np.ndarray) and set(found) == {"no", "yes"}
    assert machine.score(device.array(X), np.array(["no", "yes"])[y]) > 0.8


def test_weights_count_as_copies_do(device):
    X, y = _data()
    weight = np.random.default_rng(1).integers(0, 3, size=N)
    heavy = _machine(tol=1e-6).fit(device.array(X), y, device.array(weight.astype(float)))
    copies = np.repeat(np.arange(N), weight)
    many = _machine(tol=1e-6).fit(device.array(X[copies]), y[copies])
    assert_allclose(
        to_numpy(heavy.decision_function(device.array(X))),
        to_numpy(many.decision_function(device.array(X))),
        atol=1e-4,
    )


def test_device_cpu_works_with_numpy_and_gives_back_what_came(device):
    X, y = _data(3)
    for engine in ("exact", "cells", "span"):
        there = _machine(engine=engine, device="cpu", max_vectors="auto")
        here = clone(there).fit(X, y)
        there.fit(device.array(X), device.array(y))
        found = there.decision_function(device.array(X))
        assert device_of(found) == device
        assert_array_equal(to_numpy(found), here.decision_function(X))
        assert device_of(there.predict(device.array(X))) == device


def _pixels(X):
    return np.clip(np.round(30 * X + 128), 0, 255).astype(np.uint8)


def _mapped(X):
    """Rows of a file are read block by block."""
    with tempfile.TemporaryFile() as file:
        mapped = np.memmap(file, dtype=X.dtype, shape=X.shape)
    mapped[...] = X
    return mapped


@pytest.mark.parametrize(
    "stored", [np.asarray, np.asfortranarray, sparse.csr_array, _pixels, _mapped]
)
@pytest.mark.parametrize("memory", ["auto", 2_000_000])
def test_a_named_device_takes_numpy_and_gives_numpy(stored, memory):
    torch = pytest.importorskip("torch")
    name = "cuda" if torch.cuda.is_available() else "cpu:0"
    X, y = _data(3)
    X = stored(X)
    here = _machine(memory=memory).fit(X, y)
    there = _machine(memory=memory, device=name).fit(X, y)
    found = there.decision_function(X)
    assert isinstance(found, np.ndarray) and isinstance(there.predict(X), np.ndarray)
    assert_allclose(found, here.decision_function(X), atol=0.02)
    assert_array_equal(there.support_, here.support_)
    assert type(there.support_vectors_) is type(here.support_vectors_)


def _chosen(rows, y):
    """Return the engine for a problem, with sizes that make each of them possible."""
    code = np.asarray(y, dtype=np.intp)
    order = np.random.default_rng(0).permutation(len(code))
    rows, code = rows.subset(order), code[order]
    stated = Problem.of(rows, RBF(4.0), code, one_vs_rest(3), np.ones(len(code)), 10.0)
    sizes = ExactSizes(always=700, work=1e5, share=0.0, most_if_better=100)
    trial = TrialSizes(least_rows=1000, learn_share=0.5, vectors=30, cell=40)
    return choose_engine(
        stated, ChoiceOptions(exact_sizes=sizes, trial=trial, memory=10**9, threads=1)
    )


def test_auto_chooses_as_on_this_machine(device):
    X = np.random.default_rng(0).uniform(-2.0, 2.0, size=(2000, 2))
    noise = np.random.default_rng(1).normal(size=2000)
    smooth = np.digitize(X[:, 0] + X[:, 1] + noise, [-0.5, 0.5])
    checked = np.floor(3 * X).sum(axis=1) % 3
    chosen = []
    for n, y in ((600, smooth), (2000, smooth), (2000, checked)):
        there = _chosen(DeviceRows(device.array(X[:n]), device, 10**9, 1), y[:n])
        here = _chosen(as_rows(X[:n], memory=10**9, threads=1), y[:n])
        assert (there.engine, there.size) == (here.engine, here.size)
        chosen.append(there.engine)
    assert chosen == ["exact", "span", "cells"]


def test_auto_is_exact_where_rows_are_few(device):
    X, y = _data()
    machine = MarginClassifier(random_state=0, tol=1e-6).fit(device.array(X), device.array(y))
    here = MarginClassifier(random_state=0, tol=1e-6).fit(X, y)
    assert machine.engine_ == here.engine_ == "exact"
    found = to_numpy(machine.decision_function(device.array(X)))
    assert_allclose(found, here.decision_function(X), atol=1e-3)


def test_auto_does_not_choose_what_does_not_fit(device):
    X, y = _data()
    machine = MarginClassifier(random_state=0, memory=3_000_000)
    assert machine.fit(device.array(X), y).engine_ == "span"


@pytest.mark.parametrize(
    ("parameters", "named"),
    [
        ({"engine": "exact"}, "max_vectors=40"),
        ({"engine": "auto", "loss": "hinge", "max_vectors": "auto"}, "loss='hinge'"),
        ({"kernel": "precomputed"}, "kernel='precomputed'"),
        ({"kernel": np.dot}, "kernel='callable'"),
    ],
)
def test_what_is_not_there_says_so_and_what_to_do(device, parameters, named):
    X, y = _data()
    machine = _machine().fit(device.array(X), y)
    fitted = dict(vars(machine))
    machine.set_params(**parameters)
    with pytest.raises(ValueError, match=rf"{named}.*device='cpu'"):
        machine.fit(device.array(X), y)
    assert all(vars(machine)[name] is fitted[name] for name in fitted if name.endswith("_"))


@pytest.mark.parametrize("estimator", [CoreVectorClassifier(), LocalFisherDA(kernel="rbf")])
def test_an_estimator_without_a_device_says_so(device, estimator):
    X, y = _data()
    with pytest.raises(TypeError, match=r"cannot work; pass a NumPy array"):
        estimator.fit(device.array(X), device.array(y))


def test_bad_rows_are_named(device):
    X, y = _data()
    machine = _machine().fit(device.array(X), y)
    for bad in (np.nan, np.inf):
        wrong = X.copy()
        wrong[3, 1] = bad
        with pytest.raises(ValueError, match="NaN or infinity"):
            machine.fit(device.array(wrong), y)
        with pytest.raises(ValueError, match="NaN or infinity"):
            machine.predict(device.array(wrong))
    with pytest.raises(ValueError, match="must be a matrix"):
        machine.fit(device.array(X[:, 0]), y)
    with pytest.raises(ValueError, match="minimum of 2"):
        machine.fit(device.array(X[:1]), y[:1])
    with pytest.raises(ValueError, match="0 feature"):
        machine.fit(device.array(X[:, :0]), y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        machine.fit(device.array(X), y[:-1])
    with pytest.raises(ValueError, match="is expecting 4 features"):
        machine.predict(device.array(X[:, :3]))
    with pytest.raises(ValueError, match="requires y"):
        machine.fit(device.array(X), None)
    with pytest.raises(TypeError, match="device=3"):
        clone(machine).set_params(device=3).fit(X, y)


def test_whole_numbers_are_rows_too(device):
    X, y = _data()
    whole = np.round(10 * X).astype(np.int64)
    here, there = _machine().fit(whole, y), _machine().fit(device.array(whole), y)
    assert_allclose(
        to_numpy(there.decision_function(device.array(whole))),
        here.decision_function(whole),
        atol=0.02,
    )


def test_a_search_finds_what_it_finds_here(device):
    X, y = _data()
    search = MarginClassifierCV(
        [0.1, 10.0], [0.1, 1.0], cv=3, kernels=None, engine="span", max_vectors=40, random_state=0
    )
    here = clone(search).fit(X, y)
    there = search.fit(device.array(X), device.array(y))
    assert there.best_params_ == here.best_params_
    assert there.best_score_ == pytest.approx(here.best_score_, abs=0.005)
    assert device_of(there.predict(device.array(X))) == device
    assert is_device_array(there.decision_function(device.array(X)))
    assert isinstance(there.predict(X), np.ndarray)
    assert there.score(device.array(X), device.array(y)) > 0.8
    with pytest.raises(ValueError, match=r"engine='cells'.*device='cpu'"):
        search.set_params(engine="cells").fit(device.array(X), y)


@pytest.mark.parametrize("vectors", ["random", "kmeans", "leverage", "core"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_of_a_span_are_those_of_this_machine(device, vectors, dtype):
    X, y = _data()
    X = X.astype(dtype)
    there = SpanMap(20, vectors=vectors, random_state=0, n_jobs=1)
    here = clone(there).fit(X, y)
    there.fit(device.array(X), device.array(y))
    found = there.transform(device.array(X))
    assert device_of(found) == device and found.dtype == device.dtype(dtype)
    assert_allclose(to_numpy(found), here.transform(X), atol=1e-4)
    assert isinstance(there.transform(X), np.ndarray)


def test_vectors_move_once(device):
    from widemargin.device import kept

    X, y = _data()
    machine = _machine().fit(X, y)
    before = len(kept._copies)
    for _ in range(3):
        machine.predict(device.array(X))
    assert len(kept._copies) == before + 1
    del machine
    assert len(kept._copies) == before
