"""The span engine: its options, its limits, and what it hands out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference.span_data import make, random_data
from widemargin.expansion import Earlier
from widemargin.loop import Deadline, Ended, Limits, run
from widemargin.span import (
    Basis,
    GivenVectors,
    RandomVectors,
    SpanOptions,
    SpanSizes,
    Vectors,
    fit_span,
    solve_in_span,
    span_solver,
)
from widemargin.span.basis import kernel_matrix
from widemargin.span.descent import Descent
from widemargin.threads import single_threaded_blas


@pytest.fixture(autouse=True)
def blas_as_in_a_fit():
    with single_threaded_blas():
        yield


def options(**changes):
    return SpanOptions(**{"landmarks": RandomVectors(), "max_vectors": 20, "tol": 1e-6} | changes)


def three_classes(n=500, C=1.0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    code = np.digitize(X[:, 0] + 0.4 * rng.normal(size=n), [-0.5, 0.5])
    return make(X, code, 2.0 * np.eye(3) - 1.0, rng.uniform(0.5, 2.0, n), C=C)


def test_what_is_handed_out_is_the_optimum_in_the_span_of_its_vectors():
    data = three_classes()
    fitted = fit_span(data.problem(), options())
    assert fitted.stop.kind is Ended.SOLVED
    np.testing.assert_array_equal(fitted.vectors, data.X[fitted.index])
    beta = np.vstack([fitted.coef, fitted.intercept])
    optimum = data.optima(fitted.vectors).sum()
    assert data.objectives(fitted.vectors, beta).sum() == pytest.approx(optimum, rel=1e-5)
    certificate = fitted.certificate
    assert certificate.scope == "span" and certificate.n_vectors == len(fitted.vectors)
    assert certificate.dual <= optimum * (1 + 1e-9) <= certificate.primal * (1 + 2e-9)
    assert 0.0 < certificate.full_dual <= certificate.primal


def test_vectors_that_are_no_rows_have_no_index():
    data = three_classes()
    given = GivenVectors(np.random.default_rng(1).normal(size=(9, 3)))
    fitted = fit_span(data.problem(), options(landmarks=given))
    assert fitted.index is None and len(fitted.vectors) == 9
    assert 0.0 < fitted.certificate.full_dual <= fitted.certificate.primal


def test_an_earlier_solution_is_where_the_engine_starts():
    data = three_classes()
    first = fit_span(data.problem(), options())
    earlier = Earlier(first.index, first.coef, first.intercept)
    again = fit_span(data.problem(), options(earlier=earlier, tol=1e-5))
    assert again.certificate.n_iter <= 3 < first.certificate.n_iter
    assert again.certificate.primal == pytest.approx(first.certificate.primal, rel=1e-5)


def test_without_a_number_of_vectors_they_are_added_as_long_as_it_pays():
    sizes = SpanSizes(first_vectors=4)
    easy = make(*[(d := random_data(5, n=600)).X, d.code, d.table], gamma=1e-2)
    few = fit_span(easy.problem(), options(max_vectors=None, span_sizes=sizes, tol=1e-4))
    hard = three_classes(600, C=10.0)
    many = fit_span(hard.problem(), options(max_vectors=None, span_sizes=sizes, tol=1e-4))
    assert 4 <= len(few.vectors) < 100
    assert len(many.vectors) > len(few.vectors)


def test_few_values_are_computed_in_double_precision_and_many_in_single():
    problem = three_classes().problem()
    for few_values, dtype in ((10**9, np.float64), (0, np.float32)):
        sizes = SpanSizes(few_values=few_values)
        assert span_solver(problem, options(tol=1e-3, span_sizes=sizes)).descent.dtype == dtype
    # A small gap asks for more digits, and so does a kernel without a constant diagonal.
    none = SpanSizes(few_values=0)
    assert span_solver(problem, options(tol=1e-6, span_sizes=none)).descent.dtype == np.float64
    data = three_classes()
    linear = make(data.X, data.code, data.table, name="linear").problem()
    assert span_solver(linear, options(tol=1e-3, span_sizes=none)).descent.dtype == np.float64


def test_a_gap_that_is_estimated_is_as_good_as_one_that_is_proved():
    data = three_classes()
    solver, result = solve_in_span(data.problem(), options(prove=False, tol=1e-4))
    assert result.converged
    Z = solver.basis.vectors.values
    optimum = data.optima(Z).sum()
    assert data.objectives(Z, result.state.beta).sum() <= optimum * (1 + 1e-4)


def test_a_deadline_leaves_a_machine_with_a_true_certificate():
    data = three_classes(C=100.0)
    for deadline in (Deadline.after(0.0), Deadline.after(1e-3)):
        fitted = fit_span(data.problem(), options(tol=1e-12, deadline=deadline))
        assert fitted.stop.kind is Ended.MAX_TIME
        beta = np.vstack([fitted.coef, fitted.intercept])
        primal = data.objectives(fitted.vectors, beta).sum()
        assert fitted.certificate.primal == pytest.approx(primal, rel=1e-9)
        optimum = data.optima(fitted.vectors).sum()
        assert (primal - optimum) / primal <= fitted.certificate.gap + 1e-9


def test_an_interrupt_is_told_to_all_who_look_at_the_deadline(monkeypatch):
    data, deadline = three_classes(), Deadline.after(600.0)

    def interrupted(self, state, live):
        raise KeyboardInterrupt

    monkeypatch.setattr(Descent, "descend", interrupted)
    fitted = fit_span(data.problem(), options(deadline=deadline.part(0.5)))
    assert fitted.stop.kind is Ended.INTERRUPTED and deadline.interrupted
    assert fitted.certificate.stopped == "interrupted"
    assert len(fitted.vectors) == len(fitted.coef)


def test_a_stop_that_a_report_asks_for_is_told():
    fitted = fit_span(three_classes().problem(), options(report=lambda c: c.n_iter == 2))
    assert fitted.stop.kind is Ended.CALLBACK and fitted.certificate.n_iter == 2


def test_a_finished_fit_lends_its_vectors_and_values_to_other_problems():
    data = three_classes()
    solver, _ = solve_in_span(data.problem(), options())
    counted = solver.shards.n_kernel
    other = make(data.X, data.code, -data.table[:, :2], data.weight, C=10.0)
    again = solver.again(other.problem(), None, 1e-8)
    result = run(again, Limits(300))
    assert result.converged
    np.testing.assert_array_equal(again.basis.vectors.index, solver.basis.vectors.index)
    assert again.shards.n_kernel == counted
    optimum = other.optima(again.basis.vectors.values).sum()
    assert result.certificate.primal == pytest.approx(optimum, rel=1e-7)


def test_the_kernel_of_vectors_is_the_same_whether_they_are_rows_or_not():
    data = three_classes(60)
    problem, index = data.problem(), np.arange(20)
    rows = Vectors(data.X[:20], index)
    loose = Vectors(data.X[:20], None)
    expected = data.plain(data.X[:20], data.X[30:40])
    other = Vectors(data.X[30:40], None)
    for left in (rows, loose):
        found = kernel_matrix(problem.kernel, problem.rows, left, other)
        np.testing.assert_allclose(found, expected, atol=1e-14)
    assert kernel_matrix(problem.kernel, problem.rows, rows, Basis.empty().vectors).shape == (20, 0)
