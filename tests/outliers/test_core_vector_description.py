"""The smallest enclosing ball against quadratic programs, and its stream against the whole."""

import pickle
import time

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.utils.estimator_checks import estimator_checks_generator

from widemargin import CoreVectorDescription
from widemargin.balls import enclosing

KERNELS = {
    "linear": lambda X: linear_kernel(X),
    "poly": lambda X: polynomial_kernel(X, degree=2, gamma=0.5, coef0=1.0),
    "rbf": lambda X: rbf_kernel(X, gamma=0.5),
}


def solved(K, C=None, weight=None):
    """Return the objective of the ball by Clarabel: the dual, with K in its factor's form."""
    values, vectors = np.linalg.eigh(0.5 * (K + K.T))
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    alpha = cp.Variable(len(K), nonneg=True)
    cost = cp.sum_squares(root.T @ alpha) - np.diag(K) @ alpha
    if C is not None:
        s = np.ones(len(K)) if weight is None else weight
        cost += cp.sum_squares(cp.multiply(np.sqrt(1 / (4 * C * s)), alpha))
    tight = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}
    program = cp.Problem(cp.Minimize(cost), [cp.sum(alpha) == 1])
    program.solve(solver="CLARABEL", **tight)
    return -program.value


def ball(**parameters):
    """Return a ball with the kernels' parameters of this file."""
    given = {"C": None} | parameters
    return CoreVectorDescription(gamma=0.5, degree=2, coef0=1.0, **given)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 30),
    d=st.integers(1, 5),
    copies=st.booleans(),
    kernel=st.sampled_from(sorted(KERNELS)),
    C=st.sampled_from([None, 0.01, 1.0, 100.0]),
)
def test_the_ball_is_the_one_of_a_quadratic_program(seed, n, d, copies, kernel, C):
    X = np.random.default_rng(seed).normal(size=(n, d))
    if copies:
        X = np.concatenate([X, X[: n // 2 + 1]])
    machine = ball(kernel=kernel, C=C, epsilon=1e-8).fit(X)
    expected, scale = solved(KERNELS[kernel](X), C), np.diag(KERNELS[kernel](X)).max()
    assert machine.certificate_.primal == pytest.approx(expected, abs=1e-6 * scale)
    assert machine.certificate_.dual <= expected + 1e-6 * scale
    if C is None:
        assert machine.radius_**2 == pytest.approx(expected, abs=1e-6 * scale)
        assert (machine.predict(X) == 1).all()


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_a_linear_ball_keeps_its_digits_at_any_scale_and_place(scale, offset):
    X = np.random.default_rng(0).normal(size=(40, 3))
    plain = CoreVectorDescription(C=None, kernel="linear", epsilon=1e-8).fit(X)
    moved = CoreVectorDescription(C=None, kernel="linear", epsilon=1e-8).fit(scale * (X + offset))
    assert moved.radius_ == pytest.approx(scale * plain.radius_, rel=1e-6)
    np.testing.assert_allclose(moved.center_ / scale - offset, plain.center_, atol=1e-5)


@pytest.mark.parametrize("kernel", sorted(KERNELS))
def test_the_radius_is_within_one_plus_epsilon(kernel):
    X = np.random.default_rng(1).normal(size=(300, 4))
    expected = np.sqrt(solved(KERNELS[kernel](X)))
    for epsilon in (0.3, 0.03):
        machine = ball(kernel=kernel, epsilon=epsilon).fit(X)
        assert expected * (1 - 1e-6) <= machine.radius_ <= (1 + epsilon) * expected
        assert machine.certificate_.eps <= epsilon
        assert machine.radius_ <= (1 + machine.certificate_.eps) * expected * (1 + 1e-6)


def test_one_row_is_a_ball_without_radius():
    machine = CoreVectorDescription(C=None).fit([[3.0, 4.0]])
    assert machine.radius_ == pytest.approx(0.0, abs=1e-7)
    assert machine.predict([[3.0, 4.0], [9.0, 9.0]]).tolist() == [1, -1]


def test_a_weight_is_a_number_of_copies_in_a_soft_ball():
    rng = np.random.default_rng(2)
    X, weight = rng.normal(size=(50, 3)), rng.integers(0, 4, 50)
    weighted = CoreVectorDescription(C=0.5, epsilon=1e-7).fit(X, sample_weight=weight)
    copied = CoreVectorDescription(C=0.5, epsilon=1e-7, gamma=weighted.gamma_)
    copied.fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(
        weighted.decision_function(X), copied.decision_function(X), atol=1e-5
    )


def test_a_hard_ball_only_asks_whether_a_row_counts():
    rng = np.random.default_rng(3)
    X, weight = rng.normal(size=(50, 3)), rng.integers(0, 4, 50).astype(float)
    weighted = CoreVectorDescription(C=None, kernel="linear").fit(X, sample_weight=weight)
    chosen = CoreVectorDescription(C=None, kernel="linear").fit(X[weight > 0])
    assert weighted.radius_ == pytest.approx(chosen.radius_)


def test_sparse_rows_have_the_same_ball():
    X = np.random.default_rng(4).normal(size=(200, 5))
    for kernel in sorted(KERNELS):
        one = ball(kernel=kernel).fit(X)
        other = ball(kernel=kernel).fit(sparse.csr_array(X))
        np.testing.assert_allclose(
            one.decision_function(X), other.decision_function(sparse.csr_array(X)), atol=1e-6
        )


def test_a_sample_of_many_rows_comes_first_and_all_rows_count():
    X = np.random.default_rng(5).normal(size=(40_000, 3))
    X[17] = 40.0
    machine = CoreVectorDescription(C=None, kernel="linear", n_jobs=1).fit(X)
    reached = np.sqrt(((X - machine.center_) ** 2).sum(axis=1)).max()
    assert machine.certificate_.scope == "full"
    assert reached == pytest.approx(machine.radius_, rel=1e-9)
    two = CoreVectorDescription(C=None, kernel="linear", n_jobs=2).fit(X)
    assert two.radius_ == machine.radius_


def streams():
    """Yield rows in orders that are kind and unkind to a stream."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(2000, 5))
    yield "random", X
    yield "sorted", X[np.argsort(X[:, 0])]
    yield "outwards", X[np.argsort((X**2).sum(axis=1))]
    yield "walk", np.cumsum(rng.normal(size=(2000, 5)), axis=0)
    yield "one side after another", np.concatenate([X - 8.0, X + 8.0])


@pytest.mark.parametrize("kernel", sorted(KERNELS))
@pytest.mark.parametrize(("name", "X"), list(streams()))
def test_the_ball_of_a_stream_holds_all_rows_within_the_stated_factor(kernel, name, X):
    epsilon = 0.01
    machine = ball(kernel=kernel, epsilon=epsilon)
    for first in range(0, len(X), 100):
        machine.partial_fit(X[first : first + 100])
    whole = ball(kernel=kernel, epsilon=1e-4).fit(X)
    least = np.sqrt(whole.certificate_.dual)
    assert (machine.predict(X) == 1).all()
    assert machine.radius_ <= 1.37 * (1 + 3 * epsilon) * whole.radius_
    assert np.sqrt(machine.certificate_.dual) <= whole.radius_ * (1 + 1e-6)
    assert least * (1 - 1e-9) <= machine.radius_
    assert machine.radius_ <= (1 + machine.certificate_.eps) * whole.radius_ * (1 + 1e-6)
    if name == "random":
        assert machine.radius_ <= (1 + epsilon) * whole.radius_


def test_the_memory_of_a_stream_does_not_grow():
    rng = np.random.default_rng(7)
    machine = CoreVectorDescription(C=None, kernel="linear", epsilon=0.05)
    sizes = []
    for _ in range(60):
        machine.partial_fit(rng.normal(size=(500, 8)))
        sizes.append(machine.cover_vectors_.size)
    assert max(sizes) <= 200 * 8 and len(machine.cover_rows_) <= 4096
    assert sizes[-1] <= 2 * max(sizes[:20])


def test_a_stream_goes_on_after_fit():
    rng = np.random.default_rng(8)
    X, more = rng.normal(size=(300, 3)), 3 * rng.normal(size=(300, 3))
    machine = CoreVectorDescription(C=None).fit(X).partial_fit(more)
    assert (machine.predict(np.concatenate([X, more])) == 1).all()


@pytest.mark.parametrize("parameters", [{"C": 1.0}, {"C": None, "kernel": "precomputed"}])
def test_only_a_hard_ball_can_follow_a_stream(parameters):
    with pytest.raises(AttributeError, match="partial_fit"):
        CoreVectorDescription(**parameters).partial_fit(np.eye(3))


def valid(machine, X):
    """Return whether a ball is one: its shares add up, its bounds and its scores are in order."""
    assert machine.dual_coef_.sum() == pytest.approx(1.0) and (machine.dual_coef_ > 0).all()
    reached = machine.certificate_
    assert reached.scope == "full" and reached.dual <= reached.primal
    scores = machine.decision_function(X)
    return bool(np.isfinite(scores).all() and np.isfinite(machine.radius_))


def test_many_vectors_end_at_once_with_what_they_would_be():
    X = np.random.default_rng(9).normal(size=(40_000, 10))
    machine = CoreVectorDescription(C=1e-5, epsilon=1e-2)
    with pytest.warns(ConvergenceWarning, match=r"vectors or more are needed.*raise epsilon or C"):
        machine.fit(X)
    assert len(machine.support_) <= 2048
    assert valid(machine, X[:1000])


@pytest.mark.parametrize("C", [None, 1e-2])
def test_time_holds_and_leaves_a_valid_ball(C):
    X = np.random.default_rng(10).normal(size=(40_000, 10))
    machine = CoreVectorDescription(C=C, epsilon=1e-6, max_time=0.01)
    begun = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"max_time=0\.01 reached"):
        machine.fit(X)
    assert time.perf_counter() - begun < 5.0
    assert valid(machine, X[:1000])
    if C is None:
        assert (machine.predict(X) == 1).all()


def test_an_interrupt_leaves_a_valid_ball(monkeypatch):
    X, calls = np.random.default_rng(11).normal(size=(2000, 5)), []
    seen = enclosing._Enclosing._squares

    def interrupted(*given):
        calls.append(given)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return seen(*given)

    monkeypatch.setattr(enclosing._Enclosing, "_squares", interrupted)
    machine = CoreVectorDescription(C=None, epsilon=1e-6)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        machine.fit(X)
    assert len(calls) == 4 and valid(machine, X) and (machine.predict(X) == 1).all()


def test_a_ball_is_pickled_and_read_from_a_file_that_cannot_be_written(tmp_path):
    X = np.random.default_rng(12).normal(size=(500, 4))
    np.save(tmp_path / "rows.npy", X)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r")
    for C in (None, 1.0):
        machine = CoreVectorDescription(C=C).fit(X)
        there = pickle.loads(pickle.dumps(CoreVectorDescription(C=C).fit(mapped)))
        np.testing.assert_array_equal(there.decision_function(mapped), machine.decision_function(X))
    there = pickle.loads(pickle.dumps(CoreVectorDescription(C=None).partial_fit(mapped[:300])))
    assert (there.partial_fit(mapped[300:]).predict(mapped) == 1).all()


def test_a_stream_says_when_the_ball_of_a_block_was_not_solved():
    X = np.random.default_rng(13).normal(size=(600, 5))
    machine = CoreVectorDescription(C=None, epsilon=1e-6, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 reached"):
        machine.partial_fit(X)
    assert (machine.predict(X) == 1).all() and machine.certificate_.stopped == "max_iter=2 reached"


def test_a_stream_that_has_let_rows_go_is_within_its_own_certificate():
    X = np.random.default_rng(14).normal(size=(20_000, 4))
    epsilon = 0.01
    machine = CoreVectorDescription(C=None, kernel="linear", epsilon=epsilon)
    for block in np.array_split(X, 40):
        machine.partial_fit(block)
    assert len(machine.cover_rows_) <= 4096 < len(X)
    assert machine.cover_reach_.max() > 0
    whole = CoreVectorDescription(C=None, kernel="linear", epsilon=1e-5).fit(X)
    assert (machine.predict(X) == 1).all()
    assert np.sqrt(machine.certificate_.dual) <= whole.radius_ * (1 + 1e-9)
    assert machine.radius_ <= (1 + machine.certificate_.eps) * whole.radius_ * (1 + 1e-9)
    assert machine.radius_ <= (1 + epsilon) * whole.radius_


def checks_of_a_hard_ball():
    """Yield scikit-learn's checks, but for those that want outliers among the training rows."""
    for machine, check in estimator_checks_generator(CoreVectorDescription(C=None, n_jobs=1)):
        name = getattr(check, "func", check).__name__
        if "outlier" not in name:
            yield pytest.param(machine, check, id=name)


@pytest.mark.parametrize(("machine", "check"), list(checks_of_a_hard_ball()))
def test_a_hard_ball_meets_scikit_learns_contract(machine, check):
    check(machine)
