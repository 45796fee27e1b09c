"""The length of a step, against SciPy's root finder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from widemargin.qp.line_search import line_search

seeds = st.integers(0, 2**32 - 1)


class Slopes:
    """Rising slopes along a direction, linear in pieces, of several problems.

    That of a problem is g + b t + Σ w d max(0, d t − k): rows with d > 0 come inside their margin
    at t = k / d, and the others leave it there.
    """

    def __init__(self, seed, n_problems, n_rows=12, scale=1.0, flat=False):
        rng = np.random.default_rng(seed)
        self.moved = rng.normal(size=(n_problems, n_rows))
        self.corner = rng.normal(size=(n_problems, n_rows))
        self.weight = 10.0 ** rng.uniform(-3, 3, (n_problems, n_rows))
        self.curve = np.zeros(n_problems) if flat else 10.0 ** rng.uniform(-4, 2, n_problems)
        # One row that will stop every step, however flat the rest is.
        self.moved[:, 0], self.corner[:, 0] = 1.0, rng.uniform(0.1, 10.0, n_problems)
        inside = np.maximum(0.0, -self.corner)
        self.slope = -scale * 10.0 ** rng.uniform(-3, 3, n_problems)
        self.slope -= (self.weight * self.moved * inside).sum(axis=1)
        self.n_looks = 0

    def __call__(self, length):
        self.n_looks += 1
        ahead = self.moved * length[:, None] - self.corner
        bent = ahead > 0
        slope = self.slope + self.curve * length
        slope = slope + (self.weight * self.moved * ahead * bent).sum(axis=1)
        curve = self.curve + (self.weight * self.moved**2 * bent).sum(axis=1)
        return slope, curve

    def value(self, length):
        """What the slopes are the derivatives of."""
        ahead = np.maximum(0.0, self.moved * length[:, None] - self.corner)
        smooth = self.slope * length + 0.5 * self.curve * length**2
        return smooth + 0.5 * (self.weight * ahead**2).sum(axis=1)

    def roots(self):
        lengths = []
        for p in range(len(self.slope)):

            def one(t, p=p):
                return float(self(np.full(len(self.slope), t))[0][p])

            top = 1.0
            while one(top) <= 0:
                top *= 2.0
            lengths.append(brentq(one, 0.0, top, xtol=1e-300, rtol=8.9e-16, maxiter=2000))
        return np.array(lengths)


@settings(max_examples=150, deadline=None)
@given(seeds, st.integers(1, 5), st.sampled_from([0.0, 1.0]), st.booleans())
def test_the_slope_vanishes_at_the_length_that_scipy_finds(seed, n_problems, start, flat):
    slopes = Slopes(seed, n_problems, flat=flat)
    found = line_search(slopes, np.full(n_problems, start), tol=0.0, max_tries=200)
    np.testing.assert_allclose(found, slopes.roots(), rtol=3e-9)


@settings(max_examples=100, deadline=None)
@given(seeds, st.sampled_from([1e-1, 1e-2, 1e-4]))
def test_a_rough_answer_gains_nearly_as_much_and_costs_no_more(seed, tol):
    slopes = Slopes(seed, 3)
    before, best = slopes.value(np.zeros(3)), slopes.value(slopes.roots())
    slopes.n_looks = 0
    rough = line_search(slopes, np.ones(3), tol=tol, max_tries=200)
    looks, slopes.n_looks = slopes.n_looks, 0
    line_search(slopes, np.ones(3), tol=0.0, max_tries=200)
    assert looks <= slopes.n_looks
    gained = (before - slopes.value(rough)) / (before - best)
    assert (gained >= 1.0 - tol).all()


def test_newtons_own_length_of_one_stays_what_it_is():
    def look(length):
        return 3.0 * (length - 1.0 - 1e-12), np.full(1, 3.0)

    assert line_search(look, np.ones(1), tol=0.0, max_tries=60)[0] == 1.0


def test_a_direction_that_leads_uphill_gets_a_length_of_next_to_nothing():
    found = line_search(lambda t: (1.0 + t, np.ones(2)), np.ones(2), tol=0.0, max_tries=60)
    assert (found >= 0.0).all() and (found <= 2.0**-50).all()


@pytest.mark.parametrize("most", [1, 3, 10])
def test_it_looks_no_more_often_than_it_may(most):
    slopes = Slopes(0, 4)
    line_search(slopes, np.zeros(4), tol=0.0, max_tries=most)
    assert slopes.n_looks <= most


def test_where_nothing_bends_for_a_while_the_step_gets_longer_without_overflow():
    def look(length):
        ahead = np.maximum(0.0, length - np.array([5.0, 1e6]))
        return ahead - 1.0, (ahead > 0).astype(float)

    for start in (0.0, 1.0):
        found = line_search(look, np.full(2, start), tol=0.0, max_tries=100)
        np.testing.assert_allclose(found, [6.0, 1e6 + 1.0], rtol=1e-9)
