"""Calibrated quantiles: shares on new rows, against a slow reference, weights, folds, limits."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import MarginRegressor
from widemargin.base.kernel_regressor import numbered_targets
from widemargin.regression.calibration import folds_of_rows, offsets_of
from widemargin.rows import as_rows, distinct_rows

QUANTILES = (0.05, 0.5, 0.95)


def heteroscedastic(rng, n):
    X = rng.uniform(-2.0, 2.0, size=(n, 1))
    return X, np.sin(2 * X[:, 0]) + (0.1 + 0.4 * np.abs(X[:, 0])) * rng.normal(size=n)


def skewed(rng, n):
    X = rng.normal(size=(n, 2))
    return X, 10.0 + X[:, 0] + rng.lognormal(sigma=1.0, size=n) * np.exp(0.5 * X[:, 1])


def heavy_tailed(rng, n):
    X = rng.normal(size=(n, 3))
    return X, X[:, 0] * X[:, 1] + 0.3 * rng.standard_t(3, size=n)


def in_steps(rng, n):
    X = rng.integers(0, 8, size=(n, 1)).astype(float)
    return X, np.round(X[:, 0] + rng.normal(size=n))


DISTRIBUTIONS = [heteroscedastic, skewed, heavy_tailed, in_steps]


def intervals(C=30.0, **parameters):
    """Machines with a C that fits single rows."""
    given = {"loss": "quantile", "quantiles": QUANTILES, "gamma": 2.0, "n_jobs": 1}
    return MarginRegressor(C, **given | parameters)


def coverage(machine, X, y):
    answer = machine.predict(X)
    return float(np.mean((answer[:, 0] <= y) & (y <= answer[:, -1])))


def by_counting(errors, times, level):
    """The rank of the paper among copies, one by one."""
    listed = sorted(e for e, k in zip(errors, times, strict=True) for _ in range(k))
    n = len(listed)
    if level >= 0.5:
        rank = math.ceil((n + 1) * level - 1e-9)
        return listed[min(rank, n) - 1]
    rank = math.floor((n + 1) * level + 1e-9)
    return listed[max(rank, 1) - 1]


@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), min_size=1, max_size=40),
    st.sampled_from([0.01, 0.05, 0.25, 0.5, 0.75, 0.9, 0.95]),
)
def test_an_offset_has_the_rank_of_the_paper_among_all_copies(rows, level):
    errors, times = (np.array(each, dtype=float) for each in zip(*rows, strict=True))
    found = offsets_of(errors[:, None], times, np.array([level]))
    assert found.values[0] == by_counting(errors, times.astype(int), level)
    share, n = max(level, 1 - level), times.sum()
    assert (found.lacking > 0) == (share * (n + 1) > n + 1e-6)


@pytest.mark.parametrize("level", [0.1, 0.5, 0.8])
def test_a_new_row_lies_at_or_below_the_moved_quantile_as_often_as_promised(level):
    # All orders of n + 1 different errors are equally likely: the last one is the new row.
    n = 6
    below = [
        np.sum(np.arange(n + 1)[new] <= offsets_of(rest[:, None], np.ones(n), levels).values)
        for levels in [np.array([level])]
        for new in range(n + 1)
        for rest in [np.delete(np.arange(n + 1.0), new)]
    ]
    share = np.mean(below)
    if level >= 0.5:
        assert level <= share <= level + 1 / (n + 1) + 1e-12
    else:
        assert level - 1 / (n + 1) - 1e-12 <= share - 1 / (n + 1) <= level


@pytest.mark.parametrize("draw", DISTRIBUTIONS)
@pytest.mark.parametrize("calibration", ["auto", 0.3])
def test_intervals_hold_their_share_of_new_rows(draw, calibration):
    shares, before = [], []
    for seed in range(8 if calibration == "auto" else 30):
        rng = np.random.default_rng(seed)
        X, y = draw(rng, 300)
        machine = intervals(calibration=calibration).fit(X, y)
        new = draw(rng, 3000)
        shares.append(coverage(machine, *new))
        machine.offsets_ = np.zeros(3)
        before.append(coverage(machine, *new))
    # A share from 300 rows varies by 0.017 from draw to draw, one from 90 by 0.031: means by 0.006.
    assert 0.88 <= np.mean(shares) <= (0.93 if draw is not in_steps else 0.97)
    if draw is not in_steps:
        assert np.mean(before) < 0.87


@pytest.mark.parametrize("draw", DISTRIBUTIONS[:2])
def test_intervals_in_a_span_hold_their_share_of_new_rows(draw):
    rng = np.random.default_rng(0)
    X, y = draw(rng, 3000)
    machine = intervals(engine="span", max_vectors=200, random_state=0).fit(X, y)
    assert 0.885 <= coverage(machine, *draw(rng, 5000)) <= 0.915
    assert (np.diff(machine.predict(X), axis=1) >= 0).all()


def folds(X, y, weight, calibration):
    """The fold of each row, −1 for rows of no weight."""
    rows = as_rows(X, memory=10**9, threads=1)
    found = distinct_rows(rows, numbered_targets(y[:, None], weight), weight)
    fold = folds_of_rows(len(found.index), calibration)
    return np.where(found.place < 0, -1, fold[found.place])


def by_folds(machine, X, y, weight=None):
    """The offsets of a calibrated machine, by separate fits without each fold."""
    weight = np.ones(len(y), dtype=int) if weight is None else weight
    fold = folds(X, y, weight, machine.calibration)
    errors = np.zeros((len(y), 3))
    for k in range(fold.max() + 1):
        rest = (fold != k) & (weight > 0)
        other = intervals(calibration=None, gamma=machine.gamma_, tol=machine.tol)
        other.set_params(C=machine.C, engine=machine.engine, vectors=machine.vectors)
        other.fit(X[rest], y[rest], sample_weight=weight[rest])
        held = fold == k
        errors[held] = y[held, None] - other.predict(X[held])
    return [by_counting(errors[:, p], weight, q) for p, q in enumerate(QUANTILES)]


def test_offsets_are_those_of_separate_exact_fits():
    X, y = skewed(np.random.default_rng(0), 80)
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    for given_weight in (None, weight):
        machine = intervals(C=3.0, calibration=4, tol=1e-10)
        machine.fit(X, y, sample_weight=given_weight)
        assert_allclose(machine.offsets_, by_folds(machine, X, y, given_weight), atol=1e-4)
        plain = intervals(C=3.0, calibration=None, tol=1e-10).fit(X, y, sample_weight=given_weight)
        moved = np.sort(plain.predict(X) + machine.offsets_, axis=1)
        assert_allclose(machine.predict(X), moved, atol=1e-5)
        assert_array_equal(plain.offsets_, 0.0)


def test_offsets_in_a_span_are_those_of_separate_fits_on_its_vectors():
    X, y = skewed(np.random.default_rng(0), 400)
    vectors = X[:40]
    machine = intervals(C=3.0, calibration=3, tol=1e-7, engine="span", vectors=vectors).fit(X, y)
    assert_allclose(machine.offsets_, by_folds(machine, X, y), atol=2e-3)


def test_a_share_that_is_held_out_takes_no_part_in_the_machine():
    X, y = heteroscedastic(np.random.default_rng(0), 100)
    held = folds(X, y, np.ones(100), 0.25) == 0
    machine = intervals(calibration=0.25, tol=1e-8).fit(X, y)
    other = intervals(calibration=None, tol=1e-8).fit(X[~held], y[~held])
    assert held.sum() == 25
    assert not held[machine.support_].any()
    answer = other.predict(X)
    errors = y[held, None] - answer[held]
    wanted = offsets_of(errors, np.ones(25), np.array(QUANTILES)).values
    assert_allclose(machine.offsets_, wanted, atol=1e-6)
    assert_allclose(machine.predict(X), np.sort(answer + wanted, axis=1), atol=1e-6)


@pytest.mark.parametrize("calibration", ["auto", 3, 0.3])
def test_weights_are_copies_for_calibration_too(calibration):
    X, y = heteroscedastic(np.random.default_rng(0), 60)
    times = np.random.default_rng(1).integers(0, 4, len(y))
    copied = np.repeat(np.arange(len(y)), times)
    weighted = intervals(calibration=calibration).fit(X, y, sample_weight=times)
    copies = intervals(calibration=calibration).fit(X[copied], y[copied])
    assert_allclose(weighted.predict(X), copies.predict(X), atol=1e-10)


@pytest.mark.parametrize("calibration", [4, 0.3])
@pytest.mark.parametrize("engine", ["exact", "span"])
def test_sparse_rows_and_kernel_matrices_are_calibrated_the_same(engine, calibration):
    X, y = skewed(np.random.default_rng(0), 120)
    given = {"engine": engine, "calibration": calibration, "C": 3.0, "tol": 1e-7, "gamma": 0.3}
    given |= {"max_vectors": 120, "random_state": 0}
    wanted = intervals(**given).fit(X, y).predict(X)
    found = intervals(**given).fit(sparse.csr_array(X), y).predict(sparse.csr_array(X))
    assert_allclose(found, wanted, atol=1e-5)
    K = rbf_kernel(X, gamma=0.3)
    machine = intervals(**given, kernel="precomputed").fit(K, y)
    # Folds of numbers are others than folds of rows.
    answer = machine.predict(K)
    assert np.isfinite(answer).all()
    assert np.mean(np.abs(answer - wanted)[:, 1]) < 0.2 * np.std(y)
    assert machine.offsets_.any()


def test_the_order_of_rows_does_not_matter():
    X, y = in_steps(np.random.default_rng(0), 200)
    order = np.random.default_rng(1).permutation(len(X))
    answers = [intervals().fit(*each).predict(X) for each in ((X, y), (X[order], y[order]))]
    assert_allclose(*answers, atol=1e-10)


def test_one_quantile_is_calibrated_only_where_it_is_asked_for():
    X, y = heteroscedastic(np.random.default_rng(0), 300)
    plain = MarginRegressor(30.0, loss="quantile", quantile=0.9, gamma=2.0).fit(X, y)
    assert_array_equal(plain.offsets_, 0.0)
    moved = MarginRegressor(30.0, loss="quantile", quantile=0.9, gamma=2.0, calibration=5)
    moved.fit(X, np.column_stack([y, -3.0 * y]))
    X_new, y_new = heteroscedastic(np.random.default_rng(1), 5000)
    answer = moved.predict(X_new)
    assert 0.87 <= np.mean(y_new <= answer[:, 0]) <= 0.94
    assert 0.87 <= np.mean(-3.0 * y_new <= answer[:, 1]) <= 0.94


def test_too_few_rows_for_a_share_are_said():
    X, y = heteroscedastic(np.random.default_rng(0), 12)
    with pytest.warns(ConvergenceWarning, match=r"takes 19;"):
        machine = intervals().fit(X, y)
    assert np.isfinite(machine.predict(X)).all()
    with pytest.warns(ConvergenceWarning, match="no other row"):
        intervals().fit(np.ones((5, 1)), np.ones(5))


@pytest.mark.filterwarnings("ignore:MarginRegressor stopped before its rule")
def test_without_time_quantiles_are_not_calibrated_and_that_is_said():
    X, y = heteroscedastic(np.random.default_rng(0), 300)
    with pytest.warns(ConvergenceWarning, match="quantiles are not calibrated"):
        machine = intervals(max_time=1e-9).fit(X, y)
    assert np.isfinite(machine.predict(X)).all()


@pytest.mark.parametrize(
    ("parameters", "error", "said"),
    [
        ({"calibration": 1}, ValueError, "calibration=1"),
        ({"calibration": 1.5}, ValueError, "calibration=1.5 must be 'auto'"),
        ({"calibration": True}, ValueError, "calibration=True must be 'auto'"),
        ({"calibration": "folds"}, ValueError, "calibration='folds' must be 'auto'"),
        ({"calibration": 5, "loss": "squared", "quantiles": None}, ValueError, "calibration=5 is"),
    ],
)
def test_bad_calibrations_are_named(parameters, error, said):
    X, y = heteroscedastic(np.random.default_rng(0), 30)
    with pytest.raises(error, match=said):
        intervals(**parameters).fit(X, y)
