"""Rows that are hardly there: as small as numbers can be, or all the same."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from tests.reference.data import groups
from tests.reference.projection_ways import LPP
from widemargin import KernelFisherDA, LocalFisherDA, MaxiMinDA, PairwiseAccuracyDA

# Numbers below 2.2e-308 have fewer digits the smaller they are.
SUBNORMAL = {
    "pairwise": PairwiseAccuracyDA(),
    "pairwise shrunk": PairwiseAccuracyDA(shrinkage="auto"),
    "local fisher": LocalFisherDA(),
    "local fisher plain": LocalFisherDA(embedding="plain", shrinkage=None),
    "preserving": LPP(),
    "preserving supervised": LPP(supervised=True, affinity="binary"),
    "maxi-min": MaxiMinDA(),
    "maxi-min hard": MaxiMinDA(1, sharpness=float("inf"), shrinkage="auto"),
    "maxi-min stream": MaxiMinDA(1, sharpness=1.0, shrinkage=0.1),
}


def _fitted(way, X, y):
    model = clone(SUBNORMAL[way]).set_params(random_state=0)
    return model.partial_fit(X, y).finalize() if "stream" in way else model.fit(X, y)


@pytest.mark.parametrize("size", [1e-310, 1e-320])
@pytest.mark.parametrize("way", SUBNORMAL)
def test_directions_of_subnormal_rows_would_be_infinite_and_are_refused(way, size):
    X, y = groups(3, 3, 60)
    with pytest.raises(ValueError, match=r"X has values so close.*scale X"):
        _fitted(way, X * size, y)


@pytest.mark.parametrize("way", SUBNORMAL)
def test_the_smallest_rows_that_can_be_divided_by_are_answered(way):
    X, y = groups(3, 3, 60)
    size = 2.0**-1015
    plain = _fitted(way, X, y).transform(X)
    small = _fitted(way, X * size, y).transform(X * size)
    assert_allclose(np.abs(small), np.abs(plain), rtol=1e-5, atol=1e-6 * np.abs(plain).max())


def test_orthonormal_directions_are_of_any_size():
    X, y = groups(3, 3, 60)
    model = LocalFisherDA(embedding="orthonormalized")
    plain = model.fit(X, y).components_
    assert_allclose(model.fit(X * 1e-310, y).components_, plain, atol=1e-6)


# Rows that are all the same.

KERNELS = ["linear", "rbf", "poly", "laplacian", "sigmoid", "normalized_poly", "cosine_power"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("value", [1.0, 0.1, 1 / 3, 123.456, 7e10])
@pytest.mark.parametrize("solver", ["kernel", "span"])
def test_constant_rows_have_no_direction_whatever_their_rounding(kernel, value, solver):
    model = KernelFisherDA(kernel=kernel, solver=solver, gamma=0.5, coef0=0.3, random_state=0)
    for n, d in ((6, 2), (700, 3)):  # more than a block of rows
        X, y = np.full((n, d), value), np.arange(n) % 3
        weight = np.random.default_rng(0).uniform(0.1, 3.0, n)
        for s in (None, weight):
            with pytest.raises(ValueError, match=r"same mean.*no direction separates"):
                model.fit(X, y, sample_weight=s)


@pytest.mark.parametrize("model", [PairwiseAccuracyDA(), MaxiMinDA()], ids=str)
@pytest.mark.parametrize("kernel", KERNELS)
def test_constant_rows_have_no_direction_in_a_span(model, kernel):
    model.set_params(kernel=kernel, gamma=0.5, coef0=0.3, n_vectors=5, random_state=0)
    for value in (0.1, 123.456):
        X, y = np.full((700, 3), value), np.arange(700) % 3
        weight = np.random.default_rng(0).uniform(0.1, 3.0, 700)
        with pytest.raises(ValueError, match=r"same mean.*no direction separates"):
            model.fit(X, y, sample_weight=weight)


def test_rows_that_a_kernel_cannot_tell_apart_have_no_direction_either():
    # Multiples of one row: the cosine kernel does not see their length.
    length = np.random.default_rng(0).uniform(0.5, 2.0, 300)
    X, y = np.outer(length, [0.1, 0.2, 0.7]), np.arange(300) % 2
    with pytest.raises(ValueError, match=r"same mean.*no direction separates"):
        KernelFisherDA(kernel="cosine_power").fit(X, y)
    # A kernel that does sees a difference, however small it is.
    model = KernelFisherDA(kernel="linear").fit(X + 1e-6 * y[:, None], y)
    assert np.isfinite(model.transform(X)).all()
