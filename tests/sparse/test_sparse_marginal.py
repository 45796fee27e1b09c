"""Marginal functions: values against slow oracles, gradients against differences, the search."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from tests.reference import span as span_reference
from tests.reference import svm as svm_reference
from widemargin.base.target_intervals import insensitive, of_quantiles
from widemargin.intervals import one_class
from widemargin.kernels import KERNELS, RBF, make_kernel
from widemargin.loop import Deadline
from widemargin.problem import Problem, one_vs_rest
from widemargin.rows import as_rows
from widemargin.sparse.fisher_marginal import Fisher
from widemargin.sparse.hinge_marginal import Hinge
from widemargin.sparse.interval_marginal import Intervals
from widemargin.sparse.marginal import RIDGE, NoSpan
from widemargin.sparse.squared_marginal import Squared
from widemargin.sparse.vector_search import minimise
from widemargin.threads import single_threaded_blas

C, MU = 10.0, 1e-2
ONE_VS_REST = 2.0 * np.eye(3) - 1.0
FUNCTIONS = ["squared_hinge", "hinge", "fisher"]
REGRESSION = ["squared", "squared_interval", "interval", "quantile"]
EPSILON, NU, LEVELS = 0.3, 0.4, (0.2, 0.7)
FUNCTIONS += [*REGRESSION, "one_class"]
NAMES = sorted(name for name, kernel in KERNELS.items() if kernel.differentiable)
# Where two rows meet, or share a coordinate, these have a corner.
SMOOTH = sorted(set(NAMES) - {"laplacian", "inverse_distance", "exponential"})
PARAMETERS = {"gamma": 0.3, "degree": 3, "coef0": 0.5}


@pytest.fixture(autouse=True)
def blas_as_in_a_fit():
    with single_threaded_blas():
        yield


def kernel_of(name):
    # tanh is no Mercer kernel; with these it has a positive definite matrix on a few vectors.
    return make_kernel(name, gamma=0.05) if name == "sigmoid" else make_kernel(name, **PARAMETERS)


def data(n=30, d=4, seed=0):
    """Rows, three classes that overlap, and weights."""
    rng = np.random.default_rng(seed)
    code = rng.integers(0, 3, n)
    X = rng.normal(size=(n, d)) + 1.5 * np.eye(3, d)[code]
    return X, code, 0.5 + rng.random(n)


def targets(X):
    """Two outputs, which rows decide."""
    X = np.asarray(X.todense() if sparse.issparse(X) else X, dtype=np.float64)
    noise = np.sin(1e3 * X.sum(axis=1))
    return np.stack([np.sin(X[:, 0]) + 0.5 * noise, X[:, 1] * X[:, 2] + noise], axis=1)


def rows_of(X, threads=1, memory=1 << 26):
    return as_rows(X, memory=memory, threads=threads)


def make(which, X, code, weight, kernel, threads=1):
    rows = rows_of(X, threads)
    if which == "fisher":
        return Fisher(rows, kernel, np.where(code == 0, 1.0, -1.0), weight, MU)
    if which == "one_class":
        return Intervals(one_class(rows, kernel, weight / weight.sum(), NU))
    if which in REGRESSION:
        problem = Problem.of(rows, kernel, code, ONE_VS_REST, weight, C)
        problem = problem.with_targets(targets(X), EPSILON * (which == "squared_interval"), 1.0)
        if "squared" in which:
            return Squared(problem)
        if which == "interval":
            return Intervals(insensitive(problem, EPSILON, C))
        return Intervals(of_quantiles(problem, LEVELS, C))
    cls = {"squared_hinge": Squared, "hinge": Hinge}[which]
    return cls(Problem.of(rows, kernel, code, ONE_VS_REST, weight, C))


def vectors_with_a_twin():
    """A vector in each class, so that no machine is trivial, and the first of them again."""
    Z = 1.5 * np.eye(3, 4) + 0.3 * np.random.default_rng(2).normal(size=(3, 4))
    return Z[[0, 1, 2, 0]]


def differences(function, Z, step):
    """The derivative of W by differences of fourth order."""
    result, here = np.empty_like(Z), function(Z)
    for place in np.ndindex(*Z.shape):
        slopes = []
        for reach in (step, 2 * step):
            ahead, behind = Z.copy(), Z.copy()
            ahead[place] += reach
            behind[place] -= reach
            gain = function(ahead, here).value - function(behind, here).value
            slopes.append(gain / (2 * reach))
        result[place] = (4 * slopes[0] - slopes[1]) / 3
    return result


def assert_gradient(function, Z, *steps, tol=1e-5):
    """One of the steps must agree: a long one may go over a bend of the gradient.

    Where the best machine is zero, as a one-class machine may be if a kernel has both signs, both
    are rounding.
    """
    result = function(Z).gradient
    error = np.inf
    for step in steps:
        if error > tol:
            expected = differences(function, Z, step)
            error = np.linalg.norm(result - expected) / max(np.linalg.norm(expected), 1e-6)
    assert error <= tol


def gram_with_ridge(kernel, Z):
    K = kernel.block(Z, Z)
    return K + RIDGE * np.trace(K) / len(Z) * np.eye(len(Z))


def moons(n=80, seed=0):
    X, y = make_moons(n, noise=0.25, random_state=seed)
    return X, y.astype(np.intp)


def machine_of(X, code, loss=Squared, C=1.0, gamma=1.0, weight=None):
    weight = np.ones(len(X)) if weight is None else weight
    return loss(Problem.of(rows_of(X), RBF(gamma), code, one_vs_rest(2), weight, C))


# Gradients.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", FUNCTIONS)
def test_gradient_equals_central_differences(which, name):
    function = make(which, *data(), kernel_of(name))
    Z = np.random.default_rng(1).normal(size=(3, 4))
    assert_gradient(function, Z, 1e-5, 1e-6)


@pytest.mark.parametrize("distance", [1e-2, 1e-4])
@pytest.mark.parametrize("name", sorted(set(NAMES) - {"sigmoid"}))
@pytest.mark.parametrize("which", FUNCTIONS)
def test_gradient_is_right_where_vectors_nearly_meet(which, name, distance):
    function = make(which, *data(), kernel_of(name))
    Z = vectors_with_a_twin()
    Z[3] += distance * np.array([0.7, -1.0, 0.8, 0.6])
    assert_gradient(function, Z, 1e-2 * distance, 1e-3 * distance, 1e-4 * distance)


@pytest.mark.parametrize("name", sorted(set(SMOOTH) - {"sigmoid"}))
@pytest.mark.parametrize("which", FUNCTIONS)
def test_gradient_is_right_where_vectors_are_the_same(which, name):
    function = make(which, *data(), kernel_of(name))
    Z = vectors_with_a_twin()
    # Within the reach of the ridge, 1e-4, W is steep: longer steps show more of its rounding.
    assert_gradient(function, Z, 1e-7, 3e-8, tol=3e-5)


@pytest.mark.parametrize("name", ["laplacian", "inverse_distance", "exponential"])
@pytest.mark.parametrize("which", FUNCTIONS)
def test_vectors_that_meet_at_a_corner_of_the_kernel_are_survived(which, name):
    X, code, weight = data()
    result = make(which, X, code, weight, kernel_of(name))(X[[0, 0, 1]])
    assert np.isfinite(result.value)
    assert np.isfinite(result.gradient).all()


@pytest.mark.parametrize("which", FUNCTIONS)
def test_sparse_and_float32_rows_give_the_same(which):
    X, code, weight = data()
    X = np.where(np.abs(X) > 1.0, X, 0.0).astype(np.float32)
    Z = np.random.default_rng(4).normal(size=(3, 4))
    expected = make(which, X.astype(np.float64), code, weight, RBF(0.3))(Z)
    for rows in (X, sparse.csr_array(X), sparse.csr_array(X.astype(np.float64))):
        result = make(which, rows, code, weight, RBF(0.3))(Z)
        assert result.gradient.dtype == np.float64
        np.testing.assert_allclose(result.value, expected.value, rtol=1e-10)
        np.testing.assert_allclose(result.gradient, expected.gradient, rtol=1e-6, atol=1e-8)


def test_a_kernel_matrix_that_is_not_definite_is_refused():
    X, code, weight = data()
    function = make("squared_hinge", X, code, weight, make_kernel("sigmoid", gamma=1.0, coef0=-2.0))
    with pytest.raises(ValueError, match=r"sigmoid.*not positive definite"):
        function(X[:5])


# Values.


@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian"])
def test_squared_hinge_is_the_optimum_in_the_span(name):
    X, code, weight = data()
    kernel, Z = kernel_of(name), np.random.default_rng(5).normal(size=(4, 4))
    result = make("squared_hinge", X, code, weight, kernel)(Z)
    F = span_reference.features(gram_with_ridge(kernel, Z), kernel.block(X, Z))
    best = [span_reference.best_machine(F, ONE_VS_REST[code, p], C, weight) for p in range(3)]
    np.testing.assert_allclose(result.value, sum(each.value for each in best), rtol=1e-10)
    scores = kernel.block(X, Z) @ result.beta + result.intercept
    np.testing.assert_allclose(scores, np.stack([b.scores for b in best], axis=1), atol=1e-6)


@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_hinge_is_the_optimum_in_the_span(name):
    X, code, weight = data()
    kernel, Z = kernel_of(name), np.random.default_rng(5).normal(size=(4, 4))
    result = make("hinge", X, code, weight, kernel)(Z)
    F = span_reference.features(gram_with_ridge(kernel, Z), kernel.block(X, Z))
    expected = 0.0
    for p in range(3):
        v, b = cp.Variable(4), cp.Variable()
        slack = cp.pos(1 - cp.multiply(ONE_VS_REST[code, p], F @ v + b))
        problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(v) + C * (weight @ slack)))
        expected += problem.solve(solver=cp.CLARABEL)
    np.testing.assert_allclose(result.value, expected, rtol=1e-7)
    # The machine attains what it claims.
    scores = kernel.block(X, Z) @ result.beta + result.intercept
    slack = np.maximum(0.0, 1.0 - ONE_VS_REST[code] * scores)
    norm2 = np.trace(result.beta.T @ gram_with_ridge(kernel, Z) @ result.beta)
    np.testing.assert_allclose(result.value, 0.5 * norm2 + C * (weight @ slack).sum(), rtol=1e-9)


def best_by_clarabel(which, F, X, weight):
    """The least objective on features, of each problem by another solver."""
    v, b, found = cp.Variable(F.shape[1]), cp.Variable(), []
    scores, norm = F @ v + b, 0.5 * cp.sum_squares(v)
    if which == "one_class":
        share = weight / weight.sum()
        objectives = [norm + NU * b + share @ cp.pos(-scores)]
    else:
        columns = [t - scores for t in targets(X).T]
        bias = 0.5 * cp.square(b) if "squared" in which else 0.0
        losses = {
            "squared": lambda d: cp.square(d),
            "squared_interval": lambda d: cp.square(cp.pos(cp.abs(d) - EPSILON)),
            "interval": lambda d: cp.pos(cp.abs(d) - EPSILON),
        }
        if which == "quantile":
            each = [cp.maximum(q * d, (q - 1.0) * d) for d in columns for q in LEVELS]
        else:
            each = [losses[which](d) for d in columns]
        objectives = [norm + bias + C * (weight @ loss) for loss in each]
    for objective in objectives:
        found.append(cp.Problem(cp.Minimize(objective)).solve(solver=cp.CLARABEL))
    return sum(found)


@pytest.mark.parametrize("name", ["rbf", "poly"])
@pytest.mark.parametrize("which", [*REGRESSION, "one_class"])
def test_regression_and_one_class_are_the_optimum_in_the_span(which, name):
    X, code, weight = data()
    kernel, Z = kernel_of(name), np.random.default_rng(5).normal(size=(4, 4))
    result = make(which, X, code, weight, kernel)(Z)
    F = span_reference.features(gram_with_ridge(kernel, Z), kernel.block(X, Z))
    expected = best_by_clarabel(which, F, X, weight)
    np.testing.assert_allclose(result.value, expected, rtol=1e-6, atol=1e-8)


def test_fisher_is_the_largest_eigenvalue_of_the_pair():
    X, code, weight = data()
    kernel, Z = RBF(0.3), np.random.default_rng(6).normal(size=(4, 4))
    result = make("fisher", X, code, weight, kernel)(Z)
    K, share = kernel.block(X, Z), weight / weight.sum()
    B = MU * gram_with_ridge(kernel, Z)
    means = []
    for own in (code == 0, code != 0):
        means.append(np.average(K[own], axis=0, weights=weight[own]))
        apart = K[own] - means[-1]
        B += apart.T @ (share[own, None] * apart)
    d = means[0] - means[1]
    values, vectors = linalg.eigh(np.outer(d, d), B)
    np.testing.assert_allclose(result.value, -values[-1], rtol=1e-9)
    assert result.dual == result.value
    beta = result.beta[:, 0]
    np.testing.assert_allclose(beta @ B @ beta, 1.0, rtol=1e-9)
    np.testing.assert_allclose(beta, vectors[:, -1] * np.sign(vectors[:, -1] @ beta), rtol=1e-6)
    assert beta @ means[0] + result.intercept[0] > 0 > beta @ means[1] + result.intercept[0]


@pytest.mark.parametrize("which", FUNCTIONS)
def test_the_dual_is_a_lower_bound_and_a_tight_one(which):
    X, code, weight = data()
    for seed in range(5):
        Z = np.random.default_rng(seed).normal(size=(3, 4))
        result = make(which, X, code, weight, RBF(0.3))(Z)
        assert result.dual <= result.value + 1e-14 * abs(result.value)
        assert result.value - result.dual <= 1e-10 * abs(result.value)


def test_all_rows_as_vectors_are_the_exact_svm_with_squared_hinge():
    X, code = moons(60)
    result = machine_of(X, code, C=3.0)(X)
    y = 2.0 * code - 1.0
    Q = svm_reference.signed_kernel(RBF(1.0).block(X, X), y, 3.0)
    expected = -svm_reference.dual_value(Q, svm_reference.l2svm_dual_exact(Q))
    np.testing.assert_allclose(result.value, expected, rtol=1e-6)


def svc_objective(machine, X, code, C, gamma):
    """½‖w‖² + C Σ ξ at the machine of scikit-learn."""
    K = RBF(gamma).block(machine.support_vectors_, machine.support_vectors_)
    beta = machine.dual_coef_[0]
    slack = np.maximum(0.0, 1.0 - (2.0 * code - 1.0) * machine.decision_function(X))
    return 0.5 * beta @ K @ beta + C * slack.sum()


def test_all_rows_as_vectors_are_the_exact_svm_with_hinge():
    X, code = moons(60)
    machine = SVC(C=3.0, gamma=1.0, tol=1e-8).fit(X, code)
    result = machine_of(X, code, Hinge, C=3.0)(X)
    np.testing.assert_allclose(result.value, svc_objective(machine, X, code, 3.0, 1.0), rtol=1e-6)


@pytest.mark.parametrize("C", [0.3, 10.0])
def test_from_the_support_vectors_the_search_ends_at_most_at_the_svm(C):
    X, code = moons()
    machine = SVC(C=C, gamma=1.0, tol=1e-8).fit(X, code)
    function = machine_of(X, code, Hinge, C=C)
    found = minimise(function, machine.support_vectors_, max_iter=20)
    assert found.marginal.value <= svc_objective(machine, X, code, C, 1.0) * (1 + 1e-6)


# Weights, copies, starts, threads.


@pytest.mark.parametrize("which", FUNCTIONS)
def test_weight_k_equals_k_copies(which):
    X, code, _ = data()
    times = np.random.default_rng(8).integers(0, 4, len(X))
    Z = np.random.default_rng(9).normal(size=(3, 4))
    one = make(which, X, code, times.astype(float), RBF(0.3))(Z)
    copies = np.repeat(np.arange(len(X)), times)
    two = make(which, X[copies], code[copies], np.ones(len(copies)), RBF(0.3))(Z)
    np.testing.assert_allclose(one.value, two.value, rtol=1e-10)
    # Entries of a gradient are differences: their accuracy is that of the largest.
    largest = np.abs(two.gradient).max()
    np.testing.assert_allclose(one.gradient, two.gradient, rtol=1e-6, atol=1e-6 * largest)
    np.testing.assert_allclose(one.intercept, two.intercept, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("which", FUNCTIONS)
def test_a_start_changes_nothing_but_the_time(which):
    function = make(which, *data(), RBF(0.3))
    rng = np.random.default_rng(10)
    Z = rng.normal(size=(4, 4))
    cold = function(Z)
    near = function(Z + 0.05 * rng.normal(size=Z.shape))
    far = function(10.0 * rng.normal(size=Z.shape))
    for start in (near, far, cold):
        warm = function(Z, start)
        np.testing.assert_allclose(warm.value, cold.value, rtol=1e-10)
        largest = np.abs(cold.gradient).max()
        np.testing.assert_allclose(warm.gradient, cold.gradient, rtol=1e-6, atol=1e-6 * largest)


@pytest.mark.parametrize("which", FUNCTIONS)
def test_threads_do_not_change_a_bit(which):
    X, code, weight = data(n=6000)
    Z = np.random.default_rng(11).normal(size=(20, 4))
    results = [make(which, X, code, weight, RBF(0.3), threads)(Z) for threads in (1, 3)]
    np.testing.assert_array_equal(results[0].gradient, results[1].gradient)
    np.testing.assert_array_equal(results[0].beta, results[1].beta)
    assert results[0].value == results[1].value


def test_kernel_values_are_counted():
    X, code, weight = data()
    function = make("fisher", X, code, weight, RBF(0.3))
    assert function.n_kernel == 0
    function(X[:3])
    assert function.n_kernel == 2 * (30 * 3 + 9)


def test_classes_with_the_same_mean_give_fisher_nothing_to_do():
    X = np.vstack([np.eye(3), np.eye(3)])
    function = Fisher(rows_of(X), RBF(1.0), np.repeat([1.0, -1.0], 3), np.ones(6), 1e-3)
    result = function(X[:2])
    assert abs(result.value) < 1e-20
    assert np.isfinite(result.gradient).all()


# The search.


@pytest.mark.parametrize("which", FUNCTIONS)
@pytest.mark.parametrize("copies", [1, 3])
def test_the_search_never_goes_up_and_gets_better(which, copies):
    X, code, weight = data()
    X, code, weight = (np.repeat(each, copies, axis=0) for each in (X, code, weight))
    function = make(which, X, code, weight, RBF(0.3))
    start = X[[0, 3, 6, 0]] if copies > 1 else X[:4]
    found = minimise(function, start, max_iter=25, length=1.8)
    assert (np.diff(found.history) <= 0).all()
    assert found.history[0] == function(start).value
    assert found.history[-1] == found.marginal.value < found.history[0]
    assert len(found.history) == found.certificate.n_iter + 1
    np.testing.assert_allclose(function(found.vectors).value, found.marginal.value, rtol=1e-9)


def test_the_search_ends_where_the_gradient_vanishes():
    X, code = moons()
    function = machine_of(X, code)
    found = minimise(function, X[:4], max_iter=500, tol=1e-12)
    assert found.stop.converged
    assert np.linalg.norm(found.marginal.gradient) < 1e-4 * np.linalg.norm(function(X[:4]).gradient)


def test_the_units_of_the_rows_do_not_matter_with_the_right_length():
    X, code = moons()
    one = minimise(machine_of(X, code), X[:4], max_iter=10)
    big = minimise(machine_of(1000 * X, code, gamma=1e-6), 1000 * X[:4], max_iter=10, length=1000)
    np.testing.assert_allclose(one.history, big.history, rtol=1e-6)


class Watched:
    """A marginal function that does something at a call."""

    def __init__(self, function, at, action):
        self.function, self.at, self.action = function, at, action
        self.calls = 0

    @property
    def n_kernel(self):
        return self.function.n_kernel

    def __call__(self, Z, start=None):
        self.calls += 1
        if self.calls == self.at:
            self.action()
        return self.function(Z, start)


def interrupt():
    raise KeyboardInterrupt


def test_an_interrupt_leaves_the_best_point_so_far():
    X, code = moons()
    found = minimise(Watched(machine_of(X, code), 6, interrupt), X[:4])
    assert found.stop.reason == "interrupted"
    assert not found.stop.converged
    assert found.certificate.n_passes == 2 * 5
    assert found.marginal.value == found.history.min() < found.history[0]
    again = machine_of(X, code)(found.vectors)
    np.testing.assert_allclose(again.value, found.marginal.value, rtol=1e-9)


def test_an_interrupt_of_the_first_evaluation_leaves_the_point_where_it_starts():
    X, code = moons()
    deadline = Deadline()
    found = minimise(Watched(machine_of(X, code), 1, interrupt), X[:4], deadline=deadline)
    assert found.stop.reason == "interrupted"
    assert deadline.interrupted
    np.testing.assert_array_equal(found.vectors, X[:4])
    assert found.marginal.value == machine_of(X, code)(X[:4]).value

    # A second one is passed on: there is nothing to leave.
    class Stubborn(Watched):
        def __call__(self, Z, start=None):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        minimise(Stubborn(machine_of(X, code), 1, interrupt), X[:4])


def test_limits_end_the_search_with_a_valid_result():
    X, code = moons()
    none = minimise(machine_of(X, code), X[:4], deadline=Deadline.after(0.0))
    assert none.stop.reason == "max_time=0 reached"
    np.testing.assert_array_equal(none.vectors, X[:4])
    assert len(none.history) == 1
    few = minimise(machine_of(X, code), X[:4], max_iter=3)
    assert few.stop.reason == "max_iter=3 reached"
    assert few.certificate.n_iter == 3
    none = minimise(machine_of(X, code), X[:4], max_iter=0)
    assert none.certificate.n_passes == 2


def test_a_report_sees_every_step_and_can_stop_the_search():
    X, code = moons()
    seen = []

    def report(certificate):
        seen.append(certificate)
        return len(seen) == 4

    found = minimise(machine_of(X, code), X[:4], report=report)
    assert found.stop.reason == "a callback asked to stop"
    np.testing.assert_array_equal([c.primal for c in seen], found.history)
    assert [c.n_iter for c in seen] == [0, 1, 2, 3]
    assert seen[-1].n_kernel > seen[0].n_kernel > 0


def test_the_hinge_keeps_its_dual_variables():
    X, code, weight = data()
    result = make("hinge", X, code, weight, RBF(0.3))(X[:3])
    assert result.alpha.shape == (30, 3)
    assert (result.alpha <= C * weight[:, None]).all()


def test_a_search_turns_back_where_there_is_no_span():
    X, code, weight = data()
    inner = make("squared_hinge", X, code, weight, kernel_of("rbf"))
    Z = np.random.default_rng(5).normal(size=(4, 4))

    class Fenced:
        """W with vectors that have no span: those far from where the search starts."""

        turned = 0

        @property
        def n_kernel(self):
            return inner.n_kernel

        def __call__(self, vectors, start=None):
            if np.abs(vectors - Z).max() > 0.3:
                self.turned += 1
                raise NoSpan("too far")
            return inner(vectors, start)

    function = Fenced()
    found = minimise(function, Z, max_iter=30)
    assert function.turned > 0
    assert np.abs(found.vectors - Z).max() <= 0.3
    assert found.marginal.value < 0.99 * found.history[0]
    assert (np.diff(found.history) <= 0).all()
