"""Output codes: which classes are on which side of a direction."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics.pairwise import rbf_kernel

from tests.reference.max_margin_ways import GAMMA, every_way
from tests.reference.max_margin_ways import da as _da
from tests.reference.max_margin_ways import digits as _digits
from tests.reference.max_margin_ways import fine as _fine
from tests.reference.max_margin_ways import wine as _wine
from tests.reference.mmda import from_kernel

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
