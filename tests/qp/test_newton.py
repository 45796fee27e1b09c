"""Newton's method for losses in pieces, within a subspace, against exact duals and KKT conditions.

What problems without a subspace promise is tested with the sparse machines that solve them.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.linalg import null_space

from tests.reference import svm as reference
from widemargin.loop import Deadline
from widemargin.qp.newton import DenseFeatures, Features, Newton, Piecewise, best_start


class SparseFeatures(Features):
    """Rows in a CSR matrix."""

    def __init__(self, G, threads=1, chunk=64):
        self.G, self.shape, self.threads, self.chunk = G, G.shape, threads, chunk

    def block(self, where):
        return self.G[where]

    def curved(self, block, weight):
        return super().curved(block.toarray(), weight)


def rows_of(seed, n=120, size=7):
    """Rows with a column of ones for the bias, and labels that no plane separates."""
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(n, size))
    G[:, -1] = 1.0
    sign = np.where(G @ rng.normal(size=size) + rng.normal(size=n) > 0, 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    return rng, G, sign


def subspace(rng, size, q):
    """Orthonormal normals, which leave the bias alone."""
    normals = np.zeros((size, q))
    normals[:-1] = np.linalg.qr(rng.normal(size=(size - 1, q)))[0]
    return normals


def squared_hinge(rng, sign, size, exponent, q, deflated=False):
    price = 10.0**exponent * rng.uniform(0.5, 2.0, len(sign))
    plain = Piecewise.squared_hinge(sign, price, size)
    return replace(plain, normals=subspace(rng, size, q) if q else None, deflated=deflated)


def solved(features, problems, **options):
    n, size = features.shape
    starts = [(np.zeros(size), np.zeros(n)) for _ in problems]
    newton = Newton(features, problems, starts, **options)
    points = newton.run()
    assert newton.done
    return points


def slope(problem, G, x):
    """The derivative at x without its part along the normals."""
    pull = problem.pull(G @ x)
    return problem.tangential(problem.diagonal * x - problem.linear - G.T @ pull)


def exact_squared_hinge(problem, G):
    """The minimiser by the dual of the problem, written in a basis of the subspace."""
    size = G.shape[1]
    basis = np.eye(size) if problem.normals is None else null_space(problem.normals.T)
    signed = problem.target[:, None] * (G @ basis)
    # Without the 1 for a bias that the reference adds: here the bias is a feature.
    alpha = reference.l2svm_dual_exact(signed @ signed.T + np.diag(1.0 / problem.stiff))
    return basis @ (signed.T @ alpha)


@pytest.mark.parametrize("deflated", [False, True])
@pytest.mark.parametrize("q", [1, 3, 6])
def test_the_minimum_in_a_subspace_is_that_of_the_exact_dual(q, deflated):
    for seed in range(12):
        rng, G, sign = rows_of(seed)
        problem = squared_hinge(rng, sign, 7, seed % 6 - 3.0, q, deflated)
        (point,) = solved(DenseFeatures(G), [problem])
        exact = exact_squared_hinge(problem, G)
        np.testing.assert_allclose(point.x, exact, atol=1e-8 * np.abs(exact).max())
        assert np.abs(problem.normals.T @ point.x).max() <= 1e-13 * np.abs(exact).max()
        np.testing.assert_allclose(point.scores, G @ point.x, atol=1e-12 * np.abs(G).sum())
        assert point.value == pytest.approx(problem.value(exact, G @ exact), rel=1e-12)


def test_multipliers_and_deflation_end_at_the_same_point():
    for seed in range(30):
        rng, G, sign = rows_of(seed, size=9)
        direct = squared_hinge(rng, sign, 9, seed % 9 - 4.0, 1 + seed % 5)
        found = solved(DenseFeatures(G), [direct, replace(direct, deflated=True)])
        scale = np.abs(found[0].x).max()
        np.testing.assert_allclose(found[0].x, found[1].x, atol=1e-9 * scale)
        assert found[0].value == pytest.approx(found[1].value, rel=1e-12)


@pytest.mark.parametrize("deflated", [False, True])
@pytest.mark.parametrize("update", [False, True])
def test_the_kkt_conditions_hold_with_caps_offsets_and_a_linear_term(update, deflated):
    for seed in range(20):
        rng, G, sign = rows_of(seed, n=300)
        weight = rng.uniform(0.5, 2.0, 300)
        problem = Piecewise(
            sign,
            3.0 * weight,
            sign * rng.uniform(0.0, 0.5, 300) * weight,
            np.where(sign > 0, 0.0, -weight),
            np.where(sign > 0, weight, 0.0),
            rng.uniform(0.5, 2.0, 7) if deflated is False else np.ones(7),
            0.1 * rng.normal(size=7),
            normals=subspace(rng, 7, 2),
            deflated=deflated,
        )
        # Where x starts, it is in the subspace, and so is the linear term's share in a step.
        (point,) = solved(DenseFeatures(G, chunk=64), [problem], update=update)
        first = np.linalg.norm(slope(problem, G, np.zeros(7)))
        assert np.linalg.norm(slope(problem, G, point.x)) <= 1e-11 * first
        assert np.abs(problem.normals.T @ point.x).max() <= 1e-13


def test_a_subspace_that_leaves_only_the_bias_finds_the_best_bias():
    rng, G, sign = rows_of(3)
    problem = squared_hinge(rng, sign, 7, 0.0, 6)
    (point,) = solved(DenseFeatures(G), [problem])
    assert np.abs(point.x[:-1]).max() <= 1e-13
    exact = exact_squared_hinge(problem, G)
    assert point.x[-1] == pytest.approx(exact[-1], rel=1e-9)


@pytest.mark.parametrize("q", [0, 2])
def test_conjugate_gradients_end_where_the_exact_dual_does_where_features_are_many(q):
    for seed in range(3):
        rng, G, sign = rows_of(seed, n=60, size=1100)
        problem = squared_hinge(rng, sign, 1100, seed - 2.0, q)
        exact = exact_squared_hinge(problem, G)
        best = problem.value(exact, G @ exact)
        for features in (DenseFeatures(G), SparseFeatures(sparse.csr_array(G))):
            (point,) = solved(features, [problem])
            assert point.value == pytest.approx(best, rel=1e-9)
            np.testing.assert_allclose(point.x, exact, atol=1e-4 * np.abs(exact).max())
            if q:
                assert np.abs(problem.normals.T @ point.x).max() <= 1e-12


@pytest.mark.parametrize("q", [0, 2])
def test_sparse_rows_and_blocks_of_any_size_give_what_dense_rows_give(q):
    rng, G, sign = rows_of(0, n=400)
    G[rng.random(G.shape) < 0.5] = 0.0
    G[:, -1] = 1.0
    problem = squared_hinge(rng, sign, 7, 0.5, q)
    (whole,) = solved(DenseFeatures(G), [problem])
    for features in (SparseFeatures(sparse.csr_array(G)), DenseFeatures(G, chunk=37)):
        for update in (False, True):
            (point,) = solved(features, [problem], update=update)
            np.testing.assert_allclose(point.x, whole.x, rtol=1e-9)


def test_the_number_of_threads_does_not_change_a_bit():
    rng, G, sign = rows_of(1, n=3000, size=30)  # enough numbers to be worth threads
    problems = [squared_hinge(rng, sign, 30, exponent, 2) for exponent in (-2.0, 0.0, 1.0)]
    answers = [solved(DenseFeatures(G, threads, chunk=256), problems) for threads in (1, 2, 3)]
    for other in answers[1:]:
        for one, two in zip(answers[0], other, strict=True):
            np.testing.assert_array_equal(one.x, two.x)
            np.testing.assert_array_equal(one.scores, two.scores)


def test_the_bound_of_a_squared_hinge_is_below_the_optimum_and_meets_it_there():
    for seed in range(10):
        rng, G, sign = rows_of(seed)
        problem = squared_hinge(rng, sign, 7, seed % 5 - 2.0, seed % 3)
        newton = Newton(DenseFeatures(G), [problem], [(np.zeros(7), np.zeros(len(G)))])
        best = problem.value(*(lambda x: (x, G @ x))(exact_squared_hinge(problem, G)))
        bounds = []
        while not newton.done:
            (point,) = newton.points
            pull = problem.tangential(G.T @ problem.pull(point.scores))
            bounds.append(problem.squared_bound(point.scores, pull))
            assert bounds[-1] <= best * (1 + 1e-12)
            assert point.value >= best * (1 - 1e-12)
            newton.step()
        (point,) = newton.points
        pull = problem.tangential(G.T @ problem.pull(point.scores))
        assert problem.squared_bound(point.scores, pull) == pytest.approx(best, rel=1e-9)
        assert bounds[0] < best


def test_a_problem_that_is_told_to_rest_stays_where_it_is():
    rng, G, sign = rows_of(2)
    problems = [squared_hinge(rng, sign, 7, 0.0, 0) for _ in range(2)]
    newton = Newton(DenseFeatures(G), problems, [(np.zeros(7), np.zeros(len(G)))] * 2)
    newton.finish(0)
    first, second = newton.run()
    assert not first.x.any() and second.x.any()


def test_a_deadline_that_has_passed_leaves_a_point_that_is_no_worse_than_the_start():
    rng, G, sign = rows_of(2)
    problem = squared_hinge(rng, sign, 7, 2.0, 2)
    for deadline in (Deadline.after(0.0), Deadline()):
        if deadline.max_time is None:
            deadline.interrupt()
        newton = Newton(DenseFeatures(G), [problem], [(np.zeros(7), np.zeros(len(G)))])
        (point,) = newton.run(deadline)
        np.testing.assert_allclose(point.scores, G @ point.x, atol=1e-12)
        assert point.value <= problem.value(np.zeros(7), np.zeros(len(G)))
        assert np.abs(problem.normals.T @ point.x).max() <= 1e-13


def test_an_interrupt_in_the_middle_of_a_step_leaves_a_valid_point(monkeypatch):
    rng, G, sign = rows_of(2)
    problem = squared_hinge(rng, sign, 7, 2.0, 0)
    features, deadline = DenseFeatures(G), Deadline()
    newton = Newton(features, [problem], [(np.zeros(7), np.zeros(len(G)))])
    newton.step()
    before = newton.points[0]

    def interrupted(self, X):
        raise KeyboardInterrupt

    monkeypatch.setattr(DenseFeatures, "products", interrupted)
    (point,) = newton.run(deadline)
    assert deadline.interrupted
    assert point is before
    with pytest.raises(KeyboardInterrupt):
        newton.run()


def test_the_better_of_two_points_is_where_to_start():
    rng, G, sign = rows_of(4)
    problem = squared_hinge(rng, sign, 7, 0.0, 0)
    zero, near = np.zeros(7), exact_squared_hinge(problem, G)
    far = 100.0 * near
    assert best_start(problem, zero, G @ zero, near, G @ near)[0] is near
    assert best_start(problem, zero, G @ zero, far, G @ far)[0] is zero
