"""Vectors that stand for a trained machine: pre-images, and the distance to it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from sklearn.datasets import make_moons
from sklearn.svm import SVC

from widemargin.kernels import RBF, make_kernel
from widemargin.sparse.pre_image import Combination, Distance, pre_image, reduced


def moons(n=120, seed=0):
    return make_moons(n, noise=0.25, random_state=seed)


def machine_of(gamma=1.0, n=120, kernel=None):
    """The expansion of an SVM of two moons."""
    X, y = moons(n)
    kernel = RBF(gamma) if kernel is None else kernel
    svm = SVC(kernel="precomputed").fit(kernel.block(X, X), y)
    return Combination(kernel, X[svm.support_], svm.dual_coef_[0])


def distance(machine, vectors, coef):
    """(4) relative to ‖w‖², written out."""
    k, X, a = machine.kernel.block, machine.vectors, machine.coef
    square = a @ k(X, X) @ a
    cross = a @ k(X, vectors) @ coef
    return (square - 2 * cross + coef @ k(vectors, vectors) @ coef) / square


# One vector.


def test_a_pre_image_is_a_fixed_point_where_the_gradient_vanishes():
    machine = machine_of()
    z, _ = pre_image(machine, machine.vectors[:5], max_iter=500)
    terms = machine.terms(z[None])[:, 0]
    assert np.allclose(terms @ machine.vectors / terms.sum(), z, rtol=0, atol=1e-5)
    gradient = machine.kernel.gradient(machine.vectors, z[None], machine.coef[:, None])
    assert np.abs(gradient).max() <= 1e-5 * np.abs(terms).sum()


def test_the_best_of_many_starts_is_the_best_of_a_grid():
    machine = machine_of()
    z, _ = pre_image(machine, machine.vectors)
    grid = np.stack(np.meshgrid(*[np.linspace(-2, 3, 81)] * 2), axis=-1).reshape(-1, 2)
    assert machine.onto(z[None])[0] ** 2 >= (machine.onto(grid) ** 2).max()


def test_a_start_where_the_denominator_vanishes_is_survived():
    machine = Combination(RBF(1.0), np.array([[-1.0, 0.0], [1.0, 0.0]]), np.array([1.0, -1.0]))
    far = np.array([[0.0, 0.0], [0.0, 1e3]])
    z, _ = pre_image(machine, far)
    assert np.isfinite(z).all()
    z, _ = pre_image(machine, np.concatenate([far, [[0.9, 0.1]]]))
    assert abs(machine.onto(z[None])[0]) >= 0.98


@pytest.mark.parametrize(
    "kernel",
    [
        make_kernel("poly", gamma=0.5, degree=3, coef0=1.0),
        make_kernel("cosine_power", degree=3),
        make_kernel("inverse_squared_distance"),
    ],
    ids=lambda kernel: kernel.name,
)
def test_other_kernels_climb_by_their_gradient(kernel):
    machine = machine_of(kernel=kernel)
    z, _ = pre_image(machine, machine.vectors[:3])

    def minus(x):
        return -(machine.onto(x[None])[0] ** 2) / kernel.diagonal(x[None])[0]

    assert minus(z) <= min(minus(x) for x in machine.vectors[:3])
    slope = optimize.approx_fprime(z, minus, 1e-6)
    assert np.abs(slope).max() <= 1e-3 * abs(minus(z))


# A few vectors.


@pytest.mark.parametrize("refine", [False, True])
def test_the_distance_never_rises_and_is_the_distance(refine):
    machine = machine_of()
    result = reduced(machine, 8, np.random.default_rng(0), refine=refine)
    assert result.vectors.shape == (8, 2)
    assert len(result.distance) == 8 + refine
    assert (np.diff(result.distance) <= 0).all()
    expected = distance(machine, result.vectors, result.coef)
    assert result.distance[-1] == pytest.approx(expected, rel=1e-4, abs=1e-9)


def test_coefficients_are_the_least_squares_solution_in_feature_space():
    machine = machine_of()
    result = reduced(machine, 6, np.random.default_rng(0), refine=False)
    both = np.concatenate([machine.vectors, result.vectors])
    values, vectors = np.linalg.eigh(machine.kernel.block(both, both))
    images = np.sqrt(np.maximum(values, 0)) * vectors
    w = machine.coef @ images[: len(machine.coef)]
    beta, *_ = np.linalg.lstsq(images[len(machine.coef) :].T, w)
    assert np.allclose(result.coef, beta, rtol=1e-6, atol=1e-8)


def test_moving_all_vectors_brings_them_nearer():
    machine = machine_of()
    greedy = reduced(machine, 8, np.random.default_rng(0), refine=False)
    moved = reduced(machine, 8, np.random.default_rng(0))
    assert moved.distance[-1] < 0.1 * greedy.distance[-1]


def test_the_gradient_of_the_distance_equals_differences():
    machine = machine_of()
    k, X, a = machine.kernel.block, machine.vectors, machine.coef
    function = Distance(machine, float(a @ k(X, X) @ a))
    Z = np.random.default_rng(0).normal(size=(3, 2))
    slope = optimize.approx_fprime(Z.ravel(), lambda z: function(z.reshape(3, 2)).value, 1e-6)
    assert np.allclose(function(Z).gradient.ravel(), slope, rtol=1e-4, atol=1e-4)


def test_enough_vectors_reproduce_the_machine():
    machine = machine_of(gamma=0.2)
    assert reduced(machine, 30, np.random.default_rng(0), max_iter=200).distance[-1] < 1e-6
    as_it_is = reduced(machine, len(machine.coef), np.random.default_rng(0))
    assert as_it_is.vectors is machine.vectors
    assert as_it_is.distance.tolist() == [0.0]


def test_a_machine_of_zero_and_one_without_length_are_told_apart():
    X = np.random.default_rng(0).normal(size=(6, 2))
    zero = Combination(RBF(1.0), X[[0, 0, 1]], np.array([1.0, -1.0, 0.0]))
    assert reduced(zero, 2, np.random.default_rng(0)).coef.tolist() == [0.0]
    negative = Combination(make_kernel("sigmoid", gamma=1.0, coef0=-5.0), X, np.ones(6))
    with pytest.raises(ValueError, match="squared length"):
        reduced(negative, 2, np.random.default_rng(0))
