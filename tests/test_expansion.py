"""Functions in the span of a few vectors, at rows that are stored in any way."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from tests.reference.kernels import block as plain_block
from widemargin.expansion import Expansion
from widemargin.kernels import make_kernel
from widemargin.rows import as_rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4)) * (RNG.random((120, 4)) < 0.6)
Z, COEF, INTERCEPT = RNG.normal(size=(30, 4)), RNG.normal(size=(30, 3)), RNG.normal(size=3)


def expected(name="rbf"):
    return plain_block(name, X, Z, gamma=0.5, degree=2, coef0=1.0) @ COEF + INTERCEPT


def made(name="rbf", **changes):
    kernel = make_kernel(name, gamma=0.5, degree=2, coef0=1.0)
    return Expansion(
        **{"kernel": kernel, "vectors": Z, "coef": COEF, "intercept": INTERCEPT} | changes
    )


@pytest.mark.parametrize("name", ["rbf", "linear", "poly", "laplacian"])
@pytest.mark.parametrize("stored", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize(("memory", "threads"), [(100, 1), (100, 3), (10**8, 2)])
def test_values_are_sums_over_the_vectors(name, stored, memory, threads):
    rows = as_rows(stored(X), memory=memory, threads=threads)
    np.testing.assert_allclose(made(name).values(rows), expected(name), atol=1e-12)
    index = np.array([100, 3, 50])
    some = made(name).values(rows, index)
    np.testing.assert_allclose(some, expected(name)[index], atol=1e-12)
    view = rows.subset(index)
    np.testing.assert_allclose(made(name).values(view), some, atol=1e-12)


@pytest.mark.parametrize("at_a_time", [1, 7, 30, 1000])
def test_vectors_may_be_set_against_a_block_a_few_at_a_time(at_a_time):
    np.testing.assert_allclose(made()(X, at_a_time), expected(), atol=1e-12)


def test_kernel_values_and_answers_have_the_precision_that_is_asked_for():
    rows = as_rows(X, memory=10**8, threads=1)
    single = made(dtype=np.float32).values(rows)
    assert single.dtype == np.float64
    assert 1e-12 < np.abs(single - expected()).max() < 1e-4
    assert made().values(rows, dtype=np.float32).dtype == np.float32


def test_functions_without_an_intercept_or_without_vectors_are_functions_too():
    rows = as_rows(X, memory=10**8, threads=1)
    np.testing.assert_allclose(made(intercept=0.0).values(rows), expected() - INTERCEPT, atol=1e-12)
    nothing = made(vectors=Z[:0], coef=COEF[:0])
    assert nothing.width == 3
    np.testing.assert_array_equal(nothing.values(rows), np.tile(INTERCEPT, (120, 1)))


def test_values_that_overflow_are_refused():
    far = as_rows(np.full((2, 4), 1e200), memory=10**8, threads=1)
    with pytest.raises(ValueError, match="infinite or undefined values"):
        made("poly").values(far)


def test_the_number_of_threads_does_not_change_a_bit():
    answers = [made().values(as_rows(X, memory=100, threads=threads)) for threads in (1, 2, 4)]
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0], other)
