"""Core sets as an engine: their options, their room, and what they hand out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.ball_problems import (
    SMALL_STEPS,
    exact_value,
    problem,
    stated_problem,
)
from widemargin.balls import CoreOptions, CoreSet, FixedRadiusBall, MinimumBall, fit_core
from widemargin.balls.ball import Precision, largest_norm2
from widemargin.expansion import Earlier, Expansion
from widemargin.kernels import make_kernel
from widemargin.loop import Deadline, Ended


def options(**changes):
    return CoreOptions(**{"tol": 1e-6, "sizes": SMALL_STEPS} | changes)


def test_what_is_handed_out_is_the_machine_of_the_exact_dual():
    for seed in range(10):
        case = problem(seed)
        fitted = fit_core(case.problem, MinimumBall(1e-6), options())
        assert fitted.stop.kind is Ended.SOLVED
        best = exact_value(seed)
        assert fitted.certificate.primal == pytest.approx(best, rel=2e-6)
        np.testing.assert_array_equal(fitted.vectors, case.problem.rows.take(fitted.index))
        np.testing.assert_allclose(fitted.intercept, fitted.coef.sum(axis=0))
        f = Expansion(case.problem.kernel, fitted.vectors, fitted.coef, fitted.intercept)
        slack = np.maximum(0.0, 1.0 - case.y * f.values(case.problem.rows)[:, 0])
        norm2 = fitted.coef[:, 0] @ case.K[np.ix_(fitted.index, fitted.index)] @ fitted.coef[:, 0]
        loss = case.problem.C[0] * (case.problem.weight @ slack**2)
        primal = 0.5 * norm2 + 0.5 * fitted.intercept[0] ** 2 + loss
        assert fitted.certificate.primal == pytest.approx(primal, rel=1e-9)


def test_an_earlier_solution_is_taken_even_where_it_has_nearly_all_rows():
    case = problem(0, n=20)
    first = fit_core(case.problem.with_C(0.01), MinimumBall(1e-9), options(tol=1e-9))
    assert len(first.index) >= 19  # a small C leaves every row inside its margin
    earlier = Earlier(first.index, first.coef, first.intercept)
    again = options(tol=1e-8, earlier=earlier)
    fitted = fit_core(case.problem.with_C(0.01), MinimumBall(1e-8), again)
    assert fitted.certificate.n_iter == 1
    np.testing.assert_allclose(fitted.coef, first.coef, atol=1e-12)


def test_room_for_fewer_vectors_than_classes_is_refused_with_the_remedy():
    rng = np.random.default_rng(0)
    code = np.arange(30) % 5
    kernel = make_kernel("rbf", gamma=1.0)
    X, table = rng.normal(size=(30, 2)), 2.0 * np.eye(5) - 1.0
    stated = stated_problem(X, code, np.ones(30), 1.0, kernel, table)
    with pytest.raises(ValueError, match=r"max_vectors=4 leaves room for 4 .* 5 classes .* raise"):
        CoreSet(stated, MinimumBall(1e-3), options(max_vectors=4))
    with pytest.raises(ValueError, match=r"memory of 100 bytes leaves room for"):
        CoreSet(stated, MinimumBall(1e-3), options(memory=100))


def test_memory_limits_the_core_and_says_so():
    case = problem(3, n=30)
    # Room for ten rows in float64.
    memory = int(8 * 10**2 / 0.7) + 1
    fitted = fit_core(case.problem, MinimumBall(1e-9), options(tol=1e-9, memory=memory))
    assert fitted.stop.kind is Ended.CAPACITY
    assert fitted.certificate.stopped == f"memory of {memory:,} bytes reached"
    assert len(fitted.index) <= 10
    assert fitted.certificate.dual <= fitted.certificate.primal


def test_precision_is_single_where_its_rounding_does_not_matter():
    case = problem(0)  # an RBF kernel
    eta = largest_norm2(case.problem)
    small = case.problem.with_C(1e-3)
    assert Precision.of(small, largest_norm2(small), 1e-2).dtype == np.float32
    assert Precision.of(small, largest_norm2(small), 1e-9).dtype == np.float64
    assert Precision.of(case.problem, eta, None).dtype == np.float64
    linear = problem(1).problem.with_C(1e-3)
    assert Precision.of(linear, largest_norm2(linear), 1e-2).dtype == np.float64
    fine = Precision.in_type(np.float64, case.problem, eta)
    assert fine.rounding < Precision.in_type(np.float32, case.problem, eta).rounding


METHODS = [
    MinimumBall(1e-6),
    MinimumBall(1e-6, 1e-3),
    MinimumBall(1e-6, None, "sor"),
    MinimumBall(1e-6, 1e-3, "sor"),
    FixedRadiusBall(0.0),
]


@pytest.mark.parametrize("growth", ["batch", "one"])
@pytest.mark.parametrize("method", METHODS)
def test_a_deadline_or_an_interrupt_leaves_a_machine_with_a_true_certificate(method, growth):
    ends = {Ended.MAX_TIME: Deadline.after(0.0), Ended.INTERRUPTED: Deadline()}
    ends[Ended.INTERRUPTED].interrupt()
    for kind, deadline in ends.items():
        for seed in (5, 6):
            case = problem(seed)
            given = options(tol=1e-12, deadline=deadline, growth=growth, max_vectors=8)
            fitted = fit_core(case.problem, method, given)
            assert fitted.stop.kind is kind and fitted.certificate.scope == "full"
            assert fitted.certificate.dual <= exact_value(seed) <= fitted.certificate.primal
            # A ball has a centre, however little time there is.
            assert 0 < len(fitted.index) <= 8 and fitted.certificate.eps > 0


def test_no_progress_for_a_while_ends_a_fit():
    # A gap that no arithmetic can reach, by balls that never end to shrink.
    case = problem(0)
    given = options(tol=1e-300, patience=3, max_iter=500)
    fitted = fit_core(case.problem, FixedRadiusBall(0.0), given)
    assert fitted.stop.kind in (Ended.STALLED, Ended.PRECISION)
    assert fitted.certificate.n_iter < 500
