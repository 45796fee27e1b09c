"""Systems on the rows of a kernel matrix against NumPy's solution."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from widemargin.qp import ridge_systems
from widemargin.qp.ridge_systems import RidgeSystems


def kernel_matrix(n, seed=0, gamma=0.5):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("bias", [0.0, 1.0])
def test_rows_are_solved_for_whatever_was_solved_before(monkeypatch, single, bias):
    monkeypatch.setattr(ridge_systems, "_LARGE", 1 if single else 10**9)
    rng = np.random.default_rng(1)
    K, ridge = kernel_matrix(80), rng.uniform(0.01, 1.0, 80)
    systems = RidgeSystems(K, ridge, bias, 1)
    for n_out in (0, 1, 7, 5, 0, 40, 3, 10):
        out = np.sort(rng.choice(80, n_out, replace=False))
        index = np.setdiff1d(np.arange(80), out)
        right = rng.normal(size=(len(index), 3)) * [1.0, 1e-30, 1e20]
        M = K[np.ix_(index, index)] + bias + np.diag(ridge[index])
        expected = np.linalg.solve(M, right)
        found = systems.solved(index, right)
        assert_allclose(found / [1.0, 1e-30, 1e20], expected / [1.0, 1e-30, 1e20], atol=1e-10)


@pytest.mark.parametrize("ridge", [1e-3, 1e-7, 1e-11])
def test_single_precision_is_left_where_it_is_not_enough(monkeypatch, ridge):
    monkeypatch.setattr(ridge_systems, "_LARGE", 1)
    K = kernel_matrix(150, gamma=0.01)
    right = np.random.default_rng(0).normal(size=(150, 2))
    M = K + ridge * np.eye(150)
    found = RidgeSystems(K, np.full(150, ridge), 0.0, 1).of_all(right)
    left, expected = (np.abs(right - M @ x).max() for x in (found, np.linalg.solve(M, right)))
    assert left < 10.0 * expected + 1e-12


def test_a_matrix_without_a_factor_says_so():
    K = -np.eye(5)
    assert RidgeSystems(K, np.full(5, 0.5), 0.0, 1).of_all(np.ones((5, 1))) is None


def test_values_beyond_single_precision_are_solved_in_double(monkeypatch):
    monkeypatch.setattr(ridge_systems, "_LARGE", 1)
    K, right = 1e60 * kernel_matrix(30), np.ones((30, 1))
    found = RidgeSystems(K, np.full(30, 1e59), 0.0, 1).of_all(right)
    assert_allclose(K @ found + 1e59 * found, right, rtol=1e-9)


def test_threads_change_no_bit():
    K, rng = kernel_matrix(1700), np.random.default_rng(0)
    ridge, right = rng.uniform(0.1, 1.0, 1700), rng.normal(size=(1700, 2))
    index = np.setdiff1d(np.arange(1700), rng.choice(1700, 130, replace=False))
    found = []
    for threads in (1, 3):
        systems = RidgeSystems(K, ridge, 1.0, threads)
        found.append((systems.of_all(right), systems.solved(index, right[index])))
    assert_array_equal(found[0][0], found[1][0])
    assert_array_equal(found[0][1], found[1][1])
    M = K + 1.0 + np.diag(ridge)
    assert_allclose(found[0][0], np.linalg.solve(M, right), atol=1e-9)
