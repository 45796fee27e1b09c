"""Core vector regression: against the exact machine and CVXPY, its ball, weights, limits."""

import pickle

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import CoreVectorRegressor, MarginRegressor

GAMMA = 0.3


def data(n=600, seed=0, d=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=n)


def signed_points(machine, X, y):
    """Return λ, l and Q of the 2n points of a machine, rows of sign +1 first."""
    n, t = len(y), y - y.mean()
    alpha = np.zeros(n)
    alpha[machine.support_] = machine.dual_coef_[0]
    sign = np.repeat([1.0, -1.0], n)
    K = np.tile(rbf_kernel(X, gamma=GAMMA) + 1.0, (2, 2))
    Q = np.outer(sign, sign) * K + np.eye(2 * n) / (2.0 * machine.C)
    return np.maximum(sign * np.tile(alpha, 2), 0.0), sign * np.tile(t, 2) - machine.epsilon, Q


@pytest.mark.parametrize("C", [0.1, 10.0, 1e3])
@pytest.mark.parametrize("bias", [True, False])
def test_it_is_the_exact_machine_as_the_gap_closes(C, bias):
    X, y = data()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    shared = {"C": C, "epsilon": 0.2, "gamma": GAMMA, "fit_intercept": bias}
    exact = MarginRegressor(
        loss="squared_epsilon_insensitive", engine="exact", tol=1e-8, **shared
    ).fit(X, y, sample_weight=weight)
    errors = []
    for tol in (1e-2, 1e-5, 1e-9):
        machine = CoreVectorRegressor(tol=tol, random_state=0, **shared)
        machine.fit(X, y, sample_weight=weight)
        assert machine.certificate_.gap <= tol
        errors.append(np.abs(machine.predict(X) - exact.predict(X)).max())
    assert errors[-1] <= 1e-4
    assert errors[-1] <= errors[0]


@pytest.mark.parametrize("growth", ["batch", "one"])
def test_primal_and_dual_enclose_the_optimum_of_cvxpy(growth):
    rng = np.random.default_rng(3)
    for trial in range(8):
        X, y = data(int(rng.integers(5, 40)), seed=trial)
        C, weight = 10.0 ** rng.uniform(-2, 2), rng.uniform(0.5, 2.0, len(y))
        machine = CoreVectorRegressor(
            C, epsilon=0.3, gamma=GAMMA, growth=growth, tol=1e-4, random_state=0
        ).fit(X, y, sample_weight=weight)
        root = np.linalg.cholesky(rbf_kernel(X, gamma=GAMMA) + 1.0 + 1e-12 * np.eye(len(X)))
        v = cp.Variable(len(X))
        excess = cp.pos(cp.abs(root @ v - (y - np.average(y, weights=weight))) - 0.3)
        paid = C * cp.sum(cp.multiply(weight, cp.square(excess)))
        best = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(v) + paid)).solve(solver=cp.CLARABEL)
        proved = machine.certificate_
        assert proved.dual <= best * (1 + 1e-5) + 1e-9
        assert best * (1 - 1e-5) - 1e-9 <= proved.primal <= best * (1 + 1.2e-4) + 1e-9


@pytest.mark.parametrize("growth", ["batch", "one"])
@pytest.mark.parametrize("eps", [1e-2, 1e-3])
def test_the_ball_rule_leaves_no_point_outside_and_a_radius_near_the_smallest(growth, eps):
    X, y = data(60)
    machine = CoreVectorRegressor(
        10.0, epsilon=0.1, gamma=GAMMA, growth=growth, stopping="ball", eps=eps, random_state=0
    ).fit(X, y)
    lam, linear, Q = signed_points(machine, X, y)
    price = lam.sum()
    # η: the largest norm, and 2/P times the largest |t| + ε.
    eta = Q.diagonal().max() + 2.0 / price * (np.abs(y - y.mean()).max() + machine.epsilon)
    delta = eta - Q.diagonal() + 2.0 * linear / price
    assert (delta >= -1e-12).all()
    center2 = lam @ Q @ lam / price**2
    distance2 = center2 - 2.0 * (Q @ lam) / price + Q.diagonal() + delta
    radius2 = eta + (2.0 * linear @ lam - lam @ Q @ lam) / price**2
    assert distance2.max() <= (1 + eps) ** 2 * radius2 * (1 + 1e-9)
    assert machine.certificate_.eps == pytest.approx(
        np.sqrt(distance2.max() / radius2) - 1, abs=1e-9
    )
    # The smallest ball around these points, by (17) of MMDA-CVM.
    mu = cp.Variable(len(lam), nonneg=True)
    root = np.linalg.cholesky(Q).T
    value = (Q.diagonal() + delta) @ mu - cp.sum_squares(root @ mu)
    smallest2 = cp.Problem(cp.Maximize(value), [cp.sum(mu) == 1]).solve(solver=cp.CLARABEL)
    assert radius2 <= smallest2 * (1 + 1e-6) <= (1 + eps) ** 2 * radius2 * (1 + 2e-6)


def test_fewer_rows_than_all_are_vectors_and_their_number_is_recorded():
    X, y = data(3000)
    machine = CoreVectorRegressor(10.0, epsilon=0.3, gamma=GAMMA, random_state=0).fit(X, y)
    proved = machine.certificate_
    assert proved.n_vectors == len(machine.support_) < len(X) / 4
    assert proved.n_kernel < len(X) ** 2
    assert proved.eps > 0.0 and proved.scope == "full"


def test_a_budget_of_vectors_is_kept():
    X, y = data()
    machine = CoreVectorRegressor(10.0, gamma=GAMMA, max_vectors=40, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_vectors=40"):
        machine.fit(X, y)
    assert len(machine.support_) <= 40
    assert np.isfinite(machine.predict(X)).all()


@pytest.mark.parametrize("growth", ["batch", "one"])
def test_a_weight_is_a_number_of_copies(growth):
    X, y = data(120)
    times = np.random.default_rng(0).integers(0, 4, len(y))
    machine = CoreVectorRegressor(10.0, growth=growth, tol=1e-2, random_state=0)
    weighted = machine.fit(X, y, sample_weight=times).predict(X)
    copied = machine.fit(np.repeat(X, times, axis=0), np.repeat(y, times)).predict(X)
    np.testing.assert_array_equal(weighted, copied)


def test_predictions_move_and_grow_with_the_targets():
    X, y = data()
    machine = CoreVectorRegressor(10.0, epsilon=0.1, gamma=GAMMA, tol=1e-9, random_state=0)
    wanted = machine.fit(X, y).predict(X)
    found = machine.set_params(epsilon=102.4).fit(X, 1024.0 * y + 1e6).predict(X)
    np.testing.assert_allclose((found - 1e6) / 1024.0, wanted, atol=1e-5)


@pytest.mark.parametrize("stopping", ["gap", "ball"])
def test_targets_within_epsilon_need_no_vector(stopping):
    X, y = data(100)
    machine = CoreVectorRegressor(epsilon=100.0, stopping=stopping).fit(X, y)
    np.testing.assert_allclose(machine.predict(X), y.mean())
    assert len(machine.support_) == 0 and machine.certificate_.gap == 0.0


def test_sparse_rows_and_a_kernel_matrix_give_the_same():
    X, y = data(200)
    X = np.round(2 * X)
    machine = CoreVectorRegressor(gamma=GAMMA, tol=1e-9, random_state=0)
    wanted = machine.fit(X, y).predict(X)
    found = machine.fit(sparse.csr_array(X), y).predict(sparse.csr_array(X))
    np.testing.assert_allclose(found, wanted, atol=1e-4)
    K = rbf_kernel(X, gamma=GAMMA)
    found = machine.set_params(kernel="precomputed").fit(K, y).predict(K)
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_time_that_runs_out_leaves_a_model_and_a_warning():
    X, y = data(20_000, d=8)
    machine = CoreVectorRegressor(1e3, epsilon=0.0, tol=1e-9, max_time=0.05, random_state=0)
    with pytest.warns(ConvergenceWarning, match="max_time"):
        machine.fit(X, y)
    assert np.isfinite(machine.predict(X[:10])).all()
    assert machine.certificate_.scope == "full"
    assert machine.certificate_.dual <= machine.certificate_.primal


def test_a_fitted_machine_survives_pickle():
    X, y = data(100)
    machine = CoreVectorRegressor().fit(X, y)
    other = pickle.loads(pickle.dumps(machine))
    np.testing.assert_array_equal(other.predict(X), machine.predict(X))


def test_bad_input_is_named():
    X, y = data(50)
    with pytest.raises(ValueError, match="y has 2 outputs"):
        CoreVectorRegressor().fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="stopping='never' is not known"):
        CoreVectorRegressor(stopping="never").fit(X, y)
    with pytest.raises(ValueError, match=r"eps=0\.0 must be positive"):
        CoreVectorRegressor(eps=0.0).fit(X, y)
