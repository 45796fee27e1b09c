"""Kernel regression: against KernelRidge and CVXPY, weights, shifts, engines, limits."""

import pickle
import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics import r2_score
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVR

from widemargin import MarginRegressor

LOSSES = ("squared", "squared_epsilon_insensitive")
ENGINES = ("exact", "span", "cells")


def data(n=200, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)


def objective(machine, X, y, gamma, epsilon, weight):
    """Return the primal value of a fitted machine, from its attributes alone."""
    offset = np.average(y, weights=weight) if machine.fit_intercept else 0.0
    coef, bias = machine.dual_coef_[0], machine.intercept_[0] - offset
    K = rbf_kernel(machine.support_vectors_, gamma=gamma)
    excess = np.maximum(0.0, np.abs(machine.predict(X) - y) - epsilon)
    return 0.5 * coef @ K @ coef + 0.5 * bias**2 + machine.C * weight @ excess**2


def optimum(X, y, gamma, C, epsilon, weight):
    """Return the best value of the problem with centred targets, by CVXPY."""
    K = rbf_kernel(X, gamma=gamma) + 1.0
    root = np.linalg.cholesky(K + 1e-12 * np.eye(len(K)))
    v = cp.Variable(len(K))
    t = y - np.average(y, weights=weight)
    excess = cp.pos(cp.abs(root @ v - t) - epsilon)
    value = 0.5 * cp.sum_squares(v) + C * cp.sum(cp.multiply(weight, cp.square(excess)))
    return cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL)


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("engine", ["exact", "span"])
def test_the_squared_loss_without_an_intercept_is_kernel_ridge(C, engine):
    X, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    ridge = KernelRidge(alpha=1 / (2 * C), kernel="rbf", gamma=0.3)
    wanted = ridge.fit(X, y, sample_weight=weight).predict(X)
    machine = MarginRegressor(
        C, gamma=0.3, fit_intercept=False, engine=engine, max_vectors=len(X), tol=1e-10
    )
    found = machine.fit(X, y, sample_weight=weight).predict(X)
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    assert machine.intercept_[0] == 0.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("engine", ["exact", "span"])
def test_primal_and_dual_enclose_the_optimum_on_random_problems(loss, engine):
    rng = np.random.default_rng(3)
    for trial in range(25):
        X, y = data(int(rng.integers(5, 40)), seed=trial)
        y = y * 10.0 ** rng.integers(-3, 4)
        gamma, C = 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-2, 2)
        epsilon = 0.3 * y.std() if loss != "squared" else 0.0
        weight = rng.uniform(0.5, 2.0, len(y))
        machine = MarginRegressor(
            C, loss=loss, epsilon=epsilon, gamma=gamma, engine=engine, max_vectors=len(y), tol=1e-4
        ).fit(X, y, sample_weight=weight)
        best, proved = optimum(X, y, gamma, C, epsilon, weight), machine.certificate_
        reached = objective(machine, X, y, gamma, epsilon, weight)
        scale = max(best, 1e-12 * y.std() ** 2)
        assert proved.primal == pytest.approx(reached, rel=1e-6)
        assert proved.dual <= best + 1e-5 * scale
        assert reached - best <= proved.gap * reached + 1e-5 * scale
        assert proved.gap <= 1e-4


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_weight_is_a_number_of_copies(loss, engine):
    X, y = data(120)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    machine = MarginRegressor(10.0, loss=loss, engine=engine, cells=40, random_state=0)
    if engine == "span":
        machine.set_params(max_vectors=30)
    weighted = machine.fit(X, y, sample_weight=times).predict(X)
    copied = machine.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).predict(X)
    np.testing.assert_array_equal(weighted, copied)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_shift_of_the_targets_shifts_the_predictions(engine):
    X, y = data()
    machine = MarginRegressor(10.0, engine=engine, cells=60, random_state=0, tol=1e-8)
    here, there = (machine.fit(X, y + shift).predict(X) - shift for shift in (0.0, 1e6))
    np.testing.assert_allclose(here, there, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_predictions_have_the_scale_of_the_targets(scale):
    X, y = data()
    machine = MarginRegressor(10.0)
    wanted = machine.fit(X, y).predict(X)
    np.testing.assert_allclose(machine.fit(X, scale * y).predict(X) / scale, wanted, rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("engine", ENGINES)
def test_outputs_are_those_of_machines_of_their_own(loss, engine):
    X, y = data()
    both = np.column_stack([y, 3.0 - 5.0 * y + X[:, 2]])
    machine = MarginRegressor(5.0, loss=loss, engine=engine, cells=60, random_state=0, tol=1e-9)
    found = machine.fit(X, both).predict(X)
    assert found.shape == both.shape and machine.n_outputs_ == 2
    if engine != "cells":
        for k in range(2):
            np.testing.assert_allclose(
                machine.fit(X, both[:, k]).predict(X), found[:, k], atol=1e-3
            )
    assert machine.fit(X, both[:, :1]).predict(X).shape == (len(X), 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_constant_targets_are_met_and_proved(engine):
    X, _ = data(50)
    machine = MarginRegressor(engine=engine, cells=20).fit(X, np.full(50, 7.0))
    np.testing.assert_allclose(machine.predict(X), 7.0)
    assert machine.certificate_.gap == 0.0


def test_rows_within_epsilon_have_no_coefficient():
    X, y = data()
    machine = MarginRegressor(100.0, loss="squared_epsilon_insensitive", epsilon=0.5).fit(X, y)
    beyond = np.flatnonzero(np.abs(machine.predict(X) - y) > 0.5 + 1e-9)
    assert 0 < len(machine.support_) < len(X)
    assert set(beyond) <= set(machine.support_)


@pytest.mark.parametrize("engine", ENGINES)
def test_sparse_rows_and_small_types_give_the_same(engine):
    X, y = data()
    X = np.round(2 * X)
    machine = MarginRegressor(engine=engine, cells=60, gamma=0.1, random_state=0, tol=1e-6)
    wanted = machine.fit(X, y).predict(X)
    forms = (sparse.csr_array(X), X.astype(np.int8), np.asfortranarray(X))
    for form in forms:
        np.testing.assert_allclose(machine.fit(form, y).predict(form), wanted, atol=1e-5)


def test_a_precomputed_kernel_gives_the_same():
    X, y = data()
    K = rbf_kernel(X, gamma=0.3)
    wanted = MarginRegressor(gamma=0.3).fit(X, y).predict(X)
    found = MarginRegressor(kernel="precomputed").fit(K, y).predict(K)
    np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_many_rows_are_fitted_in_a_span_or_in_cells_as_held_out_rows_say():
    X, y = data(13_000)
    machine = MarginRegressor(10.0, random_state=0).fit(X, y)
    assert machine.engine_ in ("span", "cells")
    assert "held-out" in machine.certificate_.stopped
    assert machine.score(*data(1000, seed=9)) > 0.97


def test_time_that_runs_out_leaves_a_model_and_a_warning():
    X, y = data(20_000, d=8)
    machine = MarginRegressor(1e3, engine="span", max_time=0.05, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine.fit(X, y)
    assert np.isfinite(machine.predict(X[:10])).all()


def test_a_fitted_machine_survives_pickle():
    X, y = data()
    for engine in ENGINES:
        machine = MarginRegressor(engine=engine, cells=60).fit(X, y)
        other = pickle.loads(pickle.dumps(machine))
        np.testing.assert_array_equal(other.predict(X), machine.predict(X))


@pytest.mark.parametrize("C", [1e-6, 1e6])
@pytest.mark.parametrize("engine", ENGINES)
def test_extreme_C_gives_finite_predictions(C, engine):
    X, y = data(100)
    X = np.vstack([X, X, X * 1e3])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        machine = MarginRegressor(C, engine=engine, cells=100).fit(X, np.concatenate([y, -y, y]))
    assert np.isfinite(machine.predict(X)).all()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "hinge"}, "loss='hinge' is not known"),
        ({"epsilon": -1.0}, "epsilon=-1.0 must not be negative"),
        ({"C": 0.0}, "C=0.0 must be positive"),
        ({"engine": "cells", "kernel": "precomputed"}, "precomputed"),
        ({"engine": "exact", "memory": 100_000}, "does not fit into memory"),
        ({"engine": "exact", "max_vectors": 3}, "max_vectors=3 is less"),
        ({"cells": 1}, "cells=1 must be at least 2"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    X, y = data(100, d=100)
    with pytest.raises(ValueError, match=message):
        MarginRegressor(**parameters).fit(X, y)


def test_weights_of_zero_alone_are_refused():
    X, y = data(20)
    with pytest.raises(ValueError, match="non-zero"):
        MarginRegressor().fit(X, y, sample_weight=np.zeros(20))


@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
def test_the_epsilon_insensitive_loss_is_that_of_svr(C):
    X, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    other = SVR(C=C, epsilon=0.2, gamma=0.3, tol=1e-6).fit(X, y, sample_weight=weight)
    machine = MarginRegressor(C, loss="epsilon_insensitive", epsilon=0.2, gamma=0.3, tol=1e-8)
    found = machine.fit(X, y, sample_weight=weight).predict(X)
    np.testing.assert_allclose(found, other.predict(X), atol=1e-3)
    assert machine.certificate_.gap <= 1e-8


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "quantile"])
def test_linear_losses_are_proved_on_random_problems(loss):
    rng = np.random.default_rng(5)
    for trial in range(25):
        X, y = data(int(rng.integers(5, 40)), seed=trial)
        gamma, C, tau = (
            10.0 ** rng.uniform(-1, 1),
            10.0 ** rng.uniform(-2, 2),
            rng.uniform(0.1, 0.9),
        )
        epsilon = 0.3 if loss == "epsilon_insensitive" else 0.0
        machine = MarginRegressor(C, loss=loss, epsilon=0.3, quantile=tau, gamma=gamma, tol=1e-4)
        proved = machine.fit(X, y).certificate_
        root = np.linalg.cholesky(rbf_kernel(X, gamma=gamma) + 1e-12 * np.eye(len(X)))
        v, b = cp.Variable(len(X)), cp.Variable()
        error = y - root @ v - b
        up, down = (1.0, 1.0) if epsilon else (tau, 1.0 - tau)
        paid = cp.sum(up * cp.pos(error - epsilon) + down * cp.pos(-error - epsilon))
        value = cp.Minimize(0.5 * cp.sum_squares(v) + C * paid)
        best = cp.Problem(value).solve(solver=cp.CLARABEL)
        assert proved.dual <= best + 1e-5 * best + 1e-9
        assert best - 1e-5 * best - 1e-9 <= proved.primal <= best * (1 + 1.1e-4) + 1e-9


def test_quantiles_never_cross_and_hold_their_share_of_rows():
    X, y = data(400)
    y = y + np.random.default_rng(2).normal(size=400)
    machine = MarginRegressor(0.1, loss="quantile", quantiles=(0.95, 0.05, 0.5)).fit(X, y)
    low, middle, high = machine.predict(X).T
    assert (low <= middle).all() and (middle <= high).all()
    # At the optimum with a free bias, no more rows than this lie on either side.
    assert np.mean(y < low - 1e-6) <= 0.05 and np.mean(y > high + 1e-6) <= 0.05
    assert np.mean((y >= low - 1e-2) & (y <= high + 1e-2)) == pytest.approx(0.9, abs=0.06)
    assert machine.score(X, y) == r2_score(y, middle)


def test_linear_losses_move_and_grow_with_the_targets():
    X, y = data()
    machine = MarginRegressor(1.0, loss="epsilon_insensitive", epsilon=0.1, tol=1e-9)
    wanted = machine.fit(X, y).predict(X)
    machine.set_params(C=1024.0, epsilon=0.1 * 1024)
    found = machine.fit(X, 1024.0 * y + 1e6).predict(X)
    np.testing.assert_allclose((found - 1e6) / 1024.0, wanted, atol=1e-4)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "quantile", "engine": "cells", "kernel": "precomputed"}, "engine='span'"),
        ({"loss": "quantile", "fit_intercept": False}, "fit_intercept=True"),
        ({"loss": "quantile", "quantile": 1.0}, "between 0 and 1"),
        ({"loss": "quantile", "quantiles": ()}, "quantiles=\\(\\)"),
        ({"quantiles": (0.5,)}, "loss='quantile'"),
    ],
)
def test_bad_quantiles_are_named(parameters, message):
    X, y = data(50)
    with pytest.raises(ValueError, match=message):
        MarginRegressor(**parameters).fit(X, y)
