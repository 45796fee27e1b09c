"""Losses in linear pieces on many rows: the span against exact machines, and what it is told."""

import cvxpy as cp
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import MarginRegressor

LOSSES = ("epsilon_insensitive", "quantile")


def data(n=300, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_certificate_holds_the_optimum_in_the_span_that_cvxpy_finds(loss):
    rng = np.random.default_rng(7)
    for trial in range(8):
        X, y = data(int(rng.integers(60, 150)), seed=trial)
        y = y * 10.0 ** rng.integers(-2, 3)
        gamma, C, tau = 10.0 ** rng.uniform(-1, 0.5), 10.0 ** rng.uniform(-1, 1), 0.2
        weight, epsilon = rng.uniform(0.5, 2.0, len(y)), 0.2 * y.std()
        machine = MarginRegressor(
            C, loss=loss, epsilon=epsilon, quantile=tau, gamma=gamma, engine="span", max_vectors=25
        ).fit(X, y, sample_weight=weight)
        Z, proved = machine.support_vectors_, machine.certificate_
        root = np.linalg.cholesky(rbf_kernel(Z, gamma=gamma))
        features = np.linalg.solve(root, rbf_kernel(Z, X, gamma=gamma)).T
        v, b = cp.Variable(len(Z)), cp.Variable()
        error = y - features @ v - b
        up, down, free = (1.0, 1.0, epsilon) if loss != "quantile" else (tau, 1.0 - tau, 0.0)
        paid = up * cp.pos(error - free) + down * cp.pos(-error - free)
        value = 0.5 * cp.sum_squares(v) + C * cp.sum(cp.multiply(weight, paid))
        best = cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)
        # The stated primal is that of the machine, in float64.
        coef, left = machine.dual_coef_[0], y - machine.predict(X)
        reached = up * np.maximum(left - free, 0) + down * np.maximum(-left - free, 0)
        primal = 0.5 * np.sum((root.T @ coef) ** 2) + C * weight @ reached
        assert proved.scope == "span" and proved.gap <= 1e-3
        assert proved.primal == pytest.approx(primal, rel=1e-9)
        assert proved.dual <= best * (1 + 1e-7) <= proved.primal * (1 + 2e-7)


@pytest.mark.parametrize("loss", LOSSES)
def test_all_rows_as_vectors_are_the_exact_machine(loss):
    X, y = data(200)
    machine = MarginRegressor(2.0, loss=loss, quantile=0.3, gamma=0.3, tol=1e-7)
    wanted = machine.fit(X, y).predict(X)
    machine.set_params(engine="span", max_vectors=200)
    np.testing.assert_allclose(machine.fit(X, y).predict(X), wanted, atol=5e-3)


def test_a_linear_kernel_and_a_small_penalty_give_quantile_regression():
    X, y = data(400)
    machine = MarginRegressor(
        1e3, loss="quantile", quantiles=(0.1, 0.5, 0.9), kernel="linear", engine="span", tol=1e-6
    )
    machine.set_params(calibration=None)
    found = machine.fit(X, y).predict(X)
    assert (np.diff(found, axis=1) >= 0).all()
    for k, tau in enumerate((0.1, 0.5, 0.9)):
        other = QuantileRegressor(quantile=tau, alpha=0.0).fit(X, y)
        np.testing.assert_allclose(found[:, k], other.predict(X), atol=2e-2)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_weight_is_a_number_of_copies_in_a_span(loss):
    X, y = data()
    times = np.random.default_rng(0).integers(0, 4, len(y))
    machine = MarginRegressor(1.0, loss=loss, engine="span", max_vectors=40, random_state=0)
    weighted = machine.fit(X, y, sample_weight=times).predict(X)
    copied = machine.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).predict(X)
    np.testing.assert_array_equal(weighted, copied)


def test_outputs_share_the_vectors_and_are_those_of_machines_of_their_own():
    X, y = data()
    both = np.column_stack([y, 3.0 - 5.0 * y + X[:, 2]])
    machine = MarginRegressor(
        1.0, loss="epsilon_insensitive", engine="span", max_vectors=60, random_state=0, tol=1e-7
    )
    found = machine.fit(X, both).predict(X)
    assert found.shape == both.shape and machine.dual_coef_.shape[1] <= 60
    machine.set_params(vectors=machine.support_vectors_)
    for k in range(2):
        np.testing.assert_allclose(machine.fit(X, both[:, k]).predict(X), found[:, k], atol=5e-3)


def test_many_rows_are_fitted_in_a_span_and_few_exactly():
    X, y = data(6000)
    machine = MarginRegressor(loss="epsilon_insensitive", max_vectors=100, random_state=0)
    assert machine.fit(X, y).engine_ == "span" and len(machine.support_vectors_) <= 100
    assert machine.score(*data(500, seed=9)) > 0.9
    machine.set_params(vectors=X[:50], max_vectors="auto")
    assert machine.fit(X[:400], y[:400]).engine_ == "span"
    machine.set_params(vectors="core")
    assert machine.fit(X[:400], y[:400]).engine_ == "exact"
    # Nor is there an exact machine where its matrix has no room.
    assert machine.set_params(memory="2MB").fit(X[:400], y[:400]).engine_ == "span"


def test_quantiles_of_many_rows_hold_their_share():
    X, y = data(8000)
    machine = MarginRegressor(
        1.0, loss="quantile", quantiles=(0.05, 0.5, 0.95), max_vectors=100, random_state=0
    )
    low, _, high = machine.set_params(calibration=None).fit(X, y).predict(X).T
    assert np.mean((y >= low) & (y <= high)) == pytest.approx(0.9, abs=0.01)
    A, a = data(4000, seed=5)
    low, _, high = machine.set_params(calibration="auto").fit(X, y).predict(A).T
    assert np.mean((a >= low) & (a <= high)) == pytest.approx(0.9, abs=0.015)


def test_time_that_runs_out_leaves_quantiles_and_a_warning():
    X, y = data(20_000, d=8)
    machine = MarginRegressor(1e3, loss="quantile", engine="span", max_time=0.05, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine.fit(X, y)
    assert np.isfinite(machine.predict(X[:10])).all() and 0 < machine.certificate_.gap <= 1


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_extreme_prices_and_constant_targets_give_finite_predictions(loss, C):
    X, y = data(100)
    X = np.vstack([X, X, X * 1e3])
    machine = MarginRegressor(C, loss=loss, engine="span", max_iter=300)
    for target in (np.concatenate([y, -y, y]), np.full(300, 7.0), 1e30 * np.tile(y, 3)):
        found = machine.fit(X, target)
        assert np.isfinite(found.predict(X)).all()
        assert found.certificate_.dual <= found.certificate_.primal
