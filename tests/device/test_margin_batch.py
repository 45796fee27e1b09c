"""The machines of a batch are those of the small machine, one after another."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from widemargin.device import to_numpy
from widemargin.kernels import make_kernel
from widemargin.loop import Deadline
from widemargin.qp import batch_systems, margin_batch
from widemargin.qp.device_matrices import ManyMatrices, OneMatrix
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


def _solved(device, K, sign, ridge, dtype=np.float64, **others):
    """Return the machines of matrices of their own."""
    matrices = ManyMatrices.of_all(device, device.array(K, dtype))
    return solve_margin_batch(matrices, device.array(sign), device.array(ridge), **others)


@pytest.fixture(params=["gradients", "factors", "parts", "one at a time"])
def way(request, monkeypatch):
    """How systems are solved, where rounds start, and how many machines are looked at."""
    if request.param != "factors":
        monkeypatch.setattr(batch_systems, "_FACTORISED", 0)
    if request.param == "parts":
        monkeypatch.setattr(margin_batch, "_WORTH_A_START", 10)
    if request.param == "one at a time":
        monkeypatch.setattr(margin_batch, "_SMALL", 0)
        monkeypatch.setattr(margin_batch, "_FILLED", 1.0)
    return request.param


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("way")
def test_every_machine_of_a_batch_is_solved(device, dtype):
    sizes = (30, 41, 25)
    # float32 has no digits left for a large C.
    C, tol = ((1.0, 100.0, 1e4), 1e-6) if dtype == np.float64 else ((1.0, 100.0, 10.0), 1e-3)
    K, sign, ridge = _machines(sizes, C)
    found = _solved(device, K, sign, ridge, dtype, tol=tol)
    for b, n in enumerate(sizes):
        point = solve_margin_dual(K[b, :n, :n].copy(), sign[b, :n], ridge[b, :n], gap=1e-8)
        primal, dual = point.objectives()
        assert_allclose(found.primal[b], primal, rtol=tol)
        assert found.dual[b] <= dual * (1 + (1e-4 if dtype == np.float32 else 1e-9))
        assert found.primal[b] - found.dual[b] <= tol * found.primal[b]
        assert found.gap[b] <= tol
        beta = to_numpy(found.beta)[b]
        assert (beta[n:] == 0.0).all()
        if dtype == np.float64:
            # The objective of the coefficients themselves, and not of what they were told to be.
            scores = (K[b, :n, :n] + 1) @ beta[:n]
            slack = np.maximum(0.0, 1.0 - sign[b, :n] * scores)
            value = 0.5 * (beta[:n] @ scores + (slack**2 / ridge[b, :n]).sum())
            assert_allclose(value, found.primal[b], rtol=1e-9)


@pytest.mark.usefixtures("way")
def test_machines_may_share_a_matrix(device):
    K, sign, ridge = _machines((40, 40, 40))
    values = device.array(K[0])
    one = solve_margin_batch(
        OneMatrix.of_all(device, values, 3), device.array(sign), device.array(ridge), tol=1e-8
    )
    for b in range(3):
        primal, _ = solve_margin_dual(K[0].copy(), sign[b], ridge[b], gap=1e-10).objectives()
        assert_allclose(one.primal[b], primal, rtol=1e-7)


@pytest.mark.usefixtures("way")
def test_machines_may_have_parts_of_a_matrix(device):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    label = np.where(X[:, 0] + 0.5 * rng.normal(size=200) > 0, 1.0, -1.0)
    K = make_kernel("rbf", gamma=0.5).block(X, X)
    rows = [np.r_[20:60, 100:190], np.arange(50), np.r_[150:200]]
    places, sign = np.full((3, 130), 200), np.zeros((3, 130))
    for b, own in enumerate(rows):
        places[b, : len(own)], sign[b, : len(own)] = own, label[own]
    matrix = OneMatrix(device, device.array(K), device.index(places))
    ridge = np.full(sign.shape, 0.05)
    found = solve_margin_batch(matrix, device.array(sign), device.array(ridge), tol=1e-10)
    for b, own in enumerate(rows):
        n = len(own)
        point = solve_margin_dual(K[np.ix_(own, own)].copy(), label[own], ridge[b, :n], gap=1e-12)
        assert_allclose(to_numpy(found.beta)[b, :n], label[own] * point.alpha, atol=1e-6)
        assert_allclose(found.primal[b], point.objectives()[0], rtol=1e-8)


def test_a_start_saves_rounds_and_is_left_as_it_is(device):
    K, sign, ridge = _machines()
    first = _solved(device, K, sign, ridge, tol=1e-9)
    start = to_numpy(first.beta).copy()
    again = _solved(device, K, sign, ridge, tol=1e-8, start=first.beta)
    assert again.rounds == 0 < first.rounds
    short = _solved(device, K, sign, ridge, tol=1e-9, max_rounds=2)
    assert short.rounds == 2 and (short.dual <= first.primal * (1 + 1e-9)).all()
    near = device.array(0.9 * start)
    _solved(device, K, sign, ridge, tol=1e-8, start=near)
    assert_allclose(to_numpy(near), 0.9 * start, rtol=0, atol=0)


def test_a_matrix_that_float32_spoils_ends_with_what_rounding_hides(device):
    K, sign, ridge = _machines((30, 30, 30), C=(1e9, 1e9, 1.0))
    found = _solved(device, K, sign, ridge, np.float32, tol=1e-3, rounding=1e-6)
    assert np.isfinite(found.primal).all()
    assert (found.gap[:2] > 1e-3).all() and found.gap[2] <= 1e-3


def test_conjugate_gradients_need_no_factors(device, monkeypatch):
    monkeypatch.setattr(batch_systems, "_FACTORISED", 0)
    monkeypatch.setattr(batch_systems, "solve_spd", lambda *_: pytest.fail("a factor"))
    K, sign, ridge = _machines(C=(1.0, 1.0, 1.0))
    found = _solved(device, K, sign, ridge, tol=1e-4)
    assert (found.gap <= 1e-4).all()


def test_factors_go_on_where_conjugate_gradients_take_too_long(device, monkeypatch):
    monkeypatch.setattr(batch_systems, "_FACTORISED", 0)
    monkeypatch.setattr(batch_systems, "_STEPS", 16)
    calls, solve = [], batch_systems.solve_spd
    monkeypatch.setattr(
        batch_systems, "solve_spd", lambda *args: calls.append(args[1].shape[0]) or solve(*args)
    )
    K, sign, ridge = _machines(C=(0.01, 100.0, 1e4))
    found = _solved(device, K, sign, ridge, tol=1e-5)
    assert (found.gap <= 1e-5).all()
    # Of the stiff ones only.
    assert calls and max(calls) <= 2


def test_rounds_end(device):
    K, sign, ridge = _machines()
    best = _solved(device, K, sign, ridge, tol=0.0)
    assert (best.gap < 1e-11).all()
    first = _solved(device, K, sign, ridge, tol=1e-8, deadline=Deadline.after(0.0))
    assert first.rounds == 0 and not to_numpy(first.beta).any()
    assert_allclose(first.gap, 1.0 - first.dual / first.primal)


def test_an_interrupt_leaves_points_and_what_they_prove(device, monkeypatch):
    K, sign, ridge = _machines()
    calls, lengths = [], margin_batch.step_length

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return lengths(*args)

    monkeypatch.setattr(margin_batch, "step_length", interrupted)
    found = _solved(device, K, sign, ridge, tol=1e-12)
    assert len(calls) == 2 and found.rounds == 1
    beta = to_numpy(found.beta)
    for b in range(3):
        scores = (K[b] + 1) @ beta[b]
        slack = np.maximum(0.0, 1.0 - sign[b] * scores) * (sign[b] != 0)
        value = 0.5 * (beta[b] @ scores + (slack**2 / ridge[b]).sum())
        assert_allclose(value, found.primal[b], rtol=1e-9)
