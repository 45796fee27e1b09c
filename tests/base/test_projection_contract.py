"""What every projection promises: weights, seeds, labels, any form of rows, copies of itself."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from tests.reference.data import digits, whole_digits, wine
from tests.reference.projection_ways import (
    FISHER,
    KINDS,
    LOCAL,
    MAPS,
    MAX_MARGIN,
    MAXI_MIN,
    WITH_LABELS,
    every,
    fitted,
    projection,
)
from widemargin import Certificate
from widemargin.kernels import RBF

# Kernels, with all rows as vectors: what the span of a few of them is, rounding may decide.
IN_SPANS = {"vectors": "random", "n_vectors": 200}
OF_KERNELS = {
    "deflation": {"tol": 1e-12},
    "direct": {"tol": 1e-12},
    "span": {"tol": 1e-12, "vectors": "random", "max_vectors": 200},
    "core": {"epsilon": 1e-9},
    "hinge": {"tol": 1e-12},
    "maxi-min kernel": {"sharpness": 1.0, "shrinkage": 0.1} | IN_SPANS,
    "pairwise kernel": IN_SPANS,
    "kernel fisher": {},
    "span fisher": IN_SPANS,
    "local fisher kernel": IN_SPANS,
    "preserving kernel": IN_SPANS,
    "map of random": {"n_vectors": 200},
}
every_kernel = every(OF_KERNELS)


def _of_kernel(way, **parameters):
    return projection(way, **{"gamma": 0.2} | OF_KERNELS[way] | parameters)


def _close(way):
    """How near two fits are to each other that are given the same problem in other words."""
    if way in MAXI_MIN:
        return 1e-6
    return 1e-9 if way in LOCAL else 1e-7 if way in FISHER else 1e-8


def _features(model, X, way):
    """Features, without their signs where these are chance."""
    return np.abs(model.transform(X)) if way in MAXI_MIN else model.transform(X)


def _assert_same_features(way, one, two, share):
    """Equal up to a share of the largest, and up to signs; of maps the inner products are."""
    assert one.shape == two.shape
    if way in MAPS:
        one, two = one @ one.T, two @ two.T
    sign = np.sign((one * two).sum(axis=0))
    assert_allclose(sign * one, two, atol=share * np.abs(two).max())


# Weights.


@every()
@pytest.mark.parametrize(
    ("as_stored", "gamma"),
    [(np.asarray, "scale"), (sparse.csr_array, "mean_distance")],
    ids=["dense-scale", "sparse-mean_distance"],
)
def test_weight_k_is_the_same_as_k_copies_and_zero_as_none(way, as_stored, gamma):
    X, y = wine(2)
    k = np.random.default_rng(0).integers(0, 4, size=len(X))
    copies = np.random.default_rng(1).permutation(np.repeat(np.arange(len(X)), k))
    labels = np.where(k > 0, y, 7)  # a label that only rows without weight have is no class
    own = {} if way in LOCAL else {"gamma": gamma}
    weighted = projection(way, **own).fit(as_stored(X), labels, sample_weight=k)
    copied = projection(way, **own).fit(as_stored(X[copies]), y[copies])
    features = _features(weighted, X, way)
    assert_allclose(features, _features(copied, X, way), atol=_close(way))
    for name, rtol in {"criterion_": 1e-8, "intercept_": 1e-7, "gamma_": 1e-12}.items():
        if hasattr(copied, name):
            assert_allclose(getattr(weighted, name), getattr(copied, name), rtol=rtol, atol=1e-8)
    for name in ("margin", "training_error", "primal", "dual") if way in MAX_MARGIN else ():
        assert_allclose(weighted.directions_[name], copied.directions_[name], rtol=1e-7)
    assert getattr(weighted, "sharpness_", 0) == getattr(copied, "sharpness_", 0)
    if hasattr(copied, "classes_"):
        assert_array_equal(weighted.classes_, [0, 1, 2])
    for name in ("support_", "component_indices_"):
        if getattr(weighted, name, None) is not None:
            assert (k[getattr(weighted, name)] > 0).all()
    if way not in MAPS:
        unweighted = projection(way, **own).fit(as_stored(X[k > 0]), y[k > 0])
        assert np.abs(_features(unweighted, X, way) - features).max() > 1e-3


# Reproducibility.


@every()
def test_one_seed_gives_the_same_bits_for_any_number_of_threads(way):
    X, y = digits(3, 537)  # more than a block of rows
    first, again = (projection(way, n_jobs=n, memory="16MB").fit(X, y) for n in (1, 2))
    assert_array_equal(again.transform(X), first.transform(X))
    for name in ("margin", "primal", "dual") if way in MAX_MARGIN else ():
        assert_array_equal(again.directions_[name], first.directions_[name])


@every()
def test_the_order_of_the_rows_does_not_matter(way):
    X, y = whole_digits(3, 120)  # whole numbers: many distances are the same
    order = np.random.default_rng(5).permutation(len(X))
    own = {"gamma": 1e-3}
    straight = projection(way, **own).fit(X, y)
    shuffled = projection(way, **own).fit(X[order], y[order])
    atol = {**dict.fromkeys(MAX_MARGIN, 1e-7), **dict.fromkeys(LOCAL | MAPS, 1e-8)}.get(way, 1e-6)
    expected = _features(straight, X, way)
    assert_allclose(_features(shuffled, X, way), expected, atol=atol * np.abs(expected).max())
    if getattr(straight, "support_", None) is not None:
        assert set(order[shuffled.support_]) == set(straight.support_)


# Labels.

# All in the order 2, 0, 1.
LABELS = {
    "words": np.array(["zwei", "drei", "eins"]),
    "letters of the world": np.array(["日本", "größer", "naïve"]),
    "objects": np.array(["c", "a", "b"], dtype=object),
    "numbers": np.array([3, -7, 0]),
    "large numbers": np.array([2**42, 2**40, 2**41]),
    "floats": np.array([1.0, -1.0, 0.0]),
}


@every([way for way in KINDS if way in WITH_LABELS])
def test_labels_of_any_type_give_the_features_of_their_numbers(way):
    X, y = wine(2)
    expected = projection(way).fit(X, np.array([2, 0, 1])[y]).transform(X)
    for names in LABELS.values():
        model = projection(way).fit(X, names[y])
        assert_array_equal(model.transform(X), expected)
        if way not in MAPS:
            assert_array_equal(model.classes_, np.sort(names))
        if way in MAX_MARGIN:
            assert_array_equal(model.directions_["problem"], np.repeat(np.sort(names), 2))
            first = [f"maxmarginda_{np.sort(names)[0]}_{i}" for i in (1, 2)]
            assert list(model.get_feature_names_out()[:2]) == first


# Ways to store the rows.


@every()
def test_fortran_order_lists_and_files_on_disk_give_the_same_bits(way, tmp_path):
    X, y = wine(2)
    expected = fitted(way).transform(X)
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")  # read-only
    for stored in (np.asfortranarray(X), mapped, np.repeat(X, 2, axis=0)[::2], X.tolist()):
        assert_array_equal(projection(way).fit(stored, y).transform(stored), expected)


@every()
def test_every_number_type_gives_the_features_of_the_same_numbers(way):
    X, y = whole_digits(3, 75)
    own = {"gamma": 1e-3}
    expected = projection(way, **own).fit(X, y).transform(X)
    size = np.abs(expected).max()
    for dtype in (np.int8, np.uint16, np.int64, np.float16):
        features = projection(way, **own).fit(X.astype(dtype), y).transform(X.astype(dtype))
        assert features.dtype == np.float64
        assert_allclose(features, expected, atol=1e-10 * size)


@every()
def test_single_precision_rows_give_nearly_the_features_of_double(way):
    X, y = digits(3, 90)  # sixteenths: the same numbers in both
    own, share = ({"tol": 1e-12, "epsilon": 1e-9}, 1e-4) if way in MAX_MARGIN else ({}, 1e-3)
    double = projection(way, **own).fit(X, y)
    single = projection(way, **own).fit(X.astype(np.float32), y)
    features = single.transform(X.astype(np.float32))
    assert features.dtype == (np.float64 if way in MAX_MARGIN else np.float32)
    assert single.transform(X).dtype == np.float64
    share = 1e-4 if way in LOCAL else 1e-5 if way in MAPS else share
    # Each round of a metric begins with what the one before has rounded.
    share = 5e-3 if way.startswith("metric") else share
    _assert_same_features(way, features, double.transform(X), share)


@every()
def test_sparse_rows_equal_dense_ones(way):
    X, y = digits(3, 90)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    expected = projection(way).fit(X, y).transform(X)
    for stored in (wide, sparse.csc_matrix(X)):
        model = projection(way).fit(stored, y)
        features = model.transform(stored)
        assert_allclose(model.transform(X), features, atol=1e-9 * np.abs(features).max())
        _assert_same_features(way, features, expected, 1e-6)
        if getattr(model, "support_", None) is not None:
            assert sparse.issparse(model.vectors_)
            assert_array_equal(model.vectors_.toarray(), X[model.support_])


# Kernels.


@every_kernel
def test_a_precomputed_kernel_equals_the_kernel_itself(way):
    X, y = wine(2)
    K = rbf_kernel(X, gamma=0.2)
    expected = _of_kernel(way).fit(X[:60], y[:60]).transform(X)
    given = _of_kernel(way, kernel="precomputed").fit(K[:60, :60], y[:60])
    features = given.transform(K[:, :60])
    _assert_same_features(way, features, expected, 1e-5)
    stored = clone(given).fit(sparse.csr_array(K[:60, :60]), y[:60])
    again = stored.transform(sparse.csr_array(K[:, :60]))
    assert_allclose(again, features, atol=1e-7 * np.abs(features).max())
    weighted = clone(given).fit(K, y, sample_weight=np.arange(len(X)) < 60)
    _assert_same_features(way, weighted.transform(K), features, 1e-5)
    with pytest.raises(ValueError, match=r"precomputed.*square.*\(89, 13\)"):
        _of_kernel(way, kernel="precomputed").fit(X, y)


@every_kernel
def test_a_function_or_a_kernel_object_equals_the_name(way):
    X, y = wine(3)
    named = _of_kernel(way).fit_transform(X, y)
    size = np.abs(named).max()
    function = _of_kernel(way, kernel=rbf_kernel, kernel_params={"gamma": 0.2})
    _assert_same_features(way, function.fit_transform(X, y), named, 1e-5)
    thing = _of_kernel(way, kernel=RBF(gamma=0.2)).fit_transform(X, y)
    assert_allclose(thing, named, atol=1e-9 * size)


# Storing models.


@every()
def test_a_stored_model_gives_the_same_bits(way):
    X, y = wine(2)
    model = projection(way).fit(sparse.csr_array(X), np.array(["a", "b", "c"])[y])
    skops = pytest.importorskip("skops.io")
    stored = skops.dumps(model)
    unknown = skops.get_untrusted_types(data=stored)
    assert all(name.startswith(("widemargin.", "scipy.sparse.")) for name in unknown)
    copies = [pickle.loads(pickle.dumps(model)), skops.loads(stored, trusted=unknown)]
    for copy in copies:
        assert_array_equal(copy.transform(X), model.transform(X))
        assert_array_equal(copy.get_feature_names_out(), model.get_feature_names_out())
        if hasattr(model, "certificate_"):
            assert str(copy.certificate_) == str(model.certificate_)


@every()
def test_the_fitted_state_is_plain_arrays_numbers_and_strings(way):
    model = fitted(way)
    plain = (np.ndarray, np.generic, int, float, str, bool, dict, type(None), Certificate)
    for name, value in vars(model).items():
        if name not in model.get_params() and name not in ("span_map_", "_stream"):
            assert isinstance(value, plain), name


@every()
def test_a_clone_is_unfitted_and_fits_alike(way):
    X, y = wine(2)
    model = projection(way, gamma="mean_distance").fit(X, y)
    twin = clone(model)
    with pytest.raises(NotFittedError, match=type(model).__name__):
        twin.transform(X)
    with pytest.raises(NotFittedError, match=type(model).__name__):
        twin.get_feature_names_out()
    assert twin.get_params() == model.get_params()
    assert_array_equal(twin.fit_transform(X, y), model.transform(X))


@every()
def test_a_second_fit_leaves_nothing_of_the_first_behind(way):
    X, y = wine(2)
    model = projection(way).fit(X[:, :5], y == 1)
    assert_array_equal(model.fit(X, y).transform(X), fitted(way).transform(X))


@every()
def test_features_have_names_and_can_be_a_data_frame(way):
    pandas = pytest.importorskip("pandas")
    X, y = wine(2)
    frame = pandas.DataFrame(X, columns=[f"länge {j}" for j in range(13)])
    model = projection(way).set_output(transform="pandas").fit(frame, y)
    table = model.transform(frame)
    word = type(model).__name__.lower()
    names = list(model.get_feature_names_out())
    assert list(table.columns) == names
    if way in MAX_MARGIN:
        assert names == [f"{word}_{label}_{order}" for label in (0, 1, 2) for order in (1, 2)]
    else:
        assert names == [f"{word}{j}" for j in range(table.shape[1])]
    assert_array_equal(table.to_numpy(), fitted(way).transform(X))
    assert_array_equal(table.index, frame.index)
    assert_array_equal(model.feature_names_in_, frame.columns)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(frame[frame.columns[::-1]])


# Bad input.


@every()
def test_bad_rows_are_refused(way):
    X, y = wine(2)
    for bad in (np.nan, np.inf, -np.inf):
        broken = X.copy()
        broken[3, 1] = bad
        with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
            projection(way).fit(broken, y)
        with pytest.raises(ValueError, match=r"X contains (NaN|infinity)"):
            fitted(way).transform(broken)
    with pytest.raises(ValueError, match=r"features.*13 features"):
        fitted(way).transform(X[:, :5])
    with pytest.raises(ValueError, match="2D array"):
        fitted(way).transform(X[0])
    with pytest.raises(ValueError, match="feature"):
        projection(way).fit(X[:, :0], y)
    one = np.ones(len(X))
    for weight in (-one, one * np.nan, one[:5], 0 * one, one * np.inf, np.c_[one, one]):
        with pytest.raises(ValueError, match=r"(?i)sample.weight|two classes"):
            projection(way).fit(X, y, sample_weight=weight)


@every(WITH_LABELS)
def test_input_that_is_no_classification_problem_is_refused(way):
    X, y = wine(2)
    for rows, labels, pattern in (
        (X, np.zeros_like(y), "(?i)class"),
        (X[:1], y[:1], "sample|class"),
        (X, X[:, 0], "(?i)unknown label type|continuous"),
        (X, None, "y"),
        (X, y[:-1], "inconsistent"),
    ):
        with pytest.raises(ValueError, match=pattern):
            projection(way).fit(rows, labels)


@every()
def test_a_bad_parameter_does_not_harm_a_fitted_model(way):
    X, y = wine(2)
    model = projection(way).fit(X, y)
    with pytest.raises(ValueError, match="memory='much'"):
        model.set_params(memory="much").fit(X * 3, y)
    model.set_params(memory="1GB")
    assert_array_equal(model.transform(X), fitted(way).transform(X))
