"""Machines as the papers print them: compiled, one row at a time."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tests.reference.ball_problems import (
    EPSILONS,
    N_PROBLEMS,
    exact_radius2,
    problem,
    solved,
    stated_problem,
)
from widemargin import BallVectorClassifier, CoreVectorClassifier
from widemargin.balls import CoreOptions, FixedRadiusBall, MinimumBall, OneRow, fit_one_row
from widemargin.balls.ball import Precision, largest_norm2
from widemargin.kernels import make_kernel
from widemargin.loop import Ended, Limits, run
from widemargin.problem import one_vs_one

FINE = [1e-2, 1e-3]


def one_row(given, method, **changes):
    options = CoreOptions(**({"by_ball": True, "growth": "one", "sample_size": 59} | changes))
    precision = Precision.in_type(np.float64, given, largest_norm2(given))
    solver = OneRow(given, method, options, precision)
    return solver, run(solver, Limits(max_iter=10_000, patience=10_000))


def alpha_in(case, solver, state):
    index, coef = solver.machines(state)
    alpha = np.zeros(len(case.y))
    alpha[index] = coef[:, 0] * case.y[index]
    return alpha


def digits(n=600):
    X, y = load_digits(return_X_y=True)
    return X[:n], y[:n], X[n:], y[n:]


@pytest.mark.parametrize("sample_size", [5, None])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_ball_of_a_core_set_is_within_epsilon_of_the_smallest(epsilon, sample_size):
    for seed in range(N_PROBLEMS):
        case = problem(seed)
        solver, result = one_row(case.problem, MinimumBall(1e-3, epsilon), sample_size=sample_size)
        assert result.stop.kind is Ended.SOLVED
        alpha = alpha_in(case, solver, result.state)
        assert (alpha >= 0).all()
        far2 = float(case.distance(alpha).max() ** 2)
        assert far2 <= (1 + epsilon) ** 2 * exact_radius2(seed) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_with_the_furthest_row_a_core_set_has_two_over_epsilon_rows_at_most(epsilon):
    for seed in range(N_PROBLEMS):
        case = problem(seed)
        _, result = one_row(case.problem, MinimumBall(1e-3, epsilon), sample_size=None)
        assert result.state.each[0].member.sum() <= max(2, 2 / epsilon)


@pytest.mark.parametrize("seed", range(8))
def test_the_core_set_and_the_compiled_one_find_the_same_machine(seed):
    case = problem(seed, kernel="rbf", n=30)
    solver, result = one_row(case.problem, MinimumBall(1e-3, 1e-7))
    slow, other = solved(case, MinimumBall(1e-3, 1e-7, "sor"))
    machines = slow.machines(other.state)
    alpha = np.zeros(30)
    alpha[machines.index] = machines.expansion.coef[:, 0] * case.y[machines.index]
    ours = alpha_in(case, solver, result.state)
    assert result.certificate.dual == pytest.approx(other.certificate.dual, rel=1e-5)
    assert ours == pytest.approx(alpha, abs=1e-2 * alpha.max())


@pytest.mark.parametrize("sample_size", [5, None])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_algorithm_2_moves_at_most_one_over_epsilon_squared_times_in_compiled_code(
    epsilon, sample_size
):
    method = FixedRadiusBall(epsilon, multiscale=False, shrink=False)
    for seed in range(N_PROBLEMS):
        case = problem(seed)
        solver, result = one_row(case.problem, method, sample_size=sample_size)
        assert result.stop.kind is Ended.SOLVED
        assert result.state.each[0].center[4] <= 1 / epsilon**2
        far = case.distance(alpha_in(case, solver, result.state)).max()
        assert far <= (1 + epsilon) * np.sqrt(case.eta) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", FINE)
def test_algorithm_4_in_compiled_code_finds_a_radius_near_the_smallest(epsilon):
    for seed in range(0, N_PROBLEMS, 5):
        case = problem(seed)
        solver, result = one_row(case.problem, FixedRadiusBall(epsilon))
        radius2 = result.state.each[0].radius2
        far = case.distance(alpha_in(case, solver, result.state)).max()
        assert far <= (1 + epsilon) * np.sqrt(radius2) * (1 + 1e-9)
        assert exact_radius2(seed) <= (1 + epsilon) ** 2 * radius2 * (1 + 1e-9)
        assert radius2 <= case.eta * (1 + 1e-12)
        _, first = one_row(case.problem, FixedRadiusBall(epsilon, max_radii=1))
        assert first.state.each[0].radius2 == pytest.approx(case.eta)
        assert radius2 <= first.state.each[0].radius2 * (1 + 1e-12)


@pytest.mark.parametrize("method", [FixedRadiusBall(1e-4, max_radii=1), MinimumBall(1e-3, 1e-4)])
def test_lines_that_are_made_when_asked_for_give_the_same_machine(method):
    X, y, *_ = digits(300)
    code, weight = (y > 4).astype(np.intp), np.ones(300)
    kernel = make_kernel("rbf", gamma=5e-4)
    found = []
    for memory in (10**8, 8 * 300 * 400):
        stated = stated_problem(X, code, weight, 0.5, kernel)
        solver, result = one_row(stated, method, memory=memory)
        whole = len(solver.lines.values) == 300
        assert whole == (memory == 10**8)
        assert result.stop.kind is Ended.SOLVED
        full = np.zeros(300)
        index, coef = solver.machines(result.state)
        full[index] = coef[:, 0]
        found.append((full, result.certificate.n_kernel))
    assert found[0][0] == pytest.approx(found[1][0], abs=1e-6)
    assert found[1][1] < found[0][1]


@pytest.mark.parametrize("method", [FixedRadiusBall(1e-4, max_radii=1), MinimumBall(1e-3, 1e-4)])
def test_where_there_is_no_room_for_lines_the_core_set_goes_on(method):
    X, y, *_ = digits(300)
    stated = stated_problem(
        X, (y > 4).astype(np.intp), np.ones(300), 0.5, make_kernel("rbf", gamma=5e-4)
    )
    fitted = fit_one_row(
        stated, method, CoreOptions(by_ball=True, growth="one", memory=4 * 300 * 60)
    )
    assert fitted.certificate.n_vectors > 42 or fitted.stop.kind is Ended.CAPACITY
    assert len(fitted.index) == len(fitted.coef)


@pytest.mark.parametrize("machine", [BallVectorClassifier, CoreVectorClassifier])
def test_pairs_that_share_kernel_values_are_the_pairs_alone(machine):
    X, y, X_test, y_test = digits()
    parameters = {"stopping": "ball", "growth": "one", "multi_class": "ovo", "random_state": 0}
    parameters |= {"gamma": "mean_distance", "C": 0.5, "epsilon": 1e-6}
    if machine is BallVectorClassifier:
        parameters["max_radii"] = 1
    shared = machine(**parameters).fit(X, y)
    # Room for the values of a pair, not for all.
    alone = machine(**parameters, memory=4 * 130 * 600).fit(X, y)
    assert shared.dual_coef_.shape[0] == one_vs_one(10).shape[1] == 45
    assert shared.certificate_.stopped == alone.certificate_.stopped
    if machine is CoreVectorClassifier:
        assert shared.certificate_.dual == pytest.approx(alone.certificate_.dual, rel=1e-4)
    assert shared.score(X_test, y_test) == pytest.approx(alone.score(X_test, y_test), abs=0.02)
    assert shared.score(X_test, y_test) > 0.9


@pytest.mark.parametrize("machine", [BallVectorClassifier, CoreVectorClassifier])
def test_threads_do_not_change_the_bits_of_one_row_at_a_time(machine):
    X, y, *_ = digits(300)
    parameters = {"stopping": "ball", "growth": "one", "random_state": 3, "gamma": 1e-3}
    one, two = (machine(**parameters, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert (one.dual_coef_ == two.dual_coef_).all()


def test_weight_two_equals_a_repeated_row_one_row_at_a_time():
    X, y, *_ = digits(200)
    weight = 1.0 + (np.arange(200) % 3 == 0)
    repeated = np.repeat(np.arange(200), weight.astype(int))
    parameters = {"stopping": "ball", "growth": "one", "epsilon": 1e-7, "gamma": 1e-3}
    machine = CoreVectorClassifier(**parameters, random_state=0)
    values = machine.fit(X, y, sample_weight=weight).decision_function(X)
    copies = machine.fit(X[repeated], y[repeated]).decision_function(X)
    assert values == pytest.approx(copies, abs=1e-4)


def test_a_radius_that_is_too_small_is_named():
    X, y, *_ = digits(200)
    machine = BallVectorClassifier(
        stopping="ball", growth="one", algorithm="multiscale", radius=0.5, random_state=0
    )
    with pytest.raises(ValueError, match=r"radius=0\.5 is smaller"):
        machine.fit(X, y)


def test_no_time_leaves_a_machine_with_a_certificate():
    X, y, *_ = digits()
    for machine in (BallVectorClassifier, CoreVectorClassifier):
        found = machine(stopping="ball", growth="one", max_time=1e-9, random_state=0)
        with pytest.warns(UserWarning, match="max_time"):
            found.fit(X, y)
        assert np.isfinite(found.decision_function(X)).all()
        assert 0 < found.certificate_.gap <= 1
