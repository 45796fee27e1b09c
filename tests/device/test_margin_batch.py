"""The machines of a batch are those of the small machine, one after another."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from widemargin.device import to_numpy
from widemargin.kernels import make_kernel
from widemargin.qp.margin_batch import solve_margin_batch
from widemargin.qp.margin_dual import solve_margin_dual


def _machines(sizes=(30, 41, 25), C=(1.0, 100.0, 1e4), seed=0):
    """Return kernel matrices, signs and ridges of several sizes, filled up to the largest."""
    rng = np.random.default_rng(seed)
    m = max(sizes)
    K, sign = np.zeros((len(sizes), m, m)), np.zeros((len(sizes), m))
    ridge = np.ones((len(sizes), m))
    for b, n in enumerate(sizes):
        X = rng.normal(size=(n, 2))
        K[b, :n, :n] = make_kernel("rbf", gamma=0.5).block(X, X)
        sign[b, :n] = np.where(X[:, 0] + 0.8 * rng.normal(size=n) > 0, 1.0, -1.0)
        ridge[b, :n] = 1.0 / (2.0 * C[b] * rng.uniform(0.5, 2.0, size=n))
    return K, sign, ridge


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_machine_of_a_batch_is_solved(device, dtype):
    sizes = (30, 41, 25)
    # float32 has no digits left for a large C.
    C, gap = ((1.0, 100.0, 1e4), 1e-6) if dtype == np.float64 else ((1.0, 100.0, 10.0), 1e-3)
    K, sign, ridge = _machines(sizes, C)
    found = solve_margin_batch(
        device, device.array(K, dtype), device.array(sign), device.array(ridge), gap=gap
    )
    for b, n in enumerate(sizes):
        point = solve_margin_dual(K[b, :n, :n].copy(), sign[b, :n], ridge[b, :n], gap=1e-8)
        primal, dual = point.objectives()
        assert_allclose(found.primal[b], primal, rtol=1e-3)
        assert found.dual[b] <= dual * (1 + 1e-3)
        assert found.primal[b] - found.dual[b] <= gap * found.primal[b]
        beta = to_numpy(found.beta)[b]
        assert (beta[n:] == 0.0).all()
        if dtype == np.float64:
            assert_allclose(to_numpy(found.scores)[b, :n], (K[b, :n, :n] + 1) @ beta[:n], atol=1e-6)


def test_one_matrix_serves_several_machines(device):
    K, sign, ridge = _machines((40, 40, 40))
    one = solve_margin_batch(
        device, device.array(K[0]), device.array(sign), device.array(ridge), gap=1e-6
    )
    for b in range(3):
        primal, _ = solve_margin_dual(K[0].copy(), sign[b], ridge[b], gap=1e-8).objectives()
        assert_allclose(one.primal[b], primal, rtol=1e-5)


def test_a_start_saves_rounds(device):
    K, sign, ridge = (device.array(each) for each in _machines())
    first = solve_margin_batch(device, K, sign, ridge, gap=1e-8)
    again = solve_margin_batch(device, K, sign, ridge, gap=1e-7, start=first.beta)
    assert again.rounds == 1 < first.rounds
    short = solve_margin_batch(device, K, sign, ridge, gap=1e-8, max_rounds=2)
    assert short.rounds == 2 and (short.dual <= first.primal * (1 + 1e-9)).all()


def test_a_matrix_that_float32_spoils_is_solved_in_float64(device):
    K, sign, ridge = _machines((30, 30, 30), C=(1e9, 1e9, 1.0))
    found = solve_margin_batch(
        device, device.array(K, np.float32), device.array(sign), device.array(ridge), gap=1e-2
    )
    assert np.isfinite(found.primal).all()
