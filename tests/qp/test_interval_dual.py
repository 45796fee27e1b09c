"""The dual of losses on intervals: against SVR, OneClassSVM, Clarabel, and from hard starts."""

import cvxpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR, OneClassSVM

from widemargin.loop import Deadline
from widemargin.qp.box_newton import BoxProblem
from widemargin.qp.interior_point import solve_interior
from widemargin.qp.interval_dual import solve_interval_dual


def regression(n, seed=0, gamma=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return rbf_kernel(X, gamma=gamma), np.sin(X[:, 0]) + 0.1 * rng.normal(size=n)


def primal_by_clarabel(K, low, high, below, above, pull, bias):
    """Return the optimum of the primal in the features of a factor of K."""
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-10 * values[-1]
    F = vectors[:, kept] * np.sqrt(values[kept])
    u, b = cvxpy.Variable(F.shape[1]), cvxpy.Variable()
    f = F @ u + (0.0 if bias == "none" else b)
    pull = 0.0 if bias == "none" else pull
    # The larger of both lines and zero: where low <= high no row pays twice.
    loss = below @ cvxpy.pos(low - f) + above @ cvxpy.pos(f - high)
    ridge = 0.5 * cvxpy.square(b) if bias == "priced" else 0.0
    problem = cvxpy.Problem(cvxpy.Minimize(0.5 * cvxpy.sum_squares(u) + ridge + pull * b + loss))
    problem.solve(solver=cvxpy.CLARABEL, tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return float(problem.value)


@pytest.mark.parametrize("C", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_epsilon_insensitive_values_are_those_of_svr(C, epsilon):
    K, y = regression(200)
    slopes = np.full(len(y), C)
    found = solve_interval_dual(K, y - epsilon, y + epsilon, slopes, slopes, tol=1e-9)
    peer = SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=1e-8).fit(K, y)
    np.testing.assert_allclose(K @ found.beta + found.intercept, peer.predict(K), atol=1e-4)
    assert found.gap <= 1e-9


@pytest.mark.parametrize("nu", [0.02, 0.1, 0.5, 0.9])
def test_one_class_values_are_those_of_one_class_svm(nu):
    K, y = regression(200)
    zero, n = np.zeros(len(y)), len(y)
    found = solve_interval_dual(K, zero, zero, np.ones(n), zero, pull=nu * n, tol=1e-9)
    peer = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-8).fit(K)
    ours, theirs = K @ found.beta + found.intercept, peer.decision_function(K)
    np.testing.assert_allclose(ours, theirs, atol=1e-5 * np.abs(theirs).max() + 1e-6)
    assert found.beta.sum() == pytest.approx(nu * n)


@pytest.mark.parametrize("pull", [0.0, 20.0])
def test_a_factor_stands_for_its_matrix(pull):
    rng = np.random.default_rng(0)
    F, y = rng.normal(size=(80, 5)), rng.normal(size=80)
    given = (y - 0.2, y + 0.2, np.ones(80), np.full(80, 0.7))
    whole = solve_interval_dual(F @ F.T, *given, pull=pull, tol=1e-10)
    factored = solve_interval_dual(F, *given, pull=pull, tol=1e-10, factored=True)
    assert factored.primal == pytest.approx(whole.primal, rel=1e-9)
    assert factored.gap <= 1e-10
    np.testing.assert_allclose(F.T @ factored.beta, F.T @ whole.beta, atol=1e-6)
    with pytest.raises(ValueError, match="factored=True needs bias='free'"):
        solve_interval_dual(F, *given, factored=True, bias="priced")


def test_everything_is_support_where_nu_is_one():
    K = regression(50)[0]
    zero = np.zeros(50)
    found = solve_interval_dual(K, zero, zero, np.ones(50), zero, pull=50.0)
    np.testing.assert_array_equal(found.beta, np.ones(50))
    assert found.gap <= 1e-12


def test_the_hinge_is_a_case():
    K, y = regression(120)
    sign = np.where(y > 0, 1.0, -1.0)
    below, above = np.where(sign > 0, 2.0, 0.0), np.where(sign > 0, 0.0, 2.0)
    found = solve_interval_dual(K, sign, sign, below, above, tol=1e-9)
    peer = SVC(kernel="precomputed", C=2.0, tol=1e-8).fit(K, sign)
    np.testing.assert_allclose(
        K @ found.beta + found.intercept, peer.decision_function(K), atol=1e-4
    )


@pytest.mark.parametrize("tau", [0.05, 0.5, 0.9])
def test_a_quantile_has_its_share_of_rows_below(tau):
    K, y = regression(200, gamma=0.05)
    found = solve_interval_dual(K, y, y, np.full(200, tau), np.full(200, 1 - tau), tol=1e-9)
    f = K @ found.beta + found.intercept
    on = np.abs(y - f) < 1e-6
    assert (y < f - 1e-6).mean() <= tau <= (y < f - 1e-6).mean() + on.mean()


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    bias=st.sampled_from(["free", "priced", "none"]),
    power=st.floats(-3.0, 3.0),
)
def test_the_gap_is_never_below_the_true_one(seed, bias, power):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 25))
    X = rng.normal(size=(n, 2))
    X[rng.integers(0, n, n // 3)] = X[0]
    K = rbf_kernel(X, gamma=rng.choice([0.01, 1.0]))
    low = rng.normal(size=n)
    high = low + rng.choice([0.0, 0.5], n)
    below, above = 10.0**power * rng.choice([0.0, 1.0, 2.0], (2, n), p=[0.2, 0.4, 0.4])
    pull = rng.uniform(-0.5, 0.5) * min(below.sum(), above.sum())
    found = solve_interval_dual(K, low, high, below, above, pull=pull, bias=bias, tol=1e-7)
    assert (found.beta <= below).all() and (found.beta >= -above).all()
    if bias == "free":
        assert found.beta.sum() == pytest.approx(pull, abs=1e-9 * max(1.0, below.sum()))
    assert found.gap <= 1e-6
    best = primal_by_clarabel(K, low, high, below, above, pull, bias)
    slack = 1e-6 * max(1.0, abs(best))
    assert found.dual - slack <= best <= found.primal + slack


@pytest.mark.parametrize("C", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("kind", ["duplicates", "rank one", "zero"])
def test_singular_matrices_and_large_slopes_are_no_harm(C, kind):
    K, y = regression(150)
    if kind == "duplicates":
        place = np.arange(150) % 40
        K = np.ascontiguousarray(K[np.ix_(place, place)])
    if kind == "rank one":
        K = np.outer(y, y) + 1.0
    if kind == "zero":
        K = np.zeros_like(K)
    slopes = np.full(150, C)
    found = solve_interval_dual(K, y - 0.05, y + 0.05, slopes, slopes, tol=1e-6)
    assert found.gap <= 1e-6


def test_the_interior_point_method_knows_widths_and_sums():
    K, y = regression(120)
    n = len(y)
    for total, width in ((0.0, 0.1), (7.0, 0.1), (7.0, 0.0)):
        box = BoxProblem(
            K,
            np.zeros((0, n)),
            y,
            np.full(n, -50.0),
            np.full(n, 30.0),
            total=total,
            width=np.full(n, width),
        )
        beta = box.balanced(solve_interior(box))
        exact = solve_interval_dual(
            K, y - width, y + width, np.full(n, 30.0), np.full(n, 50.0), pull=total
        )
        assert beta.sum() == pytest.approx(total, abs=1e-8)
        assert box.value(beta, box.error(beta)) == pytest.approx(exact.dual, rel=1e-5)


def test_it_ends_in_time_with_a_feasible_point():
    K, y = regression(300)
    slopes = np.full(300, 1e4)
    found = solve_interval_dual(K, y, y, slopes, slopes, deadline=Deadline.after(0.0))
    assert found.gap > 1e-3 and found.beta.sum() == pytest.approx(0.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pull": 9.0}, "pull=9"),
        ({"high": np.array([-1.0, 0.0])}, "low <= high"),
        ({"below": np.array([-1.0, 0.0])}, "below must be finite and not negative"),
        ({"K": np.full((2, 2), np.nan)}, "not finite"),
        ({"K": np.eye(3)}, "shape"),
        ({"start": np.zeros(3)}, "2 finite numbers"),
    ],
)
def test_errors_say_what_is_wrong(change, message):
    given = {"K": np.eye(2), "low": np.zeros(2), "high": np.zeros(2)}
    given |= {"below": np.ones(2), "above": np.ones(2)} | change
    with pytest.raises(ValueError, match=message):
        solve_interval_dual(**given)
