"""Metrics in rounds: what they find, and that they gain nothing where there is nothing to find."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.metric.test_gradient_products import options, stated
from widemargin.kernels import make_kernel
from widemargin.loop import Deadline
from widemargin.metric import learn_metric, metric_root, root_of_given
from widemargin.metric.metric_machine import accuracy, fit_machine
from widemargin.problem import Problem, one_vs_rest
from widemargin.rows import RowMap, as_rows, mapped_rows, weighted_moments


def noisy(n=400, d=12, seed=0, random=False, kernel="rbf"):
    """Return a problem in which two of many features decide, or none."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    code = (X[:, 0] * X[:, 1] > 0).astype(np.intp)
    if random:
        code = rng.integers(0, 2, n)
    rows = as_rows(X, memory=10**8, threads=1)
    kernel = make_kernel(kernel, gamma=1.0 / d)
    return Problem.of(rows, kernel, code, one_vs_rest(2), np.ones(n), 10.0)


@pytest.mark.parametrize("kind", ["full", "diagonal"])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "exponential"])
def test_the_features_that_decide_get_the_weight(kernel, kind):
    found = learn_metric(noisy(kernel=kernel), options(kind=kind))
    weights = found.metric if kind == "diagonal" else np.diag(found.metric)
    assert found.n_rounds > 0
    assert set(np.argsort(weights)[-2:]) == {0, 1}
    assert weights[:2].sum() > 0.45 * weights.sum()
    assert found.scores[found.n_rounds] > found.scores[0]


def test_random_labels_gain_nothing_on_rows_that_neither_metric_nor_rounds_have_seen():
    gains = []
    for seed in range(6):
        problem = noisy(n=900, seed=seed, random=True)
        learn = problem.subset(np.arange(600))
        root = learn_metric(learn, options(kind="full")).root
        fresh = problem.subset(np.arange(600, 900))
        for each, sign in ((np.eye(12), -1.0), (root, 1.0)):
            mapped = replace(learn, rows=mapped_rows(learn.rows, RowMap.linear(each)))
            machine = fit_machine(mapped, options(engine="exact"), 1000)
            rows = mapped_rows(fresh.rows, RowMap.linear(each))
            gains.append(sign * accuracy(machine.values(rows), fresh))
    # 6 × 300 rows: the standard deviation of the difference is below 2 %.
    assert abs(sum(gains) / 6) < 0.04


def test_the_total_variance_of_mapped_rows_is_that_of_the_rows():
    problem = noisy()
    root = learn_metric(problem, options(kind="full", held_out=0.0, n_rounds=2)).root
    before, after = (
        weighted_moments(rows, problem.weight).variance.sum()
        for rows in (problem.rows, mapped_rows(problem.rows, RowMap.linear(root)))
    )
    assert after == pytest.approx(before, rel=1e-6)


def test_rounds_with_no_gradient_leave_the_identity():
    problem, _ = stated(n_classes=2)
    flat = replace(problem, rows=as_rows(np.zeros((90, 4)), memory=10**8, threads=1))
    found = learn_metric(flat, options(held_out=0.0))
    assert np.isfinite(found.root).all()


def test_a_deadline_that_has_passed_gives_the_identity():
    found = learn_metric(noisy(), options(deadline=Deadline.after(0.0)))
    assert np.array_equal(found.root, np.eye(12))
    assert not found.stop.converged


@pytest.mark.parametrize("engine", ["exact", "span", "cells"])
def test_every_engine_finds_the_features_that_decide(engine):
    told = options(kind="diagonal", engine=engine, cells=150)
    weights = learn_metric(noisy(n=600), told).metric
    assert set(np.argsort(weights)[-2:]) == {0, 1}


def test_the_power_of_a_root_is_that_of_the_matrix():
    G = np.diag([4.0, 1.0])
    np.testing.assert_allclose(metric_root(G, 1.0), np.diag([1.0, 0.5]))
    np.testing.assert_allclose(metric_root(G, 2.0), np.diag([1.0, 0.25]))
    np.testing.assert_allclose(metric_root(np.array([4.0, 1.0])), [1.0, 0.5])
    # Gradients in x are those in u = Bx times Bᵀ.
    np.testing.assert_allclose(metric_root(np.eye(2), 1.0, np.diag([1.0, 2.0])), np.diag([0.5, 1]))


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (np.eye(3), "shape"),
        (np.array([1.0, -1.0]), "negative values"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "negative eigenvalue"),
        (np.array([1.0, np.nan]), "not finite"),
    ],
)
def test_a_metric_that_is_none_is_refused(metric, said):
    with pytest.raises(ValueError, match=said):
        root_of_given(metric, 2)


def test_the_root_of_a_given_metric_squares_to_it():
    A = np.random.default_rng(0).standard_normal((3, 3))
    root = root_of_given(A.T @ A, 3)
    np.testing.assert_allclose(root @ root, A.T @ A)
