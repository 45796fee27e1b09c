"""Losses in linear pieces in cells: independent machines of SVR and of quantiles."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR

from widemargin import MarginRegressor
from widemargin.balls import exact_intervals
from widemargin.regression import interval_losses


def data(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, size=(n, 2))
    return X, np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=n)


CENTRES = np.array([[-1.5, 0.0], [1.5, 1.0], [1.5, -1.5]])
WAYS = {
    "insensitive": {"loss": "epsilon_insensitive", "epsilon": 0.1},
    "quantile": {"loss": "quantile", "quantile": 0.2},
    "quantiles": {"loss": "quantile", "quantiles": (0.1, 0.5, 0.9)},
}


def in_cells(way="insensitive", **others):
    return MarginRegressor(**({"gamma": 1.0, "engine": "cells"} | WAYS[way] | others))


def test_given_cells_are_independent_machines_of_svr():
    X, y = data()
    found = in_cells(C=3.0, cells=CENTRES, overlap=0.0, blend=0.0, tol=1e-6).fit(X, y)
    cell = ((X[:, None] - CENTRES) ** 2).sum(-1).argmin(1)
    expected = np.empty(len(X))
    for c in range(3):
        own = cell == c
        peer = SVR(C=3.0, epsilon=0.1, gamma=1.0, tol=1e-7).fit(X[own], y[own])
        expected[own] = peer.predict(X[own])
    np.testing.assert_allclose(found.predict(X), expected, atol=1e-3)


@pytest.mark.parametrize("way", WAYS)
def test_the_certificate_is_the_sum_of_the_cells(way):
    X, y = data()
    found = in_cells(way, cells=CENTRES, overlap=0.0, blend=0.0, tol=1e-5).fit(X, y)
    cell = ((X[:, None] - CENTRES) ** 2).sum(-1).argmin(1)
    primal = dual = 0.0
    for c in range(3):
        own = found.__class__(**found.get_params()).set_params(engine="exact", cells="auto")
        proved = own.fit(X[cell == c], y[cell == c]).certificate_
        primal, dual = primal + proved.primal, dual + proved.dual
    ours = found.certificate_
    assert ours.scope == "cells" and ours.gap <= 1e-5
    assert dual * (1 - 1e-9) <= ours.primal <= primal * (1 + 2e-5)
    assert ours.dual <= primal


@pytest.mark.parametrize("way", WAYS)
def test_one_cell_is_the_exact_machine(way):
    X, y = data(300)
    one = in_cells(way, cells=300, tol=1e-7).fit(X, y).predict(X)
    exact = in_cells(way, engine="exact", tol=1e-7).fit(X, y).predict(X)
    np.testing.assert_allclose(one, exact, atol=1e-3)


@pytest.mark.parametrize("way", WAYS)
def test_weights_are_copies_and_threads_change_no_bit(way):
    X, y = data()
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    one, two = (
        in_cells(way, cells=100, random_state=0, n_jobs=jobs).fit(X, y, weight) for jobs in (1, 2)
    )
    copied = in_cells(way, cells=100, random_state=0)
    copied.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)
    np.testing.assert_allclose(one.predict(X), copied.predict(X), atol=1e-6)


def test_predictions_move_and_grow_with_the_targets():
    X, y = data()
    first = in_cells(C=1.0, cells=100, tol=1e-6).fit(X, y).predict(X)
    other = in_cells(C=8.0, epsilon=0.8, cells=100, tol=1e-6).fit(X, 8.0 * y + 100.0).predict(X)
    np.testing.assert_allclose(other, 8.0 * first + 100.0, atol=1e-2)


def test_outputs_are_those_of_machines_of_their_own():
    X, y = data()
    both = np.column_stack([y, np.cos(y)])
    found = in_cells(cells=CENTRES, tol=1e-6).fit(X, both).predict(X)
    for output in range(2):
        alone = in_cells(cells=CENTRES, tol=1e-6).fit(X, both[:, output]).predict(X)
        np.testing.assert_allclose(found[:, output], alone, atol=1e-3)


def test_quantiles_in_cells_hold_their_share():
    X, y = data(6000)
    found = MarginRegressor(
        loss="quantile", quantiles=(0.1, 0.9), gamma=0.3, engine="cells", cells=1000
    ).fit(X, y)
    Z, t = data(6000, seed=1)
    low, high = found.predict(Z).T
    assert (low <= high).all()
    assert ((low <= t) & (t <= high)).mean() == pytest.approx(0.8, abs=0.03)


def test_a_budget_of_vectors_holds_over_all_cells():
    X, y = data(1000)
    found = in_cells(cells=100, max_vectors=120).fit(X, y)
    assert len(found.support_vectors_) <= 120
    assert found.score(X, y) > 0.8


def test_a_cell_that_is_too_large_for_its_matrix_is_fitted_in_a_span():
    X, y = data(3000)
    found = in_cells(cells=CENTRES, overlap=0.0, memory="9MB", max_vectors=150).fit(X, y)
    assert found.score(X, y) > 0.8


def test_larger_cells_are_taken_where_held_out_rows_speak_for_them(monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(9000, 8))
    y = X.sum(axis=1) + 0.1 * rng.normal(size=len(X))
    sizes = []
    fit = interval_losses.fit_interval_cells

    def seen(problem, options):
        sizes.append(options.cells)
        return fit(problem, options)

    monkeypatch.setattr(interval_losses, "fit_interval_cells", seen)
    MarginRegressor(loss="quantile", C=10.0, gamma=0.02, engine="cells").fit(X, y)
    assert sizes[-1] > 300


def test_sparse_rows_and_small_types_give_the_same():
    X, y = data()
    X = np.round(10.0 * X)
    expected = in_cells(gamma=0.01, cells=100).fit(X, y).predict(X)
    for rows in (sparse.csr_array(X), X.astype(np.int8)):
        found = in_cells(gamma=0.01, cells=100).fit(rows, y)
        np.testing.assert_allclose(found.predict(rows), expected, atol=1e-6)
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict(X), found.predict(X))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_extreme_prices_give_finite_predictions(way, C):
    X, y = data(300)
    found = in_cells(way, C=C, cells=60, tol=1e-2).fit(X, y)
    assert np.isfinite(found.predict(X)).all()


def test_constant_targets_are_met():
    X, _ = data(300)
    found = in_cells(cells=60).fit(X, np.full(300, 7.0))
    np.testing.assert_allclose(found.predict(X), 7.0, atol=1e-6)


def test_time_that_is_over_leaves_constants():
    X, y = data(3000)
    found = in_cells(cells=60, max_time=1e-9)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        found.fit(X, y)
    assert np.isfinite(found.predict(X)).all() and found.certificate_.dual >= 0.0
    assert found.score(X, y) > 0.0


def test_an_interrupt_leaves_the_cells_that_were_done(monkeypatch):
    X, y = data(3000)
    solve, calls = exact_intervals.solve_interval_dual, []

    def interrupted(*given, **named):
        calls.append(1)
        if len(calls) == 20:
            raise KeyboardInterrupt
        return solve(*given, **named)

    monkeypatch.setattr(exact_intervals, "solve_interval_dual", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        found = in_cells(cells=60, n_jobs=1).fit(X, y)
    assert 0 < np.count_nonzero(np.diff(found.cell_offsets_)) < len(found.cell_centers_)
    assert np.isfinite(found.predict(X)).all()


def test_more_cells_than_are_compared_one_by_one_answer_by_their_groups(monkeypatch):
    X, y = data(2000)

    class Grouped(MarginRegressor):
        def _options(self, resources):
            return replace(super()._options(resources), one_level=8)

    for loss in ("squared", "epsilon_insensitive"):
        found = Grouped(loss=loss, gamma=1.0, engine="cells", cells=30, blend=0.0).fit(X, y)
        assert len(found.cell_middle_offsets_) == len(found.cell_middles_) + 1
        assert found.score(X, y) > 0.9
        found.set_params(cells=1000).fit(X, y)
        assert not hasattr(found, "cell_middles_")
