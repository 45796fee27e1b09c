"""Gradient products against central differences, in every engine."""

from __future__ import annotations

import numpy as np
import pytest

from tests.reference import metric as reference
from widemargin.cells import CellMachines
from widemargin.kernels import make_kernel
from widemargin.metric import MetricOptions, gradient_products
from widemargin.metric.metric_machine import fit_machine
from widemargin.problem import Problem, one_vs_one, one_vs_rest
from widemargin.rows import as_rows

KERNELS = ["rbf", "laplacian", "exponential", "inverse_distance", "linear", "poly"]


def stated(kernel="rbf", n_classes=3, n=90, pairs=False, weight=None, seed=0, d=4):
    """Return a problem of classes that differ in the first two features."""
    rng = np.random.default_rng(seed)
    code = np.arange(n) % n_classes
    X = rng.standard_normal((n, d))
    X[:, 0] += 2.0 * code
    X[:, 1] += (code == 1) * 2.0
    table = one_vs_one(n_classes) if pairs else one_vs_rest(n_classes)
    weight = np.ones(n) if weight is None else weight
    rows = as_rows(X, memory=10**8, threads=1)
    return Problem.of(rows, make_kernel(kernel, gamma=0.1), code, table, weight, 1.0), X


def options(**given):
    return MetricOptions(**({"cells": 30} | given))


def signs(problem):
    return problem.table[problem.code]


@pytest.mark.parametrize("engine", ["exact", "span", "cells"])
@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_products_equal_those_of_central_differences(kernel, pairs, engine):
    weight = np.random.default_rng(5).uniform(0.5, 2.0, 90)
    problem, X = stated(kernel, pairs=pairs, weight=weight)
    told = options(engine=engine, max_vectors=40 if engine == "span" else None)
    machine = fit_machine(problem, told, 1000)
    if isinstance(machine, CellMachines):
        # A row has the gradient of the machine of its own cell.
        cell = machine.partition.nearest(problem.rows, 1).cell[:, 0]
        expected = sum(
            reference.gradient_products(
                machine.machine(c), X[cell == c], weight[cell == c], signs(problem)[cell == c]
            )
            for c in np.unique(cell).tolist()
        )
    else:
        expected = reference.gradient_products(machine, X, weight, signs(problem))
    found = gradient_products(problem, machine)
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=2e-3 * np.abs(expected).max())
    diagonal = gradient_products(problem, machine, diagonal=True)
    np.testing.assert_allclose(diagonal, np.diag(found), rtol=1e-5)


def test_rows_of_weight_zero_point_five_count_half():
    problem, _ = stated()
    half, _ = stated(weight=np.full(90, 0.5))
    machine = fit_machine(problem, options(engine="exact"), 1000)
    whole, part = (gradient_products(each, machine) for each in (problem, half))
    np.testing.assert_allclose(part, 0.5 * whole, rtol=1e-5)


def test_threads_do_not_change_the_sum():
    problem, X = stated(n=3000)
    machine = fit_machine(problem, options(engine="span", max_vectors=50), 1000)
    found = [
        gradient_products(
            Problem.of(
                as_rows(X, memory=10**6, threads=threads),
                problem.kernel,
                problem.code,
                problem.table,
                problem.weight,
                1.0,
            ),
            machine,
        )
        for threads in (1, 4)
    ]
    assert np.array_equal(*found)


def test_a_machine_that_is_constant_has_no_gradient():
    problem, _ = stated()
    machine = fit_machine(problem, options(engine="exact"), 1000)
    nothing = type(machine)(machine.kernel, machine.vectors, 0.0 * machine.coef, 1.0)
    assert not gradient_products(problem, nothing).any()
