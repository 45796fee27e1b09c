"""Step lengths by several lengths at a time, against the exact search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from widemargin.qp.bracket_search import FIRST_LENGTHS, search_in_brackets
from widemargin.qp.line_search import line_search


def _hinges(seed, n_problems, scale):
    """Slopes, and curvatures, of convex functions that are quadratic in pieces."""
    rng = np.random.default_rng(seed)
    kinks = scale * rng.gamma(2.0, size=(40, n_problems))
    heights = rng.gamma(1.0, size=(40, n_problems)) / scale
    offset = heights.sum(axis=0) * scale * rng.uniform(0.1, 2.0, size=n_problems)

    def look(length):
        after = np.maximum(0.0, length[..., None, :] - kinks)
        return (
            length / scale - offset + (heights * after).sum(axis=-2),
            1.0 / scale + (heights * (after > 0)).sum(axis=-2),
        )

    return look


def _first(n_problems):
    return np.repeat(FIRST_LENGTHS[:, None], n_problems, axis=1)


@given(st.integers(0, 10**6), st.integers(1, 6), st.sampled_from([1e-4, 1e-2, 1.0, 30.0, 1e4]))
def test_it_finds_the_root_of_the_exact_search(seed, n_problems, scale):
    look = _hinges(seed, n_problems, scale)
    exact = line_search(look, np.zeros(n_problems), tol=1e-12, max_tries=200)
    first = _first(n_problems)
    found = search_in_brackets(
        lambda at: look(at)[0], first, look(first)[0], width=0.1, max_looks=30
    )
    assert_allclose(found, exact, rtol=0.03)


def test_one_look_is_enough_where_the_slope_is_straight():
    looks = []

    def slope(at):
        looks.append(at)
        return at - np.array([0.3, 1.1, 2.9])

    first = _first(3)
    found = search_in_brackets(slope, first, slope(first), width=0.1, max_looks=20)
    assert_allclose(found, [0.3, 1.1, 2.9])
    assert len(looks) == 1


def test_two_looks_are_enough_near_one():
    looks = []

    def slope(at):
        looks.append(at)
        bent = at - np.array([0.3, 1.1, 2.9])
        return bent + 3.0 * np.maximum(bent, 0.0)

    first = _first(3)
    found = search_in_brackets(slope, first, slope(first), width=0.1, max_looks=20)
    assert_allclose(found, [0.3, 1.1, 2.9], rtol=0.03)
    assert len(looks) == 2


@pytest.mark.parametrize("constant", [1.0, 0.0])
def test_no_step_is_taken_uphill(constant):
    first = _first(1)
    found = search_in_brackets(
        lambda at: at + constant, first, first + constant, width=0.1, max_looks=20
    )
    assert found[0] == 0.0


def test_slopes_that_never_rise_end_after_all_looks():
    first = _first(2)
    found = search_in_brackets(
        lambda at: np.full(at.shape, -1.0),
        first,
        np.full(first.shape, -1.0),
        width=0.1,
        max_looks=5,
    )
    assert (found >= FIRST_LENGTHS[-1]).all() and np.isfinite(found).all()
