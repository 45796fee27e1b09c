"""What `MaxMarginDA` is fed with: weights, kernels, memory and odd data."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from tests.reference.max_margin_ways import (
    GAMMA,
    KERNEL_SOLVERS,
    WAYS,
    every_kernel_solver,
    every_way,
)
from tests.reference.max_margin_ways import da as _da
from tests.reference.max_margin_ways import digits as _digits
from tests.reference.max_margin_ways import fine as _fine
from tests.reference.max_margin_ways import wine as _wine
from tests.reference.mmda import assert_valid, from_kernel
from widemargin.span import LeverageVectors


@every_way
def test_class_weights_are_sample_weights(way):
    X, y = _wine()
    factor = {0: 0.5, 1: 2.0, 2: 3.0}
    by_class = _da(2, way, class_weight=factor).fit(X, y)
    by_row = _da(2, way).fit(X, y, sample_weight=np.array([0.5, 2.0, 3.0])[y])
    assert_allclose(by_class.transform(X), by_row.transform(X), atol=1e-8)
    plain = _da(2, way).fit(X, y)
    assert np.abs(by_class.transform(X) - plain.transform(X)).max() > 1e-3
    balanced = _da(2, way, class_weight="balanced").fit(X, y)
    even = len(y) / (3 * np.bincount(y))
    expected = _da(2, way).fit(X, y, sample_weight=even[y])
    assert_allclose(balanced.transform(X), expected.transform(X), atol=1e-8)


@pytest.mark.parametrize("way", [*KERNEL_SOLVERS, "linear"])
def test_across_all_problems_one_seed_gives_the_same_bits_for_any_number_of_threads(way):
    X, y = _digits(3, 537)  # more than a block of rows
    first, again = (_da(2, way, n_jobs=n_jobs, across="all").fit(X, y) for n_jobs in (1, 2))
    assert_array_equal(again.transform(X), first.transform(X))
    for name in ("margin", "primal", "dual"):
        assert_array_equal(again.directions_[name], first.directions_[name])


@pytest.mark.parametrize("way", ["span", "core"])
def test_another_seed_gives_other_vectors(way):
    X, y = _digits(4, 700)
    first, other = (_da(1, way, random_state=seed).fit(X, y) for seed in (0, 1))
    assert set(first.support_) != set(other.support_)


def test_bool_labels_are_two_classes_and_the_feature_grows_towards_the_second():
    X, y = make_moons(80, noise=0.1, random_state=0)
    model = _fine(3, gamma=1.0).fit(X, y == 1)
    assert list(model.get_feature_names_out()) == [f"maxmarginda_True_{i}" for i in (1, 2, 3)]
    features = model.transform(X)
    assert features[y == 1, 0].mean() > features[y == 0, 0].mean()
    swapped = _fine(3, gamma=1.0).fit(X, y == 0)
    # The other class in front turns the first direction round, and so all others.
    assert_allclose(swapped.transform(X), -features, atol=1e-6)


@pytest.mark.parametrize("way", ["span", "core", "linear", "linear deflation", "linear core"])
def test_a_small_memory_budget_gives_the_same_features(way):
    X, y = _digits(3, 537)
    # The span is fitted in another order, and agrees as far as it is solved. There is room for the
    # matrices of so many vectors, but not for the kernel values of all rows.
    model = _fine(2, way, max_vectors=40) if way == "span" else _da(2, way)
    plain = model.fit_transform(X, y)
    small = model.set_params(memory="320kB" if way == "span" else "1MB").fit_transform(X, y)
    assert_allclose(small, plain, atol=1e-5 if way == "span" else 1e-8)


def test_a_span_that_has_no_room_for_all_vectors_says_so():
    X, y = _digits(3, 300)
    model = _da(2, "span", max_vectors=200).fit(X, y)
    assert len(model.vectors_) == 200
    assert not any("memory" in stopped for stopped in model.directions_["stopped"])
    small = model.set_params(memory="320kB").fit(X, y)
    most = len(small.vectors_)
    assert 20 < most < 200
    assert_valid(small, X, y)
    for stopped in small.directions_["stopped"]:
        assert re.search(r"memory leaves room for \d+ of 200 vectors", stopped)


def test_a_core_that_does_not_fit_into_memory_ends_with_a_valid_model_and_a_warning():
    X, y = _digits(3, 300)
    model = _da(2, "core", memory="100kB")
    with pytest.warns(ConvergenceWarning, match=r"memory.*relative gap of"):
        model.fit(X, y)
    assert_valid(model, X, y)


# Kernels.


@every_kernel_solver
def test_directions_of_a_precomputed_kernel_are_orthonormal_sums_of_training_rows(way):
    X, y = _digits(3, 120)
    K = rbf_kernel(X, gamma=GAMMA)
    given = _fine(2, way, kernel="precomputed").fit(K[:80, :80], y[:80])
    values = K[:, :80][:, given.support_] @ given.coef_.T
    assert_allclose(given.transform(K[:, :80]), values, atol=1e-9)
    gram = given.coef_ @ K[np.ix_(given.support_, given.support_)] @ given.coef_.T
    assert_allclose(gram * np.eye(6), np.eye(6), atol=1e-8)


def test_a_precomputed_kernel_must_be_symmetric():
    X, y = _wine()
    lopsided = rbf_kernel(X, gamma=GAMMA)
    lopsided[3, 5] += 1.0
    with pytest.raises(ValueError, match=r"precomputed.*symmetric"):
        _da(kernel="precomputed").fit(lopsided, y)


@pytest.mark.parametrize(
    ("kernel", "function"),
    [
        ("laplacian", lambda A, B: laplacian_kernel(A, B, gamma=GAMMA)),
        ("poly", lambda A, B: polynomial_kernel(A, B, degree=2, gamma=GAMMA, coef0=1.0)),
        ("cosine_power", lambda A, B: _cosine(A, B) ** 2),
    ],
)
@every_kernel_solver
def test_other_kernels_have_orthonormal_directions_of_the_oracle(way, kernel, function):
    X, y = _wine(3)
    model = _fine(3, way, kernel=kernel, degree=2, coef0=1.0).fit(X, y)
    gram = model.coef_ @ function(model.vectors_, model.vectors_) @ model.coef_.T
    for p in range(3):
        own = slice(3 * p, 3 * p + 3)
        assert_allclose(gram[own, own], np.eye(3), atol=1e-7)
        sign = np.where(y == p, 1.0, -1.0)
        expected = from_kernel(function(X, X), sign, 1.0, 3)
        assert_allclose(model.transform(X)[:, own], expected.features, atol=1e-4)


def _cosine(A, B):
    lengths = np.linalg.norm(A, axis=1)[:, None] * np.linalg.norm(B, axis=1)
    return A @ B.T / lengths


def test_a_strategy_object_equals_its_name():
    X, y = _wine()
    named = _da(2, "span", vectors="leverage").fit_transform(X, y)
    assert_array_equal(_da(2, "span", vectors=LeverageVectors()).fit_transform(X, y), named)


# Odd data.


@every_way
def test_constant_columns_say_nothing(way):
    X, y = _wine(3)
    wide = np.column_stack([np.zeros(len(X)), X, np.zeros(len(X))])
    expected = _fine(2, way).fit_transform(X, y)
    assert_allclose(_fine(2, way).fit_transform(wide, y), expected, atol=1e-5)
    if WAYS[way].get("kernel") != "linear":
        wide[:, 0] = 1e3
        assert_allclose(_fine(2, way).fit_transform(wide, y), expected, atol=1e-4)


@every_way
def test_copies_with_contradicting_labels_are_weighed_against_each_other(way):
    X, y = _wine()
    X2, y2 = np.concatenate([X, X[:9]]), np.concatenate([y, (y[:9] + 1) % 3])
    # The hinge, whose bias is free, soon finds a constant as good.
    model = _da(1 if "hinge" in way else 2, way).fit(X2, y2)
    assert_valid(model, X2, y2)
    assert model.directions_["training_error"].max() > 0


@every_way
def test_one_row_a_class_is_enough(way):
    X = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 4.0]])
    y = np.array(["a", "b", "c"])
    model = _fine(1, way, gamma=0.5, C=10.0).fit(X, y)
    assert_valid(model, X, y)
    features = model.transform(X)
    assert_array_equal(features.argmax(axis=0), [0, 1, 2])


@every_way
def test_two_rows_are_enough(way):
    X, y = np.array([[1.0], [-1.0]]), np.array([1, 0])
    model = _fine(1, way, gamma=1.0).fit(X, y)
    first, second = model.transform(X)[:, 0]
    assert first == pytest.approx(-second, abs=1e-5)
    assert first > 0


@every_kernel_solver
@pytest.mark.parametrize(("factor", "gamma"), [(1e-8, "scale"), (1e8, "mean_distance")])
def test_the_scale_of_the_rows_does_not_matter_to_relative_widths(way, factor, gamma):
    X, y = _wine(3)
    plain = _fine(2, way, gamma=gamma).fit_transform(X, y)
    scaled = _fine(2, way, gamma=gamma).fit_transform(X * factor, y)
    assert_allclose(scaled, plain, atol=1e-5)


@pytest.mark.parametrize("way", ["linear", "linear deflation", "linear core", "linear hinge"])
@pytest.mark.parametrize("factor", [1e-150, 1e-8, 1e4, 1e8, 1e150, 1e200])
def test_linear_directions_of_any_scale_are_right_or_an_error(way, factor):
    X, y = _wine()
    model = _da(2, way, max_time=5.0)
    try:
        model.fit(X * factor, y)
    except ValueError as error:
        known = (
            r"no direction.*C too small|not positive definite|scale X|before it had found a direct"
        )
        assert re.search(known, str(error))
    except UserWarning as warning:
        assert re.search("gap|Fewer than", str(warning))
    else:
        assert_valid(model, X * factor, y)
        if way != "linear core":
            assert model.directions_["gap"].max() <= 2e-3


@every_way
@pytest.mark.parametrize("C", [1e-6, 1e3, 1e6])
def test_any_C_from_a_millionth_to_a_million_is_solved_to_the_gap(way, C):
    X, y = _digits(2, 50)
    # So small a C gains little over a constant, and a second direction nothing.
    model = _da(1 if C < 0.1 else 2, way, C=C, tol=1e-6, epsilon=1e-8).fit(X, y)
    assert_valid(model, X, y)
    if "core" not in way:
        assert model.directions_["gap"].max() <= 2e-6


def test_a_C_too_small_for_the_tolerance_is_an_error_that_says_so():
    X, y = _digits(2, 80)
    with pytest.raises(ValueError, match=r"no direction.*C too small"):
        _da(1, C=1e-9).fit(X, y)


@pytest.mark.parametrize("share", [2, 3], ids=["balanced", "unbalanced"])
@every_way
def test_rows_that_are_all_equal_are_an_error(way, share):
    # With unbalanced classes a machine of the squared hinge has w ≠ 0 all the same, which takes
    # over a part of the bias because that costs ½b². Its feature would be constant.
    y = (np.arange(30) % share == 0).astype(int)
    with pytest.raises(ValueError, match=r"no direction that separates.*rows all equal"):
        _da(2, way, gamma=1.0).fit(np.ones((30, 2)), y)
