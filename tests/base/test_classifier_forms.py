"""What every classifier promises: any form of rows and kernels, copies of itself, pipelines."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from tests.reference.classifier_ways import (
    CELLS,
    KINDS,
    REDUCED,
    SEARCHES,
    SPARSE,
    SVMS,
    WAYS,
    every,
    fitted,
    machine,
    takes,
)
from tests.reference.data import digits, whole_digits
from tests.reference.svm import leeway
from widemargin import Certificate
from widemargin.kernels import RBF

# A few steps are enough here.
pytestmark = pytest.mark.filterwarnings(
    r"ignore:Sparse\w+ stopped before its rule.*\(max_iter=\d+ reached"
)

GIVEN = ["core", "ball", "exact", "span of all rows", "search"]


def _sharp(way):
    """Parameters for an answer so sharp that it can be compared."""
    return {"tol": 1e-2 if way == "ball" else 1e-8} if takes(way, "tol") else {}


# Kernels.


@every(GIVEN)
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_precomputed_kernel_equals_the_kernel_itself(way, as_stored):
    X, y = digits(3, 140)
    new = X[100:]
    copies = np.concatenate([np.arange(80), np.arange(30), np.arange(20)])
    X, y = X[copies], y[copies]
    weight = np.random.default_rng(0).exponential(size=len(X))
    weight[::7] = 0.0
    tol = 1e-3 if way == "ball" else 1e-8
    named = machine(way, gamma=0.05, tol=tol).fit(X, y, sample_weight=weight)
    given = machine(way, kernel="precomputed", tol=tol)
    given.fit(as_stored(rbf_kernel(X, gamma=0.05)), y, sample_weight=weight)
    values = given.decision_function(as_stored(rbf_kernel(new, X, gamma=0.05)))
    close = {"ball": 2e-2, "core": 1e-6, "exact": 1e-6}.get(way, 1e-3)
    assert_allclose(values, named.decision_function(new), atol=close)


@every([way for way in WAYS if way not in SEARCHES and not way.startswith("reduced set")])
def test_a_kernel_object_equals_its_name(way):
    X, y = digits(3, 90)
    named = machine(way, gamma=0.05).fit(X, y).decision_function(X)
    thing = machine(way, kernel=RBF(gamma=0.05)).fit(X, y)
    assert_allclose(thing.decision_function(X), named, atol=1e-9)


@every(SVMS, CELLS, SEARCHES, ["reduced svm"])
def test_a_function_equals_the_name_of_its_kernel(way):
    X, y = digits(3, 90)
    named = machine(way, gamma=0.05, **_sharp(way)).fit(X, y)
    function = machine(way, kernel=rbf_kernel, kernel_params={"gamma": 0.05}, **_sharp(way))
    function.fit(X, y)
    close = {"ball": leeway(named, function), "core": 1e-6, "exact": 1e-6} if way in SVMS else {}
    values = function.decision_function(X)
    assert_allclose(values, named.decision_function(X), atol=close.get(way, 1e-4))
    stored = clone(function).fit(sparse.csr_array(X), y)
    # A function is given sparse rows as they are.
    close = close.get(way, 1e-3)
    assert_allclose(stored.decision_function(sparse.csr_array(X)), values, atol=close)


@every(SPARSE, ["reduced svm again"])
def test_a_kernel_without_a_gradient_is_refused_with_a_remedy(way):
    X, y = digits(2, 40)
    with pytest.raises(ValueError, match=r"kernel=.*rbf_kernel.*no gradient.*use|method='rsvm'"):
        machine(way, kernel=rbf_kernel).fit(X, y)
    with pytest.raises(ValueError, match=r"kernel='precomputed'"):
        machine(way, kernel="precomputed").fit(rbf_kernel(X), y)


@every(["core", "ball", "exact", "span"])
def test_a_grid_search_cuts_a_precomputed_kernel_both_ways(way):
    X, y = digits(3, 150)
    grid = {"C": [0.001, 1.0]}
    scores = [
        GridSearchCV(estimator, grid, cv=3).fit(rows, y).cv_results_["mean_test_score"]
        for estimator, rows in (
            (machine(way, gamma=0.05), X),
            (machine(way, kernel="precomputed"), rbf_kernel(X, gamma=0.05)),
        )
    ]
    assert_allclose(*scores, atol=0.01)
    assert scores[0][1] > 0.9


@every(KINDS)
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_the_words_for_gamma_mean_what_brute_force_says(way, as_stored):
    X, y = digits(3, 60)
    k = np.random.default_rng(0).integers(0, 4, size=len(X))
    for weight, rows in ((None, X), (k, np.repeat(X, k, axis=0))):
        pairs = ((rows[:, None, :] - rows[None, :, :]) ** 2).sum(axis=2)
        expected = {
            "scale": SVC(gamma="scale").fit(rows, np.arange(len(rows)) % 2)._gamma,
            "mean_distance": 1.0 / pairs.mean(),
            "auto": 1.0 / X.shape[1],
            0.25: 0.25,
        }
        if way == "reduced set":
            del expected["mean_distance"]  # of which SVC knows nothing
        for gamma, value in expected.items():
            found = machine(way, gamma=gamma).fit(as_stored(X), y, sample_weight=weight)
            found = getattr(found, "best_estimator_", found)
            assert_allclose(found.gamma_, value, rtol=1e-10)


# Ways to store the rows.


@every()
def test_fortran_order_lists_and_files_on_disk_give_the_same_answer(way, tmp_path):
    X, y = digits(3, 90)
    expected = fitted(way).decision_function(X)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    frozen = X.copy()
    frozen.setflags(write=False)
    strided = np.repeat(X, 2, axis=0)[::2]
    for stored in (np.asfortranarray(X), mapped, frozen, strided, X.tolist()):
        assert_array_equal(machine(way).fit(stored, y).decision_function(stored), expected)


@every(KINDS)
def test_integers_and_half_precision_give_the_answer_of_the_same_numbers(way):
    X, y = whole_digits(3, 75)
    expected = machine(way).fit(X, y)
    for dtype in (np.int8, np.int16, np.int32, np.int64, np.uint8, np.float16):
        found = machine(way).fit(X.astype(dtype), y)
        if getattr(expected, "support_", None) is not None:
            assert_array_equal(found.support_, expected.support_)
        values = found.decision_function(X.astype(dtype))
        assert_allclose(values, expected.decision_function(X), atol=1e-12)


@every()
def test_single_precision_rows_give_nearly_the_values_of_double(way):
    X, y = digits(3, 90)  # sixteenths: the same numbers in both
    double = machine(way, gamma=0.05, **_sharp(way)).fit(X, y)
    single = machine(way, gamma=0.05, **_sharp(way)).fit(X.astype(np.float32), y)
    values = single.decision_function(X.astype(np.float32))
    assert values.dtype == np.float64
    assert_allclose(values, single.decision_function(X), atol=1e-4)
    close = {"core": 1e-3, "exact": 1e-3, "cells": 1e-6, "cells in spans": 5e-3}.get(way, 1e-2)
    assert_allclose(values, double.decision_function(X), atol=close)
    _assert_same_cells(double, single)


def _assert_same_cells(one, two):
    if hasattr(one, "cell_centers_"):
        assert_array_equal(two.cell_centers_, one.cell_centers_)


@pytest.mark.parametrize(
    ("way", "index"),
    # SVC takes narrow indices only.
    [
        (way, i)
        for way in WAYS
        for i in (np.int32, np.int64)
        if (way != "reduced set" or i is np.int32) and way != "scaled"
    ],
)
def test_sparse_rows_equal_dense_ones(way, index):
    X, y = digits(3, 90)
    stored = sparse.csr_array(X)
    stored.indices, stored.indptr = stored.indices.astype(index), stored.indptr.astype(index)
    dense = machine(way, gamma=0.05, **_sharp(way)).fit(X, y)
    found = machine(way, gamma=0.05, **_sharp(way)).fit(stored, y)
    values = found.decision_function(stored)
    assert_allclose(values, found.decision_function(X), atol=1e-9)
    assert_allclose(values, dense.decision_function(X), atol=1e-6)
    _assert_same_cells(dense, found)
    if way in SVMS or way in CELLS:
        assert sparse.issparse(found.support_vectors_)
        if found.support_ is not None:
            assert_array_equal(found.support_vectors_.toarray(), X[found.support_])
    if way in SPARSE or way in REDUCED:
        assert isinstance(found.expansion_vectors_, np.ndarray)
        assert found.expansion_vectors_.dtype == np.float64


@every()
def test_a_fit_does_not_change_its_arguments(way):
    X, y = digits(3, 60)
    weight, before = np.ones(60), (X.copy(), y.copy())
    found = machine(way, **{"max_time": 60.0} if takes(way, "max_time") else {})
    parameters = found.get_params(deep=False)
    found.fit(X, y, sample_weight=weight)
    assert_array_equal(X, before[0])
    assert_array_equal(y, before[1])
    assert_array_equal(weight, 1.0)
    assert found.get_params(deep=False) == parameters


@every(KINDS)
def test_names_of_features_are_kept_and_checked(way):
    pandas = pytest.importorskip("pandas")
    X, y = digits(2, 60)
    frame = pandas.DataFrame(X, columns=[f"länge {j}" for j in range(64)])
    found = machine(way).fit(frame, y)
    assert list(found.feature_names_in_) == list(frame.columns)
    assert found.n_features_in_ == 64
    assert_array_equal(found.decision_function(frame), fitted(way, 2).decision_function(X))
    with pytest.raises(ValueError, match="feature names"):
        found.predict(frame[frame.columns[::-1]])


# Storing machines.


@every()
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
def test_a_stored_machine_gives_the_same_bits(way, as_stored):
    X, y = digits(3, 90)
    if as_stored is np.asarray:
        found, expected = fitted(way), fitted(way).decision_function(X)
    else:
        other = {"kernel": "laplacian", "class_weight": "balanced"}
        other = other if way in SVMS | CELLS | SPARSE else {}
        found = machine(way, **other).fit(as_stored(X), np.array(["a", "b", "c"])[y])
        expected = found.decision_function(X)
    copies = [pickle.loads(pickle.dumps(found))]
    assert str(copies[0].get_params()) == str(found.get_params())
    if way not in SEARCHES:
        skops = pytest.importorskip("skops.io")
        stored = skops.dumps(found)
        unknown = skops.get_untrusted_types(data=stored)
        # Nothing of the fitted state is foreign to skops except our own classes.
        assert all(name.startswith(("widemargin.", "scipy.sparse.")) for name in unknown)
        copies.append(skops.loads(stored, trusted=unknown))
    for copy in copies:
        assert_array_equal(copy.decision_function(X), expected)
        assert_array_equal(copy.predict(X), found.predict(X))
        if hasattr(found, "certificate_"):
            assert copy.certificate_ == found.certificate_
            assert str(copy.certificate_) == str(found.certificate_)
        assert getattr(copy, "engine_", None) == getattr(found, "engine_", None)


@every([way for way in WAYS if way not in SEARCHES])
def test_the_fitted_state_is_plain_arrays_numbers_and_strings(way):
    found = fitted(way)
    plain = (np.ndarray, np.generic, int, float, str, bool, type(None), Certificate)
    state = {name: value for name, value in vars(found).items() if name not in found.get_params()}
    assert {"intercept_", "classes_", "gamma_"} <= set(state)
    for name, value in state.items():
        for each in value if isinstance(value, list) else [value]:
            assert isinstance(each, plain), name
            assert not (isinstance(each, np.ndarray) and each.dtype == object), name


@every()
def test_a_clone_is_unfitted_and_fits_alike(way):
    X, y = digits(3, 90)
    found = machine(way, C=3.0, gamma="scale" if way == "reduced set" else "mean_distance")
    twin = clone(found.fit(X, y))
    assert not hasattr(twin, "classes_")
    assert str(twin.get_params()) == str(found.get_params())
    assert_array_equal(twin.fit(X, y).decision_function(X), found.decision_function(X))


@every()
def test_a_second_fit_leaves_nothing_of_the_first_behind(way):
    X, y = digits(3, 90)
    found = machine(way).fit(X[:, :20], y == 1)
    again = found.fit(X, y)
    assert_array_equal(again.decision_function(X), fitted(way).decision_function(X))
    assert set(vars(again)) == set(vars(fitted(way)))


# With the rest of scikit-learn.


@every(["core", "ball", "exact", "span", "cells", "squared", "reduced svm"])
def test_the_classifier_works_in_a_pipeline_and_a_grid_search(way):
    X, y = load_breast_cancer(return_X_y=True)
    more = {"n_vectors": 20} if way == "reduced svm" else {}
    pipeline = make_pipeline(StandardScaler(), machine(way, **more))
    name = type(WAYS[way]).__name__.lower()
    grid = {f"{name}__C": [1e-4, 1.0], f"{name}__kernel": ["rbf", "laplacian"]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X[:300], y[:300])
    assert search.best_params_[f"{name}__C"] == 1.0
    assert search.best_score_ > 0.93


@every(["core", "ball", "exact", "span", "cells"])
def test_calibration_turns_decision_values_into_probabilities(way):
    X, y = digits(3, 300)
    calibrated = CalibratedClassifierCV(machine(way), ensemble=False, cv=3)
    probability = calibrated.fit(X[:200], y[:200]).predict_proba(X[200:])
    assert_allclose(probability.sum(axis=1), 1.0)
    assert (probability.argmax(axis=1) == y[200:]).mean() > 0.95
    assert probability.max(axis=1).mean() > 0.8
