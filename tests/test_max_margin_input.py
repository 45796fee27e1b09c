"""What `MaxMarginDA` is fed with: weights, labels, codes, storage, kernels and odd data."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from tests.reference.max_margin_ways import (
    GAMMA,
    KERNEL_SOLVERS,
    WAYS,
    every_kernel_solver,
    every_way,
)
from tests.reference.max_margin_ways import (
    da as _da,
)
from tests.reference.max_margin_ways import (
    digits as _digits,
)
from tests.reference.max_margin_ways import (
    fine as _fine,
)
from tests.reference.max_margin_ways import (
    wine as _wine,
)
from tests.reference.mmda import assert_valid, from_kernel
from widemargin.kernels import RBF
from widemargin.span import LeverageVectors

# Weights.


@every_way
def test_weight_k_is_the_same_as_k_copies(way):
    X, y = _wine()
    k = np.random.default_rng(0).integers(0, 4, size=len(X))
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), k))
    weighted = _da(3, way, gamma="scale").fit(X, y, sample_weight=k)
    copied = _da(3, way, gamma="scale").fit(X[copies], y[copies])
    assert_allclose(weighted.transform(X), copied.transform(X), atol=1e-8)
    assert_allclose(weighted.intercept_, copied.intercept_, atol=1e-8)
    for name in ("margin", "training_error", "primal", "dual"):
        assert_allclose(weighted.directions_[name], copied.directions_[name], rtol=1e-7)


@every_way
def test_rows_of_weight_zero_are_left_out(way):
    X, y = _wine()
    weight = (np.arange(len(X)) % 3 > 0).astype(float)
    kept = weight > 0
    # A label that only rows without weight have is no class.
    labels = np.where(kept, y, 7)
    with_zeros = _da(2, way, gamma="mean_distance").fit(X, labels, sample_weight=weight)
    without = _da(2, way, gamma="mean_distance").fit(X[kept], y[kept])
    assert_array_equal(with_zeros.classes_, [0, 1, 2])
    assert_allclose(with_zeros.transform(X), without.transform(X), atol=1e-8)


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


def test_bad_weights_are_refused_by_name():
    X, y = _wine()
    one = np.ones(len(X))
    for weight in (-one, one * np.nan, one[:5], 0 * one, one * np.inf, np.c_[one, one]):
        with pytest.raises(ValueError, match=r"(?i)sample.weight"):
            _da().fit(X, y, sample_weight=weight)


# Reproducibility.


@every_way
def test_the_order_of_the_rows_does_not_matter(way):
    X, y = _wine()
    order = np.random.default_rng(5).permutation(len(X))
    straight = _da(3, way).fit(X, y)
    shuffled = _da(3, way).fit(X[order], y[order])
    assert_allclose(shuffled.transform(X), straight.transform(X), atol=1e-7)
    if straight.kernel != "linear":
        assert set(order[shuffled.support_]) == set(straight.support_)


@pytest.mark.parametrize(
    ("way", "across"),
    [*((way, "problem") for way in WAYS), *((way, "all") for way in [*KERNEL_SOLVERS, "linear"])],
)
def test_one_seed_gives_the_same_bits_for_any_number_of_threads(way, across):
    X, y = _digits(3, 537)  # more than a block of rows
    first = _da(2, way, n_jobs=1, across=across).fit(X, y)
    for n_jobs in (1, 2) if across == "problem" else (2,):
        again = _da(2, way, n_jobs=n_jobs, across=across).fit(X, y)
        assert_array_equal(again.transform(X), first.transform(X))
        for name in ("margin", "primal", "dual"):
            assert_array_equal(again.directions_[name], first.directions_[name])


@pytest.mark.parametrize("way", ["span", "core"])
def test_another_seed_gives_other_vectors(way):
    X, y = _digits(4, 700)
    first, other = (_da(1, way, random_state=seed).fit(X, y) for seed in (0, 1))
    assert set(first.support_) != set(other.support_)


# Labels.


@pytest.mark.parametrize(
    "names",
    [
        ["first", "second", "third"],
        ["größer", "日本", "naïve"],
        np.array(["a", "b", "c"], dtype=object),
        [-7, 0, 3],
        [2**40, 2**41, 2**42],
        [-1.0, 0.0, 1.0],
    ],
    ids=["strings", "unicode", "objects", "negative", "large", "floats"],
)
@pytest.mark.parametrize("way", ["deflation", "span", "linear"])
def test_labels_of_any_type_give_the_features_of_their_numbers(way, names):
    X, y = _wine()
    names = np.array(names)
    rank = np.argsort(np.argsort(names))
    model = _da(2, way).fit(X, names[y])
    expected = _da(2, way).fit(X, rank[y])
    assert_array_equal(model.transform(X), expected.transform(X))
    assert_array_equal(model.classes_, np.sort(names))
    assert_array_equal(model.directions_["problem"], np.repeat(np.sort(names), 2))
    first = np.sort(names)[0]
    assert list(model.get_feature_names_out()[:2]) == [f"maxmarginda_{first}_{i}" for i in (1, 2)]


def test_bool_labels_are_two_classes_and_the_feature_grows_towards_the_second():
    X, y = make_moons(80, noise=0.1, random_state=0)
    model = _fine(3, gamma=1.0).fit(X, y == 1)
    assert list(model.get_feature_names_out()) == [f"maxmarginda_True_{i}" for i in (1, 2, 3)]
    features = model.transform(X)
    assert features[y == 1, 0].mean() > features[y == 0, 0].mean()
    swapped = _fine(3, gamma=1.0).fit(X, y == 0)
    # The other class in front turns the first direction round, and so all others.
    assert_allclose(swapped.transform(X), -features, atol=1e-6)


# Ways to store the rows.


@every_way
def test_any_storage_of_dense_rows_gives_the_same_bits(way, tmp_path):
    X, y = _wine()
    expected = _da(2, way).fit_transform(X, y)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")  # read-only
    for stored in (np.asfortranarray(X), mapped, np.repeat(X, 2, axis=0)[::2]):
        assert_array_equal(_da(2, way).fit(stored, y).transform(stored), expected)


@every_way
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float32])
def test_every_number_type_gives_the_features_of_the_same_numbers(way, dtype):
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:40].astype(dtype), y[:40]
    parameters = {"gamma": 1e-3, "C": 1.0 if "hinge" in way else 0.01}
    exact = _fine(2, way, **parameters).fit(X.astype(np.float64), y).transform(X)
    model = _fine(2, way, **parameters).fit(X, y)
    # float32 rows may keep float32 kernel values; these are whole numbers, so they lose little.
    assert_allclose(model.transform(X), exact, atol=1e-4)


@every_way
def test_sparse_rows_equal_dense_ones(way):
    X, y = _digits(3, 90)
    stored = sparse.csr_array(X)
    stored.indices, stored.indptr = stored.indices.astype(np.int64), stored.indptr.astype(np.int64)
    dense = _fine(2, way).fit(X, y)
    model = _fine(2, way).fit(stored, y)
    assert_allclose(model.transform(stored), dense.transform(X), atol=1e-5)
    assert_allclose(model.transform(X), model.transform(stored), atol=1e-9)
    if model.kernel == "linear":
        assert_allclose(model.components_, dense.components_, atol=1e-5)
    else:
        assert sparse.issparse(model.vectors_)
        assert_array_equal(model.vectors_.toarray(), X[model.support_])


@pytest.mark.parametrize("way", ["span", "core", "linear", "linear deflation", "linear core"])
def test_a_small_memory_budget_gives_the_same_features(way):
    X, y = _digits(3, 300)
    # The span is fitted in another order, and agrees as far as it is solved.
    model = _fine(2, way) if way == "span" else _da(2, way)
    plain = model.fit_transform(X, y)
    small = model.set_params(memory="1MB").fit_transform(X, y)
    assert_allclose(small, plain, atol=1e-5 if way == "span" else 1e-8)


def test_a_core_that_does_not_fit_into_memory_ends_with_a_valid_model_and_a_warning():
    X, y = _digits(3, 300)
    model = _da(2, "core", memory="100kB")
    with pytest.warns(ConvergenceWarning, match=r"memory.*relative gap of"):
        model.fit(X, y)
    assert_valid(model, X, y)


# Kernels.


@every_kernel_solver
def test_a_precomputed_kernel_equals_the_kernel_itself(way):
    X, y = _digits(3, 120)
    K = rbf_kernel(X, gamma=GAMMA)
    named = _fine(2, way).fit(X[:80], y[:80])
    given = _fine(2, way, kernel="precomputed").fit(K[:80, :80], y[:80])
    expected = named.transform(X)
    assert_allclose(given.transform(K[:, :80]), expected, atol=1e-5)
    values = K[:, :80][:, given.support_] @ given.coef_.T
    assert_allclose(given.transform(K[:, :80]), values, atol=1e-9)
    assert_allclose(
        given.coef_ @ K[np.ix_(given.support_, given.support_)] @ given.coef_.T * np.eye(6),
        np.eye(6),
        atol=1e-8,
    )
    stored = clone(given).fit(sparse.csr_array(K[:80, :80]), y[:80])
    assert_allclose(
        stored.transform(sparse.csr_array(K[:, :80])), given.transform(K[:, :80]), atol=1e-9
    )


def test_a_precomputed_kernel_must_be_square_and_symmetric():
    X, y = _wine()
    with pytest.raises(ValueError, match=r"precomputed.*square.*\(89, 13\)"):
        _da(kernel="precomputed").fit(X, y)
    lopsided = rbf_kernel(X, gamma=GAMMA)
    lopsided[3, 5] += 1.0
    with pytest.raises(ValueError, match=r"precomputed.*symmetric"):
        _da(kernel="precomputed").fit(lopsided, y)


@every_kernel_solver
def test_a_function_or_a_kernel_object_equals_the_name(way):
    X, y = _wine(3)
    named = _fine(2, way).fit_transform(X, y)
    function = _fine(2, way, kernel=rbf_kernel, kernel_params={"gamma": GAMMA})
    assert_allclose(function.fit_transform(X, y), named, atol=1e-5)
    assert_allclose(_fine(2, way, kernel=RBF(gamma=GAMMA)).fit_transform(X, y), named, atol=1e-9)


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
@pytest.mark.parametrize("factor", [1e-150, 1e-8, 1e4, 1e8, 1e150])
def test_linear_directions_of_any_scale_are_right_or_an_error(way, factor):
    X, y = _wine()
    model = _da(2, way, max_time=5.0)
    try:
        model.fit(X * factor, y)
    except ValueError as error:
        assert re.search(r"no direction.*C too small|kernel|cale X|large values", str(error))
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


@every_way
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_missing_and_infinite_values_are_refused(way, value):
    X, y = _wine()
    model = _da(1, way).fit(X, y)
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        model.transform(bad)
    with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
        _da(1, way).fit(bad, y)


# Codes.


def test_codes_decide_who_is_on_which_side():
    X, y = _wine()
    codes = np.array([[1, -1], [1, 1], [-1, 1]])
    model = _fine(2, codes=codes).fit(X, y)
    assert_array_equal(model.codes_, codes)
    assert_array_equal(model.directions_["problem"], [0, 0, 1, 1])
    assert list(model.get_feature_names_out()) == [
        "maxmarginda_code0_1",
        "maxmarginda_code0_2",
        "maxmarginda_code1_1",
        "maxmarginda_code1_2",
    ]
    K = rbf_kernel(X, gamma=GAMMA)
    for p in range(2):
        expected = from_kernel(K, codes[y, p], 1.0, 2)
        assert_allclose(model.transform(X)[:, 2 * p : 2 * p + 2], expected.features, atol=1e-6)


@every_way
def test_the_codes_of_one_against_the_rest_are_the_default(way):
    X, y = _wine()
    plain = _da(2, way).fit(X, y)
    assert_array_equal(plain.codes_, 2 * np.eye(3) - 1)
    coded = _da(2, way, codes=(2 * np.eye(3) - 1).tolist()).fit(X, y)
    assert_array_equal(coded.transform(X), plain.transform(X))


@pytest.mark.parametrize("n_classes", [2, 3, 5, 10])
def test_random_codes_are_different_problems_that_a_seed_decides(n_classes):
    X, y = _digits(n_classes, 200)
    tables = [
        _da(1, "linear", codes="random", random_state=seed).fit(X, y).codes_ for seed in range(4)
    ]
    for codes in tables:
        # Two classes have one problem only; three have three.
        assert codes.shape == (n_classes, 1 if n_classes == 2 else n_classes)
        assert set(np.unique(codes)) == {-1.0, 1.0}
        products = np.abs(codes.T @ codes)
        assert (products[~np.eye(len(products), dtype=bool)] < n_classes).all()
        assert (np.abs(codes.sum(axis=0)) < n_classes).all()
    again = _da(1, "linear", codes="random", random_state=2).fit(X, y)
    assert_array_equal(again.codes_, tables[2])
    if n_classes > 3:
        assert not np.array_equal(tables[0], tables[1])
    assert again.transform(X).shape == (len(X), tables[2].shape[1])


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ("ecoc", r"codes='ecoc'.*'random'"),
        (np.ones((3, 2)), r"column 0 of codes.*one side"),
        (np.array([[1, 1], [-1, 1], [1, 1]]), r"column 1 of codes.*one side"),
        (
            np.array([[1, -1], [1, -1]]),
            r"codes must have a row for each of the 3 classes.*\(2, 2\)",
        ),
        (np.array([1, -1, 1]), r"codes must have a row for each.*\(3,\)"),
        (np.empty((3, 0)), r"codes must have.*\(3, 0\)"),
        (np.array([[1, 0], [-1, 1], [1, -1]]), r"codes must hold −1 and 1 only"),
        (np.array([[1, np.nan], [-1, 1], [1, -1]]), r"codes must hold −1 and 1 only"),
        ([["a"], ["b"], ["c"]], "codes"),
        (7, "codes"),
    ],
    ids=str,
)
def test_codes_that_are_none_are_refused_with_a_reason(codes, message):
    X, y = _wine()
    with pytest.raises((ValueError, TypeError), match=message):
        _da(codes=codes).fit(X, y)
