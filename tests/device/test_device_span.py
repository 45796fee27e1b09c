"""A span fit on a device is the fit of this machine."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from widemargin import MarginClassifierCV
from widemargin.device import DeviceRows
from widemargin.folds import Folds
from widemargin.kernels import make_kernel
from widemargin.loop import Deadline
from widemargin.problem import Problem, one_vs_one, one_vs_rest
from widemargin.rows import as_rows, distinct_rows
from widemargin.span import (
    SpanOptions,
    SpanSizes,
    as_strategy,
    descent,
    fit_span,
    fit_span_with_scores,
    solve_in_span,
)
from widemargin.span.device_dual import full_dual_there
from widemargin.span.device_shard import DeviceShard
from widemargin.span.span_engine import full_dual

N = 1500


def _problem(n_classes=2, kernel="rbf", C=1.0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    y = np.digitize(np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2], [0.0, 0.7][: n_classes - 1])
    distinct = distinct_rows(as_rows(X, memory=10**9, threads=1), y, np.ones(N))
    table, kernel = one_vs_rest(n_classes), make_kernel(kernel, gamma=0.3)
    return Problem.of(
        distinct.rows, kernel, y[distinct.index], table, distinct.weight, C, distinct.index
    )


def _there(problem, device, whole=True):
    if not whole:
        return replace(problem, rows=problem.rows.placed(device))
    X, order, keys = problem.rows.X, problem.number, problem.rows.keys
    rows = DeviceRows(device.array(X), device, problem.rows.memory, 1).subset(order).keyed(keys)
    return replace(problem, rows=rows)


def _options(**others):
    sizes = SpanSizes(first_vectors=16, few_values=others.pop("few_values", 4_000_000))
    given = {"tol": 1e-3, "max_vectors": 60, "memory": 10**9, "threads": 1, "span_sizes": sizes}
    return SpanOptions(**given | others)


@pytest.mark.parametrize("whole", [True, False], ids=["rows there", "rows here"])
@pytest.mark.parametrize("few_values", [0, 4_000_000], ids=["float32", "float64"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_vectors_and_objective_are_those_of_this_machine(device, whole, few_values, kernel):
    problem, options = _problem(kernel=kernel), _options(few_values=few_values)
    here = fit_span(problem, options)
    there, scores = fit_span_with_scores(_there(problem, device, whole), options)
    assert_array_equal(np.sort(there.index), np.sort(here.index))
    for name in ("primal", "full_dual"):
        expected, found = getattr(here.certificate, name), getattr(there.certificate, name)
        assert_allclose(found, expected, rtol=1e-3)
    assert there.certificate.gap <= 1e-3 and there.stop.converged
    assert isinstance(scores, np.ndarray) and scores.shape == (N, 1)


@pytest.mark.parametrize("pairs", [False, True])
def test_three_classes_are_three_problems(device, pairs):
    problem = _problem(3)
    if pairs:
        problem = problem.with_signs(one_vs_one(3))
    here = fit_span(problem, _options())
    there = fit_span(_there(problem, device), _options())
    assert_allclose(there.certificate.primal, here.certificate.primal, rtol=1e-3)
    assert_allclose(there.certificate.dual, here.certificate.dual, rtol=1e-3)


def test_folds_and_values_of_c_are_further_columns(device):
    problem = _problem()
    splits = [(np.flatnonzero(np.arange(N) % 3 != k), np.arange(k, N, 3)) for k in range(3)]
    problem = problem.in_folds(Folds(splits, np.ones(N)), np.array([0.1, 1.0]))
    options = _options(prove=False)
    here, scores = fit_span_with_scores(problem, options)
    there, found = fit_span_with_scores(_there(problem, device), options)
    assert_allclose(there.certificate.primal, here.certificate.primal, rtol=1e-3)
    assert np.mean((scores > 0) == (found > 0)) > 0.995


@pytest.mark.parametrize("memory", [10**9, 300_000])
def test_values_that_do_not_fit_are_computed_again(device, memory):
    # Which rows are felt depends on how many were looked at: random ones are the same.
    vectors = as_strategy("random", 4)
    problem = _problem()
    options = _options(memory=memory, few_values=0, max_vectors=30, landmarks=vectors)
    limited = replace(problem, rows=as_rows(problem.rows.X, memory=memory, threads=1))
    rows = limited.rows.subset(problem.number).keyed(problem.rows.keys)
    there = fit_span(_there(replace(problem, rows=rows), device, whole=False), options)
    here = fit_span(problem, replace(options, memory=10**9))
    assert_allclose(there.certificate.primal, here.certificate.primal, rtol=5e-3)
    assert there.certificate.gap <= 1e-3


@pytest.mark.parametrize("vectors", ["random", "kmeans", "leverage"])
def test_vectors_come_from_everywhere(device, vectors):
    options = _options(landmarks=as_strategy(vectors, 4))
    problem = _problem()
    here, there = fit_span(problem, options), fit_span(_there(problem, device), options)
    assert_allclose(there.vectors, here.vectors, atol=1e-6)
    assert_allclose(there.certificate.primal, here.certificate.primal, rtol=1e-3)


def test_a_gap_below_float32_is_reached_in_float64(device):
    options = _options(tol=1e-7)
    there = fit_span(_there(_problem(), device), options)
    assert there.certificate.gap <= 1e-7
    # Kernel values are float32 at first where they are many, and float64 at the end.
    options = _options(tol=2e-4, few_values=0)
    there = fit_span(_there(_problem(C=1e6), device), options)
    assert there.certificate.gap <= 2e-4


def test_no_time_leaves_a_valid_machine(device):
    options = _options(deadline=Deadline.after(1e-9))
    there = fit_span(_there(_problem(), device), options)
    assert not there.stop.converged
    assert there.certificate.scope == "span" and np.isfinite(there.certificate.gap)


def test_a_kernel_that_overflows_says_so(device):
    problem = _problem()
    problem = replace(problem, kernel=make_kernel("poly", gamma=1e200, degree=9))
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(ValueError, match="scale X"):
        fit_span(_there(problem, device), _options())


def test_the_same_seed_gives_the_same_bits(device):
    problem = _there(_problem(), device)
    fits = [fit_span(problem, _options(few_values=0, seed=5)) for _ in range(2)]
    assert_array_equal(fits[0].coef, fits[1].coef)


@pytest.mark.parametrize("vectors", ["core", "kmeans"])
@pytest.mark.parametrize("pairs", [False, True])
def test_the_bound_on_the_full_problem_is_that_of_this_machine(device, vectors, pairs):
    problem = _problem(3)
    problem = problem.with_signs(one_vs_one(3)) if pairs else problem
    there = _there(problem, device)
    solver, _ = solve_in_span(there, _options(landmarks=as_strategy(vectors, 4)))
    # Both are within a gap of their optimum.
    assert_allclose(full_dual_there(there, solver.basis, 0.02, 20), full_dual(solver), rtol=0.03)


def test_a_sample_judges_the_steps_of_many_problems_and_the_answer_is_as_good(device, monkeypatch):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2000, 3))
    y = (np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=2000) > 0).astype(int)
    given = {"Cs": 6, "gammas": [0.5], "engine": "span", "max_vectors": 30, "cv": 3}
    search = MarginClassifierCV(**given, kernels=None, random_state=0, n_jobs=1)
    looked = []
    along = DeviceShard.look_along

    def watched(self, direction, live, n_rows, judges, lengths):
        looked.append((judges, n_rows))
        return along(self, direction, live, n_rows, judges, lengths)

    monkeypatch.setattr(DeviceShard, "look_along", watched)
    whole = clone(search).fit(device.array(X), y)
    assert all(judges == n_rows for judges, n_rows in looked)
    looked.clear()
    monkeypatch.setattr(descent, "_SCORES_OF_JUDGES", 1800)
    sampled = clone(search).fit(device.array(X), y)
    assert any(judges < n_rows for judges, n_rows in looked)
    scores = [each.cv_results_["mean_test_score"] for each in (whole, sampled)]
    assert_allclose(scores[0], scores[1], atol=5e-3)
    assert sampled.best_estimator_.certificate_.gap <= 1e-3
